// Which calls carry a difference: what the program asked hone for in its first runs, who answers each call on either side,
// and what the two answers take by themselves. A kernel that is much faster may be so small a part of a program that
// nothing comes of it; this says so.
//
// A side's environment is entered in a child of fork: variables, packs and lock files are read once in a process.
#include "ab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CALLS = 256, MOST_TIMED = 8, SHOWN = 12 };

static const double seconds_for_a_call = 1;

// In a side's environment -------------------------------------------------------------------------------------------------

typedef int entered(hone_cli *cli, const ab_side *side, void *ctx);

// Runs body in a child with the side's variables, its standard output in a file, and reads that as JSON. NULL: it failed,
// and said why.
static json_t *ask(const ab_side *side, const char *file, entered *body, void *ctx)
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        hone_cli cli = {.options = {.store = side->store, .json = true}};
        ab_enter(side);
        unsetenv("HONE_RECORD");
        if (freopen(file, "w", stdout) == NULL) _exit(EXIT_WORLD);
        const int code = body(&cli, side, ctx);
        hone_runtime_close(&cli.rt);
        _exit(fflush(stdout) == 0 ? code : EXIT_WORLD);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return NULL;
    json_t *found = json_load_file(file, 0, NULL);
    return found;
}

// The calls -----------------------------------------------------------------------------------------------------------

typedef struct listing {
    hone_cli *cli;
    json_t *rows;
} listing;

static void append_text(void *ctx, const char *text, size_t size)
{
    cli_text_append(ctx, text, size);
}

static json_t *explained(const hone_op *op, const hone_call *call)
{
    cli_text text;
    hone_error err;
    cli_text_init(&text);
    json_t *found = hone_explain(op, call, HONE_JSON, append_text, &text, &err) == HONE_OK
                        ? json_loads(cli_text_string(&text), 0, NULL)
                        : NULL;
    cli_text_deinit(&text);
    return found;
}

// Of packs of two commits the config may be equal and the code another.
static const char *revision_of(hone_cli *cli, const hone_op *op, const json_t *answer)
{
    hone_platform platform = HONE_PLATFORM_NONE;
    const char *name = json_string_value(json_object_get(answer, "platform"));
    const char *kernel = json_string_value(json_object_get(answer, "kernel"));
    if (name == NULL || kernel == NULL || hone_platform_parse(name, &platform, NULL) != HONE_OK) return NULL;
    const hone_kernel_ref *ref = cli_kernel_named(cli, op, kernel, platform, HONE_BACKEND_NONE);
    return ref == NULL ? NULL : hone_kernel_of(ref)->revision;
}

static json_t *answer_of(hone_cli *cli, const hone_store_invocation *row)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error err;
    json_t *answer = NULL;
    if (row->call == NULL || hone_call_of_label(cli->rt, row->call, &op, &call, &err) != HONE_OK) return json_null();
    json_t *all = explained(op, call);
    const char *kernel = json_string_value(json_object_get(all, "kernel"));
    // What the program has registered, or chose within itself, is not to be seen from outside.
    const bool is_other = row->kernel != NULL && kernel != NULL && strcmp(row->kernel, kernel) != 0;
    if (is_other)
        answer = json_pack("{s:s, s:n, s:s?}", "kernel", row->kernel, "config", "source", row->decided);
    else if (kernel != NULL)
        answer = json_pack(
            "{s:s, s:O?, s:O?, s:s?}", "kernel", kernel, "config", json_object_get(all, "config"), "source",
            json_object_get(all, "source"), "revision", revision_of(cli, op, all));
    json_decref(all);
    hone_call_release(&call);
    return answer == NULL ? json_null() : answer;
}

static bool list_call(void *ctx, const hone_store_invocation *row)
{
    listing *list = ctx;
    json_array_append_new(
        list->rows, json_pack(
                        "{s:s, s:s, s:s, s:s?, s:I}", "device", row->key.device, "algorithm", row->key.algorithm, "key",
                        row->key.key, "call", row->call, "count", (json_int_t)row->count));
    json_object_set_new(
        json_array_get(list->rows, json_array_size(list->rows) - 1), "answer", answer_of(list->cli, row));
    return json_array_size(list->rows) < MOST_CALLS;
}

// hone_record_scan lets the visit ask the runtime, where a store's own visit may not.
static int list_calls(hone_cli *cli, const ab_side *side, void *ctx)
{
    (void)side;
    (void)ctx;
    listing list = {cli, json_array()};
    hone_error err;
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status == 0 && hone_record_scan(cli->rt, NULL, list_call, &list, &err) != HONE_OK) status = cli_fail(&err);
    if (status == 0) cli_print_json(list.rows);
    return status;
}

