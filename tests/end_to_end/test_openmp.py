"""Kernels that bring OpenMP's threads: as sources of a pack and as functions of a program. What a runtime keeps for its threads
is no leak; what is left behind with every run is one, be it by one of its threads."""

import hashlib
import json
import os
import shutil
import subprocess
import unittest

from support import BUILD, DATA, CommandTest

SIGNATURE = "doubled(x: f32[n]) -> z: f32[n]"
# One kernel a body. The first runs as it is; with one thread GCC's runtime makes a team for each region, and the C library keeps
# the pieces of the first dozen, so that the heap grows for some time.
BODIES = {
    "plain": "for (int64_t i = 0; i < n; i++) z[i] = 2 * x[i];",
    "openmp": "_Pragma(\"omp parallel for num_threads(threads)\") for (int64_t i = 0; i < n; i++) z[i] = 2 * x[i];",
    "tasks": """_Pragma("omp parallel num_threads(threads)") _Pragma("omp single")
        for (int64_t from = 0; from < n; from += 100000) {
            _Pragma("omp task firstprivate(from)")
            for (int64_t i = from; i < n && i < from + 100000; i++) z[i] = 2 * x[i];
        }""",
    "buffers": """_Pragma("omp parallel num_threads(threads)") {
            float *part = malloc(40000);
            _Pragma("omp for schedule(dynamic, 10000)")
            for (int64_t i = 0; i < n; i++) { part[i % 10000] = x[i]; z[i] = 2 * part[i % 10000]; }
            free(part);
        }""",
    "filling": """static void *volatile kept[40]; static int64_t runs;
        if (runs < 40) kept[runs] = malloc(100);
        runs++;
        for (int64_t i = 0; i < n; i++) z[i] = 2 * x[i];""",
    "leaking": """static void *volatile lost; lost = malloc(24);
        for (int64_t i = 0; i < n; i++) z[i] = 2 * x[i];""",
    "leaking_threads": """_Pragma("omp parallel num_threads(threads)") {
            void *volatile lost = malloc(24); (void)lost;
            _Pragma("omp for") for (int64_t i = 0; i < n; i++) z[i] = 2 * x[i];
        }""",
}
GOOD, LEAKS = ("openmp", "tasks", "buffers", "filling"), ("leaking", "leaking_threads")
THREADS = (1, 2, 5)
# A run of so many takes a sample: growth in each of them is what a leak looks like.
CALL = "doubled(f32[500000])"
PATIENT = ["--seconds", "60", "--evals", "3", "--fresh", "--json"]

PROGRAM = """
#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
%s
int main(int argc, char **argv)
{
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_error err;
    char *text = NULL;
    const hone_runtime_options options = {.struct_size = sizeof options, .flags = HONE_RUNTIME_ZYGOTE};
    const hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = "%s", .reference = run_plain};
    const hone_kernel kernels[] = {%s};
    const hone_tune_options how = {
        .struct_size = sizeof how, .seconds = 60, .evaluations = 3, .kernel = argc > 1 ? argv[1] : NULL};
    hone_status status = hone_runtime_open(&options, &rt, &err);
    if (status == HONE_OK) status = hone_register_algorithm(rt, &algorithm, &err);
    if (status == HONE_OK) status = hone_register_kernels(rt, kernels, sizeof kernels / sizeof *kernels, &err);
    if (status == HONE_OK) status = hone_tune_text(rt, "%s", &how, &result, &err);
    if (status == HONE_OK) status = hone_result_json(result, &text, &err);
    puts(status == HONE_OK ? text : err.message);
    hone_text_release(&text);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status != HONE_OK;
}
"""
FUNCTION = """
static hone_status run_%s(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const int threads = plan->kernel->space != NULL ? (int)plan->config[0] : 1;
    const float *x = hone_tensor_data(args[0].as.tensor);
    float *z = hone_tensor_data(args[1].as.tensor);
    const int64_t n = args[0].as.tensor->shape[0];
    (void)threads;
    %s
    return HONE_OK;
}
"""


def space(name):
    return f"threads: {' | '.join(map(str, THREADS))} default 2" if "threads" in BODIES[name] else None


def compiles_openmp():
    compiler = shutil.which("cc")
    return bool(compiler) and subprocess.run(
        [compiler, "-fopenmp", "-x", "c", "-", "-o", os.devnull], input="int main(void) { return 0; }", text=True,
        capture_output=True).returncode == 0


