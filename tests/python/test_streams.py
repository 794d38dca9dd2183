"""Calls on a GPU run on the stream that the caller's framework is on: which one reaches the driver, and what is refused."""

import os
import shutil
import sys
import tempfile
import unittest

from support import HoneTest, arrays, norm

import numpy

import fake_gpu
import hone
from fake_gpu import Array, Exchange, JaxArray, Stream, cupy, cupy_state, torch, torch_state

X, W = arrays()


class OnGpu(HoneTest):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="hone-gpu-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        before, modules = dict(os.environ), {name: sys.modules.get(name) for name in ("torch", "cupy")}
        self.addCleanup(self.restore_all, before, modules)
        self.log = fake_gpu.begin(folder)
        torch_state.__init__()
        cupy_state.__init__()
        super().setUp()
        hone.use(hone.Runtime(store="none"))

    def restore_all(self, environment, modules):
        os.environ.clear()
        os.environ.update(environment)
        for name, module in modules.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module

    def streams(self):
        """Of the launches since the last look; "0" is the default one."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("")
        found = []
        for before, line in zip([""] + lines, lines):
            if line.startswith("launch"):
                found.append(before.split()[1] if before.startswith("on ") else "0")
        return found

    def waits(self):
        return [line.split()[-1] for line in self.log.read_text().splitlines() if line.startswith("wait")]

    def right(self, y):
        numpy.testing.assert_allclose(y.array, norm(X, W), rtol=1e-4)


class Current(OnGpu):
    def test_a_call_runs_on_the_current_stream_of_its_arrays(self):
        for make, state in ((torch.Tensor, torch_state), (cupy.ndarray, cupy_state)):
            for number, seen in ((0, "0"), (0x70, "0x70"), (1, "0"), (2, "0x2")):
                with self.subTest(make=make, number=number), state.on(number):
                    x = make(X)
                    y = hone.run("rms_norm", x, make(W))
                    self.assertIs(type(y), make)
                    self.right(y)
                    self.assertEqual(self.streams(), [seen])
                    self.assertEqual((state.made.pop(), x.asked), (number, [-1]))

    def test_a_plan_runs_on_the_stream_of_the_moment(self):
        x, w, y = torch.Tensor(X), torch.Tensor(W), torch.Tensor(X * 0)
        plan = hone.bind("rms_norm", x, w, y)
        for number in (0x70, 0x80):
            with torch_state.on(number):
                self.right(plan(x, w, y))
        self.assertEqual(self.streams(), ["0x70", "0x80"])

    def test_a_stream_that_is_named_goes_before_the_current_one(self):
        made = {torch.Tensor: torch_state, cupy.ndarray: cupy_state}
        named = (0x90, Stream(0, cuda_stream=0x90), Stream(0, ptr=0x90), Stream(0, __cuda_stream__=lambda: (0, 0x90)))
        for make, state in made.items():
            x, w = make(X), make(W)
            plan = hone.bind("rms_norm", x, w)
            bound = hone.bind("rms_norm", x, w, stream=0x91)
            self.streams()
            for stream in named:
                state.made.clear()
                with state.on(0x70):
                    self.right(hone.run("rms_norm", x, w, stream=stream))
                    self.right(hone.default().run("rms_norm", x, w, stream=stream))
                    self.right(hone.default().operation("rms_norm").run(x, w, stream=stream))
                    self.right(plan(x, w, stream=stream))
                    self.right(bound(x, w, stream=stream))
                    self.right(bound(x, w))
                    self.right(hone.run("rms_norm", x, w, stream=None))
                    self.right(hone.run("rms_norm", x, w, stream=0))
                self.assertEqual(self.streams(), ["0x90"] * 5 + ["0x91", "0x70", "0"])
                self.assertEqual(state.made, [0x90] * 5 + [0x91, 0x70, 0])

    def test_arrays_that_bring_a_table_of_functions_are_shown_by_it_on_its_stream(self):
        newer = Exchange(major=2, previous=Exchange())
        for table, answers in ((Exchange(), None), (newer, newer._kept[0])):
            answers = answers or table
            kind = type("ndarray", (cupy.ndarray,), {"__module__": "cupy", "__dlpack_c_exchange_api__": table.capsule()})
            x, w, y = kind(X), kind(W), kind(X * 0)
            answers.stream = 0x70
            hone.run("rms_norm", x, w, y)
            self.right(y)
            plan = hone.bind("rms_norm", x, w, y)
            answers.stream = 0x80
            plan(x, w, y)
            hone.run("rms_norm", x, w, y, stream=0x90)
            self.assertEqual(self.streams(), ["0x70", "0x80", "0x90"])
            self.assertEqual((x.asked, set(answers.asked)), ([], {"view", "stream"}))

    def test_a_table_of_a_library_that_nothing_is_known_of_says_what_is_read_only(self):
        for views in (True, False):
            table, fixed = Exchange(views=views), Exchange(views=views, flags=1)
            kind, constant = (type("Array", (Array,), {"__dlpack_c_exchange_api__": one.capsule()}) for one in (table, fixed))
            x, w, y = kind(X), kind(W), kind(X * 0)
            table.stream = 0x70
            hone.run("rms_norm", x, w, y)
            self.right(y)
            self.assertEqual(self.streams(), ["0x70"])
            self.assertEqual(table.asked, ["manage"] * 3 + ["stream"] + ["delete"] * 3)
            with self.assertRaisesRegex(ValueError, "y is a result and must be an array that can be written, got a read-only one"):
                hone.run("rms_norm", x, w, constant(X * 0))

    def test_a_stream_that_is_none_is_refused(self):
        x, w = torch.Tensor(X), torch.Tensor(W)
        for wrong in ("side", 1.5, -1, True, object()):
            with self.assertRaisesRegex(TypeError, "stream must be a stream of torch or CuPy"):
                hone.run("rms_norm", x, w, stream=wrong)
        with self.assertRaisesRegex(ValueError, "the stream is of cuda:1, and the arrays lie on cuda:0"):
            hone.run("rms_norm", x, w, stream=Stream(0, cuda_stream=5, device_index=1))
        with self.assertRaisesRegex(ValueError, "no array of this call is on one"):
            hone.run("rms_norm", X, W, stream=3)
        self.assertEqual(self.streams(), [])

    def test_frameworks_whose_streams_differ_are_refused(self):
        x, w = torch.Tensor(X), cupy.ndarray(W)
        self.right(hone.run("rms_norm", x, w))
        with torch_state.on(0x70):
            with self.assertRaisesRegex(ValueError, "torch's is 0x70, CuPy's is 0x1.*stream="):
                hone.run("rms_norm", x, w)
            self.right(hone.run("rms_norm", x, w, stream=0x70))
            with cupy_state.on(0x70):
                self.right(hone.run("rms_norm", x, w))
        self.assertEqual(self.streams(), ["0", "0x70", "0x70"])


class WithoutCurrent(OnGpu):
    def test_what_jax_computes_is_waited_for_before_and_the_call_after(self):
        x, y = JaxArray(X), torch.Tensor(X * 0)
        hone.run("rms_norm", x, torch.Tensor(W), y)
        self.streams()
        with torch_state.on(0x70):
            x.ready = False
            self.right(hone.run("rms_norm", x, torch.Tensor(W), y))
        self.assertTrue(x.ready)
        self.assertEqual(self.waits(), ["0x70"])

    def test_arrays_that_say_nothing_are_ordered_as_dlpack_has_it(self):
        x, w, y = Array(X), Array(W), Array(X * 0)
        self.right(hone.run("rms_norm", x, w, y))
        self.assertEqual((self.streams(), x.asked), (["0"], [None]))
        with torch_state.on(0x70):
            self.right(hone.run("rms_norm", x, torch.Tensor(W), y))
        self.assertEqual(x.asked, [None, None, 0x70])
        self.assertEqual(self.waits(), ["0x70"])
        self.assertEqual(self.streams(), ["0x70"])
        hone.run("rms_norm", x, w, y, stream=0x90)  # behind what made them; what comes after is the caller's
        self.assertEqual((self.waits(), self.streams()), ([], ["0x90"]))
        self.assertEqual((x.asked[-1], w.asked[-1], y.asked[-1]), (0x90, 0x90, 0x90))

    def test_that_a_stream_is_not_known_is_told_once(self):
        class Silent(Array):
            pass

        x, w, y = Silent(X), Silent(W), Silent(X * 0)
        with self.assertLogs("hone", "INFO") as logs:
            hone.run("rms_norm", x, w, y)
            hone.run("rms_norm", x, w, y)
        told = [line for line in logs.output if "has no current stream" in line]
        self.assertEqual(len(told), 1, logs.output)
        self.assertIn("Silent", told[0])


class Captured(OnGpu):
    def test_a_call_is_captured_once_a_kernel_is_ready_and_refused_before(self):
        x, w, y = torch.Tensor(X), torch.Tensor(W), torch.Tensor(X * 0)
        with torch_state.on(0x70):
            os.environ["FAKE_CUDA_CAPTURED"] = str(0x70)
            with self.assertRaisesRegex(hone.UnsupportedError, "captured.*once before the capture begins, or bind"):
                hone.run("rms_norm", x, w, y)
            with self.assertRaisesRegex(hone.UnsupportedError, "captured.*binding.*before the capture begins"):
                hone.bind("rms_norm", x, w, y)
            self.assertEqual(self.streams(), [])
            os.environ["FAKE_CUDA_CAPTURED"] = "0"
            plan = hone.bind("rms_norm", x, w, y)
            hone.run("rms_norm", x, w, y)
            os.environ["FAKE_CUDA_CAPTURED"] = str(0x70)
            self.right(hone.run("rms_norm", x, w, y))
            self.right(plan(x, w, y))
            self.assertEqual(self.streams(), ["0x70"] * 3)

    def test_what_would_wait_is_refused(self):
        x, w, y = JaxArray(X), torch.Tensor(W), torch.Tensor(X * 0)
        hone.run("rms_norm", x, w, y)
        self.streams()
        os.environ["FAKE_CUDA_CAPTURED"] = str(0x70)
        with torch_state.on(0x70), self.assertRaisesRegex(hone.UnsupportedError, "captured.*no current stream.*before"):
            hone.run("rms_norm", x, w, y)
        self.assertEqual(self.streams(), [])


class Refused(OnGpu):
    def test_tensors_of_torch_that_are_not_what_they_look_like_are_refused_by_name(self):
        cases = {"is_nested": (True, "nested tensor"), "is_quantized": (True, "quantised tensor.*dequantize"),
                 "layout": ("sparse_coo", "layout sparse_coo.*to_dense"), "is_meta": (True, "meta tensor"),
                 "is_conj": (lambda: True, "resolve_conj"), "is_neg": (lambda: True, "resolve_neg"),
                 "requires_grad": (True, "requires grad.*detach")}
        for name, (value, words) in cases.items():
            x = torch.Tensor(X)
            x.dtype = "float32"
            setattr(x, name, value)
            for use in (hone.run, hone.bind, hone.call, hone.decide, hone.explain):
                with self.assertRaisesRegex(TypeError, f"x: .*{words}"):
                    use("rms_norm", x, torch.Tensor(W))
        wrapped = type("FakeTensor", (torch.Tensor,), {"__torch_dispatch__": lambda *a: None})
        with self.assertRaisesRegex(TypeError, "x: got a .*FakeTensor, a tensor that is made of others"):
            hone.run("rms_norm", wrapped(X), torch.Tensor(W))

    def test_a_parameter_is_taken_where_torch_records_nothing(self):
        parameter = type("Parameter", (torch.Tensor,), {"requires_grad": True})(W)
        torch.grad_mode = False
        self.addCleanup(setattr, torch, "grad_mode", True)
        self.right(hone.run("rms_norm", torch.Tensor(X), parameter))

    def test_masked_and_sparse_arrays_are_refused_by_name(self):
        masked = numpy.ma.masked_array(X, mask=X > 0)
        scipy = type("csr_array", (), {"__module__": "scipy.sparse._csr"})()
        jax = type("BCOO", (), {"__module__": "jax.experimental.sparse.bcoo"})()
        for array, words in ((masked, "masked array.*filled"), (numpy.ma.array(X), "masked array"), (scipy, "toarray"),
                             (jax, "todense")):
            for use in (hone.run, hone.bind, hone.call, hone.decide, hone.explain, hone.tune):
                with self.assertRaisesRegex(TypeError, f"x: .*{words}"):
                    use("rms_norm", array, W)
        with self.assertRaisesRegex(TypeError, "y: got a masked array"):
            hone.run("rms_norm", X, W, masked)


class HostTensor(torch.Tensor):
    """A tensor of torch in the host's memory."""

    device = "cpu"

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


