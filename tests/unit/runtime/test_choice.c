// Who answers: override > overlay > memory > store > heuristic, what each policy asks, and what is remembered.
#include "fixture.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <stdio.h>

static void assert_answer(fixture *f, hone_source source, const char *kernel)
{
    hone_decision decision = decide_scale(f, 4, 4);
    assert_string_equal(hone_source_name(decision.source), hone_source_name(source));
    assert_string_equal(decision.kernel, kernel);
}

// A store with one decision for scale on 4 x 4, as another process would have left it.
static void put_in_store(fixture *f, const char *url, const char *kernel, const char *config, const char *revision)
{
    hone_store *store = NULL;
    hone_call *call = describe_scale(f, 4, 4);
    size_t count = 0;
    hone_store_decision row = {
        .key =
            {hone_runtime_devices(f->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call),
             hone_call_spec(call)},
        .call = hone_call_text(call),
        .kernel = kernel,
        .platform = "native",
        .config = config,
        .source = "autotune",
        .revision = revision,
        .verified = true,
        .time_ns = 1234,
        .evidence = "{}",
        .environment = "{}",
    };
    if (hone_store_open(hone_allocator_system(), url, &store, &f->err) != HONE_OK ||
        hone_store_put(store, &row, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    hone_store_close(&store);
    hone_call_release(&call);
}

static uint64_t stored_decisions(fixture *f, const char *url)
{
    hone_store *store = NULL;
    hone_store_stat stat = {0};
    if (hone_store_open(hone_allocator_system(), url, &store, &f->err) != HONE_OK ||
        hone_store_get_stat(store, &stat, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    hone_store_close(&store);
    return stat.decisions;
}

typedef struct stored {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    fixture *f;
} stored;

static int setup_stored(void **state)
{
    stored *s = calloc(1, sizeof *s);
    if (temporary_folder_make(&s->folder) != 0) return -1;
    snprintf(s->url, sizeof s->url, "sqlite:%s/store.db", s->folder.path);
    s->f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = s->url});
    *state = s;
    return 0;
}

static int teardown_stored(void **state)
{
    stored *s = *state;
    close_fixture(s->f);
    temporary_folder_remove(&s->folder);
    free(s);
    return 0;
}

static void without_anything_known_the_heuristic_takes_the_first_by_priority(void **state)
{
    fixture *f = *state;
    assert_answer(f, HONE_SOURCE_HEURISTIC, "fast");
    hone_decision decision = decide_scale(f, 4, 4);
    assert_false(decision.verified);
    assert_string_equal(decision.config_json, "{\"unroll\":1,\"layout\":\"row\"}");
    assert_string_equal(decision.algorithm, "scale");
    assert_string_equal(decision.version, "1");
    assert_int_equal(strlen(decision.key), 16);
    assert_int_equal(decision.platform, HONE_NATIVE);
    assert_int_equal(decision.backend, HONE_CPU);
    assert_int_equal(f->probes[FAST].runs, 0);
}

static void each_link_is_asked_before_those_behind_it(void **state)
{
    stored *s = *state;
    fixture *f = s->f;
    assert_answer(f, HONE_SOURCE_HEURISTIC, "fast");
    put_in_store(f, s->url, "fast", "{\"unroll\":2,\"layout\":\"row\"}", "1");
    assert_answer(f, HONE_SOURCE_STORE, "fast");
    assert_answer(f, HONE_SOURCE_MEMORY, "fast"); // what the store said is remembered
    put_in_cache(f, 4, 4, "plain");
    assert_answer(f, HONE_SOURCE_MEMORY, "plain");
    hone_overlay *overlay = overlay_for(f, 4, 4, "fast");
    hone_context *with_overlay = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    hone_context *with_override = derive(
        f, with_overlay, NULL, &(hone_override){.algorithm = "scale", .kernel = "reference"}, HONE_POLICY_DEFAULT);
    hone_context_enter(with_overlay);
    assert_answer(f, HONE_SOURCE_OVERLAY, "fast");
    hone_context_enter(with_override);
    assert_answer(f, HONE_SOURCE_OVERRIDE, "reference");
    hone_context_enter(NULL);
    assert_answer(f, HONE_SOURCE_MEMORY, "plain");
    hone_context_release(&with_override);
    hone_context_release(&with_overlay);
    hone_overlay_release(&overlay);
}

static void an_override_is_not_stored_and_does_not_outlive_its_context(void **state)
{
    stored *s = *state;
    fixture *f = s->f;
    hone_context *context = overriding(f, "plain", NULL);
    hone_context_enter(context);
    run_example(f, 4, 4);
    hone_context_enter(NULL);
    hone_context_release(&context);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    assert_int_equal(stored_decisions(f, s->url), 0);
    assert_int_equal(hone_cache_size(f->rt), 0);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    assert_int_equal(f->probes[FAST].runs, 1);
}

static void an_override_is_stored_when_that_is_asked_for_and_marked_so(void **state)
{
    stored *s = *state;
    fixture *f = s->f;
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    run_example(f, 4, 4);
    hone_context_enter(NULL);
    hone_context_release(&context);
    assert_int_equal(stored_decisions(f, s->url), 1);
    hone_decision decision = decide_scale(f, 4, 4);
    assert_string_equal(decision.kernel, "plain");
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    assert_false(decision.verified);
}

static void an_override_that_cannot_be_stored_answers_all_the_same(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "sqlite:/proc/no/such/folder/store.db"});
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    run_example(f, 4, 4);
    hone_context_enter(NULL);
    hone_context_release(&context);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    close_fixture(f);
}

