// hone help
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"HONE_POLICY", "what happens when no decision is found: tune, heuristic, fail or frozen. The default is heuristic "
                    "in programs and tune in the command"},
    {"HONE_RECORD", "1: record every call and how often it was made"},
    {"HONE_STATS", "1: print at the end what was hit, on standard error; or a file or folder for hone stats"},
    {"HONE_PACK_PATH", "folders of packs, separated by ':'; each is a pack or a folder of packs"},
    {"HONE_CC", "the compiler of C sources in packs (default cc)"},
    {"HONE_PLATFORMS", "the platforms to open, separated by commas (default: all)"},
    {"HONE_FORCE", "ALGORITHM=KERNEL, separated by commas: overrides for the whole process"},
    {"HONE_DENY", "ALGORITHM=KERNEL or KERNEL, separated by commas: kernels that are never used"},
    {"HONE_LOG", "error, warning, info or debug: what is passed to the program's log callback"},
    {"HONE_LOCK", "path of a lock file, which pins choices. It is an error if the file cannot be read"},
    {"HONE_STORE_SYNC", "full: each write waits for the disk. Unset: a write survives a crash of the process"},
    {"HONE_UNVERIFIED", "allow: kernels of packs and programs answer without being verified first. Default: refuse"},
    {"HONE_STABLE", "1: use only decisions that were tuned with --stable, and tune with --stable"},
    {"HONE_REGIME",
     "warm, cold, graph or eager: whose decisions are used first, and what is tuned for when none is found"},
    {"HONE_WORKER", "the program that runs candidates (default: hone-worker beside the library or the command)"},
    {"HONE_WORKER_CONFINE", "off: workers keep the user's rights to write files and to reach the network. Default: on"},
    {"HONE_DEVICE_LOCKS",
     "folder of the lock files by which processes take turns on a device, or none (default: the user's own)"},
    {"HONE_PROVENANCE", "1: store the names of the user and the host with each decision"},
    {"HONE_COMPILE_CACHE",
     "absolute path of the cache of compiled kernels, or none. Default $XDG_CACHE_HOME/hone/compiled"},
    {"HONE_CUTLASS_PATH", "folder of CUTLASS, for CuTe sources (default: PyPI's nvidia-cutlass)"},
    {"HONE_TVM_FFI", "path of libtvm_ffi.so (default: found)"},
    {"HONE_CUTE_DSL_RUNTIME", "path of libcute_dsl_runtime.so (default: found)"},
    {"HONE_CUDA_DRIVER", "path of libcuda.so.1 (default: found)"},
    {"HONE_NVML", "path of libnvidia-ml.so.1 (default: found)"},
    {"HONE_NVRTC", "path of libnvrtc (default: found)"},
    {"HONE_CUBLASLT", "path of libcublasLt (default: found)"},
    {"HONE_PYTHON_PACKAGES",
     "folders of Python packages, absolute, separated by ':', whose libraries are looked for first"},
    {"HONE_PJRT_PLUGIN", "PJRT plugins, cpu=PATH,cuda=PATH (default: those of Python packages)"},
    {"HONE_NUMPY_OPENBLAS",
     "path of numpy's OpenBLAS, or of its folder numpy.libs (default: that of Python, or of its packages)"},
    {"HONE_SCIPY_OPENBLAS", "path of scipy's OpenBLAS, or of its folder scipy.libs (default: likewise)"},
    {"HONE_ONEDNN3", "path of oneDNN 3, or of its folder (default: that of the system, or of PyPI's onednn-cpu-gomp)"},
    {"HONE_OPENCL", "path of OpenCL's loader (default: libOpenCL.so.1)"},
};

static void print_variable(const char *name, const char *meaning)
{
    const char *value = cli_variable(name);
    cli_say("%-22s %s\n%-22s now: %s\n", name, meaning, "", value == NULL ? "(unset)" : value);
}

// Their meaning lists the kinds of stores that there are.
static void print_stores(void)
{
    cli_text all, read_alone;
    char meaning[768];
    cli_text_init(&all);
    cli_text_init(&read_alone);
    cli_store_forms(false, &all);
    cli_store_forms(true, &read_alone);
    snprintf(
        meaning, sizeof meaning, "URL of the store: %s, or none. Default %s$XDG_CACHE_HOME/hone/store.db",
        cli_text_string(&all), cli_file_scheme());
    print_variable("HONE_STORE", meaning);
    snprintf(
        meaning, sizeof meaning, "URL of a store that is read after the user's and never written: %s. Default: none",
        cli_text_string(&read_alone));
    print_variable("HONE_SYSTEM_STORE", meaning);
    cli_text_deinit(&all);
    cli_text_deinit(&read_alone);
    print_variable(
        "HONE_STORE_COPY",
        "folder of the copy of a store on a server, which answers while the server is not reachable; or none");
}

