"""The real torch, on the CPU: its tensors in hone.run, and hone's operations in its programs."""

import functools
import hashlib
import json
import os
import pydoc
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections import Counter

import numpy
import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
import torch.utils.flop_counter
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import hone
import hone.torch
from support import HoneTest, arrays, norm

X, W = arrays()
EXPECTED = torch.from_numpy(norm(X, W))


def tensors():
    return torch.from_numpy(X.copy()), torch.from_numpy(W.copy())


# What kernels.get_local_kernel does behind its choice of a variant: its folder on the path, and an import.
PROGRAM_OF_THE_HUB = """
import pathlib
import sys

import numpy as np
import torch
import hone

sys.path.insert(0, str(pathlib.Path(__file__).parent / "build" / "torch-universal"))
import hub_relu

@hone.algorithm("h_relu(x: f32[n, d]) -> y: f32[n, d]")
def reference(x):
    return np.maximum(x, 0)

@hone.kernel("h_relu", arrays="torch")
def hugging_face(x):
    return hub_relu.relu(x)

x = torch.randn(32, 64)
hone.tune("h_relu", x, seconds=20, evaluations=1, progress=False)
print(hone.decide("h_relu", x).kernel, torch.equal(hone.run("h_relu", x), torch.relu(x)))
"""


class OfAnOlderTorch(torch.Tensor):
    """Tensors that bring no table of C functions, as those of torch before it had one."""

    __dlpack_c_exchange_api__ = None


class Functions(HoneTest):
    def test_functions_over_torch_compete_and_run_inside_of_compiled_programs(self):
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(self.folder)
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before))

        @hone.algorithm("t_gelu(x: T[...]) -> y: T[...] where T in f32, bf16", independent="...")
        def gelu(x):
            assert x.dtype == torch.float64
            return torch.nn.functional.gelu(x)

        @hone.kernel("t_gelu")
        def eager(x):
            return torch.nn.functional.gelu(x)

        @hone.kernel("t_gelu", name="spoiling")
        def spoiling(x):
            y = torch.nn.functional.gelu(x)
            x.zero_()
            return y

        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(64, 32).to(dtype)
            with self.assertRaisesRegex(hone.NotFoundError, "spoiling .*x"):
                hone.tune("t_gelu", x, kernel="spoiling", seconds=20, evaluations=1, progress=False)
            hone.tune("t_gelu", x, kernel="eager", seconds=20, evaluations=1, progress=False)
            self.assertEqual(hone.decide("t_gelu", x).kernel, "eager", hone.explain("t_gelu", x))
            right = torch.nn.functional.gelu(x.double())
            torch.testing.assert_close(hone.run("t_gelu", x).double(), right, rtol=1e-2, atol=1e-2)
            fast = torch.compile(lambda one: hone.torch.ops.t_gelu(one), fullgraph=True, backend="eager")
            torch.testing.assert_close(fast(x).double(), right, rtol=1e-2, atol=1e-2)


    def test_a_variant_of_torch_in_a_folder_of_hugging_faces_is_a_kernel_where_it_is_imported(self):
        folder = self.folder / "build" / "torch-universal" / "hub_relu"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("from . import parts\n\ndef relu(x):\n    return parts.clamped(x)\n")
        (folder / "parts.py").write_text("import torch\n\ndef clamped(x):\n    return torch.clamp(x, min=0)\n")
        (self.folder / "program.py").write_text(PROGRAM_OF_THE_HUB)
        env = {**os.environ, "HONE_STORE": "none", "HONE_COMPILE_CACHE": str(self.folder / "cache")}
        done = subprocess.run([sys.executable, str(self.folder / "program.py")], env=env, capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (0, "hugging_face True\n"), done.stderr)


class Arrays(HoneTest):
    def right(self, y, expected=EXPECTED):
        torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-5)

    def test_tensors_are_taken_as_they_are(self):
        x, w = tensors()
        y = torch.zeros_like(x)
        self.assertIs(hone.run("rms_norm", x, w, y), y)
        self.right(y)
        made = hone.run("rms_norm", x, w)
        self.assertIs(type(made), torch.Tensor)
        self.right(made)
        plan = hone.bind("rms_norm", x, w, y)
        y.zero_()
        plan(x, w, y)
        self.right(y)
        self.right(hone.run("rms_norm", *(one.as_subclass(OfAnOlderTorch) for one in (x, w))))

    def test_a_result_that_is_written_is_another_value_to_what_recorded_it(self):
        x = torch.rand(6, 64)
        for write in (lambda y: hone.run("softmax", x, y), lambda y: hone.bind("softmax", x, y)(x, y)):
            y = torch.rand(6, 64, requires_grad=True) * 1.0
            squared = y * y
            with torch.no_grad():
                write(y)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                squared.sum().backward()

    def test_versions_of_written_tensors_go_up_by_one_and_those_that_have_none_are_taken(self):
        x = torch.rand(6, 64)
        for y in (torch.empty(6, 64), torch.nn.Parameter(torch.empty(6, 64), requires_grad=False), torch.empty(6, 64).as_subclass(OfAnOlderTorch)):
            before = y._version
            hone.run("softmax", x, y)
            hone.bind("softmax", x, y)(x, y)
            self.assertEqual(y._version, before + 2)
        self.assertEqual(hone.run("softmax", x)._version, 0)
        with torch.inference_mode():
            y = torch.zeros(6, 64)
        hone.run("softmax", x, y)  # torch keeps no version of it, and refuses to raise one
        self.right(y, torch.softmax(x.double(), -1))

    def test_a_list_beside_tensors_is_one_of_their_dtype(self):
        made = hone.run("matmul", [[1, 2]], torch.ones(2, 2, dtype=torch.bfloat16))
        self.assertEqual((type(made), made.dtype, made.tolist()), (torch.Tensor, torch.bfloat16, [[3.0, 3.0]]))

    def test_strides_and_parts_are_seen(self):
        x, w = tensors()
        wide = torch.zeros(8, 128)
        wide[:, ::2] = x
        self.right(hone.run("rms_norm", wide[:, ::2], w))
        self.right(hone.run("rms_norm", x.t().contiguous().t(), w))
        self.right(hone.run("rms_norm", x[2:5], w), EXPECTED[2:5])
        self.assertEqual(hone.call("rms_norm", wide[:, ::2], w).text, "rms_norm(f32[8,64]{strides=128,2}, f32[64])")
        self.assertEqual(hone.run("rms_norm", x[:0], w).shape, (0, 64))

    def test_a_parameter_is_taken_where_torch_records_nothing(self):
        x, w = tensors()
        parameter = torch.nn.Parameter(w)
        with torch.no_grad():
            self.right(hone.run("rms_norm", x, parameter))
        with torch.inference_mode():
            self.right(hone.run("rms_norm", x, parameter))
            self.right(hone.run("rms_norm", torch.from_numpy(X), parameter))
        for use in (hone.run, hone.bind, hone.call):
            with self.assertRaisesRegex(TypeError, "weight: got a tensor of torch that requires grad.*detach.*no_grad"):
                use("rms_norm", x, parameter)
        self.right(hone.run("rms_norm", x, parameter.detach()))

    def test_what_requires_grad_later_is_refused_then(self):
        x, w = tensors()
        for _ in range(4):
            hone.run("rms_norm", x, w)
        w.requires_grad_()
        with self.assertRaisesRegex(TypeError, "requires grad"):
            hone.run("rms_norm", x, w)

    def refused(self, x, words):
        for use in (hone.run, hone.bind, hone.call):
            with self.assertRaisesRegex(TypeError, f"x: .*{words}"):
                use("rms_norm", x, torch.from_numpy(W))

    def test_what_is_not_what_it_looks_like_is_refused_by_name(self):
        x, w = tensors()
        with FakeTensorMode():
            fake = torch.empty(8, 64)
        gone = x.clone()
        gone.untyped_storage().resize_(0)
        for tensor, words in (
            (torch._neg_view(x), "negated.*resolve_neg"),
            (torch.complex(x, x).conj().imag, "negated.*resolve_neg"),
            (torch.complex(x, x).conj(), "conjugated.*resolve_conj"),
            (x.to_sparse(), "layout torch.sparse_coo.*to_dense"),
            (x.to_sparse_csr(), "layout torch.sparse_csr.*to_dense"),
            (x.to_mkldnn(), "layout torch._mkldnn.*to_dense"),
            (x.to("meta"), "meta tensor"),
            (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "quantised.*dequantize"),
            (torch.nested.nested_tensor([x, x[:2]]), "nested tensor"),
            (torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged), "got a .*NestedTensor, a tensor"),
            (torch._efficientzerotensor((8, 64)), "stands for zeros"),
            (gone, "storage was given up"),
            (fake, "got a .*FakeTensor, a tensor.*hone.torch.ops"),
        ):
            self.refused(tensor, words)
            self.refused(tensor, words)

    def test_tensors_inside_transformations_are_refused_by_name(self):
        x, w = tensors()

        def inside(tensor):
            self.refused(tensor, "inside torch.func.*hone.torch.ops")
            return tensor.sum()

        torch.func.vmap(inside)(x)
        torch.func.grad(inside)(x)
        torch.func.functionalize(inside)(x)
        torch.func.jvp(inside, (x,), (x,))
        with forward_ad.dual_level():
            self.refused(forward_ad.make_dual(x, x), "dual tensor")
            self.right(hone.run("rms_norm", x, w))

    def test_a_tensor_that_was_taken_is_looked_at_again(self):
        x, w = tensors()
        for _ in range(4):
            hone.run("rms_norm", x, w)
        negated = torch._neg_view(x.clone())
        x.data = negated
        self.refused(x, "negated")
        for _ in range(300):  # objects that take the place of others
            self.refused(torch._neg_view(torch.ones(8, 64)), "negated")
            hone.run("rms_norm", torch.ones(8, 64), w)

    def test_numpy_and_torch_meet_in_one_call(self):
        x, w = tensors()
        self.right(hone.run("rms_norm", x, W))
        made = hone.run("rms_norm", X, w)
        self.assertIsInstance(made, numpy.ndarray)
        self.right(torch.from_numpy(made))


