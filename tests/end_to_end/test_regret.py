"""lab/regret: what the picks of contests cost over the best of them."""

import json
import os
import subprocess
import sys
import unittest

from support import COMMAND, DATA, NORM, CommandTest

REGRET = str(DATA.parent / "lab" / "regret")
REPLAY = str(DATA.parent / "lab" / "replay")
DUELS = str(DATA.parent / "lab" / "duels")
ALARMS = str(DATA.parent / "lab" / "alarms")
RECORDED = str(DATA.parent / "bench" / "contests" / "regret-4s.jsonl.gz")
RECORDED_DUELS = str(DATA.parent / "bench" / "contests" / "duels-3s.jsonl.gz")
SOFTMAX = "softmax(f32[8,64])"
COLUMNS = "| | contests | bad | > 20 % | worst | mean regret | slower than not tuning by > 5 points |"


class Regret(CommandTest):
    def regret(self, *arguments):
        return subprocess.run([sys.executable, "-B", REGRET, "--hone", COMMAND, *arguments], env=self.environment({}),
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)

    def test_calls_have_processors_of_their_own(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("--at-once asks for two processors, this process may use one")
        script = self.folder / "hone"
        script.write_text(f"#!/bin/sh\n[ $(nproc) = 2 ] && [ -d \"$HONE_DEVICE_LOCKS\" ] || exit 9\nexec {COMMAND} \"$@\"\n")
        script.chmod(0o755)
        done = self.regret("--hone", str(script), "--at-once", "1", "--runs", "1", "--seconds", "0.3", "--duel", "0.2", "--out", "out.jsonl", NORM, SOFTMAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]
        self.assertEqual([row["call"] for row in rows if "duel" not in row], [NORM, SOFTMAX])

    def test_a_call_is_tuned_and_its_winners_meet_the_default(self):
        done = self.regret("--runs", "2", "--seconds", "0.5", "--duel", "0.2", "--busy", "1", "--out", "out.jsonl", NORM)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], COLUMNS)
        self.assertTrue(lines[2].startswith("| `--seconds 0.5`, 1 busy | 2 | "), lines[2])
        self.assertTrue(lines[3].startswith("| not tuned | 1 calls | "), lines[3])
        rows = [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]
        contests = [row for row in rows if "duel" not in row]
        self.assertEqual([(row["call"], row["run"], row["busy"]) for row in contests], [(NORM, 0, 1), (NORM, 1, 1)])
        for row in contests:
            self.assertGreaterEqual(row["ratio"], 1)
            self.assertGreaterEqual(row["default_ratio"], 1)
            self.assertIsInstance(row["evidence"], dict)
        self.assertEqual(min(row["ratio"] for row in contests) == 1 or contests[0]["default_ratio"] == 1, True)

    def replay(self, *files, program=REPLAY):
        return subprocess.run([sys.executable, "-B", program, *files], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=240)

    def test_samples_of_contests_are_recorded_and_replayed(self):
        done = self.regret("--runs", "1", "--seconds", "1", "--duel", "0.5", "--samples", "--out", "out.jsonl", NORM)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]
        (contest,) = [row for row in rows if "duel" not in row]
        finalists = contest["finalists"]
        self.assertGreater(len(finalists), 1)
        self.assertTrue(all(finalist["samples"]["samples_ns"] for finalist in finalists))
        self.assertEqual(min(finalist["ratio"] for finalist in finalists if finalist["ratio"]), 1)
        done = self.replay("out.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("1 contests, "), done.stdout)

    def test_the_recorded_contests_say_what_the_decision_page_says(self):
        page = (DATA.parent / "docs" / "decisions" / "busy-machines.md").read_text()
        rows = [line for line in self.replay(RECORDED).stdout.splitlines() if line.startswith("| ")]
        self.assertGreater(len(rows), 5)
        for row in rows:
            self.assertIn(row, page)

    def test_the_recorded_duels_say_what_the_benchmarks_say(self):
        page = (DATA.parent / "docs" / "benchmarks.md").read_text()
        rows = [line for line in self.replay(RECORDED_DUELS, program=DUELS).stdout.splitlines() if line.startswith("| ")]
        self.assertGreater(len(rows), 20)
        for row in rows:
            self.assertIn(row, page)

    def test_duels_without_a_difference_are_estimated_as_equal(self):
        def duel(company, b, disturbed=()):
            return json.dumps({"call": NORM, "company": company, "load": 1, "times_ns": [[100] * 40, b], "disturbed": [[], list(disturbed)]})
        (self.folder / "duels.jsonl").write_text("\n".join([
            duel(0, [99, 101] * 20), duel("c2", [100] * 35 + [900] * 5, [[number, 0.9, 1] for number in range(35, 40)])]))
        done = self.replay("duels.jsonl", program=DUELS)
        self.assertEqual(done.returncode, 0, done.stderr)
        titles = [line for line in done.stdout.splitlines() if " duels " in line]
        self.assertEqual(titles, [f"1 duels {where}, 40 rounds in the median" for where in ("at rest", "beside others")]
                         + ["2 duels beside others, each the half of one, 20 rounds in the median"])
        rows = [line for line in done.stdout.splitlines() if line.startswith("| within rounds, ranks, by")]
        self.assertIn("| 0.01, 0.01 % | 0.0 % |", rows[0])
        self.assertEqual(rows[1], "| within rounds, ranks, by their dependence | 0.00, 0.00 % | 0.0 % | 100.0 % | 100.0 % | 100.0 % | 0.00 % |")

    def test_a_right_kernel_that_a_contest_rejects_is_a_false_alarm(self):
        (self.folder / "calls.txt").write_text(f"# one\n{NORM}\n")
        (self.folder / "hone").write_text("#!/bin/sh\ncat answer.json\n")
        (self.folder / "hone").chmod(0o755)
        kernel = {"kernel": "fast", "rejected": {"unsupported": 2, "wrong": 1}}
        (self.folder / "answer.json").write_text(json.dumps({"entries": [{"evidence": {"seed": 5, "kernels": [kernel]}}]}))
        command = [sys.executable, "-B", ALARMS, "--passes", "2", "--pairs", "--busy", "1", "--hone"]
        done = subprocess.run([*command, "./hone", "calls.txt"], cwd=self.folder, stdout=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, f"{NORM}: fast: wrong, 1 times, seed 5\n" * 2 + "2 contests, 2 with an alarm\n")
        done = subprocess.run([*command, COMMAND, "--seconds", "0.5", "calls.txt"], env=self.environment({}), cwd=self.folder,
                              stdout=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "2 contests, 0 with an alarm\n"))

    def test_nothing_recorded_is_nothing_to_replay(self):
        (self.folder / "empty.jsonl").write_text("")
        done = self.replay("empty.jsonl")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("record some with lab/regret --samples", done.stderr)
        done = self.replay("empty.jsonl", program=DUELS)
        self.assertEqual((done.returncode, done.stderr), (1, "no recorded duel\n"))

    def test_a_neighbour_works_until_the_last_call_and_is_killed(self):
        command = "echo $$ >pid; echo at work; exec sleep 600"
        done = self.regret("--runs", "1", "--seconds", "0.5", "--duel", "0.2", "--neighbour", command, NORM)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "1 of 1 picks alike")
        self.assertRaises(ProcessLookupError, os.kill, int((self.folder / "pid").read_text()), 0)
        done = self.regret("--runs", "1", "--neighbour", "true", NORM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended before it printed a line", done.stderr)
        done = self.regret("--runs", "1", "--neighbour", "echo at work", NORM)
        self.assertEqual(done.returncode, 1)

    def test_what_cannot_be_tuned_is_told(self):
        done = self.regret("--runs", "1", "nothing(f32[3])")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing", done.stderr)
        self.assertIn("expected 1 to 15", self.regret("--runs", "16").stderr)
        self.assertIn("each call has two of the processors", self.regret("--at-once", "4096").stderr)


if __name__ == "__main__":
    unittest.main()
