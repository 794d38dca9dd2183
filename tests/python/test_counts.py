"""hone.stats() and hone.agreements in one process."""

import json
import logging
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import hone
import numpy as np
from support import HoneTest

X, W = np.ones((4, 64), np.float32), np.ones(64, np.float32)
NORM, OTHER = "rms_norm(f32[4,64], f32[64])", "rms_norm(f32[8,64], f32[64])"
PRODUCT = "matmul(f32[32,32], f32[32,32])"
DOCS = pathlib.Path(__file__).parents[2] / "docs"


def python_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S))


class Counts(HoneTest):
    def test_calls_are_counted_by_what_answered_them(self):
        runtime = hone.Runtime(store="memory:", environment=False)
        for _ in range(5):
            runtime.run("rms_norm", X, W)
        stats = runtime.stats()
        self.assertEqual([(row.call, row.link, row.hits, row.misses) for row in stats], [(NORM, "heuristic", 4, 1)])
        self.assertEqual((stats.hits, stats.misses, stats.links, len(stats)), (4, 1, {"heuristic": 5}, 1))
        self.assertRegex(str(stats), r"^5 calls, 4 hits, 1 decided in \S+ s; answered by heuristic 5$")
        self.assertEqual(json.loads(stats.to_json())["hone_stats"], 1)
        self.assertIn('hone_hits_total{algorithm="rms_norm",version="1",link="heuristic"', stats.prometheus())
        runtime.run("rms_norm", X, W)
        self.assertEqual(stats.hits, 4)  # as it was then

    def test_what_is_stored_is_compared_with_what_is_asked_for(self):
        runtime = hone.Runtime(store="memory:", environment=False)
        runtime.tune(NORM, seconds=0.3, evaluations=3)  # from which the other one's answer is transferred
        runtime.tune(PRODUCT, seconds=0.3, evaluations=3)
        runtime.run("rms_norm", np.ones((8, 64), np.float32), W)
        unstored, unasked = runtime.stats().compare()
        self.assertEqual([(call.call, call.differs) for call in unstored], [(OTHER, ("x.shape[0]: 8, stored 4",))])
        self.assertEqual([call.call for call in unasked], [PRODUCT])
        with self.assertRaisesRegex(hone.UnavailableError, "there is no store"):
            hone.Runtime(store="none", environment=False).stats().compare()

    def test_a_plan_that_lives_to_the_end_keeps_no_statistics_back(self):
        with tempfile.TemporaryDirectory() as folder:
            code = ("import hone, numpy as np\nx, w = np.ones((4, 64), np.float32), np.ones(64, np.float32)\n"
                    "plan = hone.bind('rms_norm', x, w)\nfor _ in range(3): plan(x, w)\n")
            subprocess.run([sys.executable, "-c", code], check=True, env={
                "PYTHONPATH": ":".join(sys.path), "HONE_STATS": f"{folder}/stats.json", "HONE_STORE": "none"})
            document = json.loads(pathlib.Path(folder, "stats.json").read_text())
        self.assertTrue(document["counts_bound"])
        self.assertEqual([row["hits"] for row in document["rows"]], [3])

    def test_the_page_runs_as_written(self):
        hone.run("rms_norm", X, W)
        exec(python_of("what-was-hit.md"), {"hone": hone, "print": lambda *_: None})


class Agreements(HoneTest):
    def test_documents_of_ranks_are_compared(self):
        mine = hone.agreements.say([NORM, OTHER])
        self.assertEqual(mine, hone.agreements.say([OTHER, NORM]))
        with hone.override("rms_norm", "portable"):
            theirs = hone.agreements.say([NORM])
        self.assertNotEqual(mine[1], theirs[1])
        found = hone.agreements.compare([mine[0], None, mine[0], theirs[0]])
        self.assertEqual([(one.rank, one.other, one.field) for one in found], [(3, 0, "kernel"), (3, 0, "call")])
        self.assertRegex(found[0].words, r"rank 3 chooses native/portable .* by override, rank 0 chooses native/")

    def test_what_is_no_document_or_call_is_refused(self):
        with self.assertRaises(hone.CorruptError):
            hone.agreements.compare(["{}"])
        with self.assertRaises(hone.InvalidArgumentError):
            hone.agreements.say(["rms_norm(f32["])
        with self.assertRaises(TypeError):
            hone.agreements.compare([7])

    def board(self, texts):
        return hone.agreements.Board(texts.__setitem__, texts.get, "the table")

    def test_a_rank_that_does_not_answer_is_named_after_the_timeout(self):
        with self.assertRaisesRegex(hone.BusyError, r"ranks 1, 2 of 3 had not said what they choose after 0\.\d s"):
            hone.agreements.agree(self.board({}), "p", 0, 3, [NORM], 0.2, True)

    def test_a_board_that_hangs_or_fails_ends_at_the_timeout_with_words(self):
        hangs = hone.agreements.Board(lambda key, text: __import__("time").sleep(30), lambda key: None, "the table")
        with self.assertRaisesRegex(hone.BusyError, "the table does not answer"):
            hone.agreements.agree(hangs, "p", 0, 2, [NORM], 0.2, True)

        def broken(key, text):
            raise OSError("the wire is cut")
        with self.assertRaisesRegex(hone.BusyError, "the table fails: the wire is cut"):
            hone.agreements.agree(hone.agreements.Board(broken, lambda key: None, "the table"), "p", 0, 2, [NORM], 0.2, True)

    def test_a_rank_that_cannot_say_tells_the_others(self):
        texts = {}
        with self.assertRaises(hone.InvalidArgumentError):
            hone.agreements.agree(self.board(texts), "p", 1, 2, ["rms_norm(f32["], 5, True)
        agreement = hone.agreements.agree(self.board(texts), "p", 0, 2, [NORM], 5, False)
        self.assertFalse(agreement)
        self.assertEqual(list(agreement.failed), [1])
        with self.assertRaisesRegex(hone.IncompatibleError, "rank 1 could not say what it chooses"):
            agreement.check()

    def test_what_was_agreed_answers_until_the_end_of_the_block(self):
        runtime = hone.Runtime(store="memory:", environment=False)
        agreement = hone.agreements.agree(self.board({}), "p", 0, 1, [NORM], 5, True, runtime)
        self.assertTrue(agreement)
        before = runtime.decide(NORM)
        with agreement, agreement:
            runtime.tune(NORM, seconds=0.3, evaluations=3)
            inside = runtime.decide(NORM)
        self.assertEqual((inside.source, inside.kernel, inside.config), ("overlay", before.kernel, before.config))
        self.assertNotEqual(runtime.decide(NORM).source, "overlay")

    def test_no_call_is_nothing_to_agree_on(self):
        for calls in ([], None):
            with self.assertRaisesRegex(hone.InvalidArgumentError, "there is no call to agree on"):
                hone.agreements.agree(self.board({}), "p", 0, 1, calls, float("inf"), True)

    def test_wrong_use_is_told(self):
        for calls, timeout, words in ((NORM, 5, "expected a list"), ([NORM], 0, "seconds above 0"), ([NORM], -1, "above 0")):
            with self.assertRaisesRegex(hone.InvalidArgumentError, words):
                hone.agreements.agree(self.board({}), "p", 0, 1, calls, timeout, True)
        for calls in (NORM, [3], 5):
            with self.assertRaisesRegex(hone.InvalidArgumentError, "call texts"):
                hone.agreements.say(calls)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "one text"):
            hone.agreements.compare("{}")


if __name__ == "__main__":
    logging.disable()
    unittest.main()
