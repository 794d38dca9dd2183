"""hone ab: a program under two sides, in pairs, by its own metric."""

import json
import os
import shutil
import subprocess
import sys
import time
import unittest

from support import COMMAND, DATA, DONE, INTERRUPTED, NO, NORM, QUICK, USAGE, WORLD, CommandTest

SAYS = ["--metric", "took ([0-9.]+) ms", "--", "sh", "-c", 'echo "step 1 took ${V:-10} ms"']


class Ab(CommandTest):
    def ab(self, *arguments, code=DONE, seconds="20", **options):
        return self.hone("ab", "--json", "--seconds", seconds, *arguments, code=code, **options)

    def lock(self, name, kernel, *calls):
        store = f"sqlite:{self.folder}/{name}.db"
        self.hone("tune", *calls, *QUICK, "--kernel", kernel, "--store", store)
        path = str(self.folder / f"{name}.lock")
        self.hone("lock", "--store", store, "--lock", path)
        return path, store

    # The metric ------------------------------------------------------------------------------------------------------

    def test_wall_time_is_the_metric_that_every_program_has(self):
        found = self.ab("--b-env", "D=0.1", "--", "sh", "-c", "sleep ${D:-0.05}", code=NO).json
        self.assertEqual((found["verdict"], found["metric"]["kind"]), ("worse", "seconds"))
        self.assertTrue(1 < found["low"] < found["ratio"] < found["high"], found)  # it ends when that is known
        self.assertEqual(found["pairs"], len(found["a"]["values"]))

    def test_a_regular_expression_finds_it_in_what_is_printed(self):
        found = self.ab("--b-env", "V=9.5", *SAYS).json
        self.assertEqual(found["verdict"], "better")
        self.assertAlmostEqual(found["ratio"], 0.95, places=6)
        self.assertEqual((found["a"]["median"], found["b"]["median"]), (10, 9.5))
        answer = self.hone("ab", "--b-env", "V=9.5", *SAYS)
        self.assertRegex(answer.out, r"(?m)^b/a 0.9500 \(95 % 0\.\d+ to 0\.\d+\), \d+ pairs.*\nb is better: 5 % less")

    def test_more_may_be_better(self):
        self.assertEqual(self.ab("--higher", "--b-env", "V=9.5", *SAYS, code=NO).json["verdict"], "worse")

    def test_of_several_values_in_a_run_the_median_counts(self):
        command = ["sh", "-c", 'for v in 900 10 11 12 ${V:-1}; do echo "$v tokens/s" >&2; done']
        found = self.ab("--metric", "^([0-9]+) tokens", "--b-env", "V=2", "--", *command).json
        self.assertEqual((found["verdict"], found["a"]["median"]), ("same", 11))

    def test_json_on_standard_output_is_read_in_lines_or_whole(self):
        for text in ('{"loss":[{"ms":%s}]}', '{\\n "loss": [\\n  {"ms": %s}\\n ]\\n}'):
            program = ["sh", "-c", f"printf '{text}' ${{V:-10}}"]
            found = self.ab("--metric-json", "loss[0].ms", "--b-env", "V=8", "--", *program).json
            self.assertAlmostEqual(found["ratio"], 0.8, places=6)

    def test_equal_programs_are_called_equal(self):
        self.assertEqual(self.ab("--b-env", "OTHER=1", *SAYS).json["verdict"], "same")

    def test_few_pairs_have_no_interval(self):
        answer = self.hone("ab", "--seconds", "2.2", "--b-env", "D=1", "--", "sleep", "0.4", code=NO)
        self.assertIn("too few pairs for an interval", answer.out)
        self.assertIn("undecided: nothing is known yet; more --seconds may tell", answer.out)

    def test_a_folder_for_temporary_files_that_is_not_there_is_named(self):
        self.refused("ab", "--b-env", "V=2", "--", "true", env={"TMPDIR": "/nowhere"}, code=WORLD,
                     says="no folder can be made in /nowhere")

    def test_what_the_budget_does_not_decide_is_undecided(self):
        program = "import random; print(random.uniform(10, 1000))"
        found = self.ab("--metric", "([0-9.]+)", "--b-env", "OTHER=1", "--", sys.executable, "-c", program,
                        code=NO, seconds="2").json
        self.assertEqual(found["verdict"], "undecided")

    def test_steps_are_timed_in_turns(self):
        program = ("import os, time\nfor i in range(100000):\n time.sleep(float(os.environ.get('D', '0.01')))\n"
                   " print('step', i)\n")
        found = self.ab("--step", "^step", "--b-env", "D=0.03", "--", sys.executable, "-c", program,
                        code=NO, seconds="120").json
        self.assertEqual(found["verdict"], "worse")
        self.assertTrue(2 < found["ratio"] < 4, found)
        self.assertLess(found["a"]["median"], 1)

    # What goes wrong -------------------------------------------------------------------------------------------------

    def fails(self, *arguments, says, code=WORLD, **options):
        answer = self.ab(*arguments, code=code, **options)
        self.assertEqual(answer.out, "")
        for words in says:
            self.assertIn(words, answer.err)

    def test_a_program_that_fails_ends_it_with_its_last_lines(self):
        self.fails("--b-env", "V=1", "--", "sh", "-c", 'echo broken; exit ${V:-0}', says=["left with 1 under b", "broken"])
        self.fails("--b-env", "V=1", "--", "sh", "-c", "kill -9 $$", says=["died of signal 9", "under a"])
        self.fails("--b-env", "V=1", "--", "/nowhere/program", says=["/nowhere/program: No such file"])

    def test_a_program_without_its_metric_is_shown(self):
        self.fails("--b-env", "V=1", "--metric", "took ([0-9]+)", "--", "echo", "nothing", says=["printed nothing that --metric", "nothing"])
        self.fails("--b-env", "V=0", *SAYS, says=["under b the program has a metric of 0"])
        self.fails("--b-env", "V=1", "--step", "step", "--", "echo", "step 1", says=["too little", "more steps"])

    def test_a_program_that_hangs_is_ended_with_all_it_started(self):
        mark = f"{self.folder}/alive"
        start = time.monotonic()
        self.fails("--b-env", "V=1", "--", "sh", "-c", f"(while :; do touch {mark}; sleep 0.1; done) & sleep 600",
                   says=["did not end within the budget"], seconds="2")
        self.assertLess(time.monotonic() - start, 60)
        os.remove(mark)
        time.sleep(0.5)
        self.assertFalse(os.path.exists(mark))

    def test_an_interrupt_ends_the_program_and_says_what_is_known(self):
        process = self.start("ab", "--json", "--b-env", "V=1", "--metric", "x ([0-9]+)", "--", "sh", "-c", "sleep 0.2; echo x $$")
        time.sleep(3)
        process.terminate()
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        if out:
            self.assertEqual(json.loads(out)["verdict"], "undecided")

    def test_wrong_use_is_refused_before_anything_runs(self):
        run = ["--", "touch", str(self.folder / "ran")]
        for arguments, says in (
            ([*run], "nothing differs"),
            (["--b-env", "V", *run], "expected NAME=VALUE"),
            (["--b-env", "V=1", "--metric", "([0-9]", *run], "--metric"),
            (["--b-env", "V=1", "--metric", "[0-9]+", *run], "expected one around the number"),
            (["--b-env", "V=1", "--metric", "(1)", "--metric-json", "a", *run], "expected one of them"),
            (["--b-env", "V=1", "--higher", *run], "--higher"),
            (["--a", str(self.folder / "missing"), *run], "there is no such file"),
            (["--a", str(self.folder), *run], "no pack.json"),
            (["--b-env", "V=1"], "arguments"),
        ):
            self.refused("ab", *arguments, code=USAGE, says=says)
        garbage = self.write("x.lock", "no lock")
        self.refused("ab", "--a", garbage, *run, code=WORLD, says="x.lock")
        self.refused("ab", "--a", "sqlite:/nowhere/x.db", *run, code=WORLD, says="no such store")
        self.assertFalse((self.folder / "ran").exists())

    # What differs ----------------------------------------------------------------------------------------------------

    def test_which_calls_differ_is_told_first_and_what_they_are_worth_last(self):
        lock, _ = self.lock("one", "portable", NORM)
        answer = self.ab("--a", lock, "--", COMMAND, "run", NORM, code=None, seconds="4",
                         env={"HONE_POLICY": "heuristic"})
        (call,) = answer.json["calls"]
        self.assertEqual((call["call"], call["count"] > 0, call["a"]["kernel"]), (NORM, True, "portable"))
        self.assertRegex(answer.err, r"^(1 of|none of) the program's 1 call")
        self.assertFalse((self.folder / "store.db").exists())

    def test_two_stores_are_copied_and_stay_as_they_were(self):
        _, one = self.lock("one", "portable", NORM)
        _, two = self.lock("two", "avx2", NORM)
        before = self.hone("record", "list", "--json", "--store", one).json
        found = self.ab("--a", one, "--b", two.removeprefix("sqlite:"), "--", COMMAND, "run", NORM, code=None, seconds="4").json
        (call,) = found["calls"]
        self.assertEqual((call["a"]["kernel"], call["b"]["kernel"], call["differs"]), ("portable", "avx2", True))
        self.assertGreater(call["a"]["time_ns"], 0)
        self.assertGreater(found["expected_ratio"], 0)
        self.assertEqual(self.hone("record", "list", "--json", "--store", one).json["invocations"], before["invocations"])

    def test_calls_that_are_answered_alike_are_told_before_anything_is_measured(self):
        lock, _ = self.lock("one", "portable", NORM)
        answer = self.hone("ab", "--a", lock, "--b", lock, "--seconds", "4", "--", COMMAND, "run", NORM, code=None)
        self.assertTrue(answer.out.startswith("none of the program's 1 call of hone's is answered otherwise"), answer.out)

    def test_two_commits_of_a_pack(self):
        pack = self.folder / "saxpy"
        shutil.copytree(DATA.parent / "examples" / "packs" / "saxpy", pack)
        git = ["git", "-C", str(pack), "-c", "user.name=n", "-c", "user.email=e"]
        for commit in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *commit], check=True)
        code = 'test -f "$HONE_PACK_PATH/pack.json" && test ! -e "$HONE_PACK_PATH/.git" && echo took 5 ms'
        found = self.ab("--a", f"{pack}@HEAD", "--b", str(pack), "--metric", "took ([0-9]+)", "--", "sh", "-c", code,
                        code=None, seconds="3")
        self.assertIn("left with 1 under b", found.err)  # the folder itself has .git: a was the commit
        self.refused("ab", "--a", f"{pack}@nothing", "--", "true", code=WORLD, says=["git", "nothing"])


if __name__ == "__main__":
    unittest.main()
