"""hone store and hone record: what is remembered, put, removed, refused, and left as it was."""

import hashlib
import json
import os
import sqlite3
import subprocess
import unittest

from support import DATA, DONE, NO, NORM, NORM_NEAR, NULL, NUMBER, QUICK, USAGE, WORLD, CommandTest


SOFTMAX = "softmax(f32[4,64])"


class StoreTest(CommandTest):
    def document(self, call=NORM, **changes):
        """A result document with one entry, as another machine of this kind could have sent it."""
        key = self.hone("key", call, "--json").json
        heuristic = self.hone("explain", call, "--json", env={"HONE_STORE": "none"}).json
        entry = {"algorithm": "rms_norm", "version": "1", "key": key["key"], "call": call, "spec": key["spec"],
                 "kernel": "portable", "platform": "native", "source": "autotune",
                 "config": self.config("portable"), "evidence": {"time_ns": 1234.5}}
        entry.update(changes)
        return {"hone_result": 1, "device": heuristic["device"], "entries": [entry]}

    def config(self, kernel):
        return self.hone("explain", NORM, "--json",
                         env={"HONE_STORE": "none", "HONE_FORCE": f"rms_norm={kernel}"}).json["config"]

    def put(self, document, **options):
        return self.hone("store", "put", "--json", input=json.dumps(document), **options)


class Tiers(CommandTest):
    def test_the_system_store_answers_under_the_users_and_is_never_written(self):
        folder = self.folder / "system"
        system = f"sqlite:{folder}/store.db"
        tuned = self.hone("tune", NORM, *QUICK, "--json", env={"HONE_STORE": system}).json["entries"][0]
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name == "store.db"}
        (folder / "store.db").chmod(0o444)
        folder.chmod(0o555)
        self.addCleanup(folder.chmod, 0o755)
        env = {"HONE_SYSTEM_STORE": system, "HONE_POLICY": "heuristic"}
        answer = self.hone("explain", NORM, "--json", env=env).json
        self.assertEqual((answer["source"], answer["kernel"], answer["system"]), ("store", tuned["kernel"], True))
        self.assertIn("found in the system store", self.hone("explain", NORM, env=env).out)
        self.hone("tune", NORM_NEAR, *QUICK, env=env)
        self.assertEqual(self.stat()["decisions"], 1)
        self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir() if path.name == "store.db"}, before)
        self.assertNotIn("store.db-wal", [path.name for path in folder.iterdir()])

    def test_doctor_looks_at_the_system_store(self):
        rows = self.hone("doctor", "--json", code=None, env={"HONE_SYSTEM_STORE": f"sqlite:{self.folder}/nowhere.db"}).json
        (row,) = [row for row in rows["checks"] if row["name"] == "system store"]
        self.assertFalse(row["ok"])
        self.assertIn("nowhere.db", row["detail"])
        self.assertFalse((self.folder / "nowhere.db").exists())


class Provenance(CommandTest):
    def test_store_get_shows_when_how_with_what_and_who_only_when_asked(self):
        self.hone("tune", NORM, *QUICK)
        (row,) = self.hone("store", "get", NORM, "--json").lines
        self.has_fields(row["evidence"], {"started": str, "samples": int, "hone_version": str, "verified_against": str})
        self.has_fields(row["environment"], {"hone": str, "compiler": str, "flags": str, "os": str})
        self.assertEqual(row["source"], "autotune")
        self.assertNotIn("who", row["evidence"])
        self.hone("tune", NORM, *QUICK, "--fresh", env={"HONE_PROVENANCE": "1"})
        (row,) = self.hone("store", "get", NORM, "--json").lines
        self.assertIn("@", row["evidence"]["who"])

    def test_what_was_tuned_elsewhere_is_served_and_measured_again(self):
        self.hone("tune", NORM, *QUICK)
        listed = json.loads(self.hone("tune", NORM, *QUICK, "--json").out)
        listed["environment"]["compiler"] = "an older one"
        self.hone("store", "put", input=json.dumps(listed))
        env = {"HONE_POLICY": "heuristic"}
        answer = self.hone("explain", NORM, "--json", env=env).json
        self.assertEqual(answer["source"], "store")
        self.assertIn("compiler was an older one", answer["changed"])
        self.hone("run", NORM, env=env)
        self.hone("tune", "--recorded", *QUICK)
        self.assertIsNone(self.hone("explain", NORM, "--json", env=env).json["changed"])