static void a_heuristic_is_neither_stored_nor_remembered(void **state)
{
    stored *s = *state;
    fixture *f = s->f;
    run_example(f, 4, 4);
    run_example(f, 4, 4);
    (void)decide_scale(f, 4, 4);
    assert_int_equal(stored_decisions(f, s->url), 0);
    assert_int_equal(hone_cache_size(f->rt), 0);
}

static void a_heuristics_plan_goes_when_a_better_answer_comes(void **state)
{
    fixture *f = *state;
    run_example(f, 4, 4);
    run_example(f, 4, 4);
    put_in_cache(f, 4, 4, "plain");
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 2);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    assert_int_equal(f->probes[FAST].releases, 1);
    hone_cache_clear(f->rt);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 3);
}

static void a_tuned_answer_takes_the_place_of_the_heuristics_plan(void **state)
{
    fixture *f = *state;
    atomic_store(&f->probes[FAST].status, HONE_UNSUPPORTED); // so that the contest cannot choose it
    hone_call *call = describe_scale(f, 4, 4);
    hone_result *result = NULL;
    hone_context *plainly = overriding(f, "reference", NULL);
    hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .evaluations = 4, .seconds = 5};
    atomic_store(&f->probes[FAST].status, HONE_OK);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].prepares, 1);
    atomic_store(&f->probes[FAST].status, HONE_UNSUPPORTED);
    if (hone_tune(f->op, call, &options, &result, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    atomic_store(&f->probes[FAST].status, HONE_OK);
    assert_string_equal(hone_result_decision(result, 0)->kernel, "plain");
    int before = f->probes[PLAIN].runs;
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, before + 1);
    hone_decision decision = decide_scale(f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_MEMORY);
    assert_true(decision.verified);
    hone_context_release(&plainly);
    hone_result_release(&result);
    hone_call_release(&call);
}

static void new_kernels_are_considered_where_a_heuristic_answered(void **state)
{
    fixture *f = *state;
    run_example(f, 4, 4);
    probe faster = {0};
    hone_kernel kernel = f->kernels[FAST];
    kernel.name = "faster";
    kernel.priority = 30;
    kernel.user = &faster;
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    run_example(f, 4, 4);
    assert_int_equal(faster.runs, 1);
    hone_cache_clear(f->rt);
    assert_int_equal(faster.releases, 1);
}

static void a_replaced_kernel_is_not_run_again(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "fast");
    run_example(f, 4, 4);
    probe other = {0};
    hone_kernel kernel = f->kernels[FAST];
    kernel.user = &other;
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "fast");
    assert_int_equal(hone_replace_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 1);
    assert_int_equal(other.runs, 1);
    hone_cache_clear(f->rt);
    assert_int_equal(other.releases, 1);
}

static void the_policy_fail_takes_what_is_known_and_guesses_nothing(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FAIL});
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
        assert_says(f, "scale(f32[4,4])");
        assert_says(f, "fail");
        assert_says(f, "memory");
    }
    assert_int_equal(f->probes[FAST].runs, 0);
    put_in_cache(f, 4, 4, "plain");
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    close_fixture(f);
}

static void the_policy_frozen_follows_an_override_and_nothing_else(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FROZEN});
    example e;
    make_example(&e, 4, 4);
    put_in_cache(f, 4, 4, "plain");
    hone_overlay *overlay = overlay_for(f, 4, 4, "plain");
    hone_context *context = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    assert_says(f, "frozen");
    hone_context_enter(NULL);
    hone_context *with_override = overriding(f, "fast", "unroll=4 layout=col");
    hone_context_enter(with_override);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].config, 4);
    hone_context_enter(NULL);
    hone_context_release(&with_override);
    hone_context_release(&context);
    hone_overlay_release(&overlay);
    close_fixture(f);
}