ops = hone.torch.ops


def r(*shape):
    return torch.randn(*shape)


def segments(*shape):
    return torch.randint(0, 2, shape, dtype=torch.int32).sort(-1).values


def eights(*shape):
    return torch.randint(-128, 128, shape, dtype=torch.int8)


# Calls of every algorithm: tensors, scalars, and the dims of the first tensor that may change from call to call.
CALLS = {
    "add_rms_norm": [((r(3, 5, 8), r(3, 5, 8), r(8)), {"eps": 1e-5}), ((r(8, 3).t(), r(3, 8), r(8)), {})],
    "attention": [((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 7)), {}),
                  ((r(2, 6, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 7)), {"causal": True, "softmax_scale": 0.3, "sliding_window": 3})],
    "biased_attention": [
        ((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 7)), {}),
        ((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 7), r(1, 4, 5, 6)), {"softmax_scale": 0.3})],
    "dot_product_attention": [
        ((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 7)), {}),
        ((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 7), r(1, 4, 5, 6), None, segments(2, 5) * 0, segments(2, 6) * 0),
         {"window_left": 3})],
    "flash_attention": [((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 8)), {"logits_soft_cap": 20.0})],
    "scaled_dot_product_attention": [
        ((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 8)), {"axes": "bshd"}),
        ((r(2, 4, 5, 8), r(2, 2, 6, 8), r(2, 2, 6, 8)), {"axes": "bhsd", "softmax_scale": 0.3}),
        ((r(2, 5, 4, 8).transpose(1, 2), r(2, 6, 2, 8).transpose(1, 2), r(2, 6, 2, 8).transpose(1, 2)), {"axes": "bhsd", "causal": True})],
    "gated_linear_unit": [((r(3, 5, 8), r(8, 2, 6)), {"activation": "gelu"}), ((r(3, 8), r(8, 2, 6)), {})],
    "layer_norm": [((r(3, 5, 8),), {}), ((r(3, 8), r(8), r(8).bfloat16()), {"subtract_mean": False, "weight_offset": 1.0})],
    "matmul": [((r(3, 5), r(5, 4)), {}), ((r(3, 5).bfloat16(), r(4, 5).bfloat16()), {"transpose_b": True}),
               ((r(3, 5), r(5, 4), r(4), r(3, 4)), {"activation": "silu"})],
    "mean_pooling": [((r(2, 64, 8),), {"chunk_size": 16})],
    "reduction": [((r(3, 5),), {})],
    "rms_norm": [((r(3, 5, 8), r(8)), {"eps": 1e-5}), ((r(8, 3).t(), r(8)), {})],
    "rms_norm_vjp": [((r(3, 5, 8), r(8), r(3, 5, 8)), {"eps": 1e-5})],
    "add_rms_norm_vjp": [((r(3, 8), r(8), r(3, 8), r(3, 8)), {})],
    "layer_norm_vjp": [((r(3, 5, 8), r(3, 5, 8)), {}), ((r(3, 8), r(3, 8), r(8).bfloat16()), {"subtract_mean": False})],
    "softmax_vjp": [((r(3, 8).softmax(-1), r(3, 8)), {"scale": 0.5})],
    "rope_vjp": [((r(2, 5, 3, 8), r(5, 4), r(5, 4)), {"interleaved": True})],
    "flash_attention_vjp": [((r(2, 5, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 8), r(2, 5, 4, 8)), {"causal": True})],
    "rope": [((r(2, 5, 3, 8), r(5, 4), r(5, 4)), {}), ((r(5, 3, 8).bfloat16(), r(5, 3), r(5, 3)), {"interleaved": True}),
             ((r(2, 3, 5, 8).transpose(1, 2), r(5, 4), r(5, 4)), {})],
    "rwkv4": [((r(8).abs(), r(8), r(2, 5, 8), r(2, 5, 8)), {}),
              ((r(8).abs(), r(8), r(2, 5, 8), r(2, 5, 8), r(2, 3, 8)), {})],
    "scaled_matmul": [((eights(3, 5), eights(5, 4), r(3).abs(), r(4).abs(), r(4)), {}),
                      ((eights(3, 5), eights(4, 5), r(1).abs().expand(3), r(4).abs(), r(4).bfloat16()), {"transpose_b": True})],
    "silu_mul": [((r(3, 8), r(3, 8)), {})],
    "silu_mul_vjp": [((r(3, 8), r(3, 8), r(3, 8)), {})],
    "softmax": [((r(3, 8),), {"scale": 0.5})],
    "stencil": [((r(3, 4, 5), r(7)), {})],
}


def tuple_of(results):
    return results if isinstance(results, tuple) else (results,)