class Put(StoreTest):
    def test_what_is_put_is_stored_and_answers(self):
        self.assertEqual(self.put(self.document()).json, {"stored": 1})
        answer = self.hone("explain", NORM, "--json").json
        self.assertEqual((answer["source"], answer["kernel"]), ("store", "portable"))

    def test_only_the_time_is_asked_of_evidence(self):
        self.put(self.document())
        answer = self.hone("explain", NORM, "--json").json
        self.assertFalse(answer["verified"])
        self.assertEqual(answer["evidence"]["time_ns"], 1234.5)

    def test_what_a_contest_left_open_is_told_wherever_its_choice_is_shown(self):
        why = "7 of 9 kernels were never tried; try --seconds 30"
        self.put(self.document(evidence={"time_ns": 99.5, "undecided": why}))
        self.put(self.document(NORM_NEAR))
        self.assertEqual(self.hone("explain", NORM, "--json").json["evidence"]["undecided"], why)
        self.assertIn(f"  undecided: {why}\n", self.hone("explain", NORM).out)
        self.assertEqual(self.hone("store", "get", NORM, "--json").json["evidence"]["undecided"], why)
        listed = {row.split("  ")[-1]: row for row in self.hone("store", "list").out.splitlines()}
        self.assertIn("autotune, undecided ", listed[NORM])
        self.assertNotIn("undecided", listed[NORM_NEAR])
        (row,) = [row for row in self.hone("doctor", "--json", code=None).json["checks"] if row["name"] == "contests"]
        self.assertIn(f"1 left open which is the fastest: {NORM}", row["detail"])
        self.assertIn("--recorded", row["advice"])

    def test_what_a_contest_left_open_is_tuned_again_with_the_recorded(self):
        open_ended = {"time_ns": 99.5, "verified_against": "reference", "seconds": 0.75,
                      "undecided": "7 of 9 kernels were never tried; try --seconds 30"}
        document = self.document(evidence=open_ended)
        self.put(document)
        (entry,) = document["entries"]
        row = {name: entry[name] for name in ("algorithm", "version", "key", "spec", "call")}
        row.update({"count": 9, "first": "2026-11-20T12:34:56Z", "last": "2026-11-20T12:34:56Z"})
        record = {"hone_record": 1, "device": document["device"], "invocations": [row]}
        self.hone("record", "import", "-", input=json.dumps(record))
        out = self.hone("tune", "--recorded", "--evals", "6", "--seconds", "1").out
        self.assertNotIn("decided already", out)
        stored = self.hone("store", "get", NORM, "--json").json["evidence"]
        self.assertEqual(stored["allowed_seconds"], 1.5)
        # What was open with the most seconds stays, and says so.
        document["entries"][0]["evidence"]["allowed_seconds"] = 8
        self.put(document)
        out = self.hone("tune", "--recorded", "--evals", "6", "--seconds", "1").out
        self.assertIn("decided already", out)
        self.assertIn(f"  undecided: {open_ended['undecided']}\n", out)

    def test_a_newer_put_replaces_the_older(self):
        self.put(self.document())
        self.put(self.document(evidence={"time_ns": 99.5}))
        self.assertEqual(self.stat()["decisions"], 1)
        self.assertEqual(self.hone("store", "get", NORM, "--json").json["evidence"]["time_ns"], 99.5)

    def test_what_the_command_listed_can_be_put_again(self):
        self.put(self.document())
        rows = self.hone("store", "list", "--json").lines
        other = f"sqlite:{self.folder}/other.db"
        document = {"hone_result": 1, "device": rows[0]["device"], "entries": rows}
        self.assertEqual(self.put(document, env={"HONE_STORE": other}).json, {"stored": 1})
        self.assertEqual(self.hone("store", "list", "--json", "--store", other).lines, rows)

    def test_a_damaged_document_is_refused_and_harms_nothing(self):
        self.put(self.document())
        good = self.document(NORM_NEAR)
        def entry(**changes):
            return {**good, "entries": good["entries"] + [{**good["entries"][0], **changes}]}
        damaged = {
            "not json": "{", "an array": "[]", "no version": json.dumps({"entries": []}),
            "no device": json.dumps({"hone_result": 1, "entries": []}),
            "no key": json.dumps(entry(key=None)), "half a key": json.dumps(entry(key="0123")),
            "no time": json.dumps(entry(evidence={})), "a bad time": json.dumps(entry(evidence={"time_ns": -1})),
            "a bad config": json.dumps(entry(config=[1])), "no kernel": json.dumps(entry(kernel="")),
            "a bad platform": json.dumps(entry(platform="abacus")), "a bad source": json.dumps(entry(source="dream")),
            "nothing": "", "zeros": "\0" * 64, "deep": "[" * 100000,
        }
        for name, text in damaged.items():
            with self.subTest(name):
                answer = self.hone("store", "put", "--json", input=text, code=None)
                self.assertIn(answer.code, (USAGE, WORLD))
                self.assertEqual(answer.out, "")
                self.assertTrue(answer.err.startswith("hone: "))
        self.assertEqual(self.stat()["decisions"], 1)
        self.assertEqual(self.hone("explain", NORM, "--json").json["source"], "store")

    def test_a_newer_document_is_refused(self):
        answer = self.put({**self.document(), "hone_result": 2}, code=WORLD)
        self.assertIn("version 2", answer.err)

    def test_a_key_that_is_not_the_texts_is_refused(self):
        other = self.hone("key", NORM_NEAR, "--json").json["key"]
        self.put(self.document(key=other), code=None)
        self.assertEqual(self.hone("explain", NORM_NEAR, "--json").json["source"], "heuristic")

    def test_a_kernel_that_is_not_here_answers_nothing(self):
        self.put(self.document(kernel="abacus"))
        answer = self.hone("explain", NORM, "--json").json
        self.assertEqual(answer["source"], "heuristic")
        why = next(row["why"] for row in answer["chain"] if row["link"] == "store")
        self.assertIn("abacus", why)

    def test_a_config_outside_the_space_is_refused_or_answers_nothing(self):
        config = dict(self.config("portable"), threads=64)
        self.put(self.document(config=config))
        answer = self.hone("explain", NORM, "--json").json
        self.assertEqual(answer["source"], "heuristic")
        self.assertIn("no parameter 'warp'", self.put(self.document(config={"warp": 9}), code=WORLD).err)
        self.assertEqual(self.hone("explain", NORM, "--json").json["source"], "heuristic")


