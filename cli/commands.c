// What the command can do: its commands, and the options that they take. To add a command: a row here, its function in
// a file of its own, and its line in docs/man/hone.1 and docs/cli.md. Help and completion read these tables.
#include "cli.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const cli_command cli_commands[] = {
    {.name = "devices",
     .summary = "list platforms, their devices and fingerprints, or what is missing",
     .options = "json",
     .help = "A platform that cannot run here is listed with the reason and what to install.",
     .run = cli_devices},
    {.name = "list",
     .arguments = "[ALGORITHM]",
     .summary = "list algorithms with their signatures and kernels",
     .options = "json validate verbose all pack program",
     .help =
         "--validate compares the signatures of all kernels of each algorithm in pairs and exits with 1 on a mismatch.",
     .most = 1,
     .run = cli_list},
    {.name = "tune",
     .arguments = "CALL...",
     .summary = "find the fastest correct kernel and config for each call",
     .options = "json store seconds batch-seconds evals patience calls wait platform kernel cold regime stable "
                "seed recorded fresh no-store in-process report audit threshold update all pack program",
     .help = "All kernels compete. Every candidate runs in a worker process, is verified against the reference and "
             "measured.\n"
             "The column peak is the share of what this machine can do: of the multiply-adds of all threads, or of the "
             "reads from\n"
             "memory, both measured once per boot. It reads cache where the data is smaller than twice the last-level "
             "cache.\n"
             "The column spread "
             "is half the width of the 95 % interval of the time, or the range of fewer than six samples; it is - for "
             "one sample.\n"
             "--recorded tunes the recorded calls that have no verified answer, heaviest first, then those whose "
             "contest was\n"
             "undecided, each time with twice the seconds, up to eight times --seconds.\n"
             "--fresh measures again what the store has measured, and tries again what failed.\n"
             "--audit verifies stored choices again, of the calls or of all calls, and measures them with their "
             "runners-up and the\n"
             "default. It exits with 1 when a choice is rejected or slower by more than the threshold, and with 3 when "
             "a kernel is\n"
             "missing or cannot run here. A rejected choice is removed, and the next best answers (not with "
             "--no-store). --update\n"
             "tunes these calls again.",
     .run = cli_tune},
    {.name = "offline",
     .arguments = "PROGRAM...",
     .summary = "tune every labelled operation of lowered programs",
     .options = "json list unproved store seconds batch-seconds evals patience calls wait platform kernel "
                "cold no-cold regime stable seed fresh no-store pack program allow-missing expect-all",
     .help =
         "Reads StableHLO and HLO as text or in their binary forms, plain or gzipped; - is standard input. Text must "
         "have\n"
         "locations, which hold the labels.\n"
         "--list shows what was found and tunes nothing.\n"
         "--unproved also tunes operations that were matched by their operands alone, and makes --expect-all expect "
         "them.\n"
         "An operation whose arrays are mostly read once a step, and are larger than the caches, is measured cold; "
         "--no-cold\n"
         "measures it warm.\n"
         "The exit code is 1 when an operation could not be tuned; with --allow-missing, when none could be tuned.\n"
         "--expect-all tunes nothing. It exits with 1 unless the store has a decision for every operation, and names "
         "the others.",
     .least = 1,
     .run = cli_offline},
    {.name = "run",
     .arguments = "CALL",
     .summary = "run a call once on generated inputs and compare it with the reference",
     .options = "json store seed pack program",
     .help = "A call without a decision is tuned first, unless HONE_POLICY is heuristic.",
     .least = 1,
     .most = 1,
     .run = cli_run},
    {.name = "bench",
     .arguments = "CALL...",
     .summary = "time every kernel of a call: default, heuristic and chosen config",
     .options = "json store seed seconds wait pack program choice",
     .help = "Stores nothing. Kernels run in this process.\n"
             "--choice 'KERNEL CONFIG', given at least twice, measures only these choices, for one call. Each is "
             "verified first, in a\n"
             "worker process, and all are measured in turns of random order; samples that other processes disturbed "
             "are repeated and\n"
             "not counted. CONFIG is a JSON object, or text as in the tables; without it the kernel's default is used. "
             "The choice\n"
             "'stored' is the store's answer, 'default' is what runs without tuning. Exits with 1 when a choice is "
             "wrong, crashes or\n"
             "cannot run the call, or the store has no answer.",
     .least = 1,
     .run = cli_bench},
    {.name = "ab",
     .arguments = "-- PROGRAM [ARGUMENT...]",
     .summary = "run a program under two sets of choices in turn, and compare them",
     .options = "json store a b a-env b-env metric metric-json higher step seconds threshold seed",
     .help = "--a and --b each name a lock file, a store, a pack's folder, or FOLDER@COMMIT of a pack in git. A side "
             "without a name\n"
             "is the program as it runs today. Runs come in pairs of random order, until one side is known to be "
             "better, or the\n"
             "difference is known to be below --threshold, or --seconds are spent. The interval may be read at any "
             "time: in 19 of 20\n"
             "trials it contains the true ratio.\n"
             "The metric is the wall time of the program, or a number that it prints; of several numbers in a run the "
             "median counts.\n"
             "--step is for programs that print a line at every step. It is the most reliable way on a busy machine: "
             "both sides run\n"
             "at once and take turns, one stopped while the other runs, so that both see the same machine.\n"
             "Programs run on copies of the stores. Exits with 1 when b is worse, or when that is not known.",
     .least = 1,
     .run = cli_ab},
    {.name = "explain",
     .arguments = "CALL",
     .summary = "show why a call gets its kernel",
     .options = "json store all pack program",
     .help = "Tunes nothing. Exits with 1 when nothing answers the call.",
     .least = 1,
     .most = 1,
     .run = cli_explain},
    {.name = "key",
     .arguments = "CALL",
     .summary = "print the canonical JSON of a call and its key",
     .options = "json spec pack program",
     .help = "--spec FILE prints the key of a canonical text; - is standard input.",
     .most = 1,
     .run = cli_key},
    {.name = "lock",
     .arguments = "[CALL...]",
     .summary = "pin the stored choices in hone.lock, or check them for drift",
     .options = "json store lock device check reseal program",
     .help = "Writes every choice that the store answers with. With calls or --device only their lines are written, "
             "and the other\n"
             "lines of the file stay. The file is that of --lock, else of HONE_LOCK, else hone.lock in this folder.\n"
             "--check writes nothing. It exits with 1 and a diff when the file and the store differ.\n"
             "--reseal accepts lines that were edited or merged by hand.",
     .run = cli_lock},
    {.name = "record",
     .arguments = "VERB [FILE...]",
     .summary = "show recorded calls: how often, and whether they are decided",
     .options = "json store",
     .help = "Programs record their calls when HONE_RECORD=1 is set.",
     .verbs = cli_record_verbs,
     .least = 1,
     .run = cli_record},
    {.name = "stats",
     .arguments = "[FILE...]",
     .summary = "show hits and misses, decisions never used, and calls never decided",
     .options = "json prometheus store pack",
     .help =
         "FILE is written by programs that run with HONE_STATS=FILE, by any number of processes. It may also be a "
         "folder of such\n"
         "files, or a record document; - is standard input. Without FILE the recorded calls of the store are shown.\n"
         "Exits with 3 when a document cannot be read; the others are shown.",
     .run = cli_stats},
    {.name = "store",
     .arguments = "VERB [ARGUMENT...]",
     .summary = "list, move, compare and clean up stored decisions",
     .options = "json store format device foreign-device measurements dry-run verbose",
     .help = "--format is hone (result documents, the default), ejkernel (persistent caches) or tokamax (cache files); "
             "import detects\n"
             "it. --device limits an export to the decisions for one device, and --measurements adds the measurements "
             "that they are\n"
             "based on. --verbose reports every entry, and times that differ. An export for ejkernel holds the "
             "decisions that its\n"
             "executor can look up, and reports the others; --foreign-device is its name of the GPU.",
     .verbs = cli_store_verbs,
     .least = 1,
     .run = cli_store},
    {.name = "queue",
     .arguments = "VERB [CALL|KEY...]",
     .summary = "list and change the calls in the store that wait to be tuned",
     .options = "json store device priority calls seconds all off pack",
     .help = "add without calls queues the recorded calls that are not decided, heaviest first, and those whose "
             "contest was\n"
             "undecided. DEVICE is a fingerprint, or its beginning up to a comma: any device of that class may tune "
             "the call. add of\n"
             "a call that was set aside queues it again. Stores json: and memory: have no queue.",
     .verbs = cli_queue_verbs,
     .least = 1,
     .run = cli_queue},
    {.name = "work",
     .summary = "tune queued calls for the devices of this machine",
     .options = "json store device until-empty no-recorded retries seconds evals patience wait platform kernel cold "
                "regime stable "
                "in-process pack",
     .help = "Claims the heaviest call that fits a device of this machine, tunes it, stores the answer, and continues "
             "until it is\n"
             "interrupted. Any number of workers may share a store, on one machine or, with a server, on many. When a "
             "worker dies,\n"
             "another one claims its call and continues with what was measured. DEVICE is cpu, cuda:1 or a "
             "fingerprint. Exits with 1\n"
             "when a call was set aside.",
     .run = cli_work},
    {.name = "sync",
     .arguments = "URL",
     .summary = "merge this store and another one in both directions; the better decision wins",
     .options = "json store watch",
     .help = "Merges decisions, measurements and aliases, but neither recorded calls nor the queue. Creates a store "
             "that does not\n"
             "exist.\n"
             "With --watch it merges again whenever one of the two stores changes, until it is interrupted.",
     .least = 1,
     .most = 1,
     .run = cli_sync},
    {.name = "report",
     .arguments = "[URL...] -o FILE",
     .summary = "write one HTML page about stores: coverage, stale and undecided decisions, history",
     .options = "json store output",
     .help = "Reports on the stores that are named, else on the user's. The page is one self-contained file.\n"
             "Only reads the stores. --json prints the data of the page instead.",
     .run = cli_report},
    {.name = "space",
     .arguments = "FILE",
     .summary = "read a space in hone's text or in Kernel Tuner's T1 JSON",
     .options = "json count sample list seed at rank neighbours adjacent",
     .help =
         "--count, the default, prints the number of valid configs, --sample N prints N of them and --list all of "
         "them. --at RANK\n"
         "prints one config by its number, and --rank 'A=1 B=row' the number of a config; neither lists any configs.\n"
         "--neighbours 'A=1 B=row' prints the valid configs that differ in one parameter; with --adjacent, by one "
         "step.\n"
         "FILE may be - for standard input.",
     .least = 1,
     .most = 1,
     .run = cli_space},
    {.name = "pack",
     .arguments = "VERB [DIR...]",
     .summary = "list, check or start packs of kernels",
     .options = "json run from output kernels-lock",
     .help = "A kernel that is refused never runs; the others of its pack do. hone tune --pack DIR tunes with a pack.\n"
             "Nothing of a pack is executed, except by check --run, which loads its libraries, each in a process of "
             "its own.\n"
             "new --from LIBRARY.so copies the library and writes DIR/pack.json (-o DIR, else the library's name) with "
             "a row for each\n"
             "exported function. A library that describes its functions is loaded in a process of its own.\n"
             "new --from FOLDER reads a folder of Hugging Face's kernels (build/VARIANT/metadata.json). It chooses and "
             "explains the\n"
             "variant that fits, and compares its files with their digests, and its commit with that of --kernels-lock "
             "FILE.",
     .verbs = cli_pack_verbs,
     .least = 1,
     .run = cli_pack},
    {.name = "doctor",
     .summary = "check stores, lock file, clock, governor and libraries, and give advice",
     .options = "json store lock",
     .help = "Reads every record of the store, and sets damaged records aside. Exits with 1 when a check fails.",
     .run = cli_doctor},
    {.name = "help",
     .arguments = "[COMMAND|environment]",
     .summary = "show this page, a command's page, or the environment variables",
     .most = 1,
     .run = cli_help},
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

