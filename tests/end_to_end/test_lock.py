"""hone lock: choices pinned, compared, edited; and programs that run with nothing else."""

import json
import os
import re

from support import DONE, NO, NORM, NORM_NEAR, USAGE, WORLD, CommandTest

FROZEN = {"HONE_LOCK": "hone.lock", "HONE_POLICY": "frozen"}


class LockTest(CommandTest):
    def decide(self, call, kernel="portable", config=None, **changes):
        """A choice in the store, as another machine of this kind could have sent it."""
        key = self.hone("key", call, "--json").json
        force = {} if config is not None else {"HONE_FORCE": f"rms_norm={kernel}"}
        here = self.hone("explain", call, "--json", env={"HONE_STORE": "none", **force}).json
        entry = {"algorithm": "rms_norm", "version": "1", "key": key["key"], "call": call, "spec": key["spec"],
                 "kernel": kernel, "platform": "native", "source": "autotune", "config": here["config"] if config is None else config,
                 "verified": True, "revision": "1",
                 "evidence": {"time_ns": 1234.5, "verified_against": "reference"}}
        entry.update(changes)
        document = {"hone_result": 1, "device": changes.get("device", here["device"]), "entries": [entry]}
        self.hone("store", "put", input=json.dumps(document))
        return key["key"]

    def lines(self, name="hone.lock"):
        return [line for line in (self.folder / name).read_text().splitlines()[1:] if not line.startswith("#")]

    def edit(self, before, after):
        path = self.folder / "hone.lock"
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after))


