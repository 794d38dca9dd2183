// Lock files in the chain: what they answer, in which order, and what a frozen program is told instead of an answer.
#include "fixture.h"
#include "temporary_folder.h"

#include <jansson.h>
#include <stdio.h>

// A lock file in a folder of its own.
typedef struct locked {
    temporary_folder folder;
    char path[300];
    hone_lock *lock;
    hone_error err;
} locked;

static const char *const variables[] = {"HONE_POLICY", "HONE_RECORD", "HONE_LOG",  "HONE_LOCK",
                                        "HONE_FORCE",  "HONE_DENY",   "HONE_STORE"};

static int setup(void **state)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    locked *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_int_equal(temporary_folder_make(&l->folder), 0);
    snprintf(l->path, sizeof l->path, "%s/hone.lock", l->folder.path);
    assert_int_equal(hone_lock_create(hone_allocator_system(), &l->lock, &l->err), HONE_OK);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    locked *l = *state;
    hone_lock_release(&l->lock);
    temporary_folder_remove(&l->folder);
    free(l);
    return 0;
}

static void write_lock(locked *l)
{
    if (hone_lock_write(l->lock, l->path, &l->err) != HONE_OK) fail_msg("%s", l->err.message);
}

static fixture *open_locked(locked *l, hone_policy policy)
{
    write_lock(l);
    return open_fixture((wish){.policy = policy, .lock = l->path});
}

static const char *this_device(void)
{
    static char fingerprint[1000];
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    size_t count;
    snprintf(fingerprint, sizeof fingerprint, "%s", hone_runtime_devices(f->rt, &count)[0]->fingerprint);
    close_fixture(f);
    return fingerprint;
}

// Scale on rows x cols pinned to a kernel. Fields of change that are set stand in place of the right ones.
static void pin(locked *l, int64_t rows, int64_t cols, const char *kernel, const char *config, hone_lock_line change)
{
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    hone_call *call = describe_scale(f, rows, cols);
    const hone_lock_line line = {
        .algorithm = "scale",
        .version = change.version != NULL ? change.version : "1",
        .key = change.key != NULL ? change.key : hone_call_key(call),
        .device = change.device != NULL ? change.device : this_device(),
        .platform = change.platform != NULL ? change.platform : "native",
        .kernel = kernel,
        .config = config,
        .call = change.call != NULL ? change.call : hone_call_text(call),
        .revision = change.revision != NULL ? change.revision : "1",
    };
    if (hone_lock_put(l->lock, &line, &l->err) != HONE_OK) fail_msg("%s", l->err.message);
    hone_call_release(&call);
    close_fixture(f);
}

#define AS_IT_IS ((hone_lock_line){.number = 0})
#define COL_4    "{\"unroll\":4,\"layout\":\"col\"}"

// What the chain says of a frozen call that has no answer.
static void assert_frozen_out(fixture *f, int64_t rows, int64_t cols, hone_status expected)
{
    example e;
    make_example(&e, rows, cols);
    for (int i = 0; i < 2; i++) {
        hone_status status = hone_run(f->op, e.args, 3, NULL, &f->err);
        if (status != expected) fail_msg("%d: %s", (int)status, f->err.message);
    }
    assert_int_equal(f->probes[FAST].runs + f->probes[PLAIN].runs, 0);
}

static void frozen_serves_from_the_lock_file_alone(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "fast", COL_4, AS_IT_IS);
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    put_in_cache(f, 4, 4, "plain");
    hone_overlay *overlay = overlay_for(f, 4, 4, "plain");
    hone_context *context = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    hone_decision decision = decide_scale(f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_LOCK);
    assert_string_equal(decision.kernel, "fast");
    assert_string_equal(decision.config_json, COL_4);
    assert_false(decision.verified);
    run_example(f, 4, 4);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 2);
    assert_int_equal(f->probes[FAST].config, 4);
    hone_context_enter(NULL);
    hone_context_release(&context);
    hone_overlay_release(&overlay);
    // An override stands above it.
    context = overriding(f, "plain", NULL);
    hone_context_enter(context);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    hone_context_enter(NULL);
    hone_context_release(&context);
    close_fixture(f);
}

