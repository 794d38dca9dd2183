"""Slips of the hand: what is named wrongly is told by name, at once, and changes nothing."""

import json
import unittest

from support import BUILD, DATA, NO, NORM, PRODUCT, QUICK, USAGE, WORLD, CommandTest


class Names(CommandTest):
    def test_a_store_that_is_no_url_is_wrong_use(self):
        for command in (["tune", NORM], ["run", NORM], ["explain", NORM], ["store", "list"], ["record", "list"]):
            self.refused(*command, "--store", "nope:x", says=["nope:x", "sqlite:PATH"])
        self.refused("tune", NORM, "--store", "postgres://host/x", says="postgresql://USER@HOST")

    def test_a_platform_or_kernel_that_nobody_knows_is_wrong_use(self):
        self.refused("tune", NORM, "--platform", "nope", says=["nope", "native", "cuda"])
        self.refused("tune", NORM, "--kernel", "nope", says=["--kernel is 'nope'", "portable", "reference"])
        self.refused("offline", "-", "--kernel", "nope", says="--kernel is 'nope'")
        # Other algorithms have it: what was measured then was nothing, without a word of the name.
        self.refused("tune", NORM, "--kernel", "openblas", says=["rms_norm has no kernel of that name", "portable"])
        self.refused("tune", PRODUCT, "--kernel", "cuda", says=["matmul has no kernel of that name", "did you mean"])
        self.hone("tune", NORM, *QUICK, "--kernel", "portable", "--platform", "native")

    def test_an_option_that_only_other_verbs_take_is_wrong_use(self):
        self.hone("tune", NORM, *QUICK, "--kernel", "portable")
        for command, verb, option in (
                ("store", ["remove", NORM], ["--dry-run"]), ("store", ["import", "x.json"], ["--dry-run"]),
                ("store", ["list"], ["--device", "here"]), ("queue", ["list"], ["--off"]),
                ("queue", ["add", NORM], ["--off"]), ("pack", ["list"], ["-o", "x"]), ("pack", ["check", "."], ["--from", "x"])):
            name = {"-o": "--output"}.get(option[0], option[0])
            self.refused(command, *verb, *option, says=f"{command} {verb[0]} takes no {name} (hone help {command})")
        self.refused("offline", "--list", "-", "--seconds", "3", says="offline --list takes no --seconds")
        self.refused("offline", "--expect-all", "-", "--fresh", says="offline --expect-all takes no --fresh")
        self.refused("tune", "--audit", "--batch-seconds", "3", says="tune --audit takes no --batch-seconds")
        self.assertEqual(len(self.hone("store", "list", "--json").lines), 1)
        self.assertEqual(self.hone("queue", "list", "--json").json["jobs"], [])
        self.assertIn("takes --dry-run", self.hone("help", "store").out)

    def test_an_argument_too_many_is_wrong_use(self):
        for verb in (["put", "a.json", "b.json"], ["stat", "x"], ["verify", "x"], ["get", NORM, "x"], ["list", "x"]):
            self.refused("store", *verb, says=f"store {verb[0]} takes no {verb[-1]}")
        self.refused("record", "export", "a", "b", says="record export takes no b")
        self.refused("explain", says="expected hone explain CALL, got 0 arguments (hone help explain)")
        self.refused("explain", NORM, NORM, says="expected hone explain CALL, got 2 arguments")
        self.refused("devices", "x", says="expected hone devices without arguments, got 1 (hone help devices)")
        self.refused("tune", says="expected one of: calls, --recorded, --audit; got none of them")
        self.refused("tune", "--recorded", NORM, says="got calls and --recorded")

    def test_a_name_that_json_cannot_show_is_refused_before_the_work(self):
        self.hone("tune", NORM, *QUICK, "--kernel", "portable")
        for arguments in (["lock", "--lock", "b\udcff.lock"], ["pack", "list", "b\udcff"], ["offline", "--list", "b\udcff"]):
            self.refused(*arguments, "--json", says="b?", code=USAGE)
            self.assertNotIn("memory", self.hone(*arguments, "--json", code=USAGE).err)
        self.assertEqual(list(self.folder.glob("*.lock")), [])

    def test_control_characters_of_a_stored_call_do_not_reach_the_terminal(self):
        document = self.hone("tune", NORM, *QUICK, "--kernel", "portable", "--json").json
        entry = document["entries"][0]
        entry.update(algorithm="gone", call=NORM + "\x1b[31m")  # no call of an algorithm that is here passes so
        self.hone("store", "put", input=json.dumps(document))
        key = document["entries"][0]["key"]
        self.assertNotIn("\x1b", self.hone("explain", key, code=None).err)
        self.assertNotIn("\x1b", self.hone("lock", code=None).err)

    def test_an_empty_name_of_a_file_or_store_is_wrong_use(self):
        lock = self.folder / "hone.lock"
        lock.write_text("mine")
        self.refused("lock", "--lock", "", says="--lock is empty, expected FILE")
        self.refused("tune", NORM, "--store", "", says="--store is empty, expected URL")
        self.refused("store", "export", "-", "--device", "", says="--device is empty, expected DEVICE")
        self.assertEqual(lock.read_text(), "mine")

    def test_a_worker_that_cannot_be_run_or_is_another_program_is_wrong_use(self):
        self.hone("tune", NORM, *QUICK, "--kernel", "portable")
        measured = self.stat()["measurements"]
        for path in ("/nowhere/hone-worker", "/etc/passwd", "/etc", "/bin/true", "/bin/echo"):
            for command in (["tune", NORM], ["tune", "--audit"], ["offline", "-"], ["work", "--until-empty"]):
                self.refused(*command, env={"HONE_WORKER": path}, says=["HONE_WORKER", path, "give the path of hone-worker"])
        self.assertEqual(self.stat()["measurements"], measured)

    def test_a_worker_that_is_none_is_told_where_a_command_goes_on_without_it(self):
        for path, says in (("/nowhere/hone-worker", "is no program"), ("/bin/true", "is it this library's hone-worker?")):
            with self.subTest(path):
                answer = self.hone("run", NORM, env={"HONE_WORKER": path, "HONE_STORE": "none"})
                self.assertEqual(answer.err.count("HONE_WORKER names"), 1, answer.err)
                self.assertIn(says, answer.err)
                self.assertIn(path, answer.err)
        worker = {"HONE_WORKER": str(BUILD.resolve() / "hone-worker")}
        self.assertNotIn("HONE_WORKER", self.hone("tune", NORM, *QUICK, env=worker).err)

    def test_nothing_is_stored_in_none(self):
        for nothing in ("none", ""):
            out = self.hone("tune", NORM, *QUICK, env={"HONE_STORE": nothing}).out
            self.assertNotIn("stored in", out)
            self.assertIn("not stored: there is no store", out)
        nowhere = {"HONE_STORE": None, "XDG_CACHE_HOME": None, "HOME": None}
        self.assertIn("not stored: there is no store", self.hone("tune", NORM, *QUICK, env=nowhere).out)
        self.assertNotIn("stored in", self.hone("tune", NORM, *QUICK, "--store", "none").out)
        usual = {"HONE_STORE": None, "XDG_CACHE_HOME": None}
        self.assertIn(f"stored in sqlite:{self.folder}/.cache/hone/store.db\n",
                      self.hone("tune", NORM, *QUICK, env=usual).out)
        self.assertIn(f"stored in {self.store}", self.hone("tune", NORM, *QUICK).out)

    def test_a_policy_that_is_none_names_those_there_are(self):
        self.refused("run", NORM, env={"HONE_POLICY": "zzz"}, says=["zzz", "tune, heuristic, fail or frozen"])


    def test_a_word_that_no_kernel_knows_is_told_with_those_there_are(self):
        call = 'gated_linear_unit(f32[8,64], f32[64,2,32], activation="swish")'
        for command in ("run", "tune", "bench"):
            self.refused(command, call, code=NO, says=["there is no activation 'swish'", "none silu sigmoid"])


