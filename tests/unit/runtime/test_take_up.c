// What another process stores while this one runs: its calls take it up, without a restart.
#include "fixture.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <stdio.h>
#include <time.h>

typedef struct ground {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    fixture *f;
    hone_store *other; // another process would open the file just so
} ground;

static void open_ground(ground *g, const char *form)
{
    hone_error err;
    memset(g, 0, sizeof *g);
    assert_int_equal(temporary_folder_make(&g->folder), 0);
    snprintf(g->url, sizeof g->url, form, g->folder.path);
    g->f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = g->url});
    if (hone_store_open(hone_allocator_system(), g->url, &g->other, &err) != HONE_OK) fail_msg("%s", err.message);
}

static void close_ground(ground *g)
{
    hone_store_close(&g->other);
    close_fixture(g->f);
    temporary_folder_remove(&g->folder);
}

static hone_store_key key_of(fixture *f, const hone_call *call)
{
    size_t count = 0;
    return (hone_store_key){
        hone_runtime_devices(f->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call), hone_call_spec(call)};
}

static void decide_elsewhere(ground *g, int64_t rows, int64_t cols, const char *kernel)
{
    hone_call *call = describe_scale(g->f, rows, cols);
    const hone_store_decision row = {
        .key = key_of(g->f, call),
        .call = hone_call_text(call),
        .kernel = kernel,
        .platform = "native",
        .config = strcmp(kernel, "fast") == 0 ? "{\"unroll\":4,\"layout\":\"col\"}" : "{}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .time_ns = 1234,
        .evidence = "{}",
    };
    if (hone_store_put(g->other, &row, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    hone_call_release(&call);
}

static void remove_elsewhere(ground *g, int64_t rows, int64_t cols)
{
    hone_call *call = describe_scale(g->f, rows, cols);
    const hone_store_key key = key_of(g->f, call);
    if (hone_store_remove(g->other, &key, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    hone_call_release(&call);
}

static int kernel_of_a_run(fixture *f, int64_t rows, int64_t cols)
{
    int before[KERNELS], ran = -1;
    for (int i = 0; i < KERNELS; i++)
        before[i] = f->probes[i].runs;
    run_example(f, rows, cols);
    for (int i = 0; i < KERNELS; i++)
        if (f->probes[i].runs != before[i]) ran = i;
    return ran;
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

// Runs the call until a kernel runs it, as a program does that knows nothing of stores. A machine may be busy.
static void await_kernel(fixture *f, int64_t rows, int64_t cols, int kernel)
{
    for (int i = 0; i < 3000; i++) {
        if (kernel_of_a_run(f, rows, cols) == kernel) return;
        rest();
    }
    fail_msg("kernel %d never ran", kernel);
}

static const char *const forms[] = {"sqlite:%s/store.db", "json:%s/decisions", "json:%s/decisions.json"};

#define EACH_STORE(g)                                                                                                  \
    for (size_t each = 0; each < sizeof forms / sizeof forms[0]; each++, close_ground(g))                              \
        if (open_ground((g), forms[each]), true)

static void a_call_that_was_guessed_runs_what_another_process_decided(void **state)
{
    ground g;
    (void)state;
    EACH_STORE(&g)
    {
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), FAST);
        assert_int_equal(kernel_of_a_run(g.f, 5, 5), FAST);
        decide_elsewhere(&g, 4, 4, "plain");
        await_kernel(g.f, 4, 4, PLAIN);
        assert_int_equal(kernel_of_a_run(g.f, 5, 5), FAST);
        decide_elsewhere(&g, 5, 5, "plain"); // and so on
        await_kernel(g.f, 5, 5, PLAIN);
    }
}

static void a_call_that_was_decided_runs_what_another_process_decided_since(void **state)
{
    ground g;
    (void)state;
    EACH_STORE(&g)
    {
        decide_elsewhere(&g, 4, 4, "plain");
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), PLAIN);
        decide_elsewhere(&g, 4, 4, "fast");
        await_kernel(g.f, 4, 4, FAST);
        assert_int_equal(g.f->probes[FAST].config, 4); // as it was decided, not by default
        decide_elsewhere(&g, 4, 4, "plain");
        await_kernel(g.f, 4, 4, PLAIN);
        remove_elsewhere(&g, 4, 4);
        await_kernel(g.f, 4, 4, FAST);
    }
}

static void a_plan_that_is_still_right_is_not_made_again(void **state)
{
    ground g;
    (void)state;
    EACH_STORE(&g)
    {
        decide_elsewhere(&g, 4, 4, "plain");
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), PLAIN);
        const int guessed = kernel_of_a_run(g.f, 5, 5);
        decide_elsewhere(&g, 6, 6, "plain");
        (void)decide_scale(g.f, 7, 7); // looks
        const int prepares = g.f->probes[PLAIN].prepares + g.f->probes[FAST].prepares;
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), PLAIN);
        assert_int_equal(kernel_of_a_run(g.f, 5, 5), guessed);
        assert_int_equal(g.f->probes[PLAIN].prepares + g.f->probes[FAST].prepares, prepares);
    }
}

