"""hone and the real PyTorch, on the CPU, as scripts/setup torch installs it."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, DATA

ROOT = DATA.parent
PACKAGES = ROOT / "build-python"
TORCH = PACKAGES / "torch-cpu"
PATH = f"{BUILD}/python:{TORCH}:{PACKAGES}"
PARTS = 3  # of the package's tests


def run(*command, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON", "TORCH"))}
    process = subprocess.run([str(word) for word in command], cwd=DATA / "python", capture_output=True, text=True, timeout=1500,
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

    def passes_its_tests(self, part):
        self.passes(sys.executable, "-B", "-W", "ignore", DATA / "support" / "parts.py", f"{part}/{PARTS}", "test_torch")

    def test_models_run_hones_operations(self):
        self.passes(sys.executable, "-B", "-W", "ignore", "-m", "unittest", "test_replacements")

    def test_functions_of_triton_are_kernels(self):
        self.passes(sys.executable, "-B", "-W", "ignore", "-m", "unittest", "test_triton", HONE_TEST_FAKES=BUILD / "tests" / "fakes")

    def test_the_page_about_triton_runs_as_written(self):
        page = (ROOT / "docs/bring-your-triton-kernel.md").read_text()
        program = self.folder / "page.py"
        program.write_text(f"import os; os.chdir({str(self.folder)!r})\n" + "\n".join(re.findall(r"```python\n(.*?)```", page, re.S)))
        out = self.passes(sys.executable, "-B", program, HONE_STORE="none", XDG_CACHE_HOME=self.folder, TRITON_CACHE_DIR=self.folder / "triton")
        for line in re.findall(r"(?m)^  (?:arguments|grid) .*$", page):
            self.assertIn(line, out)

    def test_the_page_runs_as_written(self):
        page = (ROOT / "docs" / "tune-a-pytorch-program.md").read_text()
        code = "\n".join(re.findall(r"(?ms)^```python\n(.*?)^```$", page))
        self.passes(sys.executable, "-B", "-W", "ignore", "-c", code, HONE_STORE=f"sqlite:{self.folder}/store.db")

    def test_the_page_about_bf16_runs_as_written(self):
        page = (ROOT / "docs" / "bf16-on-a-cpu.md").read_text().partition("\n## In PyTorch\n")[2]
        code, = re.findall(r"(?ms)^```python\n(.*?)^```$", page)
        out = self.passes(sys.executable, "-B", "-W", "ignore", "-c", code, HONE_STORE=f"sqlite:{self.folder}/store.db", XDG_CACHE_HOME=self.folder)
        self.assertRegex(out, r"matmul\D+\d+")
        self.assertIn("torch's oneDNN can be called: False", out)

    def test_a_package_of_aotinductor_runs_where_hone_is_and_is_refused_elsewhere(self):
        path = self.folder / "block.pt2"
        self.passes(sys.executable, "-B", "-W", "ignore", "-c",
                    "import torch, hone.torch\n"
                    "class Norm(torch.nn.Module):\n"
                    "    def forward(self, x, w): return hone.torch.ops.rms_norm(x, w) + 1\n"
                    "program = torch.export.export(Norm(), (torch.ones(4, 8), torch.ones(8)))\n"
                    f"torch._inductor.aoti_compile_and_package(program, package_path={str(path)!r})")
        load = f"model = torch._inductor.aoti_load_package({str(path)!r}); print('sum', float(model(torch.ones(4, 8), torch.ones(8)).sum()))"
        out = self.passes(sys.executable, "-B", "-W", "ignore", "-c", f"import torch, hone.torch; {load}", HONE_STORE="none")
        self.assertAlmostEqual(float(re.search(r"sum (\S+)", out)[1]), 64, places=2)
        code, out = run(sys.executable, "-B", "-W", "ignore", "-c", f"import torch; {load}")
        self.assertNotEqual(code, 0)
        self.assertIn("Could not find schema for hone::rms_norm", out)


for part in range(1, PARTS + 1):
    setattr(Torch, f"test_the_package_passes_its_tests_{part}", lambda self, part=part: self.passes_its_tests(part))


if __name__ == "__main__":
    unittest.main()
