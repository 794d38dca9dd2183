// hone help
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"HONE_POLICY",
     "on a miss: tune, heuristic, fail or frozen. The library's default is heuristic, the command's tune"},
    {"HONE_RECORD", "1: count every call in the invocation registry"},
    {"HONE_STATS", "1: a line on standard error at the end says what was hit; or a file or folder for hone stats"},
    {"HONE_PACK_PATH", "folders of packs, separated by ':': each a pack, or a folder of them"},
    {"HONE_CC", "the compiler of C sources in packs; default cc"},
    {"HONE_PLATFORMS", "platforms to open, separated by commas; unset: all"},
    {"HONE_FORCE", "ALGORITHM=KERNEL, separated by commas: an override for the whole process"},
    {"HONE_DENY", "ALGORITHM=KERNEL or KERNEL, separated by commas: kernels that never answer"},
    {"HONE_LOG", "error, warning, info or debug: what the host's log callback hears"},
    {"HONE_LOCK", "path of a lock file: choices that are pinned; one that cannot be read is an error"},
    {"HONE_STORE_SYNC", "full: a put waits for the disk; unset: it survives a crash of the process"},
    {"HONE_UNVERIFIED", "allow: kernels of packs and of programs answer without being verified before; default refuse"},
    {"HONE_STABLE", "1: only decisions that were tuned with --stable are served, and all tuning is stable"},
    {"HONE_REGIME", "warm, cold, graph or eager: whose decisions are served first, and what a miss is tuned for"},
    {"HONE_WORKER", "the program that candidates run in; unset: hone-worker beside the library or command"},
    {"HONE_WORKER_CONFINE", "off: workers keep the user's rights to write files and to reach the network; unset: on"},
    {"HONE_DEVICE_LOCKS",
     "folder of the locks by which processes take turns on a device, or none; unset: the user's own"},
    {"HONE_PROVENANCE", "1: what is tuned says by which user on which host"},
    {"HONE_COMPILE_CACHE",
     "absolute path of the folder of what was compiled for devices, or none. Default $XDG_CACHE_HOME/hone/compiled"},
    {"HONE_CUTLASS_PATH", "folder of CUTLASS, whose headers sources in CuTe include; unset: PyPI's nvidia-cutlass"},
    {"HONE_TVM_FFI", "the file to open in place of the libtvm_ffi.so that is found, for libraries of platform ffi"},
    {"HONE_CUTE_DSL_RUNTIME", "the file to open in place of the libcute_dsl_runtime.so that is found"},
    {"HONE_CUDA_DRIVER", "the file to open in place of libcuda.so.1"},
    {"HONE_NVML", "the file to open in place of libnvidia-ml.so.1"},
    {"HONE_NVRTC", "the file to open in place of the libnvrtc that is found"},
    {"HONE_CUBLASLT", "the file to open in place of the libcublasLt that is found"},
    {"HONE_PJRT_PLUGIN", "PJRT plugins, cpu=PATH,cuda=PATH; unset: those of Python packages"},
    {"HONE_NUMPY_OPENBLAS", "numpy's OpenBLAS, or its folder numpy.libs; unset: that of Python, or of its packages"},
    {"HONE_SCIPY_OPENBLAS", "scipy's OpenBLAS, or its folder scipy.libs; likewise"},
    {"HONE_ONEDNN3",
     "oneDNN 3, or the folder that it lies in; unset: that of the system, or of PyPI's onednn-cpu-gomp"},
    {"HONE_OPENCL", "path of OpenCL's loader; unset: libOpenCL.so.1"},
};

static void print_variable(const char *name, const char *meaning)
{
    const char *value = cli_variable(name);
    cli_say("%-18s %s\n%-18s now: %s\n", name, meaning, "", value == NULL ? "(unset)" : value);
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
        meaning, sizeof meaning, "URL of a store under the user's, read and never written: %s; unset: none",
        cli_text_string(&read_alone));
    print_variable("HONE_SYSTEM_STORE", meaning);
    cli_text_deinit(&all);
    cli_text_deinit(&read_alone);
    print_variable(
        "HONE_STORE_COPY",
        "folder of the copy of a store on a server, which answers while it is away; none: there is none");
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
            "Exit: 0 done, 1 the answer is no, 2 wrong use, 3 something outside hone failed, 130 interrupted.\n");
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
            cli_say("  %-*s  %s\n", column, usage, cli_option_rows[i].meaning);
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
    cli_say("usage: hone %s [OPTION]... %s\n%s\n", command->name, arguments, command->summary);
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