class Axes(OnGpu):
    NAME = "scaled_dot_product_attention"

    def setUp(self):
        super().setUp()
        empty = torch.empty
        torch.empty = lambda shape, dtype, device: HostTensor(numpy.empty(shape, dtype))
        self.addCleanup(setattr, torch, "empty", empty)
        generator = numpy.random.default_rng(1)
        self.q = generator.standard_normal((2, 4, 16, 8)).astype(numpy.float32)
        self.k, self.v = (generator.standard_normal((2, 4, 24, 8)).astype(numpy.float32) for _ in range(2))
        scores = numpy.einsum("bhqd,bhkd->bhqk", self.q, self.k) / numpy.sqrt(8)
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        self.expected = numpy.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), self.v)

    def close(self, y):
        numpy.testing.assert_allclose(y, self.expected, rtol=1e-4, atol=1e-5)

    def test_tensors_of_torch_say_the_order_of_their_axes(self):
        q, k, v = (HostTensor(one) for one in (self.q, self.k, self.v))
        for use in (hone.run, hone.bind, hone.call, hone.decide, hone.explain, hone.tune):
            for name in (self.NAME, self.NAME + "@v1"):
                with self.assertRaisesRegex(TypeError, 'query: torch.*axes="bhsd".*axes="bshd"'):
                    use(name, q, k, v)
            with self.assertRaisesRegex(TypeError, "value: torch"):
                use(self.NAME, self.q, self.k, value=v)

    def test_torchs_order_gives_torchs_results(self):
        q, k, v, out = (HostTensor(one) for one in (self.q, self.k, self.v, self.q * 0))
        y = hone.run(self.NAME, q, k, v, axes="bhsd")
        self.assertIsInstance(y, HostTensor)
        self.close(y.array)
        self.assertIs(hone.run(self.NAME, q, k, v, out, axes="bhsd"), out)
        self.close(out.array)
        plan = hone.bind(self.NAME, q, k, v, axes="bhsd")
        self.close(plan(q, k, v).array)
        out.array[:] = 0
        self.close(plan(q, k, v, out).array)
        self.close(hone.run(self.NAME, self.q, self.k, self.v, axes="bhsd").swapaxes(1, 1))
        call = hone.call(self.NAME, q, k, v, axes="bhsd")
        self.assertIn("f32[2,16,4,8]{strides=512,8,128,1}", call.text)
        self.assertIn(call.text, hone.explain(self.NAME, q, k, v, axes="bhsd"))

    def test_hones_order_is_the_signatures(self):
        own = [numpy.ascontiguousarray(one.swapaxes(1, 2)) for one in (self.q, self.k, self.v)]
        self.close(hone.run(self.NAME, *map(HostTensor, own), axes="bshd").array.swapaxes(1, 2))
        self.close(hone.run(self.NAME, *own).swapaxes(1, 2))

    def test_a_wrong_order_is_said(self):
        with self.assertRaisesRegex(ValueError, "axes must be \"bshd\".*'heads'"):
            hone.run(self.NAME, self.q, self.k, self.v, axes="heads")
        with self.assertRaisesRegex(ValueError, "must have 4 dims, got 3"):
            hone.run(self.NAME, self.q[0], self.k[0], self.v[0], axes="bhsd")
        with self.assertRaisesRegex(TypeError, "no parameter 'axes'"):
            hone.run("rms_norm", X, W, axes="bhsd")


if __name__ == "__main__":
    unittest.main()
