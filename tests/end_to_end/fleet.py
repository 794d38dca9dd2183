"""A server of its own for tests of many machines, and workers that are started, killed and started again."""

import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import unittest

from support import CommandTest

WITH_POSTGRESQL = pathlib.Path(__file__).resolve().parents[1] / "support" / "with-postgresql"


class Server:
    """PostgreSQL under tests/support/with-postgresql; its client's variables stand in `env`."""

    def __init__(self, folder=None):
        """folder: where its data lie; None: among temporary files."""
        show = 'echo "$PGHOST"; echo "$HONE_POSTGRESQL"; cat >/dev/null'
        env = {**os.environ, "TMPDIR": str(folder)} if folder is not None else None
        self.process = subprocess.Popen([str(WITH_POSTGRESQL), "sh", "-c", show], text=True, env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        first = self.process.stdout.readline().strip()
        if first.startswith("skipped") or not first:
            self.process.communicate()
            if os.environ.get("HONE_REQUIRE"):
                raise AssertionError(first or "the server does not start")
            raise unittest.SkipTest(first or "the server does not start")
        self.control = self.process.stdout.readline().strip()
        self.env = {"PGHOST": first, "PGUSER": "hone", "PGDATABASE": "postgres"}

    def stop(self):
        subprocess.run([self.control, "stop"], check=True)

    def start(self):
        subprocess.run([self.control, "start"], check=True)

    def restart(self):
        self.stop()
        self.start()

    def replica(self):
        """The PGHOST of a server that follows this one."""
        return subprocess.run([self.control, "replica"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()

    def promote(self):
        subprocess.run([self.control, "promote"], check=True)

    def sql(self, text):
        done = subprocess.run(["psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text], text=True,
                              env={**os.environ, **self.env}, stdout=subprocess.PIPE, check=True)
        return done.stdout.strip()

    def close(self):
        self.process.communicate()


class Killer:
    """Stands between a client and the server, and kills the client at a point of what it says.

    The point: words that the client sends, one after the other, and whether it dies "before" the server hears the last
    of them, or "after" the server has answered and the client has not heard it.
    """

    def __init__(self, server, folder, words, when, pause=0):
        self.words, self.when, self.pause = [word.encode() for word in words], when, pause
        self.victim, self.killed, self.lock = None, False, threading.Lock()
        self.env = {**server.env, "PGHOST": str(folder)}
        folder.mkdir()
        self.to = f"{server.env['PGHOST']}/.s.PGSQL.5432"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen(20)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.to)
            is_due = threading.Event()
            for args in ((client, server, is_due, True), (server, client, is_due, False)):
                threading.Thread(target=self._pass, args=args, daemon=True).start()

    def _kill(self):
        time.sleep(self.pause)
        while self.victim is None:
            time.sleep(0.001)
        self.killed = True
        os.killpg(self.victim.pid, signal.SIGKILL)
        self.victim.wait()

    def _reached(self, chunk):
        with self.lock:
            at = 0
            while self.words and (found := chunk.find(self.words[0], at)) >= 0:
                at = found + len(self.words.pop(0))
                if not self.words:
                    return True
        return False

    def _pass(self, source, target, is_due, from_client):
        try:
            while chunk := source.recv(1 << 16):
                if from_client and self._reached(chunk):
                    if self.when == "before":
                        self._kill()
                        break
                    is_due.set()
                elif not from_client and is_due.is_set():
                    self._kill()
                    break
                target.sendall(chunk)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class FleetTest(CommandTest):
    """Each test has a schema of its own on the class's server."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.schemas = 0

    def setUp(self):
        super().setUp()
        type(self).schemas += 1
        self.store = f"postgresql:///postgres?schema=t{self.schemas}"

    def environment(self, changes):
        return super().environment({**self.server.env, "HONE_DEVICE_LOCKS": "none", **changes})