class Operations(HoneTest):
    def calls(self):
        return [(name, getattr(ops, name), args, scalars) for name, calls in CALLS.items() for args, scalars in calls]

    def same(self, ours, theirs, **tolerance):
        for one, other in zip(tuple_of(ours), tuple_of(theirs), strict=True):
            self.assertEqual((one.dtype, one.shape, one.stride()), (other.dtype, other.shape, other.stride()))
            torch.testing.assert_close(one, other, **tolerance)

    def results(self, name):
        return [row["name"] for row in hone.default().operation(name).parameters if row["is_result"]]

    def test_every_algorithm_is_one(self):
        self.assertEqual(sorted(CALLS), hone.default().algorithms(), "CALLS is to have calls of every algorithm")
        self.assertLessEqual(set(CALLS), set(dir(ops)))
        for name, op, args, scalars in self.calls():
            self.assertIs(op, getattr(torch.ops.hone, name))
            made = op(*args, **scalars)
            # What hone takes by name alone stands behind the others in torch's operation.
            rows = [row for row in hone.default().operation(name).parameters if not row["is_result"]]
            place = sum(not row["keyword_only"] for row in rows)
            named = [row["name"] for row in rows if row["keyword_only"] and row["kind"] == "tensor"]
            self.same(made, hone.run(name, *args[:place], **dict(zip(named, args[place:])), **scalars))
            given = [torch.full_like(one, torch.nan) for one in tuple_of(made)]
            before = [one._version for one in given]
            self.assertIsNone(op(*args, **scalars, **dict(zip(self.results(name), given))))
            self.same(tuple(given), made if isinstance(made, tuple) else (made,))
            self.assertTrue(all(one._version > version for one, version in zip(given, before)))

    def test_help_says_shapes_and_dtypes(self):
        self.assertIn("rms_norm(x: T[..., dim], weight: T[dim]", hone.torch.ops.rms_norm.__doc__)
        self.assertIn("where T in f16, bf16, f32, f64", pydoc.render_doc(hone.torch.ops.rms_norm))

    def test_opcheck_finds_nothing(self):
        for name, op, args, scalars in self.calls():
            made = tuple_of(op(*args, **scalars))
            for overload, more in ((op.default, {}), (op.out, dict(zip(self.results(name), map(torch.empty_like, made))))):
                found = torch.library.opcheck(overload, args, {**scalars, **more})
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_tensors_of_any_layout_are_what_plain_ones_are_and_are_traced_as_they_run(self):
        def each(change, least=1):
            return lambda args: tuple(change(one) if isinstance(one, torch.Tensor) and one.dim() >= least else one for one in args)

        layouts = {
            "gaps": each(lambda one: one.repeat_interleave(2, -1)[..., ::2]),
            "turned": each(lambda one: one.transpose(-1, -2).contiguous().transpose(-1, -2), 2),
            "channels last": each(lambda one: one.to(memory_format=torch.channels_last) if one.dim() == 4 else one),
            "an element further": each(lambda one: torch.cat([one.flatten()[:1], one.flatten()])[1:].view(one.shape)),
            "expanded": each(lambda one: one[:1].expand(one.shape), 2),
            "nothing": each(lambda one: one[:0], 2),
        }
        ran = Counter()
        for name, calls in CALLS.items():
            (args, scalars), op = calls[0], getattr(ops, name)
            for layout, change in layouts.items():
                given = change(args)
                with self.subTest(name, layout=layout):
                    try:
                        expected = op(*each(lambda one: one.contiguous().clone())(given), **scalars)
                    except hone.InvalidArgumentError:  # nothing is no call of each
                        self.assertRaises(hone.InvalidArgumentError, op, *given, **scalars)
                        continue
                    self.same(op(*given, **scalars), expected, rtol=1e-4, atol=1e-5)
                    found = torch.library.opcheck(op.default, given, scalars, test_utils=("test_schema", "test_faketensor"))
                    self.assertEqual(set(found.values()), {"SUCCESS"})
                    ran[layout] += 1
        self.assertGreater(min(ran.values()), 15, ran)

    def test_opcheck_compares_no_8_bit_floats(self):
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            args = r(3, 5).to(dtype), r(5, 4).to(dtype), r(3).abs(), r(4).abs(), r(4)
            with self.subTest(dtype=dtype):
                found = torch.library.opcheck(ops.scaled_matmul.default, args, raise_exception=False)
                failure = found.pop("test_schema")
                self.assertIsInstance(failure, NotImplementedError)  # torch's own: once it compares them, the page and this test go
                self.assertIn("Float8", str(failure))
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_under_a_causal_mask_query_i_sees_the_keys_0_to_i(self):
        for queries, keys in ((3, 7), (7, 3), (1, 5), (40, 33)):
            q, k, v = r(2, queries, 4, 16), r(2, keys, 4, 16), r(2, keys, 4, 16)
            seen = torch.arange(keys) <= torch.arange(queries)[:, None]
            logits = torch.einsum("bqhd,bkhd->bhqk", q, k) / 4
            expected = torch.einsum("bhqk,bkhd->bqhd", logits.masked_fill(~seen, -torch.inf).softmax(-1), v)
            for name, more in (("flash_attention", {}), ("attention", {}), ("scaled_dot_product_attention", {"axes": "bshd"}),
                               ("dot_product_attention", {}), ("biased_attention", {})):
                with self.subTest(name, queries=queries, keys=keys):
                    made = tuple_of(getattr(ops, name)(q, k, v, causal=True, **more))[0]
                    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)

    def compiled(self, name, op, args, scalars, **options):
        torch._dynamo.reset()
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

        function = torch.compile(lambda *given: op(*given, **scalars), fullgraph=True, backend=backend, **options)
        self.same(function(*args), op(*args, **scalars))
        called = [node.target for node in graphs[-1].graph.nodes if node.op == "call_function"]
        self.assertIn(op, {getattr(target, "overloadpacket", target) for target in called})
        self.assertFalse(torch._dynamo.utils.counters["graph_break"])
        return function, graphs

    def test_a_compiled_function_is_one_graph(self):
        for call in self.calls():
            self.compiled(*call)
            self.compiled(*call, dynamic=True)

    def test_results_that_are_given_are_written_in_a_compiled_function(self):
        for name, op, args, scalars in self.calls():
            made, names = tuple_of(op(*args, **scalars)), self.results(name)

            torch._dynamo.reset()

            def write(*given, op=op, args=args, scalars=scalars, names=names):
                op(*args, **scalars, **dict(zip(names, given)))
                return given[0] + 1

            given = [torch.full(one.shape, torch.nan, dtype=one.dtype) for one in made]  # dynamo takes no `out` with gaps
            sums = torch.compile(write, fullgraph=True, backend="aot_eager")(*given)
            for one, other in zip(given, made):
                torch.testing.assert_close(one, other)
            torch.testing.assert_close(sums, made[0] + 1)

    def test_sizes_that_change_need_no_second_graph(self):
        for name, first, second in (
            ("rms_norm", (r(5, 8), r(8)), (r(7, 8), r(8))),
            ("matmul", (r(3, 5), r(5, 4)), (r(6, 7), r(7, 9))),
            ("flash_attention", (r(3, 5, 4, 8), r(3, 6, 2, 8), r(3, 6, 2, 8)), (r(7, 9, 4, 8), r(7, 11, 2, 8), r(7, 11, 2, 8))),
            ("attention", (r(3, 5, 4, 8), r(3, 6, 2, 8), r(3, 6, 2, 7)), (r(9, 10, 4, 8), r(9, 11, 2, 8), r(9, 11, 2, 7))),
            ("reduction", (r(3, 5),), (r(9, 6),)),
        ):
            with self.subTest(name):
                function, graphs = self.compiled(name, getattr(ops, name), first, {}, dynamic=True)
                made = len(graphs)
                self.same(function(*second), getattr(ops, name)(*second))
                self.assertEqual(len(graphs), made)

    def test_inductor_runs_it(self):
        def block(x, w, up):
            h = ops.rms_norm(x * 2, w, eps=1e-5)
            return ops.silu_mul(h, ops.matmul(h, up)).sum(-1)

        given = r(6, 8), r(8), r(8, 8)
        for options in ({"dynamic": True}, {"mode": "reduce-overhead"}):
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(block, fullgraph=True, **options)(*given), block(*given))

    def test_it_is_exported_and_read_by_another_process(self):
        class Block(torch.nn.Module):
            def forward(self, x, w):
                return ops.rms_norm(x, w, eps=1e-5) + 1

        rows = torch.export.Dim("rows", min=2, max=64)
        for shapes in (None, ({0: rows}, {})):
            program = torch.export.export(Block(), (r(4, 8), r(8)), dynamic_shapes=shapes)
            targets = [node.target for node in program.graph.nodes]
            self.assertIn(torch.ops.hone.rms_norm.default, targets)
            path = os.path.join(tempfile.mkdtemp(dir=self.folder), "block.pt2")
            torch.export.save(program, path)
            rows_given = 4 if shapes is None else 9
            code = (f"import torch, hone.torch\nx = torch.ones({rows_given}, 8)\n"
                    f"print(float(torch.export.load({path!r}).module()(x, torch.ones(8)).sum()))")
            out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True).stdout
            self.assertAlmostEqual(float(out), rows_given * 16, places=2)

    def test_a_call_of_known_sizes_is_decided_when_it_is_traced(self):
        class Norm(torch.nn.Module):
            def forward(self, x, w):
                return ops.rms_norm(x, w)

        asked = []
        with hone.context(links={"store": lambda call: asked.append(call.text)}):
            torch.export.export(Norm(), (r(6, 24), r(24)))
            self.assertEqual(set(asked), {"rms_norm(f32[6,24], f32[24])"})
            asked.clear()
            torch.export.export(Norm(), (r(24, 6).t(), r(24)))
            self.assertEqual(set(asked), {"rms_norm(f32[6,24]{strides=1,6}, f32[24])"})
            asked.clear()
            torch.export.export(Norm(), (r(6, 24), r(24)), dynamic_shapes=({0: torch.export.Dim("rows")}, {}))
            self.assertEqual(asked, [])

    def test_a_context_of_the_moment_holds_in_a_compiled_function(self):
        function = torch.compile(lambda x, w: ops.rms_norm(x, w), fullgraph=True, backend="aot_eager")
        x, w = r(6, 40), r(40)
        function(x, w)
        asked = []
        with hone.context(links={"store": lambda call: asked.append(call.text)}):
            function(x, w)
        self.assertEqual(asked, ["rms_norm(f32[6,40], f32[40])"])

    def test_products_of_all_shapes_and_dtypes_are_torchs(self):
        shapes = [((6,), (6,)), ((6,), (6, 4)), ((5, 6), (6,)), ((5, 6), (6, 4)), ((2, 3, 5, 6), (6, 4)), ((2, 5, 6), (6,)),
                  ((2, 3, 5, 6), (3, 6, 4)), ((6,), (2, 6, 4)), ((0, 6), (6, 4)), ((2, 5, 6), (2, 6, 4)), ((2, 1, 5, 6), (3, 6, 4)), ((5, 6), (2, 6, 4)), ((2, 0, 5, 6), (2, 0, 6, 4))]
        compiled = torch.compile(hone.torch.matmul, fullgraph=True, dynamic=True)
        for left, right in shapes:
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                a, b = torch.rand(left, dtype=dtype), torch.rand(right, dtype=dtype)
                expected = torch.matmul(a, b)
                is_compiled = dtype == torch.float32 and left in ((2, 3, 5, 6), (2, 1, 5, 6))
                for product in (hone.torch.matmul, compiled) if is_compiled else (hone.torch.matmul,):
                    with self.subTest(left=left, right=right, dtype=dtype, compiled=product is compiled):
                        made = product(a, b)
                        self.assertEqual((made.shape, made.dtype), (expected.shape, expected.dtype))
                        torch.testing.assert_close(made, expected, **{torch.float32: {"rtol": 1e-5, "atol": 1e-5}, torch.float64: {"rtol": 1e-13, "atol": 1e-13},
                                                                        torch.bfloat16: {"rtol": 2e-2, "atol": 1e-5}}[dtype])
        asked = []
        with hone.context(links={"store": lambda call: asked.append(call.text)}):
            hone.torch.matmul(torch.rand(2, 1, 5, 6), torch.rand(3, 6, 4))
        self.assertEqual(asked, ["matmul(f32[2,3,5,6]{strides=30,0,6,1}, f32[2,3,6,4]{strides=0,24,4,1})"])
        for a, b in ((torch.rand(2, 3), torch.rand(4, 2)), (torch.tensor(1.0), torch.rand(2, 2))):
            with self.assertRaises((RuntimeError, hone.InvalidArgumentError)):
                hone.torch.matmul(a, b)

    def test_products_whose_sums_are_of_nothing_are_zeros(self):
        compiled = torch.compile(lambda a, b: hone.torch.matmul(a, b), fullgraph=True, backend="aot_eager")
        for left, right in (((2, 0), (0, 3)), ((0,), (0,)), ((0, 0), (0, 3)), ((3, 0), (0,)), ((0,), (0, 3)), ((2, 3, 0), (0, 4)), ((2, 3, 0), (0,)),
                            ((0, 2, 0), (0, 3)), ((2, 2, 0), (2, 0, 3)), ((0,), (2, 0, 3))):
            for product in (hone.torch.matmul, compiled) if left == (2, 3, 0) else (hone.torch.matmul,):
                with self.subTest(left=left, right=right, compiled=product is compiled):
                    a, b = torch.empty(left, requires_grad=True), torch.empty(right, requires_grad=True)
                    made = product(a, b)
                    self.assertEqual(made.tolist(), torch.matmul(a, b).tolist())
                    made.sum().backward()
                    self.assertEqual((a.grad.shape, b.grad.shape), (left, right))

    def test_a_wrong_call_is_refused_in_hones_words(self):
        for function in (ops.matmul, torch.compile(lambda a, b: ops.matmul(a, b), backend="aot_eager")):
            torch._dynamo.reset()
            with self.assertRaisesRegex(Exception, r"matmul: b\[0\] is 4 but k is 3"):
                function(r(2, 3), r(4, 5))
        graphs = []
        function = torch.compile(lambda a, b: ops.matmul(a, b), dynamic=True, backend=lambda *graph: graphs.append(graph))
        with self.assertRaisesRegex(Exception, r"matmul: b\[0\] is .* but k is"):
            function(r(2, 3), r(4, 5))
        self.assertEqual(graphs, [])
        with FakeTensorMode(), self.assertRaisesRegex(hone.InvalidArgumentError, r"b\[0\] is 4 but k is 3"):
            ops.matmul(torch.empty(2, 3), torch.empty(4, 5))
        with self.assertRaisesRegex(Exception, "hone::scaled_dot_product_attention.*missing value for argument 'axes'"):
            ops.scaled_dot_product_attention(*CALLS["scaled_dot_product_attention"][0][0])
        with self.assertRaisesRegex(AttributeError, "hone.torch.ops has no 'nothing'"):
            ops.nothing


