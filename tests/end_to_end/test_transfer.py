"""What answers for a call that was never tuned: near shapes, and another device's decisions."""

import json

from support import NO, NORM, NORM_NEAR, QUICK, CommandTest

GUESS = {"HONE_POLICY": "heuristic"}


class Transfer(CommandTest):
    def tune(self, *arguments, **options):
        return self.hone("tune", *arguments, *QUICK, "--json", **options).json

    def explain(self, call, **options):
        return self.hone("explain", call, "--json", **options).json

    def test_a_near_shape_answers_marked_and_is_checked_by_tuning_what_was_recorded(self):
        entry = self.tune(NORM)["entries"][0]
        explained = self.explain(NORM_NEAR)
        self.assertEqual((explained["source"], explained["kernel"], explained["verified"]),
                         ("transfer", entry["kernel"], False))
        self.assertGreaterEqual(explained["evidence"].get("predicted_regret", 0), 0)
        self.assertIn(NORM, explained["evidence"]["neighbours"])
        self.assertEqual(self.hone("run", NORM_NEAR, "--json", env=GUESS).json["source"], "transfer")
        self.assertEqual(self.stat()["decisions"], 1)  # a guess is never stored
        self.tune("--recorded")
        self.assertEqual((self.explain(NORM_NEAR)["source"], self.explain(NORM_NEAR)["verified"]), ("store", True))

    def test_another_devices_decision_answers_as_a_guess(self):
        there = "cpu|Nobody,unknown,none,l1=0,l2=0,l3=0,threads=64"
        entry = self.tune(NORM, "--kernel", "portable")["entries"][0]
        document = json.loads(self.hone("store", "export", "-", "--measurements").out)
        document["device"] = there
        for row in document["entries"] + document.get("measurements", []):
            if "device" in row:
                row["device"] = there
        other = f"sqlite:{self.folder}/other.db"
        self.hone("store", "import", self.write("there.json", json.dumps(document)), "--store", other)
        explained = self.explain(NORM, env={"HONE_STORE": other})
        self.assertEqual((explained["source"], explained["kernel"]), ("transfer", entry["kernel"]))
        self.assertIn("on another device", explained["evidence"]["neighbours"])
        self.assertIn("expected to be", self.hone("explain", NORM, env={"HONE_STORE": other}).out)

    def test_other_policies_do_not_guess(self):
        self.tune(NORM)
        for policy in ("fail", "frozen"):
            self.hone("run", NORM_NEAR, code=NO, env={"HONE_POLICY": policy})
