// How a contest spends its time and evaluations. The clock of the simulated measurer advances by the cost of each
// kernel.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tune/contest/contest.h"
#include "tune/contest/family.h"

#include <math.h>
#include <string.h>

enum { KERNELS = 6, VALUES = 200, MANY = 5400 };

typedef struct ground {
    hone_device_info device;
    hone_tune_environment environment;
    hone_algorithm_entry algorithm;
    hone_space *space, *wide;
    hone_kernel_ref kernels[KERNELS];
    size_t count; // that compete
    hone_contest contest;
    hone_contest_state *state;
    double prepare_ns[KERNELS], run_ns[KERNELS];
    double once_ns;           // beside the first attempt: the reference, say
    double least_ns[KERNELS]; // what one run of the best config is measured to take
    bool is_rarely_fast; // the slow one: 1 of 40 configs is the fastest of all, the others take three times as long
    double extra_of_default_ns; // what the second one's default takes beyond its other configs
    int64_t starts_at;          // the default
    bool yields[KERNELS];       // to a later one, which then answers without tuning
    bool compiles_together;
    uint32_t patience;
    bool is_compiled[KERNELS][MANY];
    double clock_ns;
} ground;

static size_t index_of(const ground *g, const hone_kernel_ref *kernel)
{
    return (size_t)(kernel - g->kernels);
}

// Compiled code is not compiled again. A kernel without a compiler is prepared once.
static double compile(ground *g, const hone_kernel_ref *kernel, const hone_config *config)
{
    size_t index = index_of(g, kernel);
    bool *is_compiled = &g->is_compiled[index][kernel->kernel.code != NULL ? config->values[0] : 0];
    double took = *is_compiled ? 0 : g->prepare_ns[index];
    *is_compiled = true;
    return took;
}

static double take_once(ground *g)
{
    const double took = g->once_ns;
    g->once_ns = 0;
    return took;
}

static hone_status attempt(
    hone_trials *trials,
    const hone_try *what,
    const hone_stopping *stopping,
    hone_trial *out,
    bool *out_cut,
    hone_error *err)
{
    ground *g = trials->measurer_ctx;
    (void)stopping;
    (void)err;
    out->spent.prepare_ns = compile(g, what->kernel, what->config);
    // As on a machine: what is not ready in time is stopped, unless nothing works yet.
    *out_cut = what->first_seconds > 0 && what->may_be_cut && out->spent.prepare_ns > 1e9 * what->first_seconds;
    if (*out_cut) g->clock_ns += 1e9 * what->first_seconds;
    if (*out_cut) return HONE_OK;
    g->clock_ns += out->spent.prepare_ns + g->run_ns[index_of(g, what->kernel)] + take_once(g);
    // A model can learn nothing from these times, so a gain is always expected. While the least time is the same for
    // both kernels, neither is dropped as hopeless.
    out->time_ns = out->low_ns = out->high_ns =
        g->least_ns[index_of(g, what->kernel)] + 1e3 * (double)(what->config->values[0] * 7919 % 1009);
    if (g->is_rarely_fast && index_of(g, what->kernel) == 1)
        out->time_ns = out->low_ns = out->high_ns = (what->config->values[0] % 40 == 7 ? 0.87 : 3) * g->least_ns[0];
    if (index_of(g, what->kernel) == 1 && what->config->values[0] == g->starts_at) {
        out->time_ns += g->extra_of_default_ns;
        out->low_ns = out->high_ns = out->time_ns;
    }
    out->samples = 3;
    return HONE_OK;
}

static hone_status run_rounds(hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err)
{
    (void)trials;
    (void)err;
    out->count = block->count;
    out->rounds = block->rounds;
    for (uint32_t i = 0; i < block->count; i++)
        for (uint32_t round = 0; round < block->rounds; round++)
            out->samples[i][round] = block->finalists[i]->trial.time_ns;
    return HONE_OK;
}

static uint64_t now_ns(const hone_trials *trials)
{
    return (uint64_t)((const ground *)trials->measurer_ctx)->clock_ns;
}

static void pause_for(hone_trials *trials, uint64_t ns)
{
    ((ground *)trials->measurer_ctx)->clock_ns += (double)ns;
}

