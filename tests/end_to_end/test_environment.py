"""The HONE_* variables: each does what `hone help environment` says, and a wrong value is named."""

import json
import os
import shutil
import subprocess
import unittest

from support import BUILD, DONE, NO, NORM, QUICK, USAGE, WORLD, CommandTest


class Environment(CommandTest):
    def explained(self, **env):
        return self.hone("explain", NORM, "--json", env=env).json

    def test_force_names_the_kernel(self):
        answer = self.explained(HONE_FORCE="rms_norm=portable")
        self.assertEqual((answer["source"], answer["kernel"]), ("override", "portable"))
        self.assertEqual(self.explained(HONE_FORCE="matmul=openblas")["source"], "heuristic")
        run = self.hone("run", NORM, "--json", env={"HONE_FORCE": "rms_norm=portable"}).json
        self.assertEqual((run["kernel"], run["source"], run["verified"]), ("portable", "override", True))

    def test_a_kernel_that_is_forced_and_not_there_is_an_error(self):
        self.refused("run", NORM, says=["HONE_FORCE", "abacus", "hone list"], env={"HONE_FORCE": "rms_norm=abacus"})

    def test_denied_kernels_never_answer(self):
        first = self.explained()["kernel"]
        for deny in (first, f"rms_norm={first}"):
            answer = self.explained(HONE_DENY=deny)
            self.assertNotEqual(answer["kernel"], first)
            row = next(row for row in answer["kernels"] if row["name"] == first)
            self.assertIn("HONE_DENY", row["why"])
        self.assertEqual(self.explained(HONE_DENY=f"matmul={first}")["kernel"], first)

    def test_a_rule_that_does_nothing_is_told(self):
        for name, value, says in (("HONE_FORCE", "rms_nrom=portable", "there is no operation 'rms_nrom'"),
                                  ("HONE_FORCE", "rms_norm@v1=portable", "there is no operation 'rms_norm@v1'"),
                                  ("HONE_DENY", "rms_nrom=portable", "there is no operation 'rms_nrom'"),
                                  ("HONE_DENY", "rms_norm=abacus", "no kernel of rms_norm has that name"),
                                  ("HONE_DENY", "abacus", "no kernel has that name")):
            answer = self.hone("explain", NORM, env={name: value})
            self.assertIn(f"{name}: '{value}' does nothing: {says}" if "=" in value and "operation" in says else says, answer.err)
            self.assertEqual(answer.err.count("does nothing"), 1)
        self.assertEqual(self.hone("explain", NORM, env={"HONE_DENY": "portable,matmul=openblas"}).err, "")

    def test_without_any_kernel_the_reference_answers(self):
        names = [row["name"] for row in self.explained()["kernels"] if row["name"] != "reference"]
        self.assertEqual(self.explained(HONE_DENY=",".join(names))["kernel"], "reference")

    def test_the_policy_fail_answers_no(self):
        answer = self.hone("explain", NORM, "--json", env={"HONE_POLICY": "fail"}, code=NO).json
        self.assertIsNone(answer["source"])
        self.refused("run", NORM, code=NO, says="fail", env={"HONE_POLICY": "fail"})
        self.refused("run", NORM, code=NO, says="frozen", env={"HONE_POLICY": "frozen"})

    def test_frozen_follows_an_override(self):
        env = {"HONE_POLICY": "frozen", "HONE_FORCE": "rms_norm=portable"}
        self.assertEqual(self.hone("run", NORM, "--json", env=env).json["source"], "override")

    def test_recording_counts_calls(self):
        env = {"HONE_RECORD": "1", "HONE_POLICY": "heuristic"}
        self.hone("run", NORM, env=env)
        first = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual([row["call"] for row in first], [NORM])
        self.hone("run", NORM, env=env)
        second = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual(second[0]["count"], 2 * first[0]["count"])
        self.assertLessEqual(first[0]["last"], second[0]["last"])

    def test_a_run_is_one_call_and_the_store_answers_it(self):
        self.hone("tune", NORM, *QUICK)
        answer = self.hone("run", NORM, "--json", env={"HONE_RECORD": "1", "HONE_STATS": "1"})
        self.assertEqual(answer.json["source"], "store")
        self.assertIn("answered by store", answer.err)
        (row,) = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual((row["count"], row["answered"]), (1, "store"))

    def test_a_call_that_nothing_answers_is_counted_and_can_be_tuned(self):
        self.refused("run", NORM, env={"HONE_RECORD": "1", "HONE_POLICY": "fail"}, code=NO, says="policy fail")
        (row,) = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual((row["call"], row["count"], row["decided"]), (NORM, 1, False))
        self.hone("tune", "--recorded", *QUICK)
        self.hone("run", NORM, env={"HONE_POLICY": "fail"})

    def test_a_miss_is_noted_for_later(self):
        self.hone("run", NORM, env={"HONE_POLICY": "heuristic"})
        rows = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual([(row["call"], row["answered"]) for row in rows], [(NORM, "heuristic")])

    def test_the_platform_of_the_cpu_is_always_asked_for(self):
        rows = self.hone("devices", "--json", env={"HONE_PLATFORMS": "native"}).json["platforms"]
        self.assertEqual([row["platform"] for row in rows if row["available"]], ["native"])
        self.refused("devices", env={"HONE_PLATFORMS": "opencl"}, says=["HONE_PLATFORMS", "native"])

    def test_the_default_store_lies_in_the_cache_folder(self):
        self.hone("run", NORM, env={"HONE_STORE": None, "HONE_POLICY": "heuristic"})
        self.assertTrue((self.folder / "cache" / "hone" / "store.db").exists())
        self.hone("run", NORM, env={"HONE_STORE": None, "XDG_CACHE_HOME": None, "HONE_POLICY": "heuristic"})
        self.assertTrue((self.folder / ".cache" / "hone" / "store.db").exists())

    def test_a_wrong_value_is_named_with_what_was_expected(self):
        wrong = {"HONE_POLICY": ["sometimes", "heuristic"], "HONE_RECORD": ["yes", "0 or 1"],
                 "HONE_LOG": ["loud", "warning"], "HONE_FORCE": ["portable", "ALGORITHM=KERNEL"],
                 "HONE_DENY": ["=", "KERNEL"], "HONE_WORKER_CONFINE": ["no", "on or off"], "HONE_PLATFORMS": ["abacus", "hone devices"]}
        for name, (value, says) in wrong.items():
            self.refused("devices", env={name: value}, says=[name, value, says])

    def test_a_lock_file_that_is_not_there_is_an_error(self):
        self.refused("devices", env={"HONE_LOCK": "hone.lock"}, code=WORLD, says=["HONE_LOCK", "hone.lock", "No such file"])

    def test_how_a_put_is_synced_is_checked(self):
        self.hone("tune", NORM, *QUICK)
        self.refused("store", "list", env={"HONE_STORE_SYNC": "maybe"}, says=["HONE_STORE_SYNC", "maybe"])
        self.hone("store", "list", env={"HONE_STORE_SYNC": "full"})

    def test_a_folder_of_what_was_compiled_is_an_absolute_path(self):
        for value in ("bogus", "./here"):
            self.refused("list", env={"HONE_COMPILE_CACHE": value}, says=["HONE_COMPILE_CACHE", value, "an absolute path"])
        self.hone("list", env={"HONE_COMPILE_CACHE": "none"})

    def test_a_worker_that_is_none_is_named(self):
        answer = self.hone("tune", NORM, *QUICK, env={"HONE_WORKER": "/nowhere/hone-worker"}, code=None)
        if answer.code != DONE:  # a command of one thread may fork instead
            self.assertIn("/nowhere/hone-worker", answer.err)

    def test_an_empty_value_is_as_good_as_none(self):
        names = ("HONE_POLICY", "HONE_FORCE", "HONE_DENY", "HONE_RECORD", "HONE_LOG", "HONE_LOCK", "HONE_PLATFORMS")
        self.hone("devices", env={name: "" for name in names})

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a program that runs as root for others")
    def test_a_program_with_more_rights_than_who_starts_it_ignores_them(self):
        self.folder.chmod(0o755)
        program, planted = self.folder / "hone-of-root", self.folder / "planted.db"
        shutil.copy(BUILD / "hone", program)
        env = self.environment({"HONE_STORE": f"sqlite:{planted}", "HONE_LOCK": "/nowhere/hone.lock",
                                "HONE_PACK_PATH": "/nowhere", "HONE_POLICY": "fail", "HONE_FORCE": "rms_norm=abacus"})
        # LeakSanitizer traces the program at its end, which the system grants to root alone where the group has changed.
        for mode, user, code in ((0o4755, 65534, DONE), (0o2755, 0, DONE), (0o755, 65534, WORLD)):
            program.chmod(mode)
            done = subprocess.run([program, "run", NORM], env=env, user=user, group=65534, extra_groups=[], cwd="/",
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, code, f"mode {mode:o}: {done.stderr}")
            self.assertFalse(planted.exists())

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a program that runs as root for others")
    def test_nor_do_its_commands_read_what_they_name(self):
        self.folder.chmod(0o755)
        program, named = self.folder / "hone-of-root", "json:/nowhere/planted"
        shutil.copy(BUILD / "hone", program)
        env = self.environment({"HONE_STORE": named, "HONE_WORKER": "/nowhere/worker"})
        for mode, user, is_heeded in ((0o4755, 65534, False), (0o755, 65534, True)):
            program.chmod(mode)
            for command in ("store stat", "help environment", "devices"):
                done = subprocess.run([program, *command.split()], env=env, user=user, group=65534, extra_groups=[], cwd="/",
                                      capture_output=True, text=True)
                self.assertEqual("/nowhere/" in done.stdout + done.stderr, is_heeded, f"mode {mode:o}: {command}: {done.stderr}")

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a program that runs as root for others")
    def test_nor_does_it_load_the_drivers_of_opencl_that_they_name(self):
        self.folder.chmod(0o755)
        program = self.folder / "hone-of-root"
        shutil.copy(BUILD / "hone", program)
        for name in ("OCL_ICD_VENDORS", "OPENCL_LAYERS"):
            for mode, user, is_refused in ((0o4755, 65534, True), (0o2755, 0, True), (0o755, 65534, False)):
                program.chmod(mode)
                done = subprocess.run([program, "devices", "--json"], env=self.environment({name: "/nowhere/driver.so"}),
                                      user=user, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True)
                row = next(row for row in json.loads(done.stdout)["platforms"] if row["platform"] == "opencl")
                self.assertEqual(f"{name} is set" in (row["reason"] or ""), is_refused, f"mode {mode:o}: {row}")