static bool is_same(const json_t *one, const json_t *other)
{
    static const char *const names[] = {"device", "algorithm", "key"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!json_equal(json_object_get(one, names[i]), json_object_get(other, names[i]))) return false;
    return true;
}

static json_t *find_call(json_t *rows, const json_t *row)
{
    size_t i;
    json_t *other;
    json_array_foreach(rows, i, other) if (is_same(row, other)) return other;
    return NULL;
}

// What answers, and not by which link.
static bool answers_alike(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"kernel", "config", "revision"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *one = json_object_get(a, names[i]), *other = json_object_get(b, names[i]);
        if (one != other && (one == NULL || other == NULL || !json_equal(one, other))) return false;
    }
    return true;
}

static void add_call(json_t *calls, json_t *of_a, json_t *of_b)
{
    json_t *row = json_deep_copy(of_a != NULL ? of_a : of_b);
    json_t *a = json_object_get(of_a, "answer"), *b = json_object_get(of_b, "answer");
    json_object_del(row, "answer");
    json_object_set_new(row, "differs", json_boolean(of_a == NULL || of_b == NULL || !answers_alike(a, b)));
    json_object_set_new(row, "a", a == NULL ? json_null() : json_deep_copy(a));
    json_object_set_new(row, "b", b == NULL ? json_null() : json_deep_copy(b));
    json_array_append_new(calls, row);
}

json_t *ab_calls(hone_cli *cli, const ab_side sides[2], const char *folder)
{
    char file[AB_PATH_SIZE];
    json_t *lists[2] = {NULL, NULL}, *row;
    size_t i;
    (void)cli;
    snprintf(file, sizeof file, "%s/calls.json", folder);
    for (int s = 0; s < 2; s++)
        lists[s] = ask(&sides[s], file, list_calls, NULL);
    json_t *calls = lists[0] == NULL || lists[1] == NULL ? NULL : json_array();
    if (calls != NULL) {
        json_array_foreach(lists[0], i, row) add_call(calls, row, find_call(lists[1], row));
        json_array_foreach(lists[1], i, row) if (find_call(lists[0], row) == NULL) add_call(calls, NULL, row);
    }
    json_decref(lists[0]);
    json_decref(lists[1]);
    return calls;
}

static bool differs(const json_t *call)
{
    return json_is_true(json_object_get(call, "differs"));
}

size_t ab_differing(const json_t *calls)
{
    size_t i, count = 0;
    const json_t *row;
    json_array_foreach(calls, i, row) count += differs(row);
    return count;
}

// What they take ------------------------------------------------------------------------------------------------------

static const json_t *answer(const json_t *call, const char *side)
{
    const json_t *found = json_object_get(call, side);
    return json_is_object(json_object_get(found, "config")) ? found : NULL;
}

static double time_of(const json_t *call, const char *side)
{
    return json_number_value(json_object_get(json_object_get(call, side), "time_ns"));
}

typedef struct duel {
    const char *call;
    char choices[2][1024];
    size_t count;
} duel;

static int hold_duel(hone_cli *cli, const ab_side *side, void *ctx)
{
    duel *d = ctx;
    (void)side;
    cli->options.seconds = seconds_for_a_call;
    for (size_t i = 0; i < 2; i++)
        cli->options.choices.items[cli->options.choices.count++] = d->choices[i];
    cli->arguments = (char *[]){(char *)(uintptr_t)d->call};
    cli->count = 1;
    if (freopen("/dev/null", "w", stderr) == NULL) return EXIT_WORLD;
    return cli_bench(cli);
}

static bool write_choice(const json_t *answer, char out[1024])
{
    char *config = json_dumps(json_object_get(answer, "config"), JSON_COMPACT);
    const int used = snprintf(out, 1024, "%s %s", json_string_value(json_object_get(answer, "kernel")), config);
    free(config);
    return used < 1024;
}

static void note_time(json_t *call, const char *side, const json_t *choice)
{
    json_t *time = json_object_get(choice, "time_ns");
    if (json_is_number(time)) json_object_set(json_object_get(call, side), "time_ns", time);
}