// As many at once as are asked for, in the time of one.
static hone_status prepare_together(
    hone_trials *trials,
    const hone_kernel_ref *kernel,
    const hone_config *configs,
    uint32_t count,
    bool *out_answered,
    hone_error *err)
{
    ground *g = trials->measurer_ctx;
    double took = 0;
    (void)err;
    for (uint32_t i = 0; i < count; i++)
        took = fmax(took, compile(g, kernel, &configs[i]));
    g->clock_ns += took;
    *out_answered = true;
    return HONE_OK;
}

static const hone_measurer measurer = {attempt, run_rounds, NULL, now_ns, pause_for};
static const hone_measurer compiling_measurer = {attempt, run_rounds, prepare_together, now_ns, pause_for};

static int set_up(void **state)
{
    static const hone_code compiled = {0};
    static ground g;
    static const char *const names[KERNELS] = {"quick", "slow", "third", "fourth", "fifth", "sixth"};
    memset(&g, 0, sizeof g);
    g.patience = UINT32_MAX;
    g.count = 2;
    for (int i = 0; i < KERNELS; i++)
        g.least_ns[i] = 1e6;
    if (hone_space_parse(hone_allocator_system(), "x: 0..199", &g.space, NULL) != HONE_OK) return 1;
    if (hone_space_parse(hone_allocator_system(), "x: 0..5399", &g.wide, NULL) != HONE_OK) return 1;
    g.environment = (hone_tune_environment){.allocator = hone_allocator_system(), .device = &g.device};
    g.algorithm = (hone_algorithm_entry){.name = "made_up", .version = "1"};
    for (int i = 0; i < KERNELS; i++) {
        g.kernels[i] = (hone_kernel_ref){.algorithm = &g.algorithm, .space = g.space};
        g.kernels[i].kernel =
            (hone_kernel){.name = names[i], .revision = "1", .code = &compiled, .platform = HONE_NATIVE};
    }
    *state = &g;
    return 0;
}

static int tear_down(void **state)
{
    ground *g = *state;
    hone_contest_destroy(&g->state);
    hone_contest_deinit(&g->contest);
    hone_space_release(&g->space);
    hone_space_release(&g->wide);
    return 0;
}

static void enter(ground *g)
{
    const hone_allocator *allocator = &g->environment.allocator;
    hone_contest_state *state = g->state;
    state->question.title = "made up";
    state->trials.measurer = g->compiles_together ? &compiling_measurer : &measurer;
    state->trials.measurer_ctx = g;
    state->field.contestants = hone_alloc_array(allocator, g->count, sizeof *state->field.contestants);
    state->field.rows = state->out->kernels = hone_alloc_array(allocator, g->count, sizeof *state->out->kernels);
    state->field.count = state->out->count = g->count;
    for (size_t i = 0; i < g->count; i++) {
        state->out->kernels[i].kernel = &g->kernels[i];
        state->field.contestants[i] =
            (hone_contestant){.ref = &g->kernels[i], .has_default = true, .yields = g->yields[i]};
        assert_int_equal(
            hone_space_bind(g->kernels[i].space, NULL, NULL, &state->field.contestants[i].space, NULL), HONE_OK);
        state->field.contestants[i].default_config = (hone_config){.count = 1, .values = {g->starts_at}};
    }
}

static void compete(ground *g, double seconds, uint32_t evaluations)
{
    const hone_tune_options options = {
        .struct_size = sizeof options, .seconds = seconds, .evaluations = evaluations, .patience = g->patience};
    hone_error err = {0};
    assert_int_equal(
        hone_contest_create(
            &(hone_contest_request){&g->environment, &g->algorithm, NULL, &options}, &g->contest, &g->state, &err),
        HONE_OK);
    enter(g);
    if (hone_contest_compete(g->state, &err) != HONE_OK) fail_msg("%s", err.message);
}

static uint32_t tried(const ground *g, size_t kernel)
{
    return g->contest.kernels[kernel].tried;
}

// The race has time for two runs of the slow kernel only.
static void what_takes_long_gets_its_share_of_the_time_before_others_had_theirs(void **state)
{
    ground *g = *state;
    g->run_ns[0] = 5e7;
    g->run_ns[1] = 8e9;
    compete(g, 17, 500);
    assert_true(tried(g, 0) >= 10);
}