static void an_override_is_followed_under_every_policy(void **state)
{
    (void)state;
    for (int policy = HONE_POLICY_TUNE; policy <= HONE_POLICY_FROZEN; policy++) {
        fixture *f = open_fixture((wish){.policy = (hone_policy)policy});
        hone_context *context = overriding(f, "plain", NULL);
        hone_context_enter(context);
        assert_answer(f, HONE_SOURCE_OVERRIDE, "plain");
        hone_context_enter(NULL);
        hone_context_release(&context);
        close_fixture(f);
    }
}

static void the_policy_tune_tunes_once_and_remembers(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_TUNE, .store = "memory:"});
    hone_decision decision = decide_scale(f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_AUTOTUNE);
    assert_true(decision.verified);
    assert_true(decision.evidence.time_ns > 0);
    assert_int_equal(hone_cache_size(f->rt), 1);
    assert_answer(f, HONE_SOURCE_MEMORY, decision.kernel);
    hone_cache_clear(f->rt);
    assert_answer(f, HONE_SOURCE_STORE, decision.kernel);
    run_example(f, 4, 4);
    close_fixture(f);
}

static void an_override_that_cannot_be_followed_is_an_error_and_not_passed_over(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    hone_kernel picky = f->kernels[PLAIN];
    picky.name = "picky";
    picky.space = "block: 8 | 16\nwhere block <= rows";
    assert_int_equal(hone_register_kernels(f->rt, &picky, 1, &f->err), HONE_OK);
    hone_context *context = overriding(f, "picky", "block=16");
    hone_context_enter(context);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "override");
    assert_says(f, "picky");
    assert_says(f, "block");
    hone_context_enter(NULL);
    hone_context_release(&context);
    put_in_cache(f, 4, 4, "plain");
    run_example(f, 4, 4);
}