class Get(StoreTest):
    def test_get_before_put_is_the_answer_no(self):
        self.refused("store", "get", NORM, code=NO, says=["no such store yet", self.store])
        self.put(self.document(NORM_NEAR))
        self.refused("store", "get", NORM, code=NO, says=["no decision", self.store])

    def test_a_decision_is_found_by_call_and_by_key(self):
        self.put(self.document())
        row = self.hone("store", "get", NORM, "--json").json
        self.has_fields(row, {"algorithm": str, "version": str, "key": str, "call": str, "spec": str, "kernel": str,
                              "platform": str, "config": dict, "source": str, "evidence": dict, "verified": bool})
        self.assertEqual(self.hone("store", "get", row["key"], "--json").json, row)

    def test_a_list_is_one_line_a_decision(self):
        self.put(self.document())
        self.put(self.document(NORM_NEAR))
        self.assertEqual({row["call"] for row in self.hone("store", "list", "--json").lines}, {NORM, NORM_NEAR})
        self.assertIn(NORM_NEAR, self.hone("store", "list").out)

    def test_removed_is_gone(self):
        self.put(self.document())
        self.put(self.document(NORM_NEAR))
        other = NORM[:-1] + ", eps=0.5)"
        self.assertIn(f"that of '{NORM}' answers it", self.hone("store", "remove", other, code=NO).err)
        self.assertEqual(self.hone("store", "remove", NORM, "--json").json, {"removed": 1})
        self.hone("store", "remove", NORM, code=NO)
        self.hone("store", "get", NORM, code=NO)
        self.hone("store", "get", NORM_NEAR)

    def test_a_call_is_removed_in_all_its_regimes(self):
        for regime in ([], ["--stable"]):
            self.hone("tune", NORM, *QUICK, "--kernel", "portable", *regime)
        self.assertEqual(self.hone("store", "remove", NORM, "--json").json, {"removed": 2})
        self.hone("store", "get", NORM, code=NO)

    def test_a_call_is_of_its_own_algorithm_and_a_key_of_several_is_not_removed(self):
        call = "attention(f32[1,2,8,16], f32[1,2,8,16], f32[1,2,8,16])"
        for algorithm, text in (("attention", call), ("flash_attention", "flash_" + call)):
            self.put(self.document(text, algorithm=algorithm, kernel="reference", config={}))
        key = self.hone("key", call, "--json").json["key"]
        for text in (call, "flash_" + call):
            self.assertEqual([row["call"] for row in self.hone("store", "get", text, "--json").lines], [text])
        self.assertEqual(len(self.hone("store", "get", key, "--json").lines), 2)
        for command in (["store", "remove"], ["explain"], ["lock"], ["tune"], ["tune", "--audit"]):
            self.refused(*command, key, says=[key, "calls of attention, flash_attention", "name the call"])
        self.assertEqual(self.hone("store", "remove", call, "--json").json, {"removed": 1})
        self.assertEqual([row["algorithm"] for row in self.hone("store", "get", key, "--json").lines], ["flash_attention"])
        self.assertEqual(self.hone("store", "remove", key, "--json").json, {"removed": 1})

    def test_a_call_on_a_device_is_not_the_others(self):
        self.put(self.document())
        self.put(dict(self.document(), device="cpu|other"))
        here = self.fingerprint()
        self.assertEqual(len(self.hone("store", "get", NORM, "--json").lines), 2)
        self.assertEqual([row["device"] for row in self.hone("store", "get", f"{NORM}@cpu:0", "--json").lines], [here])
        self.refused("store", "remove", f"{NORM}@opencl:0", says=["@opencl:0", "hone devices"])
        self.assertEqual(self.hone("store", "remove", f"{NORM}@cpu", "--json").json, {"removed": 1})
        self.assertEqual([row["device"] for row in self.hone("store", "get", NORM, "--json").lines], ["cpu|other"])

    def test_stat_counts(self):
        self.put(self.document())
        self.has_fields(self.stat(), {"store": str, "decisions": int, "measurements": int, "failures": int,
                                      "invocations": int, "aliases": int, "foreigns": int, "quarantined": int,
                                      "bytes": int, "schema": int})
        self.assertEqual(self.stat()["decisions"], 1)

    def test_an_unknown_verb_lists_those_there_are(self):
        self.refused("store", "drop", says=["drop", "list"])
        self.refused("store", "get", says="one call, key or label")