// As a reference of Python on a large call, or a worker that loads a library of a gigabyte.
static void what_is_done_once_leaves_every_default_its_time(void **state)
{
    ground *g = *state;
    g->once_ns = 20e9;
    g->count = KERNELS;
    for (int i = 0; i < KERNELS; i++)
        g->run_ns[i] = 4e8;
    compete(g, 6, 500);
    for (size_t i = 0; i < KERNELS; i++)
        assert_true(tried(g, i) >= 1);
    assert_true(g->clock_ns < 24e9);
}

// Otherwise a default that is late in the registry is never tried on a busy machine.
static void the_kernel_that_answers_without_tuning_is_tried_first(void **state)
{
    ground *g = *state;
    g->count = KERNELS;
    for (int i = 0; i < KERNELS; i++) {
        g->run_ns[i] = 4e9;
        g->yields[i] = i < 4;
    }
    compete(g, 2, 500);
    assert_int_equal(tried(g, 4), 1);
}

static void every_kernel_is_tried_at_least_three_times_before_evaluations_run_out(void **state)
{
    ground *g = *state;
    g->run_ns[0] = 5e7;
    g->run_ns[1] = 4e9;
    compete(g, 1e6, 12);
    assert_int_equal(tried(g, 0) + tried(g, 1), 12);
    assert_true(tried(g, 0) >= 3 && tried(g, 1) >= 3);
}

static void a_default_that_is_not_ready_in_its_share_leaves_the_contest_to_the_others(void **state)
{
    ground *g = *state;
    g->run_ns[0] = 5e7;
    g->prepare_ns[1] = 15e9;
    compete(g, 17, 500);
    assert_int_equal(tried(g, 1), 0);
    assert_int_equal(g->contest.kernels[1].rejected[HONE_FAILURE_TIMEOUT], 0); // as a function of Python is
    assert_true(tried(g, 0) > 50);
    assert_non_null(strstr(g->contest.kernels[1].reason, "its share of the contest's time"));
    const char *undecided = g->contest.decision.evidence.undecided;
    assert_ptr_equal(strstr(undecided, "slow was not ready in its time; try --seconds"), undecided);
    assert_string_equal(g->contest.decision.kernel, "quick");
}

static void what_others_left_of_their_share_is_added(void **state)
{
    ground *g = *state;
    g->run_ns[0] = 5e7;
    g->prepare_ns[1] = 15e9;
    compete(g, 40, 500);
    assert_true(tried(g, 1) > 0);
}

static void the_first_that_works_is_waited_for(void **state)
{
    ground *g = *state;
    g->prepare_ns[0] = 15e9;
    g->run_ns[1] = 5e7;
    compete(g, 17, 500);
    assert_int_equal(tried(g, 0), 1);
}

static void a_kernel_that_is_far_behind_is_dropped_early(void **state)
{
    ground *g = *state;
    g->run_ns[0] = g->run_ns[1] = 5e7;
    g->least_ns[1] = 1e9;
    compete(g, 1e6, 300);
    assert_int_equal(tried(g, 0), 200);
    assert_int_equal(tried(g, 1), 15); // the root of 200, and no fewer than 8
    assert_string_equal(g->contest.decision.kernel, "quick");
}

// Eight of thousands of configs are a small sample: the fastest may be among the others, and no other kernel needs the
// time.
static void a_kernel_with_many_configs_is_searched_longer_before_it_is_dropped(void **state)
{
    ground *g = *state;
    g->kernels[1].space = g->wide;
    g->run_ns[0] = g->run_ns[1] = 5e7;
    g->is_rarely_fast = true;
    compete(g, 15, 500);
    assert_true(tried(g, 1) > 50);
    assert_string_equal(g->contest.decision.kernel, "slow");
}

// With little time, a kernel that is far behind gets a share, and the rest goes to the kernel that may win.
static void a_slow_kernel_does_not_starve_the_others(void **state)
{
    ground *g = *state;
    g->run_ns[0] = 2e7;
    g->run_ns[1] = 2e8;
    g->least_ns[1] = 3e6;
    compete(g, 2, 300);
    assert_int_equal(tried(g, 1), 1); // its default: two more of it would be ten times as many of the other
    assert_true(tried(g, 0) > 20);
    hone_contest_destroy(&g->state);
    hone_contest_deinit(&g->contest);
    compete(g, 200, 300);
    assert_true(tried(g, 1) >= 15);
}

