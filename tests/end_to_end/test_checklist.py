"""docs/checklist.md: what a newcomer does with the pages, task by task, with the words by which each is done."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from support import BUILD, DATA, DONE, NO, NORM, QUICK, WORLD, CommandTest

ROOT = DATA.parent
PACKAGES = ROOT / "build-python"  # numpy
FAKES = BUILD.resolve() / "tests" / "fakes"  # a driver and a compiler of CUDA
EXAMPLES = ROOT / "examples"


class Checklist(CommandTest):
    def done_when(self, number):
        """The last column of a task's row."""
        row, = re.findall(rf"(?m)^\| {number} \| .* \| (.*) \|$", (ROOT / "docs" / "checklist.md").read_text())
        return row

    def test_there_are_twelve_tasks(self):
        for number in range(1, 13):
            self.assertTrue(self.done_when(number))

    def test_1_and_4_are_done_by_what_the_page_names(self):
        self.assertIn("`shown in ... s`", self.done_when(1))
        self.assertRegex((ROOT / "scripts" / "demo").read_text(), r'(?m)^say "shown in .* s after the installs')
        self.assertIn("`pkg-config hone`", self.done_when(4))
        self.assertIn("`install_pkg_config`", (ROOT / "docs" / "checklist.md").read_text())
        self.assertRegex((ROOT / "tests" / "install" / "CMakeLists.txt").read_text(), r"(?m)foreach\(way .*\bpkg_config\b")

    def test_2_and_3_a_call_is_tuned_found_again_and_explained(self):
        self.assertIn("answered by store", self.done_when(2))
        self.hone("tune", NORM, *QUICK)
        explained = self.hone("explain", NORM).out
        self.assertRegex(explained, r"(?m)^answered by store: native/\w+")
        kernel = re.search(r"answered by store: native/(\w+)", explained)[1]
        self.assertRegex(explained, rf"(?m)^  store +{kernel}$")  # the link of the chain
        self.assertRegex(explained, rf"(?m)^  native +{kernel} +yes +chosen$")

    @unittest.skipIf(os.environ.get("HONE_E2E_SANITIZE"), "Python without the sanitizer cannot load a library with it")
    def test_5_a_call_from_python_agrees_with_numpy(self):
        if not (PACKAGES / "numpy").is_dir() and not os.environ.get("HONE_REQUIRE"):
            self.skipTest("numpy is not there: scripts/setup python installs it")
        self.assertIn('hone.run("softmax", x)', self.done_when(5))
        done = subprocess.run(
            [sys.executable, "-B", "-c",
             "import numpy, hone\n"
             "x = numpy.random.default_rng(1).standard_normal((8, 100)).astype(numpy.float32)\n"
             "right = numpy.exp(x) / numpy.exp(x).sum(-1, keepdims=True)\n"
             'print(numpy.allclose(hone.run("softmax", x), right, rtol=1e-5))\n'],
            env=self.environment({"PYTHONPATH": f"{BUILD}/python:{PACKAGES}"}), capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)

    def test_6_an_operation_of_ones_own_is_tuned_by_the_command(self):
        if shutil.which("cc") is None:
            self.skipTest("no C compiler")
        library = self.folder / "libaxpy.so"
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", str(EXAMPLES / "register.c"), "-o", str(library)], check=True)
        self.assertIn("names both kernels", self.done_when(6))
        out = self.hone("tune", "--program", str(library), "axpy(f32[1000], f32[1000], alpha=2.0)", *QUICK).out
        self.assertRegex(out, r"(?m)^[* ] plain ")
        self.assertRegex(out, r"(?m)^[* ] blocked ")

    def test_7_a_kernel_is_shipped_as_a_folder(self):
        pack = str(EXAMPLES / "packs" / "saxpy")
        self.assertIn("hone pack check DIR", self.done_when(7))
        self.hone("pack", "check", pack)
        self.assertRegex(self.hone("tune", "--pack", pack, "saxpy(f32[1000], f32[1000])", *QUICK).out, r"(?m)^[* ] blocked ")

    def test_8_choices_are_pinned_and_drift_is_seen(self):
        self.assertIn("1 once a choice has changed (3 after an edit by hand", self.done_when(8))
        self.hone("tune", NORM, *QUICK)
        self.hone("lock")
        self.hone("lock", "--check", code=DONE)
        lock = self.folder / "hone.lock"
        kernel = re.search(r" native/(\w+)", lock.read_text())[1]
        lock.write_text(re.sub(r" native/\w+.*  #", f" native/{'reference' if kernel != 'reference' else 'portable'}  #", lock.read_text()))
        self.hone("lock", "--check", code=WORLD)
        self.hone("lock", "--reseal")
        self.hone("lock", "--check", code=NO)

    def test_9_a_call_on_a_gpu_gets_a_kernel_of_the_gpu(self):
        """By stand-ins for driver and compiler; the page says where the call itself ran."""
        self.assertIn("@cuda:0'` chooses a kernel", self.done_when(9))
        gpu = {"HONE_CUDA_DRIVER": str(FAKES / "fake_cuda.so"), "HONE_NVRTC": str(FAKES / "fake_nvrtc.so"), "HONE_CUBLASLT": "/nowhere"}
        out = self.hone("tune", f"{NORM} @cuda:0", *QUICK, env=gpu).out
        self.assertRegex(out, r"(?m)^ +chosen cuda\b")

    def test_10_another_machine_answers_from_the_store_without_a_contest(self):
        self.assertIn("without a contest", self.done_when(10))
        shared = f"json:{self.folder}/shared"
        self.hone("tune", NORM, *QUICK, "--store", shared)
        answer = self.hone("run", NORM, "--json", env={"HONE_STORE": shared, "HOME": str(self.folder / "other")})
        self.assertEqual(answer.json["source"], "store")
        self.assertNotIn("tuning", answer.err)

    def test_11_the_operations_of_a_program_are_listed_tuned_and_expected(self):
        self.assertIn("--expect-all", self.done_when(11))
        program = self.write("program.mlir", self.program())
        self.assertRegex(self.hone("offline", "--list", program).out, r"rms_norm")
        self.hone("offline", "--expect-all", program, code=NO)
        self.hone("offline", program, *QUICK)
        self.hone("offline", "--expect-all", program, code=DONE)

    def program(self):
        """A lowered program of one operation, labelled with its call."""
        key = self.hone("key", NORM, "--json").json["key"]
        return ("module @jit_f {\n  func.func public @main(%arg0: tensor<4x256xf32>, %arg1: tensor<256xf32>) -> tensor<4x256xf32> {\n"
                f'    %0 = stablehlo.custom_call @f(%arg0, %arg1) {{hone_label = "hone#rms_norm.v1:{key}", hone_call = "{NORM}"}}'
                " : (tensor<4x256xf32>, tensor<256xf32>) -> tensor<4x256xf32>\n"
                "    return %0 : tensor<4x256xf32>\n  }\n}\n")

    def test_12_another_version_is_compared_by_the_whole_program(self):
        self.assertIn("hone ab", self.done_when(12))
        answer = self.hone("ab", "--a-env", "PAUSE=0", "--b-env", "PAUSE=0.3", "--seconds", "60", "--", "sh", "-c", "sleep $PAUSE", code=NO)
        self.assertRegex(answer.out, r"(?m)^b is worse")
