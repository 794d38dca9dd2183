"""What was hit: documents of many processes, and what they are compared with."""

import json
import re
import subprocess
import unittest

from support import DONE, NO, NORM, NORM_NEAR, PRODUCT, QUICK, USAGE, WORLD, CommandTest


class Statistics(CommandTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "stats.json"

    def run_calls(self, *calls, count=1, to=None):
        """Processes that run side by side, and end at about the same time."""
        env = {"HONE_STATS": str(to or self.file), "HONE_POLICY": "heuristic"}
        processes = [self.start("run", call, env=env) for call in calls for _ in range(count)]
        for process in processes:
            _, err = process.communicate()
            self.assertEqual(process.returncode, DONE, err)

    def test_processes_that_append_to_one_file_lose_none_of_each_others(self):
        self.run_calls(NORM, PRODUCT, count=6)
        answer = self.hone("stats", str(self.file), "--json", "--store", "none").json
        self.assertEqual(answer["documents"], 12)
        calls = {}
        for row in answer["rows"]:
            if row["link"] != "override":  # the reference, which hone run compares with
                calls[row["call"]] = calls.get(row["call"], 0) + row["misses"]
        self.assertEqual(calls, {NORM: 6, PRODUCT: 6})
        self.assertIsNone(answer["asked_never_stored"])
        # What it prints it reads again.
        self.file.write_text(json.dumps(answer))
        self.assertEqual(self.hone("stats", str(self.file), "--json").json["rows"], answer["rows"])

    def test_what_is_stored_and_what_is_asked_for_are_told_apart(self):
        self.hone("tune", NORM, PRODUCT, *QUICK)
        self.run_calls(NORM, NORM_NEAR)
        text = self.hone("stats", str(self.file)).out
        self.assertRegex(text, r"asked for, never stored\n +\d+ calls  " + re.escape(NORM_NEAR))
        self.assertIn("x.shape[0]: 8, stored 4", text)
        self.assertIn(f"stored, never asked for\n  {PRODUCT}", text)
        answer = self.hone("stats", str(self.file), "--json").json
        self.assertEqual([row["call"] for row in answer["asked_never_stored"]], [NORM_NEAR])
        self.assertEqual(answer["asked_never_stored"][0]["differs"], ["x.shape[0]: 8, stored 4"])
        self.assertEqual([row["call"] for row in answer["stored_never_asked"]], [PRODUCT])
        text = self.hone("stats", str(self.file), "--prometheus").out
        self.assertIn("hone_asked_never_stored 1\n", text)
        self.assertRegex(text, r'hone_misses_total\{algorithm="rms_norm",version="1",link="store",platform="native",kernel="\w+"\} 1\n')

    def test_recorded_calls_are_shown_of_the_store_and_of_a_record_document(self):
        self.hone("run", NORM, env={"HONE_RECORD": "1", "HONE_POLICY": "heuristic"})
        self.assertIn(NORM, self.hone("stats").out)
        record = self.folder / "record.json"
        self.hone("record", "export", str(record))
        self.assertIn(NORM, self.hone("stats", str(record)).out)

    def test_a_line_at_the_end_says_what_was_hit(self):
        process = self.start("run", NORM, env={"HONE_STATS": "1", "HONE_POLICY": "heuristic"})
        _, err = process.communicate()
        self.assertRegex(err, r"hone: \d+ calls, \d+ hits, \d+ decided in \S+ s; answered by .*heuristic \d+\n")

    def test_a_folder_gets_a_file_of_each_process(self):
        folder = self.folder / "all"
        folder.mkdir()
        self.run_calls(NORM, count=3, to=folder)
        self.assertEqual(len(list(folder.glob("*.json"))), 3)
        self.assertEqual(self.hone("stats", str(folder), "--json").json["documents"], 3)

    def test_a_damaged_document_is_named_and_harms_no_other(self):
        self.run_calls(NORM)
        with open(self.file, "a") as file:
            file.write('\n{"hone_stats":1,"rows":[{"device"')  # as a full disk leaves it
        self.run_calls(NORM)
        answer = self.hone("stats", str(self.file), "--json", code=WORLD)
        self.assertEqual(answer.json["documents"], 2)
        self.assertRegex(answer.err, r"stats.json:4: is not a document of statistics")

    def test_rows_that_cannot_be_are_refused(self):
        row = {"device": "d", "algorithm": "a", "version": "1", "key": "k", "link": "store", "kernel": "x", "platform": "native",
               "config": {}, "hits": 1, "misses": 1, "decided_seconds": 0.5}
        for change in ({"hits": -1}, {"hits": 1.5}, {"misses": "1"}, {"link": "luck"}, {"key": None}, {"decided_seconds": -1},
                       {"kernel": "x\x1b[2J"}, {"device": "d\n"}):
            self.file.write_text(json.dumps({"hone_stats": 1, "rows": [row, row | change]}))
            answer = self.hone("stats", str(self.file), code=WORLD)
            self.assertIn("row 2 is not a row of statistics", answer.err, change)
        self.file.write_text('{"hone_stats":2,"rows":[]}')
        self.assertIn("which is 1", self.hone("stats", str(self.file), code=WORLD).err)
        self.file.write_text("no document\n" * 1000)
        err = self.hone("stats", str(self.file), code=WORLD).err
        self.assertIn("stats.json: and 990 more lines", err)
        # Sums stay at the most that there is.
        self.file.write_text("\n".join([json.dumps({"hone_stats": 1, "rows": [row | {"hits": 2**63 - 1}]})] * 3))
        self.hone("stats", str(self.file))

    def test_wrong_use_is_told(self):
        self.assertIn("give one", self.hone("stats", "--json", "--prometheus", code=USAGE).err)
        self.assertIn("no such store", self.hone("stats", code=NO).err)
        self.hone("stats", "/nowhere/x", code=WORLD)
        self.file.write_text("")
        self.assertIn("is empty", self.hone("stats", str(self.file), code=WORLD).err)
        process = self.start("run", NORM, env={"HONE_STATS": "/nowhere/x/y"}, stdout=subprocess.DEVNULL)
        _, err = process.communicate()
        self.assertEqual(process.returncode, USAGE)
        self.assertIn("HONE_STATS is '/nowhere/x/y', expected 0, 1, a folder, or a file in a folder that is there", err)


if __name__ == "__main__":
    unittest.main()
