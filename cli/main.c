// The command: finds the row of the command that was asked for, reads its options, runs it.
#include "cli.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int cli_cancel;

const cli_command cli_commands[] = {
    {"devices", "", "platforms, their devices and fingerprints, or what is missing", "json",
     "A platform that cannot run here is shown with the reason and what to install.", 0, 0, cli_devices},
    {"list", "[ALGORITHM]", "algorithms with their signatures and kernels", "json validate verbose pack",
     "--validate compares the signatures of all kernels of each algorithm, every pair; a mismatch is exit 1.", 0, 1,
     cli_list},
    {"tune", "CALL...", "find the fastest correct kernel and config for each call",
     "json store seconds batch-seconds evals patience calls wait platform kernel cold stable seed recorded fresh "
     "no-store "
     "in-process "
     "report t4 audit threshold update pack",
     "All kernels compete; every candidate runs in a worker process, is verified against the reference and measured.\n"
     "peak: share of what this machine can do, measured once a boot: multiply-adds on all threads, or reading memory;\n"
     "\"cache\" for data of less than twice the last cache. spread: half the width of the time's 95 % interval;\n"
     "of fewer than six samples, of what they span; - of one.\n"
     "--recorded tunes the recorded calls that have no verified answer, heaviest first.\n"
     "--fresh measures also what the store has measured already, and forgets what failed.\n"
     "--audit measures stored choices again, of the calls or all, beside their runners-up and the default: exit 1 when "
     "one\n"
     "is past the threshold. Nothing is stored, unless --update tunes those anew.",
     0, 0, cli_tune},
    {"offline", "PROGRAM...", "tune every labelled operation of lowered programs",
     "json list unproved store seconds batch-seconds evals patience calls wait platform kernel cold stable seed fresh "
     "no-store",
     "Reads StableHLO and HLO, as text (with locations: without, there are no labels) and in their binary forms, plain "
     "or\n"
     "gzipped; - is standard input. --list only shows what was found.\n"
     "--unproved tunes also what was matched by operands alone.\n"
     "The exit code is 1 when nothing could be tuned.",
     1, 0, cli_offline},
    {"run", "CALL", "run once on made-up inputs and check against the reference", "json store seed pack",
     "A call that nobody has tuned is tuned first (HONE_POLICY=heuristic: is not).", 1, 1, cli_run},
    {"bench", "CALL...", "every kernel side by side, interleaved: default, heuristic and chosen",
     "json store seed seconds wait pack", "Nothing is stored. Kernels run in this process.", 1, 0, cli_bench},
    {"explain", "CALL", "why a call gets the kernel it gets", "json store pack",
     "Never tunes. Exit 1 when nothing answers.", 1, 1, cli_explain},
    {"key", "CALL", "canonical JSON and call key", "json spec",
     "--spec FILE prints the key of a canonical text (- is standard input).", 0, 1, cli_key},
    {"lock", "[CALL...]", "pin the stored choices in hone.lock, or see whether they drifted",
     "json store lock device check reseal",
     "Writes every choice that the store answers with, or those of the calls and the device that are named; other "
     "lines of\n"
     "the file stay. The file is --lock, else HONE_LOCK, else hone.lock in this folder.\n"
     "--check writes nothing: exit 1 and a diff where the file and the store differ.\n"
     "--reseal accepts lines that were edited or merged by hand.",
     0, 0, cli_lock},
    {"record", "list|clear|import|export [FILE...]", "recorded calls: counts, decided or not", "json store",
     "Programs record with HONE_RECORD=1. import reads record documents, hone's and ejkernel's; export writes one, to "
     "a file\n"
     "or, with - or nothing, to standard output.",
     1, 0, cli_record},
    {"store", "VERB [ARGUMENT...]", "what is remembered", "json store format device measurements dry-run verbose",
     "list                     one line a decision (JSON lines with --json)\n"
     "get CALL|KEY             one decision with its evidence; exit 1 when there is none\n"
     "put                      one result document on standard input; prints how many once they are durable\n"
     "remove CALL|KEY          a decision with its measurements\n"
     "stat                     counts and size\n"
     "verify                   reads every record, sets the damaged aside and lists them: then exit 1; prune drops "
     "them\n"
     "export OUT               all of it as one file, or as files of a folder; - is standard output\n"
     "import FILE...           files or folders of them, in one transaction: all is stored or nothing; exit 1 when "
     "entries\n"
     "                         were refused, each with its reason\n"
     "merge URL...             other stores into this one: the better decision of two stays\n"
     "diff URL|FILE            choices that differ from another store or a bundle: then exit 1\n"
     "prune                    takes away what no kernel here can serve; --dry-run only counts\n"
     "--format is hone (result documents, the default), ejkernel (persistent caches) or tokamax (cache files); import "
     "tells\n"
     "it from the text. --device FINGERPRINT exports one device's decisions, --measurements also what they rest on.\n"
     "--verbose tells of every entry, and of times that differ.",
     1, 0, cli_store},
    {"space", "FILE", "a space in hone's text, Kernel Tuner's T1 JSON, or a recorded one",
     "json count sample list seed at rank neighbours adjacent",
     "--count (the default), --sample N configs, --list all of them. --at RANK is one config by its number, and "
     "--rank\n"
     "'A=1 B=row' the number of one: no config is listed for either. --neighbours 'A=1 B=row' are the valid configs "
     "that\n"
     "differ in one parameter; with --adjacent by one step. FILE may be a cache file of Kernel Tuner or T4 results, "
     "plain\n"
     "or gzipped: its configs are the valid ones. - is standard input.",
     1, 1, cli_space},
    {"simulate", "SPACE", "the tuner against a recorded space", "json seed evals seconds patience racing warm",
     "SPACE is a cache file of Kernel Tuner or T4 results, plain or gzipped. Shows what the tuner would try, in its "
     "order,\n"
     "and what that would cost. Each config is paid for whole, unless --racing stops losers and pays run by run.\n"
     "--warm OTHER... hands on the 8 best configs of each other recorded space.",
     1, 0, cli_simulate},
    {"pack", "list|check [DIR...]", "kernels that come as folders: what they hold, and what is wrong", "json",
     "list          the packs of HONE_PACK_PATH, and those that are named: every kernel, and why one does not run "
     "here\n"
     "check DIR...  reads packs and their files without using them; exit 1 when something of them is refused\n"
     "A kernel that is refused never runs; the others of its pack do. hone tune --pack DIR tunes with a pack.",
     1, 0, cli_pack},
    {"doctor", "", "stores, lock file, clock, governor, libraries: what to do", "json store lock",
     "Reads every record of the store, and sets damaged ones aside. Exit 1 when a check fails.", 0, 0, cli_doctor},
    {"help", "[COMMAND|environment]", "this page, a command's page, or the environment variables", "", "", 0, 1,
     cli_help},
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

// Options -------------------------------------------------------------------------------------------------------------

typedef enum option_kind { FLAG, TEXT, SECONDS, PERCENT, NUMBER, COUNT, LIST } option_kind;

#define AT(field) offsetof(cli_options, field)
static const struct {
    const char *name;
    option_kind kind;
    size_t offset;
} option_table[] = {
    {"json", FLAG, AT(json)},
    {"list", FLAG, AT(list)},
    {"unproved", FLAG, AT(unproved)},
    {"validate", FLAG, AT(validate)},
    {"cold", FLAG, AT(cold)},
    {"stable", FLAG, AT(stable)},
    {"recorded", FLAG, AT(recorded)},
    {"fresh", FLAG, AT(fresh)},
    {"count", FLAG, AT(count)},
    {"verbose", FLAG, AT(verbose)},
    {"no-store", FLAG, AT(no_store)},
    {"in-process", FLAG, AT(in_process)},
    {"check", FLAG, AT(check)},
    {"reseal", FLAG, AT(reseal)},
    {"measurements", FLAG, AT(measurements)},
    {"adjacent", FLAG, AT(adjacent)},
    {"dry-run", FLAG, AT(dry_run)},
    {"audit", FLAG, AT(audit)},
    {"update", FLAG, AT(update)},
    {"store", TEXT, AT(store)},
    {"platform", TEXT, AT(platform)},
    {"kernel", TEXT, AT(kernel)},
    {"spec", TEXT, AT(spec)},
    {"format", TEXT, AT(format)},
    {"device", TEXT, AT(device)},
    {"lock", TEXT, AT(lock)},
    {"report", TEXT, AT(report)},
    {"at", TEXT, AT(at)},
    {"rank", TEXT, AT(rank)},
    {"neighbours", TEXT, AT(neighbours)},
    {"t4", TEXT, AT(t4)},
    {"warm", LIST, AT(warm)},
    {"pack", LIST, AT(packs)},
    {"racing", FLAG, AT(racing)},
    {"seconds", SECONDS, AT(seconds)},
    {"batch-seconds", SECONDS, AT(batch_seconds)},
    {"wait", SECONDS, AT(wait)},
    {"threshold", PERCENT, AT(threshold)},
    {"evals", COUNT, AT(evals)},
    {"patience", COUNT, AT(patience)},
    {"calls", COUNT, AT(calls)},
    {"seed", NUMBER, AT(seed)},
    {"sample", NUMBER, AT(sample)},
};
enum { OPTION_COUNT = sizeof option_table / sizeof option_table[0] };

static bool takes(const cli_command *command, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = command->options; at != NULL && *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, name, size) == 0) return true;
        at += word + (at[word] == ' ');
    }
    return false;
}

