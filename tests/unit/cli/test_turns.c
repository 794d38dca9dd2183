// hone ab --step: the ratio of a pair from the turns of its two sides.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../../cli/ab.h"

#include "../../../cli/cli.h"

#include <math.h>
#include <stdlib.h>

enum { TURNS = 101 };

void cli_no_memory(void)
{
    abort();
}

static uint64_t state = 1;

// Uniform in [0, 1).
static double drawn(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

typedef struct made {
    ab_turn turns[2][TURNS];
    double room[2 * TURNS], values[2];
    bool by_processors;
} made;

static double ratio_of(made *m)
{
    const ab_turn *const sides[2] = {m->turns[0], m->turns[1]};
    m->by_processors = ab_ratio_of_turns(sides, TURNS, m->room, m->values);
    return m->values[1] / m->values[0];
}

// Steps of `work` ns of processors over `threads`, that sleep for `slept` and wait for processors up to `waits` times their
// work, each thread for itself, of which the time shows a part that differs from step to step.
static void fill(ab_turn *turns, double work, double threads, double slept, double waits)
{
    for (int i = 0; i < TURNS; i++) {
        const double ran = work * (0.95 + 0.1 * drawn()), waited = ran * waits * drawn();
        const double most = ran / threads, time = most + slept + waited * (0.2 + 0.8 * drawn());
        turns[i] = (ab_turn){time, ran, most, waited, fmax(time - waited / threads, fmin(time, most))};
    }
}

static void alone_the_time_counts(void **unused)
{
    (void)unused;
    static made m;
    fill(m.turns[0], 10e6, 1, 2e6, 0);
    fill(m.turns[1], 10e6, 1, 3e6, 0);
    assert_float_equal(ratio_of(&m), 13.0 / 12, 0.02);
    assert_false(m.by_processors);
    assert_float_equal(m.values[0], 12e-3, 0.3e-3);
}

static void beside_other_work_processor_time_tells_a_small_difference(void **unused)
{
    (void)unused;
    static made m;
    for (int pair = 0; pair < 20; pair++) {
        fill(m.turns[0], 30e6, 3, 0, 8);
        fill(m.turns[1], 30.6e6, 3, 0, 8);
        assert_float_equal(ratio_of(&m), 1.02, 0.025);
        assert_true(m.by_processors);
    }
}

static void work_that_is_spread_over_more_threads_takes_less_time(void **unused)
{
    (void)unused;
    static made m;
    fill(m.turns[0], 20e6, 1, 0, 4);
    fill(m.turns[1], 20e6, 2, 0, 4);
    assert_float_equal(ratio_of(&m), 0.5, 0.03);
    assert_true(m.by_processors);
}

// As one that waits for a device: what it has of processors says nothing of its step.
static void a_step_that_sleeps_is_told_by_its_time(void **unused)
{
    (void)unused;
    static made m;
    fill(m.turns[0], 1e6, 1, 20e6, 1);
    fill(m.turns[1], 1e6, 1, 30e6, 1);
    assert_float_equal(ratio_of(&m), 31.0 / 21, 0.05);
    assert_false(m.by_processors);
}

// A kernel that says nothing of its threads: all is 0 but the time.
static void without_a_scheduler_that_tells_the_time_counts(void **unused)
{
    (void)unused;
    static made m;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < TURNS; i++)
            m.turns[side][i] = (ab_turn){.time_ns = 1e6 * (1 + side), .undisturbed_ns = 1e6 * (1 + side)};
    assert_float_equal(ratio_of(&m), 2, 1e-9);
    assert_false(m.by_processors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_the_time_counts),
        cmocka_unit_test(beside_other_work_processor_time_tells_a_small_difference),
        cmocka_unit_test(work_that_is_spread_over_more_threads_takes_less_time),
        cmocka_unit_test(a_step_that_sleeps_is_told_by_its_time),
        cmocka_unit_test(without_a_scheduler_that_tells_the_time_counts),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
