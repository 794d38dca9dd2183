// Contexts and overlays: what is asked first, what threads start with, and who owns what.
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>

static const char *answering(fixture *f)
{
    static char kernel[HONE_NAME_SIZE];
    hone_decision decision = decide_scale(f, 4, 4);
    snprintf(kernel, sizeof kernel, "%s", decision.kernel);
    return kernel;
}

static void the_newest_overlay_is_asked_first_and_older_ones_for_what_it_leaves_open(void **state)
{
    fixture *f = *state;
    hone_overlay *older[] = {overlay_for(f, 4, 4, "plain"), overlay_for(f, 5, 5, "plain")};
    hone_overlay *newer = overlay_for(f, 4, 4, "reference");
    hone_context *outer = derive(f, NULL, older[0], NULL, HONE_POLICY_DEFAULT);
    hone_context *middle = derive(f, outer, older[1], NULL, HONE_POLICY_DEFAULT);
    hone_context *deepest = derive(f, middle, newer, NULL, HONE_POLICY_DEFAULT);
    hone_context_enter(deepest);
    assert_string_equal(answering(f), "reference");
    assert_string_equal(decide_scale(f, 5, 5).kernel, "plain");
    assert_string_equal(decide_scale(f, 6, 6).kernel, "fast");
    hone_context_enter(middle);
    assert_string_equal(answering(f), "plain");
    hone_context_enter(outer);
    assert_string_equal(decide_scale(f, 5, 5).kernel, "fast");
    hone_context_enter(NULL);
    assert_string_equal(answering(f), "fast");
    hone_context_release(&outer); // the inner ones keep it
    hone_context_release(&middle);
    hone_overlay_release(&newer);
    hone_context_enter(deepest);
    assert_string_equal(answering(f), "reference");
    hone_context_enter(NULL);
    hone_context_release(&deepest);
    assert_null(deepest);
    hone_overlay_release(&older[0]);
    hone_overlay_release(&older[1]);
}

static void a_context_is_entered_twice_and_left_in_order(void **state)
{
    fixture *f = *state;
    hone_context *a = derive(f, NULL, NULL, NULL, HONE_POLICY_FAIL);
    hone_context *b = derive(f, a, NULL, NULL, HONE_POLICY_DEFAULT);
    assert_null(hone_context_enter(a));
    assert_ptr_equal(hone_context_enter(a), a);
    assert_ptr_equal(hone_context_enter(b), a);
    assert_ptr_equal(hone_context_current(), b);
    assert_ptr_equal(hone_context_enter(a), b);
    assert_ptr_equal(hone_context_enter(a), a);
    assert_ptr_equal(hone_context_enter(NULL), a);
    assert_null(hone_context_current());
    hone_context_release(&a);
    hone_context_release(&b);
}

static void numbers_are_never_used_again(void **state)
{
    fixture *f = *state;
    uint64_t last = 0;
    assert_true(hone_context_number(NULL) == 0);
    for (int i = 0; i < 100; i++) {
        hone_context *context = derive(f, NULL, NULL, NULL, HONE_POLICY_DEFAULT);
        assert_true(hone_context_number(context) > last);
        last = hone_context_number(context);
        hone_context_release(&context);
    }
}

static void a_plan_of_one_context_does_not_answer_in_another(void **state)
{
    fixture *f = *state;
    hone_context *contexts[] = {NULL, overriding(f, "plain", NULL), overriding(f, "reference", NULL)};
    for (int i = 0; i < 9; i++) {
        hone_context_enter(contexts[i % 3]);
        run_example(f, 4, 4);
    }
    hone_context_enter(NULL);
    for (int i = 0; i < KERNELS; i++)
        assert_int_equal(f->probes[i].runs, 3);
    for (int i = 1; i < 3; i++)
        hone_context_release(&contexts[i]);
}

// A number that was given out again would find the plan of the context that died.
static void a_context_made_after_another_died_starts_anew(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 20; i++) {
        hone_context *context = overriding(f, i % 2 == 0 ? "plain" : "reference", NULL);
        hone_context_enter(context);
        run_example(f, 4, 4);
        hone_context_enter(NULL);
        hone_context_release(&context);
    }
    assert_int_equal(f->probes[PLAIN].runs, 10);
    assert_int_equal(f->probes[REFERENCE].runs, 10);
}

static void a_policy_holds_until_a_newer_one_is_given(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    hone_context *failing = derive(f, NULL, NULL, NULL, HONE_POLICY_FAIL);
    hone_context *inherits = derive(f, failing, NULL, NULL, HONE_POLICY_DEFAULT);
    hone_context *guesses = derive(f, inherits, NULL, NULL, HONE_POLICY_HEURISTIC);
    hone_context_enter(failing);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    hone_context_enter(inherits);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    hone_context_enter(guesses);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    hone_context_enter(failing);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    hone_context_enter(NULL);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    hone_context_release(&failing);
    hone_context_release(&inherits);
    hone_context_release(&guesses);
}

