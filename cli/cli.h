// What the commands of `hone` share.
#ifndef HONE_CLI_CLI_H
#define HONE_CLI_CLI_H

#include "hone/hone.h"
#include "system.h"
#include "text.h"

#include <jansson.h>
#include <stdarg.h>

// Exit codes, as docs/cli.md promises.
enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_WORLD = 3, EXIT_INTERRUPTED = 130 };

// An option that may be given several times.
enum { CLI_NAMES_SIZE = 32 };
typedef struct cli_names {
    const char *items[CLI_NAMES_SIZE];
    size_t count;
} cli_names;

// Every option of every command; a command lists the names of those that it takes.
typedef struct cli_options {
    bool adjacent, json, stable, list, unproved, validate, cold, no_cold, recorded, fresh, count, verbose, no_store,
        in_process, check, reseal, until_empty, no_recorded, watch, all, off, measurements, dry_run, audit, update, run,
        allow_missing, expect_all, higher, prometheus;
    const char *store, *platform, *kernel, *spec, *format, *device, *foreign_device, *lock, *report, *at, *rank,
        *neighbours, *regime, *a, *b, *metric, *metric_json, *step, *output, *from, *kernels_lock;
    double seconds, batch_seconds, wait;
    double threshold; // percent; 0: not given
    cli_names packs, programs, choices, a_env, b_env;
    int64_t priority, retries, evals, patience, seed, sample, calls;
} cli_options;

enum { CLI_OPTIONS_MAX = 80 };
typedef struct hone_cli {
    hone_runtime *rt; // opened by cli_open
    cli_options options;
    bool given[CLI_OPTIONS_MAX]; // by rows of cli_option_rows
    char **arguments;
    size_t count;
    bool progress; // standard error is a terminal
} hone_cli;

// A verb of a command, "list" of `hone store`. A command's verbs end with a row without a name.
typedef struct cli_verb {
    const char *name, *arguments;                 // "get", "CALL|KEY"
    const char *meaning;                          // one line
    const char *options;                          // that it takes beside json and store; NULL: none
    int (*run)(hone_cli *cli, hone_store *store); // store: NULL but for verbs of `hone store`
    size_t least, most;                           // arguments, the verb among them; with fewer it only says so;
                                                  // most 0: any number
    bool makes;                                   // the store, where it is not there
} cli_verb;

typedef struct cli_command {
    const char *name;
    const char *arguments; // "CALL..."; NULL: none
    const char *summary;   // one line
    const char *options;   // names of the options it takes, separated by spaces; NULL: none
    const char *help;      // the rest of its page; NULL: nothing
    const cli_verb *verbs; // NULL: none
    size_t least, most;    // arguments; most 0: any number
    int (*run)(hone_cli *cli);
} cli_command;

typedef enum cli_option_kind {
    CLI_FLAG,    // bool
    CLI_TEXT,    // const char *
    CLI_SECONDS, // double above 0
    CLI_PERCENT, // double above 0
    CLI_NUMBER,  // int64_t from 0
    CLI_COUNT,   // int64_t from 1
    CLI_LIST,    // cli_names
} cli_option_kind;

typedef struct cli_option {
    const char *name;
    cli_option_kind kind;
    size_t offset;     // of its field in cli_options
    const char *value; // " FILE", as help shows it; "" for a flag
    const char *meaning;
} cli_option;

// The tables (commands.c), help in their order.
extern const cli_command cli_commands[];
extern const size_t cli_command_count;
extern const cli_option cli_option_rows[];
extern const size_t cli_option_count;
// hone pack new (pack_new.c).
int cli_pack_new(hone_cli *cli, hone_store *store);

extern const cli_verb cli_record_verbs[], cli_store_verbs[], cli_pack_verbs[], cli_queue_verbs[];

