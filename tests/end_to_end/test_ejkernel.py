"""The real ejkernel, whole: what it recorded and lowered is read, tuned, and handed back."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, DATA
from test_stores import StoreTest

PACKAGES = DATA.parent / "build-python"  # scripts/setup installs ejkernel and jax there
TUNED = {"attention", "flash_attention", "mean_pooling", "rwkv4", "scaled_dot_product_attention"}


def run_ejkernel(script, *arguments, timeout=500):
    """A script beside this one, with ejkernel and tokamax at hand."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
    env |= {"EJKERNEL_OPS_RECORD": "1", "EJKERNEL_OPS_STAMP": "hash", "JAX_PLATFORMS": "cpu", "JAXTYPING_DISABLE": "1",
            "PYTHONPATH": os.pathsep.join(map(str, (PACKAGES, PACKAGES / "ejkernel-imports", PACKAGES / "tokamax-imports")))}
    command = [sys.executable, "-B", pathlib.Path(__file__).with_name(script), *arguments]
    made = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    if made.returncode != 0:
        raise AssertionError(f"ejkernel could not be called (scripts/setup python):\n{made.stderr}")


# Names that ejkernel's registry has for implementations of these operations.
ALIASES = {"apply_native_sparse_attention": "native_sparse_attention", "kda": "kernel_delta_attention", "mamba1": "state_space_v1",
           "ssm1": "state_space_v1", "mamba2": "state_space_v2", "ssm2": "state_space_v2"}
# What ejkernel itself does not lower under jit, and what no plugin of PJRT can compile.
NOT_LOWERED = {"deepseek_attn", "lightning_attn", "native_sparse_attention"}
NOT_EXPORTED = {"all_gather_matmul": "it runs across devices", "reduce_scatter_matmul": "it runs across devices",
                "gated_delta_rule": "it calls lapack_strsm_ffi", "ragged_gated_delta_rule": "it calls lapack_strsm_ffi",
                **dict.fromkeys(NOT_LOWERED, "ejkernel does not trace it")}
PLUGIN = PACKAGES / "xla_plugins" / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"