typedef struct visitor {
    fixture *f;
    hone_context *captured;
    char without[HONE_NAME_SIZE], with[HONE_NAME_SIZE];
    bool started_with_none;
} visitor;

static void *visit(void *ctx)
{
    visitor *v = ctx;
    v->started_with_none = hone_context_current() == NULL;
    example e;
    make_example(&e, 4, 4);
    hone_decision decision;
    if (hone_decide(v->f->op, e.args, 3, &decision, NULL) == HONE_OK) strcpy(v->without, decision.kernel);
    hone_context *previous = hone_context_enter(v->captured);
    if (hone_decide(v->f->op, e.args, 3, &decision, NULL) == HONE_OK) strcpy(v->with, decision.kernel);
    hone_context_enter(previous);
    return NULL;
}

static void a_thread_starts_with_none_and_enters_what_its_maker_captured(void **state)
{
    fixture *f = *state;
    hone_context *context = overriding(f, "plain", NULL);
    hone_context_enter(context);
    visitor v = {.f = f, .captured = hone_context_retain(hone_context_current())};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, visit, &v), 0);
    pthread_join(thread, NULL);
    assert_true(v.started_with_none);
    assert_string_equal(v.without, "fast");
    assert_string_equal(v.with, "plain");
    assert_ptr_equal(hone_context_current(), context);
    hone_context_enter(NULL);
    hone_context_release(&v.captured);
    hone_context_release(&context);
}

static void *fail_a_thousand_times(void *ctx)
{
    visitor *v = ctx;
    hone_context_enter(v->captured);
    example e;
    make_example(&e, 4, 4);
    v->started_with_none = true;
    for (int i = 0; i < 1000; i++)
        if (hone_run(v->f->op, e.args, 3, NULL, NULL) != HONE_NOT_FOUND) v->started_with_none = false;
    hone_context_enter(NULL);
    return NULL;
}

static void policies_of_two_threads_do_not_touch_each_other_or_the_runtimes(void **state)
{
    fixture *f = *state;
    visitor v = {.f = f, .captured = derive(f, NULL, NULL, NULL, HONE_POLICY_FAIL)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_a_thousand_times, &v), 0);
    for (int i = 0; i < 1000; i++)
        run_example(f, 4, 4);
    pthread_join(thread, NULL);
    assert_true(v.started_with_none);
    assert_int_equal(f->probes[FAST].runs, 1000);
    hone_context_release(&v.captured);
}

