// What the command can do: its commands, and the options that they take. To add a command: a row here, its function in
// a file of its own, and its line in docs/man/hone.1 and docs/cli.md. Help and completion read these tables.
#include "cli.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const cli_command cli_commands[] = {
    {.name = "devices",
     .summary = "platforms with their devices and fingerprints, or what is missing",
     .options = "json",
     .help = "A platform that cannot run here is shown with the reason and what to install.",
     .run = cli_devices},
    {.name = "list",
     .arguments = "[ALGORITHM]",
     .summary = "algorithms with their signatures and kernels",
     .options = "json validate verbose all pack program",
     .help = "--validate compares the signatures of all kernels of each algorithm, every pair; a mismatch is exit 1.",
     .most = 1,
     .run = cli_list},
    {.name = "tune",
     .arguments = "CALL...",
     .summary = "find the fastest correct kernel and config for each call",
     .options = "json store seconds batch-seconds evals patience calls wait platform kernel cold regime stable "
                "seed recorded fresh no-store in-process report audit threshold update all pack program",
     .help =
         "All kernels compete; every candidate runs in a worker process, is verified against the reference and\n"
         "measured.\n"
         "peak: share of what this machine can do, measured once a boot: multiply-adds on all threads, or reading\n"
         "memory; \"cache\" for data of less than twice the last cache. spread: half the width of the time's 95 %\n"
         "interval; of fewer than six samples, of what they span; - of one.\n"
         "--recorded tunes the recorded calls that have no verified answer, heaviest first; then those that were left\n"
         "undecided, with twice the seconds each time, at most eight times --seconds.\n"
         "--fresh measures also what the store has measured already, and forgets what failed.\n"
         "--audit verifies stored choices again, of the calls or all, as a contest verifies its winner, and measures\n"
         "them against their runners-up and the default: exit 1 when one is rejected or past the threshold, 3\n"
         "when a kernel is not here or cannot run here. A rejected one is taken back, and the next best serves (not\n"
         "with --no-store); --update tunes these anew.",
     .run = cli_tune},
    {.name = "offline",
     .arguments = "PROGRAM...",
     .summary = "tune every labelled operation of lowered programs",
     .options = "json list unproved store seconds batch-seconds evals patience calls wait platform kernel "
                "cold no-cold regime stable seed fresh no-store pack program allow-missing expect-all",
     .help =
         "Reads StableHLO and HLO, as text (with locations: without, there are no labels) and in their binary\n"
         "forms, plain or gzipped; - is standard input. --list only shows what was found.\n"
         "--unproved tunes also what was matched by operands alone, and expects it.\n"
         "What reads mostly arrays that a step reads once, of more than the caches hold, is measured cold; --no-cold: "
         "is not.\n"
         "The exit code is 1 when an operation could not be tuned; with --allow-missing only when none could.\n"
         "--expect-all tunes nothing: it is 1 unless every operation is decided in the store, and says which is not.",
     .least = 1,
     .run = cli_offline},
    {.name = "run",
     .arguments = "CALL",
     .summary = "run once on made-up inputs and check against the reference",
     .options = "json store seed pack program",
     .help = "A call that is not tuned yet is tuned first (not with HONE_POLICY=heuristic).",
     .least = 1,
     .most = 1,
     .run = cli_run},
    {.name = "bench",
     .arguments = "CALL...",
     .summary = "time every kernel side by side: default, heuristic and chosen",
     .options = "json store seed seconds wait pack program choice",
     .help = "Nothing is stored. Kernels run in this process.\n"
             "--choice 'KERNEL CONFIG', twice or more, measures only these choices for one call: each verified first,\n"
             "in a worker process, in turns of random order; samples that other work disturbed are taken again and do\n"
             "not count. CONFIG is a JSON object or text as the tables show it; without it the kernel's default.\n"
             "'stored' is what the store answers with, 'default' what runs without tuning. Exit 1 when a choice is\n"
             "wrong, crashes or cannot run the call, or nothing is stored.",
     .least = 1,
     .run = cli_bench},
    {.name = "ab",
     .arguments = "-- PROGRAM [ARGUMENT...]",
     .summary = "compare two sets of choices by a whole program, run under each in turn",
     .options = "json store a b a-env b-env metric metric-json higher step seconds threshold seed",
     .help =
         "--a and --b are a lock file, a store, a pack's folder, or FOLDER@COMMIT of a pack in git; a side without\n"
         "one is the program as it runs today. Runs come in pairs of random order, until it is certain which is\n"
         "better, or that they differ by less than --threshold, or --seconds (default 300) are spent. The interval is\n"
         "valid at any time: in 19 of 20 trials it always contains the true ratio.\n"
         "The metric is the program's wall time, or what it prints: of several values in a run the median counts.\n"
         "--step is for programs that print a line at every step, and by far the most reliable on a busy machine:\n"
         "both run at once and take turns, one stopped while the other runs, so that both see the same machine.\n"
         "Programs run on copies of the stores. Exit 1 when b is worse, or it is not known.",
     .least = 1,
     .run = cli_ab},
    {.name = "explain",
     .arguments = "CALL",
     .summary = "why a call gets the kernel it gets",
     .options = "json store all pack program",
     .help = "Never tunes. Exit 1 when nothing answers.",
     .least = 1,
     .most = 1,
     .run = cli_explain},
    {.name = "key",
     .arguments = "CALL",
     .summary = "canonical JSON and call key",
     .options = "json spec pack program",
     .help = "--spec FILE prints the key of a canonical text (- is standard input).",
     .most = 1,
     .run = cli_key},
    {.name = "lock",
     .arguments = "[CALL...]",
     .summary = "pin the stored choices in hone.lock, or check them for drift",
     .options = "json store lock device check reseal program",
     .help = "Writes every choice that the store answers with, or those of the calls and the device that are named;\n"
             "other lines of the file stay. The file is --lock, else HONE_LOCK, else hone.lock in this folder.\n"
             "--check writes nothing: exit 1 and a diff where the file and the store differ.\n"
             "--reseal accepts lines that were edited or merged by hand.",
     .run = cli_lock},
    {.name = "record",
     .arguments = "VERB [FILE...]",
     .summary = "recorded calls: counts, decided or not",
     .options = "json store",
     .help = "Programs record with HONE_RECORD=1.",
     .verbs = cli_record_verbs,
     .least = 1,
     .run = cli_record},
    {.name = "stats",
     .arguments = "[FILE...]",
     .summary = "hits and misses; decisions never used, calls never decided",
     .options = "json prometheus store pack",
     .help =
         "FILE is what programs wrote that ran with HONE_STATS=FILE, of as many processes as there were, a folder of\n"
         "such files, or a record document; - is standard input. Without one: the store's recorded calls.\n"
         "Exit 3 when a document cannot be read; the others are shown.",
     .run = cli_stats},
    {.name = "store",
     .arguments = "VERB [ARGUMENT...]",
     .summary = "the store: stored decisions, listed, moved, compared and cleaned up",
     .options = "json store format device foreign-device measurements dry-run verbose",
     .help =
         "--format is hone (result documents, the default), ejkernel (persistent caches) or tokamax (cache files);\n"
         "import detects it. --device DEVICE exports its decisions alone, --measurements also\n"
         "what they rest on. --verbose reports every entry, and times that differ. An export for ejkernel has the\n"
         "decisions that its executor can look up, and reports the others; --foreign-device is its name of the GPU.",
     .verbs = cli_store_verbs,
     .least = 1,
     .run = cli_store},
    {.name = "queue",
     .arguments = "VERB [CALL|KEY...]",
     .summary = "calls in the store that wait to be tuned",
     .options = "json store device priority calls seconds all off pack",
     .help =
         "add without calls queues the recorded ones that are not decided, heaviest first, and those whose contest\n"
         "was left open. DEVICE is a fingerprint, or the beginning of one up to a comma: any device of the class may\n"
         "tune it. add of a call that was set aside takes it up again. Stores json: and memory: have no queue.",
     .verbs = cli_queue_verbs,
     .least = 1,
     .run = cli_queue},
    {.name = "work",
     .summary = "tune queued calls for the devices of this machine",
     .options = "json store device until-empty no-recorded retries seconds evals patience wait platform kernel cold "
                "regime stable "
                "in-process pack",
     .help = "Claims the heaviest call that fits a device here, tunes it, stores the answer, and goes on until it is\n"
             "interrupted. Any number of workers may share a store, on one machine or, on a server, on many; when a\n"
             "worker dies, another claims its call and goes on with what was measured. DEVICE is cpu,\n"
             "cuda:1 or a fingerprint. Exit 1 when a call was set aside.",
     .run = cli_work},
    {.name = "sync",
     .arguments = "URL",
     .summary = "merge this store and another one both ways; the better decision wins",
     .options = "json store watch",
     .help = "Decisions, measurements and aliases; not recorded calls, nor the queue. A store that does not exist is "
             "created.\n"
             "With --watch again whenever one of the two changes, until it is interrupted.",
     .least = 1,
     .most = 1,
     .run = cli_sync},
    {.name = "report",
     .arguments = "[URL...] -o FILE",
     .summary = "stores as one HTML page: coverage, stale and undecided decisions, history",
     .options = "json store output",
     .help = "Of the stores that are named, else of the user's. The page is one self-contained file.\n"
             "Reads stores and writes nothing to them. --json prints the page's data instead.",
     .run = cli_report},
    {.name = "space",
     .arguments = "FILE",
     .summary = "a space in hone's text or Kernel Tuner's T1 JSON",
     .options = "json count sample list seed at rank neighbours adjacent",
     .help = "--count (the default), --sample N configs, --list all of them. --at RANK is one config by its number,\n"
             "and --rank 'A=1 B=row' the number of one: no config is listed for either. --neighbours 'A=1 B=row' are\n"
             "the valid configs that differ in one parameter; with --adjacent by one step. - is standard input.",
     .least = 1,
     .most = 1,
     .run = cli_space},
    {.name = "pack",
     .arguments = "VERB [DIR...]",
     .summary = "kernel packs: list them, check them, start a new one",
     .options = "json run from output kernels-lock",
     .help =
         "A kernel that is refused never runs; the others of its pack do. hone tune --pack DIR tunes with a pack.\n"
         "Nothing of a pack is executed, except by check --run, which loads its libraries, each in its own process.\n"
         "new --from LIBRARY.so writes DIR/pack.json (-o DIR, else the library's name) with a row for each "
         "exported\n"
         "function, and copies the library. A library that describes its functions is loaded in a process of its own.\n"
         "A folder of Hugging Face's kernels (build/VARIANT/metadata.json) is read as it is: the variant that fits is\n"
         "chosen and explained, its files are compared with their digests, its commit with --kernels-lock FILE.",
     .verbs = cli_pack_verbs,
     .least = 1,
     .run = cli_pack},
    {.name = "doctor",
     .summary = "check stores, lock file, clock, governor and libraries, with advice",
     .options = "json store lock",
     .help = "Reads every record of the store, and sets damaged ones aside. Exit 1 when a check fails.",
     .run = cli_doctor},
    {.name = "help",
     .arguments = "[COMMAND|environment]",
     .summary = "this page, a command's page, or the environment variables",
     .most = 1,
     .run = cli_help},
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