// Both in one process and in turns, under b's variables; where these are packs or the like, that cannot be done for a's.
static void time_call(const ab_side sides[2], const char *file, json_t *call)
{
    duel d = {.call = json_string_value(json_object_get(call, "call"))};
    const json_t *a = answer(call, "a"), *b = answer(call, "b");
    const json_t *revision = json_object_get(a, "revision");
    if (d.call == NULL || a == NULL || b == NULL || !write_choice(a, d.choices[0]) || !write_choice(b, d.choices[1]))
        return;
    // One name, two codes: a process has one of them.
    if (strcmp(d.choices[0], d.choices[1]) == 0 && !json_equal(revision, json_object_get(b, "revision"))) return;
    json_t *found = ask(&sides[1], file, hold_duel, &d);
    const json_t *choices = json_object_get(found, "choices");
    note_time(call, "a", json_array_get(choices, 0));
    note_time(call, "b", json_array_get(choices, 1));
    json_decref(found);
}

void ab_time_calls(const ab_side sides[2], json_t *calls)
{
    char file[AB_PATH_SIZE];
    size_t i, timed = 0;
    json_t *row;
    snprintf(file, sizeof file, "%s.json", sides[1].store + strlen(cli_file_scheme()));
    json_array_foreach(calls, i, row)
    {
        if (cli_is_cancelled() || timed == MOST_TIMED) return;
        if (!differs(row)) continue;
        time_call(sides, file, row);
        timed++;
    }
}

static double count_of(const json_t *call)
{
    return json_number_value(json_object_get(call, "count"));
}

// Seconds that b saves in a run by this call; not a number where that is not known.
static double saved_by(const json_t *call)
{
    const double a = time_of(call, "a"), b = time_of(call, "b");
    return a > 0 && b > 0 ? count_of(call) * (a - b) * 1e-9 : NAN;
}

double ab_expected(const json_t *calls, double seconds)
{
    double saved = 0;
    size_t i, known = 0;
    const json_t *row;
    json_array_foreach(calls, i, row)
    {
        if (!differs(row)) continue;
        const double its = saved_by(row);
        if (isnan(its)) return -1;
        saved += its;
        known++;
    }
    return known == 0 || seconds <= 0 ? -1 : fmax(0, 1 - saved / seconds);
}

// Shown ---------------------------------------------------------------------------------------------------------------

static void answer_text(const json_t *call, const char *side, char *out, size_t size)
{
    const json_t *found = json_object_get(call, side), *value;
    const char *kernel = json_string_value(json_object_get(found, "kernel")), *name;
    int used = snprintf(out, size, "%s", kernel != NULL ? kernel : json_is_null(found) ? "-" : "?");
    json_object_foreach(json_object_get(found, "config"), name, value)
    {
        if (used < 0 || (size_t)used >= size) return;
        char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        used += snprintf(out + used, size - (size_t)used, " %s=%s", name, text == NULL ? "" : text);
        free(text);
    }
}

static void show_call(cli_table *table, const json_t *call, double seconds)
{
    char count[24], a[200], b[200], times[2][32] = {"", ""}, ratio[32] = "", share[32] = "";
    const double saved = saved_by(call);
    snprintf(count, sizeof count, "%.0f", count_of(call));
    answer_text(call, "a", a, sizeof a);
    answer_text(call, "b", b, sizeof b);
    if (!isnan(saved)) {
        cli_time_text(time_of(call, "a"), times[0]);
        cli_time_text(time_of(call, "b"), times[1]);
        snprintf(ratio, sizeof ratio, "%.3f", time_of(call, "b") / time_of(call, "a"));
        if (seconds > 0) snprintf(share, sizeof share, "%.2g %%", 100 * saved / seconds);
    }
    const char *text = json_string_value(json_object_get(call, "call"));
    cli_table_row(
        table, "  ", count, times[0], times[1], ratio, share, a, b,
        text != NULL ? text : json_string_value(json_object_get(call, "key")));
}

void ab_print_calls(const json_t *calls, double seconds)
{
    size_t i, shown = 0, left = 0;
    const json_t *row;
    if (ab_differing(calls) == 0) return;
    cli_table *table = cli_table_new(9);
    cli_table_row(table, "  ", "count", "a", "b", "b/a", "saves", "under a", "under b", "call");
    json_array_foreach(calls, i, row)
    {
        if (!differs(row)) continue;
        if (shown == SHOWN)
            left++;
        else {
            show_call(table, row, seconds);
            shown++;
        }
    }
    cli_table_print(table);
    if (left > 0) cli_say("  and %zu more (--json has all)\n", left);
}
