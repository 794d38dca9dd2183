// hone ab: does b make the program faster than a? The program runs in pairs, once under each side in random order; each
// pair says a ratio, and cli/pairs.c when enough is known. With --step both run at once and take turns, one standing
// still while the other goes on, so that what changes on the machine changes for both; a pair is still a start of each:
// where a program's memory lies is drawn at its start, and moves its speed by as much as one looks for.
#include "ab.h"

#include "pairs.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 1000, GOOD_TURNS = 50, LEAST_TURNS = 3, LOOK_STEPS = 10 };

static const double default_seconds = 300, default_threshold = 1; // percent
static const double least_turns_seconds = 1, most_turns_seconds = 10, look_seconds = 2;
// A run that takes so much longer than those before it hangs.
static const double patience = 10, least_patience = 20;
static const uint64_t grace_ns = 3000000000, tick_ns = 5000000, turn_ns = 10000000;

typedef enum verdict { UNDECIDED, BETTER, WORSE, SAME } verdict;
static const char *const verdict_names[] = {"undecided", "better", "worse", "same"};

typedef struct trial {
    hone_cli *cli;
    ab_side sides[2];
    ab_metric metric;
    char folder[AB_PATH_SIZE];
    char *const *program;
    uint64_t random, started_ns;
    double budget, threshold; // a share
    double longest;           // seconds of a run so far
    double longest_pair;
    double run_seconds; // of a's first run, whole; negative: it was ended
    double *values[2];  // of the sides' blocks
    size_t count, values_found;
    size_t by_processors; // of the pairs: their ratio is that of processor time
    cli_pairs pairs;
    cli_ratio ratio;
    verdict verdict;
    json_t *calls;   // NULL: not known
    bool has_looked; // at the first runs
} trial;

static double spent(const trial *t)
{
    return (double)(cli_now_ns() - t->started_ns) / 1e9;
}

static uint64_t in_seconds(double seconds)
{
    return cli_now_ns() + (uint64_t)(fmax(seconds, 0) * 1e9);
}

// Values of a run -----------------------------------------------------------------------------------------------------

static bool measures_time(const trial *t)
{
    return t->metric.is_step || (!t->metric.is_regex && !t->metric.is_json);
}

static int fail_run(const ab_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail_run(const ab_run *run, const char *format, ...)
{
    char *what = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&what, format, list) < 0) cli_no_memory();
    va_end(list);
    cli_warn("under %s the program %s", run->side->name, what);
    free(what);
    ab_print_tail(run);
    return EXIT_WORLD;
}

static int check_values(const trial *t, const ab_run *run)
{
    const char *what = t->metric.is_json   ? "has a number at the path of --metric-json"
                       : t->metric.is_step ? "--step matches"
                                           : "--metric matches";
    if (run->count == 0) return fail_run(run, "printed nothing that %s", what);
    for (size_t i = 0; i < run->count && !t->metric.is_step; i++)
        if (!isfinite(run->values[i]) || run->values[i] <= 0)
            return fail_run(run, "has a metric of %g: ratios need values above 0", run->values[i]);
    return 0;
}

static int fail_limit(const trial *t, const ab_run *run, double limit)
{
    if (cli_is_cancelled()) return EXIT_INTERRUPTED;
    if (!t->has_looked) return fail_run(run, "did not end within the budget: give more than --seconds %g", t->budget);
    return fail_run(run, "ran for %.0f s, where a run took %.1f s before: it hangs, and was ended", limit, t->longest);
}

// How long a run of a pair may take: the budget says whether one is begun.
static double limit_of(const trial *t)
{
    return fmax(least_patience, patience * t->longest);
}

// A run from start to end; *out_value is its metric.
static int run_once(trial *t, const ab_side *side, double *out_value)
{
    ab_run run, *one = &run;
    const double limit = limit_of(t);
    int status = ab_start(side, &t->metric, t->program, false, &run);
    if (status == 0 && !ab_read(&one, 1, SIZE_MAX, in_seconds(limit))) status = fail_limit(t, &run, limit);
    if (status == 0 && !ab_ended_well(&run)) status = EXIT_WORLD;
    if (status == 0 && !measures_time(t)) status = check_values(t, &run);
    if (status == 0) {
        *out_value = measures_time(t) ? ab_seconds(&run) : ab_median(run.values, run.count);
        t->longest = fmax(t->longest, ab_seconds(&run));
    }
    ab_end(&run);
    return status;
}

