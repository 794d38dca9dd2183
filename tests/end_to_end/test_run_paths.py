"""Nothing that hone builds or installs has the loader search the current folder for libraries."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from elf import unsafe
from support import BUILD


class RunPaths(unittest.TestCase):
    def holds_files_that_are_safe(self, folder, least, **options):
        count, found = unsafe(folder, **options)
        self.assertGreaterEqual(count, least)
        self.assertEqual(found, {}, "an entry of RPATH or RUNPATH is empty or relative")

    def test_the_build_tree_searches_no_current_folder(self):
        self.holds_files_that_are_safe(BUILD, 4, passing=("CMakeFiles",))

    def test_an_installation_searches_no_current_folder(self):
        with tempfile.TemporaryDirectory(prefix="hone-install-") as folder:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], check=True, capture_output=True)
            self.holds_files_that_are_safe(folder, 4)

    def test_a_library_of_the_current_folder_is_not_loaded(self):
        with tempfile.TemporaryDirectory(prefix="hone-trap-") as folder:
            source = pathlib.Path(folder, "trap.c")
            source.write_text("#include <unistd.h>\n__attribute__((constructor)) static void trap(void) { _exit(77); }\n")
            for name in ("libjansson.so.4", "libsqlite3.so.0", "libz.so.1", "libxxhash.so.0", "libnettle.so.8"):
                subprocess.run([shutil.which("cc"), "-shared", "-fPIC", source, "-o", pathlib.Path(folder, name)], check=True)
            worker = subprocess.run([(BUILD / "hone-worker").resolve()], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
            self.assertNotEqual(worker.returncode, 77, "hone-worker ran a library that lay in the current folder")
            command = subprocess.run([(BUILD / "hone").resolve(), "--version"], cwd=folder, capture_output=True)
            self.assertEqual(command.returncode, 0)