static void under_other_policies_it_stands_behind_overlays_and_before_memory(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "fast", COL_4, AS_IT_IS);
    for (int policy = HONE_POLICY_TUNE; policy < HONE_POLICY_FROZEN; policy++) {
        fixture *f = open_locked(l, (hone_policy)policy);
        put_in_cache(f, 4, 4, "plain");
        assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_LOCK);
        put_in_cache(f, 8, 4, "plain");
        assert_int_equal(decide_scale(f, 8, 4).source, HONE_SOURCE_MEMORY);
        hone_overlay *overlay = overlay_for(f, 4, 4, "plain");
        hone_context *context = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
        hone_context_enter(context);
        assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_OVERLAY);
        hone_context_enter(NULL);
        hone_context_release(&context);
        hone_overlay_release(&overlay);
        close_fixture(f);
    }
}

static void a_frozen_miss_names_the_key_and_the_fields_that_differ(void **state)
{
    locked *l = *state;
    pin(l, 16, 4, "fast", COL_4, AS_IT_IS);
    pin(l, 4, 8, "plain", "{}", AS_IT_IS);
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    hone_call *call = describe_scale(f, 4, 4);
    assert_frozen_out(f, 4, 4, HONE_NOT_FOUND);
    assert_says(f, "scale(f32[4,4])");
    assert_says(f, "frozen");
    assert_says(f, l->path);
    assert_says(f, hone_call_key(call));
    assert_says(f, "x.shape[1]: 4, locked 8");
    assert_says(f, "x.shape[0]: 4, locked 16");
    assert_true(strstr(f->err.message, "locked 8") < strstr(f->err.message, "locked 16"));
    assert_says(f, "hone lock");
    hone_call_release(&call);
    close_fixture(f);
}

static void a_line_for_another_device_is_not_served_and_is_near(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "fast", COL_4, (hone_lock_line){.device = "cpu|somewhere else"});
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    assert_frozen_out(f, 4, 4, HONE_NOT_FOUND);
    assert_says(f, "device: cpu|");
    assert_says(f, "locked cpu|somewhere else");
    close_fixture(f);
}

static void without_a_lock_file_frozen_says_how_to_name_one(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FROZEN});
    assert_frozen_out(f, 4, 4, HONE_NOT_FOUND);
    assert_says(f, "no lock file");
    assert_says(f, "HONE_LOCK");
    close_fixture(f);
}

// Lines that no longer fit, each with what it says.
static const struct {
    const char *kernel, *config;
    hone_lock_line change;
    const char *says[3];
} drifted[] = {
    {"gone", "{}", {.number = 0}, {"native/gone", "kernel gone is not registered"}},
    {"fast", "{\"unroll\":3,\"layout\":\"col\"}", {.number = 0}, {"unroll=3", "'unroll'", "1, 2, 4"}},
    {"fast", "{\"layout\":\"col\"}", {.number = 0}, {"'unroll' is missing"}},
    {"fast", "{\"unroll\":4,\"layout\":\"col\",\"new\":1}", {.number = 0}, {"new=1", "no parameter 'new'"}},
    {"plain", "{\"unroll\":4}", {.number = 0}, {"native/plain", "no parameter 'unroll'"}},
    {"fast", COL_4, {.platform = "abacus"}, {"abacus/fast", "abacus"}},
    {"fast", COL_4, {.platform = "cuda"}, {"cuda/fast", "not registered"}},
    {"fast", COL_4, {.call = "scale(f32[5,5])"}, {"its call text is scale(f32[5,5]), with the key "}},
    {"fast", COL_4, {.call = "scale(f32["}, {"its call text is invalid"}},
    {"fast", COL_4, {.revision = "0"}, {"the code of kernel fast was revision 0 when it was locked", "is 1 now"}},
};