// Turns ---------------------------------------------------------------------------------------------------------------

static int fail_ended(const trial *t, const ab_run *run, size_t turns)
{
    if (cli_is_cancelled()) return EXIT_INTERRUPTED;
    if (run->pid != 0) return fail_limit(t, run, limit_of(t));
    if (!ab_ended_well(run)) return EXIT_WORLD;
    return fail_run(
        run,
        "ended after %zu steps and %zu turns, which is too little: let it make more steps, or leave --step out (a "
        "program that keeps its output back until it ends looks the same)",
        run->count, turns);
}

// Until both have ended their first step, at which each stops.
static int start_both(trial *t, ab_run runs[2], uint32_t first)
{
    int status = ab_start(&t->sides[first], &t->metric, t->program, false, &runs[first]);
    if (status == 0) status = ab_start(&t->sides[!first], &t->metric, t->program, false, &runs[!first]);
    const uint64_t until = in_seconds(limit_of(t));
    while (status == 0 && !(runs[0].is_stopped && runs[1].is_stopped)) {
        ab_run *going[2];
        size_t count = 0;
        for (int i = 0; i < 2; i++)
            if (!runs[i].is_stopped) going[count++] = &runs[i];
        ab_read(going, count, 1, cli_now_ns() + tick_ns);
        for (size_t i = 0; i < count && status == 0; i++) {
            if (going[i]->count > 0) ab_stop(going[i]);
            if (going[i]->pid == 0 || cli_is_cancelled() || cli_now_ns() >= until) status = fail_ended(t, going[i], 0);
        }
    }
    return status;
}

// What a step takes, from the end of one to the end of another. False: the program has ended, or hangs.
static bool take_turn(const trial *t, ab_run *run, const ab_places *places, ab_mark *mark, ab_turn *out)
{
    const ab_mark before = *mark;
    const uint64_t gone_on = cli_now_ns(), still = gone_on - run->stopped_ns;
    const uint64_t until = in_seconds(limit_of(t)), least = gone_on + turn_ns;
    ab_run *one = run;
    ab_go(run, places);
    bool enough = true;
    for (size_t wanted = before.steps + 1; enough && wanted > 0;) {
        enough = ab_read(&one, 1, wanted, until) && run->count >= wanted;
        wanted = run->value_ns < least ? run->count + 1 : 0;
    }
    if (enough && run->pid != 0) ab_take_mark(run, mark);
    ab_stop(run);
    if (enough) *out = ab_turn_of(&before, mark, still);
    return enough && run->pid != 0;
}

static int take_turns(trial *t, ab_run runs[2], double start_seconds, double *out_values)
{
    ab_mark marks[2];
    static ab_places places;
    static ab_turn turns[2][MOST_TURNS];
    static double room[2 * MOST_TURNS];
    size_t count = 0;
    const uint64_t least = in_seconds(fmax(start_seconds, least_turns_seconds));
    const uint64_t most = in_seconds(fmax(start_seconds, most_turns_seconds));
    int ended = -1;
    for (int i = 0; i < 2; i++)
        ab_take_mark(&runs[i], &marks[i]);
    while (ended < 0 && count < MOST_TURNS &&
           (count < LEAST_TURNS || cli_now_ns() < (count < GOOD_TURNS ? most : least))) {
        const int first = cli_random_bit(&t->random);
        // Processors are not alike on a busy machine, and where a program's threads once are they stay for seconds: both
        // sides begin a turn on the same ones.
        ab_read_places(&runs[cli_random_bit(&t->random)], &places);
        for (int i = 0; i < 2 && ended < 0; i++) {
            const int side = i == 0 ? first : !first;
            if (!take_turn(t, &runs[side], &places, &marks[side], &turns[side][count])) ended = side;
        }
        count += ended < 0;
    }
    if (ended >= 0 && (count < LEAST_TURNS || runs[ended].pid != 0 || !ab_ended_well(&runs[ended])))
        return fail_ended(t, &runs[ended], count);
    const ab_turn *const sides[2] = {turns[0], turns[1]};
    t->by_processors += ab_ratio_of_turns(sides, count, room, out_values);
    return 0;
}