class Gradients(HoneTest):
    def test_a_registered_gradient_is_torchs(self):
        gate, up = (r(3, 8).requires_grad_() for _ in range(2))
        self.assertTrue(torch.autograd.gradcheck(ops.silu_mul, (gate, up), eps=1e-2, atol=1e-2, rtol=1e-2))
        for function in (ops.silu_mul, torch.compile(lambda g, u: ops.silu_mul(g, u), fullgraph=True, backend="aot_eager")):
            ours = torch.autograd.grad(function(gate, up).sin().sum(), (gate, up))
            theirs = torch.autograd.grad((torch.nn.functional.silu(gate) * up).sin().sum(), (gate, up))
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
            one, = torch.autograd.grad(function(gate.detach(), up).sum(), (up,))
            torch.testing.assert_close(one, torch.nn.functional.silu(gate).detach())
        inside = torch.func.grad(lambda g, u: ops.silu_mul(g, u).sum(), argnums=(0, 1))(gate.detach(), up.detach())
        torch.testing.assert_close(inside, torch.autograd.grad((torch.nn.functional.silu(gate) * up).sum(), (gate, up)))
        mapped = torch.func.vmap(torch.func.grad(lambda g, u: ops.silu_mul(g, u).sum()))(gate.detach(), up.detach())
        torch.testing.assert_close(mapped, inside[0])
        found = torch.library.opcheck(ops.silu_mul.default, (gate, up))
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def differentiated(self):
        """An operation with its tensors, those that have a gradient, and its scalars, and what it does in torch."""
        def norm(x, w, eps=1e-6):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w

        def attention(q, k, v, **scalars):
            q, k, v = (one.transpose(1, 2) for one in (q, k, v))
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)

        def rope(x, cos, sin):
            a, b = x.chunk(2, -1)
            return torch.cat([a * cos[:, None] - b * sin[:, None], b * cos[:, None] + a * sin[:, None]], -1)

        return [
            (ops.softmax, (r(3, 8),), 1, {}, lambda x: x.softmax(-1)),
            (ops.softmax, (r(3, 8),), 1, {"scale": 0.5}, lambda x, scale: (x * scale).softmax(-1)),
            (ops.rms_norm, (r(3, 5, 24), r(24)), 2, {}, norm),
            (ops.add_rms_norm, (r(3, 24), r(3, 24), r(24)), 3, {}, lambda x, y, w: (x + y, norm(x + y, w))),
            (ops.layer_norm, (r(3, 5, 24), r(24), r(24)), 3, {}, lambda x, w, b: torch.nn.functional.layer_norm(x, (24,), w, b, 1e-6)),
            (ops.layer_norm, (r(3, 24),), 1, {}, lambda x: torch.nn.functional.layer_norm(x, (24,), eps=1e-6)),
            (ops.silu_mul, (r(3, 8), r(3, 8)), 2, {}, lambda x, y: torch.nn.functional.silu(x) * y),
            (ops.rope, (r(2, 5, 3, 8), r(5, 4), r(5, 4)), 1, {}, rope),
            (ops.matmul, (r(3, 5), r(5, 4)), 2, {}, torch.mm),
            (ops.matmul, (r(3, 5), r(4, 5)), 2, {"transpose_b": True}, lambda a, b, transpose_b: a @ b.t()),
            (ops.matmul, (r(2, 3, 5), r(2, 5, 4)), 2, {}, torch.bmm),
            (ops.matmul, (r(2, 1, 3, 5), r(2, 1, 4, 5)), 2, {"transpose_b": True}, lambda a, b, transpose_b: a @ b.mT),
            (ops.flash_attention, (r(2, 6, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 8)), 3, {"causal": True}, attention),
            (ops.scaled_dot_product_attention, (r(2, 6, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 8)), 3, {"causal": True, "axes": "bshd"}, attention),
            (ops.scaled_dot_product_attention, (r(2, 4, 6, 8), r(2, 2, 6, 8), r(2, 2, 6, 8)), 3, {"causal": True, "axes": "bhsd"},
             lambda *qkv, **scalars: attention(*(one.transpose(1, 2) for one in qkv)).transpose(1, 2)),
        ]

    def test_each_is_torchs(self):
        for op, args, count, scalars, plain in self.differentiated():
            with self.subTest(op=str(op), scalars=scalars):
                args = [one.detach().requires_grad_(i < count) for i, one in enumerate(args)]

                def loss(made):
                    return sum((one * torch.linspace(-1, 1, one.numel()).view_as(one)).sum() for one in tuple_of(made))

                theirs = torch.autograd.grad(loss(plain(*args, **scalars)), args[:count])
                torch._dynamo.reset()
                for function in (op, torch.compile(lambda *one: op(*one, **scalars), fullgraph=True, backend="aot_eager")):
                    ours = torch.autograd.grad(loss(function(*args, **({} if function is not op else scalars))), args[:count])
                    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5)
                inside = torch.func.grad(lambda *one: loss(op(*one, **scalars)), argnums=tuple(range(count)))(*(one.detach() for one in args))
                torch.testing.assert_close(inside, theirs, rtol=1e-4, atol=2e-5)
                found = torch.library.opcheck(op.default, args, scalars)
                self.assertEqual(set(found.values()), {"SUCCESS"})
                self.assertTrue(torch.autograd.gradcheck(lambda *one: op(*one, **scalars), args, eps=1e-2, atol=2e-2, rtol=2e-2))

    def test_gradcheck_finds_nothing_in_float64(self):
        def w(*shape):
            return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

        cos, sin = torch.rand(2, 5, 4, dtype=torch.float64)
        cases = (
            (lambda x, weight: ops.rms_norm(x, weight, eps=1e-5), w(3, 8), w(8)),
            (lambda x, residual, weight: ops.add_rms_norm(x, residual, weight), w(3, 8), w(3, 8), w(8)),
            (lambda x, weight, bias: ops.layer_norm(x, weight, bias, weight_offset=1.0), w(2, 3, 8), w(8), w(8)),
            (lambda x: ops.layer_norm(x, subtract_mean=False), w(3, 8)),
            (lambda x: ops.softmax(x, scale=0.5), w(3, 8)),
            (ops.silu_mul, w(3, 8), w(3, 8)),
            (lambda x: ops.rope(x, cos, sin), w(2, 5, 3, 8)),
            (lambda x: ops.rope(x, cos, sin, interleaved=True), w(2, 5, 3, 8)),
            (ops.matmul, w(3, 5), w(5, 4), w(4), w(3, 4)),
            (lambda a, b: ops.matmul(a, b, transpose_b=True), w(2, 3, 5), w(2, 4, 5)),
            (lambda q, k, v: ops.flash_attention(q, k, v, causal=True, logits_soft_cap=5.0, sliding_window=3), w(1, 5, 4, 3), w(1, 6, 2, 3), w(1, 6, 2, 3)),
            (lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, axes="bhsd"), w(1, 4, 5, 3), w(1, 2, 6, 3), w(1, 2, 6, 3)))
        for function, *tensors in cases:
            self.assertTrue(torch.autograd.gradcheck(function, tensors, rtol=1e-6, atol=1e-8))
        x, weight, bias = w(300, 8), w(8), w(8)
        made = torch.autograd.grad(ops.layer_norm(x, weight, bias, eps=1e-5).square().sum(), (x, weight, bias))
        own = torch.autograd.grad(F.layer_norm(x, (8,), weight, bias, eps=1e-5).square().sum(), (x, weight, bias))
        for one, other in zip(made, own):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)

    def test_16_bit_floats_have_gradients_of_their_dtype(self):
        for op, args, count, scalars, plain in self.differentiated():
            for dtype, allowed in ((torch.bfloat16, 2e-2), (torch.float16, 3e-3)):
                low = [one.detach().to(dtype).requires_grad_(i < count) for i, one in enumerate(args)]
                exact = [one.detach().float().requires_grad_(i < count) for i, one in enumerate(low)]
                ours = torch.autograd.grad(sum(one.float().sum() for one in tuple_of(op(*low, **scalars))[:1]), low[:count], allow_unused=True)
                theirs = torch.autograd.grad(sum(one.sum() for one in tuple_of(plain(*exact, **scalars))[:1]), exact[:count], allow_unused=True)
                for one, other in zip(ours, theirs):
                    if other is None:  # of a result that nobody used
                        other = torch.zeros_like(one, dtype=torch.float32)
                    with self.subTest(op=str(op), dtype=dtype):
                        self.assertEqual(one.dtype, dtype)
                        torch.testing.assert_close(one.float(), other, rtol=allowed, atol=allowed * max(1.0, float(other.abs().max())))

    def test_a_product_is_differentiated_of_what_asks_for_it(self):
        seen = []

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), keywords=None):
                seen.append(function)
                return function(*args, **(keywords or {}))

        a, b = r(3, 5), r(5, 4)
        for asked in ((a,), (b,), (a, b)):
            for one in (a, b):
                one.requires_grad_(any(one is other for other in asked))
            c = ops.matmul(a, b).sum()
            seen.clear()
            with Mode():
                ours = torch.autograd.grad(c, asked)
            self.assertEqual(seen.count(ops.matmul.default), len(asked))
            torch.testing.assert_close(ours, torch.autograd.grad((a @ b).sum(), asked), rtol=1e-4, atol=1e-5)

    def test_what_follows_a_product_is_a_part_of_its_call(self):
        a, b, bias, residual = r(6, 8), r(5, 8), r(5), r(6, 5)
        forms = {"relu": F.relu, "silu": F.silu, "gelu_erf": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), None: lambda x: x}
        for activation, form in forms.items():
            ours = ops.matmul(a, b, transpose_b=True, bias=bias, activation=activation, residual=residual)
            torch.testing.assert_close(ours, form(F.linear(a, b, bias)) + residual, rtol=1e-4, atol=1e-5)
        self.assertTrue(torch.equal(ops.matmul(a, b, bias, residual, transpose_b=True), ours))
        asked = [one.requires_grad_() for one in (a, b, bias, residual)]
        ours = torch.autograd.grad(ops.matmul(a, b, bias, residual, transpose_b=True).square().sum(), asked)
        torch.testing.assert_close(ours, torch.autograd.grad((F.linear(a, b, bias) + residual).square().sum(), asked), rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(RuntimeError, "hone::matmul has no gradient with activation, bias"):
            ops.matmul(a, b, bias, transpose_b=True, activation="relu").sum().backward()
        with self.assertRaisesRegex(hone.NotFoundError, "activation is 'gelu', expected relu, gelu_tanh, gelu_erf or silu"):
            ops.matmul(a.detach(), b.detach(), transpose_b=True, activation="gelu")

    def test_what_is_taken_for_a_constant_is_refused_by_name(self):
        x, cos, sin = r(5, 3, 8).requires_grad_(), r(5, 4).requires_grad_(), r(5, 4)
        with self.assertRaisesRegex(RuntimeError, "hone::rope has no gradient by cos: rope_vjp gives none, .*detached"):
            ops.rope(x, cos, sin).sum().backward()
        ops.rope(x, cos.detach(), sin).sum().backward()

    def test_what_has_none_says_what_is_missing(self):
        x, w = r(3, 8).requires_grad_(), r(8)
        y = ops.reduction(x)
        self.assertTrue(y.requires_grad)
        with self.assertRaisesRegex(RuntimeError, "hone::reduction has no gradient: hone has no algorithm named reduction_vjp"):
            y.sum().backward()
        q = r(1, 3, 2, 8).requires_grad_()
        once, = torch.autograd.grad(ops.flash_attention(q, q, q).sum(), (q,), create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "no algorithm named flash_attention_vjp_vjp"):
            once.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "with results given it has no gradient"):
            ops.rms_norm(x, w, y=torch.empty(3, 8))
        with self.assertRaisesRegex((RuntimeError, NotImplementedError), "jvp|forward"):
            torch.func.jvp(lambda x: ops.silu_mul(x, x), (r(3, 8),), (r(3, 8),))
        with forward_ad.dual_level(), self.assertRaisesRegex((RuntimeError, NotImplementedError), "jvp|forward"):
            ops.silu_mul(forward_ad.make_dual(r(3, 8), r(3, 8)), r(3, 8))

    def test_where_nothing_is_recorded_nothing_is_asked_of_a_gradient(self):
        x, w = r(3, 8), torch.nn.Parameter(r(8))
        with torch.no_grad():
            self.assertFalse(ops.rms_norm(x, w).requires_grad)
        with torch.inference_mode():
            y = ops.rms_norm(x, w)
            self.assertTrue(y.is_inference())
            ops.rms_norm(x, w, y=y)
        self.assertFalse(ops.rms_norm(x, w.detach()).requires_grad)

    def test_tensors_that_are_not_dense_are_refused_by_hone(self):
        x, w = r(4, 8), r(8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what torch plans for these
            given = {"layout torch.sparse_coo": x.to_sparse(), "layout torch.sparse_csr": x.to_sparse_csr(), "layout torch._mkldnn": x.to_mkldnn(),
                     "quantised": torch.quantize_per_tensor(x, 0.1, 0, torch.quint8), "nested": torch.nested.nested_tensor([x, x])}
        for words, tensor in given.items():
            for name, run in {"x": lambda: ops.rms_norm(tensor, w), "y": lambda: ops.rms_norm(x, w, y=tensor)}.items():
                with self.subTest(words), self.assertRaisesRegex(TypeError, f"rms_norm: {name}: got a .*{words}.*: give "):
                    run()

    def test_tensors_of_several_devices_are_refused_where_one_is_on_meta(self):
        x, w = r(4, 8), r(8)
        for run in (lambda: ops.rms_norm(x, w.to("meta")), lambda: ops.rms_norm(x.to("meta"), w), lambda: ops.rms_norm(x, w, y=x.to("meta")),
                    lambda: ops.rms_norm(x, w.to("meta"), y=torch.empty(4, 8))):
            with self.assertRaisesRegex(hone.InvalidArgumentError, "rms_norm: x is on (cpu|meta) and (weight|y) on (cpu|meta), expected one device"):
                run()
        self.assertTrue(ops.rms_norm(x.to("meta"), w.to("meta")).is_meta)

    def test_modes_of_torch_see_it(self):
        seen = []

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), keywords=None):
                seen.append(function)
                return function(*args, **(keywords or {}))

        x, w, y = r(3, 8), r(8), torch.empty(3, 8)
        before = y._version
        with Mode():
            made = ops.rms_norm(x, w)
            ops.rms_norm(x, w, y=y)
        self.assertEqual([one for one in seen if one.namespace == "hone"], [ops.rms_norm.default, ops.rms_norm.out])
        self.assertTrue(torch.equal(made, y))
        self.assertGreater(y._version, before)

    def test_what_is_written_is_known_to_what_was_recorded(self):
        y = torch.ones(3, 8)
        recorded = (r(3, 8).requires_grad_() * y).sum()
        ops.rms_norm(r(3, 8), r(8), y=y)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            recorded.backward()