static int read_value(cli_options *options, size_t index, const char *text)
{
    void *field = (char *)options + option_table[index].offset;
    const char *name = option_table[index].name;
    char *end = NULL;
    switch (option_table[index].kind) {
    case FLAG:
        *(bool *)field = true;
        return 0;
    case TEXT:
        *(const char **)field = text;
        return 0;
    case LIST: {
        cli_names *list = field;
        if (list->count == CLI_NAMES_SIZE) return cli_usage("--%s more than %d times", name, CLI_NAMES_SIZE);
        list->items[list->count++] = text;
        return 0;
    }
    case SECONDS: {
        double seconds = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0)
            return cli_usage("--%s is '%s', expected a number of seconds above 0", name, text);
        *(double *)field = seconds;
        return 0;
    }
    case PERCENT: {
        double percent = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(percent) || percent <= 0)
            return cli_usage("--%s is '%s', expected a number of percent above 0", name, text);
        *(double *)field = percent;
        return 0;
    }
    case NUMBER:
    case COUNT: {
        long long number = strtoll(text, &end, 10), least = option_table[index].kind == COUNT ? 1 : 0;
        if (end == text || *end != '\0' || number < least || number > INT32_MAX)
            return cli_usage("--%s is '%s', expected a whole number from %lld to %d", name, text, least, INT32_MAX);
        *(int64_t *)field = number;
        return 0;
    }
    }
    return 0;
}