class Write(LockTest):
    def test_every_choice_of_the_store_is_a_line(self):
        keys = sorted([self.decide(NORM), self.decide(NORM_NEAR)])
        answer = self.hone("lock", "--json").json
        self.assertEqual((answer["lock"], answer["choices"], answer["added"]), ("hone.lock", 2, 2))
        self.assertEqual([line.split()[1] for line in self.lines()], keys)
        self.assertTrue(all(line.startswith("rms_norm@v1 ") and " native/portable@1 " in line for line in self.lines()))
        self.assertTrue(any(line.endswith(f"  # {NORM}") for line in self.lines()))

    def test_a_frozen_program_runs_with_every_value_of_a_scalar_that_does_not_change_speed(self):
        arrays = "flash_attention(f32[1,8,2,32], f32[1,13,2,32], f32[1,13,2,32]"
        self.hone("tune", f"{arrays}, softmax_scale={32 ** -0.5})", "--seconds", "1", "--evals", "4")
        self.hone("lock")
        for scalars in ("", f", softmax_scale={32 ** -0.5}", f", softmax_scale={1 / 32 ** 0.5}", ", causal=false, softmax_scale=0.4"):
            answer = self.hone("run", f"{arrays}{scalars})", "--json", env=FROZEN).json
            self.assertEqual((answer["source"], answer["verified"]), ("lock", True))
        # Whether there is a cap is another way through a kernel.
        self.hone("run", f"{arrays}, logits_soft_cap=20.0)", env=FROZEN, code=NO)

    def test_the_same_store_gives_the_same_file(self):
        self.decide(NORM)
        self.hone("lock")
        text = (self.folder / "hone.lock").read_bytes()
        self.assertIn("0 added, 0 changed, 0 removed", self.hone("lock").out)
        self.assertEqual((self.folder / "hone.lock").read_bytes(), text)

    def test_only_what_is_named_is_written_and_the_rest_stays(self):
        first, second = self.decide(NORM), self.decide(NORM_NEAR)
        self.hone("lock", NORM)
        self.assertEqual([line.split()[1] for line in self.lines()], [first])
        self.decide(NORM, kernel="reference", config={})
        answer = self.hone("lock", NORM_NEAR, "--json").json
        self.assertEqual((answer["choices"], answer["added"], answer["changed"]), (2, 1, 0))
        self.assertEqual({line.split()[1]: line.split()[3] for line in self.lines()},
                         {first: "native/portable@1", second: "native/portable@1"})

    def test_a_call_on_a_device_pins_that_devices_choice(self):
        self.decide(NORM)
        self.decide(NORM, device="cpu|another machine")
        self.hone("lock", f"{NORM}@cpu:0")
        self.assertEqual([line.split()[2] for line in self.lines()], [self.fingerprint()])
        self.assertEqual(self.hone("lock", NORM, "--json").json["choices"], 2)

    def test_lines_of_other_devices_stay_when_a_device_is_named(self):
        self.decide(NORM)
        self.decide(NORM, device="cpu|another machine")
        self.hone("lock")
        self.assertEqual(len(self.lines()), 2)
        self.hone("store", "remove", NORM)
        self.decide(NORM, kernel="reference", config={})
        answer = self.hone("lock", "--device", "here", "--json").json
        self.assertEqual((answer["choices"], answer["changed"], answer["removed"]), (2, 1, 0))
        self.assertEqual(sorted(line.split()[3] for line in self.lines()), ["native/portable@1", "native/reference@1"])
        self.assertTrue(any("another%20machine" in line for line in self.lines()))

    def test_a_choice_that_is_gone_from_the_store_goes(self):
        self.decide(NORM), self.decide(NORM_NEAR)
        self.hone("lock")
        self.hone("store", "remove", NORM)
        self.assertIn("0 added, 0 changed, 1 removed", self.hone("lock").out)
        self.assertEqual(len(self.lines()), 1)

    def test_a_store_without_choices_empties_no_file(self):
        self.decide(NORM)
        self.hone("lock")
        empty = {"HONE_STORE": f"sqlite:{self.folder}/empty.db"}
        self.refused("lock", code=NO, env=empty, says=["nothing to pin", "empty.db", "as it was"])
        self.assertEqual(len(self.lines()), 1)

    def test_a_call_that_nobody_decided_is_named_and_nothing_is_written(self):
        self.decide(NORM)
        self.refused("lock", NORM, NORM_NEAR, code=NO, says=["no decision", NORM_NEAR, "tune it"])
        self.assertFalse((self.folder / "hone.lock").exists())

    def test_a_choice_that_hone_would_not_serve_is_left_out_with_the_reason(self):
        self.decide(NORM)
        stale = self.decide(NORM_NEAR, revision="an older one")
        answer = self.hone("lock", "--json")
        self.assertEqual(answer.json["choices"], 1)
        self.assertEqual([row["key"] for row in answer.json["left_out"]], [stale])
        self.assertIn("an older one", answer.json["left_out"][0]["reason"])
        self.assertIn("left out", answer.err)

    def test_a_choice_that_no_line_can_hold_is_left_out_with_the_reason(self):
        self.decide(NORM)
        self.decide(NORM_NEAR, algorithm="theirs", kernel="theirs", config={"tile": [1, 2]})
        answer = self.hone("lock", "--json").json
        self.assertEqual((answer["choices"], len(answer["left_out"])), (1, 1))
        self.assertIn("tile", answer["left_out"][0]["reason"])

    def test_the_system_store_answers_where_the_users_has_nothing(self):
        both, theirs = self.decide(NORM), self.decide(NORM_NEAR)
        system = self.store
        self.store = f"sqlite:{self.folder}/mine.db"
        self.decide(NORM, kernel="reference", config={})
        answer = self.hone("lock", "--json", env={"HONE_SYSTEM_STORE": system}).json
        self.assertEqual(answer["choices"], 2)
        self.assertEqual({line.split()[1]: line.split()[3] for line in self.lines()},
                         {both: "native/reference@1", theirs: "native/portable@1"})
        self.hone("lock", "--check", env={"HONE_SYSTEM_STORE": system})

    def test_choices_of_algorithms_that_only_a_program_has_are_pinned(self):
        self.decide(NORM, algorithm="theirs", kernel="theirs", config={"tile": "a b"})
        self.hone("lock")
        self.assertIn(' native/theirs@1 tile="a\\u0020b" ', self.lines()[0])

    def test_what_is_pinned_is_what_the_store_would_answer_with(self):
        self.decide(NORM, kernel="portable")
        self.decide(NORM, kernel="reference", config={}, regime="cold")
        self.decide(NORM_NEAR, kernel="reference", config={}, regime="warm-stable")
        gone = self.decide("rms_norm(f32[16,256], f32[256])", kernel="abacus", config={})
        for env, kernels, reasons in (
                ({}, {NORM: "portable", NORM_NEAR: "reference"}, []),
                ({"HONE_REGIME": "cold"}, {NORM: "reference", NORM_NEAR: "reference"}, []),
                ({"HONE_STABLE": "1"}, {NORM_NEAR: "reference"}, ["HONE_STABLE", "HONE_STABLE"]),
                ({"HONE_DENY": "rms_norm=portable"}, {NORM_NEAR: "reference"}, ["HONE_DENY names kernel portable"])):
            with self.subTest(env):
                answer = self.hone("lock", "--json", env=env).json
                self.assertEqual({line.split("  # ")[1]: line.split()[3] for line in self.lines()},
                                 {call: f"native/{kernel}@1" for call, kernel in kernels.items()})
                told = [row["reason"] for row in answer["left_out"] if row["key"] != gone]
                self.assertEqual(len(told), len(reasons))
                for reason, row in zip(reasons, told):
                    self.assertIn(reason, row)
                if "HONE_STABLE" not in env:
                    (row,) = [row for row in answer["left_out"] if row["key"] == gone]
                    self.assertIn("abacus (native) is not registered", row["reason"])
                self.hone("lock", "--check", env=env)

    def test_the_file_is_the_options_else_the_environments_else_here(self):
        self.decide(NORM)
        self.hone("lock", "--lock", "a.lock", env={"HONE_LOCK": "b.lock"})
        self.hone("lock", env={"HONE_LOCK": "b.lock"})
        self.assertEqual(self.lines("a.lock"), self.lines("b.lock"))
        self.assertFalse((self.folder / "hone.lock").exists())

    def test_a_folder_that_is_not_there_is_named(self):
        self.decide(NORM)
        self.refused("lock", "--lock", "none/hone.lock", code=WORLD, says="none/hone.lock")