class Transformed(HoneTest):
    def test_vmap_asks_the_reference_whether_parts_are_independent(self):
        """Else one call after the other is right, and who says otherwise is warned once. Within a compiled program, too."""
        x = r(3, 4, 5)

        @hone.algorithm("t_less_mean(x: f32[n, d], *, by: f64 = 1) -> y: f32[n, d]", independent="n")
        def reference(x, by):
            return by * (x - x.mean(0, keepdims=True))

        @hone.kernel("t_less_mean")
        def eager(x, by):
            return (by * (x - x.mean(0, keepdims=True))).astype("float32")

        for by, wrap in ((1.0, lambda mapped: mapped), (2.0, torch.compile)):
            mapped = wrap(torch.func.vmap(lambda x: ops.t_less_mean(x, by=by)))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                for _ in range(2):
                    torch.testing.assert_close(mapped(x), by * (x - x.mean(1, keepdim=True)))
            told = [str(one.message) for one in told if "vmap makes" in str(one.message)]
            self.assertEqual(len(told), 1, told)
            self.assertRegex(told[0], "^vmap makes a call for each element of the batch: independent = 'n' is not true of t_less_mean")

    def test_batches_of_cotangents_are_those_one_by_one(self):
        """torch.autograd.grad(is_grads_batched=True) maps the backward pass by a vmap of its own, which knows fewer functions."""
        x, w, bias = r(3, 4), r(4, 5).requires_grad_(), r(5).requires_grad_()

        def product(x, w, bias):
            return ops.softmax(ops.matmul(x, w, bias))

        ours = torch.autograd.functional.jacobian(product, (x, w, bias), vectorize=True)
        theirs = torch.autograd.functional.jacobian(lambda x, w, bias: (x @ w + bias).softmax(-1), (x, w, bias))
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_transforms_within_others_record_what_these_ask_for(self):
        func, x, w = torch.func, r(3, 4), r(4, 5)

        def value(product):
            return lambda x, w: product(x, w).square().sum()

        def nested(product):
            of = value(product)
            return [func.grad(lambda x: func.grad(of)(x, w).square().sum())(x),
                    func.jacrev(func.grad(of))(x, w),
                    func.hessian(of)(x, w) if product is torch.matmul else func.jacrev(func.jacrev(of))(x, w),
                    func.grad(lambda w: func.vjp(lambda x: product(x, w), x)[0].square().sum())(w),
                    func.grad(lambda w: func.vmap(func.grad(of), (0, None))(x[:, None], w).square().sum())(w)]

        for ours, theirs in zip(nested(ops.matmul), nested(torch.matmul), strict=True):
            self.assertGreater(float(theirs.abs().max()), 0)
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
        # A step of a step, as training of a few steps is trained.
        trained = w.clone().requires_grad_()
        moved = trained - 0.1 * func.grad(lambda w: value(ops.matmul)(x, w))(trained)
        value(ops.matmul)(x, moved).backward()
        other = w.clone().requires_grad_()
        moved = other - 0.1 * func.grad(lambda w: value(torch.matmul)(x, w))(other)
        value(torch.matmul)(x, moved).backward()
        torch.testing.assert_close(trained.grad, other.grad, rtol=1e-3, atol=1e-2)

    def test_second_derivatives_of_rows_are_torchs_also_within_others(self):
        x, w, func = r(3, 8), r(8), torch.func

        def by_hand(x, w):  # the third derivative of F.layer_norm is wrong in torch 2.15
            centred = x - x.mean(-1, keepdim=True)
            return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * w + w

        pairs = ((lambda x, w: ops.softmax(x, scale=0.5), lambda x, w: (0.5 * x).softmax(-1)),
                 (lambda x, w: ops.silu_mul(x, x * w), lambda x, w: F.silu(x) * (x * w)),
                 (lambda x, w: ops.rms_norm(x, w), lambda x, w: F.rms_norm(x, (8,), w, 1e-6)),
                 (lambda x, w: sum(ops.add_rms_norm(x, x * x, w)), lambda x, w: x + x * x + F.rms_norm(x + x * x, (8,), w, 1e-6)),
                 (lambda x, w: ops.layer_norm(x, w, w, eps=1e-5), by_hand))
        transforms = (lambda f: func.grad(lambda x, w: func.grad(f)(x, w).square().sum(), (0, 1))(x, w),
                      lambda f: func.jacrev(func.grad(f, (0, 1)))(x, w),
                      lambda f: func.vmap(func.jacrev(func.grad(f)), (0, None))(x[:, None], w),
                      lambda f: func.grad(lambda x: func.grad(lambda x: func.grad(f)(x, w).square().sum())(x).square().sum())(x))
        for ours, theirs in pairs:
            for transform in transforms:
                made, wanted = (transform(lambda x, w: one(x, w).sin().sum()) for one in (ours, theirs))
                torch.testing.assert_close(made, wanted, rtol=2e-3, atol=2e-3)

    def test_second_derivatives_are_right_in_float64_and_keep_16_bit_dtypes(self):
        x, w = (r(*shape).double().requires_grad_() for shape in ((3, 8), (8,)))
        for run in (ops.softmax, lambda x: ops.rms_norm(x, w.detach()), lambda x: ops.silu_mul(x, x * 2)):
            self.assertTrue(torch.autograd.gradgradcheck(run, x))
        self.assertTrue(torch.autograd.gradgradcheck(ops.rms_norm, (x, w)))
        half = r(3, 8).bfloat16()
        self.assertEqual(torch.func.grad(lambda x: torch.func.grad(lambda x: ops.softmax(x).square().sum())(x).square().sum())(half).dtype, torch.bfloat16)

    def test_a_second_derivative_of_attention_is_refused_within_others(self):
        func, q = torch.func, r(1, 2, 3, 8)
        for transform in (func.hessian, lambda f: func.grad(lambda x: func.grad(f)(x).sum()), lambda f: func.jacrev(func.grad(f))):
            with self.assertRaises((RuntimeError, NotImplementedError)) as caught:
                transform(lambda q: ops.scaled_dot_product_attention(q, q, q, axes="bhsd").square().sum())(q)
            self.assertRegex(str(caught.exception), "has no gradient|has no tangent")

    def test_forward_mode_is_refused_by_hone(self):
        func, x, w = torch.func, r(3, 8), r(8)
        for name, run in {"softmax": lambda: func.jacfwd(ops.softmax)(x), "rms_norm": lambda: func.jvp(lambda x: ops.rms_norm(x, w), (x,), (x,)),
                          "matmul": lambda: func.hessian(lambda x: ops.matmul(x, x.t()).sum())(x)}.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, f"hone::{name} has no tangent: .*Take torch.func.jacrev"):
                run()
        with torch.autograd.forward_ad.dual_level(), self.assertRaisesRegex(RuntimeError, "hone::softmax has no tangent"):
            ops.softmax(torch.autograd.forward_ad.make_dual(x, x))

    def test_vmap_refuses_what_one_element_would_be_refused_for(self):
        for name, sizes, dims in (("softmax", ((8,),), 0), ("rms_norm", ((8,), (8,)), (0, None)), ("matmul", ((4, 8), (8, 4)), (0, None))):
            with self.assertRaisesRegex(hone.InvalidArgumentError, f"{name}: [xa] has [01] dims inside of vmap, expected T"):
                torch.func.vmap(getattr(ops, name), dims)(*[torch.rand(size) for size in sizes])

    def test_vmap_gives_what_single_calls_give(self):
        for name, calls in CALLS.items():
            for args, scalars in calls:
                op = getattr(ops, name)
                tensors = [i for i, one in enumerate(args) if one is not None]
                for batched in (tensors, tensors[:1], tensors[-1:]):
                    for dim, size in ((0, 3), (1, 3), (0, 1)):
                        with self.subTest(name, scalars=scalars, batched=batched, dim=dim):
                            given = [torch.stack([one] * size, dim) * (torch.arange(1, size + 1) if one.is_floating_point() else torch.ones(size))
                                     .reshape([-1 if at == dim else 1 for at in range(one.dim() + 1)]).to(one.dtype)
                                     if i in batched else one for i, one in enumerate(args)]
                            dims = tuple(dim if i in batched else None for i in range(len(args)))
                            ours = torch.func.vmap(lambda *one: op(*one, **scalars), dims)(*given)
                            one_by_one = [tuple_of(op(*(one.select(dim, j) if i in batched else one for i, one in enumerate(given)),
                                                      **scalars)) for j in range(size)]
                            for mine, single in zip(tuple_of(ours), zip(*one_by_one), strict=True):
                                torch.testing.assert_close(mine, torch.stack(single), rtol=1e-3, atol=1e-4)

    def test_a_batch_that_can_be_folded_is_one_call(self):
        for name, args, dims, text in (
            ("rms_norm", (r(3, 5, 8), r(8)), (0, None), "rms_norm(f32[3,5,8], f32[8])"),
            ("matmul", (r(3, 5, 8), r(8, 4)), (0, None), "matmul(f32[15,8], f32[8,4])"),
            ("matmul", (r(3, 5, 8), r(3, 8, 4)), (0, 0), "matmul(f32[3,5,8], f32[3,8,4])"),
            ("matmul", (r(3, 5, 8), r(8, 4), r(4)), (0, None, None), "matmul(f32[15,8], f32[8,4], bias=f32[4])"),
        ):
            asked = []
            with hone.context(links={"store": lambda call: asked.append(call.text)}):
                torch.func.vmap(getattr(ops, name), dims)(*args)
            self.assertEqual(asked, [text])

    def test_nothing_to_map_gives_nothing(self):
        self.assertEqual(torch.func.vmap(ops.rms_norm, (0, None))(r(0, 5, 8), r(8)).shape, (0, 5, 8))
        with self.assertRaisesRegex(RuntimeError, "with results given it cannot be mapped"):
            torch.func.vmap(lambda x, y: ops.rms_norm(x, torch.ones(8), y=y))(r(2, 5, 8), r(2, 5, 8))

    def test_bits_that_are_yet_to_be_done_are_done(self):
        x, w = r(3, 8), r(8)
        self.assertTrue(torch.equal(ops.rms_norm(torch._neg_view(x), w), ops.rms_norm(-x, w)))
        imaginary = torch.complex(x, x + 1).conj().imag
        self.assertTrue(torch.equal(ops.rms_norm(imaginary, w), ops.rms_norm(imaginary.clone(), w)))
        self.assertTrue(torch.equal(ops.rms_norm(torch._efficientzerotensor((3, 8)), w), torch.zeros(3, 8)))

    def test_autocast_brings_dtypes_together(self):
        x, w = r(3, 8), r(8)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(ops.matmul(x, r(8, 4)).dtype, torch.bfloat16)
            self.assertEqual(ops.flash_attention(*CALLS["flash_attention"][0][0]).dtype, torch.bfloat16)
            self.assertEqual(ops.rms_norm(x, w).dtype, torch.float32)
            self.assertEqual(ops.rms_norm(x.bfloat16(), w).dtype, torch.float32)
            self.assertEqual(ops.rms_norm(x.bfloat16(), w.bfloat16()).dtype, torch.bfloat16)
            for operands in ((eights(3, 5), eights(5, 4)), (r(3, 5).to(torch.float8_e4m3fn), r(5, 4).to(torch.float8_e4m3fn))):
                for dtype in (torch.float32, torch.float16, torch.bfloat16):
                    self.assertEqual(ops.scaled_matmul(*operands, r(3).abs(), r(4).abs(), r(4).to(dtype)).dtype, dtype)
            gate = r(3, 8).requires_grad_()
            ops.silu_mul(gate, r(3, 8).bfloat16()).sum().backward()
            self.assertEqual(gate.grad.dtype, torch.float32)
            compiled = torch.compile(lambda x, b: ops.matmul(x, b), fullgraph=True, backend="aot_eager")
            self.assertEqual(compiled(x, r(8, 4)).dtype, torch.bfloat16)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "weight is f32"):
            ops.rms_norm(x.bfloat16(), w)


