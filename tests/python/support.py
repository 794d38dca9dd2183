"""Each test has a runtime of its own over a store of its own; nothing of the caller's environment comes in."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

for name in [name for name in os.environ if name.startswith("HONE_") and not name.startswith("HONE_TEST_")]:
    del os.environ[name]
os.environ["HONE_CUDA_DRIVER"] = "/nowhere/libcuda.so.1"  # a GPU of this machine is not for the tests
os.environ["HONE_PJRT_PLUGIN"] = "/nowhere/plugin.so"  # nor the plugin and the library that the tests' packages have
os.environ["HONE_SCIPY_OPENBLAS"] = "/nowhere"
os.environ["HONE_STORE"] = "none"

import numpy  # noqa: E402

import hone  # noqa: E402

QUICK = {"seconds": 1.0, "evaluations": 12, "progress": False}


class HoneTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hone-python-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = f"sqlite:{self.folder}/store.db"
        self.runtime = hone.Runtime(store=self.store)
        before = hone.use(self.runtime)
        self.addCleanup(self.restore, before)

    def restore(self, before):
        hone.use(before)
        self.runtime.close()


def tune_elsewhere(store, call):
    """As another process does."""
    subprocess.run([sys.executable, "-c", "import hone, sys; hone.use(hone.Runtime(store=sys.argv[1]))\n"
                    "hone.tune(sys.argv[2], seconds=0.5, evaluations=4, progress=False)", store, call], check=True)


def within_a_minute(happens):
    """Whether it comes to be; a machine may be busy."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.02)
    return False


def norm(x, w, eps=1e-6):
    """rms_norm in double."""
    x = x.astype(numpy.float64)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + eps) * w.astype(numpy.float64)


def arrays(rows=8, dim=64, dtype=numpy.float32):
    generator = numpy.random.default_rng(1)
    return generator.standard_normal((rows, dim)).astype(dtype), generator.standard_normal(dim).astype(dtype)
