// Custom tuners of a caller: what they see, what they may try, and that their choice does not win unless it is
// verified.
#include "arena.h"

#include <stdio.h>
#include <string.h>

// What one tuner does, and what it saw.
typedef struct own {
    hone_tuner tuner;
    hone_tried tried[8];
    uint32_t count;
    hone_status status; // of the last that was asked
    hone_error err;
} own;

// One of the kernels that compete, by its name.
static size_t kernel_of(const hone_tuning *tuning, const char *name)
{
    size_t count, at = 0;
    const hone_tuning_kernel *const *kernels = hone_tuning_kernels(tuning, &count);
    while (at < count && strcmp(kernels[at]->name, name) != 0)
        at++;
    assert_true(at < count);
    return at;
}

static size_t only_other(const hone_tuning *tuning)
{
    return kernel_of(tuning, "good") == 0 ? 1 : 0;
}

static void use(ground *g, own *o, hone_status (*run)(void *ctx, hone_tuning *tuning, hone_error *err))
{
    *o = (own){.tuner = {.struct_size = sizeof(hone_tuner), .name = "by hand", .run = run, .ctx = o}};
    g->options.tuner = &o->tuner;
}

static hone_status try_all(void *ctx, hone_tuning *tuning, hone_error *err)
{
    own *o = ctx;
    const size_t kernel = kernel_of(tuning, "delayed");
    size_t count;
    hone_config config;
    assert_string_equal(hone_call_text(hone_tuning_call(tuning)), "scale_delayed(f32[1000])");
    assert_non_null(hone_tuning_device(tuning)->fingerprint);
    assert_true(hone_tuning_seconds(tuning) > 0);
    while ((o->status = hone_tuning_propose(tuning, kernel, &config, &o->err)) == HONE_OK) {
        const uint32_t left = hone_tuning_evaluations(tuning);
        hone_status status = hone_tuning_try(tuning, kernel, &config, &o->tried[o->count++], err);
        if (status != HONE_OK) return status;
        assert_true(hone_tuning_evaluations(tuning) <= left);
    }
    char text[64];
    hone_config_text(hone_tuning_kernels(tuning, &count)[kernel]->space, &config, text, sizeof text);
    assert_int_equal(strncmp(text, "delay=", 6), 0);
    return HONE_OK;
}

static void an_own_tuner_says_what_is_tried_and_the_fastest_wins(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, try_all);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(o.status, HONE_NOT_FOUND); // of the fifth and last the default may have been measured before
    assert_true(o.count >= 4);
    assert_int_equal(ground_row(g, "delayed")->tried, 5);
    assert_string_equal(g->contest.decision.evidence.tuner, "by hand");
    assert_true(g->contest.decision.verified);
}

static hone_status choose_slow(void *ctx, hone_tuning *tuning, hone_error *err)
{
    own *o = ctx;
    const size_t kernel = kernel_of(tuning, "delayed");
    size_t count;
    hone_config config;
    const hone_space *space = hone_tuning_kernels(tuning, &count)[kernel]->space;
    // Its kernel's best, so that the slow one comes to the finals for being chosen alone.
    assert_int_equal(hone_config_from_text(space, "delay=0", &config, err), HONE_OK);
    assert_int_equal(hone_tuning_try(tuning, kernel, &config, &o->tried[2], err), HONE_OK);
    assert_int_equal(hone_config_from_text(space, "delay=200", &config, err), HONE_OK);
    o->status = hone_tuning_choose(tuning, kernel, &config, &o->err);
    assert_int_equal(hone_tuning_try(tuning, kernel, &config, &o->tried[0], err), HONE_OK);
    assert_int_equal(hone_tuning_try(tuning, kernel, &config, &o->tried[1], err), HONE_OK);
    return hone_tuning_choose(tuning, kernel, &config, err);
}

