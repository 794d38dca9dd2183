"""A server of its own for tests of many machines, and workers that are started, killed and started again."""

import os
import pathlib
import subprocess
import unittest

from support import CommandTest

WITH_POSTGRESQL = pathlib.Path(__file__).resolve().parents[1] / "support" / "with-postgresql"


class Server:
    """PostgreSQL under tests/support/with-postgresql; its client's variables stand in `env`."""

    def __init__(self):
        show = 'echo "$PGHOST"; echo "$HONE_POSTGRESQL"; cat >/dev/null'
        self.process = subprocess.Popen([str(WITH_POSTGRESQL), "sh", "-c", show], text=True,
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

    def close(self):
        self.process.communicate()


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