@unittest.skipUnless(compiles_openmp(), "cc does not compile OpenMP")
class Openmp(CommandTest):
    def setUp(self):
        super().setUp()
        self.env = {"HONE_COMPILE_CACHE": str(self.folder / "compiled")}

    def row(self, result, name):
        return next(row for row in result["entries"][0]["evidence"]["kernels"] if row["kernel"] == name)

    def write_pack(self, *names):
        pack = self.folder / "pack"
        pack.mkdir()
        kernels = []
        for name in ("plain", *names):
            path = pack / f"{name}.c"
            path.write_text("#include <stdint.h>\n#include <stdlib.h>\n"
                            f"void run_{name}(const float *x, float *z, int64_t n)\n{{\n{BODIES[name]}\n}}\n")
            kernels.append({"algorithm": "doubled", "name": name, "platform": "native", "backend": "cpu",
                            "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                            "entry": f"run_{name}", "arguments": "x, z, i64(n)", "options": "-fopenmp"})
            if space(name):
                kernels[-1]["space"] = space(name)
        (pack / "pack.json").write_text(json.dumps({
            "hone_pack": 1, "name": "openmp", "kernels": kernels,
            "algorithms": [{"signature": SIGNATURE, "reference": "plain"}]}))
        return str(pack)


    def program(self):
        kernels = [f'{{HONE_KERNEL, .algorithm = "doubled", .name = "{name}", .platform = HONE_NATIVE, '
                   f'.backend = HONE_CPU, .run = run_{name}' + (f', .space = "{space(name)}"' if space(name) else "") + "}"
                   for name in BODIES]
        source, path = self.folder / "program.c", self.folder / "program"
        functions = "".join(FUNCTION % (name, body) for name, body in BODIES.items())
        source.write_text(PROGRAM % (functions, SIGNATURE, ",\n".join(kernels), CALL))
        subprocess.run(["cc", "-O2", "-fopenmp", f"-I{DATA.parent / 'include'}", str(source), "-o", str(path),
                        f"-L{BUILD.resolve()}", "-lhone", f"-Wl,-rpath,{BUILD.resolve()}"], check=True)
        return str(path)

    def tune_function(self, path, name):
        environment = self.environment({"HONE_STORE": "none", "HONE_WORKER": None})
        return subprocess.run([path, name], env=environment, capture_output=True, text=True, timeout=300)

    def test_kernels_of_a_pack_that_use_openmp_compete_with_each_number_of_threads(self):
        pack = self.write_pack(*GOOD)
        for name in GOOD:
            self.use_new_store()
            result = self.hone("tune", "--pack", pack, CALL, "--kernel", name, *PATIENT, env=self.env).json
            row = self.row(result, name)
            self.assertEqual((row["rejected"], row["tried"]), ({}, len(THREADS) if space(name) else 1), row)

    def test_functions_of_a_program_that_use_openmp_compete_with_each_number_of_threads(self):
        path = self.program()
        for name in GOOD:
            answer = self.tune_function(path, name)
            self.assertEqual(answer.returncode, 0, answer.stdout)
            row = self.row(json.loads(answer.stdout), name)
            self.assertEqual((row["rejected"], row["tried"]), ({}, len(THREADS) if space(name) else 1), row)

    def test_what_leaks_with_every_run_is_rejected_also_in_a_thread_of_openmp(self):
        path, pack = self.program(), self.write_pack(*LEAKS)
        for name in LEAKS:
            words = self.tune_function(path, name).stdout
            self.assertIn("leaves memory that it does not free behind with every run", words)
            answer = self.hone("tune", "--pack", pack, CALL, "--kernel", name, *PATIENT, env=self.env, code=1)
            self.assertIn("leaves memory that it does not free behind with every run", answer.err)

    def test_a_plan_of_openmp_that_is_given_back_leaves_its_threads_their_code(self):
        # Each config is a library of its own: a run after the other in one process, then the end of it.
        pack = self.write_pack("openmp")
        answer = self.hone("bench", "--pack", pack, "doubled(f32[4096])", "doubled(f32[65536])", "--json", env=self.env)
        self.assertEqual(len(answer.json["calls"]), 2)


if __name__ == "__main__":
    unittest.main()
