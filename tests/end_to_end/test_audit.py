"""hone tune --audit: a gate that stops a store whose choices are not right any more."""

import hashlib
import json
import shutil

from support import DATA, DONE, NO, NUMBER, USAGE, WORLD, CommandTest

PRODUCT = "matmul(f32[128,128], f32[128,128])"
NORM = "rms_norm(f32[64,512], f32[512])"
# What a choice that is clearly wrong is past.
GATE = ["--audit", "--threshold", "60", "--seconds", "60"]
SAXPY = "saxpy(f32[1000], f32[1000])"
# A million rounds of nothing: slower than a thousand sums on every machine.
SLOW = """#include <stdint.h>
#include <stdlib.h>

void saxpy_slow(const float *x, const float *y, float *z, int64_t n, float alpha)
{
    for (volatile int i = 0; i < 1000000; i++)
        continue;
    for (int64_t i = 0; i < n; i++)
        z[i] = alpha * x[i] + y[i] + (getenv("WRONG") != NULL);
}
"""
# A share that no honest choice is past, however busy the machine, and that a time of NEVER is.
LENIENT = ["--audit", "--threshold", "1e9", "--seconds", "60"]
NEVER = 1e-6  # nanoseconds: no run was ever so quick


class Audit(CommandTest):
    def tune(self, *calls):
        return self.hone("tune", *calls, "--seconds", "60", "--evals", "24", "--json").json

    def with_a_slow_choice(self):
        """Makes a pack with a slow kernel, which takes the place of the choice for SAXPY. Returns what the environment needs."""
        pack = self.folder / "packs" / "slow"
        shutil.copytree(DATA.parent / "examples" / "packs" / "saxpy", pack, dirs_exist_ok=True)
        (pack / "slow.c").write_text(SLOW)
        content = json.loads((pack / "pack.json").read_text())
        content["kernels"].append({
            "algorithm": "saxpy", "name": "slow", "platform": "native", "backend": "cpu", "file": "slow.c",
            "sha256": hashlib.sha256(SLOW.encode()).hexdigest(), "entry": "saxpy_slow",
            "arguments": "x, y, z, i64(n), f32(alpha)"})
        (pack / "pack.json").write_text(json.dumps(content))
        env = {"HONE_PACK_PATH": str(pack), "HONE_COMPILE_CACHE": str(self.folder / "compiled")}
        document, slow = (self.hone("tune", SAXPY, *options, "--seconds", "60", "--evals", "12", "--json", env=env).json
                          for options in ((), ("--kernel", "slow", "--no-store")))
        document["entries"][0].update({name: slow["entries"][0][name] for name in ("kernel", "config", "revision")})
        self.hone("store", "put", "--json", input=json.dumps(document), env=env)
        return env

    def test_an_honest_store_passes(self):
        self.tune(PRODUCT, NORM)
        before = self.stat()
        audit = self.hone("tune", *LENIENT, "--json").json
        self.assertEqual(audit["hone_audit"], 1)
        self.assertEqual({row["call"] for row in audit["choices"]}, {PRODUCT, NORM})
        for row in audit["choices"]:
            self.has_fields(row, {"kernel": str, "config": dict, "time_ns": NUMBER, "stored_ns": NUMBER,
                                  "regret": NUMBER, "regret_low": NUMBER, "regret_high": NUMBER, "drift": NUMBER,
                                  "default_ns": NUMBER, "rivals": int, "rounds": int, "best_kernel": str})
            self.assertTrue(row["passed"] and row["served"], row)
            self.assertGreater(row["rivals"], 1)
        self.assertEqual((audit["summary"]["measured"], audit["summary"]["past"]), (2, 0))
        self.assertEqual(self.stat(), before)

    def test_a_slow_config_in_the_winners_place_is_caught(self):
        env = self.with_a_slow_choice()
        answer = self.hone("tune", *GATE, "--json", code=NO, env=env)
        (row,) = answer.json["choices"]
        self.assertEqual((row["kernel"], row["passed"], row["flipped"]), ("slow", False, True))
        self.assertGreater(row["regret_low"], 0)
        self.assertEqual(row["best_kernel"], "blocked")
        self.assertEqual((answer.json["summary"]["flipped"], answer.json["summary"]["flip_rate"]), (1, 1))
        text = self.hone("tune", *GATE, SAXPY, code=NO, env=env).out
        self.assertIn("1 past the threshold of 60 %", text)
        self.assertRegex(text, r"faster now: blocked \{")

    def test_update_tunes_what_is_past_the_threshold_anew(self):
        env = self.with_a_slow_choice()
        self.hone("tune", *GATE, "--update", "--json", env=env)
        self.hone("tune", *LENIENT, SAXPY, env=env)
        self.assertEqual(self.hone("explain", SAXPY, "--json", env=env).json["kernel"], "blocked")

    def test_where_nothing_else_was_measured_the_chain_goes_on_and_the_row_is_set_aside(self):
        env = self.with_a_slow_choice()
        document = self.hone("tune", SAXPY, "--kernel", "slow", "--no-store", "--seconds", "60", "--json", env=env).json
        self.use_new_store()
        self.hone("store", "put", "--json", input=json.dumps(document), env=env)
        (row,) = self.hone("tune", *LENIENT, "--json", code=NO, env={**env, "WRONG": "1"}).json["choices"]
        self.assertEqual((row["failure"], row["taken_back"], "next_kernel" in row), ("wrong", True, False), row)
        kept = self.hone("store", "verify", "--json", code=NO).json["quarantine"]
        self.assertIn("an audit found it wrong", kept[0]["reason"])
        self.assertEqual(self.hone("tune", *LENIENT, "--json", env=env, code=NO).json["choices"], [])
        self.assertNotEqual(self.hone("run", SAXPY, "--json", env=env).json["kernel"], "slow")

    def test_what_changed_in_the_environment_is_named(self):
        document = self.tune(NORM)
        document["environment"]["compiler"] = "gcc 4.2"
        self.hone("store", "put", "--json", input=json.dumps(document))
        (row,) = self.hone("tune", *LENIENT, NORM, "--json").json["choices"]
        self.assertIn("compiler was gcc 4.2", row["changed"])
        self.assertIn("measured in another environment: compiler was gcc 4.2", self.hone("tune", *LENIENT).out)

    def test_a_time_that_was_never_so_is_drift_and_counts_only_in_a_changed_environment(self):
        document = self.tune(NORM)
        document["entries"][0]["evidence"]["time_ns"] = NEVER
        self.hone("store", "put", "--json", input=json.dumps(document))
        (row,) = self.hone("tune", *LENIENT, "--json").json["choices"]
        self.assertGreater(row["drift"], 5)
        document["environment"]["compiler"] = "gcc 4.2"
        self.hone("store", "put", "--json", input=json.dumps(document))
        (row,) = self.hone("tune", *LENIENT, "--json", code=NO).json["choices"]
        self.assertFalse(row["passed"])
        self.assertIn("slower than it was", self.hone("tune", *LENIENT, code=NO).out)

    def test_a_library_of_another_version_is_named_and_what_became_slower_with_it_fails(self):
        (entry,) = (document := self.tune(PRODUCT, "--kernel", "openblas"))["entries"]
        entry["environment"] = {**document["environment"], "library": "libopenblasp-r0.0.1.so"}
        entry["evidence"]["time_ns"] = NEVER
        self.hone("store", "put", "--json", input=json.dumps(document))
        audit = self.hone("tune", *LENIENT, "--json", code=NO).json
        (row,) = audit["choices"]
        self.assertRegex(row["changed"], r"library was libopenblasp-r0\.0\.1\.so, is libopenblas")
        self.assertGreater(row["drift"], 5)
        summary = audit["summary"]
        self.assertEqual((summary["changed"], summary["past"], summary["median_drift"]), (1, 1, row["drift"]))

    def test_a_choice_of_another_revision_is_not_served_and_does_not_count(self):
        document = self.tune(NORM)
        document["entries"][0]["revision"] = "another"
        self.hone("store", "put", "--json", input=json.dumps(document))
        (row,) = self.hone("tune", *LENIENT, "--json").json["choices"]
        self.assertFalse(row["served"])
        self.assertIn("revision another", row["reason"])

    def test_a_choice_whose_kernel_is_out_of_reach_is_a_failure_of_the_world(self):
        self.with_a_slow_choice()  # of a pack, which is not loaded here
        answer = self.hone("tune", *LENIENT, "--json", code=WORLD)
        (row,) = answer.json["choices"]
        self.assertFalse(row["served"])
        self.assertIn("1 choice was not looked at: the kernel is not here", answer.err)
        self.tune(NORM)
        self.hone("tune", *LENIENT, NORM)

    def test_a_choice_that_no_call_is_stored_with_is_not_looked_at_and_not_rejected(self):
        document = self.tune(NORM)
        for name in ("call", "spec"):
            document["entries"][0].pop(name)
        self.use_new_store()
        self.hone("store", "put", input=json.dumps(document))
        before = self.stat()
        answer = self.hone("tune", *LENIENT, "--json", code=WORLD)
        (row,) = answer.json["choices"]
        self.assertEqual((row["served"], row["passed"], row["no_call"]), (True, False, True), row)
        self.assertNotIn("failure", row)
        summary = answer.json["summary"]
        self.assertEqual([summary[name] for name in ("choices", "measured", "failed", "past", "no_call")], [1, 0, 0, 0, 1])
        self.assertIn("1 choice was not looked at: no call that can be read is stored with it", answer.err)
        self.assertNotIn("the kernel is not here", answer.err)
        text = self.hone("tune", *LENIENT, "--update", code=WORLD).out
        self.assertRegex(text, r"portable|avx")
        self.assertIn("1 not looked at: no call", text)
        self.assertNotIn("rejected", text)
        self.assertEqual(self.stat(), before)

    def test_a_call_without_a_choice_is_no(self):
        self.tune("matmul(f32[32,32], f32[32,32])")
        self.refused("tune", "--audit", NORM, code=NO, says="the store has no decision")

    def test_a_store_that_is_empty_or_not_there_does_not_pass_and_is_not_made(self):
        self.refused("tune", "--audit", code=NO, says="there is no such store yet")
        self.assertEqual(list(self.folder.glob("store.db*")), [])
        self.hone("tune", NORM, "--seconds", "1", "--evals", "1")
        self.hone("store", "remove", NORM)
        self.assertIn("no choice for this machine", self.hone("tune", "--audit", code=NO).out)
        self.assertEqual(self.hone("tune", "--audit", "--json", code=NO).json["choices"], [])

    def test_wrong_use_is_refused(self):
        self.refused("tune", NORM, "--threshold", "3", code=USAGE, says="--audit")
        self.refused("tune", "--audit", "--threshold", "x", code=USAGE, says="percent")
        self.refused("tune", "--audit", "--recorded", code=USAGE, says="--audit")
        self.refused("tune", "--audit", "--report", "out", code=USAGE, says="--audit")
        self.assertFalse((self.folder / "out").exists())
        self.hone("tune", NORM, "--seconds", "1", "--evals", "1")
        self.refused("tune", "--audit", "nothing(f32[4])", code=NO, says="nothing")
        self.refused("tune", "--audit", env={"HONE_STORE": "none"}, code=NO, says="nothing to audit")