def make_pack(*words):
    """python -m hone.ejkernel: its exit code, and what it prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
    env |= {"JAX_PLATFORMS": "cpu", "JAXTYPING_DISABLE": "1",
            "PYTHONPATH": os.pathsep.join(map(str, (BUILD.resolve() / "python", PACKAGES, PACKAGES / "ejkernel-imports")))}
    made = subprocess.run([sys.executable, "-B", "-m", "hone.ejkernel", *map(str, words)], capture_output=True, text=True, timeout=500, env=env)
    return made.returncode, made.stdout + made.stderr


@unittest.skipUnless((BUILD / "python").exists(), "the Python package is not built")
class Python(unittest.TestCase):
    def test_programs_of_ejkernel_run_what_hone_tuned(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
        env |= {"PYTHONPATH": f"{BUILD.resolve()}/python:{PACKAGES}", "HONE_TEST_COMMAND": str(BUILD.resolve() / "hone"),
                "HONE_DEVICE_LOCKS": str(BUILD.resolve()), "HONE_REQUIRE": "1"}
        command = [sys.executable, "-B", "-m", "unittest", "test_ejkernel"]
        made = subprocess.run(command, cwd=DATA / "python", env=env, capture_output=True, text=True, timeout=1500)
        self.assertEqual(made.returncode, 0, made.stderr)


class Ejkernel(StoreTest):
    @classmethod
    def setUpClass(cls):
        if not (PACKAGES / "ejkernel-imports").exists():
            raise AssertionError(f"{PACKAGES} is not whole: scripts/setup python")
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="hone-ejkernel-"))
        cls.addClassCleanup(shutil.rmtree, cls.made)
        run_ejkernel("ejkernel_calls.py", cls.made)

    def listed_rows(self, path):
        return self.hone("offline", "--list", "--json", str(path)).json["operations"]

    def listed(self, name):
        return {row["algorithm"]: row for row in self.listed_rows(self.made / name)}

    def calls(self, rows):
        return {rows[name]["call"] for name in TUNED}

    def test_what_it_recorded_is_dumped_imported_and_tuned(self):
        recorded = json.loads((self.made / "calls.json").read_text())["invocations"]
        self.assertEqual(self.hone("record", "import", str(self.made / "calls.json"), "--json").json, {"imported": 6})
        rows = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual({row["key"] for row in rows}, {row["key"] for row in recorded})
        table = self.hone("record", "list").out
        self.assertIn("flash_attention(f32[1,32,4,16], f32[1,32,2,16], f32[1,32,2,16], causal=true)", table)
        result = self.hone("tune", "--recorded", "--seconds", "1", "--evals", "6", "--json", code=None).json
        self.assertEqual({entry["algorithm"] for entry in result["entries"]}, TUNED)
        self.assertEqual([row["reason"].split(";")[0] for row in result["failed"]], ["no algorithm named 'recurrent'"])
        # The program's operations are the recorded ones, and decided.
        operations = self.listed("program.mlir")
        self.assertEqual({row["matched"] for row in operations.values()}, {"recorded"})
        self.assertEqual({row["key"] for row in operations.values()}, {row["key"] for row in recorded})
        self.assertEqual({entry["call"] for entry in result["entries"]}, self.calls(operations))
        for call in self.calls(operations):
            self.assertEqual(self.hone("explain", call, "--json").json["source"], "store")
        again = self.hone("tune", "--recorded", "--seconds", "1", "--evals", "6", code=None).out
        # But for those whose contest could not tell who is the fastest: they are taken up again.
        decided = int(re.search("([1-5]) of 6 calls were decided already", again).group(1))
        self.assertEqual(again.count("spread"), len(TUNED) - decided)

    def test_a_program_alone_is_enough(self):
        operations = self.listed("program.mlir")
        self.assertEqual({name: row["matched"] for name, row in operations.items()},
                         {**dict.fromkeys(TUNED, "proved"), "recurrent": "none"})
        self.assertEqual(operations["recurrent"]["reason"], "hone has no algorithm named 'recurrent'")
        program = str(self.made / "program.mlir")
        result = self.hone("offline", program, "--seconds", "1", "--evals", "6", "--allow-missing", "--json").json
        self.assertEqual({entry["call"] for entry in result["entries"]}, self.calls(operations))
        self.assertEqual(self.stat()["aliases"], len(TUNED))

    def test_random_operations_are_proved_and_none_is_wrong(self):
        """What is proved from the program alone is what ejkernel itself recorded. HONE_SOAK=1: 500 of them."""
        count = 500 if os.environ.get("HONE_SOAK") == "1" else 100
        folder = self.made / "random"
        folder.mkdir()
        run_ejkernel("ejkernel_random.py", folder, "7", str(count), timeout=3600)
        programs = sorted(folder.glob("*.mlir"))
        alone = {row["key"]: row for path in programs for row in self.listed_rows(path)}
        self.hone("record", "import", str(folder / "truth.json"))
        known = {row["key"]: row for path in programs for row in self.listed_rows(path)}
        self.assertEqual({row["matched"] for row in known.values()}, {"recorded"})
        proved = {key: row for key, row in alone.items() if row["matched"] == "proved"}
        self.assertGreaterEqual(len(proved), 0.99 * len(alone), [key for key in alone if key not in proved])
        for key, row in proved.items():
            self.assertEqual((row["call"], row["reason"]), (known[key]["call"], known[key]["reason"]))
        self.assertEqual([row for row in alone.values() if row["tunable"] and row["matched"] != "proved"], [])

    def with_pack(self, folder, *words, code=0):
        return self.hone(*words, "--pack", str(folder), code=code, env={"HONE_PJRT_PLUGIN": str(PLUGIN), "HONE_COMPILE_CACHE": str(self.folder / "cache")})

    def test_an_installed_ejkernel_becomes_a_pack_for_what_hone_does_not_have(self):
        calls, program, pack = self.made / "calls.json", self.made / "program.mlir", self.folder / "pack"
        code, out = make_pack(program, "-o", pack)
        self.assertEqual(code, 1)
        self.assertRegex(out, "recurrent@v0:[0-9a-f]{16}: its label has a hash alone: give the record")
        code, out = make_pack(calls, program, "-o", pack)
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"1 algorithms\n  recurrent_\w+: triton, gpu: ")
        self.hone("record", "import", str(calls))
        listed = {row["algorithm"]: row for row in self.with_pack(pack, "offline", "--list", "--json", str(program)).json["operations"]}
        self.assertRegex(listed["recurrent"]["call"], r"recurrent_\w+\(f32\[1,32,4,16\]")
        self.assertEqual({row["tunable"] for row in listed.values()}, {True})
        result = self.with_pack(pack, "offline", str(program), "--seconds", "1", "--evals", "4", "--json").json
        chosen = {entry["algorithm"].split("_")[0]: entry["kernel"] for entry in result["entries"]}
        self.assertEqual(chosen["recurrent"], "xla")

    # Minutes: of an ordinary run the one test above is a part of it.
    if os.environ.get("HONE_SOAK") == "1":

        def test_each_operation_of_ejkernel_is_tuned_or_listed_with_the_reason(self):
            made, pack = self.folder / "all", self.folder / "pack"
            made.mkdir()
            run_ejkernel("ejkernel_all.py", made, timeout=3600)
            self.assertEqual({*json.loads((made / "failed.json").read_text())}, NOT_LOWERED)
            code, out = make_pack(made / "calls.json", "-o", pack)
            self.assertEqual(code, 1)
            listed = dict(line[2:].split(": ", 1) for line in out.splitlines() if line.startswith("- "))
            reasons = {name.split("@")[0]: reason for name, reason in listed.items()}
            self.assertEqual({*reasons}, {*NOT_EXPORTED})
            for name, words in NOT_EXPORTED.items():
                self.assertIn(words, reasons[name])
            self.hone("record", "import", str(made / "calls.json"))
            programs = {path.stem: path for path in made.glob("*.mlir")}
            algorithms = {"flash_attention", *programs, *NOT_LOWERED, *ALIASES}
            self.assertEqual(len(algorithms), 47)
            for name, path in programs.items():
                with self.subTest(name):
                    out = self.with_pack(pack, "offline", str(path), "--seconds", "1", "--evals", "3", "--json", code=None)
                    self.assertEqual(out.code, 1 if name in NOT_EXPORTED else 0, out.err)

    def test_where_the_keys_are_cut_the_table_says_so(self):
        operations = self.listed("program.hlo")
        self.assertEqual(set(operations), TUNED | {"recurrent"})
        self.assertEqual({row["key"] for row in operations.values()}, {None})
        self.assertEqual({row["matched"] for row in operations.values()}, {"operands", "none"})