// Options -------------------------------------------------------------------------------------------------------------

#define AT(field) offsetof(cli_options, field)
const cli_option cli_option_rows[] = {
    {"json", CLI_FLAG, AT(json), "", "print one JSON document on standard output"},
    {"store", CLI_TEXT, AT(store), " URL", "use this store in place of HONE_STORE"},
    {"seconds", CLI_SECONDS, AT(seconds), " N", "time limit for a call (default 30)"},
    {"batch-seconds", CLI_SECONDS, AT(batch_seconds), " N",
     "time limit for all calls together; it is spent where it saves most"},
    {"evals", CLI_COUNT, AT(evals), " N", "measure at most N candidates (default 500)"},
    {"patience", CLI_COUNT, AT(patience), " N", "stop after N candidates without an improvement"},
    {"calls", CLI_COUNT, AT(calls), " N",
     "expected number of calls; tuning stops when a step costs more than it saves over them"},
    {"wait", CLI_SECONDS, AT(wait), " N", "seconds to wait for another process that tunes or measures (default 600)"},
    {"platform", CLI_TEXT, AT(platform), " NAME", "use only kernels of this platform"},
    {"kernel", CLI_TEXT, AT(kernel), " NAME", "use only the kernel of this name"},
    {"cold", CLI_FLAG, AT(cold), "", "flush the caches before each run that is measured"},
    {"no-cold", CLI_FLAG, AT(no_cold), "", "measure with warm caches, also what the program reads once a step"},
    {"regime", CLI_TEXT, AT(regime), " NAME",
     "what is measured: warm caches (warm, the default), cold caches (cold), a run in a replayed graph (graph), or "
     "run, launch and wait (eager)"},
    {"stable", CLI_FLAG, AT(stable), "", "let only candidates win whose results are bit-identical to the default's"},
    {"seed", CLI_NUMBER, AT(seed), " N", "seed of generated inputs and of sampling (default 0)"},
    {"recorded", CLI_FLAG, AT(recorded), "", "tune the recorded calls, heaviest first"},
    {"report", CLI_TEXT, AT(report), " FILE", "write an HTML report: every config, parameters, finals, roofline"},
    {"audit", CLI_FLAG, AT(audit), "",
     "verify stored choices again; exit 1 when one is rejected or slower than the threshold allows"},
    {"threshold", CLI_PERCENT, AT(threshold), " PCT",
     "with --audit: how much slower than another one a choice may be (default 5)"},
    {"a", CLI_TEXT, AT(a), " WHAT", "one side: a lock file, a store, a pack's folder, or FOLDER@COMMIT"},
    {"b", CLI_TEXT, AT(b), " WHAT", "the other side, likewise"},
    {"a-env", CLI_LIST, AT(a_env), " NAME=VALUE", "a variable of the program on side a; may be given several times"},
    {"b-env", CLI_LIST, AT(b_env), " NAME=VALUE", "the same for side b"},
    {"metric", CLI_TEXT, AT(metric), " REGEX",
     "the number that this pattern's one group finds in the program's lines: 'step ([0-9.]+) ms'"},
    {"metric-json", CLI_TEXT, AT(metric_json), " PATH",
     "the number at PATH, a.b[0], of the JSON that the program prints, one document or one a line"},
    {"output", CLI_TEXT, AT(output), " FILE", "the file of the page, - is standard output; also -o"},
    {"higher", CLI_FLAG, AT(higher), "", "a higher number is better"},
    {"step", CLI_TEXT, AT(step), " REGEX",
     "the lines that end a step; both sides run at once, take turns of a step, and hone measures the time"},
    {"update", CLI_FLAG, AT(update), "", "with --audit: tune the calls again that did not pass"},
    {"fresh", CLI_FLAG, AT(fresh), "", "measure again what the store has measured"},
    {"pack", CLI_LIST, AT(packs), " DIR", "also use the kernels of this pack; may be given several times"},
    {"program", CLI_LIST, AT(programs), " LIBRARY.so",
     "also use what this shared library of a program registers; may be given several times"},
    {"choice", CLI_LIST, AT(choices), " CHOICE", "measure only these: 'KERNEL CONFIG', KERNEL, stored or default"},
    {"run", CLI_FLAG, AT(run), "", "check: load the libraries of the packs, each in a process of its own"},
    {"from", CLI_TEXT, AT(from), " LIBRARY.so|FOLDER", "new: the library or folder that the pack is made from"},
    {"kernels-lock", CLI_TEXT, AT(kernels_lock), " FILE", "new: the kernels.lock whose commit the folder must have"},
    {"no-store", CLI_FLAG, AT(no_store), "", "store nothing"},
    {"in-process", CLI_FLAG, AT(in_process), "", "allow candidates that cannot be isolated to run in this process"},
    {"until-empty", CLI_FLAG, AT(until_empty), "", "exit when no call waits and no other worker has claimed one"},
    {"no-recorded", CLI_FLAG, AT(no_recorded), "", "tune only queued calls; add no recorded ones"},
    {"retries", CLI_COUNT, AT(retries), " N", "set a call aside after N contests that did not end (default 3)"},
    {"priority", CLI_NUMBER, AT(priority), " N", "a call of higher priority is claimed first (default 0)"},
    {"all", CLI_FLAG, AT(all), "", "also list kernels that cannot run here, each with its reason"},
    {"off", CLI_FLAG, AT(off), "", "pause: let workers claim calls again"},
    {"watch", CLI_FLAG, AT(watch), "", "merge again at every change, until interrupted"},
    {"list", CLI_FLAG, AT(list), "", "list the operations that were found, and tune nothing"},
    {"allow-missing", CLI_FLAG, AT(allow_missing), "", "exit with 0 when some operations cannot be tuned"},
    {"expect-all", CLI_FLAG, AT(expect_all), "",
     "for CI: tune nothing, and check that the store has a decision for every operation"},
    {"prometheus", CLI_FLAG, AT(prometheus), "", "print in the text format of Prometheus"},
    {"unproved", CLI_FLAG, AT(unproved), "", "also tune operations that were matched by their operands alone"},
    {"validate", CLI_FLAG, AT(validate), "", "compare the signatures of the kernels"},
    {"verbose", CLI_FLAG, AT(verbose), "", "also print the signature of every kernel"},
    {"spec", CLI_TEXT, AT(spec), " FILE", "print the key of the canonical text in FILE"},
    {"lock", CLI_TEXT, AT(lock), " FILE", "use this lock file in place of HONE_LOCK"},
    {"device", CLI_TEXT, AT(device), " DEVICE",
     "only choices for this device: a fingerprint, cpu:0 or cuda:1; here means all devices of this machine"},
    {"foreign-device", CLI_TEXT, AT(foreign_device), " NAME", "ejkernel's name of the GPU: KIND|VERSION"},
    {"format", CLI_TEXT, AT(format), " FORMAT", "format of the files: hone, ejkernel or tokamax"},
    {"measurements", CLI_FLAG, AT(measurements), "", "also export the measurements that decisions are based on"},
    {"dry-run", CLI_FLAG, AT(dry_run), "", "count, and remove nothing"},
    {"check", CLI_FLAG, AT(check), "", "write nothing; exit 1 when the file and the store differ"},
    {"reseal", CLI_FLAG, AT(reseal), "", "accept lines that were edited by hand"},
    {"count", CLI_FLAG, AT(count), "", "print the number of valid configs"},
    {"sample", CLI_NUMBER, AT(sample), " N", "print N valid configs, drawn uniformly"},
    {"at", CLI_TEXT, AT(at), " RANK", "print the config of this number, from 0"},
    {"rank", CLI_TEXT, AT(rank), " CONFIG", "print the number of this config"},
    {"neighbours", CLI_TEXT, AT(neighbours), " CONFIG", "print the valid configs that differ from it in one parameter"},
    {"adjacent", CLI_FLAG, AT(adjacent), "", "with --neighbours: only by one step"},
};
static_assert(sizeof cli_option_rows / sizeof cli_option_rows[0] <= CLI_OPTIONS_MAX, "getopt's table has their room");
const size_t cli_option_count = sizeof cli_option_rows / sizeof cli_option_rows[0];

