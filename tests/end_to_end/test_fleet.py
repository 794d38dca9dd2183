"""Many machines with one store: workers that empty its queue, are killed, and lose their server."""

import os
import random
import signal
import sqlite3
import time

from fleet import FleetTest
from support import BUILD, COMMAND, DONE, INTERRUPTED, NO, NORM, PRODUCT, QUICK, USAGE, WORLD, CommandTest

SOAK = os.environ.get("HONE_SOAK") == "1"
LITTLE = ["--seconds", "0.5", "--evals", "4"]


def calls(count):
    return [f"rms_norm(f32[{1 + i},64], f32[64])" for i in range(count)]


class Queue(CommandTest):
    """On a store in a file, for one machine."""

    def test_the_heaviest_is_tuned_first_and_each_once(self):
        self.hone("queue", "add", NORM, "--calls", "7")
        self.hone("queue", "add", PRODUCT, "--calls", "900")
        jobs = self.hone("queue", "list", "--json").json["jobs"]
        self.assertEqual([job["call"] for job in jobs], [PRODUCT, NORM])
        answer = self.hone("work", "--until-empty", *QUICK)
        tuned = [line.split(":")[0] for line in answer.out.splitlines()[:2]]
        self.assertEqual(tuned, [PRODUCT, NORM])
        again = self.hone("work", "--until-empty", "--json", *QUICK).json
        self.assertEqual(again["tuned"], 0)

    def test_priority_goes_before_weight_and_a_class_fits_its_devices(self):
        self.hone("queue", "add", NORM)
        self.hone("queue", "add", PRODUCT, "--calls", "900", "--device", "cuda|NVIDIA%20H200")
        self.hone("queue", "add", NORM, "--priority", "4", "--device", "cpu")
        jobs = self.hone("queue", "list", "--json").json["jobs"]
        self.assertEqual([job["device"].split("|")[0] for job in jobs], ["cpu", "cuda", "cpu"])
        answer = self.hone("work", "--until-empty", "--json", *QUICK).json
        self.assertEqual((answer["tuned"], answer["known"]), (1, 1), answer)
        self.assertEqual(self.hone("queue", "stat", "--json").json["waiting"], 1)

    def test_recorded_calls_are_queued_by_themselves(self):
        self.hone("run", NORM, env={"HONE_POLICY": "heuristic", "HONE_RECORD": "1"})
        answer = self.hone("work", "--until-empty", "--json", *QUICK).json
        self.assertEqual((answer["queued"], answer["tuned"]), (1, 1))

    def test_a_pause_holds_workers_until_it_is_taken_back(self):
        self.hone("queue", "add", NORM)
        self.hone("queue", "pause", "--device", "cpu")
        answer = self.hone("work", "--until-empty", *QUICK, code=NO)
        self.assertIn("paused", answer.err)
        self.assertIn("paused: cpu\n", self.hone("queue", "list").out)
        self.assertEqual(self.hone("queue", "stat", "--json").json["paused_devices"], ["cpu"])
        self.hone("queue", "pause")
        self.assertEqual(self.stat()["foreigns"], 0)  # a pause is not a config of another system
        self.assertRegex(self.hone("store", "stat").out, r"(?m)^0 decisions, .*, 0 configs of other systems, ")
        self.assertIn("still paused: all devices", self.hone("queue", "pause", "--device", "cpu", "--off").out)
        self.hone("queue", "pause", "--off")
        self.hone("work", "--until-empty", *QUICK)

    def test_what_kills_its_workers_is_set_aside_with_the_reason(self):
        call = "matmul(f32[512,512], f32[512,512])"
        self.hone("queue", "add", call)
        for tries in (1, 2):
            worker = self.start("work", "--until-empty", "--seconds", "60", "--patience", "500")
            deadline = time.monotonic() + 20
            while self.hone("queue", "list", "--json").json["jobs"][0]["tries"] < tries:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            answer = self.hone("queue", "drop", "--all", code=NO)
            self.assertIn(f"{call}: a worker tunes it now", answer.err)
            worker.kill()
            worker.communicate()
            self.assertIn("its worker died", self.hone("queue", "list").out)
        answer = self.hone("work", "--until-empty", "--retries", "2", *QUICK, code=None)
        job = self.hone("queue", "list", "--json").json["jobs"][0]
        self.assertEqual((job["state"], job["tries"]), ("aside", 2))
        self.assertIn("2 contests were begun and none ended", job["reason"])
        self.assertIn("1 call is set aside", self.hone("work", "--until-empty", *QUICK, code=NO).err)
        self.assertIn("0 queued, 1 were there already, 1 of them set aside: taken up again", self.hone("queue", "add", call).out)
        self.assertEqual(self.hone("queue", "add", call, "--json").json, {"added": 0, "known": 1, "again": 0, "refused": 0})
        self.assertEqual(self.hone("work", "--until-empty", "--json", *QUICK).json["tuned"], 1, answer.err)

    def test_a_job_that_was_changed_by_hand_is_dropped(self):
        self.hone("queue", "add", NORM)
        with sqlite3.connect(str(self.folder / "store.db.queue")) as file:
            file.execute("UPDATE job SET call = 'nonsense('")
        answer = self.hone("work", "--until-empty", *QUICK)
        self.assertIn("checksum", answer.err)
        self.assertEqual(self.hone("store", "list").out.count("rms_norm"), 0)

    def test_a_call_that_is_refused_keeps_nobody_from_the_others(self):
        answer = self.hone("queue", "add", NORM, "nonsense(f32[4])", PRODUCT, code=NO)
        self.assertIn("not queued: nonsense(f32[4])", answer.err)
        self.assertIn("2 queued, 0 were there already, 1 refused", answer.out)
        again = self.hone("queue", "add", NORM, "rms_norm(", "--json", code=USAGE).json
        self.assertEqual((again["added"], again["known"], again["refused"]), (0, 1, 1))

    def test_devices_are_named_as_elsewhere_and_by_the_beginning_of_their_fingerprint(self):
        self.hone("queue", "add", NORM, "--device", "cpu:0")
        self.hone("queue", "add", PRODUCT, "--device", "here")
        jobs = self.hone("queue", "list", "--json", "--device", "cpu:0").json["jobs"]
        self.assertEqual({job["device"] for job in jobs}, {self.fingerprint()})
        for device, count in (("cpu", 2), ("cpu:0", 2), ("cuda", 0)):
            self.assertEqual(len(self.hone("queue", "list", "--json", "--device", device).json["jobs"]), count)
            self.assertEqual(self.hone("queue", "stat", "--json", "--device", device).json["waiting"], count)
        for verb in (["add", NORM], ["list"], ["pause"], ["drop", "--all"]):
            self.refused("queue", *verb, "--device", "cuda:0", code=NO, says=["no such device", "fingerprint"])
        self.assertIn("0 dropped", self.hone("queue", "drop", "--all", "--device", "cuda").out)
        self.assertIn("2 dropped", self.hone("queue", "drop", "--all", "--device", "cpu").out)

    def test_here_is_every_device_of_this_machine(self):
        env = {"HONE_CUDA_DRIVER": str(BUILD / "tests" / "fakes" / "fake_cuda.so")}
        here = {row["fingerprint"] for platform in self.hone("devices", "--json", env=env).json["platforms"] for row in platform["devices"]}
        self.assertGreater(len(here), 1, here)
        self.hone("queue", "add", NORM, f"{NORM}@cuda:0", "--device", "here", env=env)
        self.hone("queue", "add", PRODUCT, "--device", "elsewhere", env=env)
        jobs = self.hone("queue", "list", "--json", "--device", "here", env=env).json["jobs"]
        self.assertEqual(sorted(job["device"].split("|")[0] for job in jobs), ["cpu", "cuda"])
        self.assertEqual(self.hone("queue", "stat", "--json", "--device", "here", env=env).json["waiting"], 2)
        self.assertEqual(set(self.hone("queue", "pause", "--device", "here", "--json", env=env).json["paused_devices"]), here)
        self.assertTrue(self.hone("queue", "stat", "--json", "--device", "here", env=env).json["paused"])
        self.assertEqual(self.hone("queue", "pause", "--off", "--device", "here", "--json", env=env).json["paused_devices"], [])
        self.assertIn("2 dropped", self.hone("queue", "drop", "--all", "--device", "here", env=env).out)
        self.assertEqual(self.hone("queue", "stat", "--json", env=env).json["waiting"], 1)

    def test_a_worker_that_is_interrupted_says_what_it_did(self):
        self.hone("queue", "add", NORM)
        worker = self.start("work", *QUICK, "--kernel", "portable")
        self.assertIn("nothing waits", worker.stderr.readline())
        worker.send_signal(signal.SIGINT)
        out, _ = worker.communicate(timeout=30)
        self.assertRegex(out, r"(?m)^1 tuned; \d+ contests left open")
        self.assertEqual(worker.returncode, INTERRUPTED)
        idle = self.start("work", *QUICK)
        self.assertIn("nothing waits", idle.stderr.readline())
        idle.send_signal(signal.SIGINT)
        out, _ = idle.communicate(timeout=30)
        self.assertIn("0 tuned", out)

    def test_a_store_that_cannot_be_opened_is_no_empty_one(self):
        (self.folder / "store.db").write_text("text")
        for arguments in (["record", "list"], ["stats"], ["tune", "--recorded"], ["queue", "list"], ["work"]):
            self.refused(*arguments, code=WORLD, says="not a store of hone")

    def test_stores_without_a_queue_say_so(self):
        for url in ("memory:", f"json:{self.folder}/json"):
            answer = self.hone("queue", "add", NORM, env={"HONE_STORE": url}, code=WORLD)
            self.assertIn("has no queue", answer.err)


