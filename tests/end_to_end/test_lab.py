"""What the programs of lab/ have in common: help, files that are not there, a reader that has enough."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest
import zipfile

from support import BUILD, COMMAND, DATA, NORM, USAGE, CommandTest

LAB = DATA.parent / "lab"
BENCH = DATA.parent / "bench"
PROGRAMS = sorted(path.name for path in LAB.iterdir() if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3"))
# Stands in for Kernel Tuner, of which lab/trajectories replaces some functions: each strategy falls over.
TUNER = {"kernel_tuner/__init__.py": "", "kernel_tuner/interface.py": "", "kernel_tuner/runners/__init__.py": "",
         "kernel_tuner/util.py": "def read_cache(path, open_cache=True): pass\n", "kernel_tuner/runners/simulation.py": "",
         "kernel_tuner-1.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: kernel-tuner\nVersion: 1.4.0\n",
         "kernel_tuner-1.4.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         "kernel_tuner-1.4.0.dist-info/RECORD": ""}


class Lab(CommandTest):
    def lab(self, name, *arguments, **environment):
        return subprocess.run([sys.executable, "-B", str(LAB / name), *map(str, arguments)], env=self.environment(environment), cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)

    def test_text_counts_each_object_of_libhone_once(self):
        done = self.lab("text", "--build", BUILD.resolve(), DATA.parent, DATA.parent)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = {name: (first, second) for name, first, second in (line[2:-2].split(" | ") for line in done.stdout.splitlines()[2:])}
        for name in "base", "tune", "kernels/softmax", "kernels/softmax, portable", "kernels/softmax, avx2", "kernels/matmul, avx512_f64":
            self.assertGreater(float(rows[name][0]), 0, name)
        of_both = rows.pop(f"rows of {DATA.parent.resolve().name}")
        all_rows = rows.pop("all")
        self.assertEqual((all_rows, all_rows[0]), (of_both, all_rows[1]))
        self.assertAlmostEqual(sum(float(first) for first, _ in rows.values()), float(all_rows[0]), delta=0.1 * len(rows))
        refused = self.lab("text", self.folder)
        self.assertEqual(refused.returncode, USAGE)
        self.assertIn("expected a tree of hone", refused.stderr)

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

    def test_where_the_seconds_of_contests_go_is_printed(self):
        done = self.lab("spent", "--hone", COMMAND, "--seconds", "0.5", self.write("calls.txt", NORM))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        row, summary, loop = done.stdout.splitlines()
        self.assertRegex(row, r"\A" + re.escape(NORM) + r": [\d.]+ s, \d+ candidates; prepare \d+ %, verify \d+ %, run \d+ %, wait \d+ %\Z")
        self.assertRegex(summary, r"\A" + re.escape(str(COMMAND)) + r": 1 contests, [01] took more than 1.3 times 0.5 s, at most [\d.]+; [\d.]+ candidates")
        self.assertRegex(loop, r"\Aa thread that only computes: \d+ % of a processor, \d+ to \d+ %\Z")

    def test_every_check_that_is_timed_is_in_the_tuner(self):
        done = self.lab("checks", "--list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue({"hone_runner_probe", "hone_contest_verify_smaller", "run_of_pair"} <= set(done.stdout.split()))

    def test_a_file_that_is_not_there_is_named_with_what_was_expected(self):
        before = sorted(self.folder.iterdir())
        for name in ("alarms", "checks", "duels", "figures", "fleet", "floor", "racing", "regret", "replay", "spent", "t4", "trajectories"):
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
        trials = self.write("ab.jsonl", '{"program": "jax"}\n')
        self.refuses("ab", "--out", trials, file=trials)

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

    def test_a_virtual_environment_that_was_half_made_is_made_whole(self):
        if importlib.util.find_spec("ensurepip") is None and not os.environ.get("HONE_REQUIRE"):
            self.skipTest("Python cannot put pip into a virtual environment: Debian's python3-venv is not there")
        with zipfile.ZipFile(self.folder / "kernel_tuner-1.4.0-py3-none-any.whl", "w") as wheel:
            for name, text in TUNER.items():
                wheel.writestr(name, text)
        rows = {str(x): {"x": x, "time": 1.0 + x, "compile_time": 1} for x in range(4)}
        space = self.write("space.json", json.dumps({"tune_params_keys": ["x"], "tune_params": {"x": list(range(4))}, "cache": rows}))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.folder / "venv")], check=True)
        arguments = ["--venv", self.folder / "venv", "--out", self.folder / "out", "--seeds", "1", "--strategies", "pso", space]
        alone = {"PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        for _ in range(2):  # nothing to install from: it is not taken for installed after that
            done = self.lab("trajectories", *arguments, **alone, PIP_FIND_LINKS="")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("kernel-tuner==1.4.0: exit 1", done.stderr.splitlines()[-1])
        for links in (str(self.folder), ""):  # once it is whole, nothing is installed
            done = self.lab("trajectories", *arguments, **alone, PIP_FIND_LINKS=links)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "out" / "space.json.gz").exists())


if __name__ == "__main__":
    unittest.main()