static int run_in_turns(trial *t, uint32_t first, double *out_values)
{
    ab_run runs[2] = {{.streams = {{.fd = -1}, {.fd = -1}}}, {.streams = {{.fd = -1}, {.fd = -1}}}};
    const uint64_t began = cli_now_ns();
    int status = start_both(t, runs, first);
    if (status == 0) status = take_turns(t, runs, (double)(cli_now_ns() - began) / 1e9, out_values);
    for (int i = 0; i < 2; i++)
        ab_tell(&runs[i], SIGTERM);
    for (int i = 0; i < 2; i++)
        ab_leave(&runs[i], SIGTERM, grace_ns / 3);
    for (int i = 0; i < 2; i++)
        ab_end(&runs[i]);
    t->longest = fmax(t->longest, (double)(cli_now_ns() - began) / 1e9);
    return status;
}

// The first runs ------------------------------------------------------------------------------------------------------

// One of each side that does not count: what is compiled, cached and tuned in it is there for the others, and hone's calls
// are recorded. With --step it may be one that does not end.
static int look_at(trial *t, const ab_side *side, double *out_seconds)
{
    ab_run run, *one = &run;
    const bool alternate = t->metric.is_step;
    const double limit = t->budget - spent(t);
    int status = ab_start(side, &t->metric, t->program, true, &run);
    if (status == 0 && alternate && ab_read(&one, 1, LOOK_STEPS, in_seconds(limit)) && run.pid != 0)
        ab_read(&one, 1, SIZE_MAX, in_seconds(look_seconds));
    const bool is_endless = status == 0 && alternate && run.pid != 0 && run.count > 0;
    if (is_endless) ab_leave(&run, SIGINT, grace_ns);
    if (status == 0 && !alternate && !ab_read(&one, 1, SIZE_MAX, in_seconds(limit)))
        status = fail_limit(t, &run, limit);
    if (status == 0 && alternate && run.pid != 0 && run.count == 0 && !cli_is_cancelled())
        status = check_values(t, &run);
    if (status == 0 && run.pid != 0) status = fail_limit(t, &run, limit);
    if (status == 0 && cli_is_cancelled()) status = EXIT_INTERRUPTED;
    if (status == 0 && !is_endless && !ab_ended_well(&run)) status = EXIT_WORLD;
    if (status == 0 && (t->metric.is_step || !measures_time(t))) status = check_values(t, &run);
    *out_seconds = is_endless ? -1 : ab_seconds(&run);
    if (status == 0) {
        t->values_found = run.count;
        t->longest = fmax(t->longest, ab_seconds(&run));
    }
    ab_end(&run);
    return status;
}

static void say(const trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const trial *t, const char *format, ...)
{
    FILE *to = t->cli->options.json ? stderr : stdout;
    va_list list;
    va_start(list, format);
    vfprintf(to, format, list);
    va_end(list);
    fputc('\n', to);
    fflush(to);
}

// What is known before anything is measured.
static void say_calls(const trial *t)
{
    const size_t all = json_array_size(t->calls), differing = ab_differing(t->calls);
    if (t->calls == NULL)
        say(t, "which calls of hone's the program makes is not known");
    else if (all == 0)
        say(t, "no call of hone's was recorded in the program: other choices of hone's cannot make a difference");
    else if (differing == 0)
        say(t,
            "none of the program's %zu call%s of hone's is answered otherwise under b: their choices cannot make a"
            " difference",
            all, all == 1 ? "" : "s");
    else
        say(t, "%zu of the program's %zu call%s of hone's %s answered otherwise under b", differing, all,
            all == 1 ? "" : "s", differing == 1 ? "is" : "are");
}

static int look_first(trial *t)
{
    double other;
    int status = look_at(t, &t->sides[0], &t->run_seconds);
    if (status == 0) status = look_at(t, &t->sides[1], &other);
    if (status != 0) return status;
    t->calls = ab_calls(t->cli, t->sides, t->folder);
    t->has_looked = true;
    say_calls(t);
    return 0;
}

// Pairs ---------------------------------------------------------------------------------------------------------------

static verdict judge(const trial *t)
{
    const cli_ratio *r = &t->ratio;
    if (r->high < 1) return t->metric.higher ? WORSE : BETTER;
    if (r->low > 1) return t->metric.higher ? BETTER : WORSE;
    return r->low > 1 - t->threshold && r->high < 1 + t->threshold ? SAME : UNDECIDED;
}

