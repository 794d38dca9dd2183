"""Pages that say how to extend hone are followed: their files are put into a copy of the tree, their commands are run there."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import DATA

ROOT = DATA.parent
IGNORED = shutil.ignore_patterns("build", "build-*", ".git", "__pycache__", ".cache", "*.egg-info", ".venv*")


def files_of(page):
    """A line `PATH`: and the block behind it."""
    return re.findall(r"(?ms)^`([^`\n]+)`:\n```\w+\n(.*?)^```$", page)


def commands_of(page):
    blocks = re.findall(r"(?ms)^<!-- test: \w+ -->\n```console\n(.*?)^```$", page)
    return re.findall(r"(?m)^\$ (.*)$", "\n".join(blocks))


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hone-page-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.tree = self.folder / "hone"
        shutil.copytree(ROOT, self.tree, ignore=IGNORED, symlinks=True)

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("HONE_")}
        env.update(HONE_STORE=f"sqlite:{self.folder}/store.db", HONE_DEVICE_LOCKS=str(self.folder),
                   HONE_OPENCL="/nowhere/libOpenCL.so.1", HONE_CUDA_DRIVER="/nowhere/libcuda.so.1")
        if shutil.which("ccache"):  # a copy is in another folder each time
            env.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CCACHE_BASEDIR=str(self.folder), CCACHE_NOHASHDIR="1")
        return env

    def run_command(self, command):
        # A number of a platform stands in a header that all of hone is compiled with; none of its own kernels is timed there.
        if "platform" in self.id():
            command = command.replace("cmake --preset release", "cmake --preset release -DHONE_KERNEL_OPTIMISE=-O0")
        done = subprocess.run(command, shell=True, cwd=self.tree, env=self.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-4000:]}")
        return done.stdout

    def follow(self, name):
        """Returns what each command printed."""
        page = (ROOT / "docs" / name).read_text()
        files, commands = files_of(page), commands_of(page)
        self.assertTrue(files and commands)
        for path, text in files:
            self.assertFalse((self.tree / path).exists(), f"{path} is there already")
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / path).write_text(text)
        return {command: self.run_command(command) for command in commands}

    def test_a_kernel_of_the_library_is_a_folder(self):
        printed = self.follow("write-a-kernel.md")
        walk = next(text for command, text in printed.items() if "test_kernels_walk" in command and "cmake" not in command)
        self.assertRegex(walk, r"OK \] l2_normalize_portable_on_cpu")
        tuned = next(text for command, text in printed.items() if "hone tune" in command)
        self.assertRegex(tuned, r"l2_normalize")

    def test_a_store_is_a_folder_and_a_name(self):
        printed = self.follow("write-a-store.md")
        conformance = next(text for command, text in printed.items() if "lines: store.lines" in command and "echo" not in command)
        self.assertRegex(conformance, r"OK \] get_before_put_is_not_found")
        self.assertNotIn("FAILED", conformance)
        self.assertIn("ok      store-names (5 kinds", next(text for command, text in printed.items() if "scripts/check" in command))
        listed = next(text for command, text in printed.items() if "store list" in command)
        self.assertRegex(listed, r"rms_norm")
        self.assertTrue((self.tree / "team.lines").read_text().startswith('{"hone_store": '))

    def test_a_platform_is_a_folder_a_number_and_a_line(self):
        printed = self.follow("write-a-platform.md")
        self.assertRegex(printed["build/tests/conformance_code stack"], r"\[  PASSED  \]")
        self.assertRegex(printed["build/hone devices"], r"stack")
        checked = next(text for command, text in printed.items() if "scripts/check" in command)
        self.assertIn("ok      format", checked)
        self.assertIn("ok      platform-names", checked)
        listed = next(text for command, text in printed.items() if "hone list" in command)
        self.assertRegex(listed, r"(?m)^ +postfix +stack .* pack [^:]*/shift$")
        tuned = next(text for command, text in printed.items() if "hone tune" in command)
        self.assertRegex(tuned, r"(?m)^\* postfix +gain=")


if __name__ == "__main__":
    unittest.main()
