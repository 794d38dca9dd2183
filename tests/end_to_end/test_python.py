"""The Python package: its tests in the build tree, and its wheel in a fresh virtual environment."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from elf import unsafe
from support import BUILD, DATA

ROOT = DATA.parent
PACKAGES = ROOT / "build-python"  # what scripts/setup installed: numpy, jax, build
TESTS = DATA / "python"
PARTS = 2  # of the package's tests


def run(*command, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
    process = subprocess.run([str(word) for word in command], cwd=TESTS, capture_output=True, text=True, timeout=1500,
                             env={**env, **{name: str(value) for name, value in environment.items()}})
    return process.returncode, process.stdout + process.stderr


class Python(unittest.TestCase):
    def passes(self, *command, **environment):
        code, out = run(*command, **environment)
        self.assertEqual(code, 0, out)
        return out

    def passes_its_tests(self, part):
        self.passes(sys.executable, "-B", DATA / "support" / "parts.py", f"{part}/{PARTS}", "test_run", "test_choose", "test_caches", "test_implementations",
                    "test_streams", "test_jax", "test_invocations", "test_counts", "test_statements",
                    PYTHONPATH=f"{BUILD}/python:{PACKAGES}", HONE_TEST_COMMAND=BUILD / "hone",
                    HONE_TEST_FAKES=BUILD / "tests" / "fakes")

    def test_norms_of_flax_run_hones(self):
        if not (PACKAGES / "flax-packages").exists() and not os.environ.get("HONE_REQUIRE"):
            self.skipTest("flax is not there: scripts/setup python installs it")
        self.passes(sys.executable, "-B", "-m", "unittest", "test_flax",
                    PYTHONPATH=f"{BUILD}/python:{PACKAGES}:{PACKAGES}/flax-packages:{PACKAGES}/ejkernel-imports")

    def test_libraries_for_tvm_ffi_from_python(self):
        self.passes(sys.executable, "-B", "-m", "unittest", "test_ffi", PYTHONPATH=f"{BUILD}/python:{PACKAGES}")

    def test_threads_coroutines_and_processes(self):
        self.passes(sys.executable, "-B", "-m", "unittest", "test_processes", PYTHONPATH=f"{BUILD}/python:{PACKAGES}")

    def test_functions_of_python_are_kernels(self):
        self.passes(sys.executable, "-B", "-m", "unittest", "test_kernels", PYTHONPATH=f"{BUILD}/python:{PACKAGES}",
                    HONE_TEST_COMMAND=BUILD / "hone")

    def test_a_typed_program_passes_mypy_and_runs(self):
        checker = PACKAGES / "mypy-checker"
        if not (checker / "mypy").exists() and not os.environ.get("HONE_REQUIRE"):
            self.skipTest("mypy is not there: scripts/setup python installs it")
        with tempfile.TemporaryDirectory(prefix="hone-types-") as folder:
            folder = pathlib.Path(folder)
            for name, place in (("numpy", PACKAGES / "numpy"), ("hone", BUILD / "python" / "hone")):  # of what is imported, no more
                (folder / name).symlink_to(place)
            _, out = run(sys.executable, "-B", "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "--cache-dir",
                         folder / "cache", "typed_program.py", "badly_typed.py", PYTHONPATH=checker, MYPYPATH=folder)
            found = re.findall(r"(?m)^(typed_program|badly_typed)\.py:(\d+): error", out)
            wrong = [number for number, line in enumerate((TESTS / "badly_typed.py").read_text().splitlines(), 1) if "# wrong: " in line]
            self.assertEqual(found, [("badly_typed", str(number)) for number in wrong], out[-4000:])
            self.assertIn("typed", self.passes(sys.executable, "-B", "typed_program.py", folder, PYTHONPATH=f"{BUILD}/python:{PACKAGES}", HONE_STORE="none"))

    def test_tqdm_shows_a_contest(self):
        out = self.passes(sys.executable, "-B", "-c",
                          "import hone; hone.tune('softmax(f32[64,64])', seconds=1, evaluations=8, progress=True)",
                          PYTHONPATH=f"{BUILD}/python:{PACKAGES}:{PACKAGES}/ejkernel-imports", HONE_STORE="none")
        self.assertRegex(out, r"softmax\(f32\[64,64\]\): .*\d+/\d+ ")

    def test_the_pages_run_as_written(self):
        for name in ("python.md", "tune-a-jax-program.md", "write-a-kernel-in-python.md", "bf16-on-a-cpu.md"):
            page = (ROOT / "docs" / name).read_text().partition("\n## In PyTorch\n")[0]  # test_torch has what is behind it
            blocks = re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", page)
            with self.subTest(name), tempfile.TemporaryDirectory(prefix="hone-page-") as folder:
                settings = {"HONE_STORE": f"sqlite:{folder}/store.db", "XDG_CACHE_HOME": folder, "JAX_PLATFORMS": "cpu"}
                code = f"import os; os.chdir({folder!r})\n" + "\n".join(text for kind, text in blocks if kind == "python")
                program = pathlib.Path(folder) / "page.py"  # functions of -c have no source
                program.write_text(code)
                self.passes(sys.executable, "-B", program, PYTHONPATH=f"{BUILD}/python:{PACKAGES}", **settings)
                lines = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]
                for line in filter(lambda line: line.startswith("hone "), lines):
                    self.passes("sh", "-c", f"cd {folder} && {BUILD}/{line}", **settings)


for part in range(1, PARTS + 1):
    setattr(Python, f"test_the_package_passes_its_tests_{part}", lambda self, part=part: self.passes_its_tests(part))


class Wheel(unittest.TestCase):
    in_one_part = True
    passes = Python.passes

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hone-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        code, out = run(sys.executable, "-B", "-m", "build", "--wheel", "--no-isolation", "--outdir", cls.folder, ROOT,
                        PYTHONPATH=PACKAGES, HONE_BUILD=BUILD.resolve())
        if code != 0:
            raise RuntimeError(out)
        cls.wheel, = cls.folder.glob("*.whl")
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.folder / "unpacked")
            cls.files = archive.namelist()

    def test_the_pages_command_makes_it(self):
        line = re.search(r"(?m)^(pip wheel [^#\n]*)", (ROOT / "docs" / "python.md").read_text())[1].strip()
        for page in ("README.md", "docs/install.md"):
            self.assertIn(f"`{line}`", (ROOT / page).read_text())
        command = [str(self.folder / "dist") if word == "dist" else word for word in line.split()]
        environment = {**os.environ, "HONE_BUILD": str(BUILD.resolve()), "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1500)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((self.folder / "dist" / self.wheel.name).read_bytes(), self.wheel.read_bytes())

    def test_its_tag_is_of_glibc_2_28(self):
        self.assertRegex(self.wheel.name, r"^hone_tuner-.*-cp311-abi3-manylinux_2_28_.*\.whl$")

    def test_it_runs_with_an_older_c_library(self):
        older = ROOT / "build-debian" / "older.tar"
        if os.getuid() != 0 or not older.exists():
            if os.environ.get("HONE_REQUIRE"):
                self.fail(f"only root may enter another root, which is {older}: scripts/setup debian makes it")
            self.skipTest(f"only root may enter another root, and {older} has to be there: scripts/setup debian")
        root = self.folder / "older"
        root.mkdir()
        self.passes("tar", "-C", root, "-xf", older)
        for name in ("proc", "tmp"):
            (root / name).mkdir(exist_ok=True)
        shutil.copytree(self.folder / "unpacked" / "hone", root / "hone")
        for name in ("hone", "hone-worker"):
            (root / "hone" / name).chmod(0o755)

        def inside(program, *arguments, **environment):
            settings = [f"{name}={value}" for name, value in {"HONE_STORE": "sqlite:/tmp/store.db", **environment}.items()]
            return self.passes("unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0" && exec env -i "$@"', root / "proc",
                               *settings, "/usr/sbin/chroot", root, program, *arguments)

        call = "matmul(f32[8,8], f32[8,8])"
        for kernel in ("portable", *(["libxsmm"] if (root / "hone" / "libhone_libxsmm.so").exists() else [])):
            self.assertIn(f"chosen {kernel}", inside("/hone/hone", "tune", call, "--kernel", kernel, "--seconds", "1"))
        self.assertIn('"source":"store"', inside("/hone/hone", "explain", call, "--json"))
        # Constructors run, of which the libraries inside have some.
        (self.folder / "probe.c").write_text("static int made; __attribute__((constructor)) static void make(void) { made = 1; }\n"
                                             "int main(void) { return !made; }\n")
        stubs = (BUILD / "python" / "older_libc").glob("lib*.so.?")
        self.passes("cc", self.folder / "probe.c", ROOT / "python/older_libc/start.c", "-Wl,--wrap=__libc_start_main", *stubs, "-o", root / "probe")
        inside("/probe")
        loader, = (root / "lib").glob("*/ld-2.*.so")
        for name in ("libhone.so.0", "libhone_ffi.so", "libhone_xla.so"):  # as ldd -r: is each symbol there that the library asks for?
            out = inside(f"/{loader.relative_to(root)}", "--list", f"/hone/{name}", LD_BIND_NOW=1, LD_WARN=1)
            self.assertIn("libc.so.6 => ", out)
            self.assertNotRegex(out, "not found|undefined")

    def test_it_stands_alone(self):
        folder = self.folder
        names = {pathlib.PurePath(name).name for name in self.files}
        licenses = {name.rpartition("/")[2] for name in self.files if "/licenses/" in name}
        self.assertLessEqual({"_hone.abi3.so", "libhone.so.0", "libhone_xla.so", "libhone_ffi.so", "hone", "hone-worker", "py.typed"}, names)
        self.assertLessEqual({"LICENSE", "jansson", "sqlite", "nettle", "libunistring", "zlib"}, licenses)
        count, found = unsafe(folder / "unpacked")
        self.assertGreaterEqual(count, 4)
        self.assertEqual(found, {}, "an entry of RPATH or RUNPATH is empty or relative")
        self.passes(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        site = self.passes(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        self.passes(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--no-cache-dir", self.wheel)
        out = self.passes(python, "-c", "import hone, sys; print(hone.__file__, hone.decide('softmax(f32[4,8])').kernel)",
                          HONE_STORE="none", PYTHONPATH=PACKAGES)
        self.assertTrue(out.startswith(site), out)
        # Python's own SQLite stays the system's, and hone's stays its own.
        out = self.passes(python, "-c", "import hone, pathlib; hone.decide('softmax(f32[4,8])'); import sqlite3; "
                          "print([line.split()[-1] for line in pathlib.Path('/proc/self/maps').read_text().splitlines() if 'sqlite3' in line])",
                          HONE_STORE=f"sqlite:{folder}/store.db", PYTHONPATH=PACKAGES)
        self.assertNotIn(site, out)
        kernel = "libxsmm" if "libhone_libxsmm.so" in names else "portable"
        out = self.passes(folder / "venv" / "bin" / "hone", "tune", "matmul(f32[8,8], f32[8,8])", "--kernel", kernel, "--seconds", "1",
                          HONE_STORE="none", HONE_DEVICE_LOCKS=folder)
        self.assertIn(f"chosen {kernel}", out)
        self.passes(python, "-B", "-m", "unittest", "test_run", "test_choose.Tune", "test_jax.Handler",
                    PYTHONPATH=PACKAGES)