static void a_custom_tuners_choice_wins_over_faster_candidates(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, choose_slow);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_winner(g, "delayed");
    assert_string_equal(g->contest.decision.config_json, "{\"delay\":200}");
    assert_true(g->contest.decision.verified);
    assert_true(g->contest.decision.evidence.time_ns >= 200e3);
    assert_int_equal(o.status, HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(o.err.message, "was never tried"));
    assert_true(o.tried[0].time_ns > 0 && o.tried[0].time_ns == o.tried[1].time_ns); // it was run once
}

static hone_status insist(void *ctx, hone_tuning *tuning, hone_error *err)
{
    own *o = ctx;
    size_t count;
    const size_t kernel = only_other(tuning);
    const hone_tuning_kernel *const *kernels = hone_tuning_kernels(tuning, &count);
    const hone_config config = kernels[kernel]->default_config, other = kernels[1 - kernel]->default_config;
    hone_status status = hone_tuning_try(tuning, kernel, &config, &o->tried[0], err);
    if (status == HONE_OK) status = hone_tuning_try(tuning, 1 - kernel, &other, &o->tried[1], err);
    if (status != HONE_OK) return status;
    o->status = hone_tuning_choose(tuning, kernel, &config, &o->err);
    return HONE_OK;
}

static void a_wrong_kernel_that_an_own_tuner_insists_on_does_not_win(void **state)
{
    ground *g = *state;
    static const char *const wrong[] = {"wrong", "overrun", "segv", "limited"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        own o;
        use(g, &o, insist);
        assert_int_equal(ground_tune(g, wrong[i]), HONE_OK);
        assert_winner(g, "good");
        assert_true(ground_row(g, wrong[i])->reason[0] != '\0');
        if (o.tried[0].failure == HONE_FAILURE_NONE) continue; // it is rejected where winners are verified
        assert_int_equal(o.status, HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(o.err.message, "was rejected"));
        assert_true(o.tried[0].reason[0] != '\0');
    }
}

// Only the final verification of a winner runs two threads at once and finds this error.
static void a_choice_that_fails_the_final_verification_leaves_the_others(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, insist);
    assert_int_equal(ground_tune(g, "shared"), HONE_OK);
    assert_winner(g, "good");
    assert_int_equal(o.status, HONE_OK);
    assert_rejected(g, "shared", HONE_FAILURE_RACY);
}

static hone_status try_what_crashes(void *ctx, hone_tuning *tuning, hone_error *err)
{
    own *o = ctx;
    const size_t kernel = only_other(tuning);
    hone_config config = {.count = 1};
    (void)err;
    for (o->count = 0; o->count < 8; o->count++) {
        config.values[0] = o->count + 1;
        o->status = hone_tuning_try(tuning, kernel, &config, &o->tried[o->count], &o->err);
        if (o->status != HONE_OK) return HONE_OK;
        assert_int_equal(o->tried[o->count].failure, HONE_FAILURE_CRASH);
    }
    return HONE_OK;
}

static void a_kernel_that_crashes_again_and_again_is_tried_no_more(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, try_what_crashes);
    assert_int_equal(ground_tune(g, "segv_each"), HONE_OK);
    assert_winner(g, "good");
    assert_int_equal(o.count, 3);
    assert_int_equal(o.status, HONE_UNSUPPORTED);
    assert_non_null(strstr(o.err.message, "put aside after 3 in a row"));
}

static hone_status ask_for_nonsense(void *ctx, hone_tuning *tuning, hone_error *err)
{
    own *o = ctx;
    size_t count;
    hone_config config = hone_tuning_kernels(tuning, &count)[0]->default_config;
    assert_int_equal(hone_tuning_try(tuning, count, &config, &o->tried[0], err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_tuning_propose(tuning, count, &config, err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_tuning_choose(tuning, count, &config, err), HONE_INVALID_ARGUMENT);
    const size_t kernel = kernel_of(tuning, "delayed");
    config.values[0] = 3;
    config.count = 1;
    o->status = hone_tuning_try(tuning, kernel, &config, &o->tried[0], &o->err);
    return HONE_OK;
}

static void kernels_and_configs_that_are_not_there_are_refused(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, ask_for_nonsense);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(o.status, HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(o.err.message, "delay"));
}

static hone_status give_up(void *ctx, hone_tuning *tuning, hone_error *err)
{
    (void)ctx;
    (void)tuning;
    err->status = HONE_IO;
    snprintf(err->message, sizeof err->message, "my model is not here");
    return HONE_IO;
}

static void an_own_tuner_that_fails_ends_the_contest_with_its_words(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, give_up);
    assert_int_equal(ground_tune(g, "none"), HONE_IO);
    assert_string_equal(g->contest.decision.kernel, "");
    assert_non_null(strstr(g->err.message, "the tuner by hand failed for scale_none(f32[1000]): my model is not here"));
}