static void the_cache_is_read_through_the_overlays_of_the_current_context(void **state)
{
    fixture *f = *state;
    char key[20];
    hone_entry entry = entry_for(f, 4, 4, "plain", key);
    hone_decision decision;
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale", key, &decision, &f->err), HONE_NOT_FOUND);
    assert_says(f, key);
    hone_overlay *overlay = NULL;
    assert_int_equal(hone_overlay_create(f->rt, &entry, 1, &overlay, &f->err), HONE_OK);
    hone_context *context = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    put_in_cache(f, 4, 4, "fast");
    hone_context_enter(context);
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale", key, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "plain");
    hone_context_enter(NULL);
    assert_int_equal(hone_cache_get(f->rt, NULL, "Scale@v1", key, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "fast");
    assert_string_equal(decision.config_json, "{\"unroll\":4,\"layout\":\"col\"}");
    hone_context_release(&context);
    hone_overlay_release(&overlay);
}

static void an_overlay_for_one_device_is_asked_before_one_for_any_and_not_on_another(void **state)
{
    fixture *f = *state;
    size_t count = 0;
    const char *here = hone_runtime_devices(f->rt, &count)[0]->fingerprint;
    char key[20];
    hone_entry entries[] = {
        entry_for(f, 4, 4, "plain", key), entry_for(f, 4, 4, "fast", key), entry_for(f, 4, 4, "reference", key)};
    entries[1].device = here;
    entries[2].device = "cpu|another machine|with a bar in its name";
    hone_overlay *overlay = NULL;
    assert_int_equal(hone_overlay_create(f->rt, entries, 3, &overlay, &f->err), HONE_OK);
    assert_int_equal(hone_overlay_size(overlay), 3);
    hone_context *context = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    hone_decision decision;
    assert_int_equal(hone_cache_get(f->rt, here, "scale", key, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "fast");
    assert_int_equal(hone_cache_get(f->rt, entries[2].device, "scale", key, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "reference");
    assert_int_equal(hone_cache_get(f->rt, "cpu|a third", "scale", key, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "plain");
    hone_context_enter(NULL);
    hone_context_release(&context);
    hone_overlay_release(&overlay);
}

static void a_wrong_entry_is_refused_by_its_field_and_makes_no_overlay(void **state)
{
    static const char key[] = "0123456789abcdef";
    static const struct {
        hone_entry entry;
        hone_status status;
        const char *says;
    } wrong[] = {
        {{.algorithm = "shrink", .key = key, .kernel = "fast"}, HONE_NOT_FOUND, "shrink"},
        {{.algorithm = "scale@v3", .key = key, .kernel = "fast"}, HONE_NOT_FOUND, "scale"},
        {{.algorithm = "", .key = key, .kernel = "fast"}, HONE_INVALID_ARGUMENT, "algorithm"},
        {{.algorithm = "scale", .key = "0123", .kernel = "fast"}, HONE_INVALID_ARGUMENT, "0123"},
        {{.algorithm = "scale", .key = "0123456789ABCDEF", .kernel = "fast"}, HONE_INVALID_ARGUMENT, "lower-case"},
        {{.algorithm = "scale", .key = key, .kernel = "slow"}, HONE_NOT_FOUND, "slow"},
        {{.algorithm = "scale", .key = key, .kernel = "fast", .config = "unroll=1"}, HONE_INVALID_ARGUMENT, "layout"},
        {{.algorithm = "scale", .key = key, .kernel = "fast", .config = "{"}, HONE_INVALID_ARGUMENT, "config"},
        {{.algorithm = "scale", .key = key, .kernel = "plain", .config = "a=1"}, HONE_INVALID_ARGUMENT, "'a'"},
        {{.algorithm = "scale", .key = key}, HONE_INVALID_ARGUMENT, "kernel"},
        {{.algorithm = "scale", .kernel = "fast"}, HONE_INVALID_ARGUMENT, "key"},
        {{.key = key, .kernel = "fast"}, HONE_INVALID_ARGUMENT, "algorithm"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hone_overlay *overlay = (hone_overlay *)(void *)f;
        char sound[20];
        hone_entry entries[] = {entry_for(f, 4, 4, "plain", sound), wrong[i].entry};
        assert_int_equal(hone_overlay_create(f->rt, entries, 2, &overlay, &f->err), wrong[i].status);
        assert_null(overlay);
        assert_says(f, wrong[i].says);
        assert_int_equal(hone_cache_put(f->rt, &wrong[i].entry, &f->err), wrong[i].status);
        assert_says(f, wrong[i].says);
    }
    assert_int_equal(hone_cache_size(f->rt), 0);
}

static void null_is_no_context_and_no_overlay(void **state)
{
    fixture *f = *state;
    hone_context *nothing = NULL;
    hone_overlay *empty = NULL;
    assert_null(hone_context_enter(NULL));
    assert_null(hone_context_retain(NULL));
    hone_context_release(&nothing);
    hone_overlay_release(&empty);
    assert_int_equal(hone_overlay_size(NULL), 0);
    assert_int_equal(hone_overlay_create(f->rt, NULL, 0, &empty, &f->err), HONE_OK);
    assert_int_equal(hone_overlay_size(empty), 0);
    hone_overlay_release(&empty);
    assert_int_equal(hone_overlay_create(NULL, NULL, 0, &empty, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_overlay_create(f->rt, NULL, 1, &empty, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(
        hone_context_derive(NULL, NULL, NULL, NULL, HONE_POLICY_DEFAULT, &nothing, &f->err), HONE_INVALID_ARGUMENT);
}

static void contexts_and_overlays_outlive_the_runtime_they_were_made_in(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    hone_overlay *overlay = overlay_for(f, 4, 4, "plain");
    hone_context *context = derive(f, NULL, overlay, NULL, HONE_POLICY_FAIL);
    close_fixture(f);
    assert_int_equal(hone_overlay_size(overlay), 1);
    hone_overlay_release(&overlay);
    hone_context_release(&context);
}

static void thousands_of_nested_contexts_are_given_back_without_deep_recursion(void **state)
{
    fixture *f = *state;
    hone_context *context = NULL;
    for (int i = 0; i < 100000; i++) {
        hone_context *parent = context;
        context = derive(f, parent, NULL, NULL, HONE_POLICY_DEFAULT);
        hone_context_release(&parent);
    }
    hone_context_release(&context);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(the_newest_overlay_is_asked_first_and_older_ones_for_what_it_leaves_open),
        WITH_RUNTIME(a_context_is_entered_twice_and_left_in_order),
        WITH_RUNTIME(numbers_are_never_used_again),
        WITH_RUNTIME(a_plan_of_one_context_does_not_answer_in_another),
        WITH_RUNTIME(a_context_made_after_another_died_starts_anew),
        WITH_RUNTIME(a_policy_holds_until_a_newer_one_is_given),
        WITH_RUNTIME(a_thread_starts_with_none_and_enters_what_its_maker_captured),
        WITH_RUNTIME(policies_of_two_threads_do_not_touch_each_other_or_the_runtimes),
        WITH_RUNTIME(the_cache_is_read_through_the_overlays_of_the_current_context),
        WITH_RUNTIME(an_overlay_for_one_device_is_asked_before_one_for_any_and_not_on_another),
        WITH_RUNTIME(a_wrong_entry_is_refused_by_its_field_and_makes_no_overlay),
        WITH_RUNTIME(null_is_no_context_and_no_overlay),
        cmocka_unit_test(contexts_and_overlays_outlive_the_runtime_they_were_made_in),
        WITH_RUNTIME(thousands_of_nested_contexts_are_given_back_without_deep_recursion),
    };
    return cmocka_run_group_tests_name("runtime_contexts", tests, NULL, NULL);
}
