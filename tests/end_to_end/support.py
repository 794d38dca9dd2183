"""Runs the command as a user does: a process of its own, a store of its own, nothing of the caller's environment."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["HONE_E2E_BUILD"])
DATA = pathlib.Path(os.environ["HONE_E2E_DATA"])
COMMAND = str(BUILD / "hone")
SIMULATE = str(BUILD / "lab" / "hone-simulate")

# Small enough that a contest is over in a second, also on a busy machine.
NORM = "rms_norm(f32[4,256], f32[256])"
NORM_NEAR = "rms_norm(f32[8,256], f32[256])"
PRODUCT = "matmul(f32[32,32], f32[32,32])"
QUICK = ["--seconds", "1", "--evals", "12"]

DONE, NO, USAGE, WORLD, INTERRUPTED = 0, 1, 2, 3, 130


class Answer:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        """The one JSON document on standard output, and nothing beside it."""
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hone-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = f"sqlite:{self.folder}/store.db"

    def use_new_store(self):
        self.store = f"sqlite:{tempfile.mkdtemp(dir=self.folder)}/store.db"

    def environment(self, changes):
        env = {name: value for name, value in os.environ.items() if not name.startswith("HONE_")}
        env.update({"HONE_STORE": self.store, "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"),
                    "HONE_DEVICE_LOCKS": os.environ.get("HONE_E2E_LOCKS", str(BUILD.resolve())),
                    "HONE_CUDA_DRIVER": "/nowhere/libcuda.so.1",  # a GPU of this machine is not for the tests
                    "HONE_NUMPY_OPENBLAS": "/nowhere", "HONE_SCIPY_OPENBLAS": "/nowhere", "HONE_ONEDNN3": "/nowhere",
                    # Those of this machine, and of build-python, are for the tests that ask for them.
                    "HONE_OPENCL": "/nowhere/libOpenCL.so.1", "HONE_PJRT_PLUGIN": "/nowhere/plugin.so"})
        env["COLUMNS"] = None  # a terminal's
        env.update(changes)
        return {name: value for name, value in env.items() if value is not None}

    def start(self, *arguments, env=None, **options):
        return subprocess.Popen(
            [COMMAND, *arguments], env=self.environment(env or {}), cwd=self.folder, text=True,
            stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options)

    def hone(self, *arguments, code=DONE, input="", env=None):
        """Runs the command and asks for its exit code; None: any."""
        process = self.start(*arguments, env=env, stdin=subprocess.PIPE)
        out, err = process.communicate(input, timeout=300)
        if code is not None:
            self.assertEqual(process.returncode, code, f"hone {' '.join(arguments)}\n{out}{err}")
        return Answer(process.returncode, out, err)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def refused(self, *arguments, code=USAGE, says=(), **options):
        """Leaves with the code, prints nothing but words on standard error, and says each of the words."""
        answer = self.hone(*arguments, code=code, **options)
        self.assertEqual(answer.out, "")
        self.assertTrue(answer.err.startswith("hone: "), answer.err)
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, answer.err)
        return answer

    def has_fields(self, document, fields):
        """fields: name -> type or tuple of types."""
        for name, kinds in fields.items():
            self.assertIn(name, document)
            self.assertIsInstance(document[name], kinds, f"{name} is {document[name]!r}")

    def fingerprint(self):
        return self.hone("devices", "--json").json["platforms"][0]["devices"][0]["fingerprint"]

    def stat(self):
        return self.hone("store", "stat", "--json").json


NULL = type(None)
NUMBER = (int, float)