static hone_status do_nothing(void *ctx, hone_tuning *tuning, hone_error *err)
{
    (void)ctx;
    (void)tuning;
    (void)err;
    return HONE_OK;
}

static void an_own_tuner_that_tries_nothing_leaves_the_default(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, do_nothing);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(g->contest.decision.evidence.measured, 1);
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK); // of the defaults the first that is right
    assert_winner(g, "good");
}

static hone_status go_on_for_ever(void *ctx, hone_tuning *tuning, hone_error *err)
{
    own *o = ctx;
    const size_t kernel = kernel_of(tuning, "delayed");
    hone_config config;
    for (;;) {
        hone_status status = hone_tuning_propose(tuning, kernel, &config, err);
        if (status == HONE_OK) status = hone_tuning_try(tuning, kernel, &config, &o->tried[0], err);
        o->status = status;
        if (status != HONE_OK) return status;
    }
}

static void the_budget_ends_what_an_own_tuner_tries_and_what_it_found_counts(void **state)
{
    ground *g = *state;
    own o;
    use(g, &o, go_on_for_ever);
    g->options.evaluations = 3;
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(o.status, HONE_CANCELLED);
    assert_int_equal(ground_row(g, "delayed")->tried + ground_row(g, "good")->tried, 3);
}

typedef struct cancelling {
    own own;
    volatile int cancel;
} cancelling;

static hone_status cancel_then_try(void *ctx, hone_tuning *tuning, hone_error *err)
{
    cancelling *c = ctx;
    size_t count;
    const size_t kernel = kernel_of(tuning, "delayed");
    const hone_config config = {.count = 1, .values = {400}};
    c->cancel = 1;
    assert_true(hone_tuning_kernels(tuning, &count) != NULL && hone_tuning_evaluations(tuning) == 0);
    c->own.status = hone_tuning_try(tuning, kernel, &config, &c->own.tried[0], err);
    return HONE_OK;
}

static void a_cancel_ends_an_own_tuner_and_keeps_what_was_found(void **state)
{
    ground *g = *state;
    cancelling c = {.cancel = 0};
    use(g, &c.own, cancel_then_try);
    c.own.tuner.ctx = &c;
    g->options.cancel = &c.cancel;
    assert_int_equal(ground_tune(g, "delayed"), HONE_CANCELLED);
    assert_int_equal(c.own.status, HONE_CANCELLED);
    assert_string_equal(g->contest.decision.evidence.undecided, "it was cancelled before the finals");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_own_tuner_says_what_is_tried_and_the_fastest_wins),
        TEST(a_custom_tuners_choice_wins_over_faster_candidates),
        TEST(a_wrong_kernel_that_an_own_tuner_insists_on_does_not_win),
        TEST(a_choice_that_fails_the_final_verification_leaves_the_others),
        TEST(a_kernel_that_crashes_again_and_again_is_tried_no_more),
        TEST(kernels_and_configs_that_are_not_there_are_refused),
        TEST(an_own_tuner_that_fails_ends_the_contest_with_its_words),
        TEST(an_own_tuner_that_tries_nothing_leaves_the_default),
        TEST(the_budget_ends_what_an_own_tuner_tries_and_what_it_found_counts),
        TEST(a_cancel_ends_an_own_tuner_and_keeps_what_was_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