class Check(LockTest):
    def test_agreement_is_exit_0(self):
        self.decide(NORM)
        self.hone("lock")
        self.assertIn("1 choice, as in", self.hone("lock", "--check").out)
        answer = self.hone("lock", "--check", "--json").json
        self.assertEqual((answer["drift"], answer["changes"]), (False, []))

    def test_drift_is_exit_1_with_a_diff_that_names_key_and_fields(self):
        self.decide(NORM)
        gone = self.decide(NORM_NEAR)
        self.hone("lock")
        self.hone("store", "remove", NORM_NEAR)
        config = self.hone("explain", NORM, "--json").json["config"]
        changed = self.decide(NORM, config={**config, "threads": config["threads"] + 7})
        other = "rms_norm(f32[16,256], f32[256])"
        added = self.decide(other)
        before = (self.folder / "hone.lock").read_bytes()
        answer = self.hone("lock", "--check", code=NO)
        self.assertEqual((self.folder / "hone.lock").read_bytes(), before)
        self.assertTrue(answer.out.startswith(f"--- hone.lock\n+++ {self.store}\n"))
        marks = {(line[0], line.split()[1]) for line in answer.out.splitlines()[2:] if line[0] in "+-"}
        self.assertEqual(marks, {("-", gone), ("-", changed), ("+", changed), ("+", added)})
        self.assertIn("# differs: config.threads\n", answer.out)
        self.assertIn("1 changed, 1 only in the store, 1 only in the lock file", answer.err)
        rows = {row["key"]: row for row in self.hone("lock", "--check", "--json", code=NO).json["changes"]}
        self.assertEqual({key: row["change"] for key, row in rows.items()},
                         {gone: "removed", changed: "changed", added: "added"})
        self.assertEqual(rows[changed]["differs"], ["config.threads"])
        self.assertEqual(rows[changed]["stored"]["config"]["threads"], config["threads"] + 7)
        self.assertIsNone(rows[gone]["stored"])
        self.assertIsNone(rows[added]["locked"])

    def test_what_is_named_limits_what_is_compared(self):
        self.decide(NORM)
        self.hone("lock")
        self.decide(NORM_NEAR)
        self.hone("lock", "--check", NORM)
        self.hone("lock", "--check", NORM_NEAR, code=NO)
        for options in ([], ["--check"]):
            self.refused("lock", *options, "--device", "cpu|another machine", code=NO, says="cpu|another machine")
            self.refused("lock", *options, "--device", "cpu another", says=["--device is 'cpu another'", "hone devices"])
        self.hone("lock", "--check", "--device", "here", code=NO)
        self.hone("lock", "--device", "cpu:0")
        self.hone("lock", "--check", "--device", "here")

    def test_a_file_that_is_not_there_is_no_agreement(self):
        self.decide(NORM)
        self.refused("lock", "--check", code=NO, says=["hone.lock", "there is no lock file yet"])

    def test_a_damaged_file_says_how_to_mend_it(self):
        self.decide(NORM)
        self.hone("lock")
        self.edit("native/portable", "native/reference")
        self.refused("lock", "--check", code=WORLD, says=["hone.lock", "hash", "--reseal"])
        self.refused("lock", NORM, code=WORLD, says=["hone.lock", "hash"])
        self.assertIn("was edited, merged or cut: its lines are replaced", self.hone("lock").err)
        self.hone("lock", "--check")


    def test_line_ends_of_windows_are_named(self):
        self.decide(NORM)
        self.hone("lock")
        path = self.folder / "hone.lock"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        self.refused("lock", "--check", code=WORLD, says=["hone.lock:1", "CR LF", "hone.lock -text"])

    def test_a_line_that_cannot_be_followed_is_told_once(self):
        self.decide(NORM)
        self.hone("lock")
        env = {"HONE_LOCK": "hone.lock", "HONE_DENY": "rms_norm=portable"}
        answer = self.hone("run", NORM, env=env)
        self.assertEqual(answer.err.count("going on without the lock file's answer"), 1, answer.err)
        self.assertIn("is not used here under HONE_DENY=rms_norm=portable, and is kept", answer.err)

    def test_what_never_was_a_lock_file_is_left(self):
        self.decide(NORM)
        notes = self.folder / "notes.txt"
        notes.write_text("notes\n")
        for where in ({"env": {"HONE_LOCK": "notes.txt"}}, {}):
            options = [] if where else ["--lock", "notes.txt"]
            self.refused("lock", *options, code=WORLD, says=["left as it is", "notes.txt"], **where)
        self.assertEqual(notes.read_text(), "notes\n")
        notes.write_text("")
        self.hone("lock", "--lock", "notes.txt")
        notes.write_text("<<<<<<< HEAD\n" + notes.read_text())
        self.hone("lock", "--lock", "notes.txt")
        self.hone("lock", "--lock", "notes.txt", "--check")

    def test_a_pipe_is_refused_and_never_waited_for(self):
        self.decide(NORM)
        os.mkfifo(self.folder / "pipe")
        self.refused("lock", "--lock", "pipe", code=WORLD, says=["pipe", "not a regular file"])
        self.refused("explain", NORM, env={"HONE_LOCK": "pipe"}, code=WORLD, says=["HONE_LOCK", "not a regular file"])


