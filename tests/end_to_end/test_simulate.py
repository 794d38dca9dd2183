"""hone-simulate: a contest over a recorded space, the same every time."""
import gzip
import json
import os
import random
import statistics
import subprocess
import unittest

from support import DONE, NO, SIMULATE, USAGE, WORLD, Answer, CommandTest


def row(x, y, time):
    """One config as Kernel Tuner writes it: four samples, the first of which is a tenth slower."""
    costs = {"compile_time": 100.0, "verification_time": 10.0, "benchmark_time": 5.0, "strategy_time": 0, "framework_time": 1.0}
    if isinstance(time, str):
        return {"x": x, "y": y, "time": time, **costs}
    times = [1.1 * time, time, 1.001 * time, 0.999 * time]
    return {"x": x, "y": y, "time": time, "times": times, **costs}


def write_space(path, rows, device="Maker One", keys=("x", "y")):
    document = {
        "device_name": device,
        "kernel_name": "made_up",
        "tune_params_keys": list(keys),
        "tune_params": {key: sorted({one[key] for one in rows}) for key in keys},
        "cache": {",".join(str(one[key]) for key in keys): one for one in rows},
    }
    with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w") as file:
        json.dump(document, file)
    return path


def valley(scale=1.0):
    """100 configs with the best at (3, 7); those with x = 9 do not compile."""
    return [
        row(x, y, "CompilationFailedConfig" if x == 9 else scale * (10 + (x - 3) ** 2 + (y - 7) ** 2))
        for x in range(10)
        for y in range(10)
    ]