class Slips(CommandTest):
    """What is written wrongly is refused, or told."""

    def test_a_call_is_dropped_and_not_another_algorithms_of_the_same_key(self):
        call = "attention(f32[1,2,8,16], f32[1,2,8,16], f32[1,2,8,16])"
        self.hone("queue", "add", call, "flash_" + call)
        key = self.hone("key", call, "--json").json["key"]
        self.refused("queue", "drop", key, says=[key, "attention", "flash_attention", "name the call"])
        self.assertEqual(self.hone("queue", "drop", call, "--json").json["dropped"], 1)
        self.assertEqual([job["call"] for job in self.hone("queue", "list", "--json").json["jobs"]], ["flash_" + call])
        self.assertEqual(self.hone("queue", "drop", key, "--json").json["dropped"], 1)

    def test_devices_stores_and_numbers_that_make_no_sense(self):
        self.refused("queue", "add", NORM, "--device", "", says="--device is empty, expected DEVICE")
        for verb in (["add", NORM], ["pause"]):
            self.refused("queue", *verb, "--device", "cpu\udcff", says="not UTF-8")
            self.refused("queue", *verb, "--device", "cpu\x1b[31m", says="control character")
            self.refused("queue", *verb, "--device", "x" * 1025, says="longer than 1024 bytes")
        self.refused("work", "--retries", "0", says="--retries")
        self.refused("work", "--device", "cuda:7", "--until-empty", code=NO, says="no device 'cuda:7'")
        self.assertIn("another machine", self.hone("queue", "add", NORM, "--device", "nowhere").err)
        self.refused("queue", "drop", says="--all")
        self.refused("sync", self.store, says="this store itself")
        self.refused("sync", "nonsense:", says="not the URL of a store")
        (self.folder / "store.db.queue").write_text("text")
        self.refused("queue", "list", code=WORLD, says="move it away")