// What an option means for one command, where that is not what it means for the others.
static const struct {
    const char *command, *option, *meaning;
} own_meanings[] = {
    {"ab", "seconds", "time limit for all runs together (default 300)"},
    {"ab", "threshold", "a difference below this counts as none (default 1)"},
    {"ab", "seed", "seed of the order of runs (default: random)"},
    {"tune", "seed", "seed of generated inputs and of sampling (default: random)"},
    {"offline", "seed", "seed of generated inputs and of sampling (default: random)"},
    {"queue", "all", "drop: every call"},
    {"queue", "device", "a fingerprint, or its beginning up to a comma"},
    {"work", "device", "only calls for this device: cpu, cuda:1 or a fingerprint"},
    {"space", "list", "print all valid configs"},
    {"space", "seed", "seed of --sample (default 0)"},
    {"store", "verbose", "also report every entry, and times that differ"},
    {"pack", "output", "new: the folder of the pack; also -o"},
    {"report", "json", "print the data of the page as one JSON document on standard output"},
};

const char *cli_option_meaning(const cli_command *command, const cli_option *option)
{
    for (size_t i = 0; i < sizeof own_meanings / sizeof own_meanings[0]; i++)
        if (strcmp(own_meanings[i].command, command->name) == 0 && strcmp(own_meanings[i].option, option->name) == 0)
            return own_meanings[i].meaning;
    return option->meaning;
}

