"""hone tune: what wins, what is stored, and that the next process finds it."""

import fcntl
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import threading
import unittest

from support import BUILD, DONE, NO, NORM, NORM_NEAR, NUMBER, PRODUCT, QUICK, USAGE, WORLD, CommandTest


class Tune(CommandTest):
    def tune(self, *arguments, **options):
        return self.hone("tune", *arguments, *QUICK, "--json", **options).json

    def test_the_document_holds_every_kernels_best(self):
        document = self.tune(PRODUCT)
        self.has_fields(document, {"hone_result": int, "device": str, "entries": list, "environment": dict})
        self.assertEqual((document["hone_result"], document["device"]), (1, self.fingerprint()))
        (entry,) = document["entries"]
        self.has_fields(entry, {"algorithm": str, "version": str, "key": str, "call": str, "spec": str, "kernel": str,
                                "platform": str, "config": dict, "source": str, "evidence": dict})
        key = self.hone("key", PRODUCT, "--json").json
        self.assertEqual((entry["key"], entry["spec"], entry["call"]), (key["key"], key["spec"], PRODUCT))
        evidence = entry["evidence"]
        self.has_fields(evidence, {"time_ns": NUMBER, "low_ns": NUMBER, "high_ns": NUMBER, "samples": int,
                                   "default_time_ns": NUMBER, "seconds": NUMBER, "kernels": list, "regime": str})
        self.assertEqual(evidence["verified_against"], "reference")
        self.assertLessEqual(evidence.get("max_error", 0), 1)
        self.assertLessEqual(evidence["low_ns"], evidence["time_ns"])
        self.assertLessEqual(evidence["time_ns"], evidence["high_ns"])
        listed = {row["name"] for row in self.hone("list", "matmul", "--json").json["algorithms"][0]["kernels"]}
        self.assertEqual({row["kernel"] for row in evidence["kernels"]}, listed)
        for row in evidence["kernels"]:
            self.has_fields(row, {"kernel": str, "tried": int, "rejected": dict})
            if row["time_ns"] is None:
                self.assertTrue(row["reason"], row)
            else:
                self.has_fields(row, {"config": dict, "low_ns": NUMBER, "high_ns": NUMBER})

    def test_the_reference_never_wins(self):
        self.assertNotEqual(self.tune(PRODUCT)["entries"][0]["kernel"], "reference")

    def test_the_next_process_hits_what_was_stored(self):
        entry = self.tune(NORM)["entries"][0]
        explained = self.hone("explain", NORM, "--json").json
        self.assertEqual((explained["source"], explained["kernel"], explained["config"]),
                         ("store", entry["kernel"], entry["config"]))
        self.assertTrue(explained["verified"])
        run = self.hone("run", NORM, "--json").json
        self.assertEqual((run["source"], run["kernel"], run["verified"]), ("store", entry["kernel"], True))
        measured = self.stat()["measurements"]
        self.hone("run", NORM, "--json")
        self.assertEqual(self.stat()["measurements"], measured)

    def test_a_miss_shows_the_nearest_stored_calls_and_what_differs(self):
        key = self.tune(NORM)["entries"][0]["key"]
        explained = self.hone("explain", NORM_NEAR, "--json").json
        self.assertEqual(explained["source"], "transfer")
        self.assertEqual(explained["nearest"][0], {"key": key, "differs": ["x.shape[0]: 8, stored 4"]})
        self.assertIn("x.shape[0]: 8, stored 4", self.hone("explain", NORM_NEAR).out)

    def test_run_tunes_what_it_misses(self):
        run = self.hone("run", NORM, "--json").json
        self.assertEqual((run["source"], run["verified"]), ("autotune", True))
        self.assertEqual(self.hone("run", NORM, "--json").json["source"], "store")

    def test_a_second_contest_uses_what_was_measured(self):
        self.tune(NORM)
        first = self.stat()
        self.tune(NORM)
        self.assertEqual(self.stat()["measurements"], first["measurements"])
        self.assertEqual(self.stat()["decisions"], 1)

    def test_several_calls_make_one_document(self):
        document = self.tune(NORM, NORM_NEAR)
        self.assertEqual([entry["call"] for entry in document["entries"]], [NORM, NORM_NEAR])
        self.assertEqual(self.stat()["decisions"], 2)

    def test_one_wrong_call_ends_nothing(self):
        answer = self.hone("tune", "rms_norm(f32[4,256], f32[255])", NORM, *QUICK, "--json", code=USAGE)
        self.assertEqual([entry["call"] for entry in answer.json["entries"]], [NORM])
        self.assertIn("255", answer.err)

    def test_a_dim_of_a_bucket_is_tuned_for_its_neighbours(self):
        def decode(length):
            return f"flash_attention(f32[1,1,2,16], f32[1,{length},2,16], f32[1,{length},2,16])"
        self.tune(decode(100))
        for length in (65, 128):
            self.assertEqual(self.hone("explain", decode(length), "--json").json["source"], "store")
        self.assertEqual(self.hone("explain", decode(129), "--json").json["source"], "transfer")

    def test_the_table_names_kernels_and_gains(self):
        out = self.hone("tune", PRODUCT, *QUICK).out
        self.assertTrue(out.startswith(f"{PRODUCT}\n"), out)
        self.assertRegex(out, r"(?m)^\* \w+ ")
        for words in ("kernel", "config", "time", "peak", "spread", "tried", "chosen", "verified against reference",
                      "measured", "stored in sqlite:"):
            self.assertIn(words, out)

    def test_one_sample_makes_no_spread_and_no_ratio(self):
        # The reference runs once; of few evaluations libraries and the default have few samples where they are no finalists.
        for call in (PRODUCT, "matmul(f32[256,256], f32[256,256])"):
            out = self.hone("tune", call, "--seconds", "2", "--evals", "8", "--fresh").out
            self.assertRegex(out, r"(?m)^  reference .* - +1$")
            self.assertNotRegex(out, r"times as fast as the best library, \w+[,;]")  # without an interval
            rows = self.hone("tune", call, "--seconds", "2", "--evals", "8", "--fresh", "--json").json
            for row in rows["entries"][0]["evidence"]["kernels"]:
                if row["time_ns"]:
                    self.assertGreaterEqual(row["samples"], 1)
                    self.assertTrue(row["samples"] > 1 or row["low_ns"] == row["high_ns"])

    def test_nothing_is_stored_when_that_is_asked(self):
        self.tune(NORM, "--no-store")
        self.assertEqual(self.stat()["decisions"] + self.stat()["measurements"], 0)
        self.assertEqual(self.tune(NORM, "--store", "none")["entries"][0]["call"], NORM)

    def test_one_kernel_can_be_asked_for(self):
        self.assertEqual(self.tune(NORM, "--kernel", "portable")["entries"][0]["kernel"], "portable")

    def test_a_contest_without_contestants_is_the_answer_no(self):
        self.refused("tune", NORM, "--kernel", "cuda", code=NO, says="cuda")
        self.refused("tune", NORM, "--platform", "cuda", code=NO, says="cuda")
        self.refused("tune", NORM, "--kernel", "abacus", says="there is no kernel of that name")

    def test_a_denied_kernel_does_not_win(self):
        winner = self.tune(NORM)["entries"][0]["kernel"]
        explained = self.hone("explain", NORM, "--json", env={"HONE_DENY": winner}).json
        self.assertNotEqual(explained["kernel"], winner)

    def test_cold_and_warm_stand_beside_each_other(self):
        self.assertEqual(self.tune(NORM, "--cold")["entries"][0]["evidence"]["regime"], "cold")
        self.tune(NORM)
        regimes = [row["evidence"]["regime"] for row in self.hone("store", "get", NORM, "--json").lines]
        self.assertEqual(sorted(regimes), ["cold", "warm"])

    def test_stable_requests_are_served_by_stable_decisions_only(self):
        stable = {"HONE_STABLE": "1"}
        first = self.tune(NORM)["entries"][0]
        self.assertEqual(first["evidence"]["regime"], "warm")
        self.assertEqual(self.hone("explain", NORM, "--json", env=stable).json["source"], "heuristic")
        second = self.tune(NORM, "--stable")["entries"][0]
        self.assertEqual(second["evidence"]["regime"], "warm-stable")
        self.assertEqual(second["evidence"]["verified_against"], "reference, and the default's bits")
        self.assertEqual(self.stat()["decisions"], 2)
        explained = self.hone("explain", NORM, "--json", env=stable).json
        self.assertEqual((explained["source"], explained["kernel"], explained["config"]),
                         ("store", second["kernel"], second["config"]))
        self.assertIn("warm-stable", self.hone("explain", NORM, env=stable).out)
        explained = self.hone("explain", NORM, "--json").json
        self.assertEqual((explained["kernel"], explained["config"]), (first["kernel"], first["config"]))
        self.assertEqual(self.tune(NORM_NEAR, env=stable)["entries"][0]["evidence"]["regime"], "warm-stable")

    def test_stable_tuning_lets_blockings_in_and_other_orders_of_sums_out(self):
        def rows(*arguments):
            return self.hone("tune", PRODUCT, "--stable", *arguments, "--seconds", "60", "--evals", "24",
                             "--json").json["entries"][0]["evidence"]["kernels"]

        self.assertTrue(any("unstable" in row["rejected"] for row in rows()))
        (blocked,) = [row for row in rows("--kernel", "portable", "--no-store") if row["kernel"] == "portable"]
        self.assertGreater(blocked["tried"], 2)
        self.assertLess(sum(blocked["rejected"].values()), blocked["tried"] - 1, blocked)

    def test_recorded_calls_are_tuned_and_then_done(self):
        for call in (NORM, NORM_NEAR, NORM_NEAR):
            self.hone("run", call, env={"HONE_RECORD": "1", "HONE_POLICY": "heuristic"})
        document = self.tune("--recorded")
        self.assertEqual([entry["call"] for entry in document["entries"]], [NORM_NEAR, NORM])
        for call in (NORM, NORM_NEAR):
            self.assertEqual(self.hone("explain", call, "--json").json["source"], "store")
        measured = self.stat()["measurements"]
        self.tune("--recorded")
        self.assertEqual(self.stat()["measurements"], measured)

    def test_a_recorded_call_that_fails_is_told_by_the_exit_code(self):
        self.hone("run", NORM, env={"HONE_RECORD": "1", "HONE_POLICY": "heuristic"})
        denied = {"HONE_DENY": ",".join(f"rms_norm={row['name']}" for row in
                                        self.hone("list", "rms_norm", "--json").json["algorithms"][0]["kernels"])}
        code = self.hone("tune", NORM, *QUICK, code=None, env=denied).code
        answer = self.hone("tune", "--recorded", *QUICK, "--json", code=code, env=denied)
        self.assertNotEqual(code, DONE)
        self.assertEqual([row["call"] for row in answer.json["failed"]], [NORM])

    def test_a_batch_budget_goes_on_where_calls_are_many_after_a_slice_for_each(self):
        light = "matmul(f32[48,48], f32[48,48])"
        for call in [light] + 6 * ["matmul(f32[96,96], f32[96,96])"]:
            self.hone("run", call, env={"HONE_RECORD": "1", "HONE_POLICY": "heuristic"})
        document = self.hone("tune", "--recorded", "--batch-seconds", "4", "--evals", "100000", "--patience", "100000",
                             "--json").json
        heavy_entry, light_entry = document["entries"]
        self.assertEqual(light_entry["call"], light)
        self.assertGreater(light_entry["evidence"]["measured"], 0)
        # The light call had one slice, the heavy one that and more, which began with what the first had measured.
        evaluations = self.hone("store", "stat", "--json").json["measurements"]
        self.assertGreater(heavy_entry["evidence"]["measured"], 0)
        self.assertGreaterEqual(evaluations, light_entry["evidence"]["measured"] + heavy_entry["evidence"]["measured"])

    def test_a_batch_budget_is_for_batches(self):
        self.refused("tune", NORM, "--batch-seconds", "1", says="--recorded")
        self.refused("tune", "--recorded", "--batch-seconds", "0", says="above 0")

    def test_calls_and_the_record_are_not_asked_for_together(self):
        self.refused("tune", NORM, "--recorded", says="--recorded")

    def test_processes_share_a_store(self):
        calls = [NORM, NORM_NEAR, NORM, PRODUCT]
        answers = []
        threads = [threading.Thread(target=lambda call=call: answers.append(self.tune(call))) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), len(calls))
        self.assertEqual(self.stat()["decisions"], 3)
        for call in calls:
            self.assertEqual(self.hone("run", call, "--json").json["source"], "store")

    def test_two_that_tune_the_same_call_share_the_work(self):
        """The second takes the first one's answer, or finds it stored when it comes later."""
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.tune(PRODUCT))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({answer["entries"][0]["key"] for answer in answers}), 1)
        self.assertEqual(self.stat()["decisions"], 1)
        self.assertTrue((self.folder / "store.db.leases").exists())

    def test_what_measures_takes_its_turn_on_the_device(self):
        folder = self.folder / "locks"
        folder.mkdir()
        env = {"HONE_DEVICE_LOCKS": str(folder)}
        self.tune(NORM, env=env)
        lock = folder / "hone-cpu-0.lock"
        with open(lock, "r+b") as file:
            # Where the lock of the first lease lies; the note behind it names nobody who lives.
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 4096, 1, 0))
            for command in (["tune", NORM_NEAR], ["bench", NORM]):
                self.refused(*command, "--wait", "0.05", code=WORLD, says=["process ", "0.05 s"], env=env)
        self.tune(NORM_NEAR, env=env)
        self.assertEqual(lock.stat().st_mode & 0o777, 0o600)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_a_lock_that_a_stranger_holds_is_told_and_passed_by(self):
        folder = self.folder / "shared"
        folder.mkdir()
        folder.chmod(0o1777)
        self.folder.chmod(0o755)
        env = {"HONE_DEVICE_LOCKS": str(folder)}
        self.tune(NORM, env=env)
        hold = ("import fcntl, struct, sys, os; os.setgid(65534); os.setuid(65534); file = open(sys.argv[1], 'rb');"
                "fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0)); print('held', flush=True);"
                "sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", hold, folder / "hone-cpu-0.lock"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as stranger:
            self.assertEqual(stranger.stdout.readline(), b"held\n")
            answer = self.hone("tune", NORM_NEAR, *QUICK, env=env)
            self.assertIn("other processes may measure at the same time", answer.err)
            stranger.stdin.close()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_users_have_locks_of_their_own_and_every_file_follows_the_umask(self):
        self.folder.chmod(0o777)
        program = self.folder / "hone"
        shutil.copy(BUILD / "hone", program)
        worker = self.folder / "hone-worker"
        shutil.copy(BUILD / "hone-worker", worker)
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        os.chown(runtime, 65534, 65534)
        for number, store in enumerate(("sqlite:{}/s.db", "json:{}/x.json", "json:{}/folder")):
            place = self.folder / f"place{number}"
            place.mkdir(mode=0o777)
            os.chown(place, 65534, 65534)
            environment = self.environment({"HONE_STORE": store.format(place), "HONE_DEVICE_LOCKS": None,
                                            "XDG_RUNTIME_DIR": str(runtime), "HOME": str(place)})
            done = subprocess.run([program, "tune", NORM, *QUICK], env=environment, user=65534, group=65534, extra_groups=[],
                                  umask=0o077, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((runtime / "hone" / "hone-cpu-0.lock").exists(), done.stderr)
            for file in [*place.rglob("*"), *runtime.rglob("*")]:
                self.assertEqual(file.stat().st_mode & 0o077, 0, file)

    def test_a_budget_of_nothing_is_refused_and_what_was_measured_is_kept(self):
        self.tune(NORM)
        before = self.stat()
        for option in ("--evals", "--seconds", "--patience", "--calls"):
            self.refused("tune", NORM, "--fresh", option, "0", says=[option, "'0'"])
        self.assertEqual(self.stat(), before)

    def test_a_call_larger_than_the_machine_is_refused(self):
        huge = "matmul(f32[400000,400000], f32[400000,400000])"
        for command in ("tune", "run", "bench"):
            self.refused(command, huge, code=WORLD, says=["GB", "smaller"], env={"HONE_POLICY": "heuristic"})
        self.assertEqual(self.hone("key", huge, "--json").json["key"], self.hone("explain", huge, "--json").json["key"])


class Peak(CommandTest):
    def kept(self):
        return self.folder / "cache" / "hone" / "peak.json"

    def shares(self, *arguments, product="matmul(f32[128,128], f32[128,128])"):
        """The numbers of the column, in percent."""
        answer = self.hone("tune", product, "--fresh", "--evals", "4", "--kernel", "portable", *arguments)
        return [float(share) for share in re.findall(r" (\d+) %  +\d", answer.out)]

    def test_a_peak_is_kept_for_the_boot(self):
        self.shares()
        first = json.loads(self.kept().read_text())
        self.assertEqual(first["of"]["device"], self.fingerprint())
        self.shares()
        self.assertEqual(json.loads(self.kept().read_text()), first)
        huge = {**first, "operations": first["operations"] * 1e9}
        self.kept().write_text(json.dumps(huge))
        self.assertEqual(set(self.shares()), {0})  # of what was kept: nothing was measured
        self.assertEqual(json.loads(self.kept().read_text()), huge)

    def test_products_of_bf16_have_a_peak_of_their_own(self):
        product = "matmul(bf16[128,128], bf16[128,128])"
        self.assertTrue(self.shares(product=product))
        first = json.loads(self.kept().read_text())
        self.assertGreaterEqual(first["of_bf16"], first["operations"])
        self.kept().write_text(json.dumps({**first, "of_bf16": first["of_bf16"] * 1e9}))
        self.assertEqual(set(self.shares(product=product)), {0})

    def test_a_peak_of_another_boot_machine_or_hone_is_measured_again(self):
        self.shares()
        first = json.loads(self.kept().read_text())
        for name, other in (("boot", "0"), ("device", "cpu|other"), ("threads", 999), ("hone", "0.0.1"), ("revision", 0)):
            self.kept().write_text(json.dumps({**first, "of": {**first["of"], name: other}, "operations": 1e30}))
            self.shares()
            self.assertEqual(json.loads(self.kept().read_text())["of"], first["of"], name)
            self.assertLess(json.loads(self.kept().read_text())["operations"], 1e30, name)

    def test_what_is_no_peak_is_measured_again(self):
        self.shares()
        first = json.loads(self.kept().read_text())
        for text in ("", "no JSON", "[]", json.dumps({**first, "operations": -1}), json.dumps({**first, "bytes": "fast"}),
                     json.dumps({**first, "of_bf16": 0})):
            self.kept().write_text(text)
            self.shares()
            self.assertEqual(json.loads(self.kept().read_text())["of"], first["of"], text)

    def test_one_below_what_was_reached_is_measured_again(self):
        self.shares()
        first = json.loads(self.kept().read_text())
        self.kept().write_text(json.dumps({**first, "operations": 1}))
        self.shares()
        self.assertGreater(json.loads(self.kept().read_text())["operations"], 1)

    @unittest.skipIf(os.environ.get("HONE_E2E_SANITIZE"), "a sanitizer's own memory, terabytes of it, is within no limit of data")
    def test_too_little_memory_is_told_in_place_of_a_share(self):
        cache = int(re.search(r"l3=(\d+)", self.fingerprint()).group(1))
        if cache < 32 << 20:
            self.skipTest(f"the last cache has {cache} bytes: a limit of four times that is too little to tune within")
        rows = 2 * cache // (4 * 4096) + 64  # more than is told as "cache"
        process = self.start(
            "tune", f"reduction(f32[{rows},4096])", "--evals", "2", "--kernel", "portable",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (4 * cache, 4 * cache)))
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, DONE, err)
        self.assertRegex(out, r"portable .* -  ")
        self.assertIn("peak: the speed of memory was not measured: its limit of data leaves", out)
        self.assertFalse(self.kept().exists())  # the next one may have more