// Options -------------------------------------------------------------------------------------------------------------

#define AT(field) offsetof(cli_options, field)
const cli_option cli_option_rows[] = {
    {"json", CLI_FLAG, AT(json), "", "one JSON document on standard output"},
    {"store", CLI_TEXT, AT(store), " URL", "the store, in place of HONE_STORE"},
    {"seconds", CLI_SECONDS, AT(seconds), " N", "time limit for a call (default 30); ab: for all runs (default 300)"},
    {"batch-seconds", CLI_SECONDS, AT(batch_seconds), " N",
     "time limit for all calls together: time goes where it saves most"},
    {"evals", CLI_COUNT, AT(evals), " N", "at most N candidates (default 500)"},
    {"patience", CLI_COUNT, AT(patience), " N", "stop after N candidates without a gain"},
    {"calls", CLI_COUNT, AT(calls), " N",
     "expected number of calls: stop when a step costs more than it saves over them"},
    {"wait", CLI_SECONDS, AT(wait), " N", "seconds to wait for another process that tunes or measures (default 600)"},
    {"platform", CLI_TEXT, AT(platform), " NAME", "only kernels of this platform"},
    {"kernel", CLI_TEXT, AT(kernel), " NAME", "only the kernel of this name"},
    {"cold", CLI_FLAG, AT(cold), "", "measure with data flushed from the caches"},
    {"no-cold", CLI_FLAG, AT(no_cold), "", "measure with warm caches, whatever the program reads once a step"},
    {"regime", CLI_TEXT, AT(regime), " NAME",
     "what a time is of: warm (default), cold, graph (a run in a graph that is replayed), eager (one run, launch and "
     "wait counted in)"},
    {"stable", CLI_FLAG, AT(stable), "", "only candidates whose results are bit-identical to the default's may win"},
    {"seed", CLI_NUMBER, AT(seed), " N", "of inputs and sampling (default: tune draws one, others take 0)"},
    {"recorded", CLI_FLAG, AT(recorded), "", "the recorded calls, heaviest first"},
    {"report", CLI_TEXT, AT(report), " FILE", "write an HTML report: every config, parameters, finals, roofline"},
    {"audit", CLI_FLAG, AT(audit), "", "verify stored choices again; exit 1 when one is no longer right"},
    {"threshold", CLI_PERCENT, AT(threshold), " PCT",
     "tune --audit: how much slower than another a choice may be (default 5); ab: what counts as no difference "
     "(default 1)"},
    {"a", CLI_TEXT, AT(a), " WHAT", "one side: a lock file, a store, a pack's folder, or FOLDER@COMMIT"},
    {"b", CLI_TEXT, AT(b), " WHAT", "the other side"},
    {"a-env", CLI_LIST, AT(a_env), " NAME=VALUE", "a variable of a's programs; may be given several times"},
    {"b-env", CLI_LIST, AT(b_env), " NAME=VALUE", "a variable of b's"},
    {"metric", CLI_TEXT, AT(metric), " REGEX",
     "the number in its one group, in the lines that the program prints: 'step ([0-9.]+) ms'"},
    {"metric-json", CLI_TEXT, AT(metric_json), " PATH",
     "the number at a.b[0] of the JSON that it prints, in lines or whole"},
    {"output", CLI_TEXT, AT(output), " FILE",
     "where the page goes, - is standard output, or the pack, a folder; also -o"},
    {"higher", CLI_FLAG, AT(higher), "", "the metric is better when it is higher"},
    {"step", CLI_TEXT, AT(step), " REGEX",
     "lines that end a step: both sides run at once, take turns of a step, and hone takes the time"},
    {"update", CLI_FLAG, AT(update), "", "with --audit: tune again those that did not pass"},
    {"fresh", CLI_FLAG, AT(fresh), "", "measure again what the store has measured"},
    {"pack", CLI_LIST, AT(packs), " DIR", "also the kernels of this pack; may be given several times"},
    {"program", CLI_LIST, AT(programs), " LIBRARY.so",
     "also what this library of a program registers; may be given several times"},
    {"choice", CLI_LIST, AT(choices), " CHOICE", "'KERNEL CONFIG', KERNEL, stored or default: only these"},
    {"run", CLI_FLAG, AT(run), "", "check: load the libraries of packs, each in a process of its own"},
    {"from", CLI_TEXT, AT(from), " LIBRARY.so|FOLDER", "new: what the pack is made from"},
    {"kernels-lock", CLI_TEXT, AT(kernels_lock), " FILE", "new: the kernels.lock that the folder has to match"},
    {"no-store", CLI_FLAG, AT(no_store), "", "store nothing"},
    {"in-process", CLI_FLAG, AT(in_process), "", "allow candidates that cannot be isolated to run in this process"},
    {"until-empty", CLI_FLAG, AT(until_empty), "", "exit when nothing waits and no other worker holds a call"},
    {"no-recorded", CLI_FLAG, AT(no_recorded), "", "only what is queued: recorded calls are not added"},
    {"retries", CLI_COUNT, AT(retries), " N", "set a call aside after N contests that did not end (default 3)"},
    {"priority", CLI_NUMBER, AT(priority), " N", "higher ones are claimed first (default 0)"},
    {"all", CLI_FLAG, AT(all), "", "also kernels that cannot run here, each with its reason; queue drop: every call"},
    {"off", CLI_FLAG, AT(off), "", "pause: resume"},
    {"watch", CLI_FLAG, AT(watch), "", "go on until interrupted"},
    {"list", CLI_FLAG, AT(list), "", "only show"},
    {"allow-missing", CLI_FLAG, AT(allow_missing), "", "operations that cannot be tuned are not a failure"},
    {"expect-all", CLI_FLAG, AT(expect_all), "", "for CI: only check that the store has every operation"},
    {"prometheus", CLI_FLAG, AT(prometheus), "", "Prometheus' text on standard output"},
    {"unproved", CLI_FLAG, AT(unproved), "", "also what was matched by operands alone"},
    {"validate", CLI_FLAG, AT(validate), "", "compare the kernels' signatures"},
    {"verbose", CLI_FLAG, AT(verbose), "", "more lines: every kernel's signature, every entry, times that differ"},
    {"spec", CLI_TEXT, AT(spec), " FILE", "the key of a canonical text"},
    {"lock", CLI_TEXT, AT(lock), " FILE", "the lock file, in place of HONE_LOCK"},
    {"device", CLI_TEXT, AT(device), " DEVICE",
     "only choices for this device: a fingerprint, cpu:0, cuda:1; here: all of this machine's"},
    {"foreign-device", CLI_TEXT, AT(foreign_device), " NAME", "what ejkernel calls the GPU: KIND|VERSION"},
    {"format", CLI_TEXT, AT(format), " FORMAT", "hone, ejkernel or tokamax"},
    {"measurements", CLI_FLAG, AT(measurements), "", "export also what decisions rest on"},
    {"dry-run", CLI_FLAG, AT(dry_run), "", "only count"},
    {"check", CLI_FLAG, AT(check), "", "write nothing: exit 1 when the file and the store differ"},
    {"reseal", CLI_FLAG, AT(reseal), "", "accept lines that were edited by hand"},
    {"count", CLI_FLAG, AT(count), "", "how many valid configs"},
    {"sample", CLI_NUMBER, AT(sample), " N", "N valid configs, uniformly"},
    {"at", CLI_TEXT, AT(at), " RANK", "the config of this number, from 0"},
    {"rank", CLI_TEXT, AT(rank), " CONFIG", "the number of this config"},
    {"neighbours", CLI_TEXT, AT(neighbours), " CONFIG", "valid configs that differ from it in one parameter"},
    {"adjacent", CLI_FLAG, AT(adjacent), "", "with --neighbours: by one step"},
};
static_assert(sizeof cli_option_rows / sizeof cli_option_rows[0] <= CLI_OPTIONS_MAX, "getopt's table has their room");
const size_t cli_option_count = sizeof cli_option_rows / sizeof cli_option_rows[0];

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