// A library leads whose first use takes .4 s, and five compilers take a second each of a contest of 5 s.
static void the_leader_is_sampled_while_other_defaults_compile(void **state)
{
    ground *g = *state;
    g->count = 6;
    g->kernels[0].kernel.code = NULL;
    g->prepare_ns[0] = 4e8;
    g->run_ns[0] = 1e8;
    for (size_t i = 1; i < g->count; i++) {
        g->prepare_ns[i] = 1e9;
        g->run_ns[i] = 1e7;
        g->least_ns[i] = 5e6;
    }
    compete(g, 5, 500);
    assert_true(tried(g, 0) >= 5);
    assert_true(tried(g, 3) > 0);
}

// How many candidates of the other kernels came before the one of this kernel that is the nth, from 0 on.
static size_t before(const ground *g, uint32_t kernel, uint32_t nth)
{
    const hone_standings *standings = &g->state->standings;
    size_t others = 0;
    for (size_t i = 0; i < standings->count; i++) {
        if (standings->candidates[i].kernel != kernel)
            others++;
        else if (nth-- == 0)
            return others;
    }
    return others;
}

static void a_leader_that_needs_no_compiler_goes_before_what_must_be_compiled(void **state)
{
    ground *g = *state;
    g->kernels[0].kernel.code = NULL;
    g->run_ns[0] = g->run_ns[1] = 1e7;
    g->prepare_ns[1] = 5e8;
    g->least_ns[1] = 1.1e6;
    compete(g, 4, 500);
    assert_in_range(before(g, 1, 1), 40, 160);
    assert_true(tried(g, 1) >= 3);
}

static void a_whole_program_comes_in_halfway(void **state)
{
    ground *g = *state;
    g->kernels[1].kernel.platform = HONE_XLA;
    g->run_ns[0] = g->run_ns[1] = 2e7;
    g->least_ns[1] = 9e5;
    compete(g, 4, 500);
    assert_in_range(before(g, 1, 0), 50, 120);
    assert_string_equal(g->contest.decision.kernel, "slow");
}

static void a_whole_program_is_tried_also_where_evaluations_are_few(void **state)
{
    ground *g = *state;
    g->kernels[1].kernel.platform = HONE_XLA;
    g->run_ns[0] = g->run_ns[1] = 2e7;
    compete(g, 100, 5);
    assert_int_equal(tried(g, 0), 4);
    assert_int_equal(tried(g, 1), 1);
}

static bool choose_hundred(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out)
{
    (void)kernel;
    (void)call;
    (void)device;
    *out = (hone_config){.count = 1, .values = {100}};
    return true;
}

// Two kernels of one source, where a run and all around it takes 50 ms.
static void make_family(ground *g)
{
    for (int i = 0; i < 2; i++) {
        hone_kernel *kernel = &g->kernels[i].kernel;
        kernel->code = NULL;
        kernel->backend = HONE_CPU;
        kernel->space = "x: 0..199";
        kernel->heuristic = choose_hundred;
        kernel->needs = i == 0 ? HONE_CPU_AVX2 : 0;
        g->run_ns[i] = 5e7;
    }
    g->starts_at = 100;
}

static void another_instruction_set_that_is_slower_is_not_searched_for(void **state)
{
    ground *g = *state;
    make_family(g);
    g->least_ns[1] = 2e6;
    compete(g, 10, 100);
    assert_int_equal(tried(g, 1), 1);
    assert_true(tried(g, 0) > 90);
    assert_string_equal(g->contest.decision.kernel, "quick");
}

static void another_instruction_set_that_is_as_fast_tries_what_is_the_best_of_the_first(void **state)
{
    ground *g = *state;
    make_family(g);
    compete(g, 10, 100);
    assert_in_range(tried(g, 1), 2, 20);
    assert_true(tried(g, 0) > 70);
    const hone_standings *standings = &g->state->standings;
    for (size_t i = 0; i < standings->count; i++)
        if (standings->candidates[i].kernel == 1)
            assert_true(hone_standings_have(standings, 0, &standings->candidates[i].config));
}