static void frozen_drift_is_an_error_that_names_line_choice_and_what_does_not_fit(void **state)
{
    locked *l = *state;
    for (size_t i = 0; i < sizeof drifted / sizeof *drifted; i++) {
        pin(l, 4, 4, drifted[i].kernel, drifted[i].config, drifted[i].change);
        fixture *f = open_locked(l, HONE_POLICY_FROZEN);
        hone_call *call = describe_scale(f, 4, 4);
        put_in_cache(f, 4, 4, "plain");
        assert_frozen_out(f, 4, 4, HONE_INCOMPATIBLE);
        assert_says(f, "hone.lock:4 pins scale@v1");
        assert_says(f, hone_call_key(call));
        for (size_t word = 0; word < 3 && drifted[i].says[word] != NULL; word++)
            assert_says(f, drifted[i].says[word]);
        hone_call_release(&call);
        close_fixture(f);
    }
}

typedef struct heard {
    int warnings;
    char last[1200];
} heard;

static void hear(void *ctx, int level, const char *message)
{
    heard *all = ctx;
    all->warnings += level == 1;
    snprintf(all->last, sizeof all->last, "%s", message);
}

static void under_other_policies_drift_is_a_warning_and_the_chain_goes_on(void **state)
{
    locked *l = *state;
    for (size_t i = 0; i < sizeof drifted / sizeof *drifted; i++) {
        heard log = {.warnings = 0};
        pin(l, 4, 4, drifted[i].kernel, drifted[i].config, drifted[i].change);
        write_lock(l);
        fixture *f =
            open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .lock = l->path, .log = hear, .log_ctx = &log});
        put_in_cache(f, 4, 4, "plain");
        assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_MEMORY);
        assert_int_equal(log.warnings, 1);
        assert_non_null(strstr(log.last, "hone.lock:4 pins"));
        assert_non_null(strstr(log.last, drifted[i].says[0]));
        close_fixture(f);
    }
}

// As those of older files are. It is told when the file is read, whatever the policy.
static void a_line_without_a_revision_is_followed_with_a_warning(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "fast", COL_4, AS_IT_IS);
    hone_lock_line line = *hone_lock_at(l->lock, 0);
    line.revision = NULL;
    assert_int_equal(hone_lock_put(l->lock, &line, &l->err), HONE_OK);
    pin(l, 8, 8, "fast", COL_4, AS_IT_IS);
    write_lock(l);
    heard log = {.warnings = 0};
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FROZEN, .lock = l->path, .log = hear, .log_ctx = &log});
    assert_int_equal(log.warnings, 1);
    assert_non_null(strstr(log.last, "hone.lock: 1 of 2 lines name no revision"));
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_LOCK);
    assert_int_equal(decide_scale(f, 8, 8).source, HONE_SOURCE_LOCK);
    assert_int_equal(log.warnings, 1);
    close_fixture(f);
}

static bool refuses_all(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    (void)call;
    snprintf(why->message, sizeof why->message, "not in the mood");
    return false;
}

static void a_locked_kernel_that_may_not_run_is_drift_too(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "fast", COL_4, AS_IT_IS);
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    hone_kernel picky = f->kernels[FAST];
    picky.supports = refuses_all;
    assert_int_equal(hone_replace_kernels(f->rt, &picky, 1, &f->err), HONE_OK);
    assert_frozen_out(f, 4, 4, HONE_INCOMPATIBLE);
    assert_says(f, "native/fast");
    assert_says(f, "not in the mood");
    close_fixture(f);
    setenv("HONE_DENY", "fast", 1);
    f = open_fixture((wish){.policy = HONE_POLICY_FROZEN, .lock = l->path, .environment = true, .store = "none"});
    assert_frozen_out(f, 4, 4, HONE_INCOMPATIBLE);
    assert_says(f, "HONE_DENY");
    close_fixture(f);
}

static void a_frozen_kernel_that_fails_gives_way_to_no_other(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "fast", COL_4, AS_IT_IS);
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    f->probes[FAST].status = HONE_KERNEL_FAILED;
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_INCOMPATIBLE);
    assert_says(f, "disabled for this call");
    assert_int_equal(f->probes[FAST].runs, 1);
    assert_int_equal(f->probes[PLAIN].runs, 0);
    close_fixture(f);
}

