// The rule by which a candidate is measured no further, and the loops that follow it, on samples made up here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "platforms/platform.h"
#include "tune/rule/stopping.h"

#include <string.h>

// A script of samples; the clock goes on by what they take, unless it stands still.
typedef struct script {
    const double *samples;
    const double *waited; // what is above 0 is disturbed; NULL: nothing is
    unsigned marks;       // of all samples beside that
    uint32_t count, taken;
    double warm_ns, warm_waited, clock_ns;
    bool stands_still, is_shared, is_patient;
    uint32_t fails_at; // 0: never
} script;

static double take_next(script *s)
{
    double ns = s->samples[s->taken % s->count];
    s->taken++;
    if (!s->stands_still) s->clock_ns += ns;
    return ns;
}

static hone_failure warm(void *ctx, hone_sample *out, hone_error *err)
{
    const script *s = ctx;
    (void)err;
    *out = (hone_sample){s->warm_ns, s->warm_waited, s->warm_waited > 0};
    return HONE_FAILURE_NONE;
}

static hone_failure sample(void *ctx, hone_sample *out, double *out_spent_ns, hone_error *err)
{
    script *s = ctx;
    if (s->fails_at > 0 && s->taken + 1 == s->fails_at) {
        hone_fail(err, HONE_KERNEL_FAILED, "test", "no more");
        return HONE_FAILURE_RUN;
    }
    uint32_t at = s->taken % s->count;
    *out = (hone_sample){0};
    if (s->waited != NULL) out->waited = s->waited[at];
    out->marks = s->marks | (out->waited > 0);
    out->time_ns = *out_spent_ns = take_next(s);
    return HONE_FAILURE_NONE;
}

static hone_failure turn(void *ctx, uint32_t index, hone_sample *out, hone_error *err)
{
    script *s = ctx;
    (void)err;
    if (s->fails_at > 0 && s->taken + 1 == s->fails_at) return HONE_FAILURE_WRONG;
    *out = (hone_sample){take_next(s) * (index + 1), 0.5, index};
    return HONE_FAILURE_NONE;
}

static uint64_t now_ns(void *ctx)
{
    return (uint64_t)((script *)ctx)->clock_ns;
}

static hone_trial race(script *s, double best_ns, double noise, double limit_ns)
{
    const hone_stopping stopping = {best_ns, noise, limit_ns, s->is_shared, s->is_patient, 0};
    const hone_sampler sampler = {s, warm, sample, now_ns};
    hone_trial trial = {0};
    hone_error err = {0};
    assert_int_equal(hone_stopping_run(&stopping, &sampler, &trial, &err), HONE_FAILURE_NONE);
    return trial;
}

static const double ms = 1e6;

static void without_a_best_a_candidate_is_measured_in_full(void **state)
{
    (void)state;
    const double times[] = {9 * ms, 1 * ms, 30 * ms, 2 * ms, 3 * ms};
    script s = {.samples = times, .count = 5, .warm_ns = 5 * ms};
    hone_trial trial = race(&s, 0, 0, 1e12);
    assert_int_equal(trial.samples, 5);
    assert_int_equal(trial.kept, 5);
    assert_false(trial.dropped);
    assert_true(trial.time_ns == 3 * ms);
    assert_true(trial.low_ns == 1 * ms);
}

static void a_first_run_that_takes_four_times_the_best_is_the_last(void **state)
{
    (void)state;
    const double times[] = {1 * ms};
    script s = {.samples = times, .count = 1, .warm_ns = 4.1 * ms};
    hone_trial trial = race(&s, 1 * ms, 0, 1e12);
    assert_true(trial.dropped);
    assert_int_equal(s.taken, 0);
    assert_true(trial.time_ns == 4.1 * ms);
}

static void one_sample_of_twice_the_best_is_enough(void **state)
{
    (void)state;
    const double times[] = {2.1 * ms};
    script s = {.samples = times, .count = 1, .warm_ns = 2.1 * ms};
    assert_true(race(&s, 1 * ms, 0, 1e12).dropped);
    assert_int_equal(s.taken, 1);
}

