"""hone tune --report: a page with everything that was tried."""

import json
import re
import subprocess
import sys

from support import DATA, NO, NORM, NORM_NEAR, QUICK, SIMULATE, WORLD, CommandTest

T4 = DATA.parent / "lab" / "t4"


class Report(CommandTest):
    def report(self, *calls, **options):
        path = self.folder / "report.html"
        answer = self.hone("tune", *calls, *QUICK, "--report", str(path), **options)
        page = path.read_text()
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
        return answer, page, json.loads(data)

    def test_every_evaluation_stands_in_the_page(self):
        answer, page, data = self.report(NORM)
        self.assertIn("report in ", answer.out)
        (entry,) = data["entries"]
        evidence, trail = entry["evidence"], entry["trail"]
        self.assertEqual(entry["call"], NORM)
        rejected = sum(evidence.get("rejected", {}).values())
        same = sum(row.get("same", False) for row in trail["evaluations"])  # measured as another
        self.assertEqual(len(trail["evaluations"]), evidence["measured"] + rejected + same)
        seconds = [row["at"] for row in trail["evaluations"]]
        self.assertEqual(seconds, sorted(seconds))
        for row in trail["evaluations"]:
            self.assertTrue(row.get("failure") or row["raced_ns"] > 0, row)
        finalists = trail["finals"]["finalists"]
        rounds = [len(row["samples_ns"]) for row in finalists]  # who is certainly slower leaves early
        self.assertEqual(max(rounds), evidence["rounds"])
        self.assertGreater(min(rounds), 0)
        winner = trail["evaluations"][finalists[trail["finals"]["winner"]]["evaluation"]]
        self.assertEqual((winner["kernel"], winner["config"]), (entry["kernel"], entry["config"]))
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), r"https?://")

    def test_the_limits_of_the_device_and_the_last_choice_stand_beside_what_was_measured(self):
        _, _, data = self.report(NORM)
        (first,) = data["entries"]
        self.assertNotIn("before", first["trail"])
        _, _, data = self.report(NORM, "--fresh")
        before, roofline = (data["entries"][0]["trail"][name] for name in ("before", "roofline"))
        self.assertEqual((before["kernel"], before["config"]), (first["kernel"], first["config"]))
        self.assertAlmostEqual(before["time_ns"] / first["evidence"]["time_ns"], 1, 3)
        self.assertGreater(roofline["operations"], 4 * 256)
        self.assertGreater(roofline["bytes"], 2 * 4 * 4 * 256)
        self.assertGreater(roofline["arithmetic"], max(roofline["levels"].values()) / 100)

    def test_the_document_on_standard_output_stays_what_it_was(self):
        answer, _, data = self.report(NORM, "--json")
        self.assertNotIn("trail", answer.json["entries"][0])
        del data["entries"][0]["trail"]
        self.assertEqual(answer.json, data)

    def test_several_calls_and_one_that_fails_share_a_page(self):
        _, _, data = self.report(NORM, "nothing(f32[4])", NORM_NEAR, code=NO)
        self.assertEqual([entry["call"] for entry in data["entries"]], [NORM, NORM_NEAR])

    def test_what_the_store_knew_is_marked(self):
        self.report(NORM)
        _, _, data = self.report(NORM)
        self.assertTrue(all(row["resumed"] for row in data["entries"][0]["trail"]["evaluations"]))

    def t4(self, *options):
        """Of the page that was written last: the rows, or what was said in place of them."""
        done = subprocess.run([sys.executable, "-B", str(T4), str(self.folder / "report.html"), *options], capture_output=True, text=True)
        return json.loads(done.stdout)["results"] if done.returncode == 0 else done.stderr

    def test_t4_results_hold_every_config_of_the_chosen_kernel(self):
        _, _, data = self.report(NORM)
        (entry,) = data["entries"]
        tried = [row for row in entry["trail"]["evaluations"] if row["kernel"] == entry["kernel"]]
        results = self.t4()
        self.assertEqual([row["configuration"] for row in results], [row["config"] for row in tried])
        for row, one in zip(results, tried):
            self.assertEqual(row["invalidity"], "correct")
            (time,) = [m["value"] for m in row["measurements"] if m["name"] == "time"]
            self.assertAlmostEqual(time * 1e6, one["time_ns"], delta=1e-3 * one["time_ns"])
            self.assertGreaterEqual(len(row["times"]["runtimes"]), len(one["runs_ns"]))
        chosen = next(row for row in results if row["configuration"] == entry["config"])
        self.assertGreater(len(chosen["times"]["runtimes"]), entry["evidence"]["rounds"])

    def test_t4_takes_another_kernel_by_name_and_the_simulator_reads_it(self):
        self.report(NORM, "--kernel", "portable")
        rows = self.t4("--kernel", "portable")
        self.assertIn("unroll", rows[0]["configuration"])
        path = self.write("t4.json", json.dumps({"results": rows}))
        again = subprocess.run([SIMULATE, path, "--json"], capture_output=True, text=True)
        self.assertEqual(json.loads(again.stdout)["configs"], len(rows), again.stderr)
        self.assertIn("no config of kernel nothing was tried", self.t4("--kernel", "nothing"))

    def test_t4_is_of_one_call(self):
        self.report(NORM, NORM_NEAR)
        self.assertIn("2 calls", self.t4())

    def test_a_file_that_cannot_be_written_is_refused_before_the_work(self):
        for path in ("/nonexistent/folder/r.html", str(self.folder)):
            self.refused("tune", NORM, "--report", path, code=WORLD, says=["--report", path])
        self.assertFalse((self.folder / "store.db").exists())