class Away(FleetTest):
    """A program while its server is away: the copy answers, and says how old it is."""

    def test_the_copy_answers_and_what_is_tuned_meanwhile_reaches_the_server(self):
        self.hone("tune", NORM, *QUICK)
        self.server.stop()
        try:
            answer = self.hone("explain", NORM)
            self.assertIn("its copy of 20", answer.out)
            answer = self.hone("tune", PRODUCT, *QUICK)
            self.assertIn(f"kept here, and sent to {self.store} by the next that finds its server", answer.out)
            self.assertIn("answered by store", self.hone("explain", PRODUCT).out)
            self.refused("queue", "list", code=WORLD, says="server is away")
        finally:
            self.server.start()
        self.assertNotIn("copy of", self.hone("explain", PRODUCT).out)
        self.assertEqual(len(self.hone("store", "list", "--json").lines), 2)

    def test_the_copy_is_of_the_database_and_not_of_the_text(self):
        here = {"HONE_STORE": "postgresql://?schema=text&connect_timeout=5"}
        there = {**here, "PGDATABASE": "template1"}
        self.hone("tune", NORM, *QUICK, env=here)
        self.server.stop()
        try:
            alike = {"HONE_STORE": f"postgresql://hone@/postgres?host={self.server.env['PGHOST']}&schema=text"}
            self.assertIn("its copy of 20", self.hone("explain", NORM, env=alike).out)
            self.assertNotIn("answered by store", self.hone("explain", NORM, env=there).out)
        finally:
            self.server.start()

    def test_a_copy_that_is_something_else_is_begun_anew(self):
        self.hone("tune", NORM, *QUICK)
        copies = self.folder / "cache" / "hone" / "copies"
        for copy in list(copies.glob("*.db")):
            for beside in copies.glob(f"{copy.name}-*"):
                beside.unlink()
            copy.write_text("text\n")
        answer = self.hone("explain", NORM)
        self.assertEqual(answer.err.count("is not a store of hone; it was moved to"), 2, answer.err)
        self.assertEqual(len(list(copies.glob("*.damaged-*"))), 2)
        self.server.stop()
        try:
            self.assertIn("its copy of 20", self.hone("explain", NORM).out)
        finally:
            self.server.start()

    def test_a_server_that_refuses_is_not_waited_for(self):
        for changes, words in (({"PGDATABASE": "nowhere"}, 'database "nowhere" does not exist'),
                               ({"PGUSER": "nobody"}, 'role "nobody" does not exist')):
            env = {**changes, "HONE_STORE": "postgresql:?schema=refused"}
            self.refused("work", "--until-empty", *QUICK, env=env, code=WORLD, says=words)
            self.assertIn(words, self.hone("run", NORM, env={**env, "HONE_LOG": "warning"}).err)

    def test_all_can_come_from_libpqs_variables(self):
        self.hone("store", "stat", env={"HONE_STORE": "postgresql:"})

    def test_two_stores_are_kept_alike_while_both_change(self):
        beside = f"sqlite:{self.folder}/beside.db"
        self.hone("tune", NORM, *QUICK)
        watcher = self.start("sync", beside, "--watch")
        try:
            deadline = time.monotonic() + 60
            self.hone("tune", PRODUCT, *QUICK, env={"HONE_STORE": beside})
            while len(self.hone("store", "list", "--json").lines) < 2:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.2)
        finally:
            watcher.send_signal(signal.SIGINT)
            out, _ = watcher.communicate(timeout=30)
        self.assertEqual(len(self.hone("store", "list", "--json", env={"HONE_STORE": beside}).lines), 2)
        self.assertIn("decision", out)