// What an option does for a command, as its page says.
const char *cli_option_meaning(const cli_command *command, const cli_option *option);
// NULL: no such command.
const cli_command *cli_find_command(const char *name);
int cli_refuse_command(const char *name);                // prints that there is no such command, and the closest name
bool cli_takes(const char *options, const char *option); // whether a list of names, or NULL, has the name
// Refuses what was given besides these options. what: "store remove", said to take no other; page: of hone help
int cli_check_given(const hone_cli *cli, const char *what, const char *options, const char *page);
// The verb that the first argument names; NULL, after saying why: it names none, or does not take what was given.
const cli_verb *cli_find_verb(const hone_cli *cli, const char *command, const cli_verb *verbs);

// Whether SIGINT or SIGTERM came. Who asks and is told so ends early: the exit code is then 130, and that of the command where
// nobody asked, and all was done.
bool cli_is_cancelled(void);
// The flag itself, for the library, which breaks off contests.
const volatile int *cli_lend_cancel(void);

// Opens the runtime with the command's policy: tune, unless HONE_POLICY says otherwise. Prints what failed.
int cli_open(hone_cli *cli, hone_policy policy);
// The same without a lock file, whatever HONE_LOCK says: for commands that are about it.
int cli_open_unlocked(hone_cli *cli, hone_policy policy);
// Loads the libraries of --program, before the runtime is opened: what it forks then has their functions. Prints what
// failed (program.c).
int cli_load_programs(const hone_cli *cli);
// Has them register what they have.
int cli_register_programs(const hone_cli *cli);
// The lock file that --lock or HONE_LOCK names; NULL when neither does.
const char *cli_lock_path(const hone_cli *cli);
// Prints "hone: ..." on standard error and returns the exit code of the status.
int cli_fail(const hone_error *err);
// The same of a call text, or of an algorithm's name: names the algorithm that was probably meant.
int cli_fail_call(hone_cli *cli, const char *text, const hone_error *err);
// The same of what a file holds: "hone: FILE: ...". "-" is standard input.
int cli_fail_in(const char *file, const hone_error *err);
// Prints "hone: ..." as a line on standard error, without the control characters of stored texts.
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_warn_list(const char *format, va_list list) __attribute__((format(printf, 1, 0)));
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_exit_code(hone_status status);

// The kernels of an operation by falling priority; freed by hone_kernels_release (kernels.c).
size_t cli_kernels(hone_cli *cli, const hone_op *op, const hone_kernel_ref ***out);
// The kernel with this name and platform (HONE_PLATFORM_NONE: any platform), preferably of this backend; NULL if there is none.
const hone_kernel_ref *cli_kernel_named(
    hone_cli *cli, const hone_op *op, const char *name, hone_platform platform, hone_backend backend);
// The device that a call's tensors live on, and the machine's CPU; NULL: it is not here.
const hone_device_info *cli_device_of(hone_cli *cli, const hone_call *call);
const hone_device_info *cli_cpu(hone_cli *cli);
// The fingerprint of the device that a call text names behind its '@'; *out NULL: it names none. Prints that it is not here.
int cli_device_in(hone_cli *cli, const char *text, const hone_call *call, const char **out);
// The fingerprints that --device names, as an object's names: all devices of this machine, one of them, or a fingerprint; *out
// NULL: it is not given. Prints what is wrong (devices.c).
int cli_named_devices(hone_cli *cli, json_t **out);
// A store's key as one text, by which objects find it. The caller frees it.
char *cli_key_name(const hone_store_key *key);
// Refuses a key that stands for calls of several algorithms, since it has sizes alone: of these names (names.c), or of what a
// store has. NULL does nothing.
int cli_check_key(const char *key, const json_t *algorithms);
int cli_check_key_in(hone_store *store, const char *key);
// The operation and call of a call text or a label. Prints what failed; the caller releases *call.
int cli_parse_call(hone_cli *cli, const char *text, const hone_op **op, hone_call **call);
// The URL of the store that --store or HONE_STORE names, else the default one; "none" when there is none. Prints what
// failed.
int cli_store_url(const hone_cli *cli, char *out, size_t size);
// That store, opened for store commands. Prints what failed.
int cli_open_store(hone_cli *cli, hone_store **out);
// Whether a URL is of a file or folder that is not there.
bool cli_is_missing(const char *url);
// Whether the store is such a one.
bool cli_lacks_store(const hone_cli *cli);
// Whether it is there, for what only reads it: 0, or EXIT_NO after saying so.
int cli_find_store(const hone_cli *cli);
// After cli_open, for commands about the records of the store: one that cannot be opened is no empty one. 0: it is open, or
// there is to be none.
int cli_need_store(hone_cli *cli);
// The same for what contests answer, if --store names where that goes: seconds later it could not be stored.
int cli_need_named_store(hone_cli *cli);
// What a kind of store is used for: that of files which the command makes for itself, or of stores that are gone when they are
// closed. Static.
const char *cli_file_scheme(void);
const char *cli_scratch_url(void);
// How the URLs of the kinds are written, of all or of those that can be read alone, with commas between them.
void cli_store_forms(bool reads_alone, cli_text *out);
// A store that is there, for what writes nothing to it.
hone_status cli_open_reading(const char *url, hone_store **out, hone_error *err);
// Another store, which must be there. Prints what failed.
int cli_open_other(const char *url, hone_store **out);
// Reads a file ("-": standard input). Prints what failed.
int cli_read(const char *path, cli_text *out);

