"""Whole models that call the real ejkernel and the real tokamax: lowered, tuned, and found again."""

import pathlib
import re
import shutil
import tempfile

from support import NO, CommandTest
from test_ejkernel import PACKAGES, run_ejkernel

QUICK = ["--seconds", "1", "--evals", "4"]
LLAMA, GEMMA = "flash_attention(f32[2,24,4,128], f32[2,24,2,128], f32[2,24,2,128]", "flash_attention(bf16[2,24,4,64], bf16[2,24,1,64], bf16[2,24,1,64]"
DECODE = "flash_attention(f32[2,1,4,128], f32[2,32,2,128], f32[2,32,2,128])"
CALLS = {
    "llama": {f"{LLAMA}, causal=true)": 3, DECODE: 15},  # three layers; five steps of them
    "llama_longer": {f"{LLAMA.replace('24', '28')}, causal=true)": 3, DECODE: 15},
    "llama_train": {f"{LLAMA}, causal=true)": 6},  # forwards, and again for the gradient
    "llama_parted": {"flash_attention(f32[1,24,2,128], f32[1,24,1,128], f32[1,24,1,128], causal=true)": 6},  # of one device
    "llama_padded": {f"{LLAMA.replace('flash', 'biased')}, mask=bool[2,1,24,24], causal=true)": 6},
    "llama_each": {f"{LLAMA.replace('[2', '[1')}, causal=true)": 3},
    "gemma": {f"{GEMMA}, causal=true, sliding_window=8, logits_soft_cap=50.0)": 2, f"{GEMMA}, causal=true, logits_soft_cap=50.0)": 2,
              "scaled_dot_product_attention(bf16[2,24,1,32], bf16[2,24,1,32], bf16[2,24,1,32])": 1, "mean_pooling(bf16[2,24,32], chunk_size=8)": 1},
}


def trunk(dtype, tokens):
    """The calls of AlphaFold's trunk of three blocks."""
    def array(*dims):
        return f"{dtype}[{','.join(map(str, dims))}]"

    def attention(rows):
        heads, bias = array(rows, tokens, 4, 8), array(1, 4, tokens, tokens)
        return f"dot_product_attention({heads}, {heads}, {heads}, {bias}, bool[{rows},1,1,{tokens}])"

    def of(*dims):
        unit = f'gated_linear_unit({array(*dims, 32)}, {array(32, 2, 128)}, activation="silu")'
        return f"rms_norm({array(*dims, 32)}, {array(32)}, eps=1e-05)", unit
    (_, pair_unit), (norm, unit), (row_norm, _) = of(tokens, tokens), of(tokens), of(1, tokens)
    pair_norm = f"layer_norm({array(tokens, tokens, 32)}, {array(32)}, {array(32)}, eps=1e-05)"
    return {pair_norm: 6, pair_unit: 3, norm: 3, unit: 3, row_norm: 3, attention(tokens): 3, attention(1): 3}


CALLS |= {"trunk": trunk("f32", 20), "trunk_longer": trunk("f32", 24), "trunk_half": trunk("bf16", 20), "trunk_train": trunk("f32", 20)}


def arrays(call):
    """Where a key was cut off, only the arrays that must be there tell calls apart."""
    return re.sub(r", [a-z_]+=.*\)$", ")", call.removeprefix("biased_"))


class Models(CommandTest):
    @classmethod
    def setUpClass(cls):
        if not (PACKAGES / "tokamax-imports").exists():
            raise AssertionError(f"{PACKAGES} is not whole: scripts/setup python")
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="hone-models-"))
        cls.addClassCleanup(shutil.rmtree, cls.made)
        for script in ("ejkernel_model.py", "tokamax_model.py"):
            run_ejkernel(script, cls.made)

    def path(self, name):
        return str(self.made / name)

    def counts(self, name):
        out = {}
        for row in self.hone("offline", "--list", "--json", self.path(name)).json["operations"]:
            out[row["call"]] = out.get(row["call"], 0) + row["count"]
        return out

    def test_every_operation_of_a_model_is_known_and_counted(self):
        for name, calls in CALLS.items():
            with self.subTest(name):
                rows = self.hone("offline", "--list", "--json", self.path(f"{name}.mlir")).json["operations"]
                self.assertEqual({row["call"]: row["count"] for row in rows}, calls)
                self.assertLessEqual({(row["matched"], row["tunable"]) for row in rows}, {("proved", True), ("label", True)})

    def test_counts_in_hlo_are_those_in_stablehlo(self):
        for name, calls in CALLS.items():
            with self.subTest(name):
                known = {}
                for call, count in calls.items():
                    call = call if name.startswith("trunk") else arrays(call)  # tokamax's labels are whole there, too
                    known[call] = known.get(call, 0) + count
                self.assertEqual(self.counts(f"{name}.hlo"), known)

    def tuned_and_found(self, names, others):
        """All is tuned and hits from then on, also in `others`; another program lacks just what its shapes change."""
        paths = [self.path(f"{name}.mlir") for name in names]
        self.hone("offline", "--expect-all", *paths, code=NO)
        self.hone("offline", *paths, *QUICK)
        stat = self.stat()
        again = self.hone("offline", *paths, *QUICK).out
        self.assertEqual(again.count("every call was decided already: nothing was measured"), len(names))
        self.assertEqual(self.stat()["measurements"], stat["measurements"])
        out = self.hone("offline", "--expect-all", *paths, *(self.path(f"{name}.mlir") for name in others)).out
        self.assertNotIn("missing:", out)
        for name in (*names, *others):
            self.assertIn(f"{name}.mlir: {len(CALLS[name])} of {len(CALLS[name])} operations are decided in the store", out)

    def missing(self, name):
        answer = self.hone("offline", "--expect-all", "--json", self.path(f"{name}.mlir"), code=NO).json
        self.assertEqual(answer["hits"] + len(answer["missing"]), answer["operations"])
        text = self.hone("offline", "--expect-all", self.path(f"{name}.mlir"), code=NO).out
        for row in answer["missing"]:
            self.assertIn(f"missing: {row['key'] or row['algorithm']} at {row['where']}: {row['call']}: answered by ", text)
        return {row["call"] for row in answer["missing"]}

    def test_models_of_ejkernel_are_tuned_once_and_a_changed_shape_is_missing(self):
        self.tuned_and_found(("llama", "gemma"), ("llama_train",))
        self.assertEqual(self.missing("llama_longer"), set(CALLS["llama_longer"]) - {DECODE})
        self.assertEqual(self.missing("llama_each"), set(CALLS["llama_each"]))
        # Guesses where the keys were cut off are hits only for who asks for guesses.
        self.hone("offline", "--expect-all", self.path("llama.hlo"), code=NO)
        self.hone("offline", "--unproved", self.path("llama.hlo"), *QUICK)
        self.hone("offline", "--expect-all", "--unproved", self.path("llama.hlo"))

    def test_a_model_of_tokamax_is_tuned_once_and_a_changed_shape_is_missing(self):
        self.tuned_and_found(("trunk",), ("trunk_train",))
        self.hone("offline", "--expect-all", self.path("trunk.hlo"))  # its labels are whole in every form
        self.assertEqual(self.missing("trunk_longer"), set(CALLS["trunk_longer"]))
        self.assertEqual(self.missing("trunk_half"), set(CALLS["trunk_half"]))
