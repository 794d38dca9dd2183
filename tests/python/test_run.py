"""hone.run and hone.bind on numpy's arrays and on anything else that speaks DLPack."""

import concurrent.futures
import contextlib
import ctypes
import gc
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy

import hone
from support import HoneTest, arrays, norm


class Exporter:
    """An array of another library: DLPack is all it has."""

    def __init__(self, array, versioned=False, read_only=False):
        self.array, self.versioned, self.read_only = array, versioned, read_only
        self.exported = 0

    def __dlpack__(self, *, max_version=None, **others):
        self.exported += 1
        if self.versioned and max_version is None:
            raise BufferError("only with versions")
        array = self.array
        if self.read_only:
            array = array.view()
            array.flags.writeable = False
        return array.__dlpack__(max_version=max_version) if self.versioned else array.__dlpack__()


class NoCapsule:
    def __dlpack__(self, **options):
        return 3


class Newer:
    def __dlpack__(self, *, max_version=None):
        """A capsule that says version 2."""

        class Managed(ctypes.Structure):
            _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("rest", ctypes.c_uint64 * 16)]

        self.managed = Managed(2, 0)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


def is_right(rows):
    x, w = arrays(rows)
    return bool(numpy.allclose(hone.run("rms_norm", x, w), norm(x, w), rtol=1e-4))


def spawned(url, answers):
    with hone.Runtime(store=url) as runtime:
        hone.use(runtime)
        answers.put(is_right(5))
        hone.use(None)