static void fewer_samples_suffice_if_samples_agree(void **state)
{
    (void)state;
    const double times[] = {1.06 * ms};
    script quiet = {.samples = times, .count = 1, .warm_ns = 1.06 * ms}, unknown = quiet;
    assert_true(race(&quiet, 1 * ms, 0.01, 1e12).dropped);
    assert_int_equal(quiet.taken, 1);
    assert_false(race(&unknown, 1 * ms, 0, 1e12).dropped);
    assert_int_equal(unknown.taken, 5);
}

// The rule itself: what the least of so many samples may be over the best, and when there are enough.
static void each_bound_of_the_rule_stands_where_it_is_said_to(void **state)
{
    (void)state;
    static const struct {
        double noise;
        uint32_t count;
        double bound; // over the best
    } bounds[] = {{0, 1, 2},         {0, 2, 1.15}, {0, 9, 1.15},  {0.01, 1, 1.0466},
                  {0.01, 2, 1.0233}, {0.9, 1, 2},  {0.9, 2, 1.15}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const hone_stopping stopping = {1 * ms, bounds[i].noise, 1e12, false, false, 0};
        hone_sample samples[9] = {{0}};
        for (int over = 0; over < 2; over++) {
            for (int k = 0; k < 9; k++)
                samples[k].time_ns = (bounds[i].bound + (over ? 1e-5 : -1e-5)) * ms;
            assert_int_equal(
                hone_stopping_judge(&stopping, samples, bounds[i].count, 0, false),
                over ? HONE_STOPPING_BEATEN : HONE_STOPPING_GOES_ON);
        }
    }
    const hone_stopping alone = {0, 0, 1e12, false, false, 0}, beside = {1 * ms, 0, 1e12, false, false, 0};
    hone_sample samples[15] = {{0}};
    assert_int_equal(hone_stopping_judge(&alone, samples, 4, 2 * ms, false), HONE_STOPPING_GOES_ON);
    assert_int_equal(hone_stopping_judge(&alone, samples, 5, 1.999 * ms, false), HONE_STOPPING_GOES_ON);
    assert_int_equal(hone_stopping_judge(&alone, samples, 5, 2 * ms, false), HONE_STOPPING_ENOUGH);
    assert_int_equal(hone_stopping_judge(&alone, samples, 14, 1 * ms, false), HONE_STOPPING_GOES_ON);
    assert_int_equal(hone_stopping_judge(&alone, samples, 15, 1 * ms, false), HONE_STOPPING_ENOUGH);
    assert_int_equal(hone_stopping_judge(&alone, samples, 1, 900 * ms, true), HONE_STOPPING_GOES_ON);
    assert_int_equal(hone_stopping_judge(&alone, samples, 2, 900 * ms, true), HONE_STOPPING_ENOUGH);
    assert_int_equal(hone_stopping_judge_warm(&beside, &(hone_sample){4 * ms, 0, 0}), HONE_STOPPING_GOES_ON);
    assert_int_equal(hone_stopping_judge_warm(&beside, &(hone_sample){4.001 * ms, 0, 0}), HONE_STOPPING_BEATEN);
    assert_int_equal(hone_stopping_judge_warm(&alone, &(hone_sample){900 * ms, 0, 0}), HONE_STOPPING_GOES_ON);
}

static void a_sample_more_is_taken_where_half_a_nanosecond_is_missing(void **state)
{
    (void)state;
    const double times[] = {399999.9};
    script s = {.samples = times, .count = 1, .warm_ns = 399999.9};
    assert_int_equal(race(&s, 0, 0, 1e12).samples, 6);
}

static void a_single_slow_sample_is_given_the_benefit_of_the_doubt(void **state)
{
    (void)state;
    const double times[] = {1.04 * ms, 1.001 * ms, 1.04 * ms};
    script s = {.samples = times, .count = 3, .warm_ns = 1 * ms};
    hone_trial trial = race(&s, 1 * ms, 0.01, 1e12);
    assert_false(trial.dropped);
    assert_int_equal(trial.samples, 5);
}

