"""hone --program: operations of a program, which the command tunes, measures, explains and audits like the built-in ones."""

import pathlib
import shutil
import subprocess

from support import BUILD, DATA, DONE, NO, NUMBER, USAGE, WORLD, CommandTest

EXAMPLE = DATA.parent / "examples" / "register.c"
CALL = "axpy(f32[4096], f32[4096], alpha=2.0)"
QUICK = ["--seconds", "1", "--evals", "8"]


class ProgramLibrary(CommandTest):
    def library(self, source=None, name="libaxpy.so", links=("-lhone", f"-Wl,-rpath,{BUILD}")):
        """Compiled as its users do it, and linked with the libhone that programs use."""
        path = self.folder / name
        text = EXAMPLE.read_text() if source is None else source
        (self.folder / "axpy.c").write_text(text)
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", f"-I{DATA.parent / 'include'}", str(self.folder / "axpy.c"), "-o", str(path),
             f"-L{BUILD}", *links, "-Wl,--allow-shlib-undefined"], check=True)
        return ["--program", str(path)]

    def test_its_operations_are_tuned_found_explained_run_benched_audited_and_pinned(self):
        program = self.library()
        for command in ("key", "tune", "explain"):
            self.refused(command, CALL, code=NO, says=["axpy", "--pack", "--program"])
        self.assertRegex(self.hone("key", CALL, *program).out, r"^[0-9a-f]{16}\n")
        self.assertEqual([row["name"] for row in self.hone("list", "axpy", "--json", *program).json["algorithms"][0]["kernels"]],
                         ["plain", "blocked"])
        told = self.hone("explain", CALL, *program, code=NO).out
        self.assertIn("was not verified for this call in this process", told)
        self.assertIn(f"hone tune --program '{pathlib.Path(program[1]).resolve()}' '{CALL}'", told)
        (entry,) = self.hone("tune", CALL, *program, *QUICK, "--json").json["entries"]
        self.assertTrue(entry["evidence"]["isolated"], entry["evidence"])
        self.assertEqual({row["kernel"] for row in entry["evidence"]["kernels"] if row["time_ns"]}, {"plain", "blocked"})
        self.assertEqual(self.hone("explain", CALL, "--json", *program).json["source"], "store")
        explained = self.hone("explain", CALL, *program).out
        self.assertNotIn("never verified", explained)  # the contest has verified both
        self.assertNotRegex(explained, r"(?m) $")
        ran = self.hone("run", CALL, "--json", *program).json
        self.assertEqual((ran["source"], ran["verified"]), ("store", True))
        (bench,) = self.hone("bench", CALL, "--seconds", "0.2", "--json", *program).json["calls"]
        self.assertEqual({row["kernel"] for row in bench["rows"]}, {"plain", "blocked"})
        (row,) = self.hone("tune", "--audit", "--threshold", "900", "--seconds", "1", "--json", *program).json["choices"]
        self.assertTrue(row["served"] and row["passed"], row)
        self.assertIn("1 choice was not looked at", self.hone("tune", "--audit", code=WORLD).err)

    def test_a_kernel_that_crashes_or_answers_wrong_loses_and_the_command_goes_on(self):
        text = EXAMPLE.read_text()
        for wrong in ("z[i] = alpha * x[i] - y[i];", "z[i] = alpha * x[i] + *(volatile float *)0;"):
            head, tail = text.split("scale_add_blocked", 1)
            body = tail.replace("z[i] = alpha * x[i] + y[i];", wrong, 1)
            program = self.library(head + "scale_add_blocked" + body)
            (entry,) = self.hone("tune", CALL, *program, *QUICK, "--fresh", "--json").json["entries"]
            self.assertEqual(entry["kernel"], "plain")
            rows = {row["kernel"]: row["rejected"] for row in entry["evidence"]["kernels"]}
            self.assertTrue(rows["blocked"], rows)
            bench = self.hone("bench", CALL, "--seconds", "0.2", "--json", *program)  # which runs kernels in its own process
            self.assertEqual({row["kernel"] for row in bench.json["calls"][0]["rows"]}, {"plain"})
            self.assertRegex(bench.err, r"blocked is left out: it failed when it was measured \((wrong|crash)\)")

    def test_a_library_needs_no_libhone_beside_the_command(self):
        program = self.library(links=["-lhone"])
        self.refused("key", CALL, *program, code=WORLD, says=["libhone.so", "link it without -lhone"], env={"LD_LIBRARY_PATH": None})
        program = self.library(links=[])
        self.assertRegex(self.hone("key", CALL, *program).out, r"^[0-9a-f]{16}\n")

    def test_a_library_that_registers_nothing_says_what_is_missing(self):
        self.refused("key", CALL, "--program", "nowhere.so", code=WORLD, says=["--program nowhere.so", "nowhere.so"])
        source = self.folder / "kernels.c"
        for text in ("int one;\n" * 100, ""):
            source.write_text(text)
            self.refused("key", CALL, "--program", str(source), code=WORLD, says=["kernels.c", "expected a shared library (cc -shared -fPIC)"])
        program = self.library("int nothing;\n", "libnothing.so")
        self.refused("key", CALL, *program, code=WORLD, says=["libnothing.so", "exports no function hone_program_register"])
        shutil.copy(pathlib.Path("/bin/true"), self.folder / "app")
        self.refused("key", CALL, "--program", str(self.folder / "app"), code=WORLD, says="shared library")
        program = self.library("""#include <hone/hone.h>
HONE_API hone_program_register_function hone_program_register;
hone_status hone_program_register(hone_runtime *rt, hone_error *err)
{
    const hone_algorithm twice = {.struct_size = sizeof twice, .signature = "twice(x: f33[n]) -> y: f32[n]"};
    return hone_register_algorithm(rt, &twice, err);
}
""", "libwrong.so")
        self.refused("tune", CALL, *program, code=USAGE, says=["libwrong.so", "f33"])