class Products(HoneTest):
    def test_the_product_of_any_shapes_is_numpys(self):
        generator = numpy.random.default_rng(3)
        pairs = [((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)),
                 ((2, 1, 3, 4), (5, 4, 6)), ((1, 3, 4), (2, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((0,), (0,)), ((2, 0, 4), (4, 3)), ((0, 3, 4), (1, 4, 2))]
        for dtype in (numpy.float32, numpy.float64, numpy.int32, numpy.complex64, ml_dtypes.bfloat16):
            for shapes in pairs:
                a, b = (numpy.asarray(generator.integers(-3, 4, shape)).astype(dtype) for shape in shapes)
                made, expected = hone.matmul(a, b), numpy.matmul(a, b)
                if dtype is ml_dtypes.bfloat16:  # numpy has no product of it, and gives float32
                    expected = expected.astype(dtype)
                self.assertEqual((isinstance(made, numpy.ndarray), made.shape, made.dtype), (expected.ndim > 0, expected.shape, expected.dtype), shapes)
                numpy.testing.assert_array_equal(made.astype(numpy.complex64), expected.astype(numpy.complex64), str(shapes))
        self.assertIn("matmul(f32[6,4], f32[4,5])", {row.call for row in self.runtime.stats()})

    def test_turned_operands_and_gaps_do_not_run_the_reference(self):
        x = numpy.random.default_rng(3).standard_normal((16, 16)).astype(numpy.float32)
        for a, b in ((x, x.T), (x.T, x), (x[:, ::2], x[:8]), (x, x[:, ::2]), (x[None], x.T[None])):
            numpy.testing.assert_allclose(hone.matmul(a, b), a @ b, rtol=1e-3, atol=1e-4)
        self.assertEqual([row.call for row in self.runtime.stats() if row.kernel == "reference"], [])

    def test_what_is_no_product_is_refused_as_numpy_and_hone_do(self):
        x = numpy.ones((2, 3), numpy.float32)
        self.assertRaisesRegex(ValueError, "does not have enough dimensions", hone.matmul, x[0, 0], x)
        self.assertRaisesRegex(hone.InvalidArgumentError, r"matmul: b\[0\] is 2 but k is 3", hone.matmul, x, x)
        self.assertRaisesRegex(TypeError, "masked array", hone.matmul, numpy.ma.array(x), x.T)
        self.assertEqual(hone.matmul([1, 2], [3, 4]), 11)


class Forks(HoneTest):
    def setUp(self):
        super().setUp()
        self.done = threading.Event()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.calls = [self.pool.submit(self.keep_calling, start) for start in range(4)]

    def tearDown(self):
        self.done.set()
        self.assertEqual([call.result() for call in self.calls], [True] * 4)
        self.pool.shutdown()

    def keep_calling(self, start):
        """Calls that were never made before ask the store."""
        rows, right = start, True
        while not self.done.is_set():
            rows += 4
            right = right and is_right(1 + rows % 500)
            self.runtime.recorded()
        return right

    def ends(self, child):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid == child:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        os.kill(child, 9)
        os.waitpid(child, 0)
        return "hung"

    def test_results_that_are_made_are_of_the_call_that_makes_them(self):
        for _ in range(2):
            for rows, dim, dtype in ((4, 64, numpy.float32), (8, 64, numpy.float32), (8, 64, ml_dtypes.bfloat16), (4, 32, numpy.float16)):
                x, w = arrays(rows, dim, dtype)
                first, second = hone.run("rms_norm", x, w), hone.run("rms_norm", x, w, eps=1e-3)
                self.assertEqual((first.shape, first.dtype, type(first)), (x.shape, x.dtype, numpy.ndarray))
                self.assertFalse(numpy.shares_memory(first, second))
                numpy.testing.assert_allclose(first.astype(float), norm(x, w), rtol=2e-2, atol=1e-3)
            a, b = arrays(4, 8)[0], arrays(6, 8)[0]
            self.assertEqual(hone.run("matmul", a, b, transpose_b=True).shape, (4, 6))
            self.assertEqual(hone.run("matmul", a, b.T).shape, (4, 6))
            self.assertEqual(hone.run("matmul", a, b.T[:, :5]).shape, (4, 5))

    def test_a_batch_is_numpys_and_a_vector_says_what_to_write(self):
        generator = numpy.random.default_rng(3)
        a, b = generator.standard_normal((3, 1, 4, 8)), generator.standard_normal((3, 2, 8, 5))
        for dtype, tolerance in ((numpy.float64, 1e-13), (numpy.float32, 1e-5)):
            wide = numpy.broadcast_to(a.astype(dtype), (3, 2, 4, 8))
            numpy.testing.assert_allclose(hone.run("matmul", wide, b.astype(dtype)), a @ b, rtol=tolerance, atol=tolerance)
        with self.assertRaisesRegex(hone.InvalidArgumentError, r"a is a tensor f64\[8\].*give a dim that is missing as an axis of size 1"):
            hone.run("matmul", a[0, 0, 0], b[0, 0])
        numpy.testing.assert_allclose(hone.run("matmul", a[0, 0, :1], b[0, 0])[0], a[0, 0, 0] @ b[0, 0], rtol=1e-13, atol=1e-13)

    def test_children_forked_during_calls_are_right_and_end(self):
        for number in range(20):
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with concurrent.futures.ThreadPoolExecutor(2) as pool:
                        code = 0 if all(pool.map(is_right, range(1, 9))) and is_right(600 + number) else 2
                    if number % 2:
                        hone.use(None)
                        self.runtime.close()
                finally:
                    os._exit(code)
            self.assertEqual(self.ends(child), 0, f"child {number}")

    def test_processes_of_multiprocessing_fork_and_spawn(self):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            self.assertEqual(pool.map_async(is_right, range(1, 20)).get(120), [True] * 19)
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        process = context.Process(target=spawned, args=(self.store, answers))
        process.start()
        self.assertTrue(answers.get(timeout=120))
        process.join(120)
        self.assertEqual(process.exitcode, 0)

    def test_a_child_that_exits_as_programs_do_ends(self):
        code = ("import os, sys, numpy, hone\nx = numpy.ones((512, 512), numpy.float32)\nhone.run('matmul', x, x)\n"
                "child = os.fork()\nassert (hone.run('matmul', x, x) == 512).all()\n"
                "if child == 0: sys.exit(7)\nsys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
        for _ in range(4):
            done = subprocess.run([sys.executable, "-c", code], timeout=120)
            self.assertEqual(done.returncode, 7)


class Run(HoneTest):
    def test_a_result_that_is_left_out_is_made(self):
        x, w = arrays()
        y = hone.run("rms_norm", x, w)
        self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
        numpy.testing.assert_allclose(y, norm(x, w), rtol=1e-5)

    def test_a_result_that_is_given_is_written_and_given_back(self):
        x, w = arrays()
        for give in (lambda y: hone.run("rms_norm", x, w, y), lambda y: hone.run("rms_norm", weight=w, x=x, y=y)):
            y = numpy.zeros_like(x)
            self.assertIs(give(y), y)
            numpy.testing.assert_allclose(y, norm(x, w), rtol=1e-5)

    def test_scalars_come_by_name_and_count(self):
        x, w = arrays()
        for eps in (0.5, numpy.float32(0.5), numpy.float64(0.5)):
            numpy.testing.assert_allclose(hone.run("rms_norm", x, w, eps=eps), norm(x, w, 0.5), rtol=1e-5)
        a, b = arrays(6, 4)[0], arrays(5, 4)[0]
        numpy.testing.assert_allclose(hone.run("matmul", a, b, transpose_b=True), a @ b.T, rtol=1e-4, atol=1e-5)

    def test_several_results_come_as_a_tuple(self):
        q = arrays(2 * 8 * 2, 16)[0].reshape(2, 8, 2, 16)
        out, weights = hone.run("attention", q, q, q, causal=True)
        self.assertEqual((out.shape, weights.shape), ((2, 8, 2, 16), (2, 2, 8, 8)))
        numpy.testing.assert_allclose(weights.sum(-1), numpy.ones((2, 2, 8)), rtol=1e-5)

    def test_nothing_is_copied(self):
        x, w = arrays()
        wide = numpy.zeros((8, 128), numpy.float32)
        y = wide[:, :64]
        hone.run("rms_norm", x[::2][:4], w, y[:4])
        numpy.testing.assert_allclose(wide[:4, :64], norm(x[::2], w), rtol=1e-5)
        self.assertFalse(wide[:, 64:].any())

    def test_arrays_that_speak_dlpack_are_taken_with_and_without_versions(self):
        x, w = arrays()
        for versioned in (False, True):
            given = Exporter(x, versioned)
            numpy.testing.assert_allclose(hone.run("rms_norm", given, w), norm(x, w), rtol=1e-5)
            self.assertGreater(given.exported, 0)

    def test_bfloat16_and_float16_are_taken(self):
        for dtype, name in ((ml_dtypes.bfloat16, "bfloat16"), (numpy.float16, "float16")):
            x, w = arrays(dtype=dtype)
            y = hone.run("rms_norm", x, w)
            self.assertEqual(y.dtype.name, name)
            numpy.testing.assert_allclose(y.astype(numpy.float32), norm(x, w), rtol=2e-2, atol=1e-2)
            strided = numpy.zeros((16, 64), dtype)
            hone.run("rms_norm", x, w, strided[::2])
            self.assertEqual(strided[::2].tobytes(), y.tobytes())

    def test_read_only_arrays_are_parameters_and_no_results(self):
        x, w = arrays()
        for array in (x, w):
            array.flags.writeable = False
        numpy.testing.assert_allclose(hone.run("rms_norm", x, w), norm(x, w), rtol=1e-5)
        with self.assertRaisesRegex(ValueError, "y is a result.*read-only"):
            hone.run("rms_norm", x, w, x)
        with self.assertRaisesRegex(ValueError, "read-only"):
            hone.run("rms_norm", x, w, Exporter(numpy.zeros_like(x), versioned=True, read_only=True))

    def test_a_wrong_call_says_what_came_and_what_is_asked(self):
        x, w = arrays()
        with self.assertRaisesRegex(hone.InvalidArgumentError, r"weight\[0\] is 63 but dim is 64"):
            hone.run("rms_norm", x, w[:63])
        with self.assertRaisesRegex(ValueError, "f64"):
            hone.run("rms_norm", x.astype(numpy.float64), w)
        with self.assertRaisesRegex(TypeError, "no parameter 'epsilon'.*eps: f64"):
            hone.run("rms_norm", x, w, epsilon=1)
        with self.assertRaisesRegex(TypeError, "eps must be a float, got str"):
            hone.run("rms_norm", x, w, eps="small")
        with self.assertRaisesRegex(TypeError, "transpose_b must be a bool, got int"):
            hone.run("matmul", x, x, transpose_b=1)
        with self.assertRaisesRegex(TypeError, "takes at most 3 arguments by position, got 4; its signature is rms_norm"):
            hone.run("rms_norm", x, w, x, x)
        with self.assertRaisesRegex(TypeError, "x is given twice, by position and by name"):
            hone.run("rms_norm", x, w, x=x)
        with self.assertRaisesRegex(TypeError, "x: expected an array .*__dlpack__.*or a list of numbers, got set"):
            hone.run("rms_norm", {1.0, 2.0}, w)
        with self.assertRaisesRegex(BufferError, "weight: got an array of int4, expected an array of numbers"):
            hone.run("rms_norm", x, w.astype(ml_dtypes.int4))
        with self.assertRaisesRegex(BufferError, r"weight: got an array of >f4, expected the byte order of this machine: give array.astype\("):
            hone.run("rms_norm", x, w.astype(">f4"))
        with self.assertRaisesRegex(TypeError, "x: expected an array .*, got <class 'numpy.ndarray'>"):
            hone.run("rms_norm", numpy.ndarray, w)
        for eps, error, words in ((1j, TypeError, "complex: "), ([1.0], TypeError, "list: "), (10**400, OverflowError, "int: "),
                                  (numpy.ones(2), TypeError, "ndarray: ")):
            with self.assertRaisesRegex(error, f"eps must be a float, got {words}"):
                hone.run("rms_norm", x, w, eps=eps)
        for name, kind in ((None, "NoneType"), (x, "ndarray")):
            with self.assertRaisesRegex(TypeError, f"expected the name of an operation, a str, got {kind}$"):
                hone.run(name, x)
        with self.assertRaisesRegex(ValueError, "expected a text without a null character, got 'rms.*norm'"):
            hone.run("rms\0norm", x)
        with self.assertRaisesRegex(BufferError, "DLPack 2.0"):
            hone.run("rms_norm", Newer(), w)
        with self.assertRaisesRegex(BufferError, "x: expected a capsule of DLPack that is not used, got 3 of __dlpack__"):
            hone.run("rms_norm", NoCapsule(), w)
        with self.assertRaisesRegex(BufferError, "at most 8 dims, got 9"):
            hone.run("rms_norm", x.reshape(1, 1, 1, 1, 1, 1, 1, 8, 64).astype(ml_dtypes.bfloat16), w)
        with self.assertRaises(hone.InvalidArgumentError):
            hone.run("rms_norm", x, w, x)  # the result over the parameter
        with self.assertRaisesRegex(hone.NotFoundError, "rms_norm"):
            hone.run("rms_nrom", x, w)
        with self.assertRaisesRegex(ValueError, "null character"):
            hone.run("rms_norm\0", x, w)
        with self.assertRaises(TypeError):
            hone.run(3, x)
        with self.assertRaises(TypeError):
            hone.run()

    def test_shapes_and_dtypes_stand_for_arrays(self):
        for dtype in ("float32", "f32", numpy.float32, numpy.dtype("float32"), ml_dtypes.bfloat16):
            call = hone.call("softmax", (dtype, [4, numpy.int64(8)]))
            self.assertEqual(call.text, f"softmax({'bf16' if dtype is ml_dtypes.bfloat16 else 'f32'}[4,8])")
        for wrong, words in ((("float99", (8,)), "float99"), ((8, (8,)), "expected an element type .*, got 8"),
                             (("float32", 8), "a shape must be a tuple of ints, got 8"), (("float32", ("a",)), "")):
            with self.assertRaisesRegex(TypeError, words):
                hone.call("softmax", wrong)

    def test_errors_carry_what_c_says(self):
        x, w = arrays()
        with self.assertRaises(hone.HoneError) as caught:
            hone.run("rms_norm", x, w[:63])
        self.assertEqual(caught.exception.where, "call.bind")
        self.assertEqual(caught.exception.system_code, 0)

    def test_no_reference_is_lost_or_kept(self):
        x, w = arrays()
        y = numpy.zeros_like(x)
        bad = w[:63]
        plan = hone.bind("rms_norm", x, w, y)

        def round_trip():
            hone.run("rms_norm", x, w, y)
            hone.run("rms_norm", x, w)
            plan(x, w, y)
            for call in (lambda: hone.run("rms_norm", x, bad), lambda: hone.run("rms_norm", x, w, eps="x"),
                         lambda: plan(x, bad, y), lambda: hone.call("rms_norm", ("float32", (2, 3)), w)):
                try:
                    call()
                except (TypeError, ValueError):
                    pass

        round_trip()
        objects = (x, w, y, bad, plan, hone._hone.Operation)
        before = [sys.getrefcount(one) for one in objects]
        for _ in range(100):
            round_trip()
        gc.collect()
        self.assertEqual([sys.getrefcount(one) for one in objects], before)

    def test_threads_run_at_the_same_time(self):
        x, w = arrays(64, 256)
        failures = []

        def work():
            for _ in range(50):
                y = hone.run("rms_norm", x, w)
                if not numpy.allclose(y, norm(x, w), rtol=1e-4):
                    failures.append(y)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


    def test_a_runtime_may_be_taken_away_while_others_call(self):
        x, w = arrays()
        done = threading.Event()

        def swap():
            while not done.is_set():
                hone.use(hone.Runtime(store="none")).close()

        def work():
            for _ in range(200):
                hone.run("rms_norm", x, w)
                hone.decide("rms_norm", x, w)

        hone.default()
        swapper = threading.Thread(target=swap)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in (swapper, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        swapper.join()

    def test_a_child_of_fork_goes_on(self):
        script = ("import numpy, os, signal, hone\n"
                  "x, w = numpy.ones((256, 1024), numpy.float32), numpy.ones(1024, numpy.float32)\n"
                  "expected, child = hone.run('rms_norm', x, w), os.fork()\n"
                  "signal.alarm(100)\n"  # for a child that waits for threads of its parent's
                  "if child == 0: os._exit(not numpy.array_equal(hone.run('rms_norm', x, w), expected))\n"
                  "os._exit(os.waitpid(child, 0)[1] != 0)\n")
        subprocess.run([sys.executable, "-B", "-c", script], check=True)


class Bind(HoneTest):
    def test_a_plan_runs_on_other_arrays_of_the_same_kind(self):
        x, w = arrays()
        plan = hone.bind("rms_norm", x, w, numpy.zeros_like(x), eps=0.5)
        y = numpy.zeros_like(x)
        self.assertIs(plan(x + 1, w, y), y)
        numpy.testing.assert_allclose(y, norm(x + 1, w, 0.5), rtol=1e-5)
        self.assertIn("eps=0.5", plan.text)
        self.assertEqual(repr(plan), f"<hone plan of {plan.kernel} for {plan.text}>")
        self.assertIn(plan.kernel, [kernel.name for kernel in hone.registry.kernels("rms_norm")])

    def test_a_plan_bound_without_results_makes_them(self):
        x, w = arrays()
        plan = hone.bind("rms_norm", x, w)
        numpy.testing.assert_allclose(plan(x, w), norm(x, w), rtol=1e-5)
        y = numpy.zeros_like(x)
        self.assertIs(plan(x, w, y), y)

    def test_a_plan_refuses_what_it_was_not_bound_for(self):
        x, w = arrays()
        y = numpy.zeros_like(x)
        plan = hone.bind("rms_norm", x, w, y)
        memory = numpy.zeros(8 * 64 * 4 + 64, numpy.uint8)
        start = (16 - memory.ctypes.data % 16) % 16 + 4
        unaligned = memory[start:start + 8 * 64 * 4].view(numpy.float32).reshape(8, 64)
        wide = numpy.zeros((8, 128), numpy.float32)
        for bad, words in ((x[:4], r"x is f32 of shape \(4, 64\), and the plan was bound for f32 of shape \(8, 64\)"),
                           (x.astype(numpy.float16), r"x is f16 of shape \(8, 64\), and"), (x.reshape(8, 8, 8), r"x is f32 of shape \(8, 8, 8\), and"),
                           (wide[:, ::2], "x has other strides than"), (unaligned, "x has another alignment than")):
            with self.assertRaisesRegex(ValueError, words):
                plan(bad, w, y)
        with self.assertRaisesRegex(TypeError, "x: expected an array"):
            plan(None, w, y)
        with self.assertRaisesRegex(ValueError, "x has a negative stride, which no plan takes"):
            hone.bind("rms_norm", x[::-1], w)
        for over in (x, wide.reshape(-1)[32:32 + 512].reshape(8, 64)):
            with self.assertRaisesRegex(ValueError, "the result y overlaps x"):
                plan(over if over is not x else x, w, x if over is x else wide.reshape(-1)[:512].reshape(8, 64))
        with self.assertRaisesRegex(TypeError, "takes 3 arrays, got 1"):
            plan(x)
        with self.assertRaisesRegex(TypeError, "a plan takes arrays by position, and stream by name"):
            plan(x, w, y, eps=1.0)

    def test_a_list_has_the_dtype_that_the_others_have(self):
        ones = numpy.ones((2, 2))
        for a, b, dtype in (([[1, 2]], ones, "float64"), (ones, [[1, 2], [3, 4]], "float64"), ([[1, 2]], [[1.5, 2], [3, 4]], "float32"),
                            (((1, 2), (3, 4)), [[1, 2], [3, 4]], "float32"), (((1.0, 2.0),), ones.astype("float16"), "float16"),
                            (tuple(ones.astype("float32")), [[1, 2], [3, 4]], "float32")):
            made = hone.run("matmul", a, b)
            self.assertEqual(made.dtype, dtype)
            numpy.testing.assert_allclose(made, numpy.asarray(a, numpy.float64) @ numpy.asarray(b, numpy.float64))
        self.assertIn("bf16[1,2]", hone.call("matmul", ((1, 2),), ("bfloat16", (2, 2))).text)
        self.assertIn("f64[2]", hone.call("matmul", ("float64", (1, 2)), ("float64", (2, 2)), bias=[1, 2]).text)
        plan = hone.bind("softmax", numpy.ones((2, 2), numpy.float16))
        self.assertEqual(plan(((1, 2), (3, 4))).dtype, "float16")
        with self.assertRaisesRegex(ValueError, "y is a result and must be an array that can be written, got a list"):
            hone.run("softmax", [[1.0, 2.0]], ((0.0, 0.0),))

    def test_a_list_is_not_cut_to_the_dtype_that_the_others_have(self):
        from hone._arrays import listed

        for values, dtype in (([1.7], "int32"), ([2**40], "int32"), ([-1], "uint8"), ([float("nan")], "int32"), ([1j], "float32")):
            with self.assertRaisesRegex(TypeError, f"numbers that {dtype} does not hold"):
                listed(values, "T[n]", "", [("T[n]", dtype, numpy.ones(1, dtype))])
        for values, dtype in (([1.0], "int32"), ([2**31 - 1, -(2**31)], "int32"), ([255], "uint8"), ([True], "int8"), ([0.1], "float16"), ([1j], "complex64")):
            numpy.testing.assert_allclose(listed(values, "T[n]", "", [("T[n]", dtype, numpy.ones(1, dtype))]), numpy.asarray(values), rtol=1e-3)

    def test_what_has_an_array_alone_is_read_and_never_written(self):
        class Frame:
            def __init__(self, values):
                self.values = values

            def __array__(self, dtype=None, copy=None):
                return self.values

        x = numpy.random.default_rng(1).standard_normal((3, 8)).astype(numpy.float32)
        expected = hone.run("softmax", x)
        self.assertTrue(numpy.array_equal(hone.run("softmax", Frame(x)), expected))
        self.assertTrue(numpy.array_equal(hone.run("softmax", ((ctypes.c_float * 8) * 3).from_buffer_copy(x.tobytes())), expected))
        with self.assertRaisesRegex(ValueError, "read-only"):
            hone.run("softmax", x, Frame(numpy.empty_like(x)))
        with self.assertRaisesRegex(TypeError, "Frame, whose __array__ gives no array"):
            hone.run("softmax", Frame(3))
        with self.assertRaisesRegex(TypeError, "Frame of dtype object"):
            hone.run("softmax", Frame(numpy.array([None])))

    def test_lists_and_memory_of_others_are_taken(self):
        x, w = arrays()
        for given in (x.tolist(), memoryview(x)):
            numpy.testing.assert_allclose(hone.run("rms_norm", given, memoryview(w)), norm(x, w), rtol=1e-5)
        y = numpy.zeros_like(x)
        hone.run("rms_norm", x.tolist(), w, y=memoryview(y))
        numpy.testing.assert_allclose(y, norm(x, w), rtol=1e-5)
        with self.assertRaisesRegex(Exception, "y is a result and must be an array that can be written, got a list"):
            hone.run("rms_norm", x, w, y=[[0.0] * 64] * 8)
        for bad in ([[1.0], [1.0, 2.0]], ["a", "b"]):
            with self.assertRaisesRegex(TypeError, "a list"):
                hone.run("softmax", bad)

    def test_a_plan_outlives_its_runtime(self):
        x, w = arrays()
        with hone.Runtime(store="none") as runtime:
            plan = runtime.bind("rms_norm", x, w)
        del runtime
        gc.collect()
        numpy.testing.assert_allclose(plan(x, w), norm(x, w), rtol=1e-5)


IN_A_LOCALE_WITH_COMMAS = """
import locale, sys
import numpy, hone
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
x, w = numpy.ones((8, 64), numpy.float32), numpy.ones(64, numpy.float32)
with hone.Runtime(store=sys.argv[1]) as runtime:
    runtime.tune("rms_norm(f32[8,64], f32[64])", seconds=1, evaluations=8, progress=False)
    print(runtime.explain("rms_norm", x, w))
    print(runtime.explain("rms_norm", x, w, json=True))
"""


class Locale(HoneTest):
    def test_what_is_stored_and_said_has_points_in_a_program_whose_locale_has_commas(self):
        try:
            subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.folder / "de_DE.UTF-8"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("HONE_REQUIRE"):
                raise
            self.skipTest(f"localedef makes no locale de_DE.UTF-8: {error}")
        done = subprocess.run([sys.executable, "-B", "-c", IN_A_LOCALE_WITH_COMMAS, self.store], capture_output=True, text=True,
                              env={**os.environ, "LOCPATH": str(self.folder), "LC_ALL": "de_DE.UTF-8"})
        self.assertEqual(done.returncode, 0, done.stderr)
        comma = r"[0-9],[0-9]+ (?:ns|us|ms|s|%|of)\b"
        self.assertRegex(done.stdout, r"[0-9]\.[0-9]{3} us")
        self.assertNotRegex(done.stdout, comma)
        with contextlib.closing(sqlite3.connect(self.store.removeprefix("sqlite:"))) as store:
            stored = "\n".join(store.iterdump())
        self.assertRegex(stored, r'"load":"[0-9]+\.[0-9]+"')
        self.assertNotRegex(stored, r'"[a-z_]+":"[0-9]+,[0-9]+')
        self.assertNotRegex(stored, comma)