static void short_runs_are_sampled_on_and_long_ones_twice(void **state)
{
    (void)state;
    const double quick[] = {1000}, slow[] = {300 * ms};
    script s = {.samples = quick, .count = 1, .warm_ns = 1000};
    assert_int_equal(race(&s, 0, 0, 1e12).samples, 15);
    s = (script){.samples = slow, .count = 1, .warm_ns = 300 * ms};
    assert_int_equal(race(&s, 0, 0, 1e12).samples, 2);
    assert_int_equal(s.taken, 2);
}

static void the_limit_ends_it_with_what_there_is(void **state)
{
    (void)state;
    const double times[] = {1 * ms};
    script s = {.samples = times, .count = 1, .warm_ns = 1 * ms};
    hone_trial trial = race(&s, 0, 0, 1.5 * ms);
    assert_int_equal(trial.samples, 2);
    assert_false(trial.dropped);
}

static void a_clock_that_stands_still_ends_too(void **state)
{
    (void)state;
    const double times[] = {0};
    script s = {.samples = times, .count = 1, .stands_still = true};
    assert_int_equal(race(&s, 0, 0, 1 * ms).samples, 15);
}

static void a_sample_that_fails_is_the_candidates_failure(void **state)
{
    (void)state;
    const double times[] = {1 * ms};
    script s = {.samples = times, .count = 1, .warm_ns = 1 * ms, .fails_at = 3};
    const hone_stopping stopping = {0, 0, 1e12, false, false, 0};
    const hone_sampler sampler = {&s, warm, sample, now_ns};
    hone_trial trial = {0};
    hone_error err = {0};
    assert_int_equal(hone_stopping_run(&stopping, &sampler, &trial, &err), HONE_FAILURE_RUN);
    assert_string_equal(err.message, "no more");
}

static hone_trial trial_of(double time_ns, double low_ns, uint32_t samples)
{
    return (hone_trial){.time_ns = time_ns, .low_ns = low_ns, .samples = samples};
}

// What others do to a machine makes samples long, so that a long one that was disturbed says nothing.
static void disturbed_samples_neither_drop_a_candidate_nor_count_beside_others(void **state)
{
    (void)state;
    const double times[] = {3 * ms, 3 * ms, 0.9 * ms, 0.95 * ms, 3 * ms, 1 * ms};
    const double waited[] = {0.7, 0.7, 0, 0, 0.7, 0};
    script s = {.samples = times, .waited = waited, .count = 6, .warm_ns = 7 * ms, .warm_waited = 0.9};
    hone_trial trial = race(&s, 1 * ms, 0.01, 1e12);
    assert_false(trial.dropped);
    assert_int_equal(trial.taken, 6); // until three were undisturbed
    assert_int_equal(trial.disturbed, 3);
    assert_int_equal(trial.samples, 3);
    assert_true(trial.time_ns == 0.95 * ms && trial.low_ns == 0.9 * ms && trial.high_ns == 1 * ms);
}

// With what it waited taken off, at most half.
static void a_candidate_that_is_never_left_alone_is_known_by_what_waited_least(void **state)
{
    (void)state;
    const double times[] = {2 * ms, 2 * ms, 2 * ms, 9 * ms};
    const double waited[] = {0.5, 0.25, 0.5, 0.9};
    script s = {.samples = times, .waited = waited, .count = 4, .warm_ns = 1 * ms};
    hone_trial trial = race(&s, 1 * ms, 0.01, 1e12);
    assert_false(trial.dropped);
    assert_int_equal(trial.taken, 8);
    assert_int_equal(trial.disturbed, 8);
    assert_int_equal(trial.samples, 3);
    assert_true(trial.time_ns == 1.5 * ms && trial.low_ns == 1 * ms);
    hone_noise noise = {0};
    hone_noise_add(&noise, &trial);
    assert_int_equal(noise.count, 0);
    const double slow[] = {8.2 * ms};
    s = (script){.samples = slow, .waited = waited, .count = 1, .warm_ns = 1 * ms};
    assert_true(race(&s, 1 * ms, 0.01, 1e12).dropped);
}