# An algorithm of a pack, with computed dims, a size among its scalars, and a gradient.
CHUNKS = """
#include <stdint.h>
void chunk_sum(const float *x, float *y, float *whole, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < (n + size - 1) / size; i++) {
        y[i] = 0;
        for (int64_t j = i * size; j < n && j < (i + 1) * size; j++) y[i] += x[j];
        if (i < n / size) whole[i] = y[i];
    }
}
void chunk_sum_vjp(const float *d_y, const float *d_whole, float *d_x, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++) d_x[i] = d_y[i / size] + (i / size < n / size ? d_whole[i / size] : 0);
}
"""


class Spread(HoneTest):
    def test_operations_over_tensors_that_are_spread_over_ranks_give_what_plain_ones_give(self):
        command = [sys.executable, "-W", "ignore", os.path.join(os.path.dirname(__file__), "spread.py")]
        ranks = [subprocess.Popen([*command, str(rank), "2", str(self.folder / "ranks")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank in range(2)]
        for rank in ranks:
            out = rank.communicate(timeout=500)[0]
            self.assertEqual(rank.returncode, 0, out)
            self.assertNotIn("differs", out)
            for line in ("hone.matmul P(sum) R S(0) S(1) S(2)", "hone.rms_norm R S(0) S(1)", "hone.scaled_dot_product_attention R S(0) S(1) S(2)", "compiled True",
                         "asked rms_norm(f32[5,16], f32[16])",  # each rank its part, and nobody the whole
                         "softmax(..., y=...): results that are given cannot be written where tensors are DTensors"):
                self.assertIn(line, out)


class Flops(HoneTest):
    def test_flops_of_products_are_those_that_torch_counts(self):
        def count(run, *args):
            with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
                run(*args)
            return counter.get_total_flops()

        a, b, q, k = r(2, 5, 7), r(2, 7, 9), r(2, 4, 6, 8), r(2, 2, 6, 8)
        one = [tensor.clone().requires_grad_() for tensor in (q, q, q)]
        sdpa = functools.partial(ops.scaled_dot_product_attention, axes="bhsd")
        for ours, torchs in ((lambda: ops.matmul(a, b), lambda: torch.bmm(a, b)),
                             (lambda: ops.matmul(a, b.mT.contiguous(), transpose_b=True), lambda: torch.bmm(a, b)),
                             (lambda: ops.matmul(a[0], b[0], c=torch.empty(5, 9)), lambda: torch.mm(a[0], b[0])),
                             (lambda: ops.matmul(a[0], b[0], r(9)), lambda: torch.addmm(r(9), a[0], b[0])),
                             (lambda: sdpa(q, q, q, causal=True), lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True)),
                             (lambda: sdpa(q, k, k), lambda: F.scaled_dot_product_attention(q, k, k, enable_gqa=True)),
                             (lambda: sdpa(*one).sum().backward(), lambda: F.scaled_dot_product_attention(*one).sum().backward()),
                             (lambda: ops.rms_norm(a, r(7)), lambda: F.rms_norm(a, (7,)))):
            self.assertEqual(count(ours), count(torchs))
        self.assertGreater(count(lambda: ops.gated_linear_unit(r(3, 4), r(4, 2, 6))), 0)


class Packs(HoneTest):
    def setUp(self):
        super().setUp()
        folder = self.folder / "chunks"
        folder.mkdir()
        (folder / "chunks.c").write_text(CHUNKS)
        source = {"file": "chunks.c", "sha256": hashlib.sha256(CHUNKS.encode()).hexdigest(), "platform": "native", "backend": "cpu"}
        (folder / "pack.json").write_text(json.dumps({
            "hone_pack": 1, "name": "chunks", "algorithms": [
                {"signature": "chunk_sum(x: f32[n], *, size: i64 = 4) -> (y: f32[ceildiv(n, size)], whole: f32[n / size])",
                 "reference": "plain"},
                {"signature": "chunk_sum_vjp(x: f32[n], d_y: f32[m], d_whole: f32[k], *, size: i64 = 4) -> d_x: f32[n] "
                              "where m == ceildiv(n, size) where k == n / size", "reference": "plain"}],
            "kernels": [
                {**source, "algorithm": "chunk_sum", "name": "plain", "entry": "chunk_sum", "arguments": "x, y, whole, i64(n), i64(size)"},
                {**source, "algorithm": "chunk_sum_vjp", "name": "plain", "entry": "chunk_sum_vjp",
                 "arguments": "d_y, d_whole, d_x, i64(n), i64(size)"}]}))
        os.environ["HONE_PACK_PATH"] = str(folder)
        self.addCleanup(os.environ.pop, "HONE_PACK_PATH")
        runtime = hone.Runtime(store="none")
        before = hone.use(runtime)
        self.addCleanup(runtime.close)
        self.addCleanup(hone.use, before)

    def test_an_algorithm_that_came_later_is_an_operation(self):
        x = r(10).requires_grad_()
        expected = torch.stack([part.sum() for part in x.split(3)])
        torch.testing.assert_close(ops.chunk_sum(x, size=3), (expected, expected[:3]))
        self.assertTrue(torch.autograd.gradcheck(lambda x: ops.chunk_sum(x, size=3), (x,), eps=1e-1, atol=1e-2))
        found = torch.library.opcheck(torch.ops.hone.chunk_sum.default, (x,), {"size": 3})
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_dims_that_are_computed_are_computed_of_symbols(self):
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

        def sums(x, size):
            y, whole = ops.chunk_sum(x, size=size)
            return y * 2, whole, y.shape[0], whole.shape[0]

        function = torch.compile(sums, fullgraph=True, dynamic=True, backend=backend)
        for n, size in ((10, 3), (11, 4), (24, 5)):
            x = r(n)
            expected = torch.stack([part.sum() for part in x.split(size)])
            y, whole, *sizes = function(x, size)
            torch.testing.assert_close((y, whole), (expected * 2, expected[:n // size]))
            self.assertEqual(sizes, [-(-n // size), n // size])
        self.assertEqual(len(graphs), 1)


if __name__ == "__main__":
    unittest.main()
