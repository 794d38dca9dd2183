// Choices against each other: in the order given, verified, by what nothing disturbed.
#include "arena.h"
#include "failing_allocator.h"
#include "tune/tuner.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 4 };

typedef struct duel {
    hone_choice choices[MOST];
    hone_compared results[MOST];
    size_t count;
} duel;

static const hone_algorithm_entry *find(const ground *g, const char *subject)
{
    char name[64];
    snprintf(name, sizeof name, "scale_%s", subject);
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, name, NULL);
    assert_non_null(algorithm);
    return algorithm;
}

static void choose(duel *d, const hone_algorithm_entry *algorithm, const char *kernel, int64_t value)
{
    size_t count;
    const hone_kernel_ref *const *kernels = hone_registry_list(algorithm, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kernels[i]->kernel.name, kernel) != 0) continue;
        hone_config config = {.count = kernels[i]->kernel.space != NULL ? 1 : 0, .values = {value}};
        d->choices[d->count++] = (hone_choice){kernels[i], config};
        return;
    }
    fail_msg("no kernel %s", kernel);
}

static hone_status hold(ground *g, duel *d, const hone_algorithm_entry *algorithm)
{
    char text[64];
    hone_call *call = NULL;
    snprintf(text, sizeof text, "%s(f32[1000])", algorithm->name);
    assert_int_equal(hone_call_parse(g->environment.allocator, algorithm->signature, text, &call, &g->err), HONE_OK);
    if (g->options.seconds == 0) g->options.seconds = 0.2;
    const hone_contest_request request = {&g->environment, algorithm, call, &g->options};
    hone_status status = hone_comparison_run(&request, d->choices, d->count, d->results, &g->err);
    hone_call_release(&call);
    return status;
}

static void the_faster_one_is_reported_with_a_ratio_and_its_interval(void **state)
{
    ground *g = *state;
    duel d = {.count = 0};
    const hone_algorithm_entry *algorithm = find(g, "delayed");
    choose(&d, algorithm, "delayed", 400);
    choose(&d, algorithm, "delayed", 0);
    choose(&d, algorithm, "delayed", 100);
    assert_int_equal(hold(g, &d, algorithm), HONE_OK);
    assert_string_equal(d.results[0].config, "{\"delay\":400}");
    assert_string_equal(d.results[2].kernel, "delayed");
    assert_true(d.results[1].ratio == 1 && d.results[1].low == 1 && d.results[1].high == 1);
    assert_true(d.results[0].ratio > d.results[2].ratio && d.results[2].ratio > 1);
    assert_true(d.results[0].time_ns > d.results[2].time_ns && d.results[2].time_ns > d.results[1].time_ns);
    for (size_t i = 0; i < d.count; i++) {
        const hone_compared *one = &d.results[i];
        assert_true(one->low <= one->ratio && one->ratio <= one->high);
        assert_true(one->low_ns <= one->time_ns && one->time_ns <= one->high_ns);
        assert_true(one->samples >= 5 && one->disturbed <= one->samples);
    }
}

// The medians of the two say nothing: each may lie among the slow or among the fast.
static void what_slows_both_for_a_while_is_not_in_their_ratio(void **state)
{
    ground *g = *state;
    duel d = {.count = 0};
    const hone_algorithm_entry *algorithm = find(g, "changing");
    choose(&d, algorithm, "changing", 10);
    choose(&d, algorithm, "changing", 0);
    g->options.seconds = 1;
    assert_int_equal(hold(g, &d, algorithm), HONE_OK);
    assert_true(d.results[1].ratio == 1);
    const hone_compared *slower = &d.results[0];
    assert_true(slower->ratio > 1.08 && slower->ratio < 1.12);
    assert_true(slower->low > 1.05 && slower->high < 1.15);
}

static void a_choice_that_is_wrong_or_harmful_is_named(void **state)
{
    static const struct {
        const char *subject, *says;
    } rows[] = {{"wrong", "wrong"}, {"segv", "crash"}, {"overrun", "bounds"}};
    ground *g = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        duel d = {.count = 0};
        const hone_algorithm_entry *algorithm = find(g, rows[i].subject);
        choose(&d, algorithm, "good", 0);
        choose(&d, algorithm, rows[i].subject, 0);
        assert_int_equal(hold(g, &d, algorithm), HONE_KERNEL_FAILED);
        assert_non_null(strstr(g->err.message, "choice 2, "));
        assert_non_null(strstr(g->err.message, rows[i].subject));
        assert_non_null(strstr(g->err.message, rows[i].says));
    }
}

static void a_config_that_the_space_does_not_have_is_refused(void **state)
{
    ground *g = *state;
    duel d = {.count = 0};
    const hone_algorithm_entry *algorithm = find(g, "delayed");
    choose(&d, algorithm, "good", 0);
    choose(&d, algorithm, "delayed", 7);
    assert_int_equal(hold(g, &d, algorithm), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(g->err.message, "choice 2, delayed"));
}

static void a_kernel_of_another_algorithm_is_refused(void **state)
{
    ground *g = *state;
    duel d = {.count = 0};
    choose(&d, find(g, "delayed"), "good", 0);
    choose(&d, find(g, "wrong"), "good", 0);
    assert_int_equal(hold(g, &d, find(g, "delayed")), HONE_UNSUPPORTED);
    assert_non_null(strstr(g->err.message, "choice 2, good"));
}

static void cancelling_ends_it(void **state)
{
    ground *g = *state;
    duel d = {.count = 0};
    const int now = 1;
    const hone_algorithm_entry *algorithm = find(g, "delayed");
    choose(&d, algorithm, "good", 0);
    choose(&d, algorithm, "delayed", 0);
    g->options.cancel = &now;
    assert_int_equal(hold(g, &d, algorithm), HONE_CANCELLED);
}

static void every_allocation_of_a_comparison_may_fail(void **state)
{
    ground *g = *state;
    failing_allocator memory;
    duel d = {.count = 0};
    hone_call *call = NULL;
    const hone_algorithm_entry *algorithm = find(g, "delayed");
    choose(&d, algorithm, "good", 0);
    choose(&d, algorithm, "delayed", 0);
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), algorithm->signature, "scale_delayed(f32[10])", &call, &g->err),
        HONE_OK);
    g->options = (hone_tune_options){.seconds = 0.001, .isolation = HONE_ISOLATION_IN_PROCESS};
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK; left++) {
        g->environment.allocator = failing_allocator_of(&memory, left);
        const hone_contest_request request = {&g->environment, algorithm, call, &g->options};
        status = hone_comparison_run(&request, d.choices, d.count, d.results, &g->err);
        // A candidate that has no memory is refused as one that fails.
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY || status == HONE_KERNEL_FAILED);
        assert_int_equal(atomic_load(&memory.live), 0);
        assert_true(left < 1000);
    }
    g->environment.allocator = hone_allocator_system();
    hone_call_release(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_GROUND(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
        IN_GROUND(the_faster_one_is_reported_with_a_ratio_and_its_interval),
        IN_GROUND(what_slows_both_for_a_while_is_not_in_their_ratio),
        IN_GROUND(a_choice_that_is_wrong_or_harmful_is_named),
        IN_GROUND(a_config_that_the_space_does_not_have_is_refused),
        IN_GROUND(a_kernel_of_another_algorithm_is_refused),
        IN_GROUND(cancelling_ends_it),
        IN_GROUND(every_allocation_of_a_comparison_may_fail),
    };
    return cmocka_run_group_tests_name("comparison", tests, NULL, NULL);
}