// Threads that wait for each other in a loop stand still for slices of the scheduler, whatever the work takes.
static void one_of_few_configs_is_not_believed_to_be_slow_before_it_was_left_alone(void **state)
{
    (void)state;
    const double times[] = {14 * ms, 12 * ms, 14 * ms, 0.08 * ms, 0.09 * ms, 0.08 * ms, 0.08 * ms};
    const double waited[] = {1, 1, 1, 0, 0, 0, 0};
    const script whole = {
        .samples = times, .waited = waited, .count = 7, .warm_ns = 28 * ms, .warm_waited = 1, .is_patient = true};
    script s = whole;
    hone_trial trial = race(&s, 0.1 * ms, 0.01, 1e12);
    assert_false(trial.dropped);
    assert_true(trial.low_ns == 0.08 * ms);
    s = whole;
    s.is_patient = false;
    assert_true(race(&s, 0.1 * ms, 0.01, 1e12).dropped);
    // Six of them, or 100 ms, are enough; and one that nothing disturbed.
    s = whole;
    s.count = 3;
    trial = race(&s, 0.1 * ms, 0.01, 1e12);
    assert_true(trial.dropped);
    assert_int_equal(trial.taken, 6);
    const double long_times[] = {60 * ms};
    s = (script){.samples = long_times, .waited = waited, .count = 1, .warm_ns = 1 * ms, .is_patient = true};
    assert_int_equal(race(&s, 1 * ms, 0.01, 1e12).taken, 2);
    s = whole;
    s.waited = NULL;
    s.warm_waited = 0;
    trial = race(&s, 2 * ms, 0.01, 1e12);
    assert_true(trial.dropped);
    assert_int_equal(trial.taken, 1);
}

// A neighbour on its device says nothing against a candidate, unless it was there when the best was measured, too.
static void samples_on_a_shared_device_compare_if_the_best_shared_its_device(void **state)
{
    (void)state;
    const double times[] = {1.6 * ms, 1.5 * ms, 1.7 * ms};
    script s = {.samples = times, .marks = HONE_DEVICE_SHARED, .count = 3, .warm_ns = 1 * ms};
    hone_trial trial = race(&s, 1 * ms, 0.01, 1e12);
    assert_false(trial.dropped);
    assert_int_equal(trial.samples, trial.taken); // none of them waited less than another
    assert_true(trial.time_ns == 1.6 * ms);
    assert_true(hone_trial_shared_its_device(&trial));
    s.is_shared = true;
    trial = race(&s, 1 * ms, 0.01, 1e12);
    assert_true(trial.dropped);
    s = (script){.samples = times, .count = 3, .warm_ns = 1 * ms};
    trial = race(&s, 2 * ms, 0.01, 1e12);
    assert_false(hone_trial_shared_its_device(&trial));
}

static void noise_is_what_samples_differ_by(void **state)
{
    (void)state;
    hone_noise noise = {0};
    assert_true(hone_noise_level(&noise) == 0);
    hone_trial one = trial_of(1.01 * ms, 1.00 * ms, 5), single = trial_of(9 * ms, 1 * ms, 1), failed = one;
    failed.failure = HONE_FAILURE_WRONG;
    for (int i = 0; i < 4; i++) {
        assert_true(hone_noise_level(&noise) == 0);
        hone_noise_add(&noise, &one);
        hone_noise_add(&noise, &single);
        hone_noise_add(&noise, &failed);
    }
    assert_true(hone_noise_level(&noise) > 0.008 && hone_noise_level(&noise) < 0.009);
    hone_trial calm = trial_of(1 * ms, 1 * ms, 5);
    for (int i = 0; i < 1000; i++)
        hone_noise_add(&noise, &calm);
    assert_true(hone_noise_level(&noise) == 0.002);
}

