"""lab/regret: what the picks of contests cost over the best of them."""

import json
import subprocess
import sys
import unittest

from support import COMMAND, DATA, NORM, CommandTest

REGRET = str(DATA.parent / "lab" / "regret")
COLUMNS = "| | contests | bad | > 20 % | worst | mean regret | slower than not tuning by > 5 points |"


class Regret(CommandTest):
    def regret(self, *arguments):
        return subprocess.run([sys.executable, "-B", REGRET, "--hone", COMMAND, *arguments], env=self.environment({}),
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)

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

    def test_what_cannot_be_tuned_is_told(self):
        done = self.regret("--runs", "1", "nothing(f32[3])")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing", done.stderr)
        self.assertIn("expected 1 to 15", self.regret("--runs", "16").stderr)


if __name__ == "__main__":
    unittest.main()
