"""lab/score: the figures of a recorded space whose answers are known."""

import json
import math
import pathlib
import subprocess
import sys

from support import SIMULATE, CommandTest

SCORE = pathlib.Path(__file__).resolve().parents[2] / "lab" / "score"


class ScoreTest(CommandTest):
    def record(self, name, time):
        cache = {}
        for x in range(20):
            for y in range(20):
                cost = {"compile_time": 10.0, "verification_time": 0, "benchmark_time": 5.0, "framework_time": 1.0}
                cache[f"{x},{y}"] = {"x": x, "y": y, "time": time(x, y), **cost}
        document = {"device_name": name, "kernel_name": "valley", "tune_params_keys": ["x", "y"],
                    "tune_params": {"x": list(range(20)), "y": list(range(20))}, "cache": cache}
        path = self.folder / (name + ".json")
        path.write_text(json.dumps(document))
        return str(path)

    def score(self, *arguments):
        done = subprocess.run([sys.executable, "-B", str(SCORE), "--program", SIMULATE, *arguments],
                              capture_output=True, text=True, timeout=300, env=self.environment({}))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_valley_is_searched_far_better_than_at_random_and_warm_better_still(self):
        paths = [self.record(name, lambda x, y, d=d: "RuntimeFailedConfig" if x == 19 else 1 + (x - 7 - d) ** 2 + abs(y - 4))
                 for d, name in enumerate(["one", "two"])]
        rows = json.loads(self.score("--seeds", "3", "--warm", "--json", *paths))
        cold, warm = rows["hone cold"]["one"], rows["hone warm"]["one"]
        self.assertGreater(cold["M"], 0.3)
        self.assertGreater(warm["M"], cold["M"])
        self.assertLess(cold["1 %"], 0.4)
        self.assertLess(cold["low"], cold["M"] + 1e-9)

    def test_seeds_side_by_side_score_the_same(self):
        path = self.record("line", lambda x, y: 1.0 + 20 * x + y)
        one, two = (json.loads(self.score("--seeds", "3", "--jobs", jobs, "--json", path)) for jobs in ("1", "3"))
        for rows in (one, two):
            del rows["hone cold"]["line"]["ms a step"]
        self.assertEqual(one, two)

    def test_the_budget_and_the_baselines_are_those_of_the_method(self):
        path = self.record("line", lambda x, y: 1.0 + 20 * x + y)
        row = json.loads(self.score("--seeds", "1", "--json", path))["hone cold"]["line"]
        # 400 times from 1 to 400, the median 200.5: the cut lies at 10.975, and 10 are under it.
        index = 391
        self.assertEqual(row["budget"], math.ceil(index / (401 - index)))

    def test_no_space_is_an_error_with_words(self):
        done = subprocess.run([sys.executable, "-B", str(SCORE), str(self.folder)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no recorded space among", done.stderr)