static void print_environment(void)
{
    print_stores();
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        print_variable(variables[i].name, variables[i].meaning);
}

static void print_commands(void)
{
    cli_say("usage: hone COMMAND [OPTION]... [ARGUMENT]...\n\n");
    for (size_t i = 0; i < cli_command_count; i++)
        cli_say("  %-9s %s\n", cli_commands[i].name, cli_commands[i].summary);
    cli_say("\nhone help COMMAND shows a command's page, hone help environment the HONE_* variables.\n"
            "A call is one quoted argument: 'matmul(f32[512,512], f32[512,512], transpose_b=true)'\n"
            "Exit code: 0 done, 1 the answer is no, 2 wrong use, 3 something outside hone failed, 130 interrupted.\n");
}

enum { USAGE_SIZE = 64, LEAST_COLUMN = 18 };

static void verb_usage(const cli_verb *verb, char out[USAGE_SIZE])
{
    snprintf(out, USAGE_SIZE, "%s %s", verb->name, verb->arguments);
}

static void option_usage(const cli_option *option, char out[USAGE_SIZE])
{
    snprintf(out, USAGE_SIZE, "--%s%s", option->name, option->value);
}

static int wider(int column, const char *usage)
{
    const int width = (int)strlen(usage);
    return width > column ? width : column;
}

static void print_verbs(const cli_verb *verbs)
{
    char usage[USAGE_SIZE];
    int column = LEAST_COLUMN;
    for (const cli_verb *verb = verbs; verb->name != NULL; verb++) {
        verb_usage(verb, usage);
        column = wider(column, usage);
    }
    for (const cli_verb *verb = verbs; verb->name != NULL; verb++) {
        verb_usage(verb, usage);
        cli_say("  %-*s  %s", column, usage, verb->meaning);
        for (size_t i = 0, shown = 0; i < cli_option_count; i++)
            if (cli_takes(verb->options, cli_option_rows[i].name))
                cli_say("%s--%s", shown++ == 0 ? "; takes " : ", ", cli_option_rows[i].name);
        cli_say("\n");
    }
}

static void print_options(const cli_command *command)
{
    char usage[USAGE_SIZE];
    int column = LEAST_COLUMN;
    for (size_t i = 0; i < cli_option_count; i++) {
        option_usage(&cli_option_rows[i], usage);
        if (cli_takes(command->options, cli_option_rows[i].name)) column = wider(column, usage);
    }
    for (size_t i = 0; i < cli_option_count; i++) {
        option_usage(&cli_option_rows[i], usage);
        if (cli_takes(command->options, cli_option_rows[i].name))
            cli_say("  %-*s  %s\n", column, usage, cli_option_meaning(command, &cli_option_rows[i]));
    }
}

// Lines of a help text that end within a sentence are one.
static void print_prose(const char *text)
{
    cli_say("\n");
    cli_wrap_prose(true);
    for (const char *at = text; *at != '\0'; at++) {
        const bool is_within = *at == '\n' && at > text && at[-1] != '.' && at[-1] != ':';
        cli_say("%c", is_within ? ' ' : *at);
    }
    cli_say("\n");
    cli_wrap_prose(false);
}

static void print_command(const cli_command *command)
{
    const char *arguments = command->arguments != NULL ? command->arguments : "";
    const char *options = command->options == NULL ? "" : " [OPTION]...";
    cli_say(
        "usage: hone %s%s%s%s\n%s\n", command->name, options, arguments[0] == '\0' ? "" : " ", arguments,
        command->summary);
    if (command->verbs != NULL) {
        cli_say("\n");
        print_verbs(command->verbs);
    }
    if (command->help != NULL) print_prose(command->help);
    if (command->options == NULL) return;
    cli_say("\n");
    print_options(command);
}

int cli_refuse_command(const char *name)
{
    cli_meant meant = {.given = name, .before = ""};
    for (size_t i = 0; i < cli_command_count; i++)
        cli_meant_by(&meant, cli_commands[i].name);
    return cli_usage("unknown command '%s'%s (hone help lists them)", name, cli_meant_text(&meant));
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
    const cli_command *command = cli_find_command(name);
    if (command != NULL) {
        print_command(command);
        return EXIT_DONE;
    }
    return cli_refuse_command(name);
}