class Reseal(LockTest):
    def test_an_edit_is_accepted(self):
        self.decide(NORM)
        self.hone("lock")
        line = self.lines()[0]
        self.edit(line, re.sub(r" threads=\d+", lambda was: f" threads={32 if was[0] == ' threads=64' else 64}", line))
        self.assertIn("sealed", self.hone("lock", "--reseal").out)
        answer = self.hone("lock", "--check", "--json", code=NO).json
        self.assertEqual(answer["changes"][0]["differs"], ["config.threads"])

    def test_a_conflict_is_not(self):
        self.decide(NORM)
        self.hone("lock")
        self.edit("rms_norm@v1", "<<<<<<< HEAD\nrms_norm@v1")
        self.refused("lock", "--reseal", code=WORLD, says=["hone.lock:4", "<<<<<<<"])

    def test_a_line_that_the_registry_contradicts_is_refused_by_number(self):
        key = self.decide(NORM)
        self.hone("lock")
        text = (self.folder / "hone.lock").read_text()
        for before, after, says in (
                (f"# {NORM}", f"# {NORM_NEAR}", [key, NORM_NEAR]), (key, "0123456789abcdef", ["0123456789abcdef", NORM, key]),
                (" threads=", " threads=99999", ["threads"]), (" threads=", " nothing=", ["nothing"])):
            (self.folder / "hone.lock").write_text(text.replace(before, after))
            before = (self.folder / "hone.lock").read_bytes()
            self.refused("lock", "--reseal", code=WORLD, says=["hone.lock:4: ", *says])
            self.assertEqual((self.folder / "hone.lock").read_bytes(), before)
        (self.folder / "hone.lock").write_text(text.replace("native/portable", "native/gone"))
        self.assertIn("hone.lock:4: native/gone of rms_norm is not registered here", self.hone("lock", "--reseal").err)

    def test_it_takes_nothing_else(self):
        self.refused("lock", "--reseal", "--check", code=USAGE, says="--reseal")
        self.refused("lock", "--reseal", NORM, code=USAGE, says="--reseal")


class Frozen(LockTest):
    def test_a_frozen_program_runs_with_the_lock_file_alone(self):
        self.decide(NORM)
        self.hone("lock")
        self.decide(NORM, kernel="reference", config={})
        answer = self.hone("run", NORM, "--json", env=FROZEN).json
        self.assertEqual((answer["source"], answer["kernel"]), ("lock", "portable"))
        answer = self.hone("explain", NORM, "--json", env={"HONE_LOCK": "hone.lock"}).json
        self.assertEqual((answer["source"], answer["kernel"]), ("lock", "portable"))

    def test_a_miss_names_the_key_and_the_differing_fields(self):
        self.decide(NORM)
        self.hone("lock")
        key = self.hone("key", NORM_NEAR, "--json").json["key"]
        self.refused("run", NORM_NEAR, env=FROZEN, code=NO, says=[key, "frozen", "x.shape[0]: 8, locked 4", "hone lock"])
        answer = self.hone("explain", NORM_NEAR, "--json", env=FROZEN, code=NO).json
        self.assertEqual(answer["nearest"][0]["differs"], ["x.shape[0]: 8, locked 4"])

    def test_drift_names_the_line_and_what_does_not_fit(self):
        key = self.decide(NORM)
        self.hone("lock")
        self.edit("native/portable", "native/gone")
        self.hone("lock", "--reseal")
        self.refused("run", NORM, env=FROZEN, code=WORLD, says=["hone.lock:4", key, "native/gone", "not registered"])
        answer = self.hone("explain", NORM, "--json", env={"HONE_LOCK": "hone.lock"})
        self.assertEqual(answer.json["source"], "store")
        self.assertIn("native/gone", answer.json["chain"][2]["why"])