static void keep_pair(trial *t, const double *values)
{
    for (int i = 0; i < 2; i++) {
        t->values[i] = realloc(t->values[i], (t->count + 1) * sizeof *t->values[i]);
        if (t->values[i] == NULL) cli_no_memory();
        t->values[i][t->count] = values[i];
    }
    t->count++;
    cli_pairs_add(&t->pairs, values[1] / values[0]);
    t->ratio = cli_pairs_ratio(&t->pairs);
    t->verdict = judge(t);
}

static int run_pair(trial *t)
{
    double values[2] = {1, 1};
    const uint32_t first = cli_random_bit(&t->random);
    int status = 0;
    if (t->metric.is_step)
        status = run_in_turns(t, first, values);
    else {
        status = run_once(t, &t->sides[first], &values[first]);
        if (status == 0) status = run_once(t, &t->sides[!first], &values[!first]);
    }
    if (status == 0) keep_pair(t, values);
    return status;
}

static void show_progress(const trial *t)
{
    if (!t->cli->progress) return;
    fprintf(stderr, "\r\033[K%zu pairs, ", t->count);
    if (isfinite(t->ratio.high) && t->ratio.low > 0)
        fprintf(stderr, "%.4f (%.4f to %.4f), ", t->ratio.middle, t->ratio.low, t->ratio.high);
    fprintf(stderr, "%.0f of %.0f s", spent(t), t->budget);
    fflush(stderr);
}

// A pair that the budget would cut is not begun.
static int run_pairs(trial *t)
{
    int status = 0;
    while (status == 0 && t->verdict == UNDECIDED && !cli_is_cancelled()) {
        const double before = spent(t);
        if (before + fmax(t->longest_pair, t->longest) * 1.1 >= t->budget) break;
        status = run_pair(t);
        t->longest_pair = fmax(t->longest_pair, spent(t) - before);
        show_progress(t);
    }
    if (t->cli->progress) fputs("\r\033[K", stderr);
    return cli_is_cancelled() ? 0 : status;
}

// The answer ----------------------------------------------------------------------------------------------------------

static json_t *number_or_null(double value)
{
    return isfinite(value) && value > 0 ? json_real(value) : json_null();
}

static json_t *side_json(const trial *t, int i)
{
    const ab_side *side = &t->sides[i];
    json_t *env = json_array(), *values = json_array();
    for (size_t k = 0; k < side->env->count; k++)
        json_array_append_new(env, json_string(side->env->items[k]));
    for (size_t k = 0; k < t->count; k++)
        json_array_append_new(values, json_real(t->values[i][k]));
    return json_pack(
        "{s:s?, s:o, s:o, s:o}", "what", side->what, "env", env, "median",
        t->count > 0 ? json_real(ab_median(t->values[i], t->count)) : json_null(), "values", values);
}

static json_t *document(const trial *t)
{
    const cli_options *options = &t->cli->options;
    const char *kind = t->metric.is_step    ? "step"
                       : t->metric.is_regex ? "regex"
                       : t->metric.is_json  ? "json"
                                            : "seconds";
    json_t *metric = json_pack(
        "{s:s, s:s?, s:s}", "kind", kind, "text",
        options->step != NULL     ? options->step
        : options->metric != NULL ? options->metric
                                  : options->metric_json,
        "better", t->metric.higher ? "higher" : "lower");
    json_t *out = json_pack(
        "{s:s, s:o, s:o, s:o, s:I, s:f, s:f, s:o}", "verdict", verdict_names[t->verdict], "ratio",
        t->count > 0 ? json_real(t->ratio.middle) : json_null(), "low", number_or_null(t->ratio.low), "high",
        number_or_null(t->ratio.high), "pairs", (json_int_t)t->count, "seconds", spent(t), "threshold",
        100 * t->threshold, "metric", metric);
    const double expected = ab_expected(t->calls, t->run_seconds);
    json_object_set_new(out, "a", side_json(t, 0));
    json_object_set_new(out, "b", side_json(t, 1));
    if (t->metric.is_step) json_object_set_new(out, "by_processor_time", json_integer((json_int_t)t->by_processors));
    json_object_set_new(out, "run_seconds", number_or_null(t->run_seconds));
    json_object_set_new(
        out, "differing", t->calls == NULL ? json_null() : json_integer((json_int_t)ab_differing(t->calls)));
    json_object_set_new(out, "expected_ratio", number_or_null(expected));
    json_object_set(out, "calls", t->calls == NULL ? json_null() : t->calls);
    return out;
}

