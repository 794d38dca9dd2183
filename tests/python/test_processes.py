"""Threads, coroutines and other processes, with the package as programs use it; what pickles, and what says why not."""

import asyncio
import concurrent.futures
import logging
import multiprocessing
import os
import pickle
import sys
import threading

import numpy

import hone
from support import QUICK, HoneTest, arrays, norm

THREADS = 16


def with_policy(call):
    """A link of a chain that a module has."""
    return None


def is_right(rows, context=None):
    x, w = arrays(rows, 64)
    with context if context is not None else hone.policy("heuristic"):
        return bool(numpy.allclose(hone.run("rms_norm", x, w), norm(x, w), rtol=1e-4))


def kernel_of(context, rows):
    """In another process."""
    x, w = arrays(rows, 64)
    with context:
        return hone.decide("rms_norm", x, w).kernel, is_right(rows)


class Threads(HoneTest):
    def together(self, work):
        """16 threads that start at once; what each gave."""
        ready = threading.Barrier(THREADS)

        def start(number):
            ready.wait()
            return work(number)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return [*pool.map(start, range(THREADS))]

    def test_sixteen_run_the_same_and_different_calls(self):
        self.assertEqual(self.together(lambda number: all(is_right(rows) for rows in (8, number + 1, 8))), [True] * THREADS)

    def test_sixteen_share_a_plan_and_bind_their_own(self):
        x, w = arrays(8, 64)
        shared = hone.bind("rms_norm", x, w)

        def work(number):
            own, mine = hone.bind("rms_norm", x, w), x * (number + 1)
            return all(numpy.allclose(plan(mine, w), norm(mine, w), rtol=1e-4) for plan in (shared, own) for _ in range(20))

        self.assertEqual(self.together(work), [True] * THREADS)

    def test_sixteen_that_tune_one_call_hold_one_contest(self):
        x, w = arrays(8, 64)
        results = self.together(lambda number: hone.tune("rms_norm", x, w, **{**QUICK, "seconds": 0.5, "evaluations": 3}))
        self.assertEqual({(one[0].kernel, str(one[0].config), one[0].time_ns) for one in results},
                         {(results[0][0].kernel, str(results[0][0].config), results[0][0].time_ns)})
        self.assertIn(hone.decide("rms_norm", x, w).source, ("memory", "store"))

    def test_a_context_of_one_thread_is_no_other_s(self):
        x, w = arrays(8, 64)

        def work(number):
            with hone.override("rms_norm", "portable" if number % 2 else "reference"):
                return {hone.decide("rms_norm", x, w).kernel for _ in range(20)}

        self.assertEqual(self.together(work), [{"portable" if number % 2 else "reference"} for number in range(THREADS)])


class Coroutines(HoneTest):
    def test_calls_in_coroutines_and_in_an_executor_beside_them(self):
        async def one(number):
            loop = asyncio.get_running_loop()
            with hone.override("rms_norm", "portable" if number % 2 else "reference"):
                await asyncio.sleep(0)
                x, w = arrays(8, 64)
                here = hone.decide("rms_norm", x, w).kernel
                there = await loop.run_in_executor(None, is_right, number + 1)
                beside = await asyncio.to_thread(lambda: hone.decide("rms_norm", x, w).kernel)  # which takes the context along
                return here, there, beside

        async def all_of_them():
            return await asyncio.gather(*(one(number) for number in range(THREADS)))

        names = ["portable" if number % 2 else "reference" for number in range(THREADS)]
        self.assertEqual(asyncio.run(all_of_them()), [(name, True, name) for name in names])

    def test_tuning_in_an_executor_leaves_the_loop_free(self):
        x, w = arrays(8, 64)

        async def tuned():
            turns, work = 0, asyncio.get_running_loop().run_in_executor(None, lambda: hone.tune("rms_norm", x, w, **QUICK))
            while not work.done():
                turns += 1
                await asyncio.sleep(0.005)
            return turns, await work

        turns, result = asyncio.run(tuned())
        self.assertGreater(turns, 3)
        self.assertEqual(len(result), 1)


class Processes(HoneTest):
    def test_contexts_and_results_go_to_processes_that_fork_and_spawn(self):
        x, w = arrays(8, 64)
        result = hone.tune("rms_norm", x, w, kernel="portable", **QUICK)
        row = result[0]
        entry = {"algorithm": "rms_norm", "key": row.key, "kernel": "reference"}
        contexts = {"override": (hone.override("rms_norm", "reference"), "reference"), "result": (result, "portable"),
                    "overlay": (hone.overlay([entry]), "reference"), "both": (hone.policy("heuristic") | result, "portable"),
                    "links": (hone.context(links={"store": None, "transfer": with_policy}, override={"rms_norm": "portable"}), "portable")}
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                for name, (context, kernel) in contexts.items():
                    with self.subTest(name, method=method):
                        self.assertEqual(pool.apply_async(kernel_of, (context, 8)).get(120), (kernel, True))

    def test_a_child_tunes_what_its_parent_has_tuned_before(self):
        x, w = arrays(8, 64)
        hone.tune("rms_norm", x, w, **QUICK)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if hone.decide("rms_norm", x, w).source in ("store", "memory") and len(hone.tune("softmax(f32[4,8])", **QUICK)) == 1 else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_what_does_not_pickle_says_what_to_do(self):
        x, w = arrays(8, 64)
        for thing, words in ((hone.bind("rms_norm", x, w), "bind it there"), (hone.call("rms_norm", x, w), "pass its text on"), (self.runtime, "open one there"), (hone.Store("memory:"), "open it there"),
                             (hone.context(links={"store": lambda call: None}), "pickle")):
            with self.subTest(thing), self.assertRaisesRegex((TypeError, pickle.PicklingError, AttributeError), words):
                pickle.dumps(thing)

    def test_counts_and_errors_pickle(self):
        is_right(8)
        stats = pickle.loads(pickle.dumps(hone.stats()))
        self.assertGreaterEqual(len(stats), 1)
        self.assertEqual(stats.rows, hone.stats().rows)
        with self.assertRaises(hone.InvalidArgumentError) as caught:
            hone.run("rms_norm")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), str(again)), (hone.InvalidArgumentError, str(caught.exception)))


class Waiting(HoneTest):
    def test_a_first_run_that_takes_long_is_told_of_while_it_waits(self):
        from hone import _logging

        before, _logging._AFTER = _logging._AFTER, 0.0
        self.addCleanup(setattr, _logging, "_AFTER", before)

        @hone.algorithm("t_waits(x: f32[n]) -> y: f32[n]")
        def reference(x):
            return x * 2

        @hone.kernel("t_waits")
        def doubled(x):
            return x + x

        logging.getLogger("hone").setLevel(logging.INFO)
        self.addCleanup(logging.getLogger("hone").setLevel, logging.NOTSET)
        with self.assertLogs("hone", logging.INFO) as caught:
            hone.run("t_waits", numpy.ones(8, numpy.float32))
        self.assertTrue([line for line in caught.output if "first run of doubled: t_waits(f32[8])" in line], caught.output)
        self.assertEqual(_logging._waits, {})

    def test_at_a_terminal_it_is_one_line_of_standard_error(self):
        import pty
        import subprocess

        main, side = pty.openpty()
        self.addCleanup(os.close, main)
        code = "from hone import _logging; _logging._say_wait('first run of a: b(f32[8])')"
        subprocess.run([sys.executable, "-c", code], stderr=side, check=True, timeout=60)
        os.close(side)
        self.assertRegex(os.read(main, 1000).decode(), r"^hone: first run of a: b\(f32\[8\]\): it is compared with the reference[^\n]*\r\n$")