static void a_line_without_call_text_goes_by_its_key(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "plain", "{}", (hone_lock_line){.call = ""});
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_LOCK);
    close_fixture(f);
}

static void a_call_text_that_says_the_same_otherwise_is_the_same(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "plain", "{}", (hone_lock_line){.call = "scale(x=f32[4,4], factor=2.0)"});
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_LOCK);
    close_fixture(f);
}

static const hone_op *register_grow(fixture *f)
{
    static hone_kernel kernel;
    kernel = f->kernels[PLAIN];
    kernel.algorithm = "grow";
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "grow(x: f32[n ~pow2]) -> y: f32[n]";
    assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    const hone_op *op = hone_op_find(f->rt, "grow", &f->err);
    assert_non_null(op);
    return op;
}

static void a_line_for_a_bucket_answers_every_call_in_it(void **state)
{
    locked *l = *state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FROZEN});
    hone_call *call = NULL;
    const hone_op *op = register_grow(f);
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(op), "grow(f32[8])", &call, &f->err), HONE_OK);
    const hone_lock_line line = {
        .algorithm = "grow",
        .version = "1",
        .key = hone_call_key(call),
        .device = this_device(),
        .platform = "native",
        .kernel = "plain",
        .config = "{}",
        .call = "grow(f32[8])",
        .revision = "1"};
    assert_int_equal(hone_lock_put(l->lock, &line, &l->err), HONE_OK);
    hone_call_release(&call);
    close_fixture(f);
    f = open_locked(l, HONE_POLICY_FROZEN);
    op = register_grow(f);
    static const char *const texts[] = {"grow(f32[8])", "grow(f32[5])", "grow(f32[9])"};
    for (int i = 0; i < 3; i++) {
        hone_decision decision;
        assert_int_equal(
            hone_call_parse(hone_allocator_system(), hone_op_signature(op), texts[i], &call, &f->err), HONE_OK);
        assert_int_equal(hone_decide_call(op, call, &decision, &f->err), i < 2 ? HONE_OK : HONE_NOT_FOUND);
        if (i < 2) assert_int_equal(decision.bucketed, i == 1);
        hone_call_release(&call);
    }
    close_fixture(f);
}

// Opening -------------------------------------------------------------------------------------------------------------

static void the_environment_names_a_lock_file_and_options_win(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "plain", "{}", AS_IT_IS);
    write_lock(l);
    setenv("HONE_LOCK", l->path, 1);
    fixture *f = open_fixture((wish){.environment = true, .store = "none"});
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_LOCK);
    close_fixture(f);
    static const char *const none[] = {"", "none"};
    for (int i = 0; i < 2; i++) {
        f = open_fixture((wish){.environment = true, .store = "none", .lock = none[i]});
        assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_HEURISTIC);
        close_fixture(f);
    }
    f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_HEURISTIC);
    close_fixture(f);
}

static void a_lock_file_that_cannot_be_read_stops_the_program_at_open(void **state)
{
    locked *l = *state;
    fixture f = {.rt = NULL};
    wish wanted = {.lock = l->path};
    assert_int_equal(open_bare(&wanted, &f.rt, &f.err), HONE_NOT_FOUND);
    assert_null(f.rt);
    assert_says(&f, "options.lock_file");
    assert_says(&f, l->path);
    pin(l, 4, 4, "plain", "{}", AS_IT_IS);
    write_lock(l);
    FILE *file = fopen(l->path, "a");
    assert_non_null(file);
    fputs("# one line more\n", file);
    fclose(file);
    assert_int_equal(open_bare(&wanted, &f.rt, &f.err), HONE_CORRUPT);
    assert_null(f.rt);
    assert_says(&f, "--reseal");
}

// Explaining ----------------------------------------------------------------------------------------------------------

static void collect(void *ctx, const char *piece, size_t size)
{
    char **all = ctx;
    *all = strndup(piece, size);
}