static void say_verdict(const trial *t)
{
    const double percent = 100 * fabs(t->ratio.middle - 1);
    const char *faster = t->ratio.middle < 1 ? "less" : "more";
    const bool is_known = t->ratio.low > 0 && isfinite(t->ratio.high);
    char interval[64] = "too few pairs for an interval", wide[96];
    snprintf(wide, sizeof wide, "the interval holds 1 and is wider than %g %% to either side", 100 * t->threshold);
    if (is_known) snprintf(interval, sizeof interval, "95 %% %.4f to %.4f", t->ratio.low, t->ratio.high);
    if (t->count > 0)
        printf(
            "b/a %.4f (%s), %zu pair%s, %.0f s; medians %.6g and %.6g%s\n", t->ratio.middle, interval, t->count,
            t->count == 1 ? "" : "s", spent(t), ab_median(t->values[0], t->count), ab_median(t->values[1], t->count),
            measures_time(t) ? " s" : "");
    if (t->by_processors > 0)
        printf(
            "other work took processors in %zu of the pairs: their ratio is that of the steps' processor time\n",
            t->by_processors);
    if (t->verdict == BETTER || t->verdict == WORSE)
        printf("b is %s: %.2g %% %s\n", verdict_names[t->verdict], percent, faster);
    else if (t->verdict == SAME)
        printf("no difference: it is certainly below %g %%\n", 100 * t->threshold);
    else
        printf(
            "undecided: %s; %s\n", is_known ? wide : "nothing is known yet",
            cli_is_cancelled() ? "interrupted" : "more --seconds may tell");
}

// The disappointment that is to be told of first: what was gained in calls and cannot be seen in the program.
static void say_expected(const trial *t)
{
    const double expected = ab_expected(t->calls, t->run_seconds);
    if (expected < 0) return;
    printf(
        "by themselves, these calls make a run of %.3g s %.2g %% %s under b\n", t->run_seconds,
        100 * fabs(1 - expected), expected <= 1 ? "shorter" : "longer");
}

static int answer(const trial *t)
{
    if (t->cli->options.json)
        cli_print_json(document(t));
    else {
        say_verdict(t);
        ab_print_calls(t->calls, t->run_seconds);
        say_expected(t);
    }
    return t->verdict == BETTER || t->verdict == SAME ? EXIT_DONE : EXIT_NO;
}

static int check_options(const hone_cli *cli)
{
    const cli_options *o = &cli->options;
    if (o->a == NULL && o->b == NULL && o->a_env.count == 0 && o->b_env.count == 0)
        return cli_usage("nothing differs: give --a and --b (a lock file, a store, a pack), or --a-env and --b-env");
    if (o->threshold >= 100) return cli_usage("--threshold is %g, expected below 100 percent", o->threshold);
    return 0;
}

static int compare(trial *t)
{
    int status = ab_read_sides(t->cli, t->folder, t->sides);
    if (status == 0) status = look_first(t);
    if (status == 0) status = run_pairs(t);
    if (status != 0) return status;
    if (!cli_is_cancelled() && t->calls != NULL) ab_time_calls(t->sides, t->calls);
    return answer(t);
}

int cli_ab(hone_cli *cli)
{
    trial t = {
        .cli = cli,
        .program = cli->arguments,
        .random = cli->options.seed > 0 ? (uint64_t)cli->options.seed : cli_random_seed(),
        .started_ns = cli_now_ns(),
        .budget = cli->options.seconds > 0 ? cli->options.seconds : default_seconds,
        .threshold = (cli->options.threshold > 0 ? cli->options.threshold : default_threshold) / 100,
        .run_seconds = -1,
        .ratio = {1, 0, INFINITY},
    };
    int status = check_options(cli);
    if (status == 0) status = ab_read_metric(&cli->options, &t.metric);
    if (status != 0) return status;
    const int hold = ab_make_folder(t.folder);
    status = hold >= 0 ? compare(&t) : EXIT_WORLD;
    if (hold >= 0) ab_remove_folder(t.folder, hold);
    ab_free_sides(t.sides);
    ab_free_metric(&t.metric);
    cli_pairs_clear(&t.pairs);
    json_decref(t.calls);
    free(t.values[0]);
    free(t.values[1]);
    return status;
}