static void rounds_give_everybody_one_sample_each_in_random_order(void **state)
{
    (void)state;
    const double times[] = {1 * ms};
    script s = {.samples = times, .count = 1};
    const hone_round_sampler who = {&s, turn, now_ns};
    hone_rounds_answer out = {0};
    hone_error err = {0};
    assert_int_equal(hone_rounds_run(&who, &(hone_rounds){3, 8, 7, 1e12, {0}}, &out, &err), HONE_FAILURE_NONE);
    assert_int_equal(out.rounds, 8);
    assert_int_equal(s.taken, 24);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t r = 0; r < 8; r++) {
            assert_true(out.samples[i][r] == (i + 1) * ms);
            assert_true(out.waited[i][r] == 0.5);
            assert_int_equal(out.marks[i][r], i);
        }
}

static void rounds_stop_late_after_three_and_at_a_failure_name_the_finalist(void **state)
{
    (void)state;
    const double times[] = {1 * ms};
    script s = {.samples = times, .count = 1};
    const hone_round_sampler who = {&s, turn, now_ns};
    hone_rounds_answer out = {0};
    hone_error err = {0};
    assert_int_equal(hone_rounds_run(&who, &(hone_rounds){2, 8, 7, 1 * ms, {0}}, &out, &err), HONE_FAILURE_NONE);
    assert_int_equal(out.rounds, 3);
    s = (script){.samples = times, .count = 1, .fails_at = 1};
    assert_int_equal(hone_rounds_run(&who, &(hone_rounds){2, 8, 7, 1e12, {0}}, &out, &err), HONE_FAILURE_WRONG);
    assert_in_range(out.failed, 0, 1);
    assert_int_equal(out.rounds, 0);
}

// A run of a millisecond takes ten on a busy machine: three such pairs say nothing of it.
static void nine_slow_pairs_are_a_verdict_and_three_of_very_long_runs(void **state)
{
    (void)state;
    assert_int_equal(hone_stopping_guilty_pairs(1e3), 9);
    assert_int_equal(hone_stopping_guilty_pairs(20e6), 9);
    assert_int_equal(hone_stopping_guilty_pairs(21e6), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_best_a_candidate_is_measured_in_full),
        cmocka_unit_test(a_first_run_that_takes_four_times_the_best_is_the_last),
        cmocka_unit_test(one_sample_of_twice_the_best_is_enough),
        cmocka_unit_test(fewer_samples_suffice_if_samples_agree),
        cmocka_unit_test(each_bound_of_the_rule_stands_where_it_is_said_to),
        cmocka_unit_test(a_sample_more_is_taken_where_half_a_nanosecond_is_missing),
        cmocka_unit_test(a_single_slow_sample_is_given_the_benefit_of_the_doubt),
        cmocka_unit_test(short_runs_are_sampled_on_and_long_ones_twice),
        cmocka_unit_test(the_limit_ends_it_with_what_there_is),
        cmocka_unit_test(a_clock_that_stands_still_ends_too),
        cmocka_unit_test(a_sample_that_fails_is_the_candidates_failure),
        cmocka_unit_test(one_of_few_configs_is_not_believed_to_be_slow_before_it_was_left_alone),
        cmocka_unit_test(samples_on_a_shared_device_compare_if_the_best_shared_its_device),
        cmocka_unit_test(disturbed_samples_neither_drop_a_candidate_nor_count_beside_others),
        cmocka_unit_test(a_candidate_that_is_never_left_alone_is_known_by_what_waited_least),
        cmocka_unit_test(noise_is_what_samples_differ_by),
        cmocka_unit_test(rounds_give_everybody_one_sample_each_in_random_order),
        cmocka_unit_test(rounds_stop_late_after_three_and_at_a_failure_name_the_finalist),
        cmocka_unit_test(nine_slow_pairs_are_a_verdict_and_three_of_very_long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