// Finding -------------------------------------------------------------------------------------------------------------

const cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}

bool cli_takes(const char *options, const char *option)
{
    size_t size = strlen(option);
    for (const char *at = options; at != NULL && *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, option, size) == 0) return true;
        at += word + (at[word] == ' ');
    }
    return false;
}

int cli_check_given(const hone_cli *cli, const char *what, const char *options, const char *page)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli->given[i] && !cli_takes(options, cli_option_rows[i].name))
            return cli_usage("%s takes no --%s (hone help %s)", what, cli_option_rows[i].name, page);
    return 0;
}

// Whether a verb takes the options and as many arguments as were given.
static bool fits(const hone_cli *cli, const char *command, const cli_verb *verb)
{
    char what[64], options[256];
    snprintf(what, sizeof what, "%s %s", command, verb->name);
    snprintf(options, sizeof options, "json store %s", verb->options != NULL ? verb->options : "");
    if (cli_check_given(cli, what, options, command) != 0) return false;
    if (verb->most == 0 || cli->count <= verb->most) return true;
    return cli_usage("%s takes no %s (hone help %s)", what, cli->arguments[verb->most], command) == 0;
}

const cli_verb *cli_find_verb(const hone_cli *cli, const char *command, const cli_verb *verbs)
{
    char known[256] = "";
    size_t used = 0;
    cli_meant meant = {.given = cli->arguments[0], .before = ""};
    for (const cli_verb *verb = verbs; verb->name != NULL; verb++) {
        if (strcmp(verb->name, cli->arguments[0]) == 0) return fits(cli, command, verb) ? verb : NULL;
        cli_meant_by(&meant, verb->name);
        const char *between = verb == verbs ? "" : verb[1].name != NULL ? ", " : " or ";
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", between, verb->name);
        assert(used < sizeof known);
    }
    (void)cli_usage(
        "unknown verb %s of %s: expected %s%s (hone help %s)", cli->arguments[0], command, known,
        cli_meant_text(&meant), command);
    return NULL;
}
