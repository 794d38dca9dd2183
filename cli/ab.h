// What the files of `hone ab` share: two sides, a program that runs under each, the metric that it prints.
#ifndef HONE_CLI_AB_H
#define HONE_CLI_AB_H

#include "cli.h"

#include <regex.h>
#include <sys/types.h>

enum { AB_VARIABLES = 2 + CLI_NAMES_SIZE, AB_PATH_SIZE = 4096, AB_TAIL_SIZE = 2048 };

// What differs from the other side: variables of the program's environment.
typedef struct ab_side {
    const char *name; // "a"
    const char *what; // as the command line has it; NULL: nothing
    const cli_names *env;
    char *variables[AB_VARIABLES]; // "NAME=VALUE"
    size_t count;
    char source[AB_PATH_SIZE]; // URL of the store that is copied; "": none
    char store[AB_PATH_SIZE];  // URL of the copy, which the program gets
} ab_side;

// ab_folder.c: a new folder of this process's own, and its removal with what is in it. Returns a hold on it, which tells others that it is
// in use; -1 after printing what failed.
int ab_make_folder(char out[AB_PATH_SIZE]);
void ab_remove_folder(const char *folder, int hold);

// ab_sides.c: reads what --a, --b, --a-env and --b-env say into the two sides, and copies their stores into the folder.
// Print what failed.
int ab_read_sides(hone_cli *cli, const char *folder, ab_side sides[2]);
void ab_free_sides(ab_side sides[2]);
// Sets a side's variables in this process: in a child of fork.
void ab_enter(const ab_side *side);

// How a program tells its metric.
typedef struct ab_metric {
    bool is_regex, is_json; // neither: wall time
    bool is_step;           // a regular expression of lines that end a step; what a step takes is the metric
    bool higher;            // is better
    regex_t regex;
    const char *path; // of JSON
} ab_metric;

// ab_metric.c: prints what is wrong.
int ab_read_metric(const cli_options *options, ab_metric *out);
void ab_free_metric(ab_metric *metric);
// Calls take(ctx, value) for each value in a line of output.
void ab_metric_line(const ab_metric *metric, const char *line, void (*take)(void *ctx, double value), void *ctx);
// The same of a whole output, a JSON document, where its lines had no value.
void ab_metric_whole(const ab_metric *metric, const char *text, void (*take)(void *ctx, double value), void *ctx);

typedef struct ab_stream {
    int fd; // -1: at its end
    cli_text line;
} ab_stream;

// What a program's threads had been given at the end of a step.
enum { AB_THREADS = 256 };
typedef struct ab_mark {
    uint64_t ns; // the time of it
    size_t steps;
    struct {
        long id;
        uint64_t ran, waited; // nanoseconds on a processor, and for one
    } threads[AB_THREADS];
    size_t count;
} ab_mark;

// What a step took, in nanoseconds: of the time, of processors by all threads and by the one that had most of them, what threads waited
// for a processor, together; and the time without what was waited.
typedef struct ab_turn {
    double time_ns, ran_ns, most_ran_ns, waited_ns, undisturbed_ns;
} ab_turn;

// ab_turns.c: a's value in seconds, and b's by the ratio of the turns. turns: a's and b's, count of each, by turns; room: for 2 * count
// numbers. True: the ratio is that of processor time, since other work took processors.
bool ab_ratio_of_turns(const ab_turn *const turns[2], size_t count, double *room, double out_values[2]);

// Where a program's threads ran last, in the order of their numbers.
typedef struct ab_places {
    long threads[AB_THREADS];
    int processors[AB_THREADS];
    size_t count;
} ab_places;

// A program that was started, and what it has printed.
typedef struct ab_run {
    const ab_side *side;
    const ab_metric *metric;
    pid_t pid; // 0: ended, and reaped
    bool is_stopped;
    ab_stream streams[2]; // standard output, standard error
    cli_text whole;       // standard output, where its lines have had no JSON value
    char tail[AB_TAIL_SIZE];
    double *values; // of the metric, in their order; of steps none
    size_t count, capacity;
    uint64_t started_ns, ended_ns;
    uint64_t value_ns;   // when the last value was read
    uint64_t stopped_ns; // when it was stopped
    int status;          // as waitpid has it
} ab_run;

// ab_run.c. A run is ended and freed by ab_end, whatever became of it.
//   records  it counts hone's calls in its store
int ab_start(const ab_side *side, const ab_metric *metric, char *const *program, bool records, ab_run *out);
// Reads what runs print until each of them has this many values or has ended, or the time has come. False: it has come.
bool ab_read(ab_run *const *runs, size_t count, size_t values, uint64_t until_ns);
// The program, and what it started, stands still, and goes on.
void ab_stop(ab_run *run);
// At the end of a step, as far as it was read.
void ab_take_mark(const ab_run *run, ab_mark *out);
// Of the steps between.
//   still_ns  of that time the program stood still
ab_turn ab_turn_of(const ab_mark *before, const ab_mark *after, uint64_t still_ns);
//   places  NULL, or of either side: each thread begins where that of the same place in the order ran last, if it may run there
void ab_go(ab_run *run, const ab_places *places);
// Of a program that stands still.
void ab_read_places(const ab_run *run, ab_places *out);
// Sends it a signal, and lets it go on.
void ab_tell(ab_run *run, int signal_number);
// Asks it to leave by the signal, and kills it where it has not after the time; stays quiet where it has ended.
void ab_leave(ab_run *run, int signal_number, uint64_t nanoseconds);
void ab_end(ab_run *run);
// Whether it has ended well. Prints how it ended where not.
bool ab_ended_well(const ab_run *run);
double ab_seconds(const ab_run *run);
// The last lines that it printed, below what was said of it.
void ab_print_tail(const ab_run *run);
double ab_median(const double *values, size_t count); // count > 0

// ab_calls.c: the calls that the program made, as its copy of the store has them, with what answers each of them on either
// side: rows of "call", "key", "algorithm", "count", "differs", and "a" and "b" with "kernel", "config", "source".
// NULL after printing what failed.
json_t *ab_calls(hone_cli *cli, const ab_side sides[2], const char *folder);
size_t ab_differing(const json_t *calls);
// Measures the heaviest of those that differ, and notes "time_ns" of both sides.
void ab_time_calls(const ab_side sides[2], json_t *calls);
// What they say that a run of so many seconds gains, as b's time over a's; negative: not known.
double ab_expected(const json_t *calls, double seconds);
void ab_print_calls(const json_t *calls, double seconds);

#endif