// No time passes between the two: whatever hone says of a call is what the call then does.
static void what_is_told_of_a_call_is_what_its_next_run_does(void **state)
{
    ground g;
    static saying said;
    (void)state;
    EACH_STORE(&g)
    {
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), FAST);
        decide_elsewhere(&g, 4, 4, "plain");
        assert_string_equal(decide_scale(g.f, 4, 4).kernel, "plain");
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), PLAIN);
        decide_elsewhere(&g, 4, 4, "fast");
        hone_call *call = describe_scale(g.f, 4, 4);
        said.size = 0;
        assert_int_equal(hone_explain(g.f->op, call, HONE_TEXT, collect_saying, &said, &g.f->err), HONE_OK);
        hone_call_release(&call);
        assert_non_null(strstr(said.data, "answered by store: native/fast {\"unroll\":4"));
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), FAST);
        assert_int_equal(g.f->probes[FAST].config, 4);
    }
}

// What near calls chose is a better guess than what was first by priority, once they are decided.
static void a_guess_changed_by_near_calls_is_reported_and_run(void **state)
{
    ground g;
    (void)state;
    EACH_STORE(&g)
    {
        assert_int_equal(kernel_of_a_run(g.f, 8, 8), FAST);
        decide_elsewhere(&g, 8, 9, "plain");
        decide_elsewhere(&g, 9, 8, "plain");
        const hone_decision told = decide_scale(g.f, 8, 8);
        assert_string_equal(told.kernel, "plain");
        assert_int_equal(told.source, HONE_SOURCE_TRANSFER);
        assert_int_equal(kernel_of_a_run(g.f, 8, 8), PLAIN);
    }
}

static void what_the_program_told_its_cache_stays(void **state)
{
    ground g;
    (void)state;
    EACH_STORE(&g)
    {
        put_in_cache(g.f, 4, 4, "plain");
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), PLAIN);
        decide_elsewhere(&g, 4, 4, "fast");
        assert_string_equal(decide_scale(g.f, 4, 4).kernel, "plain");
        assert_int_equal(kernel_of_a_run(g.f, 4, 4), PLAIN);
    }
}

static void a_bound_plan_keeps_its_choice_and_says_that_it_is_not_current(void **state)
{
    ground g;
    example e;
    (void)state;
    EACH_STORE(&g)
    {
        const hone_plan *plan = NULL, *anew = NULL;
        make_example(&e, 4, 4);
        assert_int_equal(hone_bind(g.f->op, e.args, 3, &plan, &g.f->err), HONE_OK);
        assert_true(hone_plan_is_current(plan));
        decide_elsewhere(&g, 5, 5, "plain");
        (void)decide_scale(g.f, 5, 5);
        assert_true(hone_plan_is_current(plan)); // that was another call
        decide_elsewhere(&g, 4, 4, "plain");
        for (int i = 0; i < 3000 && hone_plan_is_current(plan); i++)
            rest();
        assert_false(hone_plan_is_current(plan));
        assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
        assert_scaled(&e, 2);
        assert_string_equal(plan->kernel->name, "fast");
        assert_int_equal(hone_bind(g.f->op, e.args, 3, &anew, &g.f->err), HONE_OK);
        assert_string_equal(anew->kernel->name, "plain");
        assert_true(hone_plan_is_current(anew));
        hone_plan_release(&plan);
        hone_plan_release(&anew);
    }
    assert_false(hone_plan_is_current(NULL));
}

// What this process decides itself is no news to hone_run, and bound plans hear of it the same way.
static void a_bound_plan_is_outdated_by_its_own_process_too(void **state)
{
    fixture *f = *state;
    const hone_plan *plan = NULL;
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_bind(f->op, e.args, 3, &plan, &f->err), HONE_OK);
    put_in_cache(f, 4, 4, "plain");
    assert_false(hone_plan_is_current(plan));
    hone_plan_release(&plan);
}

// The runtime is closed, and with it its thread and its stores; the plan lives on.
static void a_bound_plan_outlives_its_runtime(void **state)
{
    ground g;
    example e;
    const hone_plan *plan = NULL;
    (void)state;
    open_ground(&g, forms[0]);
    make_example(&e, 4, 4);
    assert_int_equal(hone_bind(g.f->op, e.args, 3, &plan, &g.f->err), HONE_OK);
    hone_runtime_close(&g.f->rt);
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    hone_plan_release(&plan);
    close_ground(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_was_guessed_runs_what_another_process_decided),
        cmocka_unit_test(a_call_that_was_decided_runs_what_another_process_decided_since),
        cmocka_unit_test(a_plan_that_is_still_right_is_not_made_again),
        cmocka_unit_test(what_is_told_of_a_call_is_what_its_next_run_does),
        cmocka_unit_test(a_guess_changed_by_near_calls_is_reported_and_run),
        cmocka_unit_test(what_the_program_told_its_cache_stays),
        cmocka_unit_test(a_bound_plan_keeps_its_choice_and_says_that_it_is_not_current),
        cmocka_unit_test_setup_teardown(
            a_bound_plan_is_outdated_by_its_own_process_too, setup_runtime, teardown_runtime),
        cmocka_unit_test(a_bound_plan_outlives_its_runtime),
    };
    return cmocka_run_group_tests_name("runtime_take_up", tests, NULL, NULL);
}
