"""Programs of the real ejkernel with hone beside them: what labels name, what ejkernel runs of hone's, what it loads."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

CACHES = tempfile.TemporaryDirectory(prefix="hone-ejkernel-")
os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_COMPILATION_CACHE="false", JAXTYPING_DISABLE="1",
                  EJKERNEL_AUTOTUNE_POLICY="heuristics", EJKERNEL_PERSISTENT_CACHE_DIR=CACHES.name)

import jax
import jax.numpy as jnp
import numpy

import ejkernel_program
import hone
import hone.ejkernel
from support import QUICK, HoneTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "build-python" / "ejkernel-imports"))
try:
    from ejkernel import modules
    from ejkernel.kernels import kernel_registry
except ImportError:
    if os.environ.get("HONE_REQUIRE"):
        raise
    modules = None

OPERATIONS = ["flash_attention", "scaled_dot_product_attention", "attention", "mean_pooling", "rwkv4"]
PROGRAM = ROOT / "tests" / "golden" / "lowered" / "one.bc"
LABEL = "scaled_dot_product_attention@v0:2133cfa20c40fe20"


class Labels(HoneTest):
    def test_a_result_has_the_operations_and_keys_of_labels(self):
        result = hone.offline(PROGRAM, **QUICK)
        entry, = result.entries
        self.assertEqual(f"{entry.op_id_v}:{entry.call_key}", LABEL)
        self.assertEqual(entry.cfg, result[0])
        again = hone.Result.from_json(result.to_json())
        self.assertEqual([row.call_key for row in again.entries], [entry.call_key])
        other = f"sqlite:{self.folder}/other.db"
        again.store(other)
        with hone.Store(other) as store:
            for name in (LABEL, f"ejkernel_ops#{LABEL}", LABEL.split(":")[1], result[0].key):
                self.assertEqual(store.get(name).kernel, result[0].kernel)
            self.assertIsNone(store.get("attention@v0:2133cfa20c40fe20"))

    def test_the_chain_takes_a_label_for_its_call(self):
        result = hone.offline(PROGRAM, **QUICK)
        for name in (LABEL, LABEL.split(":")[1]):
            self.assertEqual(hone.decide(name).key, result[0].key)
            self.assertEqual(hone.decide(name).source, "memory")
            self.assertIn("answered by memory", hone.explain(name))
        with self.assertRaises(hone.NotFoundError):
            hone.decide("flash_attention@v2:2133cfa20c40fe20")

    def test_inside_a_result_its_evidence_stands(self):
        call = "softmax(f32[4,64])"
        result = hone.tune(call, store=False, **QUICK)
        self.assertNotEqual(hone.decide(call).source, "overlay")
        for entered in (result, hone.Result.from_json(result.to_json()), hone.context(overlay=result)):
            with entered:
                decision, text = hone.decide(call), hone.explain(call)
            self.assertEqual(decision.source, "overlay")
            self.assertTrue(decision.verified)
            self.assertEqual((decision.time_ns, decision.samples), (result[0].time_ns, result[0].samples))
            self.assertIn("verified against", text)
            self.assertNotIn("unverified", text)

    def test_evidence_of_another_revision_says_nothing(self):
        call = "softmax(f32[4,64])"
        document = json.loads(hone.tune(call, store=False, **QUICK).to_json())
        document["entries"][0]["revision"] = "of another day"
        with hone.Result.from_json(json.dumps(document)):
            self.assertEqual(hone.decide(call).source, "overlay")
            self.assertFalse(hone.decide(call).verified)
            self.assertIn("not measured", hone.explain(call))


@unittest.skipUnless(modules, "ejkernel is not installed: scripts/setup python")
class Registered(HoneTest):
    """hone's operations in ejkernel's registry."""

    @classmethod
    def setUpClass(cls):
        cls.theirs = {name: cls.kernel(name) for name in OPERATIONS}
        assert hone.ejkernel.register() == OPERATIONS

    @staticmethod
    def kernel(name):
        """ejkernel's own, for any device."""
        return next(spec.implementation for spec in kernel_registry.list_implementations(name)
                    if spec.platform == "xla" and not hasattr(spec.implementation, "of_hone"))

    def setUp(self):
        super().setUp()
        self.runtime.record(True)
        self.random = numpy.random.default_rng(20)

    def made(self, *shape, dtype="float32"):
        return jnp.asarray(self.random.standard_normal(shape), dtype)

    def runs(self):
        return {row["call"]: row["count"] for row in self.runtime.recorded()}

    def same(self, ours, theirs, tolerance=2e-6):
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            wide = numpy.asarray(one, numpy.float64), numpy.asarray(other, numpy.float64)
            scale = {"bfloat16": 0.02, "float16": 0.003}.get(str(one.dtype), tolerance)
            numpy.testing.assert_allclose(*wide, rtol=scale, atol=scale * (1 + numpy.abs(wide[1]).max()))

    def qkv(self, dtype="float32", tokens=24, keys=None, heads=4, kv_heads=2, dim=16):
        keys = tokens if keys is None else keys
        return (self.made(2, tokens, heads, dim, dtype=dtype), self.made(2, keys, kv_heads, dim, dtype=dtype),
                self.made(2, keys, kv_heads, dim, dtype=dtype))

    def calls(self, dtype="float32"):
        """An operation, its arrays, its keywords, and the call of hone's that it is."""
        q, k, v = self.qkv(dtype)
        arrays, wide = ", ".join(f"{short(x)}" for x in (q, k, v)), ", ".join(short(x, "bf16") for x in (q, k, v))
        bias = self.made(2, 4, 24, 24, dtype=dtype)
        x, w, channels = self.made(2, 33, 20, dtype=dtype), self.made(20), self.made(2, 9, 20, dtype=dtype)
        state = jnp.abs(self.made(2, 3, 20))
        return [
            ("flash_attention", (q, k, v), dict(causal=True, softmax_scale=0.3), f"flash_attention({arrays}, causal=true, softmax_scale=0.3)"),
            ("flash_attention", (q, k, v), dict(sliding_window=5, logits_soft_cap=20.0, precision=jax.lax.Precision.HIGHEST),
             f"flash_attention({arrays}, sliding_window=5, logits_soft_cap=20.0)"),
            ("scaled_dot_product_attention", (q, k, v), dict(causal=True), f"scaled_dot_product_attention({arrays}, causal=true)"),
            ("scaled_dot_product_attention", (q, k, v), dict(sliding_window=3, platform="xla"),
             f"scaled_dot_product_attention({arrays}, sliding_window=3)"),
            ("flash_attention", (q, k, v), dict(sliding_window=(4, 2), causal=True),
             f"dot_product_attention({arrays}, causal=true, window_left=4, window_right=2)"),
            ("flash_attention", (q, k, v, bias), dict(logits_soft_cap=20.0), f"dot_product_attention({arrays}, {short(bias)}, logits_soft_cap=20.0)"),
            ("scaled_dot_product_attention", (q, k, v, bias), dict(causal=True), f"dot_product_attention({arrays}, {short(bias)}, causal=true)"),
            ("flash_attention", (q, k, v[..., :8]), {}, f"dot_product_attention({arrays.rsplit(', ', 1)[0]}, {short(v[..., :8])})"),
            ("attention", (q, k, v), dict(causal=True), f"attention({wide}, causal=true)"),
            ("attention", (q, k, v), dict(dtype=jnp.dtype(dtype), softmax_dtype=jnp.float32), f"attention({arrays})"),
            ("mean_pooling", (x,), dict(chunk_size=16), f"mean_pooling({short(x)})"),
            ("rwkv4", (w, w, channels, channels), {}, f"rwkv4(f32[20], f32[20], {short(channels)}, {short(channels)})"),
            ("rwkv4", (w, w, channels, channels, state), dict(return_state=True),
             f"rwkv4(f32[20], f32[20], {short(channels)}, {short(channels)}, f32[2,3,20])"),
        ]

    def theirs_of(self, name, arrays, keywords):
        """The same by ejkernel's own kernel, through ejkernel's own module, as if nothing were registered."""
        specs = kernel_registry._registry[name]
        ours = next(spec for spec in specs if hasattr(spec.implementation, "of_hone"))
        specs.remove(ours)
        try:
            return getattr(modules, name)(*arrays, **keywords)
        finally:
            specs.insert(0, ours)

    def test_unchanged_calls_run_hones_kernels_with_equal_results(self):
        for dtype in ("float32", "bfloat16"):
            for name, arrays, keywords, call in self.calls(dtype)[:: 1 if dtype == "float32" else 4]:
                with self.subTest(call):
                    before = self.runs().get(call, 0)
                    ours = getattr(modules, name)(*arrays, **keywords)
                    self.assertEqual(self.runs().get(call, 0), before + 1, self.runs())
                    self.same(ours, self.theirs_of(name, arrays, keywords))
                    self.assertEqual(self.runs()[call], before + 1)

    def test_random_calls_are_equal(self):
        for _ in range(12):
            name = OPERATIONS[self.random.integers(3)]
            tokens, heads = int(self.random.integers(1, 40)), int(self.random.choice([1, 2, 4]))
            keys = tokens if self.random.random() < 0.5 else int(self.random.integers(1, 60))
            arrays = self.qkv(tokens=tokens, keys=keys, heads=heads, kv_heads=1 if self.random.random() < 0.3 else heads,
                              dim=int(self.random.choice([8, 16, 40])))
            keywords = {"causal": bool(self.random.random() < 0.5)}
            if self.random.random() < 0.4:
                keywords["sliding_window"] = int(self.random.integers(0, 20))
                if name != "attention" and self.random.random() < 0.5:
                    keywords["sliding_window"] = keywords["sliding_window"], int(self.random.integers(0, 20))
            if self.random.random() < 0.4:
                keywords["softmax_scale"] = float(self.random.random())
            if name != "scaled_dot_product_attention" and self.random.random() < 0.4:
                keywords["logits_soft_cap"] = float(self.random.integers(5, 50))
            if name == "attention":
                keywords["dtype"] = jnp.float32
            with self.subTest(name, shapes=[x.shape for x in arrays], **keywords):
                self.same(getattr(modules, name)(*arrays, **keywords), self.theirs_of(name, arrays, keywords), 1e-5)
        self.assertGreater(len(self.runs()), 8)

    def test_under_jit_they_are_calls_inside_xla(self):
        for name, arrays, keywords, call in self.calls()[::2]:
            with self.subTest(call):
                function = jax.jit(lambda *given, name=name, keywords=keywords: getattr(modules, name)(*given, **keywords))
                self.assertIn("hone_call", function.lower(*arrays).as_text())
                before = self.runs().get(call, 0)
                ours = function(*arrays)
                jax.block_until_ready(ours)
                self.assertEqual(self.runs().get(call, 0), before + 1)
                self.same(ours, self.theirs_of(name, arrays, keywords))

    def test_gradients_are_ejkernels_own_and_vmap_is_hones(self):
        for name, arrays, keywords, call in self.calls()[1::2]:
            def loss(*given, name=name, keywords=keywords):
                return sum((leaf.astype(jnp.float32) ** 2).sum() for leaf in jax.tree.leaves(getattr(modules, name)(*given, **keywords)))

            places = tuple(range(len(arrays)))
            with self.subTest(call):
                theirs = self.theirs_of_loss(name, loss, places, arrays)
                self.same(jax.grad(loss, places)(*arrays), theirs)
        q, k, v = self.qkv()
        many = jnp.stack([q, 2 * q])
        before = sum(self.runs().values())
        ours = jax.vmap(lambda q: modules.flash_attention(q, k, v))(many)
        self.assertGreater(sum(self.runs().values()), before)
        self.same(ours[1], self.theirs_of("flash_attention", (2 * q, k, v), {}))
        self.assertEqual(jax.jvp(lambda q: modules.scaled_dot_product_attention(q, k, v), (q,), (q,))[1].shape, q.shape)

    def test_they_run_in_shards_and_in_scans(self):
        q, k, v = self.qkv()
        mesh, along = jax.sharding.Mesh(numpy.array(jax.devices()).reshape(1), ("x",)), jax.sharding.PartitionSpec("x")
        shards = modules.flash_attention(q, k, v, mesh=mesh, in_specs=(along,) * 3 + (None,) * 4, out_specs=along)
        scanned, _ = jax.lax.scan(lambda carry, _: (modules.flash_attention(carry, k, v), None), q, None, length=2)
        self.assertEqual(sum(self.runs().values()), 3)
        self.same(shards, self.theirs_of("flash_attention", (q, k, v), {}))
        self.same(scanned, self.theirs_of("flash_attention", (shards, k, v), {}), 1e-5)

    def test_an_array_that_is_spread_over_devices_is_ejkernels_unless_a_program_splits_it(self):
        script = """if True:
            import sys
            sys.path.append(sys.argv[1])
            import jax, jax.numpy as jnp, numpy, hone, hone.ejkernel
            from ejkernel import modules
            from jax.sharding import Mesh, NamedSharding, PartitionSpec
            q, call = jnp.ones((2, 8, 2, 16)).at[0].set(2.0), lambda q: modules.flash_attention(q, q, q, causal=True)
            theirs = call(q)
            hone.ejkernel.register()
            spread = jax.device_put(q, NamedSharding(Mesh(numpy.array(jax.devices()), ("x",)), PartitionSpec("x")))
            print(hone.ejkernel.why_not("flash_attention", spread, q, q))
            assert len(spread.devices()) == 2 and numpy.allclose(call(spread), theirs, atol=1e-5)
            assert numpy.allclose(jax.jit(call)(spread), theirs, atol=1e-5)"""
        env = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=2")
        out = subprocess.run([sys.executable, "-c", script, str(ROOT / "build-python" / "ejkernel-imports")], env=env,
                             capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("query is spread over devices", out.stdout)

    def theirs_of_loss(self, name, loss, places, arrays):
        specs = kernel_registry._registry[name]
        ours = specs.pop(0)
        try:
            return jax.grad(loss, places)(*arrays)
        finally:
            specs.insert(0, ours)

    def test_what_hone_does_not_take_runs_ejkernels_own(self):
        q, k, v = self.qkv()
        mask, bias = jnp.tril(jnp.ones((2, 1, 24, 24), bool)), self.made(2, 4, 24, 24)
        segments = jnp.repeat(jnp.arange(2, dtype=jnp.int32), 12)[None].repeat(2, 0)
        flash, theirs = kernel_registry.get("flash_attention", "xla", "any"), self.theirs["flash_attention"]
        for keywords, words in (
            ({"bias": bias, "attention_mask": mask}, "takes no attention_mask"), ({"sliding_window": (4, -1)}, "sliding_window is (4, -1)"),
            ({"q_segment_ids": segments, "kv_segment_ids": segments}, "takes no q_segment_ids"),
            ({"softmax_aux": self.made(4)}, "takes no softmax_aux"),
            ({"dropout_prob": 0.5, "dropout_seed": 1}, "dropout_prob is 0.5"), ({"normalize_output": False}, "normalize_output is False"),
            ({"logits_dtype": jnp.bfloat16}, "logits_dtype is"),
        ):
            with self.subTest(words):
                self.assertIn(words, hone.ejkernel.why_not("flash_attention", q, k, v, **keywords))
                if "-1" in words:
                    self.assertRaisesRegex(ValueError, "non-negative", flash, q, k, v, **keywords)
                    continue
                self.same(flash(q, k, v, **keywords), theirs(q, k, v, **keywords), 0)
        self.assertIn("takes a number", hone.ejkernel.why_not("attention", q, k, v, sliding_window=(4, 2)))
        self.assertIn("value", hone.ejkernel.why_not("scaled_dot_product_attention", q, k, v[:, 1:]))
        self.assertIn("no key", hone.ejkernel.why_not("flash_attention", q, k[:, :3], v[:, :3], sliding_window=2))
        self.assertIsNone(hone.ejkernel.why_not("flash_attention", q, k, v))
        with jax.enable_x64(True):
            wide = [one.astype(jnp.float64) for one in (q, k, v)]
            self.assertIn("query is of float64", hone.ejkernel.why_not("flash_attention", *wide))
        self.assertEqual(self.runs(), {})
        with self.assertRaises(Exception) as ours:  # what is wrong, in ejkernel's words
            flash(q, k, v, cum_seqlens_q=jnp.zeros(3, jnp.int32))
        self.assertIn("cum_seqlens_q requires attention_mask", str(ours.exception))

    def test_all_that_hone_has_not_is_left_out_with_words(self):
        left = hone.ejkernel.left_out()
        self.assertEqual(set(left) | set(OPERATIONS), set(kernel_registry.list_algorithms()))
        self.assertEqual(left["recurrent"], "hone has no algorithm named 'recurrent'")
        self.assertEqual(hone.ejkernel.why_not("recurrent"), left["recurrent"])
        for name in ("recurrent", "nonsense"):
            with self.assertRaisesRegex(hone.UnsupportedError, name):
                hone.ejkernel.register(name)

    def test_it_stands_there_once_before_the_others_with_their_signature(self):
        before = {name: len(kernel_registry.list_implementations(name)) for name in OPERATIONS}
        self.assertEqual(hone.ejkernel.register("rwkv4", "attention"), ["rwkv4", "attention"])
        for name in OPERATIONS:
            specs = kernel_registry.list_implementations(name)
            self.assertEqual(len(specs), before[name])
            self.assertEqual((specs[0].platform, specs[0].backend, specs[0].priority), ("xla", "any", 1000))
            self.assertTrue(kernel_registry.validate_signatures(name))

    def test_what_was_tuned_runs(self):
        q, k, v = self.qkv(tokens=32)
        result = hone.offline(jax.jit(lambda q: modules.flash_attention(q, k, v)).lower(q), **QUICK)
        modules.flash_attention(q, k, v)
        row, = self.runtime.recorded()
        self.assertEqual((row["call"], row["kernel"], row["answered"]), (result[0].call, result[0].kernel, "memory"))

    def test_a_program_that_ejkernel_tunes_goes_on(self):
        """With ejkernel's own policy, which runs gradients of each candidate."""
        script = ("import hone.ejkernel, jax.numpy as jnp; from ejkernel.modules import flash_attention\n"
                  "hone.ejkernel.register(); hone.default().record(True); q = jnp.ones((1, 16, 2, 8))\n"
                  "print(flash_attention(q, q, q, causal=True).shape, [row['call'] for row in hone.default().recorded()])")
        env = {name: value for name, value in os.environ.items() if name != "EJKERNEL_AUTOTUNE_POLICY"}
        env["PYTHONPATH"] += f":{ROOT / 'build-python' / 'ejkernel-imports'}"
        with tempfile.TemporaryDirectory() as folder:
            env["EJKERNEL_PERSISTENT_CACHE_DIR"] = folder
            out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
        self.assertIn("(1, 16, 2, 8) ['flash_attention(f32[1,16,2,8], f32[1,16,2,8], f32[1,16,2,8], causal=true)']", out.stdout, out.stderr)


@unittest.skipUnless(modules, "ejkernel is not installed: scripts/setup python")
class Exported(HoneTest):
    """What hone tuned for a program of ejkernel's is what ejkernel's executors then load and run with."""

    FILES = {"flash_attention": "flash-attn.json", "scaled_dot_product_attention": "sdpa.json", "attention": "attention.json",
             "mean_pooling": "pooling.json", "rwkv4": "rwkv4.json"}

    @classmethod
    def setUpClass(cls):
        """The program's operations, tuned and in a store; and the program as it runs without."""
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="hone-exported-"))
        cls.addClassCleanup(shutil.rmtree, cls.made)
        with unittest.mock.patch.dict(os.environ, EJKERNEL_OPS_STAMP="hash"):
            lowered = {name: jax.jit(call).lower() for name, call in ejkernel_program.program().items()}
        with hone.Runtime(store=f"sqlite:{cls.made}/store.db") as runtime:
            cls.results = {name: runtime.offline(program, **dict(QUICK, evaluations=4)) for name, program in lowered.items()}
            cls.entries = {name: result.entries[0] for name, result in cls.results.items()}
            cls.documents = {name: result.to_json() for name, result in cls.results.items()}
        del cls.results
        cls.caches = cls.made / "plain"
        cls.plain = cls.run_program(cls)

    def setUp(self):
        super().setUp()
        self.caches = self.folder / "caches"
        shutil.copy(self.made / "store.db", self.folder)

    def command(self, *words, **options):
        env = dict(os.environ, HONE_STORE=self.store)
        return subprocess.run([os.environ["HONE_TEST_COMMAND"], *words], env=env, capture_output=True, text=True, check=True, **options)

    def run_program(self):
        """As it is, with ejkernel's own policy, over the exported files."""
        env = {name: value for name, value in os.environ.items() if name != "EJKERNEL_AUTOTUNE_POLICY"}
        env.update(EJKERNEL_PERSISTENT_CACHE_DIR=str(self.caches), PYTHONPATH=f"{env['PYTHONPATH']}:{sys.path[-1]}")
        made = subprocess.run([sys.executable, "-B", ejkernel_program.__file__], env=env, capture_output=True, text=True)
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        return json.loads(made.stdout)

    def exported(self):
        files = {name: json.loads((self.caches / file).read_text()) for name, file in self.FILES.items()}
        self.assertEqual({len(entries) for entries in files.values()}, {1})
        return {name: entry for name, entries in files.items() for entry in entries.values()}

    def test_its_executors_load_it_and_run_with_it(self):
        self.assertGreater(self.plain["tuned"], 0)
        self.command("store", "export", f"{self.caches}/", "--format", "ejkernel")
        exported = self.exported()
        for name, entry in self.entries.items():
            (key,) = json.loads((self.caches / self.FILES[name]).read_text())
            self.assertEqual(key, f"cpu|cpu|{entry.op_id_v}|{entry.call_key}")
        after = self.run_program()
        self.assertEqual(after["tuned"], 0)
        for name, config in exported.items():
            self.assertEqual((config["platform"], config["backend"]), ("xla", "any"))
            ran = {field: value for field, value in after["ran"][name].items() if value is not None}
            self.assertEqual(ran, {field: value for field, value in config.items() if value is not None})

    def test_block_sizes_that_map_are_those_that_it_runs_with(self):
        blocks = {"flash_attention": {"q_blocksize": 16, "kv_blocksize": 8}, "attention": {"weights_block_q": 32},
                  "scaled_dot_product_attention": {"block_q": 64, "num_warps": 8}, "mean_pooling": {"block_size": 128},
                  "rwkv4": {"block_c": 128}}
        for name, text in self.documents.items():
            document = json.loads(text)
            document["entries"][0].update(kernel="ejkernel_xla", platform="xla", config=dict(blocks[name], of_no_field=3))
            self.command("store", "put", input=json.dumps(document))
        self.command("store", "export", f"{self.caches}/", "--format", "ejkernel")
        ran = self.run_program()
        self.assertEqual(ran["tuned"], 0)
        given = {name: {**config, **(config.get("fwd_params") or {})} for name, config in ran["ran"].items()}
        for name, config in blocks.items():
            self.assertEqual({field: given[name][field] for field in config}, config)
        self.assertNotEqual(ran["programs"]["flash_attention"], self.plain["programs"]["flash_attention"])
        self.assertEqual(ran["programs"]["rwkv4"], self.plain["programs"]["rwkv4"])

    def test_with_hone_registered_what_was_tuned_runs(self):
        self.command("store", "export", f"{self.caches}/", "--format", "ejkernel")
        script = ("import hone, hone.ejkernel, ejkernel_program; hone.ejkernel.register(); hone.default().record(True)\n"
                  "ejkernel_program.program()['flash_attention']()\n"
                  "(row,) = hone.default().recorded(); print(row['call'], row['kernel'], row['answered'])")
        env = {name: value for name, value in os.environ.items() if name != "EJKERNEL_AUTOTUNE_POLICY"}
        env.update(EJKERNEL_PERSISTENT_CACHE_DIR=str(self.caches), PYTHONPATH=f"{env['PYTHONPATH']}:{sys.path[-1]}", HONE_STORE=self.store)
        made = subprocess.run([sys.executable, "-B", "-c", script], env=env, capture_output=True, text=True)
        self.assertIn("flash_attention(f32[1,32,4,16], f32[1,24,2,16], f32[1,24,2,16], causal=true, softmax_scale=0.3) "
                      f"{self.entries['flash_attention'].cfg.kernel} store", made.stdout, made.stderr)

    def test_what_ejkernel_keeps_there_stays(self):
        self.caches.mkdir()
        path = self.caches / "flash-attn.json"
        theirs = {"cpu|cpu|flash_attention@v2|0123456789abcdef": {"platform": "xla", "x": float("nan"), "y": "\u00fc"}}
        path.write_text(json.dumps(theirs))
        self.command("store", "export", f"{self.caches}/", "--format", "ejkernel")
        kept = json.loads(path.read_text())
        self.assertEqual(len(kept), 2)
        self.assertEqual(json.dumps(kept[next(iter(theirs))]), json.dumps(next(iter(theirs.values()))))
        self.command("store", "export", f"{self.caches}/", "--format", "ejkernel")
        self.assertEqual(json.dumps(json.loads(path.read_text())), json.dumps(kept))
        path.write_text("[1]")
        with self.assertRaises(subprocess.CalledProcessError) as refused:
            self.command("store", "export", f"{self.caches}/", "--format", "ejkernel")
        self.assertIn("flash-attn.json", refused.exception.stderr)
        self.assertEqual(path.read_text(), "[1]")


def short(array, dtype=None):
    """An array as hone's call texts have it."""
    dtype = dtype or {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}[str(array.dtype)]
    return f"{dtype}[{','.join(map(str, array.shape))}]"


if __name__ == "__main__":
    unittest.main()