static json_t *explain(fixture *f, int64_t rows, int64_t cols, char **out_text)
{
    char *json = NULL;
    hone_call *call = describe_scale(f, rows, cols);
    assert_int_equal(hone_explain(f->op, call, HONE_JSON, collect, &json, &f->err), HONE_OK);
    assert_int_equal(hone_explain(f->op, call, HONE_TEXT, collect, out_text, &f->err), HONE_OK);
    hone_call_release(&call);
    json_t *document = json_loads(json, 0, NULL);
    assert_non_null(document);
    free(json);
    return document;
}

static const char *link_says(const json_t *document, const char *field)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(document, "chain"), 2), field));
}

static void explain_shows_what_the_lock_answers(void **state)
{
    locked *l = *state;
    char *text = NULL;
    pin(l, 4, 4, "fast", COL_4, AS_IT_IS);
    fixture *f = open_locked(l, HONE_POLICY_FROZEN);
    json_t *document = explain(f, 4, 4, &text);
    assert_string_equal(json_string_value(json_object_get(document, "source")), "lock");
    assert_string_equal(link_says(document, "link"), "lock");
    assert_string_equal(link_says(document, "answer"), "fast");
    assert_non_null(strstr(text, "answered by lock: native/fast"));
    json_decref(document);
    free(text);
    document = explain(f, 4, 8, &text);
    assert_true(json_is_null(json_object_get(document, "source")));
    assert_non_null(strstr(link_says(document, "why"), "has no line for key"));
    const json_t *near = json_array_get(json_object_get(document, "nearest"), 0);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(near, "differs"), 0)), "x.shape[1]: 8, locked 4");
    assert_non_null(strstr(text, "nearest locked calls\n"));
    json_decref(document);
    free(text);
    close_fixture(f);
}

static void explain_shows_drift_as_an_error_when_frozen_and_as_a_reason_otherwise(void **state)
{
    locked *l = *state;
    pin(l, 4, 4, "gone", "{}", AS_IT_IS);
    for (int frozen = 0; frozen < 2; frozen++) {
        heard log = {.warnings = 0};
        char *text = NULL;
        write_lock(l);
        fixture *f = open_fixture((wish){
            .policy = frozen ? HONE_POLICY_FROZEN : HONE_POLICY_HEURISTIC,
            .lock = l->path,
            .log = hear,
            .log_ctx = &log});
        json_t *document = explain(f, 4, 4, &text);
        assert_string_equal(link_says(document, "answer"), frozen ? "error" : "none");
        assert_non_null(strstr(link_says(document, "why"), "hone.lock:4 pins"));
        assert_int_equal(log.warnings, 0);
        json_decref(document);
        free(text);
        close_fixture(f);
    }
}

int main(void)
{
#define WITH_LOCK(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_LOCK(frozen_serves_from_the_lock_file_alone),
        WITH_LOCK(under_other_policies_it_stands_behind_overlays_and_before_memory),
        WITH_LOCK(a_frozen_miss_names_the_key_and_the_fields_that_differ),
        WITH_LOCK(a_line_for_another_device_is_not_served_and_is_near),
        WITH_LOCK(without_a_lock_file_frozen_says_how_to_name_one),
        WITH_LOCK(frozen_drift_is_an_error_that_names_line_choice_and_what_does_not_fit),
        WITH_LOCK(under_other_policies_drift_is_a_warning_and_the_chain_goes_on),
        WITH_LOCK(a_line_without_a_revision_is_followed_with_a_warning),
        WITH_LOCK(a_locked_kernel_that_may_not_run_is_drift_too),
        WITH_LOCK(a_frozen_kernel_that_fails_gives_way_to_no_other),
        WITH_LOCK(a_line_without_call_text_goes_by_its_key),
        WITH_LOCK(a_call_text_that_says_the_same_otherwise_is_the_same),
        WITH_LOCK(a_line_for_a_bucket_answers_every_call_in_it),
        WITH_LOCK(the_environment_names_a_lock_file_and_options_win),
        WITH_LOCK(a_lock_file_that_cannot_be_read_stops_the_program_at_open),
        WITH_LOCK(explain_shows_what_the_lock_answers),
        WITH_LOCK(explain_shows_drift_as_an_error_when_frozen_and_as_a_reason_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