class Simulate(CommandTest):
    def setUp(self):
        super().setUp()
        self.space = write_space(os.path.join(self.folder, "space.json.gz"), valley())

    def run_it(self, *arguments, code=DONE):
        done = subprocess.run([SIMULATE, *arguments], capture_output=True, text=True, timeout=300, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return Answer(done.returncode, done.stdout, done.stderr)

    def simulate(self, *options, space=None):
        return self.run_it(space or self.space, "--json", *options).json

    def test_it_is_the_same_for_a_seed_and_another_for_another(self):
        first, again, other = (self.simulate("--seed", seed, "--evals", "30") for seed in ("1", "1", "2"))
        for one in (first, again, other):
            one.pop("tuner_ms")
        self.assertEqual(first, again)
        self.assertNotEqual(first["evaluations"], other["evaluations"])

    def test_configs_come_once_each_with_their_whole_cost(self):
        document = self.simulate("--seed", "1", "--evals", "40")
        steps = document["evaluations"]
        self.assertEqual(len(steps), 40)
        self.assertEqual(len({json.dumps(step["config"]) for step in steps}), 40)
        self.assertEqual(document["configs"], 100)
        for step in steps:
            self.assertEqual(step["cost_ms"], 116)
            self.assertEqual(step["paid_ms"], 116)
            if step["time"] is None:
                self.assertEqual(step["failure"], "compile")
                self.assertEqual(step["config"]["x"], 9)
            else:
                self.assertEqual(step["runs"], 4)
                self.assertEqual(step["measured"], step["time"])
        self.assertAlmostEqual(steps[-1]["seconds"], 40 * 0.116)
        bests = [step["best"] for step in steps if "best" in step]
        self.assertEqual(bests, sorted(bests, reverse=True))

    def test_the_whole_space_ends_it_with_the_best(self):
        document = self.simulate("--evals", "1000")
        self.assertEqual(len(document["evaluations"]), 100)
        self.assertEqual(document["best"]["config"], {"x": 3, "y": 7})
        self.assertEqual(document["best"]["regret"], 0)
        self.assertLessEqual(document["best"]["low"], 10.01)
        self.assertGreater(document["best"]["ratio_low"], 1)

    def test_racing_pays_only_for_the_runs_that_were_made_and_finds_the_same(self):
        whole, raced = self.simulate("--evals", "1000"), self.simulate("--evals", "1000", "--racing")
        self.assertEqual(raced["best"]["config"], whole["best"]["config"])
        steps = [step for step in raced["evaluations"] if step["time"] is not None]
        dropped = [step for step in steps if step.get("dropped")]
        self.assertGreater(len(dropped), 60)
        for step in dropped:
            samples = [1.1, 1, 1.001, 0.999]
            ran = sum(samples[i % 4] for i in range(step["runs"])) * step["time"]
            self.assertAlmostEqual(step["paid_ms"], 111 + ran, places=6)
            self.assertLess(step["runs"], 4)

    def test_noise_does_not_put_those_that_were_tried_late_before_the_others(self):
        rng = random.Random(1)
        rows = []
        for x in range(200):
            times = [150 * (1 + 0.0004 * x) * (1 + rng.uniform(-0.015, 0.015)) for _ in range(32)]
            rows.append({**row(x, 0, 1.0), "time": statistics.mean(times), "times": times})
        space = write_space(os.path.join(self.folder, "noisy.json"), rows)
        regrets = [self.simulate("--racing", "--evals", "200", "--seed", str(seed), space=space)["best"]["regret"]
                   for seed in range(8)]
        self.assertLess(statistics.mean(regrets), 0.003, regrets)

    def test_seconds_end_it(self):
        document = self.simulate("--evals", "1000", "--seconds", "3")
        self.assertIn(len(document["evaluations"]), range(15, 27))
        self.assertLessEqual(document["paid_ms"], 3200)

    def test_warm_begins_with_the_best_of_others(self):
        other = write_space(os.path.join(self.folder, "other.json"), valley(2.0), "Maker Two")
        warm = self.simulate("--evals", "10", "--warm", other)
        self.assertEqual(warm["evaluations"][0]["config"], {"x": 3, "y": 7})
        self.assertEqual(warm["best"]["config"], {"x": 3, "y": 7})

    def test_configs_of_another_space_are_left_out_with_a_word(self):
        rows = [{**row(x, 0, 1.0 + x), "z": x} for x in range(12)]
        for one in rows:
            del one["y"]
        other = write_space(os.path.join(self.folder, "other.json"), rows, keys=("x", "z"))
        done = self.run_it(self.space, "--json", "--evals", "10", "--warm", other)
        self.assertIn("8 of its best configs are not in this space", done.err)
        self.assertEqual(len(done.json["evaluations"]), 10)

    def test_a_space_whose_every_config_fails_is_told_and_exit_1(self):
        rows = [row(x, 0, "RuntimeFailedConfig") for x in range(5)]
        space = write_space(os.path.join(self.folder, "failing.json"), rows)
        done = self.run_it(space, "--json", code=NO)
        document = done.json
        self.assertEqual(len(document["evaluations"]), 5)
        self.assertTrue(all(step["failure"] == "run" for step in document["evaluations"]))
        self.assertNotIn("best", document)
        self.assertIn("no kernel passed", done.err)

    def test_a_clock_that_stood_still_when_it_was_recorded_wins_nothing(self):
        rows = valley()
        rows[0]["times"] = [0.0, 0.0, 0.0, 0.0]
        space = write_space(os.path.join(self.folder, "still.json"), rows)
        document = self.simulate("--evals", "1000", "--racing", space=space)
        self.assertEqual(document["best"]["config"], {"x": 3, "y": 7})

    def test_a_file_that_was_cut_is_told_and_what_is_whole_is_used(self):
        with gzip.open(self.space, "rt") as file:
            text = file.read()
        cut = os.path.join(self.folder, "cut.json")
        with open(cut, "w") as file:
            file.write(text[: len(text) // 2])
        done = self.run_it(cut, "--json", "--evals", "1000")
        self.assertIn("ends too early", done.err)
        self.assertIn(len(done.json["evaluations"]), range(30, 60))

    def test_a_space_that_is_not_there_is_a_failure_of_the_world(self):
        self.assertIn("nope", self.run_it("nope", code=WORLD).err)

    def test_wrong_use_is_refused(self):
        for wrong in ([], [self.space, self.space], [self.space, "--evals", "0"], [self.space, "--seconds", "soon"], [self.space, "--what"]):
            self.assertIn("usage: hone-simulate SPACE", self.run_it(*wrong, code=USAGE).err)
        self.run_it(os.path.join(self.folder, "none.json"), code=WORLD)

    def test_help_is_printed_and_nothing_is_wrong(self):
        for arguments in (["--help"], [self.space, "--json", "--help"]):
            answer = self.run_it(*arguments)
            self.assertTrue(answer.out.startswith("usage: hone-simulate SPACE "), answer.out)
            self.assertEqual(answer.err, "")

    def test_people_get_a_table(self):
        text = self.run_it(self.space, "--evals", "50", "--racing").out
        self.assertIn("seconds", text.splitlines()[0])
        self.assertIn("of 100 configs tried", text)
        self.assertIn("chosen {", text)


if __name__ == "__main__":
    unittest.main()