// Options may stand before or after arguments; getopt_long moves them to the front.
static int read_options(const cli_command *command, int argc, char **argv, hone_cli *cli)
{
    struct option long_options[OPTION_COUNT + 2] = {{0}};
    int count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (takes(command, option_table[i].name))
            long_options[count++] = (struct option){
                option_table[i].name, option_table[i].kind == FLAG ? no_argument : required_argument, NULL, 256 + i};
    long_options[count++] = (struct option){"help", no_argument, NULL, 'h'};
    opterr = 0;
    optind = 1;
    for (int found; (found = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        if (found == 'h') {
            cli->arguments = (char *[]){(char *)(uintptr_t)command->name};
            cli->count = 1;
            return cli_help(cli) == 0 ? -1 : EXIT_USAGE;
        }
        if (found == ':') return cli_usage("%s needs a value (hone help %s)", argv[optind - 1], command->name);
        if (found < 256)
            return cli_usage("%s takes no option %s (hone help %s)", command->name, argv[optind - 1], command->name);
        int status = read_value(&cli->options, (size_t)(found - 256), optarg);
        if (status != 0) return status;
    }
    cli->arguments = argv + optind;
    cli->count = (size_t)(argc - optind);
    if (cli->count < command->least || (command->most != 0 && cli->count > command->most) ||
        (command->least == 0 && command->most == 0 && command->arguments[0] == '\0' && cli->count > 0))
        return cli_usage("%zu arguments, expected: hone %s %s", cli->count, command->name, command->arguments);
    return 0;
}

static void on_signal(int signal_number)
{
    (void)signal_number;
    if (cli_cancel) _exit(EXIT_INTERRUPTED);
    cli_cancel = 1;
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    hone_cli cli = {.progress = isatty(STDERR_FILENO)};
    if (argc < 2) {
        cli_help(&cli);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("hone %s\n", hone_version());
        return EXIT_DONE;
    }
    const char *name = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? "help" : argv[1];
    const cli_command *command = find_command(name);
    if (command == NULL) return cli_usage("there is no command '%s' (hone help lists them)", name);
    int status = read_options(command, argc - 1, argv + 1, &cli);
    if (status != 0) return status < 0 ? EXIT_DONE : status;
    watch_signals();
    status = command->run(&cli);
    hone_runtime_close(&cli.rt);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "hone: standard output cannot be written\n");
        return status == EXIT_DONE ? EXIT_WORLD : status;
    }
    return cli_cancel ? EXIT_INTERRUPTED : status;
}
