"""What can be wrong with a server, a machine's clock and a worker: words, a local answer, nothing lost, nothing twice."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from fleet import FleetTest, Killer, Server
from support import DONE, NO, NORM, NORM_NEAR, PRODUCT, WORLD, CommandTest

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
# One kernel with few configs: no contest is left open.
LITTLE = ["--seconds", "0.3", "--evals", "2", "--kernel", "portable"]
SANITIZED = os.environ.get("HONE_E2E_SANITIZE", "") not in ("", "OFF")

# Statements of hone's, as their names travel: hone_TABLE_VERB of store/postgresql/sql.h.
PUT_DECISION, PUT_MEASUREMENT, LOOK_FOR_JOBS, CHANGE_JOB, TAKE_JOB = (
    "\0hone_0_0\0", "\0hone_1_0\0", "\0hone_6_9\0", "\0hone_6_11\0", "\0hone_6_12\0")
MERGE_DECISION, ADD_COUNT = "\0hone_0_1\0", "\0hone_3_1\0"
COMMIT = "COMMIT"


class Deaths(FleetTest):
    """A worker dies at a named point, and another one comes."""

    # Where, and whether the call that it held was decided by then.
    POINTS = {
        "looking for calls": ([LOOK_FOR_JOBS], "after", False),
        "its lock is taken": (["pg_try_advisory_lock"], "after", False),
        "claiming": ([CHANGE_JOB], "before", False),
        "claimed, and it does not know": ([CHANGE_JOB], "after", False),
        "storing": ([CHANGE_JOB, PUT_DECISION], "before", False),
        "stored, and it does not know": ([CHANGE_JOB, PUT_DECISION], "after", True),
        "the decision is stored, the job not closed": ([PUT_DECISION, TAKE_JOB], "before", True),
        "closed, and it does not know": ([TAKE_JOB], "after", True),
    }

    def end(self, killer):
        try:
            return killer.victim.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(killer.victim.pid, signal.SIGKILL)
            return killer.victim.communicate()

    def die(self, name, words, when, *arguments, pause=0, env=None):
        killer = Killer(self.server, self.folder / f"k{len(list(self.folder.iterdir()))}", words, when, pause)
        self.addCleanup(killer.close)
        killer.victim = self.start(*arguments, env={**(env or {}), **killer.env}, start_new_session=True)
        out, err = self.end(killer)
        self.assertTrue(killer.killed, f"{name}: it was never there\n{out}{err}")
        return out

    def finish(self, name, is_decided, first):
        """Another worker: what was decided is not contested again, what was not is, and nothing is left."""
        out = first + self.hone("work", "--until-empty", *LITTLE).out
        decided = sorted(row["call"] for row in self.hone("store", "list", "--json").lines)
        self.assertEqual(decided, sorted([NORM, PRODUCT]), name)
        stat = self.hone("queue", "stat", "--json").json
        self.assertEqual((stat["waiting"], stat["held"], stat["aside"]), (0, 0, 0), name)
        contests = [line for line in out.splitlines() if line.startswith(PRODUCT) and " in " in line]
        self.assertEqual(len(contests), 0 if is_decided and PRODUCT not in first else 1, f"{name}\n{out}")

    def test_each_call_is_decided_once_wherever_the_worker_dies(self):
        for number, (name, (words, when, is_decided)) in enumerate(self.POINTS.items()):
            with self.subTest(name):
                self.store = f"postgresql:///postgres?schema=died{number}"
                self.hone("queue", "add", PRODUCT, "--priority", "1")
                self.hone("queue", "add", NORM)
                first = self.die(name, words, when, "work", "--until-empty", *LITTLE)
                self.finish(name, is_decided, first)

    def test_in_the_middle_of_a_contest(self):
        self.hone("queue", "add", PRODUCT, "--priority", "1")
        self.hone("queue", "add", NORM)
        self.die("tuning", [CHANGE_JOB], "after", "work", "--until-empty", "--seconds", "30", "--patience", "500", pause=0)
        held = self.hone("queue", "list", "--json").json["jobs"][0]
        self.assertEqual((held["state"], held["dead"], held["tries"]), ("held", True, 1))
        self.finish("tuning", False, "")

    def test_what_was_decided_without_the_server_is_sent_once_wherever_the_sender_dies(self):
        points = {"sending": ([MERGE_DECISION], "before"), "sent in part": ([MERGE_DECISION], "after"),
                  "counting": ([ADD_COUNT], "before"), "all is sent": ([ADD_COUNT, COMMIT], "before"),
                  "all is there, and it does not know": ([ADD_COUNT, COMMIT], "after")}
        recorded = {"HONE_RECORD": "1", "HONE_POLICY": "heuristic"}
        for number, (name, (words, when)) in enumerate(points.items()):
            with self.subTest(name):
                # The files beside a store are of its server: the killer's is another one.
                self.store = f"postgresql:///postgres?schema=sent{number}"
                self.hone("store", "stat")
                folder = self.folder / f"s{number}"
                killer = Killer(self.server, folder, words, when)
                self.addCleanup(killer.close)
                (folder / ".s.PGSQL.5432").rename(folder / "away")
                self.hone("tune", NORM, *LITTLE, env=killer.env)
                self.hone("run", NORM_NEAR, env={**killer.env, **recorded})
                (folder / "away").rename(folder / ".s.PGSQL.5432")
                killer.victim = self.start("explain", NORM, env=killer.env, start_new_session=True)
                out, err = self.end(killer)
                self.assertTrue(killer.killed, f"{name}: it was never there\n{out}{err}")
                for _ in range(2):
                    self.assertIn("answered by store", self.hone("explain", NORM, env=killer.env).out)
                self.assertEqual([row["call"] for row in self.hone("store", "list", "--json").lines], [NORM])
                counts = {row["call"]: row["count"] for row in self.hone("record", "list", "--json").json["invocations"]}
                alone = f"sqlite:{self.folder}/alone{number}.db"
                self.hone("run", NORM_NEAR, env={"HONE_STORE": alone, **recorded})
                wanted = self.hone("record", "list", "--json", env={"HONE_STORE": alone}).json["invocations"]
                self.assertEqual(counts[NORM_NEAR], wanted[0]["count"], name)


class Clocks(FleetTest):
    """A machine whose clock is ten years off."""

    @unittest.skipIf(SANITIZED, "a sanitizer's library must be the first that is loaded; the release shows it")
    def test_claims_and_deaths_ask_no_clock(self):
        library = self.folder / "clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(SUPPORT / "shifted_clock.c"), "-ldl"], check=True)
        years = 10 * 365 * 86400
        fast, slow = ({"LD_PRELOAD": str(library), "HONE_TEST_SHIFT": str(shift)} for shift in (years, -years))
        wanted = [f"rms_norm(f32[{2 + i},64], f32[64])" for i in range(6)]
        self.hone("queue", "add", *wanted)
        # It holds a call, and dies.
        victim = self.start("work", "--seconds", "60", "--patience", "500", env=fast, start_new_session=True)
        self.addCleanup(victim.kill)
        deadline = time.monotonic() + 30
        while self.hone("queue", "stat", "--json").json["held"] == 0:
            self.assertLess(time.monotonic(), deadline)
        # While it lives nobody takes its call, whatever the time is.
        workers = [self.start("work", *LITTLE, env=env) for env in ({}, slow, fast)]
        for worker in workers:
            self.addCleanup(worker.kill)
        while (stat := self.hone("queue", "stat", "--json").json)["waiting"] > 0 or stat["held"] > 1:
            self.assertLess(time.monotonic(), deadline)
        self.assertLessEqual(stat["held"], 1)
        os.killpg(victim.pid, signal.SIGKILL)
        output = victim.communicate()[0]  # on a busy machine it may have been certain of a call before
        while self.hone("queue", "stat", "--json").json["held"] > 0:
            self.assertLess(time.monotonic(), deadline)
        for worker in workers:
            worker.send_signal(signal.SIGINT)
            output += worker.communicate(timeout=30)[0]
        contests = [line.split(":")[0] for line in output.splitlines() if " in " in line and "left open" not in line]
        self.assertEqual(sorted(contests), sorted(wanted))
        self.assertEqual(sorted(row["call"] for row in self.hone("store", "list", "--json").lines), sorted(wanted))
        # What one of them decided is answered by all.
        for env in ({}, slow, fast):
            self.assertIn("answered by store", self.hone("explain", wanted[0], env=env).out)


class Refusals(FleetTest):
    """A server that answers, and does not do what it is asked for."""

    def test_a_wrong_password_is_told_and_no_password_is_shown(self):
        self.server.sql("CREATE ROLE guarded LOGIN PASSWORD 'right-secret'; GRANT CREATE ON DATABASE postgres TO guarded")
        rules = pathlib.Path(self.server.sql("SHOW hba_file"))
        before = rules.read_text()
        rules.write_text("local all guarded scram-sha-256\n" + before)
        self.server.sql("SELECT pg_reload_conf()")
        env = {"PGUSER": "guarded", "HONE_STORE": "postgresql:///postgres?schema=guarded", "HONE_LOG": "debug"}
        said = ""
        for password, words in (("wrong-secret", "password authentication failed"), (None, "no password supplied")):
            wrong = {**env, "PGPASSWORD": password}
            deadline = time.monotonic() + 20  # until the server has read its rules
            while words not in self.hone("store", "stat", env=wrong, code=None).err:
                self.assertLess(time.monotonic(), deadline)
            answers = [self.hone("work", "--until-empty", env=wrong, code=WORLD), self.hone("queue", "list", env=wrong, code=WORLD),
                       self.hone("explain", NORM, env=wrong), self.hone("doctor", env=wrong, code=None),
                       self.hone("report", "--json", env=wrong, code=WORLD), self.hone("tune", NORM, *LITTLE, env=wrong)]
            for answer in answers:
                self.assertIn(words, answer.out + answer.err)
                self.assertIn("libpq takes passwords from PGPASSWORD, ~/.pgpass or a service file", answer.out + answer.err)
                said += answer.out + answer.err
        right = {**env, "PGPASSWORD": "right-secret", "HONE_PROVENANCE": "1"}
        for arguments in (["tune", NORM, *LITTLE], ["explain", NORM], ["store", "export", "-"], ["doctor"], ["report", "--json"]):
            answer = self.hone(*arguments, env=right, code=None)
            said += answer.out + answer.err
        self.assertIn("rms_norm", self.hone("store", "list", env=right).out)
        self.assertNotIn("secret", said)

    def test_a_replica_answers_and_what_is_decided_beside_it_is_sent_once_when_it_takes_it(self):
        self.hone("tune", NORM, *LITTLE)
        replica = {"PGHOST": self.server.replica()}
        self.assertIn("answered by store", self.hone("explain", NORM, env=replica).out)
        answer = self.hone("tune", PRODUCT, *LITTLE, env=replica)
        self.assertIn("follows another one", answer.err)
        self.assertIn("kept here, and sent to", answer.out)
        self.assertIn("answered by store", self.hone("explain", PRODUCT, env=replica).out)
        self.assertEqual([row["call"] for row in self.hone("store", "list", "--json", env=replica).lines], [NORM])
        self.refused("queue", "add", PRODUCT, env=replica, code=WORLD, says="read-only transaction")
        recorded = {"HONE_RECORD": "1", "HONE_POLICY": "heuristic"}
        self.assertEqual(self.hone("run", NORM_NEAR, env={**replica, **recorded}).err.count("follows another one"), 1)
        # What the other one takes comes over.
        self.hone("tune", NORM_NEAR, *LITTLE)
        deadline = time.monotonic() + 20
        while len(self.hone("store", "list", "--json", env=replica).lines) < 2:
            self.assertLess(time.monotonic(), deadline)
        self.assertIn("answered by store", self.hone("explain", NORM_NEAR, env=replica).out)
        # It becomes the server.
        self.server.promote()
        for _ in range(2):
            self.assertIn("answered by store", self.hone("explain", PRODUCT, env=replica).out)
        calls = sorted(row["call"] for row in self.hone("store", "list", "--json", env=replica).lines)
        self.assertEqual(calls, sorted([NORM, NORM_NEAR, PRODUCT]))
        counts = {row["call"]: row["count"] for row in self.hone("record", "list", "--json", env=replica).json["invocations"]}
        alone = {"HONE_STORE": f"sqlite:{self.folder}/alone.db"}
        self.hone("run", NORM_NEAR, env={**alone, **recorded})
        self.assertEqual(counts[NORM_NEAR], self.hone("record", "list", "--json", env=alone).json["invocations"][0]["count"])
        self.hone("queue", "add", "rms_norm(f32[9,64], f32[64])", env=replica)
        self.assertEqual(self.hone("work", "--until-empty", "--json", *LITTLE, env=replica).json["tuned"], 1)

    def test_who_is_to_read_by_default_only_reads(self):
        self.hone("tune", NORM, *LITTLE)
        self.server.sql("CREATE ROLE careful SUPERUSER LOGIN; ALTER ROLE careful SET default_transaction_read_only = on")
        careful = {"PGUSER": "careful"}
        self.assertIn("answered by store", self.hone("explain", NORM, env=careful).out)
        self.assertIn("read-only transaction", self.hone("tune", PRODUCT, *LITTLE, env=careful, code=NO).err)
        self.assertEqual(len(self.hone("store", "list", "--json").lines), 1)

    def test_a_call_whose_answer_the_store_does_not_take_stays_in_the_queue(self):
        self.hone("queue", "add", NORM)
        schema = self.store.split("=")[1]
        self.server.sql(f"CREATE ROLE halfway LOGIN; GRANT USAGE ON SCHEMA {schema} TO halfway; GRANT ALL ON ALL TABLES IN SCHEMA {schema} "
                        f"TO halfway; REVOKE INSERT ON {schema}.decision FROM halfway")
        answer = self.hone("work", "--until-empty", *LITTLE, env={"PGUSER": "halfway"}, code=WORLD)
        self.assertIn(f"{NORM} was tuned, and stays in the queue, since the store does not take the answer: ", answer.err)
        self.assertIn("permission denied for table decision", answer.err)
        self.assertEqual([(job["state"], job["tries"]) for job in self.hone("queue", "list", "--json").json["jobs"]], [("waiting", 0)])
        self.assertEqual(self.hone("work", "--until-empty", "--json", *LITTLE).json["tuned"], 1)
        self.assertEqual([row["call"] for row in self.hone("store", "list", "--json").lines], [NORM])

    def test_tables_of_a_newer_hone_and_of_something_else_are_left_alone(self):
        self.hone("tune", NORM, *LITTLE)
        schema = self.store.split("=")[1]
        self.server.sql(f"UPDATE {schema}.hone_schema SET version = 99; CREATE SCHEMA app; CREATE TABLE app.decision(id int)")
        for store, words in ((self.store, "version 99"), ("postgresql:///postgres?schema=app", "another application")):
            env = {"HONE_STORE": store, "HONE_POLICY": "heuristic"}
            self.assertIn(words, self.hone("run", NORM, env=env).err)
            self.refused("work", "--until-empty", env=env, code=WORLD, says=words)
            self.refused("store", "list", env=env, code=WORLD, says=words)
        self.assertEqual(self.server.sql(f"SELECT count(*) FROM {schema}.decision"), "1")
        self.assertEqual(self.server.sql("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'app'"), "1")
        self.server.sql(f"UPDATE {schema}.hone_schema SET version = 2")
        self.assertIn("answered by store", self.hone("explain", NORM).out)

    def test_tables_of_an_older_hone_are_brought_to_todays(self):
        self.hone("tune", NORM, *LITTLE)
        schema = self.store.split("=")[1]
        self.server.sql(f"SET search_path TO {schema}; DROP TABLE job; DROP FUNCTION hone_tell CASCADE; UPDATE hone_schema SET version = 1")
        self.hone("queue", "add", PRODUCT)
        self.assertEqual(self.hone("work", "--until-empty", "--json", *LITTLE).json["tuned"], 1)
        self.assertEqual(len(self.hone("store", "list", "--json").lines), 2)


class FullDisk(CommandTest):
    """A server whose disk is full."""

    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.folder.chmod(0o711)  # the server is another user
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m,mode=1777", "tmpfs", str(self.disk)], capture_output=True,
                              text=True)
        if done.returncode != 0:
            self.skipTest(f"a small file system needs the right to mount: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)])
        self.server = Server(self.disk)
        self.addCleanup(self.server.close)
        self.store = "postgresql:///postgres"

    def environment(self, changes):
        return super().environment({**self.server.env, "HONE_DEVICE_LOCKS": "none", **changes})

    def test_what_is_decided_meanwhile_is_kept_and_sent_when_there_is_room(self):
        self.hone("store", "stat")
        self.hone("queue", "add", PRODUCT)
        ballast = self.disk / "ballast"
        with ballast.open("wb") as file:
            try:
                while True:
                    os.write(file.fileno(), b"0" * 4096)
            except OSError:
                pass
        answer = self.hone("tune", NORM, *LITTLE)
        self.assertIn("No space left on device", answer.err)
        self.assertIn("kept here, and sent to", answer.out)
        self.assertIn("answered by store", self.hone("explain", NORM).out)
        worker = self.start("work", "--until-empty", *LITTLE)
        self.assertIn("No space left", worker.stderr.readline())
        ballast.unlink()
        out, err = worker.communicate(timeout=12)
        self.assertEqual(worker.returncode, DONE, out + err)
        deadline = time.monotonic() + 30
        while len(rows := self.hone("store", "list", "--json").lines) < 2:
            self.hone("explain", NORM)
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(sorted(row["call"] for row in rows), sorted([NORM, PRODUCT]))