// Says that there is no memory, and leaves.
void cli_no_memory(void) __attribute__((noreturn));

// Columns of standard output: COLUMNS, else the terminal's; 0: a pipe or a file, where no line is broken.
size_t cli_width(void);
void cli_wrap_prose(bool on);                         // at 80 columns also into a pipe, and without an indent below
size_t cli_text_width(const char *text, size_t size); // columns that UTF-8 text takes
// What the first part of a text takes that no line break divides; out_size: with the space behind it.
size_t cli_word_width(const char *text, size_t *out_size);
// How much of a text goes on one line of this width: whole words, or the first parts of one that is wider.
size_t cli_break(const char *text, size_t size, size_t width);
// Prints lines of text; what is wider than the standard output goes on below, indented.
void cli_print_lines(const char *text);
// Control characters other than those of `but` become blanks and question marks.
void cli_make_printable(char *text, const char *but);
// printf for such lines: prints when a line is complete. Control characters are not passed on.
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// One line for kernels that cannot run here.
void cli_say_elsewhere(const char *indent, size_t count);
// Replaces the line of progress on standard error, cut to the terminal's width.
void cli_print_progress(const char *text);

// The name that a misspelt one is nearest to.
typedef struct cli_meant {
    const char *given, *before; // "--" before options
    char name[96], text[128];
} cli_meant;
void cli_meant_by(cli_meant *meant, const char *name); // one that there is
const char *cli_meant_text(cli_meant *meant);          // "; did you mean tune?", or ""

// A table of aligned columns: cells are copied; a column that is numbers in every row is flushed right. Where it is wider
// than standard output, columns of words are narrowed and their cells go on below; where that is not enough, so do the
// last columns of each row.
typedef struct cli_table cli_table;
cli_table *cli_table_new(size_t columns);
void cli_table_row(cli_table *table, ...); // `columns` strings
void cli_table_print(cli_table *table);    // and frees it
void cli_table_drop(cli_table *table);     // frees a table without printing it; NULL does nothing
// Rows begun with a mark ("*" or " ") in place of the indent; one with a "*" is bold on a terminal, unless NO_COLOR is
// set.
void cli_table_marked(cli_table *table);

// The number of a device in a table, 1 for the first that comes; its fingerprint joins `devices`. Returns out.
char *cli_device_number(json_t *devices, const char *fingerprint, char out[24]);
// What stands behind the numbers, a line each, below the table; and drops the list.
void cli_print_devices(json_t *devices);
// Whether its kernels run where an interpreter is alone: in no process of this command.
bool cli_platform_is_interpreted(hone_platform platform);