class BadStores(StoreTest):
    def test_kinds_that_are_not_there_are_refused_by_name(self):
        for url in ("mongodb:x", "postgres://db/hone", "sqlite:", "/tmp/store.db"):
            self.refused("store", "list", "--store", url, says=url)

    def test_a_file_of_something_else_is_left_also_behind_a_link(self):
        path = self.folder / "notes.txt"
        link = self.folder / "link.db"
        path.write_text("not a database, and long enough to be none\n" * 100)
        link.symlink_to(path)
        before, names = path.read_bytes(), sorted(self.folder.iterdir())
        for url in (f"sqlite:{path}", f"sqlite:{link}"):
            for verb in ("list", "stat", "verify"):
                self.refused("store", verb, "--store", url, code=WORLD, says=[url[len("sqlite:"):], "was not changed"])
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual(sorted(self.folder.iterdir()), names)

    def test_a_folder_of_ejkernels_caches_is_to_be_imported_and_left(self):
        for path in sorted((DATA / "golden" / "persistent").glob("*.json")):
            folder = self.folder / path.stem
            folder.mkdir()
            (folder / path.name).write_bytes(path.read_bytes())
            for url in (f"json:{folder}", f"json:{folder / path.name}"):
                self.refused("store", "list", "--store", url, code=WORLD, says="hone store import")
                self.hone("tune", SOFTMAX, *QUICK, "--store", url, code=None)
                self.assertEqual([file.name for file in folder.iterdir()], [path.name])
                self.assertEqual((folder / path.name).read_bytes(), path.read_bytes())

    def test_text_is_no_json_store(self):
        path = self.folder / "notes.json"
        path.write_text("not JSON, and not a store\n" * 100)
        before = path.read_bytes()
        self.refused("store", "list", "--store", f"json:{path}", code=WORLD, says="was not changed")
        self.assertEqual(path.read_bytes(), before)

    def test_a_host_goes_on_when_its_store_is_no_database(self):
        path = self.folder / "notes.txt"
        path.write_text("not a database, and long enough to be none\n" * 100)
        before = path.read_bytes()
        answer = self.hone("run", NORM, "--json", "--store", f"sqlite:{path}", env={"HONE_POLICY": "heuristic"})
        self.assertTrue(answer.json["verified"])
        self.assertIn("going on without the store", answer.err)
        self.assertEqual(path.read_bytes(), before)

    def test_a_database_of_something_else_is_left_as_it_was(self):
        path = self.folder / "other.db"
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE decision(x)")
        self.refused("store", "list", "--store", f"sqlite:{path}", code=WORLD, says="something else")

    def test_a_newer_schema_is_refused(self):
        self.put(self.document())
        with sqlite3.connect(self.folder / "store.db") as db:
            db.execute("PRAGMA user_version = 99")
        self.refused("store", "list", code=WORLD, says="99")

    def test_a_pipe_is_refused_and_never_waited_for(self):
        folder = self.folder / "rows"
        folder.mkdir()
        for path in (self.folder / "pipe.json", folder / "rms_norm.json"):
            os.mkfifo(path)
        for path in (self.folder / "pipe.json", folder):
            self.refused("store", "list", "--store", f"json:{path}", code=WORLD, says="not a regular file")

    @unittest.skipUnless(os.geteuid() == 0, "only root mounts a disk that is full")
    def test_a_store_that_finds_no_room_is_begun_when_there_is(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("this machine mounts nothing")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        url = f"sqlite:{disk}/new.db"
        for room in (0, 16384):
            (disk / "fill").write_bytes(bytes((1 << 20) - room))
            answer = self.hone("tune", NORM, *QUICK, env={"HONE_STORE": url}, code=NO)
            self.assertRegex(answer.err, "going on without the store: .*(No space left on device|disk is full)")
            self.assertEqual((disk / "new.db").exists(), room > 0)
        (disk / "fill").unlink()
        self.hone("tune", NORM, *QUICK, env={"HONE_STORE": url})
        self.assertEqual(self.hone("store", "stat", "--json", "--store", url).json["decisions"], 1)

    def test_a_folder_that_cannot_be_made_is_named(self):
        path = self.write("file", "")
        self.refused("store", "list", "--store", f"sqlite:{path}/x/store.db", code=WORLD, says=path)

    def test_a_changed_record_is_found_and_never_served(self):
        self.put(self.document())
        self.put(self.document(NORM_NEAR))
        with sqlite3.connect(self.folder / "store.db") as db:
            db.execute("UPDATE decision SET time_ns = 1 WHERE call = ?", (NORM,))
        answer = self.hone("explain", NORM, "--json")
        self.assertEqual(answer.json["source"], "heuristic")
        self.assertIn("checksum", answer.err)
        self.assertEqual(self.hone("explain", NORM_NEAR, "--json").json["source"], "store")
        self.assertEqual([row["call"] for row in self.hone("store", "list", "--json").lines], [NORM_NEAR])
        self.assertEqual(self.stat()["quarantined"], 1)

    def test_a_host_goes_on_without_its_store(self):
        answer = self.hone("run", NORM, "--json", env={"HONE_STORE": "postgresql://127.0.0.1:1/x", "HONE_POLICY": "heuristic"})
        self.assertTrue(answer.json["verified"])
        self.assertEqual(self.hone("run", NORM, "--json", env={"HONE_STORE": "none", "HONE_POLICY": "heuristic"}).json[
            "source"], "heuristic")


    def test_commands_about_a_store_say_when_there_is_none(self):
        for nothing in ({"HONE_STORE": "none"}, {"HONE_STORE": ""}):
            self.assertIn("there is no store: set HONE_STORE", self.hone("store", "list", env=nothing, code=USAGE).err)
        here = self.hone("doctor", "--json", code=None, env={"HONE_STORE": ""}).json
        self.assertIn("there is none", [row["detail"] for row in here["checks"]])


class Record(StoreTest):
    RECORDED = DATA / "golden" / "lowered" / "many.recorded.json"

    def test_nothing_recorded_is_an_empty_document(self):
        answer = self.hone("record", "list", "--json").json
        self.assertEqual((answer["hone_record"], answer["invocations"]), (1, []))
        self.assertEqual(answer["device"], self.fingerprint())
        self.hone("record", "export", "out.json")
        self.assertFalse((self.folder / "store.db").exists())

    def test_ejkernels_records_are_imported(self):
        count = len(json.loads(self.RECORDED.read_text())["invocations"])
        self.assertEqual(self.hone("record", "import", str(self.RECORDED), "--json").json, {"imported": count})
        rows = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual(len(rows), count)
        for row in rows:
            self.has_fields(row, {"algorithm": str, "version": str, "key": str, "spec": str, "count": int,
                                  "first": str, "last": str, "kernel": (str, NULL), "answered": (str, NULL), "decided": bool})

    def test_what_was_listed_can_be_imported(self):
        self.hone("record", "import", str(self.RECORDED))
        listed = self.hone("record", "list", "--json").out
        other = {"HONE_STORE": f"sqlite:{self.folder}/other.db"}
        self.hone("record", "import", "-", input=listed, env=other)
        keys = [row["key"] for row in json.loads(listed)["invocations"]]
        again = [row["key"] for row in self.hone("record", "list", "--json", env=other).json["invocations"]]
        self.assertEqual(sorted(again), sorted(keys))

    def record(self, device, **more):
        row = {"algorithm": "softmax", "version": "1", "key": self.hone("key", SOFTMAX, "--json").json["key"], "call": SOFTMAX, **more}
        self.hone("record", "import", "-", input=json.dumps({"hone_record": 1, "device": device, "invocations": [row]}))

    def listed(self):
        return {row["device"]: row for row in self.hone("record", "list", "--json").json["invocations"]}

    def test_calls_are_tuned_on_the_device_that_they_were_recorded_on(self):
        there = "cpu|GenuineIntel,golden_cove,avx2,l1=49152,l2=2097152,l3=31457280,threads=96"
        self.record(there)
        out = self.hone("tune", "--recorded", *QUICK).out
        self.assertIn("every recorded call of the devices here is decided already", out)
        self.assertEqual(self.hone("store", "list").out.splitlines()[1:], [])
        self.record(self.fingerprint())
        self.hone("tune", "--recorded", *QUICK)
        rows = self.listed()
        self.assertEqual({device: row["decided"] for device, row in rows.items()}, {there: False, self.fingerprint(): True})
        for verb, column in (("record", "device"), ("store", "device")):
            table = self.hone(verb, "list").out.splitlines()
            self.assertIn(column, table[0].split())
            self.assertIn(f": {self.fingerprint()}", "\n".join(table))

    def test_decided_is_whether_the_call_is_decided_and_answered_who_answered_it(self):
        self.hone("run", SOFTMAX, env={"HONE_RECORD": "1", "HONE_POLICY": "heuristic"})
        row = self.listed()[self.fingerprint()]
        self.assertEqual((row["answered"], row["decided"]), ("heuristic", False))
        self.hone("tune", SOFTMAX, *QUICK)
        row = self.listed()[self.fingerprint()]
        self.assertEqual((row["answered"], row["decided"]), ("heuristic", True))
        self.record(self.fingerprint(), decided="transfer", last="2099-01-01T00:00:00Z")  # a document from before
        self.assertEqual(self.listed()[self.fingerprint()]["answered"], "transfer")

    def test_positional_arguments_are_tuned(self):
        shaped = {"dtype": "float32", "shape": [1, 8, 2, 16]}
        spec = json.dumps({"args_spec": [shaped] * 3, "batch_axes": None, "kwargs_spec": {"causal": True}, "method": None},
                          separators=(",", ":"), sort_keys=True)
        key = hashlib.sha256(spec.encode()).hexdigest()[:16]
        self.hone("record", "import", "-", input=json.dumps({"device": "cpu|cpu", "invocations": [
            {"op": "flash_attention@v2", "key": key, "spec": spec}]}))
        result = self.hone("tune", "--recorded", *QUICK, "--json").json
        self.assertEqual([entry["call"] for entry in result["entries"]],
                         ["flash_attention(f32[1,8,2,16], f32[1,8,2,16], f32[1,8,2,16], causal=true)"])

    def test_cleared_is_gone(self):
        self.hone("record", "import", str(self.RECORDED))
        self.hone("record", "clear")
        self.assertEqual(self.hone("record", "list", "--json").json["invocations"], [])

    def test_damage_is_refused(self):
        for text in ("", "{", "[]", '{"hone_record":1}', '{"hone_record":9,"device":"x","invocations":[]}',
                     '{"invocations":[{"op":"x@v1"}]}', '{"invocations":[3]}'):
            with self.subTest(text):
                answer = self.hone("record", "import", "-", input=text, code=None)
                self.assertIn(answer.code, (USAGE, WORLD), answer.err)
                self.assertTrue(answer.err.startswith("hone: "))
        self.refused("record", "import", "nowhere.json", code=WORLD, says="nowhere.json")
        self.refused("record", "import", says="files")
        self.refused("record", "forget", says="forget")
