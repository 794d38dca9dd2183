"""Packs: kernels that come as folders, from pack.json to a tuned choice."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, DATA, DONE, NO, USAGE, WORLD, CommandTest

EXAMPLE = DATA.parent / "examples" / "packs" / "saxpy"
CALL = "saxpy(f32[4096], f32[4096])"
QUICK = ["--seconds", "2", "--evals", "4"]

# Notes the errno of each deed, 0: it was done.
THIEF = """
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
static void note(FILE *notes, const char *deed, int result)
{
    fprintf(notes, "%s %d\\n", deed, result < 0 ? errno : 0);
    if (result > 2) close(result);
}
static void steal(void)
{
    static int done;
    FILE *notes = done++ == 0 ? fopen("NOTES", "w") : 0;
    if (!notes) return;
    note(notes, "write", open("HOME/stolen", O_CREAT | O_WRONLY, 0600));
    note(notes, "truncate", truncate("HOME/.ssh/id", 0));
    note(notes, "remove", unlink("HOME/.ssh/id"));
    note(notes, "folder", mkdir("HOME/folder", 0700));
    note(notes, "store", open("HOME/.cache/hone/planted", O_CREAT | O_WRONLY, 0600));
    note(notes, "read", open("HOME/.ssh/id", O_RDONLY));
    note(notes, "socket", socket(AF_INET, SOCK_STREAM, 0));
    note(notes, "socket6", socket(AF_INET6, SOCK_DGRAM, 0));
    note(notes, "trace", (int)ptrace(PTRACE_TRACEME, 0, 0, 0));
    note(notes, "keeper", kill(getppid(), 0));
    struct rlimit limit = {0, 0};
    note(notes, "limit", prlimit(getppid(), RLIMIT_CORE, &limit, 0));
    note(notes, "own limit", prlimit(getpid(), RLIMIT_CORE, 0, &limit));
    note(notes, "priority", setpriority(PRIO_PROCESS, (id_t)getppid(), getpriority(PRIO_PROCESS, 0)));
    note(notes, "own priority", setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)));
    const int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    note(notes, "segment", segment < 0 ? segment : shmctl(segment, IPC_RMID, 0));
    char name[] = "/tmp/hone-thief-XXXXXX";
    note(notes, "temporary", mkstemp(name));
    unlink(name);
    fclose(notes);
}
"""

LIBRARY = """
#include <hone/hone.h>
#include <stdlib.h>
static hone_status run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const float *x = hone_tensor_data(args[0].as.tensor), *y = hone_tensor_data(args[1].as.tensor);
    float *z = hone_tensor_data(args[2].as.tensor), alpha = (float)args[3].as.f64;
    const int64_t n = args[0].as.tensor->shape[0], step = plan->config[0];
    for (int64_t from = 0; from < n; from += step)
        for (int64_t i = from; i < n && i < from + step; i++)
            z[i] = alpha * x[i] + y[i];
    return HONE_OK;
}
static const hone_pack_function functions[] = {{.struct_size = sizeof functions[0], .name = "saxpy", .run = run}};
static const hone_pack_library library = {.struct_size = sizeof library, .abi = ABI, .count = 1, .functions = functions};
const hone_pack_library *QUERY(uint32_t abi);
const hone_pack_library *QUERY(uint32_t abi)
{
    (void)abi;
    CRASH;
    return &library;
}
"""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Packs(CommandTest):
    def setUp(self):
        super().setUp()
        self.pack = self.folder / "packs" / "mine"
        shutil.copytree(EXAMPLE, self.pack)
        self.env = {"HONE_COMPILE_CACHE": str(self.folder / "compiled")}

    def document(self):
        return json.loads((self.pack / "pack.json").read_text())

    def write(self, document):
        (self.pack / "pack.json").write_text(json.dumps(document))

    def change(self, name, **fields):
        document = self.document()
        kernel = next(row for row in document["kernels"] if row["name"] == name)
        kernel.update(fields)
        self.write(document)

    def replace(self, file, old, new):
        """Changes a source, and its digest in pack.json."""
        path = self.pack / file
        path.write_text(path.read_text().replace(old, new))
        document = self.document()
        for kernel in document["kernels"]:
            for row in [kernel, *kernel.get("files", [])]:
                if row.get("file") == file:
                    row["sha256"] = digest(path)
        self.write(document)

    def pack_hone(self, *arguments, **more):
        return self.hone(*arguments, env={**self.env, **more.pop("env", {})}, **more)

    def counting_compiler(self):
        """A compiler that notes each time that it is called."""
        script, log = self.folder / "counting-cc", self.folder / "cc.log"
        script.write_text(f'#!/bin/sh\n[ "$1" = -v ] || echo called >> "{log}"\nexec cc "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        self.env["HONE_CC"] = str(script)
        return lambda: len(log.read_text().splitlines()) if log.exists() else 0

    def refusal(self, kernel="blocked", *more):
        answer = self.pack_hone("pack", "check", str(self.pack), *more, "--json", code=NO)
        rows = {row["name"]: row for row in answer.json["packs"][0]["kernels"]}
        self.assertTrue(rows[kernel]["refused"])
        return rows[kernel]["reason"]

    # What a worker may do

    def tune_thief(self, home, **env):
        """Tunes a kernel that is right and does what it should not; what came of each deed, as its errno or 0."""
        notes = self.folder / "notes"
        self.replace("blocked.c", '#include "blocks.h"\n', '#include "blocks.h"\n' + THIEF.replace("HOME", str(home))
                     .replace("NOTES", str(notes)))
        self.replace("blocked.c", "{\n    for (int64_t from", "{\n    steal();\n    for (int64_t from")
        self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, "--kernel", "blocked",
                       env={"HOME": str(home), "XDG_CACHE_HOME": None, "HONE_COMPILE_CACHE": None, **env})
        return dict(line.rsplit(" ", 1) for line in notes.read_text().splitlines())

    def home_outside_of_temporary_folders(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="home-", dir=BUILD))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        (home / ".ssh").mkdir()
        (home / ".ssh" / "id").write_text("secret")
        return home

    def test_a_candidate_writes_no_file_of_its_user_and_reaches_no_network(self):
        home = self.home_outside_of_temporary_folders()
        if "has no Landlock" in str(self.hone("doctor", "--json", code=None).json):
            self.skipTest("this kernel has no Landlock")
        came = self.tune_thief(home)
        allowed = {"read", "temporary", "own limit", "own priority"}
        if os.environ.get("HONE_E2E_SANITIZE"):
            allowed.add("trace")  # AddressSanitizer's search for leaks traces the process
        self.assertEqual({name for name, errno in came.items() if errno == "0"}, allowed)
        self.assertEqual(sorted(path.name for path in home.iterdir()), [".cache", ".ssh"])
        self.assertEqual((home / ".ssh" / "id").read_text(), "secret")
        self.assertEqual([path.name for path in (home / ".cache").iterdir() if path.name != "pocl"], ["hone"])

    def test_off_lifts_what_confines_workers_and_doctor_says_so(self):
        home = self.home_outside_of_temporary_folders()
        came = self.tune_thief(home, HONE_WORKER_CONFINE="off")
        self.assertEqual((came["write"], came["socket"]), ("0", "0"))
        self.assertTrue((home / "stolen").exists())
        self.assertFalse((home / ".ssh" / "id").exists())
        doctor = self.hone("doctor", "--json", code=None, env={"HONE_WORKER_CONFINE": "off"}).json["checks"]
        worker = next(check for check in doctor if check["name"] == "worker")
        self.assertIn("HONE_WORKER_CONFINE=off", worker["detail"])

    # A pack that is in order

    def test_check_says_that_a_pack_is_in_order(self):
        answer = self.pack_hone("pack", "check", str(self.pack), "--json").json
        self.assertEqual(answer["refused"], 0)
        rows = answer["packs"][0]["kernels"]
        self.assertEqual([row["name"] for row in rows], ["plain", "blocked"])
        self.assertTrue(all(row["runs_here"] for row in rows))

    def test_tune_finds_the_best_config_of_a_pack_and_the_store_answers(self):
        result = self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, "--json").json
        self.assertEqual(result["entries"][0]["kernel"], "blocked")
        self.assertEqual(set(result["entries"][0]["config"]), {"block", "lanes"})
        path = {"HONE_PACK_PATH": str(self.folder / "packs")}
        answer = self.pack_hone("explain", CALL, "--json", env=path).json
        self.assertEqual((answer["source"], answer["kernel"], answer["verified"]), ("store", "blocked", True))
        self.assertEqual(answer["kernels"][0]["pack"], str(self.pack.resolve()))
        self.assertTrue(self.pack_hone("run", CALL, "--json", env=path).json["verified"])

    def test_a_locked_kernel_whose_code_has_changed_since_is_not_followed(self):
        """Under frozen that is an error, under other policies a warning; a line of the older format, which has no revision, is followed with one."""
        lock = self.folder / "hone.lock"
        path = {"HONE_PACK_PATH": str(self.pack)}
        locked, frozen = {**path, "HONE_LOCK": str(lock)}, {**path, "HONE_LOCK": str(lock), "HONE_POLICY": "frozen"}
        self.pack_hone("tune", CALL, *QUICK, "--kernel", "blocked", env=path)
        self.pack_hone("lock", env=path)
        answer = self.pack_hone("run", CALL, "--json", env=frozen).json
        self.assertEqual((answer["kernel"], answer["source"]), ("blocked", "lock"))
        self.replace("blocked.c", "{\n    for (int64_t from", "{\n    if (n == 4096) return;\n    for (int64_t from")
        says = [f"{lock}:4 pins saxpy@v1", "the code of kernel blocked was revision", "tune the call again"]
        self.refused("run", CALL, env={**self.env, **frozen}, code=WORLD, says=says)
        self.assertIn("1 of which cannot be followed", self.pack_hone("doctor", code=None, env=locked).out)
        answer = self.pack_hone("run", CALL, "--json", env=locked)
        self.assertNotEqual(answer.json["source"], "lock")
        self.assertTrue(answer.json["verified"])
        self.assertIn("going on without the lock file's answer", answer.err)
        line, = (line for line in lock.read_text().splitlines() if line.startswith("saxpy"))
        older = re.sub(r"/blocked@[0-9a-f]+ ", "/blocked ", line) + "\n"
        lock.write_text(f"hone.lock 1 sha256:{hashlib.sha256(older.encode()).hexdigest()}\n{older}")
        answer = self.pack_hone("explain", CALL, "--json", env={**frozen, "HONE_STORE": "none"})
        self.assertEqual((answer.json["kernel"], answer.json["source"]), ("blocked", "lock"))
        self.assertIn("1 of 1 lines name no revision of their kernel", answer.err)

    def test_a_second_tune_compiles_nothing(self):
        calls = self.counting_compiler()
        # Every config is tried: which ones a few seconds are enough for differs from time to time.
        arguments = ["tune", "--pack", str(self.pack), CALL, "--seconds", "60", "--evals", "20", "--fresh"]
        self.pack_hone(*arguments)
        compiled = calls()
        self.assertGreater(compiled, 1)
        self.pack_hone(*arguments)
        self.assertEqual(calls(), compiled)

    def test_another_compiler_behind_the_same_name_compiles_again(self):
        calls = self.counting_compiler()
        script, version = pathlib.Path(self.env["HONE_CC"]), self.folder / "version"
        version.write_text("some version 1.0")
        self.env["HONE_POLICY"] = "heuristic"
        script.write_text(script.read_text().replace("exec cc", f'[ "$1" != -v ] || exec cat "{version}"\nexec cc'))
        arguments = ["run", "--pack", str(self.pack), CALL]
        self.pack_hone(*arguments)
        compiled = calls()
        self.pack_hone(*arguments)
        self.assertEqual(calls(), compiled)
        version.write_text("some version 2.0")
        self.pack_hone(*arguments)
        self.assertEqual(calls(), 2 * compiled)
        native = self.pack_hone("devices", "--json").json["platforms"][0]["plugins"]
        self.assertEqual(native, f"C sources of packs: {script}, some version 2.0")

    def test_a_header_that_has_changed_is_compiled_again(self):
        calls = self.counting_compiler()
        other = self.folder / "other"
        other.mkdir()
        (other / "outside.h").write_text("enum { outside = 1 };\n")
        self.change("blocked", options=["-I" + str(other), "-include", "outside.h"])
        arguments = ["run", "--pack", str(self.pack), CALL]
        self.pack_hone(*arguments)
        compiled = calls()
        self.pack_hone(*arguments)
        self.assertEqual(calls(), compiled)
        (other / "outside.h").write_text("enum { outside = 2 };\n")
        self.pack_hone(*arguments)
        self.assertEqual(calls(), compiled + 1)

    def test_a_changed_kernel_makes_stale_what_was_measured_of_it(self):
        self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK)
        self.replace("blocked.c", "alpha * x[i] + y[i]", "y[i] + alpha * x[i]")
        answer = self.pack_hone("explain", "--pack", str(self.pack), CALL, "--json").json
        self.assertNotEqual(answer["source"], "store")

    def test_a_changed_header_that_is_not_listed_makes_stale_what_was_measured_too(self):
        inner = self.pack / "inside" / "step.h"
        inner.parent.mkdir()
        inner.write_text("#define STEP(a, x, y) ((a) * (x) + (y))\n")
        (self.pack / "outer.h").write_text('#include "inside/step.h"\n')
        self.replace("blocked.c", "alpha * x[i] + y[i]", "STEP(alpha, x[i], y[i])")
        source = self.pack / "blocked.c"
        self.replace("blocked.c", source.read_text(), '#include "outer.h"\n' + source.read_text())
        explain = ["explain", "--pack", str(self.pack), CALL, "--json"]
        self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK)
        self.assertEqual(self.pack_hone(*explain).json["source"], "store")
        moved = self.folder / "moved"
        shutil.copytree(self.pack, moved)
        self.assertEqual(self.pack_hone("explain", "--pack", str(moved), CALL, "--json").json["source"], "store")
        inner.write_text("#define STEP(a, x, y) (2 * (a) * (x) + (y))\n")
        self.assertNotEqual(self.pack_hone(*explain).json["source"], "store")

    def test_list_says_where_a_kernel_is_from(self):
        rows = self.pack_hone("list", "saxpy", "--pack", str(self.pack), "--json").json["algorithms"][0]["kernels"]
        self.assertEqual({row["pack"] for row in rows}, {str(self.pack.resolve())})

    def test_a_list_of_variants_is_tuned(self):
        # Each has a source of its own, as a producer would write them.
        kernels = []
        for lanes in (4, 8):
            path = self.pack / f"lanes{lanes}.c"
            path.write_text((self.pack / "blocked.c").read_text().replace("lanes", str(lanes)).replace("block)", "512)")
                            .replace("+= block", "+= 512"))
            kernels.append({"config": {"lanes": lanes}, "file": path.name, "sha256": digest(path)})
        header = self.pack / "blocks.h"
        header.write_text(header.read_text().replace("block", "512").replace("end_of_512", "end_of_block"))
        document = self.document()
        blocked = document["kernels"][1]
        for field in ("file", "sha256", "space"):
            del blocked[field]
        blocked["files"] = [{"file": "blocks.h", "sha256": digest(header)}]
        blocked["variants"] = kernels
        self.write(document)
        result = self.pack_hone(
            "tune", "--pack", str(self.pack), CALL, "--seconds", "30", "--evals", "2", "--json").json
        row = next(row for row in result["entries"][0]["evidence"]["kernels"] if row["kernel"] == "blocked")
        self.assertEqual(row["tried"], 2)
        self.assertIn(row["config"]["lanes"], (4, 8))

    def test_scratch_memory_is_given_where_it_is_listed(self):
        self.replace("blocked.c", "float *restrict z, int64_t n, float alpha)\n{",
                     "float *restrict z, int64_t n, float alpha, float *part)\n{\n    if ((uintptr_t)part % 64) return;\n"
                     "    for (int64_t i = 0; i < n; i++)\n        part[i] = y[i];\n    y = part;")
        self.change("blocked", arguments="x, y, z, i64(n), f32(alpha), scratch", scratch="4 * n")
        answer = self.pack_hone("run", "--pack", str(self.pack), CALL, "--json").json
        self.assertEqual((answer["kernel"], answer["verified"]), ("blocked", True))

    # What goes wrong

    def test_a_source_that_does_not_compile_loses_with_the_first_error(self):
        self.replace("blocked.c", "int64_t i = from;", "int64_t i = nowhere;")
        answer = self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, code=None)
        self.assertNotEqual(answer.code, 0)
        self.assertIn("blocked.c does not compile: blocked.c:", answer.err)
        self.assertIn("nowhere", answer.err)

    def test_a_wrong_kernel_never_wins(self):
        self.replace("blocked.c", "z[i] = alpha * x[i] + y[i]", "z[i] = alpha * x[i]")
        self.replace("blocked.c", "alpha * x[i + lane] + y[i + lane]", "x[i + lane]")
        answer = self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, code=None)
        self.assertNotEqual(answer.code, 0)
        self.assertIn("the reference says", answer.err)

    def test_without_a_compiler_it_is_said_what_to_install(self):
        self.env["HONE_CC"] = "/nowhere/cc"
        answer = self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, code=None)
        self.assertIn("install gcc or clang, or name one in HONE_CC", answer.err)

    def test_a_changed_file_is_refused_and_explain_says_so(self):
        (self.pack / "blocked.c").write_text("int x;\n")
        self.assertIn("the file was changed", self.refusal())
        answer = self.pack_hone("explain", "--pack", str(self.pack), CALL, "--json").json
        why = {row["name"]: row["why"] for row in answer["kernels"]}
        self.assertIn("the file was changed", why["blocked"])
        self.assertEqual(answer["kernel"], "plain")

    def test_a_kernel_that_is_refused_for_a_while_loses_no_choice(self):
        self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK)
        source = (self.pack / "blocked.c").read_text()
        (self.pack / "blocked.c").write_text(source + " ")
        for command in ("explain", "run"):
            answer = self.pack_hone(command, "--pack", str(self.pack), CALL, "--json").json
            self.assertEqual(answer["kernel"], "plain")
        (self.pack / "blocked.c").write_text(source)
        answer = self.pack_hone("explain", "--pack", str(self.pack), CALL, "--json").json
        self.assertEqual((answer["kernel"], answer["source"]), ("blocked", "store"))

    def test_what_was_never_verified_is_not_served_without_a_contest(self):
        self.replace("blocked.c", "+ y[i", "- y[i")
        answer = self.pack_hone("explain", "--pack", str(self.pack), CALL, "--json").json
        self.assertEqual(answer["kernel"], "plain")
        why = {row["name"]: row["why"] for row in answer["kernels"]}
        self.assertIn("was never verified for this call", why["blocked"])
        self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, code=NO)
        answer = self.pack_hone("run", "--pack", str(self.pack), CALL, "--json").json
        self.assertEqual((answer["kernel"], answer["source"]), ("plain", "heuristic"))

    def test_a_missing_file_a_link_and_a_way_out_are_refused(self):
        (self.pack / "blocked.c").unlink()
        self.assertIn("there is no 'blocked.c'", self.refusal())
        (self.pack / "blocked.c").symlink_to("/etc/passwd")
        self.assertIn("is a link that leaves the folder", self.refusal())
        self.change("blocked", file="../../secret.c")
        self.assertIn("has '.' or '..' in it", self.refusal())

    def test_a_kernel_of_a_wrong_platform_is_named(self):
        self.change("blocked", platform="abacus")
        self.assertIn("abacus", self.refusal())
        self.change("blocked", platform="native", backend="abacus")
        self.assertIn("abacus", self.refusal())

    def test_an_entry_that_is_no_name_of_c_is_refused(self):
        kernel = self.document()["kernels"][0]["name"]
        self.change(kernel, entry="a b;")
        self.assertIn("is not the name of a C function", self.hone("pack", "check", str(self.pack), code=NO).out)

    def test_what_is_no_pack_is_refused(self):
        (self.pack / "pack.json").write_text("{")
        self.assertIn("pack.json: not JSON: line 1, column 2", self.pack_hone("pack", "check", str(self.pack), code=NO).err)
        self.assertIn("there is no pack.json", self.pack_hone("pack", "check", str(self.folder), code=NO).err)
        self.pack_hone("pack", "check", code=USAGE)
        self.pack_hone("pack", "mend", str(self.pack), code=USAGE)

    def test_what_is_no_pack_is_counted_and_has_a_row(self):
        broken = self.folder / "packs" / "broken"
        broken.mkdir()
        (broken / "pack.json").write_text("{")
        for verb in ("check", "list"):
            answer = self.pack_hone("pack", verb, str(self.pack), str(broken), "--json", code=NO).json
            self.assertEqual(answer["refused"], 1)
            rows = {row["pack"]: row["kernels"] for row in answer["packs"]}
            self.assertFalse(rows["saxpy"][1]["refused"])
            self.assertEqual((rows["broken"][0]["name"], rows["broken"][0]["refused"]), (None, True))
            self.assertIn("not JSON", rows["broken"][0]["reason"])
            # A folder was named: nobody is told to name one.
            self.assertEqual(self.pack_hone("pack", verb, str(broken), code=NO).out, "")
        self.assertIn("no packs: name folders", self.pack_hone("pack", "list").out)

    def test_list_answers_no_when_a_kernel_is_refused(self):
        self.assertIn("blocked", self.pack_hone("pack", "list", str(self.pack)).out)
        self.change("blocked", platform="abacus")
        self.assertIn("REFUSED", self.pack_hone("pack", "list", str(self.pack), code=NO).out)

    def test_a_broken_pack_on_the_path_keeps_no_other_out(self):
        broken = self.folder / "packs" / "broken"
        broken.mkdir()
        (broken / "pack.json").write_text("{")
        path = {"HONE_PACK_PATH": f"{self.folder / 'packs'}:/nowhere"}
        answer = self.pack_hone("pack", "list", "--json", env=path, code=NO)
        self.assertIn("going on without a pack", answer.err)
        rows = {row["pack"]: row["kernels"] for row in answer.json["packs"]}
        self.assertTrue(rows["broken"][0]["refused"] and rows["nowhere"][0]["refused"])
        self.assertFalse(rows["saxpy"][1]["refused"])

    # What leads back to itself

    def test_links_that_lead_to_themselves_are_refused(self):
        source = self.pack / "blocked.c"
        source.unlink()
        (self.pack / "other.c").symlink_to("blocked.c")
        source.symlink_to("other.c")
        self.assertIn("there is no 'blocked.c' in the folder", self.refusal())
        source.unlink()
        source.symlink_to(".")
        self.assertIn("'blocked.c'", self.refusal())
        (self.pack / "pack.json").unlink()
        (self.pack / "pack.json").symlink_to("pack.json")
        self.assertIn("there is no pack.json", self.pack_hone("pack", "check", str(self.pack), code=NO).err)

    def test_a_folder_that_has_itself_below_it_is_read_once(self):
        packs = self.folder / "packs"
        (packs / "loop").symlink_to(".")
        (packs / "again").symlink_to("mine")
        (self.pack / "up").symlink_to("..")
        path = {"HONE_PACK_PATH": f"{packs}:{packs / 'loop' / 'loop'}:{packs / 'mine' / 'up' / 'again'}"}
        answer = self.pack_hone("pack", "list", "--json", env=path)
        self.assertEqual([row["folder"] for row in answer.json["packs"]], [str(self.pack.resolve())])
        self.assertEqual(answer.json["refused"], 0)
        self.assertTrue(self.pack_hone("run", CALL, "--json", env=path).json["verified"])

    def test_headers_that_include_each_other_lose_with_the_compilers_words(self):
        (self.pack / "blocks.h").write_text('#include "more.h"\n')
        (self.pack / "more.h").write_text('#include "blocks.h"\n')
        self.replace("blocked.c", "/* What", "/* Again: what")
        self.change("blocked", files=[{"file": name, "sha256": digest(self.pack / name)} for name in ("blocks.h", "more.h")])
        self.assertIn("nested", self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, code=None).err)

    def test_libraries_that_need_each_other_are_loaded(self):
        self.library()
        other = self.pack / "other.so"
        link = ["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", "-L", str(self.pack)]
        subprocess.run([*link, "-o", str(other), "-l:mine.so"], check=True)
        subprocess.run([*link, "-I", str(DATA.parent / "include"), str(self.folder / "library.c"), "-o",
                        str(self.pack / "mine.so"), "-l:other.so"], check=True)
        self.change("library", sha256=digest(self.pack / "mine.so"))
        self.assertTrue(self.pack_hone("run", "--pack", str(self.pack), CALL, "--json").json["verified"])

    # What lies beside a kernel's file

    def revision(self, name):
        kernels = self.pack_hone("list", "saxpy", "--json", env={"HONE_PACK_PATH": str(self.pack)}).json["algorithms"][0]["kernels"]
        return next(row["revision"] for row in kernels if row["name"] == name)

    def test_a_library_is_another_one_when_one_that_it_needs_has_changed(self):
        self.library()
        below = self.pack / "lib"
        below.mkdir()
        helper, further = below / "libhelper.so", below / "libfurther.so"
        link = ["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN:$ORIGIN/lib"]
        revisions = []
        for number in "1212":
            (self.folder / "further.c").write_text(f"int further(void) {{ return {number}; }}")
            subprocess.run([*link, "-o", str(further), str(self.folder / "further.c")], check=True)
            if not helper.exists():
                subprocess.run([*link, "-Wl,-soname,libhelper.so", "-o", str(helper), str(further)], check=True)
                subprocess.run([*link, "-I", str(DATA.parent / "include"), str(self.folder / "library.c"), "-o",
                                str(self.pack / "mine.so"), str(helper)], check=True)
                self.change("library", sha256=digest(self.pack / "mine.so"))
            revisions.append(self.revision("library"))
        self.assertEqual(revisions[:2], revisions[2:])
        self.assertNotEqual(revisions[0], revisions[1])

    def test_a_damaged_library_that_another_one_needs_is_read_as_it_is(self):
        self.library()
        whole = (self.pack / "mine.so").read_bytes()
        for size in (5, 64, 100, 4000, len(whole) // 2):
            (self.pack / "mine.so").write_bytes(whole[:size])
            self.change("library", sha256=digest(self.pack / "mine.so"))
            self.assertTrue(self.revision("library"))

    def test_a_source_is_another_one_when_bytes_that_it_assembles_have_changed(self):
        source, table = self.pack / "blocked.c", self.pack / "table.bin"
        source.write_text(source.read_text() + '__asm__(".section .rodata\\n.incbin \\"table.bin\\"\\n.text");\n')
        self.change("blocked", sha256=digest(source))
        revisions = []
        for text in ("one", "two"):
            table.write_text(text)
            revisions.append(self.revision("blocked"))
        self.assertNotEqual(*revisions)

    def test_a_library_that_flushes_subnormal_numbers_as_it_is_loaded_competes(self):
        """As one that is linked with -ffast-math: the mode is put back. One that flushes them later loses."""
        self.library()
        source = self.folder / "library.c"
        source.write_text(source.read_text() + "#include <xmmintrin.h>\n"
                          "__attribute__((constructor)) static void load(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-I", str(DATA.parent / "include"), str(source), "-o",
                        str(self.pack / "mine.so")], check=True)
        self.change("library", sha256=digest(self.pack / "mine.so"))
        kernels = self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, "--json").json["entries"][0]["evidence"]["kernels"]
        self.assertEqual([row["rejected"] for row in kernels if row["kernel"] == "library"], [{}])
        self.library(crash="__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040)")
        self.assertRegex(self.tune_error(), "flush-to-zero, as a library that is linked with .*-ffast-math does")

    # Shared libraries

    def library(self, abi="HONE_PACK_ABI", query="hone_pack_query", crash="(void)0"):
        source, path = self.folder / "library.c", self.pack / "mine.so"
        source.write_text(LIBRARY.replace("ABI,", abi + ",").replace("QUERY", query).replace("CRASH", crash))
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-I", str(DATA.parent / "include"), str(source), "-o",
                        str(path)], check=True)
        document = self.document()
        document["kernels"][1] = {
            "algorithm": "saxpy", "name": "library", "platform": "native", "backend": "cpu", "priority": 10,
            "file": "mine.so", "sha256": digest(path), "entry": "saxpy", "space": "step: 64 | 256 | 1024"}
        self.write(document)

    def test_a_library_is_tuned(self):
        self.library()
        result = self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, "--json").json
        self.assertEqual(result["entries"][0]["kernel"], "library")
        self.assertTrue(self.pack_hone("run", "--pack", str(self.pack), CALL, "--json").json["verified"])

    def tune_error(self):
        return self.pack_hone("tune", "--pack", str(self.pack), CALL, *QUICK, code=None).err

    def test_a_library_of_a_later_abi_loses(self):
        self.library(abi="HONE_PACK_ABI + 1")
        self.assertIn("answers with ABI 2", self.refusal("library", "--run"))
        self.assertIn("answers with ABI 2", self.tune_error())

    def test_a_library_without_the_query_loses(self):
        self.library(query="something_else")
        self.assertIn("does not export hone_pack_query", self.tune_error())

    def test_a_library_that_crashes_when_it_is_asked_harms_nobody(self):
        self.library(crash="abort()")
        self.assertIn("ended by signal 6", self.refusal("library", "--run"))
        # Nor a program that would have taken its kernel by priority.
        answer = self.pack_hone("run", "--pack", str(self.pack), CALL, "--json").json
        self.assertEqual((answer["kernel"], answer["verified"]), ("plain", True))
        self.assertIn("signal 6", self.tune_error())
        # Where it is asked for by name it is tried in a worker before this process loads it.
        forced = self.pack_hone("run", "--pack", str(self.pack), CALL, env={"HONE_FORCE": "saxpy=library"}, code=None)
        self.assertIn("ended by signal 6", forced.err)

    def test_a_library_that_exits_when_it_is_asked_is_refused(self):
        for code in (0, 1):
            self.library(crash=f"exit({code})")
            self.assertIn(f"ended with exit code {code} before there was an answer", self.refusal("library", "--run"))
            answer = self.pack_hone("run", "--pack", str(self.pack), CALL, "--json").json
            self.assertEqual((answer["kernel"], answer["verified"]), ("plain", True))

    def test_a_wrong_library_answers_nothing_by_its_priority(self):
        self.library()
        source = self.folder / "library.c"
        source.write_text(source.read_text().replace("alpha * x[i]", "x[i]"))
        subprocess.run(["cc", "-shared", "-fPIC", "-I", str(DATA.parent / "include"), str(source), "-o",
                        str(self.pack / "mine.so")], check=True)
        self.change("library", sha256=digest(self.pack / "mine.so"), priority=99)
        path = {"HONE_PACK_PATH": str(self.pack), "HONE_POLICY": "heuristic"}
        for call in (CALL, "saxpy(f32[4096], f32[4096], alpha=2.0)"):
            answer = self.pack_hone("run", call, "--json", env=path).json
            self.assertEqual((answer["kernel"], answer["verified"]), ("plain", True))
        self.assertIn("library was found wrong", self.pack_hone("explain", CALL, env=path).out)

    def test_reading_a_pack_executes_nothing_of_it(self):
        mark = self.folder / "executed"
        self.library()
        source = self.folder / "library.c"
        source.write_text(source.read_text() + "#include <stdio.h>\n"
                          "__attribute__((constructor)) static void load(void)\n"
                          f'{{ FILE *f = fopen("{mark}", "w"); if (f != NULL) fclose(f); }}\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-I", str(DATA.parent / "include"), str(source), "-o",
                        str(self.pack / "mine.so")], check=True)
        self.change("library", sha256=digest(self.pack / "mine.so"))
        compiled = self.counting_compiler()
        path = {"HONE_PACK_PATH": str(self.pack)}
        for words in (["pack", "check", str(self.pack)], ["pack", "list", str(self.pack)], ["pack", "list"], ["list"],
                      ["list", "saxpy"], ["doctor"], ["explain", CALL]):
            self.pack_hone(*words, env=path, code=None)
            self.assertFalse(mark.exists(), words)
        self.assertEqual(compiled(), 0)
        self.pack_hone("pack", "check", str(self.pack), "--run")
        self.assertTrue(mark.exists())

    def test_a_library_for_another_machine_is_refused(self):
        self.library()
        path = self.pack / "mine.so"
        data = bytearray(path.read_bytes())
        data[18:20] = (8).to_bytes(2, "little")
        path.write_bytes(data)
        self.change("library", sha256=digest(path))
        self.assertIn("is for another machine: ELF machine 8", self.refusal("library"))


FAKES = BUILD.resolve() / "tests" / "fakes"
GPU_CALL = "rms_norm(f32[4,256], f32[256]) @cuda:0"


SOFTMAX = """
#include <math.h>
#include <stdint.h>
void no_scale(const float *x, float *y, int64_t rows, int64_t dim, float scale)
{
    (void)scale;
    for (int64_t r = 0; r < rows; r++, x += dim, y += dim) {
        float most = x[0], sum = 0;
        for (int64_t i = 1; i < dim; i++)
            most = x[i] > most ? x[i] : most;
        for (int64_t i = 0; i < dim; i++)
            sum += y[i] = expf((FACTOR) * (x[i] - most));
        for (int64_t i = 0; i < dim; i++)
            y[i] /= sum;
    }
}
void zeros(const float *x, float *y, int64_t rows, int64_t dim, float scale)
{
    (void)x, (void)scale;
    for (int64_t i = 0; i < rows * dim; i++)
        y[i] = 0;
}
"""
RUN = """
import json, sys, numpy, hone
x = numpy.random.default_rng(1).standard_normal((int(sys.argv[1]), 64)).astype(numpy.float32)
scale = float(sys.argv[2])
e = numpy.exp(scale * (x - x.max(-1, keepdims=True)).astype(numpy.float64))
error = abs(hone.run("softmax", x, scale=scale) - e / e.sum(-1, keepdims=True)).max()
d = hone.decide(f"softmax(f32[{sys.argv[1]},64], scale={scale})")
print(json.dumps([float(error), d.kernel, d.source]))
"""


class Unverified(CommandTest):
    """What a pack brings answers no call that it was not verified for, and not at all once it was found wrong."""

    def setUp(self):
        super().setUp()
        self.pack = self.folder / "liars"
        self.pack.mkdir()
        self.write_pack()
        self.env = {"HONE_COMPILE_CACHE": str(self.folder / "compiled"), "HONE_PACK_PATH": str(self.pack),
                    "HONE_POLICY": "heuristic"}

    def write_pack(self, factor="1.0f", kernels=(("no_scale", 55), ("zeros", 99)), revision=""):
        source = self.pack / "softmax.c"
        source.write_text(SOFTMAX.replace("FACTOR", factor) + revision)
        rows = [{"algorithm": "softmax", "name": name, "platform": "native", "backend": "cpu", "priority": priority,
                 "file": "softmax.c", "sha256": digest(source), "entry": name,
                 "arguments": "x, y, i64(x.size / max(dim, 1)), i64(dim), f32(scale)"} for name, priority in kernels]
        (self.pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "liars", "kernels": rows}))

    def tune(self, call, *more, code=DONE):
        return self.hone("tune", call, *more, "--seconds", "3", "--evals", "3", "--json", env=self.env, code=code)

    def explain(self, call, **env):
        return self.hone("explain", call, "--json", env={**self.env, **env}).json

    def test_no_kernel_of_a_pack_answers_before_it_was_verified(self):
        for call in ("softmax(f32[4,64])", "softmax(f32[4,64], scale=0.5)"):
            answer = self.explain(call)
            self.assertNotIn(answer["kernel"], ("no_scale", "zeros"))
            why = {row["name"]: row["why"] for row in answer["kernels"]}
            self.assertIn("of pack liars was never verified", why["zeros"])
            self.assertIn("hone tune", why["no_scale"])

    def test_nor_in_a_program_of_python(self):
        python = DATA.parent / "build-python"
        if not (BUILD / "python").exists() or not python.exists():
            self.skipTest("the Python package is not built")
        env = self.environment({**self.env, "PYTHONPATH": f"{BUILD}/python:{python}"})
        for rows, scale in ((4, 0.5), (8, 0.5), (8, 1.0)):
            out = subprocess.run([sys.executable, "-B", "-c", RUN, str(rows), str(scale)], env=env, capture_output=True,
                                 text=True)
            self.assertEqual(out.returncode, 0, out.stderr)
            error, kernel, _ = json.loads(out.stdout)
            self.assertLess(error, 1e-5)
            self.assertNotIn(kernel, ("no_scale", "zeros"))

    def test_what_was_found_wrong_for_one_call_answers_no_other(self):
        self.write_pack("rows == 5 ? 2 * scale : scale", [("no_scale", 55)])
        with_kernel = ["--kernel", "no_scale"]
        # Right for four rows: there it is verified, and nowhere else.
        self.tune("softmax(f32[4,64])", *with_kernel)
        self.assertEqual(self.explain("softmax(f32[4,64])")["source"], "store")
        self.assertNotEqual(self.explain("softmax(f32[8,64])")["kernel"], "no_scale")
        # Wrong elsewhere: from then on it answers nowhere, by no link.
        self.assertIn("the reference says", self.tune("softmax(f32[5,64], scale=0.5)", *with_kernel, code=NO).err)
        for call in ("softmax(f32[4,64])", "softmax(f32[8,64])", "softmax(f32[5,64], scale=0.5)",
                     "softmax(f32[16,64], scale=0.25)"):
            answer = self.explain(call)
            self.assertNotEqual(answer["kernel"], "no_scale", call)
            why = {row["name"]: row["why"] for row in answer["kernels"]}
            self.assertIn("was found wrong for the call", why["no_scale"])
            self.assertEqual(self.hone("run", call, "--json", env=self.env).json["verified"], True)
        # Nor does it win where it looks right.
        self.assertIn("for the call", self.tune("softmax(f32[8,64])", *with_kernel, code=NO).err)
        # Until it is another kernel.
        self.write_pack("scale", [("no_scale", 55)])
        self.assertNotEqual(self.explain("softmax(f32[4,64], scale=0.5)")["kernel"], "no_scale")
        self.tune("softmax(f32[4,64], scale=0.5)", *with_kernel)
        answer = self.explain("softmax(f32[4,64], scale=0.5)")
        self.assertEqual((answer["kernel"], answer["source"], answer["verified"]), ("no_scale", "store", True))

    def test_what_was_verified_for_one_call_answers_no_near_one_that_another_kernel_can_run(self):
        # Right for this call and smaller ones: on these the winner is looked at, too.
        self.write_pack("rows <= 4 && dim <= 64 ? scale : 2 * scale", [("no_scale", 55)])
        self.tune("softmax(f32[4,64])", "--kernel", "no_scale")
        served = self.explain("softmax(f32[4,64], scale=0.5)")
        self.assertEqual((served["kernel"], served["source"]), ("no_scale", "store"))
        for call in ("softmax(f32[4,65])", "softmax(f32[8,64], scale=2.0)"):
            answer = self.explain(call)
            self.assertNotEqual(answer["kernel"], "no_scale", call)
            why = {row["name"]: row["why"] for row in answer["kernels"]}
            self.assertRegex(why["no_scale"], "was never verified for this call|was found wrong for the call")
            self.assertEqual(self.hone("run", call, "--json", env=self.env).json["verified"], True)

    def test_the_default_that_others_are_compared_with_is_what_a_call_would_get(self):
        self.write_pack("scale")
        call = "softmax(f32[4,64])"
        before = self.explain(call)["kernel"]
        evidence = self.tune(call).json["entries"][0]["evidence"]
        rows = {row["kernel"]: row for row in evidence["kernels"]}
        self.assertGreater(rows["no_scale"]["default_time_ns"], 0)
        self.assertEqual(evidence["default_time_ns"], rows[before]["default_time_ns"])
        # Nor are bits compared with those of a kernel that is wrong.
        self.tune("softmax(f32[5,64])", "--stable")

    def test_what_a_user_names_is_followed_and_warned_of(self):
        self.write_pack(kernels=[("no_scale", 55)])
        call = "softmax(f32[4,64], scale=0.5)"
        self.tune(call, "--kernel", "no_scale", code=NO)
        forced = {**self.env, "HONE_FORCE": "softmax=no_scale"}
        answer = self.hone("run", call, env=forced, code=NO)
        self.assertIn("WRONG", answer.out)
        self.assertIn("names a kernel that was found wrong, and is followed", answer.err)
        why = {row["name"]: row["why"] for row in self.explain(call, HONE_FORCE="softmax=no_scale")["kernels"]}
        self.assertIn("chosen: no_scale was found wrong", why["no_scale"])

    def test_who_allows_it_gets_what_was_never_verified(self):
        allowed = {**self.env, "HONE_UNVERIFIED": "allow"}
        call = "softmax(f32[4,64], scale=0.5)"
        answer = self.hone("explain", call, "--json", env=allowed).json
        self.assertEqual((answer["kernel"], answer["verified"], answer["unverified"]), ("zeros", False, "allow"))
        self.assertIn("HONE_UNVERIFIED=allow", self.hone("explain", call, env=allowed).out)
        self.assertIn("WRONG", self.hone("run", call, env=allowed, code=NO).out)
        rows = {row["name"]: row for row in self.hone("doctor", "--json", env=allowed, code=None).json["checks"]}
        self.assertIn("HONE_UNVERIFIED=allow", rows["unverified"]["detail"])
        self.assertIn("HONE_UNVERIFIED is 'yes'", self.hone("explain", call, env={"HONE_UNVERIFIED": "yes"}, code=None).err)
        # What was found wrong does not answer even so.
        self.hone("run", call, env=self.env)
        self.assertNotIn(self.explain(call, HONE_UNVERIFIED="allow")["kernel"], ("zeros", "no_scale"))

    def test_the_first_call_verifies_a_right_one_and_the_store_remembers_it(self):
        self.write_pack("scale", [("no_scale", 55)])
        call = "softmax(f32[4,64], scale=0.5)"
        self.assertNotEqual(self.explain(call)["kernel"], "no_scale")
        self.assertEqual(self.hone("run", call, "--json", env=self.env).json["kernel"], "no_scale")
        answer = self.explain(call)
        self.assertEqual((answer["kernel"], answer["source"], answer["verified"]), ("no_scale", "heuristic", False))

    def test_a_pack_that_alone_could_answer_is_refused_with_the_remedy(self):
        source = self.pack / "twice.c"
        source.write_text("void twice(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] + x[i]; }\n")
        rows = [{"algorithm": "twice", "name": name, "platform": "native", "backend": "cpu", "file": "twice.c",
                 "sha256": digest(source), "entry": "twice", "arguments": "x, y, i64(n)"} for name in ("fast", "plain")]
        document = {"hone_pack": 1, "name": "two", "kernels": rows,
                    "algorithms": [{"signature": "twice(x: f32[n]) -> y: f32[n]"}]}
        (self.pack / "pack.json").write_text(json.dumps(document))
        answer = self.hone("run", "twice(f32[64])", env=self.env, code=NO)
        self.assertIn("of pack two was never verified for this call", answer.err)
        self.assertIn(f"hone tune --pack '{self.pack.resolve()}' 'twice(f32[64])'", answer.err)
        document["algorithms"][0]["reference"] = "plain"
        (self.pack / "pack.json").write_text(json.dumps(document))
        # Now there is something to verify it with, and its priority counts.
        before = self.explain("twice(f32[64])")
        self.assertEqual(before["kernel"], "plain")
        self.assertIn("was never verified", {row["name"]: row["why"] for row in before["kernels"]}["fast"])
        self.assertEqual(self.hone("run", "twice(f32[64])", "--json", env=self.env).json["kernel"], "fast")
        self.assertEqual(self.explain("twice(f32[64])")["kernel"], "fast")
        # A near call is another question.
        self.hone("tune", "twice(f32[64])", *QUICK, env=self.env)
        self.assertEqual(self.explain("twice(f32[65])")["kernel"], "plain")
        answer = self.hone("run", "twice(f32[65])", "--json", env=self.env).json
        self.assertEqual((answer["kernel"], answer["verified"]), ("fast", True))
        self.assertEqual(self.explain("twice(f32[65])")["source"], "transfer")

    def test_a_pack_is_no_reference_of_an_algorithm_that_it_does_not_bring(self):
        self.write_pack(kernels=[("zeros", 99)])
        document = json.loads((self.pack / "pack.json").read_text())
        signature = self.hone("list", "softmax", "--json").json["algorithms"][0]["signature"]
        document["algorithms"] = [{"signature": signature, "reference": "zeros"}]
        (self.pack / "pack.json").write_text(json.dumps(document))
        denied = {**self.env, "HONE_DENY": "softmax=avx512,softmax=avx2,softmax=portable,softmax=onednn"}
        answer = self.hone("explain", "softmax(f32[4,64])", "--json", env=denied).json
        self.assertEqual(answer["kernel"], "reference")


class CudaPacks(CommandTest):
    """On the fake driver and compiler."""

    def setUp(self):
        super().setUp()
        self.pack = self.folder / "pack"
        self.pack.mkdir()
        self.env = {"HONE_CUDA_DRIVER": str(FAKES / "fake_cuda.so"), "HONE_NVRTC": str(FAKES / "fake_nvrtc.so"),
                    "HONE_CUBLASLT": "/nowhere/libcublasLt.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"),
                    "HONE_COMPILE_CACHE": str(self.folder / "compiled")}

    def write(self, name, data, **fields):
        (self.pack / name).write_bytes(data)
        kernel = {"algorithm": "rms_norm", "name": "packed", "platform": "cuda", "backend": "gpu", "priority": 50,
                  "file": name, "sha256": hashlib.sha256(data).hexdigest(), "entry": "rms_norm", "target": "sm_80",
                  "arguments": ["x", "weight", "y", "i32(x.size / max(dim, 1))", "i32(dim)", "f32(eps)"],
                  "grid": "max(1, x.size / max(dim, 1))", "block": "threads_per_row", "align": 16,
                  "space": "threads_per_row: 64 | 128"}
        kernel.update(fields)
        (self.pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "gpu", "kernels": [kernel]}))

    def tune(self):
        return self.hone("tune", "--pack", str(self.pack), GPU_CALL, "--kernel", "packed", "--seconds", "2", "--evals",
                         "4", "--json", env=self.env).json["entries"][0]

    def log(self, start):
        path = self.folder / "log"
        return [line for line in path.read_text().splitlines() if line.startswith(start)] if path.exists() else []

    def source(self):
        return (DATA.parent / "src" / "kernels" / "rms_norm" / "rms_norm.cu").read_bytes()

    def test_a_source_is_compiled_for_each_config_and_wins(self):
        self.write("norm.cu", self.source(), constants="rows_per_block = 1, vector = 1, keep = 0")
        self.assertEqual(self.tune()["kernel"], "packed")
        compiled = self.log("compile")
        self.assertEqual(len(compiled), 2)
        self.assertTrue(self.log("launch rms_norm"))

    def test_a_header_that_has_changed_is_compiled_again(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "outer.h").write_text('#include "inner.h"\n')
        inner = other / "inner.h"
        inner.write_text("enum { inner = 1 };\n")
        self.write("norm.cu", b'#include <outer.h>\n' + self.source(), options="-I" + str(other),
                   space="threads_per_row: 64", constants="rows_per_block = 1, vector = 1, keep = 0")
        arguments = ["tune", "--pack", str(self.pack), GPU_CALL, "--kernel", "packed", "--seconds", "1", "--evals", "1",
                     "--fresh"]
        for count, text in ((1, "enum { inner = 1 };\n"), (2, "enum { inner = 2 };\n")):
            inner.write_text(text)
            self.hone(*arguments, env=self.env)
            self.hone(*arguments, env=self.env)
            self.assertEqual(len(self.log("compile")), count)

    def test_a_second_tune_compiles_nothing(self):
        self.write("norm.cu", self.source(), constants="rows_per_block = 1, vector = 1, keep = 0",
                   space="threads_per_row: 32 | 64 | 128 | 256")
        arguments = ["tune", "--pack", str(self.pack), GPU_CALL, "--kernel", "packed", "--seconds", "60", "--evals", "20", "--fresh"]
        for _ in range(2):
            self.hone(*arguments, env=self.env)
            self.assertEqual(len(self.log("compile")), 4)

    def test_headers_that_include_each_other_are_read_once(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "outer.h").write_text('#pragma once\n#include "inner.h"\n#include "outer.h"\n')
        (other / "inner.h").write_text('#pragma once\n#include "outer.h"\n')
        self.write("norm.cu", b'#include <outer.h>\n' + self.source(), options="-I" + str(other),
                   space="threads_per_row: 64", constants="rows_per_block = 1, vector = 1, keep = 0")
        self.assertEqual(self.tune()["kernel"], "packed")

    def test_a_binary_is_loaded_as_it_is(self):
        self.write("norm.fatbin", b"fake cubin\nfunction rms_norm 8 8 8 4 4 4\n")
        self.assertEqual(self.tune()["kernel"], "packed")
        self.assertEqual(self.log("compile"), [])

    def refusal(self, *arguments, **fields):
        self.write(*arguments, **fields)
        answer = self.hone("pack", "check", str(self.pack), "--json", env=self.env, code=NO).json
        return answer["packs"][0]["kernels"][0]["reason"]

    def test_what_is_wrong_is_said_without_a_gpu(self):
        self.env["HONE_CUDA_DRIVER"] = "/nowhere/libcuda.so.1"
        self.assertIn("is called a cubin", self.refusal("norm.cubin", b"text"))
        self.assertIn("target: 'gfx90a' is not a target", self.refusal("norm.cu", b"x", target="gfx90a"))
        self.assertIn("arguments: is missing", self.refusal("norm.cu", b"x", arguments=None))
        self.assertIn("is for gpu", self.refusal("norm.cu", b"x", backend="cpu"))

    def test_a_list_that_fits_no_call_is_refused_without_a_gpu(self):
        self.env["HONE_CUDA_DRIVER"] = "/nowhere/libcuda.so.1"
        whole = ["x", "weight", "y", "i32(dim)"]
        for fields, words in (({"arguments": ["x", "weight", "z"]}, "arguments: 'z' is not a tensor of the call"),
                              ({"arguments": ["x", "weight", "i32(dim)"]}, "arguments: the result 'y' is not listed"),
                              ({"arguments": [*whole, "i32(rows)"]}, "unknown name 'rows'"),
                              ({"arguments": [*whole, "eps"]}, "arguments: 'eps' is a scalar: write i32(eps)"),
                              ({"arguments": [*whole, "scratch"]}, "its size in 'scratch' is not said"),
                              ({"arguments": whole, "scratch": 4}, "0 arguments are scratch, expected one"),
                              ({"arguments": [*whole, "i32(device.sms)", "i32(x.shape[0])"], "grid": "rows"}, "grid: "),
                              ({"arguments": whole, "block": "x.rank"}, "block: "),
                              ({"arguments": whole, "shared": "dim * threads"}, "shared: "),
                              ({"arguments": whole, "constants": "A = b"}, "constants: "),
                              ({"arguments": whole, "condition": "dims % 4 == 0"}, "condition: ")):
            with self.subTest(**fields):
                self.assertIn(words, self.refusal("norm.cu", b"x", **fields))
        self.write("norm.cu", b"x", arguments=[*whole, "i32(device.sms)", "i32(x.shape[0])", "i32(x.ndim)"])
        self.hone("pack", "check", str(self.pack), env=self.env)

    def test_a_list_is_compared_with_the_binary_without_a_gpu(self):
        self.env["HONE_CUDA_DRIVER"] = "/nowhere/libcuda.so.1"
        data = (DATA / "unit" / "triton" / "data" / "vadd.cubin").read_bytes()
        vector = {"algorithm": "vadd", "entry": "vadd", "grid": 1, "block": 64, "space": None, "target": "sm_90a"}
        signature = "vadd(x: f32[n], y: f32[n]) -> o: f32[n]"
        plain = {"algorithm": "vadd", "name": "plain", "platform": "native", "backend": "cpu", "file": "plain.c",
                 "sha256": hashlib.sha256(b"x").hexdigest(), "entry": "vadd", "arguments": "x, y, o, i64(n)"}
        (self.pack / "plain.c").write_bytes(b"x")
        for arguments, words in (("x, y, o, i32(n), i64(0), i64(0)", ""),
                                 ("x, y, o, i64(n), i64(0), i64(0)", "argument 3 has 4 bytes at 24 in the function, and 8 at 24"),
                                 ("x, y, o, i32(n)", "the function takes 6 arguments, 4 are listed")):
            self.write("vadd.cubin", data, arguments=arguments, **vector)
            document = json.loads((self.pack / "pack.json").read_text())
            document["algorithms"] = [{"signature": signature, "reference": "plain"}]
            document["kernels"].append(plain)
            (self.pack / "pack.json").write_text(json.dumps(document))
            answer = self.hone("pack", "check", str(self.pack), "--json", env=self.env, code=NO if words else DONE).json
            self.assertIn(words, answer["packs"][0]["kernels"][0]["reason"])

    def test_a_grid_that_overflows_and_a_wrong_list_lose(self):
        binary = b"fake cubin\nfunction rms_norm 8 8 8 4 4 4\n"
        self.write("norm.fatbin", binary, grid="9223372036854775807 * x.size")
        error = self.hone("tune", "--pack", str(self.pack), GPU_CALL, "--kernel", "packed", env=self.env, code=None).err
        self.assertIn("overflow", error)
        self.write("norm.fatbin", binary, arguments="x, weight, y, i32(dim)")
        error = self.hone("tune", "--pack", str(self.pack), GPU_CALL, "--kernel", "packed", env=self.env, code=None).err
        self.assertIn("the function takes 6 arguments, 4 are listed", error)


if __name__ == "__main__":
    unittest.main()