class Workers(FleetTest):
    """Workers that are killed at any moment, and a server that stops."""

    def supervise(self, workers, kills, restarts, seed, arguments):
        """Runs workers until they leave by themselves, killing one and stopping the server now and then."""
        chance = random.Random(seed)
        begin = lambda: self.start("work", "--until-empty", "--retries", "1000", *arguments, start_new_session=True)
        running = [begin() for _ in range(workers)]
        output, errors = [], []
        restart_at = {kills * (i + 1) // (restarts + 1) for i in range(restarts)}
        deadline = time.monotonic() + (3000 if SOAK else 300)
        killed = restarted = 0
        while running:
            self.assertLess(time.monotonic(), deadline, "the workers do not come to an end")
            time.sleep(chance.uniform(0.05, 0.6))
            if killed < kills:
                victim = running.pop(chance.randrange(len(running)))
                if victim.poll() is None:
                    os.killpg(victim.pid, signal.SIGKILL)
                out, err = victim.communicate()
                output.append(out)
                errors.append(err)
                killed += 1
                running.append(begin())
                if killed in restart_at:
                    self.server.restart()
                    restarted += 1
            for worker in [worker for worker in running if worker.poll() is not None]:
                out, err = worker.communicate()
                output.append(out)
                errors.append(err)
                running.remove(worker)
                self.assertEqual(worker.returncode, DONE, err)
        self.assertEqual((killed, restarted), (kills, restarts))
        return "".join(output).splitlines(), errors

    def test_each_call_is_decided_once_whoever_dies(self):
        workers, count, kills, restarts = (8, 500, 200, 20) if SOAK else (3, 12, 6, 1)
        wanted = calls(count)
        self.hone("queue", "add", *wanted)
        begun = time.monotonic()
        lines, _ = self.supervise(workers, kills, restarts, 20, LITTLE)
        took = time.monotonic() - begun
        decided = [entry["call"] for entry in self.hone("store", "list", "--json").lines]
        self.assertEqual(sorted(decided), sorted(wanted))
        stat = self.hone("queue", "stat", "--json").json
        self.assertEqual((stat["waiting"], stat["held"], stat["aside"]), (0, 0, 0))
        contests = [line.split(":")[0] for line in lines if " in " in line and "left open" not in line]
        twice = [call for call in set(contests) if contests.count(call) > 1]
        if SOAK:
            print(f"\n{workers} workers, {count} calls, {kills} kills, {restarts} restarts: {took:.0f} s; "
                  f"lost {len(set(wanted) - set(decided))}, done twice {len(twice)}")
        self.assertEqual(twice, [])
