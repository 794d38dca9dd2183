"""What the programs of lab/ have in common: help, files that are not there, a reader that has enough."""

import json
import os
import subprocess
import sys
import unittest

from support import COMMAND, DATA, NORM, USAGE, CommandTest

LAB = DATA.parent / "lab"
BENCH = DATA.parent / "bench"
PROGRAMS = sorted(path.name for path in LAB.iterdir() if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3"))


class Lab(CommandTest):
    def lab(self, name, *arguments, **environment):
        return subprocess.run([sys.executable, "-B", str(LAB / name), *map(str, arguments)], env=self.environment(environment), cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)

    def test_help_is_printed_and_nothing_is_wrong(self):
        self.assertGreater(len(PROGRAMS), 12)
        for name in PROGRAMS:
            with self.subTest(name):
                done = self.lab(name, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f"usage: {name} ", done.stdout)
                self.assertIn(f"lab/{name} ", done.stdout)
                done = self.lab(name, "--no-such-option")
                self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
                self.assertIn(f"{name}: error: ", done.stderr)

    def refuses(self, name, *arguments, file):
        with self.subTest(name, file=file):
            done = self.lab(name, *arguments)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done.stderr)
            self.assertRegex(done.stderr, rf"\A{name}: {file}: .*expected .*\n\Z")

    def test_a_file_that_is_not_there_is_named_with_what_was_expected(self):
        before = sorted(self.folder.iterdir())
        for name in ("alarms", "duels", "figures", "fleet", "floor", "racing", "regret", "replay", "t4", "trajectories"):
            more = {"regret": ["--hone", COMMAND], "trajectories": ["--venv", self.folder / "venv"]}.get(name, [])
            self.refuses(name, *more, "/no/such/file", file="/no/such/file")
        self.refuses("score", "/no/such.json", file="/no/such.json")
        self.refuses("alarms", "--hone", "/no/hone", self.write("calls.txt", NORM), file="/no/hone")
        self.assertEqual([path.name for path in sorted(self.folder.iterdir()) if path not in before], ["calls.txt"])

    def test_a_file_of_something_else_is_named_with_what_was_expected(self):
        other = self.write("other.gz", "words")
        for name in ("duels", "replay", "t4"):
            self.refuses(name, self.write("other", '<script type="application/json" id="data">words</script>'), file=f"{self.folder}/other")
        for name in ("duels", "replay"):
            self.refuses(name, other, file=other)

    def test_a_reader_that_has_enough_ends_it_quietly(self):
        (self.folder / "hone").write_text("#!/bin/sh\necho {}\n")
        (self.folder / "hone").chmod(0o755)
        calls = self.write("calls.txt", f"{NORM}\n" * 3)
        for name, *arguments in (["replay", BENCH / "contests" / "regret-4s.jsonl.gz"], ["alarms", "--hone", "./hone", calls]):
            with self.subTest(name):
                reading, writing = os.pipe()
                os.close(reading)
                done = subprocess.run([sys.executable, "-B", str(LAB / name), *map(str, arguments)], env=self.environment({}), cwd=self.folder,
                                      stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
                os.close(writing)
                self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_regret_begins_nothing_with_what_is_no_call(self):
        begun = "echo begun >begun; echo at work; exec sleep 600"
        for wrong in ("rms_norm(", "nothing(f32[3])", "/no/such/file"):
            with self.subTest(wrong):
                done = self.lab("regret", "--hone", COMMAND, "--neighbour", begun, NORM, wrong)
                self.assertIn(done.returncode, (1, USAGE))
                self.assertEqual(done.stdout, "")
                self.assertIn(f"regret: {wrong}: expected ", done.stderr)
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_regret_takes_a_list_of_calls(self):
        calls = self.write("calls.txt", f"# of one\n{NORM}   # the only one\n")
        done = self.lab("regret", "--hone", COMMAND, "--runs", "1", "--seconds", "0.3", "--duel", "0.2", calls)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (self.folder / "regret.jsonl").read_text().splitlines()]
        self.assertEqual([row["call"] for row in rows if "duel" not in row], [NORM])


if __name__ == "__main__":
    unittest.main()