class Files(CommandTest):
    def test_a_bad_file_is_named(self):
        path = self.write("bad.json", "{bad")
        for command in (["store", "put"], ["store", "import"], ["record", "import"], ["key", "--spec"]):
            self.refused(*command, path, code=WORLD, says=path)
        self.refused("space", path, says=path)
        self.refused("store", "put", code=WORLD, input="{bad", says="standard input")

    def test_what_is_no_canonical_text_has_no_key(self):
        for text in ("[]", "{}", '{"args_spec": []}', "vm\n"):
            path = self.write("spec", text)
            self.refused("key", "--spec", path, code=WORLD, says=path)

    def test_a_program_that_is_cut_short_is_refused(self):
        text = (DATA / "golden" / "lowered" / "control.mlir").read_text()
        for size in (1000, len(text) // 4):
            path = self.write("cut.mlir", text[:size])
            for listing in (["--list"], []):
                self.refused("offline", path, *listing, code=WORLD, says=[path, "is truncated"])


class Stores(CommandTest):
    def test_what_only_reads_makes_no_store(self):
        for kind in ("sqlite:", "json:"):
            path = self.folder / ("store" if kind == "json:" else "store.db")
            other = self.folder / "other.json"
            for verb in (["list"], ["get", NORM], ["remove", NORM], ["stat"], ["verify"], ["export", str(other)],
                         ["diff", f"{kind}{path}"], ["prune"]):
                self.refused("store", *verb, code=NO, env={"HONE_STORE": f"{kind}{path}"}, says="no such store yet")
                self.assertFalse(path.exists(), verb)
                self.assertFalse(other.exists(), verb)

    def test_one_slip_is_told_once(self):
        self.hone("tune", NORM, *QUICK)
        answer = self.refused("store", "get", "zz", code=NO, says="no algorithm named 'zz'")
        self.assertEqual(answer.err.count("\n"), 1)
        answer = self.refused("lock", "--check", code=NO, says="there is no lock file yet")
        self.assertEqual(answer.err.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
