"""hone and the real PyTorch, on the CPU, as scripts/setup torch installs it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, DATA

ROOT = DATA.parent
PACKAGES = ROOT / "build-python"
TORCH = PACKAGES / "torch-cpu"
PATH = f"{BUILD}/python:{TORCH}:{PACKAGES}"


def run(*command, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON", "TORCH"))}
    process = subprocess.run([str(word) for word in command], cwd=DATA / "python", capture_output=True, text=True, timeout=550,
                             env={**env, "PYTHONPATH": PATH, **{name: str(value) for name, value in environment.items()}})
    return process.returncode, process.stdout + process.stderr


class Torch(unittest.TestCase):
    def setUp(self):
        if not (TORCH / "nvidia" / "cu13" / "lib" / "libcublas.so.13").exists() and not os.environ.get("HONE_REQUIRE"):
            self.skipTest("PyTorch is not there: scripts/setup torch installs it")
        folder = tempfile.TemporaryDirectory(prefix="hone-torch-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def passes(self, *command, **environment):
        code, out = run(*command, TORCHINDUCTOR_CACHE_DIR=self.folder / "inductor", **environment)
        self.assertEqual(code, 0, out)
        return out

    def test_the_package_passes_its_tests(self):
        self.passes(sys.executable, "-B", "-W", "ignore", "-m", "unittest", "test_torch")


if __name__ == "__main__":
    unittest.main()