// Times for people: "1.31 ms", "0.84 us". Returns out.
char *cli_time_text(double nanoseconds, char out[32]);
// A config as a JSON object of the caller's.
json_t *cli_config_object(const hone_space *space, const hone_config *config);
// What the most of a machine is asked of: operations a second of f32, of bf16, bytes read a second.
typedef enum cli_peak_kind { CLI_PEAK_F32, CLI_PEAK_BF16, CLI_PEAK_BYTES } cli_peak_kind;
// The most that this machine's CPU can do, measured once a boot and kept (peak.c).
// 0: it cannot be told here, and cli_peak_lacks says why ("" where nothing lacks).
//   seen  what was reached already: a peak below it is measured again, and is that at least
double cli_peak(hone_cli *cli, cli_peak_kind kind, double seen);
const char *cli_peak_lacks(cli_peak_kind kind);
// Whether the library of a kernel runs below the machine's instructions: a comparison with it says nothing.
bool cli_library_is_below(hone_cli *cli, const char *kernel);
// The libraries of others that compete, on one line; nothing when there are none.
void cli_print_libraries(hone_cli *cli);
// Prints a JSON value on one line to standard output and drops it.
void cli_print_json(json_t *value);

// Shows one line of progress on standard error; cli_progress_end clears it.
void cli_progress(void *ctx, const hone_progress *progress);
void cli_progress_end(const hone_cli *cli);

// What --platform, --kernel and HONE_WORKER name must be there. Prints what is not.
int cli_check_names(hone_cli *cli);
int cli_check_worker(hone_cli *cli); // HONE_WORKER alone
// The same of --kernel and the algorithms of the calls that are the arguments: each must have a kernel of that name.
int cli_check_kernel_of_calls(hone_cli *cli);
// Options common to tune and offline.
// Whether --regime and --cold name one regime; else what is wrong is printed, and the code to leave with.
int cli_check_regime(const cli_options *options);
void cli_tune_options(hone_cli *cli, hone_tune_options *out);
// Of a result whose calls were many: the code of the last one that failed, EXIT_DONE when none did.
int cli_result_code(const hone_result *result);
// Prints a result document as tables (result.c).
int cli_print_result(hone_cli *cli, const hone_result *result);
// Says where it is stored. EXIT_NO when something was not stored, which was reported before.
int cli_say_stored(const hone_cli *cli, const hone_result *result);
// Whether a file that an option names, where it names one, can be written: asked before the work. Prints why not.
int cli_check_file(const char *option, const char *path);
// The page of --report (report.c). Prints what failed.
int cli_write_report(hone_cli *cli, const hone_result *result);

int cli_devices(hone_cli *cli);
int cli_list(hone_cli *cli);
int cli_tune(hone_cli *cli);
int cli_audit(hone_cli *cli); // hone tune --audit
int cli_offline(hone_cli *cli);
int cli_run(hone_cli *cli);
int cli_bench(hone_cli *cli);
int cli_ab(hone_cli *cli);
int cli_report(hone_cli *cli);  // of stores (fleet.c)
int cli_choices(hone_cli *cli); // hone bench CALL --choice
int cli_explain(hone_cli *cli);
int cli_key(hone_cli *cli);
int cli_lock(hone_cli *cli);
int cli_record(hone_cli *cli);
int cli_stats(hone_cli *cli);
int cli_store(hone_cli *cli);
// Verbs of it (exchange.c).
int cli_store_export(hone_cli *cli, hone_store *store);
int cli_store_import(hone_cli *cli, hone_store *store);
int cli_store_merge(hone_cli *cli, hone_store *store);
int cli_store_diff(hone_cli *cli, hone_store *store);
int cli_store_prune(hone_cli *cli, hone_store *store);
int cli_space(hone_cli *cli);
int cli_pack(hone_cli *cli);
int cli_queue(hone_cli *cli);
int cli_work(hone_cli *cli);
int cli_sync(hone_cli *cli);
int cli_doctor(hone_cli *cli);
int cli_help(hone_cli *cli);

#endif
