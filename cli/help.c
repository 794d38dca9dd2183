// hone help
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"HONE_STORE", "URL of the store: sqlite:PATH, json:FOLDER, json:FILE.json, memory:, or none. Default "
                   "sqlite:$XDG_CACHE_HOME/hone/store.db"},
    {"HONE_SYSTEM_STORE", "URL of a store under the user's, read and never written: sqlite:PATH; unset: none"},
    {"HONE_POLICY",
     "on a miss: tune, heuristic, fail or frozen. The library's default is heuristic, the command's tune"},
    {"HONE_RECORD", "1: count every call in the invocation registry"},
    {"HONE_PACK_PATH", "folders of packs, separated by ':': each a pack, or a folder of them"},
    {"HONE_CC", "the compiler of C sources in packs; default cc"},
    {"HONE_PLATFORMS", "platforms to open, separated by commas; unset: all"},
    {"HONE_FORCE", "ALGORITHM=KERNEL, separated by commas: an override for the whole process"},
    {"HONE_DENY", "ALGORITHM=KERNEL or KERNEL, separated by commas: kernels that never answer"},
    {"HONE_LOG", "error, warning, info or debug: what the host's log callback hears"},
    {"HONE_LOCK", "path of a lock file: choices that are pinned; one that cannot be read is an error"},
    {"HONE_STORE_SYNC", "full: a put waits for the disk; unset: it survives a crash of the process"},
    {"HONE_STABLE", "1: only decisions that were tuned with --stable are served, and all tuning is stable"},
    {"HONE_WORKER", "the program that candidates run in; unset: hone-worker beside the library or command"},
    {"HONE_DEVICE_LOCKS",
     "folder of the locks by which processes take turns on a device, or none; unset: the user's own"},
    {"HONE_PROVENANCE", "1: what is tuned says by which user on which host"},
    {"HONE_COMPILE_CACHE", "folder of what was compiled for devices, or none. Default $XDG_CACHE_HOME/hone/compiled"},
    {"HONE_CUTLASS_PATH", "folder of CUTLASS, whose headers sources in CuTe include; unset: PyPI's nvidia-cutlass"},
    {"HONE_TVM_FFI", "the file to open in place of the libtvm_ffi.so that is found, for exports of the CuTe DSL"},
    {"HONE_CUTE_DSL_RUNTIME", "the file to open in place of the libcute_dsl_runtime.so that is found, likewise"},
    {"HONE_CUDA_DRIVER", "the file to open in place of libcuda.so.1"},
    {"HONE_NVRTC", "the file to open in place of the libnvrtc that is found"},
    {"HONE_CUBLASLT", "the file to open in place of the libcublasLt that is found"},
    {"HONE_PJRT_PLUGIN", "PJRT plugins, cpu=PATH,cuda=PATH; unset: those of Python packages"},
    {"HONE_OPENCL", "path of OpenCL's loader; unset: libOpenCL.so.1"},
    {"HONE_REQUIRE", "for the tests: names of what must not be skipped, or all"},
};

static void print_environment(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        printf(
            "%-18s %s\n%-18s now: %s\n", variables[i].name, variables[i].meaning, "",
            value == NULL ? "(unset)" : value);
    }
}

static void print_commands(void)
{
    printf("usage: hone COMMAND [OPTION]... [ARGUMENT]...\n\n");
    for (size_t i = 0; i < cli_command_count; i++)
        printf("  %-9s %s\n", cli_commands[i].name, cli_commands[i].summary);
    printf("\nhone help COMMAND shows a command's page, hone help environment the HONE_* variables.\n"
           "A call is one quoted argument: 'matmul(f32[512,512], f32[512,512], transpose_b=true)'\n"
           "Exit: 0 done, 1 the answer is no, 2 wrong use, 3 a failure of the world, 130 interrupted.\n");
}