// Its default says that it is the slower one, and its other configs that it is not.
static void the_search_of_a_family_continues_from_its_new_leader(void **state)
{
    ground *g = *state;
    make_family(g);
    g->least_ns[0] = 1.02e6;
    g->extra_of_default_ns = 1e5;
    compete(g, 10, 100);
    assert_true(tried(g, 1) > 20);
    assert_string_equal(g->contest.decision.kernel, "slow");
    const hone_standings *standings = &g->state->standings;
    uint32_t both = 0;
    for (size_t i = 0; i < standings->count; i++)
        both +=
            standings->candidates[i].kernel == 1 && hone_standings_have(standings, 0, &standings->candidates[i].config);
    assert_true(both < 20);
}

static void a_family_has_one_space_one_heuristic_and_other_instruction_sets(void **state)
{
    ground *g = *state;
    make_family(g);
    hone_kernel a = g->kernels[0].kernel, b = g->kernels[1].kernel;
    assert_true(hone_family_has_both(&a, &b));
    b.needs = a.needs;
    assert_false(hone_family_has_both(&a, &b));
    b = g->kernels[1].kernel;
    b.space = "x: 0..198";
    assert_false(hone_family_has_both(&a, &b));
    b = g->kernels[1].kernel;
    a.heuristic = b.heuristic = NULL;
    assert_false(hone_family_has_both(&a, &b));
    a = g->kernels[0].kernel;
    b = g->kernels[1].kernel;
    b.library = "libother.so.1";
    assert_false(hone_family_has_both(&a, &b));
}

// It has had its share of the time when the compiler is done with the second and third config, which was as long for both as for
// one: the third is there for the taking.
static void what_a_compiler_has_made_ready_is_tried(void **state)
{
    ground *g = *state;
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    if (cpu.threads < 2) skip(); // nothing is prepared together
    g->compiles_together = true;
    g->run_ns[0] = g->run_ns[1] = 1e6;
    g->prepare_ns[1] = 5e8;
    g->least_ns[1] = 1.3e6;
    compete(g, 2.4, 500);
    const hone_contestant *slow = &g->state->field.contestants[1];
    assert_true(slow->prepared_count >= 2);
    assert_false(hone_contestant_is_prepared(slow));
}

static void patience_ends_a_search_without_gain(void **state)
{
    ground *g = *state;
    g->run_ns[0] = g->run_ns[1] = 5e7;
    compete(g, 1e6, 300);
    const uint32_t all = tried(g, 0) + tried(g, 1);
    assert_int_equal(all, 300);
    hone_contest_destroy(&g->state);
    hone_contest_deinit(&g->contest);
    g->patience = 3;
    compete(g, 1e6, 300);
    assert_true(tried(g, 0) + tried(g, 1) < 50);
}

#define IN_GROUND(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GROUND(the_kernel_that_answers_without_tuning_is_tried_first),
        IN_GROUND(what_takes_long_gets_its_share_of_the_time_before_others_had_theirs),
        IN_GROUND(what_is_done_once_leaves_every_default_its_time),
        IN_GROUND(every_kernel_is_tried_at_least_three_times_before_evaluations_run_out),
        IN_GROUND(a_default_that_is_not_ready_in_its_share_leaves_the_contest_to_the_others),
        IN_GROUND(what_others_left_of_their_share_is_added),
        IN_GROUND(the_first_that_works_is_waited_for),
        IN_GROUND(a_kernel_that_is_far_behind_is_dropped_early),
        IN_GROUND(a_slow_kernel_does_not_starve_the_others),
        IN_GROUND(a_kernel_with_many_configs_is_searched_longer_before_it_is_dropped),
        IN_GROUND(the_leader_is_sampled_while_other_defaults_compile),
        IN_GROUND(another_instruction_set_that_is_slower_is_not_searched_for),
        IN_GROUND(another_instruction_set_that_is_as_fast_tries_what_is_the_best_of_the_first),
        IN_GROUND(the_search_of_a_family_continues_from_its_new_leader),
        IN_GROUND(a_family_has_one_space_one_heuristic_and_other_instruction_sets),
        IN_GROUND(what_a_compiler_has_made_ready_is_tried),
        IN_GROUND(a_leader_that_needs_no_compiler_goes_before_what_must_be_compiled),
        IN_GROUND(a_whole_program_comes_in_halfway),
        IN_GROUND(a_whole_program_is_tried_also_where_evaluations_are_few),
        IN_GROUND(patience_ends_a_search_without_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
