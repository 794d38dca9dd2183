"""Contexts, tuning, results, the registry."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import ctypes
import hashlib
import io
import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import unittest.mock

import numpy

import hone
from hone import tuning
from support import QUICK, HoneTest, arrays, norm, tune_elsewhere, within_a_minute

NORM = "rms_norm(f32[8,64], f32[64])"


def kernel():
    return hone.decide(NORM).kernel


class Contexts(HoneTest):
    def test_an_override_holds_inside_and_nowhere_else(self):
        before = kernel()
        with hone.override("rms_norm", "portable"):
            config = dict(hone.decide(NORM).config, threads=1)
        with hone.override("rms_norm", "portable", config):
            self.assertEqual((kernel(), hone.decide(NORM).source), ("portable", "override"))
            self.assertEqual(hone.decide(NORM).config, config)
            x, w = arrays()
            plan = hone.bind("rms_norm", x, w)
            self.assertEqual(plan.kernel, "portable")
            with hone.override("rms_norm", "reference"):
                self.assertEqual(kernel(), "reference")
            self.assertEqual(kernel(), "portable")
        self.assertEqual(kernel(), before)

    def test_the_policy_holds_inside(self):
        with hone.policy("fail"):
            with self.assertRaisesRegex(hone.NotFoundError, "policy fail"):
                hone.decide(NORM)
        hone.decide(NORM)

    def test_an_overlay_of_entries_answers_its_key(self):
        call = hone.call("rms_norm", ("f32", (8, 64)), ("float32", (64,)))
        with hone.overlay([{"algorithm": "rms_norm", "key": call.key, "kernel": "portable"}]):
            self.assertEqual((kernel(), hone.decide(NORM).source), ("portable", "overlay"))
            self.assertNotEqual(hone.decide("rms_norm(f32[9,64], f32[64])").source, "overlay")
        with self.assertRaisesRegex(TypeError, "no kernal"):
            hone.overlay([{"algorithm": "rms_norm", "kernal": "portable"}])

    def test_contexts_are_joined_and_entered_again(self):
        both = hone.override("rms_norm", "portable") | hone.override("softmax", "reference")
        for _ in range(2):
            with both, both:
                self.assertEqual(kernel(), "portable")
                self.assertEqual(hone.decide("softmax(f32[8,64])").kernel, "reference")
            config = hone.decide(NORM).config
        with hone.context(override={"rms_norm": ("portable", config)}, policy="heuristic", overlay=[]):
            self.assertEqual(hone.decide(NORM).config, config)

    def test_contexts_that_say_the_same_have_the_same_digest(self):
        def digest(context):
            with context:
                return hone._contexts.digest()

        one = hone.override("rms_norm", "portable")
        self.assertEqual(digest(one), digest(one))
        self.assertEqual(digest(one), digest(hone.override("rms_norm", "portable")))
        self.assertEqual(digest(hone.context()), 0)
        self.assertEqual(hone._contexts.digest(), 0)
        def mine(call): return None

        links = [hone.context(links={"store": own}) for own in (mine, lambda call: None, lambda call: "portable", None)]
        self.assertEqual(digest(links[0]), digest(hone.context(links={"store": mine})))
        self.assertEqual(len({digest(context) for context in (*links, hone.context(links={"memory": mine}))}), 5)
        others = [hone.override("rms_norm", "reference"), hone.override("softmax", "portable"), hone.policy("fail"),
                  one | hone.policy("fail")]
        self.assertEqual(len({digest(context) for context in (one, *others)}), 5)

    def test_a_link_is_left_out_or_a_function_stands_for_it(self):
        asked = []

        def rows_of_the_table(call):
            asked.append(call.text)
            return "portable" if "[8,64]" in call.text else None

        call = hone.call("rms_norm", ("f32", (8, 64)), ("float32", (64,)))
        with hone.overlay([{"algorithm": "rms_norm", "key": call.key, "kernel": "avx2"}]):
            with hone.context(links={"overlay": None}):
                self.assertNotEqual(hone.decide(NORM).source, "overlay")
        x, w = arrays()
        with hone.context(links={"store": rows_of_the_table}) as entered:
            for _ in range(3):
                hone.run("rms_norm", x, w)
            self.assertEqual(asked, [NORM])  # a hit asks nobody
            found = hone.decide(NORM)
            self.assertEqual((found.kernel, found.source, found.verified), ("portable", "store", False))
            self.assertEqual(hone.decide("rms_norm(f32[9,64], f32[64])").source, "heuristic")
            self.assertIn("answered by store (the program's test_choose.Contexts", hone.explain(NORM))
            with hone.override("rms_norm", "reference"), entered:
                self.assertEqual(kernel(), "reference")
        self.assertNotEqual(kernel(), "portable")

    def test_a_function_may_give_a_config_and_ask_the_chain_that_it_has_changed(self):
        def with_one_thread(call):
            found = call.decide()
            seen.append(found.source)
            return found.kernel, dict(found.config, threads=1)

        seen = []
        with hone.override("rms_norm", "portable"), hone.context(links={"override": with_one_thread}):
            self.assertEqual(hone.decide(NORM).config["threads"], 1)
            self.assertEqual(hone.decide(NORM).source, "override")
        self.assertEqual(set(seen), {"override"})

    def test_what_is_no_answer_of_a_link_is_refused_with_what_is_one(self):
        for answer in (5, ("portable",), ("portable", None, 1), {"kernel": "portable"}, (5, None)):
            with hone.context(links={"store": lambda call: answer}), self.assertRaisesRegex(TypeError, "a link must return a kernel's name"):
                hone.decide(NORM)
        with self.assertRaisesRegex(TypeError, "links must be a mapping"):
            hone.context(links=["store"])

    def test_what_a_link_raises_is_the_calls(self):
        def lost(call):
            raise KeyError("my table")

        x, w = arrays()
        with hone.context(links={"memory": lost}):
            for ask in (lambda: hone.run("rms_norm", x, w), lambda: hone.decide(NORM),
                        lambda: hone.bind("rms_norm", x, w)):
                with self.assertRaisesRegex(KeyError, "my table"):
                    ask()
            self.assertIn("KeyError('my table')", hone.explain(NORM))
            with self.assertRaises(hone.InvalidArgumentError):
                hone.run("rms_norm", x[:, :3], w)  # and not what was raised before
        with hone.context(links={"memory": lambda call: "nobody"}):
            with self.assertRaisesRegex(hone.InvalidArgumentError, "kernel 'nobody', which rms_norm does not have"):
                hone.run("rms_norm", x, w)
        with hone.context(links={"memory": lambda call: 7}), self.assertRaises(TypeError):
            hone.run("rms_norm", x, w)
        with self.assertRaisesRegex(ValueError, "unknown link 'disk'"):
            with hone.context(links={"disk": None}):
                pass
        with self.assertRaisesRegex(TypeError, "leaves it out, or a function"):
            hone.context(links={"memory": "portable"})

    def test_threads_ask_one_function_at_once(self):
        with hone.context(links={"memory": lambda call: "portable"}):
            x, w = arrays()

            def often(start):
                for rows in range(1 + start, 60, 4):
                    hone.run("rms_norm", x[:1].repeat(rows, 0), w)
                return hone.decide("rms_norm", x[:1].repeat(start + 1, 0), w).kernel

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                found = [pool.submit(contextvars.copy_context().run, often, start) for start in range(4)]
                self.assertEqual({future.result() for future in found}, {"portable"})

    def test_links_that_are_left_out_make_policies(self):
        with hone.context(policy="tune", links={"autotune": None}):  # as the original's allow_autotune=False
            self.assertEqual(hone.decide(NORM).source, "heuristic")
        with hone.context(policy="tune", links={"autotune": None, "heuristic": None}):
            with self.assertRaisesRegex(hone.NotFoundError, "heuristic: the context leaves it out"):
                hone.decide(NORM)

    def test_a_miss_may_be_tuned_by_the_programs_own_tuner(self):
        def takes_portable(tuning):
            kernel = next(kernel for kernel in tuning.kernels if kernel.name == "portable")
            kernel.measure(kernel.default)
            return kernel, kernel.default

        def tuned(call):
            decision, = hone.tune(call.text, tuner=takes_portable, **QUICK)
            return decision.kernel, decision.config

        x, w = arrays()
        with hone.context(policy="tune", links={"autotune": tuned}):
            for _ in range(2):
                numpy.testing.assert_allclose(hone.run("rms_norm", x, w), norm(x, w), rtol=1e-4)
            found = hone.decide(NORM)
        self.assertEqual((found.kernel, found.source, found.verified, found.tuner),
                         ("portable", "memory", True, "takes_portable"))

    def test_what_is_tuned_need_not_be_stored(self):
        with hone.context(persist=False), hone.Store(self.store) as store:
            hone.tune(NORM, **QUICK)
            self.assertEqual((hone.decide(NORM).source, len(store)), ("memory", 0))
            with hone.context(persist=True):
                hone.tune("rms_norm(f32[9,64], f32[64])", **QUICK)
            self.assertEqual(len(store), 1)
            with hone.Runtime(store=self.store, persist=False) as runtime:
                runtime.tune("rms_norm(f32[10,64], f32[64])", **QUICK)
            self.assertEqual(len(store), 1)

    def test_an_exception_leaves_the_context(self):
        with self.assertRaises(KeyError), hone.override("rms_norm", "portable"):
            raise KeyError
        self.assertNotEqual(hone.decide(NORM).source, "override")

    def test_what_was_not_entered_is_not_left(self):
        with self.assertRaisesRegex(RuntimeError, "none was entered"):
            hone.policy("fail").__exit__(None, None, None)

    def test_a_subinterpreter_is_refused(self):
        code = f"import sys; sys.path[:0] = {sys.path!r}; import hone"
        # Python's own module for them is private and has had three names.
        script = ("import sys\n"
                  "for name in ('_interpreters', '_xxsubinterpreters'):\n"
                  "    try: interpreters = __import__(name)\n"
                  "    except ImportError: continue\n"
                  "    print(interpreters.run_string(interpreters.create(), sys.argv[1]))\n"
                  "    break\n")
        out = subprocess.run([sys.executable, "-B", "-c", script, code], capture_output=True, text=True)
        self.assertRegex(out.stdout + out.stderr, "ImportError.*subinterpreter|subinterpreters")

    def test_a_wrong_override_fails_where_it_is_made_or_followed(self):
        with self.assertRaises(hone.HoneError):
            with hone.override("rms_norm", "nobody"):
                hone.decide(NORM)
        self.assertNotEqual(hone.decide(NORM).source, "override")

    def test_threads_start_with_none_and_take_what_is_captured(self):
        with hone.override("rms_norm", "portable"):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                self.assertNotEqual(pool.submit(kernel).result(), "portable")
                self.assertEqual(pool.submit(contextvars.copy_context().run, kernel).result(), "portable")
                self.assertNotEqual(pool.submit(kernel).result(), "portable")

    def test_coroutines_have_their_own(self):
        async def one(name, turns):
            seen = set()
            with hone.override("rms_norm", name):
                for _ in range(turns):
                    await asyncio.sleep(0)
                    seen.add(kernel())
            return seen

        async def all_of_them():
            return await asyncio.gather(one("portable", 5), one("reference", 7), one("portable", 3))

        self.assertEqual(asyncio.run(all_of_them()), [{"portable"}, {"reference"}, {"portable"}])


class Tune(HoneTest):
    def test_a_misspelt_option_beside_a_call_text_is_named(self):
        with self.assertRaisesRegex(TypeError, r"takes no others: got second; did you mean seconds\?"):
            hone.tune("softmax(f32[16,64])", second=1)
        with self.assertRaisesRegex(TypeError, r"takes no others: got scale$"):
            hone.tune("softmax(f32[16,64])", scale=2.0)

    def test_a_context_prints_what_it_changes(self):
        entry = {"algorithm": "rms_norm", "key": "26116b6da6aaf10e", "kernel": "avx2"}
        for context, words in (
            (hone.override("softmax", "portable", {"unroll": 2}, platform="native", store=True), 'override softmax = native/portable {"unroll": 2}, stored'),
            (hone.policy("fail") | hone.override("softmax", "portable"), "policy fail, override softmax = portable"),
            (hone.context(links={"transfer": None}, persist=False), "link transfer left out, persist False"),
            (hone.overlay([entry]), "overlay of 1 decision"),
        ):
            self.assertEqual(repr(context), f"<hone.Context: {words}>")
            self.assertEqual(repr(pickle.loads(pickle.dumps(context))), repr(context))

    def test_a_result_prints_as_a_table_shows_in_a_notebook_and_goes_through_pickle(self):
        result = hone.tune("softmax(f32[16,64])", **QUICK)
        head, row = result.table().splitlines()
        self.assertRegex(head, r"^call +kernel +config +time")
        self.assertRegex(row, rf"^softmax\(f32\[16,64\]\) +\w+/{result[0].kernel} .*(ns|us|ms)")
        call, head, *rows = str(result).splitlines()
        self.assertEqual(call, "softmax(f32[16,64])")
        self.assertRegex(head, r"^  kernel +config +time +spread +tried")
        tried = [row["kernel"] for row in json.loads(result.to_json())["entries"][0]["evidence"]["kernels"] if row["tried"]]
        self.assertGreater(len(tried), 1)
        for kernel, row in zip(tried, rows):
            self.assertRegex(row, rf"^{'[*]' if kernel == result[0].kernel else ' '} {kernel} .*( ns| us| ms|rejected)")
        self.assertRegex(str(result), rf"\n  chosen {result[0].kernel}[:;,]")
        shown = result._repr_html_()
        self.assertIn("<iframe srcdoc=", shown)
        static = shown[:shown.index("<iframe")]  # without scripts and styles
        self.assertNotIn("<script", static)
        self.assertTrue(all(f">{kernel}</td>" in static for kernel in tried))
        self.assertEqual(static.count("<svg"), sum(bool(re.search(r" (ns|us|ms|s)(\s|$)", row)) for row in rows[:len(tried)]))
        again = pickle.loads(pickle.dumps(result))
        self.assertEqual([one.kernel for one in again], [result[0].kernel])
        with again:
            self.assertEqual(hone.decide("softmax(f32[16,64])").kernel, result[0].kernel)
        self.assertLessEqual({*hone.__all__, "list"}, set(dir(hone)))
        self.assertFalse({"Any", "Iterable", "Mapping", "annotations", "_hone", "Kernels"} & set(dir(hone)))
        names: dict = {}
        exec("from hone import *", names)
        self.assertFalse({"list", "print", "open"} & set(names))

    def test_what_is_tuned_answers(self):
        x, w = arrays()
        result = hone.tune("rms_norm", x, w, **QUICK)
        self.assertEqual([decision.call for decision in result], [NORM])
        decision = hone.decide("rms_norm", x, w)
        self.assertEqual((decision.source, decision.verified), ("memory", True))
        self.assertEqual(decision.kernel, result[0].kernel)
        self.assertGreater(result[0].time_ns, 0)
        with hone.Runtime(store=self.store) as other:
            self.assertEqual(other.decide("rms_norm", x, w).source, "store")
        document = json.loads(hone.explain(NORM, json=True))
        self.assertEqual(document["source"], "memory")
        self.assertIn(result[0].kernel, hone.explain("rms_norm", x, w))

    def test_a_tuner_of_the_programs_own_chooses_what_wins(self):
        seen = []

        def slowest(tuning):
            seen.append((tuning.call, tuning.device, tuning.evaluations, tuning.seconds > 0))
            kernel = next(kernel for kernel in tuning.kernels if kernel.name == "portable")
            self.assertEqual(kernel.platform, "native")
            tried = [(kernel.measure(config).time_ns, config) for config, _ in zip(kernel.configs(), range(3))]
            self.assertEqual(kernel.measure(tried[0][1]).time_ns, tried[0][0])  # it is not run again
            seen.append(max(tried, key=lambda pair: pair[0])[1])
            seen.append(tuning)
            return kernel, seen[1]

        decision, = hone.tune(NORM, tuner=slowest, **QUICK)
        self.assertEqual(seen[0][0], NORM)
        self.assertIn(seen[0][1], [device["fingerprint"] for device in self.runtime.devices()])
        self.assertEqual((decision.kernel, decision.config, decision.tuner), ("portable", seen[1], "slowest"))
        self.assertTrue(decision.verified)
        self.assertIn("proposed by the program's tuner slowest", hone.explain(NORM))
        with self.assertRaisesRegex(RuntimeError, "the contest has gone on"):
            seen[2].choose(*seen[2].kernels[:1], {})

    def test_a_tuner_that_goes_on_until_the_budget_is_spent_has_done_its_work(self):
        def everything(tuning):
            for kernel in tuning.kernels:
                for config in kernel.configs():
                    kernel.measure(config)

        decision, = hone.tune(NORM, tuner=everything, **dict(QUICK, evaluations=4))
        self.assertEqual((decision.measured, decision.tuner), (4, "everything"))

    def test_what_a_tuner_raises_ends_the_contest(self):
        def lost(tuning):
            raise KeyError("my model")

        with self.assertRaisesRegex(KeyError, "my model"):
            hone.tune(NORM, tuner=lost, **QUICK)
        self.assertFalse(hone.decide(NORM).verified)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "never tried"):
            hone.tune(NORM, tuner=lambda tuning: (tuning.kernels[-1], tuning.kernels[-1].default), **QUICK)
        with self.assertRaisesRegex(TypeError, "None or a pair of a kernel and a config"):
            hone.tune(NORM, tuner=lambda tuning: tuning.kernels[-1], **QUICK)
        with self.assertRaisesRegex(TypeError, "a tuner must be a callable"):
            hone.tune(NORM, tuner="mine", **QUICK)

    def test_a_tuner_is_asked_in_its_own_thread_alone(self):
        errors = []

        def elsewhere(tuning):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                errors.append(pool.submit(lambda: tuning.seconds).exception())

        hone.tune(NORM, tuner=elsewhere, **QUICK)
        self.assertRegex(str(errors[0]), "in the thread that it runs in")

    def test_the_openblas_of_the_imported_numpy_competes_and_keeps_its_threads(self):
        # Nothing names it, and the worker, which measures, has imported nothing.
        file, = (pathlib.Path(numpy.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_-*.so")
        threads = ctypes.CDLL(str(file)).scipy_openblas_get_num_threads64_
        x, before = numpy.ones((48, 48), numpy.float32), threads()
        with hone.tune("matmul", x, x, kernel="numpy_openblas", store=False, **QUICK) as result:
            self.assertEqual([decision.kernel for decision in result], ["numpy_openblas"])
            self.assertTrue((hone.run("matmul", x, x) == x @ x).all())
        with hone.override("matmul", "numpy_openblas", {"threads": 1 + (before == 1)}):
            self.assertTrue((hone.run("matmul", x, x) == x @ x).all())
        self.assertEqual(threads(), before)

    def test_options_and_scalars_are_told_apart(self):
        x, w = arrays()
        result = hone.tune("rms_norm", x, w, eps=0.25, kernel="portable", store=False, **QUICK)
        self.assertNotIn("eps", result[0].call)  # it does not change speed: one call serves every eps
        self.assertEqual(result[0].kernel, "portable")
        with result:
            self.assertEqual([hone.decide("rms_norm", x, w, eps=eps).kernel for eps in (0.25, 0.5)], ["portable"] * 2)
            plans = {eps: hone.bind("rms_norm", x, w, eps=eps) for eps in (0.25, 2.0, 1e-6)}
            for eps in (0.25, 2.0, 1e-6, 7.0, 0.25):
                numpy.testing.assert_allclose(hone.run("rms_norm", x, w, eps=eps), norm(x, w, eps), rtol=1e-4)
                if eps in plans:
                    self.assertEqual(plans[eps].kernel, "portable")
        with hone.Runtime(store=self.store) as other:
            self.assertNotEqual(other.decide("rms_norm", x, w, eps=0.25).source, "store")
        for wrong, words in (({"isolation": "none"}, "worker"), ({"second": 1}, "no parameter 'second'"),
                             ({"seconds": "x"}, "seconds must be a number of 0 .* or more, got 'x'"), ({"wait_seconds": -1}, "wait_seconds must be .*, got -1"),
                             ({"expected_calls": float("nan")}, "expected_calls must be .*, got nan"), ({"evaluations": -1}, "evaluations and patience"),
                             ({"patience": 1 << 40}, "evaluations and patience"), ({"progress": 3}, "progress must be a callable")):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                hone.tune("rms_norm", x, w, **wrong)

    def test_a_result_is_a_context_and_goes_through_json(self):
        result = hone.tune(NORM, store=False, kernel="portable", **QUICK)
        path = self.folder / "result.json"
        result.save(path)
        with hone.Runtime(store="none") as other:
            before = hone.use(other)
            try:
                again = hone.Result.load(path)
                self.assertEqual(json.loads(again.to_json())["entries"], json.loads(result.to_json())["entries"])
                self.assertNotEqual(kernel(), "portable")
                with again:
                    self.assertEqual((kernel(), hone.decide(NORM).source), ("portable", "overlay"))
                    digest = hone._contexts.digest()
                with result:
                    self.assertEqual(hone._contexts.digest(), digest)
                self.assertNotEqual(kernel(), "portable")
                softmax = hone.tune("softmax(f32[4,32])", store=False, **QUICK)
                merged = again.merge(softmax)
                self.assertEqual(len(merged), 2)
                merged.store(f"sqlite:{self.folder}/other.db")
            finally:
                hone.use(before)
        with hone.Runtime(store=f"sqlite:{self.folder}/other.db") as stored:
            self.assertEqual(stored.decide(NORM).kernel, "portable")
        self.assertIn("<html", result.report())
        with self.assertRaises(hone.HoneError):
            hone.Result.from_json("{")

    def test_recorded_calls_are_tuned(self):
        x, w = arrays()
        self.runtime.record(True)
        for _ in range(3):
            hone.run("rms_norm", x, w)
        rows = self.runtime.recorded()
        self.assertEqual([(row["algorithm"], row["call"]) for row in rows], [("rms_norm", NORM)])
        self.assertEqual([decision.call for decision in hone.tune(**QUICK)], [NORM])

    def test_bound_plans_are_recorded(self):
        x, w = numpy.ones((4, 8), numpy.float32), numpy.ones(8, numpy.float32)
        self.runtime.record(True)
        plan = hone.bind("rms_norm", x, w)
        for _ in range(1000):
            plan(x, w)
        row, = self.runtime.recorded()
        self.assertIn(row["count"], (1000, 1001))  # the miss that bound it was noted, too
        self.assertEqual(row["kernel"], plan.kernel)

    def test_what_a_script_recorded_is_there_when_it_has_ended(self):
        script = ("import hone, numpy, sys; x, w = numpy.ones((4, 8), 'f'), numpy.ones(8, 'f'); {}\n"
                  "plan = hone.bind('rms_norm', x, w)\n"
                  "for _ in range(1000): plan(x, w); hone.run('softmax', x)")
        for text in ("", "rt = hone.Runtime(store=sys.argv[1]); hone.use(rt); rt.record(True)"):
            store = f"sqlite:{self.folder}/script{len(text)}.db"
            subprocess.run([sys.executable, "-c", script.format(text), store], check=True,
                           env={**os.environ, "HONE_RECORD": "1", "HONE_STORE": store if not text else "none"})
            with hone.Runtime(store=store) as runtime:
                counts = {row["algorithm"]: row["count"] for row in runtime.recorded()}
            self.assertEqual((counts["softmax"], counts["rms_norm"] >= 1000), (1000, True))

    def test_what_another_process_tunes_is_taken_up(self):
        for store in (self.store, f"json:{self.folder}/decisions"):
            with self.subTest(store), hone.Runtime(store=store) as runtime:
                self.addCleanup(hone.use, hone.use(runtime))
                x, w = numpy.ones((4, 64), numpy.float32), numpy.ones(64, numpy.float32)
                runtime.record(True)
                hone.run("rms_norm", x, w)
                plan = hone.bind("rms_norm", x, w)
                self.assertEqual(runtime.recorded()[0]["answered"], "heuristic")
                tune_elsewhere(store, plan.text)
                self.assertTrue(within_a_minute(lambda: not plan.current))
                hone.run("rms_norm", x, w)
                row, = runtime.recorded()
                self.assertIn(row["answered"], ("store", "memory"))
                self.assertTrue(row["decided"])
                self.assertTrue(hone.bind("rms_norm", x, w).current)

    def test_progress_is_told_and_its_exception_ends_the_contest(self):
        seen = []
        hone.tune(NORM, **dict(QUICK, progress=seen.append))
        self.assertTrue(seen)
        self.assertEqual(seen[-1]["call"], NORM)

        def fail(progress):
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            hone.tune("softmax(f32[64,64])", **dict(QUICK, progress=fail))

    def test_a_signal_ends_the_contest(self):
        def interrupt(progress):
            os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            hone.tune("softmax(f32[64,64])", seconds=30, evaluations=500, progress=interrupt)

    def test_tqdm_is_used_where_it_is(self):
        bars = []

        class Bar:
            def __init__(self, **options):
                self.options, self.closed, self.n = options, False, 0
                bars.append(self)

            def set_postfix_str(self, text, refresh):
                self.text = text

            def refresh(self):
                pass

            def close(self):
                self.closed = True

        tqdm = unittest.mock.Mock(tqdm=Bar)
        modules = {"tqdm": tqdm, "tqdm.auto": tqdm}
        with unittest.mock.patch.dict(sys.modules, modules):
            hone.tune(NORM, **dict(QUICK, progress=True))
            self.assertEqual([bar.options["desc"] for bar in bars], [NORM])
            self.assertTrue(bars[0].closed and bars[0].n > 0)
            hone.tune("softmax(f32[4,32])", seconds=1, evaluations=4)  # no terminal: no bar
            self.assertEqual(len(bars), 1)
            with unittest.mock.patch.dict(sys.modules, {"ipykernel": unittest.mock.Mock()}):  # a notebook
                hone.tune("softmax(f32[4,48])", seconds=1, evaluations=4)
            self.assertEqual(len(bars), 2)
        with unittest.mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}):
            with self.assertRaises(ImportError):
                hone.tune(NORM, **dict(QUICK, progress=True))

    def test_what_a_contest_waits_for_is_told_once_where_somebody_sees_it(self):
        step = {"call": NORM, "done": 0, "total": 1, "best_ns": 0.0, "best_kernel": None, "waiting": "process 7, which measures"}
        with unittest.mock.patch.dict(sys.modules, {"ipykernel": unittest.mock.Mock(), "tqdm": None, "tqdm.auto": None}):
            with contextlib.redirect_stderr(io.StringIO()) as told, tuning.watched({}) as options:
                for _ in range(3):
                    options["progress"](step)
                options["progress"](dict(step, waiting=None))
            with tuning.watched({"progress": False}) as options:
                self.assertNotIn("progress", options)
        self.assertEqual(told.getvalue(), f"hone: {NORM}: waits for process 7, which measures\n")
        with unittest.mock.patch.object(sys, "stderr", io.StringIO()), tuning.watched({}) as options:
            self.assertNotIn("progress", options)

    def test_calls_go_on_while_another_thread_tunes(self):
        x, w = arrays()
        ran = threading.Event()

        def wait(progress):
            self.assertTrue(ran.wait(60))

        thread = threading.Thread(target=hone.tune, args=("softmax(f32[16,16])",), kwargs=dict(QUICK, progress=wait))
        thread.start()
        hone.run("rms_norm", x, w)
        ran.set()
        thread.join()

    def test_a_lowered_program_is_tuned(self):
        program = pathlib.Path(__file__).parents[2] / "examples" / "programs" / "many.debug.mlir"
        operations = self.runtime.read(program).operations
        self.assertEqual(len(operations), 9)
        result = hone.offline(program, seconds=0.5, evaluations=4, progress=False)
        # A scale does not change speed: what is tuned serves every value of it.
        self.assertEqual({decision.call for decision in result},
                         {row["call"].replace(", softmax_scale=0.125", "") for row in operations if row["tunable"]})


class Stores(HoneTest):
    def setUp(self):
        super().setUp()
        self.result = hone.tune(NORM, **QUICK)
        self.opened = hone.Store(self.store)

    def test_a_store_lists_what_is_decided(self):
        with self.opened as store:
            decision, = store
            self.assertEqual((decision.call, decision.kernel, decision.config),
                             (NORM, self.result[0].kernel, self.result[0].config))
            self.assertEqual((decision.verified, decision.regime, decision.source), (True, "warm", "autotune"))
            self.assertEqual(decision.time_ns, self.result[0].time_ns)
            self.assertEqual(decision.evidence["verified_against"], "reference")
            self.assertEqual((len(store), store.stat()["decisions"], store.url), (1, 1, self.store))
            self.assertEqual(store.get(NORM), decision)
            self.assertEqual(store.get(decision.key), decision)
            self.assertEqual(store.get(NORM, device=decision.device), decision)
            self.assertIsNone(store.get(NORM, device="another"))
            self.assertIsNone(store.get(decision.key, device="another"))
            self.assertIsNone(store.get("rms_norm(f32[9,64], f32[64])"))
            self.assertIsNone(store.get("0123456789abcdef"))
            with unittest.mock.patch.object(store, "export", side_effect=AssertionError("all of the store was read")):
                self.assertEqual((store.get(NORM), store.get(decision.key)), (decision, decision))
                self.assertIsNone(store.get("rms_norm(f32[9,64], f32[64])"))
            self.assertEqual(store.decisions(algorithm="softmax"), [])
            self.assertEqual(store.decisions(device="another"), [])
            self.assertIn(self.store, repr(store))
        with self.assertRaisesRegex(ValueError, "closed"):
            len(store)

    def test_a_store_finds_what_serves_a_call_too_by_each_of_its_names(self):
        found = self.opened.get("rms_norm(f32[8,64], f32[64], eps=0.25)")
        self.assertEqual((found.call, found), (NORM, self.opened.get(NORM)))
        array = {"dtype": "float32", "shape": [8, 64]}
        spec = json.dumps({"args_spec": [], "batch_axes": None, "kwargs_spec": {"eps": 0.25, "weight": {**array, "shape": [64]}, "x": array},
                           "method": None}, sort_keys=True, separators=(",", ":"))
        key = hashlib.sha256(spec.encode()).hexdigest()[:16]
        document = json.loads(self.result.to_json())
        document["aliases"] = [{"scheme": "ejkernel", "operation": "norm@v3", "foreign_key": "44136fa355b3678a", "foreign_spec": "{}",
                                "algorithm": "rms_norm", "version": "1", "key": key, "spec": spec}]
        label = "ejkernel_ops#norm@v3:44136fa355b3678a"
        with self.assertRaises(hone.NotFoundError):
            hone.decide(label)
        with hone.Result.from_json(json.dumps(document)):  # before a store knows it
            self.assertEqual((hone.decide(label).source, hone.decide(label).kernel), ("overlay", found.kernel))
            self.assertIn("eps=0.25", hone.explain(label))
            with self.assertRaises(hone.NotFoundError):
                hone.decide("norm@v4:44136fa355b3678a")
        with self.assertRaises(hone.NotFoundError):
            hone.decide(label)
        self.opened.import_(json.dumps(document).encode())
        for label in ("ejkernel_ops#norm@v3:44136fa355b3678a", "norm@v3:44136fa355b3678a", "44136fa355b3678a"):
            self.assertEqual(self.opened.get(label), found)
        self.assertIsNone(self.opened.get("norm@v4:44136fa355b3678a"))
        self.assertIsNone(self.opened.get(""))
        with self.assertRaisesRegex(TypeError, "a call text, a call key or a label"):
            self.opened.get(None)

    def test_a_decision_says_what_its_contest_left_open(self):
        document = json.loads(self.result.to_json())
        document["entries"][0]["evidence"].update({"undecided": "1 of 2 kernels was never tried", "disturbed": 0.25, "floor_ns": 3.5})
        decision, = hone.Result.from_json(json.dumps(document))
        self.assertEqual((decision.undecided, decision.disturbed, decision.floor_ns), ("1 of 2 kernels was never tried", 0.25, 3.5))
        self.assertEqual(decision.samples, document["entries"][0]["evidence"]["samples"])
        del document["entries"][0]["evidence"]["undecided"]
        self.assertEqual(hone.Result.from_json(json.dumps(document))[0].undecided, "")

    def test_documents_and_stores_go_into_stores(self):
        path = self.folder / "bundle.json"
        path.write_text(self.opened.export(measurements=True))
        other = hone.Store(f"json:{self.folder}/other")
        nothing = dict.fromkeys(("taken", "kept", "equal", "foreign", "refused"), 0)
        self.assertEqual(other.import_(path), {**nothing, "taken": 1})
        self.assertEqual(other.import_(path.read_bytes()), {**nothing, "equal": 1})
        self.assertEqual(other.decisions(), self.opened.decisions())
        memory = hone.Store("memory:")
        memory.put(self.result)
        self.assertEqual(memory.merge(other), {**nothing, "equal": 1})
        self.assertEqual(memory.merge(self.store), {**nothing, "equal": 1})
        self.assertEqual(json.loads(self.opened.export(format="ejkernel")), {})  # no operation of ejkernel's
        foreign = json.dumps({"cpu|cpu|flash_attention@v2|0123456789abcdef": {"block_m": 64}}).encode()
        self.assertEqual(memory.import_(foreign), {**nothing, "foreign": 1})
        self.assertEqual(json.loads(memory.export(format="ejkernel", file="flash_attention.json")), json.loads(foreign))

    def test_a_file_of_something_else_is_refused_and_left(self):
        path = self.folder / "notes.json"
        text = "no database, and longer than the header of one. " * 8
        path.write_text(text)
        for scheme in ("sqlite", "json"):
            with self.assertRaisesRegex(hone.IncompatibleError, "notes.json.*was not changed"):
                hone.Store(f"{scheme}:{path}")
        self.assertEqual(path.read_text(), text)

    def test_a_store_that_cannot_be_opened_is_told_of(self):
        path = self.folder / "damaged.db"
        path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
        with self.assertLogs("hone", "WARNING") as logs:
            self.assertEqual(len(hone.Store(f"sqlite:{path}")), 0)
        self.assertIn(str(path), "".join(logs.output))

    def test_wrong_stores_and_documents_are_refused(self):
        for make, kind, words in ((lambda: hone.Store("postgres:x"), hone.InvalidArgumentError, "postgresql:"),
                                  (lambda: hone.Store("sqlite:/nowhere/x.db", read_only=True), hone.IOFailedError, "no such file"),
                                  (lambda: self.opened.import_(b"{"), hone.CorruptError, "not JSON"),
                                  (lambda: self.opened.import_(self.folder / "none"), FileNotFoundError, ""),
                                  (lambda: self.opened.import_(5), TypeError, "PathLike.*int"),
                                  (lambda: self.opened.put({}), TypeError, "a hone.Result .*got dict"),
                                  (lambda: self.opened.merge(5), TypeError, "a hone.Store .*got int"),
                                  (lambda: self.result.merge(5), TypeError, "a hone.Result .*got int"),
                                  (lambda: self.result.save(5), TypeError, "PathLike.*int"),
                                  (lambda: hone.Result.load(5), TypeError, "PathLike.*int"),
                                  (lambda: hone.Result.load(__file__), hone.CorruptError, "test_choose.py is not a result that Result.save wrote: not JSON"),
                                  (lambda: hone.context(policy=3), TypeError, "a policy must be a text, default, .*, got int"),
                                  (lambda: hone.context(override={"softmax": 3}), TypeError, "override must have a kernel's name, .* for softmax, got 3"),
                                  (lambda: hone.context(links={3: None}), TypeError, "the name of a link must be a text, got int"),
                                  (lambda: hone.context(links={"disk": None}).__enter__(), ValueError, "unknown link 'disk'; expected override"),
                                  (lambda: hone.Store(None), TypeError, "a store must be named by its URL, .*, got NoneType"),
                                  (lambda: hone.offline(5), TypeError, "a program must be .*, got int"),
                                  (lambda: self.opened.export(format="x"), hone.InvalidArgumentError, "not a format")):
            with self.assertRaisesRegex(kind, words):
                make()
        self.assertEqual(len(self.opened), 1)

    def test_stored_choices_are_audited(self):
        hone.tune("softmax(f32[4,32])", **QUICK)
        audit = hone.audit(threshold=1000.0, seconds=1, progress=False)
        self.assertEqual({choice.call for choice in audit}, {NORM, "softmax(f32[4,32])"})
        self.assertEqual((len(audit), audit.threshold, audit.summary["choices"]), (2, 1000.0, 2))
        self.assertTrue(all(choice.passed and choice.served and choice.time_ns > 0 for choice in audit), audit.to_json())
        self.assertTrue(audit.passed)
        seen = []
        one = hone.audit(NORM, threshold=1000.0, seconds=1, progress=seen.append)
        self.assertEqual([choice.kernel for choice in one], [self.result[0].kernel])
        self.assertEqual({row["call"] for row in seen}, {NORM})
        with self.assertRaises(KeyboardInterrupt):
            hone.audit(NORM, seconds=30, progress=lambda progress: os.kill(os.getpid(), signal.SIGINT))
        for wrong, kind, words in ((("softmax(f32[5,5])",), hone.NotFoundError, "no decision"),
                                   (("softmax(",), hone.InvalidArgumentError, "offset 8"), ((3,), TypeError, "")):
            with self.assertRaisesRegex(kind, words):
                hone.audit(*wrong, progress=False)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "threshold is -1"):
            hone.audit(NORM, threshold=-1, progress=False)


class Registry(HoneTest):
    def test_it_lists_what_there_is(self):
        names = hone.registry.algorithms()
        self.assertIn("matmul", names)
        self.assertEqual(list(hone.list()), names)
        kernels = hone.registry.kernels("rms_norm")
        self.assertEqual(sorted(kernels, key=lambda one: -one.priority), kernels)
        self.assertTrue(kernels[-1].is_reference)
        self.assertEqual(hone.registry.kernels("nothing"), [])
        self.assertIn("rms_norm(x: T[..., dim]", hone.registry.signature("RMS_Norm"))
        self.assertEqual(hone.registry.validate(), [])
        self.assertIn("native", hone.registry.platforms())
        self.assertTrue(any(device["platform"] == "native" for device in hone.registry.devices()))

    def test_a_kernel_is_got_by_platform_and_backend(self):
        self.assertEqual(hone.registry.get("rms_norm", "native", "cpu").platform, "native")
        with self.assertRaisesRegex(hone.NotFoundError, "rms_norm"):
            hone.registry.get("rms_norm", "triton", "gpu")
        with self.assertRaisesRegex(hone.NotFoundError, r"no algorithm named 'rms_nrom'; did you mean rms_norm\? There are: "):
            hone.registry.get("rms_nrom")
        with self.assertRaises(hone.InvalidArgumentError):
            hone.registry.get("rms_norm", "Native")

    def test_wrong_settings_are_refused(self):
        with self.assertRaisesRegex(hone.InvalidArgumentError, "heuristic"):
            hone.Runtime(policy="sometimes")
        for wrong in ("a store", 5, hone._hone.Runtime(store="none")):
            with self.assertRaisesRegex(TypeError, "expected a hone.Runtime or None"):
                hone.use(wrong)
            self.assertIs(hone.default(), self.runtime)

    def test_a_store_that_cannot_be_used_is_told_of(self):
        (self.folder / "file").write_text("no folder")
        for url, words in (("zz:", "zz"), (f"sqlite:{self.folder}/file/x.db", f"{self.folder}/file ")):
            with self.subTest(url), hone.Runtime(store=url) as runtime:
                with self.assertLogs("hone", "WARNING") as logs:
                    result = runtime.tune(NORM, **QUICK)
                    runtime.decide("rms_norm(f32[9,64], f32[64])")
                self.assertEqual(len(result), 1)
                told = [line for line in logs.output if "going on without the store" in line]
                self.assertEqual(len(told), 1, logs.output)
                self.assertRegex(told[0], f"^WARNING:hone:.*{words}")

    def test_what_is_told_stands_on_stderr_where_no_logging_is_set_up(self):
        script = ("import threading, hone\n"
                  "def work(): hone.decide('softmax(f32[4,32])')\n"
                  "thread = threading.Thread(target=work)\n"  # told by the main thread, whichever it came from
                  "thread.start(), thread.join()\n")
        environment = {**os.environ, "HONE_STORE": "zz:"}
        done = subprocess.run([sys.executable, "-B", "-c", script], env=environment, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr.count("going on without the store"), 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        raising = "import logging\nlogging.getLogger('hone').addFilter(lambda record: 1 / 0)\n"
        done = subprocess.run([sys.executable, "-B", "-c", raising + script], env=environment, capture_output=True, text=True,
                              check=True)
        self.assertIn("ZeroDivisionError", done.stderr)