static const struct {
    const char *name, *value, *meaning;
} options[] = {
    {"json", "", "one JSON document on standard output"},
    {"store", " URL", "the store, in place of HONE_STORE"},
    {"seconds", " N", "at most so long for a call (default 30)"},
    {"batch-seconds", " N", "at most so long for all calls together: time goes where it saves most"},
    {"evals", " N", "at most so many candidates (default 500)"},
    {"patience", " N", "stop after so many candidates without a gain"},
    {"calls", " N", "the call will be made so often: stop when a step costs more than it saves over them"},
    {"wait", " N", "at most so many seconds for another process that tunes or measures (default 600)"},
    {"platform", " NAME", "only kernels of this platform"},
    {"kernel", " NAME", "only the kernel of this name"},
    {"cold", "", "measure with the data flushed out of the caches"},
    {"stable", "", "only what gives the very bits of the default may win, so that results do not change"},
    {"seed", " N", "of inputs and sampling (default 0)"},
    {"recorded", "", "the recorded calls, heaviest first"},
    {"report", " FILE", "write a page to look at in a browser: every config, parameters, the finals"},
    {"t4", " FILE", "write what was tried of the chosen kernel, or of --kernel, as T4 results; for one call"},
    {"audit", "", "measure stored choices again; exit 1 when one is not right any more"},
    {"threshold", " PCT", "with --audit: how much slower than another a choice may be (default 5)"},
    {"update", "", "with --audit: tune those that are past the threshold anew"},
    {"fresh", "", "measure again what the store has measured"},
    {"pack", " DIR", "also the kernels of this pack; may be given several times"},
    {"racing", "", "stop losers early, and pay run by run"},
    {"warm", " OTHER...", "begin with the best configs of other recorded spaces"},
    {"no-store", "", "store nothing"},
    {"in-process", "", "allow candidates that cannot be isolated to run in this process"},
    {"list", "", "only show"},
    {"unproved", "", "also what was matched by operands alone"},
    {"validate", "", "compare the kernels' signatures"},
    {"verbose", "", "more lines: every kernel's signature, every entry, times that differ"},
    {"spec", " FILE", "the key of a canonical text"},
    {"lock", " FILE", "the lock file, in place of HONE_LOCK"},
    {"device", " DEVICE", "only choices for this fingerprint; here: this machine's"},
    {"format", " FORMAT", "hone, ejkernel or tokamax"},
    {"measurements", "", "export also what decisions rest on"},
    {"dry-run", "", "only count"},
    {"check", "", "write nothing: exit 1 when the file and the store differ"},
    {"reseal", "", "accept lines that were edited by hand"},
    {"count", "", "how many valid configs"},
    {"sample", " N", "N valid configs, uniformly"},
    {"at", " RANK", "the config of this number, from 0"},
    {"rank", " CONFIG", "the number of this config"},
    {"neighbours", " CONFIG", "valid configs that differ from it in one parameter"},
    {"adjacent", "", "with --neighbours: by one step"},
};

static bool lists(const char *names, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = names; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, name, size) == 0) return true;
        at += word + (at[word] == ' ');
    }
    return false;
}

static void print_command(const cli_command *command)
{
    printf("usage: hone %s [OPTION]... %s\n%s\n", command->name, command->arguments, command->summary);
    if (command->help[0] != '\0') printf("\n%s\n", command->help);
    if (command->options[0] != '\0') printf("\n");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!lists(command->options, options[i].name)) continue;
        char name[64];
        snprintf(name, sizeof name, "--%s%s", options[i].name, options[i].value);
        printf("  %-18s %s\n", name, options[i].meaning);
    }
}

int cli_help(hone_cli *cli)
{
    if (cli->count == 0) {
        print_commands();
        return EXIT_DONE;
    }
    const char *name = cli->arguments[0];
    if (strcmp(name, "environment") == 0) {
        print_environment();
        return EXIT_DONE;
    }
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(cli_commands[i].name, name) != 0) continue;
        print_command(&cli_commands[i]);
        return EXIT_DONE;
    }
    return cli_usage("there is no command '%s' (hone help lists them)", name);
}