static void an_override_is_checked_when_it_is_made(void **state)
{
    static const struct {
        hone_override override_;
        hone_status status;
        const char *says;
    } wrong[] = {
        {{.algorithm = "shrink", .kernel = "fast"}, HONE_NOT_FOUND, "shrink"},
        {{.algorithm = "scale", .kernel = "slow"}, HONE_NOT_FOUND, "slow"},
        {{.algorithm = "scale", .kernel = "fast", .platform = HONE_CUDA}, HONE_NOT_FOUND, "fast"},
        {{.algorithm = "scale", .kernel = "fast", .config = "unroll=3 layout=row"}, HONE_INVALID_ARGUMENT, "unroll"},
        {{.algorithm = "scale", .kernel = "fast", .config = "{\"unroll\":1"}, HONE_INVALID_ARGUMENT, "fast"},
        {{.algorithm = "scale"}, HONE_INVALID_ARGUMENT, "kernel"},
        {{.kernel = "fast"}, HONE_INVALID_ARGUMENT, "algorithm"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hone_context *context = (hone_context *)(void *)f;
        assert_int_equal(
            hone_context_derive(f->rt, NULL, NULL, &wrong[i].override_, HONE_POLICY_DEFAULT, &context, &f->err),
            wrong[i].status);
        assert_null(context);
        assert_says(f, wrong[i].says);
    }
    hone_context *context = NULL;
    assert_int_equal(
        hone_context_derive(f->rt, NULL, NULL, NULL, (hone_policy)9, &context, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "9");
}

static void an_override_of_one_version_leaves_the_others_alone(void **state)
{
    fixture *f = *state;
    hone_algorithm newer;
    hone_algorithm_init(&newer);
    newer.signature = "scale@v2(x: T[rows, cols], *, factor: f64 = 2) -> y: T[rows, cols] where T in f32";
    hone_kernel kernels[2] = {f->kernels[PLAIN], f->kernels[REFERENCE]};
    kernels[0].algorithm = kernels[1].algorithm = "scale@v2";
    assert_int_equal(hone_register_algorithm(f->rt, &newer, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, kernels, 2, &f->err), HONE_OK);
    hone_context *context =
        derive(f, NULL, NULL, &(hone_override){.algorithm = "Scale@v2", .kernel = "reference"}, HONE_POLICY_DEFAULT);
    const hone_op *second = hone_op_find(f->rt, "scale", &f->err);
    assert_ptr_not_equal(second, f->op);
    example e;
    make_example(&e, 4, 4);
    hone_decision decision;
    hone_context_enter(context);
    assert_int_equal(hone_decide(second, e.args, 3, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "reference");
    assert_string_equal(decision.version, "2");
    assert_int_equal(hone_decide(f->op, e.args, 3, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "fast");
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static void a_stored_answer_of_another_revision_is_stale(void **state)
{
    stored *s = *state;
    put_in_store(s->f, s->url, "plain", "{}", "0");
    assert_answer(s->f, HONE_SOURCE_HEURISTIC, "fast");
    put_in_store(s->f, s->url, "plain", "{}", "1");
    assert_answer(s->f, HONE_SOURCE_STORE, "plain");
}

static void a_stored_answer_that_cannot_be_followed_is_passed_over(void **state)
{
    static const struct {
        const char *kernel, *config;
    } rows[] = {
        {"gone", "{}"},         {"fast", "{\"unroll\":3,\"layout\":\"row\"}"},
        {"fast", "{}"},         {"fast", "{\"unroll\":[]}"},
        {"plain", "{\"x\":1}"},
    };
    stored *s = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put_in_store(s->f, s->url, rows[i].kernel, rows[i].config, "1");
        assert_answer(s->f, HONE_SOURCE_HEURISTIC, "fast");
        // Only another program may know the first one's kernel; configs that their kernels do not have are set aside.
        assert_int_equal(stored_decisions(s->f, s->url), i == 0 ? 1 : 0);
    }
    run_example(s->f, 4, 4);
}

static void a_remembered_answer_that_cannot_run_this_call_is_passed_over(void **state)
{
    fixture *f = *state;
    hone_kernel picky = f->kernels[PLAIN];
    picky.name = "picky";
    picky.space = "block: 2 | 8\nwhere block <= rows";
    assert_int_equal(hone_register_kernels(f->rt, &picky, 1, &f->err), HONE_OK);
    char key[20];
    hone_entry entry = entry_for(f, 4, 4, "picky", key);
    entry.config = "block=8";
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    assert_answer(f, HONE_SOURCE_HEURISTIC, "fast");
    entry.config = "{\"block\":2}";
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    assert_answer(f, HONE_SOURCE_MEMORY, "picky");
}

static void an_entry_without_a_config_takes_the_spaces_default_for_the_call(void **state)
{
    fixture *f = *state;
    hone_kernel picky = f->kernels[PLAIN];
    picky.name = "picky";
    picky.space = "block: 8 | 4 | 2\nwhere block <= rows";
    assert_int_equal(hone_register_kernels(f->rt, &picky, 1, &f->err), HONE_OK);
    put_in_cache(f, 4, 4, "picky");
    hone_decision decision = decide_scale(f, 4, 4);
    assert_string_equal(decision.kernel, "picky");
    assert_string_equal(decision.config_json, "{\"block\":4}");
    put_in_cache(f, 32, 4, "picky");
    assert_string_equal(decide_scale(f, 32, 4).config_json, "{\"block\":8}");
}

static void a_key_of_another_calls_spec_is_no_answer(void **state)
{
    fixture *f = *state;
    char key[20];
    hone_entry entry = entry_for(f, 4, 4, "plain", key);
    entry.spec = "{\"another\":\"call with the same 64 bits\"}";
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    assert_answer(f, HONE_SOURCE_HEURISTIC, "fast");
}

static void kernels_that_differ_only_in_backend_are_distinguished(void **state)
{
    fixture *f = *state;
    probe any = {0};
    hone_kernel kernel = f->kernels[PLAIN];
    kernel.backend = HONE_ANY;
    kernel.priority = 5;
    kernel.user = &any;
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    const hone_kernel_ref *ref = NULL;
    assert_int_equal(hone_registry_get(f->rt, &(hone_query){"scale", HONE_NATIVE, HONE_ANY}, &ref, &f->err), HONE_OK);
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_kernel_run(ref, e.args, 3, NULL, &f->err), HONE_OK);
    assert_int_equal(any.runs, 1);
    assert_int_equal(f->probes[PLAIN].runs, 0);
    // At run time too: with the others failing, the one for any hardware is the next.
    atomic_store(&f->probes[FAST].status, HONE_UNSUPPORTED);
    atomic_store(&f->probes[PLAIN].status, HONE_UNSUPPORTED);
    run_example(f, 4, 4);
    assert_int_equal(any.runs, 2);
    hone_cache_clear(f->rt);
    assert_int_equal(any.releases, 2);
}

static void a_call_whose_rounded_shape_breaks_a_condition_has_no_bucket_and_runs(void **state)
{
    fixture *f = *state;
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "most(x: f32[n ~pow2]) -> y: f32[n] where n <= 6";
    hone_kernel kernel = f->kernels[REFERENCE];
    kernel.algorithm = "most";
    kernel.is_reference = false;
    kernel.supports = NULL;
    assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    example e;
    make_example(&e, 6, 1);
    e.tensors[0].ndim = e.tensors[1].ndim = 1;
    hone_decision decision;
    if (hone_decide(hone_op_find(f->rt, "most", &f->err), e.args, 2, &decision, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    assert_false(decision.bucketed);
}

static void a_bucketed_call_finds_what_is_known_of_its_bucket(void **state)
{
    fixture *f = *state;
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "grow(x: f32[n ~pow2]) -> y: f32[n]";
    hone_kernel kernels[2] = {f->kernels[FAST], f->kernels[PLAIN]};
    kernels[0].algorithm = kernels[1].algorithm = "grow";
    assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, kernels, 2, &f->err), HONE_OK);
    const hone_op *op = hone_op_find(f->rt, "grow", &f->err);
    hone_call *bucket = NULL;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(op), "grow(f32[16])", &bucket, &f->err), HONE_OK);
    hone_entry entry = {.algorithm = "grow", .key = hone_call_key(bucket), .kernel = "plain"};
    example e;
    make_example(&e, 11, 1);
    e.tensors[0].ndim = e.tensors[1].ndim = 1;
    hone_decision decision;
    assert_int_equal(hone_decide(op, e.args, 2, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "fast");
    (void)!hone_run(op, e.args, 2, NULL, &f->err);
    assert_int_equal(f->probes[FAST].prepares, 1);
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    assert_int_equal(f->probes[FAST].releases, 1); // the plan was one for a call of the bucket
    assert_int_equal(hone_decide(op, e.args, 2, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "plain");
    assert_true(decision.bucketed);
    assert_string_equal(decision.key, hone_call_key(bucket));
    hone_call_release(&bucket);
}

static void decide_refuses_null_and_writes_nothing_on_failure(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    hone_decision decision;
    memset(&decision, 0x5a, sizeof decision);
    hone_decision before = decision;
    assert_int_equal(hone_decide(NULL, e.args, 3, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_decide(f->op, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_decide_call(f->op, NULL, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_decide(f->op, e.args, 1, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_memory_equal(&decision, &before, sizeof before);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)
#define WITH_STORE(test)   cmocka_unit_test_setup_teardown(test, setup_stored, teardown_stored)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(without_anything_known_the_heuristic_takes_the_first_by_priority),
        WITH_STORE(each_link_is_asked_before_those_behind_it),
        WITH_STORE(an_override_is_not_stored_and_does_not_outlive_its_context),
        WITH_STORE(an_override_is_stored_when_that_is_asked_for_and_marked_so),
        cmocka_unit_test(an_override_that_cannot_be_stored_answers_all_the_same),
        WITH_STORE(a_heuristic_is_neither_stored_nor_remembered),
        WITH_RUNTIME(a_heuristics_plan_goes_when_a_better_answer_comes),
        WITH_RUNTIME(a_tuned_answer_takes_the_place_of_the_heuristics_plan),
        WITH_RUNTIME(new_kernels_are_considered_where_a_heuristic_answered),
        WITH_RUNTIME(a_replaced_kernel_is_not_run_again),
        cmocka_unit_test(the_policy_fail_takes_what_is_known_and_guesses_nothing),
        cmocka_unit_test(the_policy_frozen_follows_an_override_and_nothing_else),
        cmocka_unit_test(an_override_is_followed_under_every_policy),
        cmocka_unit_test(the_policy_tune_tunes_once_and_remembers),
        WITH_RUNTIME(an_override_that_cannot_be_followed_is_an_error_and_not_passed_over),
        WITH_RUNTIME(an_override_is_checked_when_it_is_made),
        WITH_RUNTIME(an_override_of_one_version_leaves_the_others_alone),
        WITH_STORE(a_stored_answer_of_another_revision_is_stale),
        WITH_STORE(a_stored_answer_that_cannot_be_followed_is_passed_over),
        WITH_RUNTIME(a_remembered_answer_that_cannot_run_this_call_is_passed_over),
        WITH_RUNTIME(an_entry_without_a_config_takes_the_spaces_default_for_the_call),
        WITH_RUNTIME(a_key_of_another_calls_spec_is_no_answer),
        WITH_RUNTIME(kernels_that_differ_only_in_backend_are_distinguished),
        WITH_RUNTIME(a_call_whose_rounded_shape_breaks_a_condition_has_no_bucket_and_runs),
        WITH_RUNTIME(a_bucketed_call_finds_what_is_known_of_its_bucket),
        WITH_RUNTIME(decide_refuses_null_and_writes_nothing_on_failure),
    };
    return cmocka_run_group_tests_name("runtime_choice", tests, NULL, NULL);
}
