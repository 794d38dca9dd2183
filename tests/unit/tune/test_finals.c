// The finals alone: which candidates take part, for how long, which one wins, and how failures are handled. Times are
// simulated.
#include "os/waits.h"
#include "tune/contest/contest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

enum { MOST = 24, KERNELS = 14, BLOCKS = 330 };

// The simulated answers of the measurer to a block.
typedef enum answer { TIMES, LOST, FALLS_OUT, RUNS_OUT_OF_MEMORY } answer;

typedef struct finals_ground {
    hone_contest_state state;
    hone_finals finals;
    hone_tune_environment environment;
    hone_kernel_ref refs[KERNELS];
    hone_contestant contestants[KERNELS];
    hone_contest_kernel rows[KERNELS];
    hone_candidate candidates[MOST];
    double times_ns[MOST],
        swing[MOST];       // of a candidate's rounds: every third is a swing more, the one two before it a swing less
    double later_ns[MOST]; // what its rounds take from the third block on; 0: the same
    double max_error[MOST];
    uint32_t disturbs[MOST];       // every so manieth sample is disturbed, and ten times as long; 0: none is
    bool is_shared;                // a neighbour on the device slows each round by another factor, all finalists alike
    bool kills[MOST];              // its process dies, whoever else is in it
    answer answers[BLOCKS], alone; // of blocks of several, in their order; of one, unless it kills
    uint32_t failed;               // who is rejected
    uint32_t most_together;        // more are lost, whoever they are; 0: any
    hone_block blocks[BLOCKS];
    uint32_t asked;
    uint64_t now_ns, block_ns, paused_ns;
    uint64_t cancel_ns; // of pauses, after which the caller cancels; 0: he does not
    volatile int cancel;
    hone_error err;
} finals_ground;

static uint32_t number_of(const finals_ground *g, const hone_candidate *candidate)
{
    return (uint32_t)(candidate - g->candidates);
}

static void take_samples(const finals_ground *g, const hone_block *block, hone_rounds_answer *out)
{
    out->count = block->count;
    out->rounds = block->rounds;
    for (uint32_t i = 0; i < block->count; i++) {
        uint32_t number = number_of(g, block->finalists[i]);
        out->max_error[i] = g->max_error[number];
        const bool is_later = g->asked > 2 && g->later_ns[number] > 0;
        const double time_ns = is_later ? g->later_ns[number] : g->times_ns[number];
        for (uint32_t r = 0; r < block->rounds; r++)
            out->samples[i][r] = time_ns * (1 + ((double)(r % 3) - 1) * g->swing[number]);
        for (uint32_t r = 0; g->disturbs[number] > 0 && r < block->rounds; r += g->disturbs[number]) {
            out->samples[i][r] *= 10;
            out->marks[i][r] = HONE_OS_WAITED;
            out->waited[i][r] = 0.1;
        }
        for (uint32_t r = 0; g->is_shared && r < block->rounds; r++) {
            out->samples[i][r] *= 1 + 0.3 * (r % 7);
            out->marks[i][r] = HONE_DEVICE_SHARED;
        }
    }
}

static hone_status run_rounds(hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err)
{
    finals_ground *g = trials->measurer_ctx;
    assert_in_range(g->asked, 0, BLOCKS - 1);
    answer what = block->count > 1 ? g->answers[g->asked] : g->alone;
    g->blocks[g->asked++] = *block;
    g->now_ns += g->block_ns;
    for (uint32_t i = 0; i < block->count; i++)
        if (g->kills[number_of(g, block->finalists[i])]) what = LOST;
    if (g->most_together > 0 && block->count > g->most_together) what = LOST;
    snprintf(err->message, sizeof err->message, "the worker is gone");
    if (what == LOST && block->count > 1) return HONE_KERNEL_FAILED;
    if (what == LOST) {
        out->failure = HONE_FAILURE_CRASH;
        snprintf(out->reason, sizeof out->reason, "the worker is gone");
        return HONE_OK;
    }
    if (what == RUNS_OUT_OF_MEMORY) return HONE_OUT_OF_MEMORY;
    take_samples(g, block, out);
    if (what == FALLS_OUT) {
        out->failure = HONE_FAILURE_WRONG;
        out->failed = g->failed;
        snprintf(out->reason, sizeof out->reason, "it was wrong");
    }
    return HONE_OK;
}

static uint64_t now_ns(const hone_trials *trials)
{
    return ((const finals_ground *)trials->measurer_ctx)->now_ns;
}

static void rest(hone_trials *trials, uint64_t ns)
{
    finals_ground *g = trials->measurer_ctx;
    g->paused_ns += ns;
    g->now_ns += ns;
    if (g->cancel_ns > 0 && g->paused_ns >= g->cancel_ns) g->cancel = 1;
}

static const hone_measurer measurer = {.run_rounds = run_rounds, .now_ns = now_ns, .pause = rest};

// All kernels have the default config {0, 0}, and ten seconds are left.
static void begin(finals_ground *g)
{
    static const hone_space space = {.parameter_count = 0};
    memset(g, 0, sizeof *g);
    g->environment.allocator = hone_allocator_system();
    for (int i = 0; i < KERNELS; i++) {
        g->refs[i].space = (hone_space *)(uintptr_t)&space;
        g->contestants[i] = (hone_contestant){.ref = &g->refs[i], .default_config = {.count = 2}};
    }
    g->state.question.environment = &g->environment;
    g->state.question.options.seconds = 10;
    g->state.question.options.seed = 7;
    g->state.field = (hone_field){.contestants = g->contestants, .count = KERNELS, .rows = g->rows};
    g->state.standings.candidates = g->candidates;
    g->state.trials = (hone_trials){
        .question = &g->state.question, .measurer = &measurer, .measurer_ctx = g, .end_ns = UINT64_C(10000000000)};
}

// Its rounds take as long as in the race, unless a test sets another time.
static hone_candidate *add(finals_ground *g, uint32_t kernel, double rank_ns, int64_t first, int64_t second)
{
    assert_in_range(g->state.standings.count, 0, MOST - 1);
    g->times_ns[g->state.standings.count] = rank_ns;
    hone_candidate *candidate = &g->candidates[g->state.standings.count++];
    *candidate = (hone_candidate){
        .kernel = kernel,
        .config = {.count = 2, .values = {first, second}},
        .rank_ns = rank_ns,
        .trial.time_ns = rank_ns,
    };
    candidate->is_default = first == 0 && second == 0;
    return candidate;
}

// The number of blocks of rounds. The last request is not one of them: it verifies the winner.
static uint32_t blocks_of(const finals_ground *g)
{
    const hone_block *last = &g->blocks[g->asked - 1];
    assert_true(last->verifies && last->count == 1 && last->rounds == 1);
    assert_ptr_equal(last->finalists[0], g->finals.finalists[g->finals.winner].candidate);
    return g->asked - 1;
}

static hone_status run(finals_ground *g)
{
    return hone_contest_run_finals(&g->state, &g->finals, &g->err);
}

static const hone_candidate *winner_of(finals_ground *g)
{
    if (run(g) != HONE_OK) fail_msg("%s", g->err.message);
    return g->finals.finalists[g->finals.winner].candidate;
}

// Of two kernels, the second .1 slower.
static void begin_with_two(finals_ground *g)
{
    begin(g);
    add(g, 0, 1000, 1, 0);
    add(g, 1, 1100, 2, 0);
}

static bool takes_part(const finals_ground *g, const hone_candidate *candidate)
{
    for (uint32_t i = 0; i < g->finals.count; i++)
        if (g->finals.finalists[i].candidate == candidate) return true;
    return false;
}

// Finalists -----------------------------------------------------------------------------------------------------------

static void the_next_in_rank_take_part_where_they_are_not_hopeless(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (int64_t i = 0; i < 14; i++)
        add(&g, 0, 1000 + (double)(13 - i), 1 + i, 0);
    assert_ptr_equal(winner_of(&g), &g.candidates[11]); // of the three that tie the one of the least values
    assert_int_equal(g.finals.count, 11);
    for (int i = 0; i < 14; i++)
        assert_int_equal(takes_part(&g, &g.candidates[i]), i >= 3);
    begin(&g);
    const hone_candidate *best = add(&g, 0, 1000, 1, 0), *near = add(&g, 0, 1500, 2, 0), *far = add(&g, 0, 1501, 3, 0);
    assert_ptr_equal(winner_of(&g), best);
    assert_true(takes_part(&g, near));
    assert_false(takes_part(&g, far));
    begin(&g);
    add(&g, 0, 1501, 2, 0);        // nobody is left without a rival
    best = add(&g, 0, 1000, 1, 0); // before: the order in which arguments are made is the compiler's
    assert_ptr_equal(winner_of(&g), best);
    assert_int_equal(g.finals.count, 2);
}

// The few samples of the race do not rule a kernel out, unless it is much slower and takes a long time.
static void the_best_of_every_kernel_takes_part_where_that_is_quick(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (int64_t i = 0; i < 4; i++)
        add(&g, 0, 1000, 1 + i, 0);
    const hone_candidate *near = add(&g, 1, 1501, 1, 0), *twice = add(&g, 1, 1502, 2, 0),
                         *slow = add(&g, 2, 20000, 1, 0), *hopeless = add(&g, 3, 20001, 1, 0);
    (void)winner_of(&g);
    assert_true(takes_part(&g, near) && takes_part(&g, slow));
    assert_false(takes_part(&g, twice) || takes_part(&g, hopeless));
    begin(&g);
    add(&g, 0, 60e6, 1, 0);
    add(&g, 0, 60e6, 2, 0);
    const hone_candidate *long_one = add(&g, 1, 99e6, 1, 0), *too_long = add(&g, 2, 101e6, 1, 0);
    (void)winner_of(&g); // of ten seconds a twentieth is there for five runs
    assert_true(takes_part(&g, long_one));
    assert_false(takes_part(&g, too_long));
    begin(&g);
    for (uint32_t i = 0; i < MOST; i++)
        add(&g, i % KERNELS, 1000 + i, 1 + i, 0);
    (void)winner_of(&g);
    assert_int_equal(g.finals.count, 16); // as many as can be
}

static void rejected_candidates_and_twins_do_not_take_part(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    hone_candidate *out = add(&g, 0, 900, 1, 0), *twin = add(&g, 0, 900, 2, 0), *once = add(&g, 0, 950, 3, 0);
    add(&g, 0, 1000, 4, 0);
    out->out = true;
    twin->trial.same = true;
    assert_ptr_equal(winner_of(&g), once);
    assert_int_equal(g.finals.count, 2);
}

static void the_default_and_what_is_stored_take_part_however_slow(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (int64_t j = 0; j < 4; j++)
        add(&g, 0, 1000, 1 + j, 0);
    const hone_candidate *standard = add(&g, 0, 9000, 0, 0), *later = add(&g, 1, 25000, 0, 0),
                         *stored = add(&g, 0, 8000, 0, 9), *other = add(&g, 0, 1501, 9, 9);
    g.state.known.incumbent = (hone_incumbent){.is_there = true, .kernel = 0, .config = {.count = 2, .values = {0, 9}}};
    (void)winner_of(&g);
    assert_true(takes_part(&g, standard) && takes_part(&g, stored));
    assert_false(takes_part(&g, later) || takes_part(&g, other));
    begin(&g);
    add(&g, 0, 1000, 0, 0);
    hone_candidate *gone = add(&g, 0, 1400, 0, 9);
    gone->out = true;
    g.state.known.incumbent = (hone_incumbent){.is_there = true, .config = gone->config};
    (void)winner_of(&g);
    assert_int_equal(g.finals.count, 1); // the default is there once, and what was rejected not at all
}

// The first block has all finalists. The remaining time goes to the fastest ones and to the kernel that answers today.
static void four_and_what_answers_today_last_beyond_the_first_block(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (int64_t i = 0; i < 6; i++)
        add(&g, 0, 1000 + (double)i, 1 + i, 0);
    const hone_candidate *standard = add(&g, 0, 1060, 0, 0);
    g.swing[6] = 0.2; // nobody can say
    (void)winner_of(&g);
    assert_int_equal(g.blocks[0].count, 7);
    assert_int_equal(g.blocks[0].rounds, 5);
    assert_int_equal(g.blocks[1].count, 5);
    assert_true(g.blocks[1].rounds > 5);
    bool lasts = false;
    for (uint32_t i = 0; i < 5; i++)
        lasts = lasts || g.blocks[1].finalists[i] == standard;
    assert_true(lasts);
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1000, 2, 0);
    add(&g, 0, 1101, 4, 0); // certainly slower, and clearly
    add(&g, 0, 1099, 3, 0); // certainly, but not clearly: five rounds are few
    add(&g, 0, 1400, 0, 0); // what answers today, for which they are fewer still
    (void)winner_of(&g);
    assert_int_equal(g.blocks[1].count, 4);
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1000, 2, 0);
    add(&g, 0, 1600, 0, 0); // kept only because tables show it
    (void)winner_of(&g);
    assert_int_equal(g.blocks[1].count, 3);
    assert_true(g.finals.finalists[1].out && g.finals.finalists[1].candidate->is_default);
}

// Candidates that tables compare with the winner get ten rounds, however clear the first five are: the default, the
// fastest library, the best config of each kernel, and the second. When the contest's time is over, only the first two
// and those that may win get ten. A kernel that is far behind and takes long gets five.
static void candidates_shown_in_tables_have_ten_rounds(void **state)
{
    enum { PLAIN = 1, LIBRARY = 2, SLOW = 3 };
    static const struct {
        uint32_t kernel;
        int64_t config;
        double time_ns;
        bool in_time, late; // whether it has ten rounds
    } rows[] = {
        {0, 1, 4e6, true, true},        {0, 2, 5e6, true, true},
        {0, 3, 5.2e6, false, false}, // neither the second nor its kernel's best
        {0, 0, 5.5e6, true, true},      {PLAIN, 1, 12e6, true, false},
        {LIBRARY, 1, 20e6, true, true}, {SLOW, 1, 60e6, false, false},
    };
    static finals_ground g;
    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        uint32_t ten = 0, expected = 0;
        begin(&g);
        g.refs[LIBRARY].kernel.library = "libblas.so";
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            add(&g, rows[i].kernel, rows[i].time_ns, rows[i].config, 0);
            expected += is_late ? rows[i].late : rows[i].in_time;
        }
        if (is_late) g.now_ns = g.state.trials.end_ns;
        if (winner_of(&g) != &g.candidates[0]) fail_msg("another wins");
        for (uint32_t i = 0; i < g.finals.count; i++) {
            const hone_finalist *one = &g.finals.finalists[i];
            const uint32_t number = (uint32_t)(one->candidate - g.candidates);
            const bool has_ten = is_late ? rows[number].late : rows[number].in_time;
            if (has_ten != (one->rounds >= 10)) fail_msg("late %d: %u has %u rounds", is_late, number, one->rounds);
            ten += has_ten;
        }
        assert_int_equal(ten, expected);
    }
}

// Winners -------------------------------------------------------------------------------------------------------------

static void the_fastest_wins_unless_a_simpler_one_ties(void **state)
{
    // The first is never as simple as the second, the default.
    static const struct {
        double first_ns, default_ns, swing;
        bool default_wins;
    } rows[] = {
        {1000, 1100, 0, false},   {1000, 1003, 0, false},  // certainly slower, if by little
        {1000, 1002, 0, true},                             // a tie
        {1000, 1004, 0.08, true},                          // not certain
        {1000, 1100, 0.9, false}, {1000, 1030, 0.3, true}, // nor this, and too much to give away
        {1000, 900, 0, true},
    };
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        add(&g, 0, rows[i].first_ns, 1, 0);
        add(&g, 0, rows[i].default_ns, 0, 0);
        g.swing[1] = rows[i].swing;
        if ((winner_of(&g) == &g.candidates[1]) != rows[i].default_wins) fail_msg("row %zu", i);
    }
}

// Four rounds say that it is faster by a tenth, three that it takes four times as long.
static void what_may_be_lost_counts_as_what_may_be_gained(void **state)
{
    static const double fast_ns[] = {980, 4000, 1000, 4000, 1020, 4000, 1000};
    enum { ROUNDS = sizeof fast_ns / sizeof *fast_ns };
    static finals_ground g;
    (void)state;
    begin(&g);
    g.finals.count = 2;
    g.finals.rounds = ROUNDS;
    g.finals.finalists[0] = (hone_finalist){.candidate = add(&g, 0, 1000, 1, 0), .rounds = ROUNDS};
    g.finals.finalists[1] = (hone_finalist){.candidate = add(&g, 0, 1100, 0, 0), .rounds = ROUNDS};
    for (uint32_t r = 0; r < ROUNDS; r++) {
        g.finals.finalists[0].samples[r] = (hone_sample){fast_ns[r], 0, 0};
        g.finals.finalists[1].samples[r] = (hone_sample){1100, 0, 0};
    }
    assert_int_equal(hone_finals_choose_winner(&g.state, &g.finals), 1);
    for (uint32_t r = 0; r < ROUNDS; r++)
        g.finals.finalists[0].samples[r].time_ns = 1000;
    assert_int_equal(hone_finals_choose_winner(&g.state, &g.finals), 0);
}

// Times of two sorts promise much: as 2.6 times as fast, or .9. Where they lie closer they are believed.
static void a_promise_whose_interval_is_wide_leaves_the_default(void **state)
{
    static const double slow_ns[] = {2600, 1700};
    static const bool is_slow[] = {false, true, false, true, true, false, true};
    enum { ROUNDS = sizeof is_slow / sizeof *is_slow };
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        static finals_ground g;
        begin(&g);
        g.finals.count = 2;
        g.finals.rounds = ROUNDS;
        g.finals.finalists[0] = (hone_finalist){.candidate = add(&g, 0, 1000, 1, 0), .rounds = ROUNDS};
        g.finals.finalists[1] = (hone_finalist){.candidate = add(&g, 0, 2000, 0, 0), .rounds = ROUNDS};
        for (uint32_t r = 0; r < ROUNDS; r++) {
            g.finals.finalists[0].samples[r] = (hone_sample){1000, 0, 0};
            g.finals.finalists[1].samples[r] = (hone_sample){is_slow[r] ? slow_ns[i] : 900, 0, 0};
        }
        assert_int_equal(hone_finals_choose_winner(&g.state, &g.finals), 1 - i);
    }
}

// On a busy machine three rounds do not replace the kernel that answers today by one that takes .8 of its time. The
// contest reports this.
static void few_rounds_beside_other_work_leave_the_default(void **state)
{
    static const struct {
        uint32_t rounds;
        double disturbed, default_ns, swing;
        bool stays;
    } rows[] = {
        {3, 0.3, 1250, 0, true}, {3, 0.3, 2000, 0, false}, {5, 0.3, 1250, 0, false},
        {3, 0, 1250, 0, false},  {3, 0, 1250, 0.3, true},
    };
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char undecided[256];
        begin(&g);
        g.finals.count = 2;
        g.finals.rounds = rows[i].rounds;
        g.finals.disturbed = rows[i].disturbed;
        g.finals.finalists[0] = (hone_finalist){.candidate = add(&g, 0, 1000, 1, 0), .rounds = rows[i].rounds};
        g.finals.finalists[1] =
            (hone_finalist){.candidate = add(&g, 0, rows[i].default_ns, 0, 0), .rounds = rows[i].rounds};
        for (uint32_t r = 0; r < rows[i].rounds; r++) {
            g.finals.finalists[0].samples[r].time_ns = 1000;
            g.finals.finalists[1].samples[r].time_ns = rows[i].default_ns * (1 + ((double)r - 1) * rows[i].swing);
        }
        g.finals.winner = hone_finals_choose_winner(&g.state, &g.finals);
        if ((g.finals.winner == 1) != rows[i].stays) fail_msg("row %zu", i);
        hone_finals_say_undecided(&g.state, &g.finals, undecided, sizeof undecided);
        if ((undecided[0] != '\0') != rows[i].stays) fail_msg("row %zu: %s", i, undecided);
    }
}

// The default of one that yields to others is not what a call takes that was never tuned.
static void the_default_is_of_a_kernel_that_does_not_yield(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    hone_candidate *first = add(&g, 0, 1000, 0, 0), *second = add(&g, 1, 1000, 0, 0), *third = add(&g, 2, 1000, 0, 0);
    first->yields = true;
    assert_ptr_equal(hone_standings_default(&g.state.standings), second);
    second->out = true;
    third->of_pack = true;
    assert_ptr_equal(hone_standings_default(&g.state.standings), first);
    // Nor is what results must have the bits of, in stable mode.
    for (int i = 0; i < KERNELS; i++) {
        g.contestants[i].space = i < 2 ? (hone_bound_space *)(uintptr_t)&g : NULL; // nobody looks into it
        g.contestants[i].yields = i == 0;
    }
    assert_ptr_equal(hone_field_default(&g.state.field), &g.contestants[1]);
    g.contestants[1].yields = true;
    assert_ptr_equal(hone_field_default(&g.state.field), &g.contestants[0]);
}

static void the_finals_decide_and_not_the_race(void **state)
{
    static const struct {
        double first_ns, swing; // of the default, which was the first in the race
        bool default_wins;
        uint32_t blocks;
    } rows[] = {{1100, 0, false, 2}, {1001, 0, true, 2}, {1003, 0.08, true, 9}};
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        add(&g, 0, 990, 0, 0);
        add(&g, 0, 1000, 1, 0);
        g.times_ns[0] = rows[i].first_ns;
        g.swing[0] = rows[i].swing;
        if ((winner_of(&g) == &g.candidates[0]) != rows[i].default_wins) fail_msg("row %zu", i);
        assert_int_equal(blocks_of(&g), rows[i].blocks);
    }
}

static void what_is_in_its_place_stays_until_another_is_certainly_faster(void **state)
{
    static const struct {
        double best_ns, stored_ns, swing;
        bool stays;
    } rows[] = {
        {1000, 1003, 0, false},      {1000, 1002, 0, true}, {1000, 1008, 0.12, true}, {1000, 1100, 0, false},
        {1000, 1100, 0.0001, false}, {1000, 950, 0, true},  {1000, 999.5, 0, true},
    };
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        add(&g, 0, rows[i].best_ns, 0, 0); // the default, and simpler
        const hone_candidate *stored = add(&g, 1, rows[i].stored_ns, 3, 3);
        g.swing[1] = rows[i].swing;
        g.state.known.incumbent = (hone_incumbent){.is_there = true, .kernel = 1, .config = stored->config};
        if ((winner_of(&g) == stored) != rows[i].stays) fail_msg("row %zu", i);
    }
}

// Seen on a busy machine: the fastest was slow while the default took part, so that their few rounds show no difference.
static void a_default_that_was_certainly_slower_does_not_come_back(void **state)
{
    (void)state;
    finals_ground g;
    begin(&g);
    hone_candidate *steady = add(&g, 1, 1000, 1, 1), *changes = add(&g, 2, 1300, 1, 1);
    const hone_candidate *standard = add(&g, 0, 1150, 0, 0);
    g.swing[1] = 0.7;
    g.later_ns[1] = 900;
    const hone_candidate *winner = winner_of(&g);
    assert_ptr_not_equal(winner, standard);
    assert_true(winner == steady || winner == changes);
}

static void a_tie_goes_to_the_nearest_to_its_default_then_the_earlier_kernel_then_the_lesser_values(void **state)
{
    static const struct {
        uint32_t kernel;
        int64_t first, second;
    } order[] = {{1, 0, 0}, {2, 0, 0}, {1, 0, 1}, {1, 0, 2}, {1, 1, 0}, {2, 0, 1}, {1, 1, 1}, {1, 1, 2}, {1, 2, 1}};
    enum { COUNT = sizeof order / sizeof order[0] };
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = i + 1; j < 2 * COUNT; j++) {
            if (j % COUNT == i % COUNT || j % COUNT < i) continue;
            size_t simple = i, other = j % COUNT;
            bool swapped = j >= COUNT; // also in the other order, and whoever was faster in the race by a trifle
            begin(&g);
            size_t first = swapped ? other : simple, second = swapped ? simple : other;
            add(&g, order[first].kernel, 1000, order[first].first, order[first].second);
            add(&g, order[second].kernel, 1001, order[second].first, order[second].second);
            if (winner_of(&g) != &g.candidates[swapped ? 1 : 0]) fail_msg("%zu before %zu", simple, other);
        }
    }
}

// Duration ------------------------------------------------------------------------------------------------------------

static void the_finals_end_after_two_blocks_that_are_certain_and_at_the_most_rounds(void **state)
{
    static const struct {
        double second_ns, swing;
        uint32_t blocks;
    } rows[] = {{1100, 0, 2}, {1004, 0, 2}, {1100, 0.05, 2}, {1001, 0.08, 9}, {1000, 0.001, 2}};
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        add(&g, 0, 1000, 1, 0);
        add(&g, 0, rows[i].second_ns, 2, 0);
        g.swing[1] = rows[i].swing;
        (void)winner_of(&g);
        if (blocks_of(&g) != rows[i].blocks) fail_msg("row %zu: %u blocks", i, blocks_of(&g));
        // Five rounds, then as many as are worth preparing, up to 256 in all.
        assert_int_equal(g.finals.rounds, rows[i].blocks == 2 ? 37 : 256);
        // Each of another order, and apart in time.
        for (uint32_t b = 1; b < blocks_of(&g); b++)
            assert_int_equal(g.blocks[b].seed, g.blocks[0].seed + b);
        assert_int_equal(g.paused_ns, 20000000 * (rows[i].blocks == 2 ? 1 : rows[i].blocks));
    }
}

static void no_block_is_begun_after_the_contests_end(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1001, 2, 0);
    g.swing[1] = 0.02;
    g.block_ns = 3400000000;
    (void)winner_of(&g);
    assert_int_equal(blocks_of(&g), 3);
    // One that begins late has one block, and a share of the contest's time for it; another makes ten rounds.
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1001, 2, 0);
    g.now_ns = g.state.trials.end_ns;
    g.state.question.options.seconds = 2;
    (void)winner_of(&g);
    assert_int_equal(blocks_of(&g), 2);
    assert_true(g.blocks[0].seconds > 0.14 && g.blocks[0].seconds < 0.16);
    assert_int_equal(g.blocks[0].rounds + g.blocks[1].rounds, 10);
    assert_int_equal(g.paused_ns, 0);
}

// As fast as the block before, three rounds take 4.2 of the 3 s that are left.
static void no_block_is_begun_whose_rounds_end_after_the_contest(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1001, 2, 0);
    g.swing[1] = 0.02;
    g.block_ns = 7000000000;
    (void)winner_of(&g);
    assert_int_equal(blocks_of(&g), 1);
}

// They get all remaining time if no smaller call follows, and at least their share. Other kernels get as long as their
// checks take.
static void builtin_kernels_are_verified_in_the_remaining_time(void **state)
{
    static finals_ground g;
    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        begin(&g);
        add(&g, 0, 1000, 1, 0);
        g.refs[0].builtin = true;
        g.block_ns = is_late ? 20000000000 : 1000000000;
        (void)winner_of(&g);
        const hone_block *last = &g.blocks[g.asked - 1];
        const double left = is_late ? 0 : (double)(g.state.trials.end_ns - (g.now_ns - g.block_ns)) * 1e-9,
                     expected = fmax(left, hone_confirm_share * 10);
        assert_true(fabs(last->looks_seconds - expected) < 1e-6);
        assert_false(g.state.verified_smaller);
    }
}

static void long_runs_meet_in_fewer_rounds_and_with_fewer_finalists_but_never_alone(void **state)
{
    // Half of ten seconds are there for the first block, and two runs of each are not timed.
    static const struct {
        double seconds;
        uint32_t count, second_rounds; // 0: three rounds do not end with the contest
    } rows[] = {{0.06, 4, 8}, {0.126, 4, 5}, {0.177, 4, 5}, {0.180, 3, 5}, {0.24, 2, 8}, {0.26, 2, 5}, {3, 2, 0}};
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        for (int64_t j = 0; j < 4; j++)
            add(&g, 0, 1e9 * rows[i].seconds, 1 + j, 0);
        (void)winner_of(&g);
        if (g.blocks[0].count != rows[i].count) fail_msg("row %zu: %u", i, g.blocks[0].count);
        assert_int_equal(g.finals.count, rows[i].count);
        assert_int_equal(g.blocks[0].rounds, 5);
        const uint32_t second = g.blocks[1].verifies ? 0 : g.blocks[1].rounds; // else the winner is looked at
        if (second != rows[i].second_rounds) fail_msg("row %zu: %u rounds", i, second);
    }
}

static void keep_samples(hone_candidate *candidate, uint32_t count)
{
    candidate->trial.kept = count;
    for (uint32_t i = 0; i < count; i++)
        candidate->trial.kept_ns[i] = candidate->trial.time_ns;
}

// Nobody is compared with it: three samples of this contest's race are its time, or one where no time is left, and it is
// only looked at.
static void a_single_slow_finalist_is_not_timed_again(void **state)
{
    static const struct {
        double time_ns;
        uint32_t kept;
        bool resumed, is_late, is_timed;
    } rows[] = {
        {20e6, 3, false, false, false}, {20e6, 2, false, false, true}, {20e6, 1, false, true, false},
        {20e6, 0, false, true, true},   {20e6, 3, true, true, true},   {9e6, 3, false, false, true},
    };
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        hone_candidate *alone = add(&g, 0, rows[i].time_ns, 0, 0);
        alone->resumed = rows[i].resumed;
        keep_samples(alone, rows[i].kept);
        if (rows[i].is_late) g.state.trials.end_ns = 0;
        assert_ptr_equal(winner_of(&g), alone);
        if ((blocks_of(&g) > 0) != rows[i].is_timed) fail_msg("row %zu: %u blocks", i, blocks_of(&g));
        hone_contest_adopt_finals(&g.finals);
        assert_true(fabs(alone->trial.time_ns - rows[i].time_ns) < 1e-3 * rows[i].time_ns);
        assert_true(alone->trial.samples >= (rows[i].is_late ? 1 : 3));
    }
}

// One block of five rounds, and five more that are shown: the default was faster in the race and in the block. Where the race says otherwise, or another may
// win, or runs are short, or there are three, the finals go on.
static void two_slow_finalists_end_where_the_default_leads_by_every_reading(void **state)
{
    enum { LEADS, RACE_DIFFERS, NO_DEFAULT, IS_SHORT, THREE, CASES };
    static finals_ground g;
    (void)state;
    for (int which = 0; which < CASES; which++) {
        const double unit = which == IS_SHORT ? 1e6 : 20e6;
        begin(&g);
        hone_candidate *standing = add(&g, 0, unit, which == NO_DEFAULT, 0), *other = add(&g, 0, 1.02 * unit, 2, 0);
        if (which == THREE) keep_samples(add(&g, 0, 1.03 * unit, 3, 0), 3);
        keep_samples(standing, 3);
        keep_samples(other, 3);
        for (int r = 0; r < 3 && which == RACE_DIFFERS; r++)
            other->trial.kept_ns[r] = 0.99 * unit;
        g.swing[0] = g.swing[1] = 0.05; // two blocks do not make it certain
        g.times_ns[0] = 0.99 * unit;
        assert_ptr_equal(winner_of(&g), standing);
        if (which == LEADS ? g.finals.rounds > 10 : g.finals.rounds <= 10)
            fail_msg("case %d: %u rounds in %u blocks", which, g.finals.rounds, blocks_of(&g));
    }
}

// Beside its sample each takes a millisecond, and that of a short run is a burst of them; where other work disturbs
// samples, they are taken again after a rest.
static void short_runs_have_what_surrounds_them_counted(void **state)
{
    static const struct {
        double disturbed, seconds;
        uint32_t count;
    } rows[] = {{0, 0.281, 8}, {0, 0.279, 7}, {0.5, 0.673, 8}, {0.5, 0.671, 7}};
    static finals_ground g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&g);
        for (int64_t j = 0; j < 8; j++)
            add(&g, 0, 10, 1 + j, 0);
        g.state.trials.taken = 100;
        g.state.trials.disturbed = (uint64_t)(100 * rows[i].disturbed);
        g.state.question.options.seconds = 0.01;
        g.state.trials.end_ns = (uint64_t)(1e9 * rows[i].seconds);
        (void)winner_of(&g);
        if (g.finals.count != rows[i].count) fail_msg("row %zu: %u", i, g.finals.count);
    }
}

// Disturbed samples ---------------------------------------------------------------------------------------------------

// A finalist whose disturbed samples are ten times as long is judged by the others, and by those of the race where no
// sample was left alone.
static void samples_that_were_disturbed_do_not_decide(void **state)
{
    static finals_ground g;
    (void)state;
    for (int always = 0; always < 2; always++) {
        begin(&g);
        hone_candidate *fast = add(&g, 0, 1000, 1, 0);
        const hone_candidate *slow = add(&g, 0, 1100, 2, 0);
        g.disturbs[0] = always != 0 ? 1 : 2;
        if (always != 0) {
            fast->trial.kept = 6;
            for (int i = 0; i < 6; i++)
                fast->trial.kept_ns[i] = 1000;
        }
        assert_ptr_equal(winner_of(&g), fast);
        assert_false(takes_part(&g, slow) && g.finals.finalists[g.finals.winner].candidate == slow);
    }
}

static void a_neighbour_that_disturbs_both_of_a_round_alike_leaves_it_to_compare_them(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    g.is_shared = true;
    const hone_candidate *fast = add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1010, 2, 0);
    assert_ptr_equal(winner_of(&g), fast);
    const hone_interval ratio = hone_finals_ratio(&g.finals, 0, 1, 1);
    assert_true(ratio.low > 1.009 && ratio.high < 1.011);
}

// In the race both took the same time, and now one is slower. The cause may be temporary, so both are measured for
// seconds, and for all of the remaining time if the race used its share.
static void a_ranking_that_changed_after_the_race_is_measured_longer(void **state)
{
    static finals_ground g;
    static const struct row {
        bool changes;
        uint64_t raced_ns, least_ns, most_ns; // paused
    } rows[] = {
        {false, 0, 0, 1000000000},
        {true, 0, 1000000000, 2000000000},
        {true, 3000000000, 5000000000, 7000000000},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        begin(&g);
        g.now_ns = rows[r].raced_ns;
        for (int64_t i = 0; i < 2; i++) {
            hone_candidate *candidate = add(&g, 0, 1000, 1 + i, 0);
            candidate->trial.kept = 1;
            candidate->trial.kept_ns[0] = i == 0 || !rows[r].changes ? 1000 : 800;
        }
        (void)winner_of(&g);
        assert_int_equal(blocks_of(&g), rows[r].changes ? 9 : 2);
        assert_in_range(g.paused_ns, rows[r].least_ns, rows[r].most_ns);
    }
}

// The race's samples tell: on a busy machine each takes many times what is expected, and few finalists with enough rounds say more
// than many with three.
static void there_are_few_finalists_if_samples_took_long(void **state)
{
    static finals_ground g;
    const double expected_ns = 1e6 + hone_burst_ns; // of a sample
    (void)state;
    for (double pace = 1; pace <= 100; pace *= 100) {
        begin(&g);
        for (int64_t i = 0; i < 11; i++)
            add(&g, 0, 1000 + (double)i, 1 + i, 0)->trial.taken = 5;
        g.state.spending.sampling_ns = pace * 11 * 5 * expected_ns;
        (void)winner_of(&g);
        assert_int_equal(g.blocks[0].count, pace > 1 ? 2 : 11);
        assert_int_equal(g.blocks[0].rounds, 5);
    }
}

// The pauses between blocks are seconds there.
static void a_cancel_takes_effect_between_blocks(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (int64_t i = 0; i < 2; i++) {
        hone_candidate *candidate = add(&g, 0, 1000, 1 + i, 0);
        candidate->trial.kept = 1;
        candidate->trial.kept_ns[0] = i == 0 ? 1000 : 800;
    }
    g.cancel_ns = 700000000;
    g.state.question.options.cancel = &g.cancel;
    assert_int_equal(run(&g), HONE_CANCELLED);
    assert_in_range(g.paused_ns, g.cancel_ns, g.cancel_ns + 100000000);
}

// More than four last where the first block cannot tell them apart.
static void finalists_that_may_be_faster_stay(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (int64_t i = 0; i < 6; i++) {
        add(&g, 0, 1000 + (double)i, 1 + i, 0);
        g.swing[i] = i < 4 ? 0 : 0.2;
    }
    (void)winner_of(&g);
    assert_int_equal(g.blocks[1].count, 6);
}

static void the_greatest_error_of_all_blocks_is_kept(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0)->trial.max_error = 0.5;
    add(&g, 0, 1100, 2, 0)->trial.max_error = 0.5;
    g.max_error[0] = 0.7;
    g.max_error[1] = 0.3;
    (void)winner_of(&g);
    assert_true(g.candidates[0].trial.max_error >= 0.7);
    assert_true(g.candidates[1].trial.max_error >= 0.5 && g.candidates[1].trial.max_error < 0.6);
}

// Undecided contests --------------------------------------------------------------------------------------------------

static const char *undecided(finals_ground *g, bool ran_out)
{
    static char words[200];
    (void)winner_of(g);
    assert_true(g->now_ns < g->state.trials.end_ns);
    if (ran_out) g->now_ns = g->state.trials.end_ns;
    g->state.trials.taken = 100;
    g->state.trials.disturbed = 38;
    hone_finals_say_undecided(&g->state, &g->finals, words, sizeof words);
    return words;
}

static void what_is_left_open_is_said_with_what_would_settle_it(void **state)
{
    static finals_ground g;
    static char there;
    (void)state;
    for (int open = 0; open < 2; open++) {
        begin(&g);
        g.refs[0].kernel.name = "one";
        g.refs[1].kernel.name = "two";
        add(&g, 0, 1000, 1, 0);
        add(&g, 1, open != 0 ? 1010 : 1100, 1, 0);
        g.swing[1] = open != 0 ? 0.12 : 0;
        for (int i = 0; i < 3; i++) {
            g.contestants[i].space = (hone_bound_space *)(uintptr_t)&there;
            g.contestants[i].tried = i < 2;
        }
        g.contestants[2].is_refused = open == 0;
        const char *words = undecided(&g, false);
        if (open == 0) {
            assert_string_equal(words, "");
            continue;
        }
        assert_ptr_equal(strstr(words, "1 of 3 kernels were never tried, two takes 1.0"), words);
        assert_non_null(strstr(words, " times as long, 38 % of the samples were disturbed; try --seconds 30"));
        g.state.question.options.evaluations = 2;
        assert_non_null(strstr(undecided(&g, true), " of the samples were disturbed; try more than --evals 2"));
    }
    begin(&g);
    g.refs[0].kernel.name = "one";
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1010, 2, 0);
    g.swing[1] = 0.12;
    // The contest ended early because more rounds would not have helped, so the message must not advise more seconds.
    const char *early = undecided(&g, false);
    assert_non_null(strstr(early, "another config of one takes 1.0"));
    assert_non_null(strstr(early, "of the samples were disturbed; try again on a quieter machine"));
    assert_null(strstr(early, "--seconds"));
    g.state.trials.marks = HONE_DEVICE_SHARED | HONE_DEVICE_SLOWED;
    assert_non_null(strstr(
        undecided(&g, true), "of the samples were disturbed by other processes on the device; try --seconds 30"));
    begin(&g);
    g.refs[0].kernel.name = "one";
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1010, 2, 0);
    g.swing[1] = 0.12;
    g.disturbs[0] = g.disturbs[1] = 1;
    assert_non_null(strstr(undecided(&g, false), "; try again on a quieter machine: no round was left alone"));
    begin(&g);
    g.refs[0].kernel.name = "one";
    add(&g, 0, 1000, 1, 0);
    add(&g, 0, 1010, 2, 0);
    g.swing[1] = 0.12;
    g.disturbs[0] = g.disturbs[1] = 1;
    assert_non_null(strstr(undecided(&g, true), "; try --seconds 30 on a quieter machine: no round was left alone"));
}

// It left the finals when five were faster. Then the others became slower, and it was not measured again.
static void one_that_was_crowded_out_and_may_be_much_faster_leaves_the_contest_undecided(void **state)
{
    static finals_ground g;
    (void)state;
    for (int slows = 0; slows < 2; slows++) {
        begin(&g);
        g.refs[0].kernel.name = "one";
        for (int64_t i = 0; i < 5; i++)
            add(&g, 0, 1000 * (1 + 0.02 * (double)i), 1 + i, 0);
        add(&g, 0, 1090, 9, 0);
        (void)winner_of(&g);
        for (uint32_t i = 0; i < g.finals.count; i++) {
            hone_finalist *finalist = &g.finals.finalists[i];
            finalist->crowded_out = finalist->out = finalist->candidate == &g.candidates[5];
            if (!finalist->out) continue;
            finalist->rounds = 5;
            for (uint32_t r = 0; r < 5; r++)
                finalist->samples[r].time_ns = slows != 0 ? 900 + 50.0 * r : 1090;
        }
        char words[200];
        hone_finals_say_undecided(&g.state, &g.finals, words, sizeof words);
        assert_true((strstr(words, "another config of one takes 1") != NULL) == (slows != 0));
    }
}

// Rejections ----------------------------------------------------------------------------------------------------------

static void a_rejected_finalist_is_named_and_the_others_start_again(void **state)
{
    static finals_ground g;
    (void)state;
    begin_with_two(&g);
    g.answers[1] = FALLS_OUT;
    g.failed = 0;
    g.refs[0].builtin = g.refs[1].builtin = true;
    assert_ptr_equal(winner_of(&g), &g.candidates[1]);
    assert_true(g.candidates[0].out);
    assert_int_equal(g.candidates[0].trial.failure, HONE_FAILURE_WRONG);
    assert_string_equal(g.rows[0].reason, "it was wrong");
    assert_int_equal(g.rows[0].rejected[HONE_FAILURE_WRONG], 1);
    assert_int_equal(g.finals.count, 1);
    assert_int_equal(g.finals.rounds, 37); // none is left of the first attempt
}

// Another finalist may be the cause, so each runs alone. If none fails alone, all stay. This happens only once.
static void a_finalist_that_fails_beside_others_is_run_alone(void **state)
{
    static finals_ground g;
    (void)state;
    begin_with_two(&g);
    g.answers[0] = FALLS_OUT;
    g.failed = 0;
    assert_ptr_equal(winner_of(&g), &g.candidates[0]);
    assert_false(g.candidates[0].out || g.candidates[1].out);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(g.blocks[1 + i].count, 1);
        assert_ptr_equal(g.blocks[1 + i].finalists[0], &g.candidates[i]);
        assert_true(g.blocks[1 + i].verifies);
    }
    begin_with_two(&g);
    g.answers[0] = g.answers[3] = FALLS_OUT;
    g.failed = 0;
    assert_ptr_equal(winner_of(&g), &g.candidates[1]);
    assert_int_equal(g.candidates[0].trial.failure, HONE_FAILURE_WRONG);
}

// A block fails and the culprit is unknown: each finalist runs alone.
static void after_a_failure_of_unknown_origin_each_finalist_is_run_alone(void **state)
{
    static finals_ground g;
    (void)state;
    begin_with_two(&g);
    g.answers[0] = FALLS_OUT;
    g.failed = 2;
    assert_ptr_equal(winner_of(&g), &g.candidates[0]);
    assert_false(g.candidates[0].out || g.candidates[1].out);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(g.blocks[1 + i].count, 1);
        assert_true(g.blocks[1 + i].verifies);
    }
}

// A finalist that was right in the race and in its rounds may fail the last verification.
static void a_winner_that_fails_the_last_verification_is_rejected(void **state)
{
    static finals_ground g;
    (void)state;
    begin_with_two(&g);
    g.alone = FALLS_OUT;
    assert_int_equal(run(&g), HONE_NOT_FOUND);
    assert_int_equal(g.candidates[0].trial.failure, HONE_FAILURE_WRONG);
    assert_int_equal(g.candidates[1].trial.failure, HONE_FAILURE_WRONG);
    begin_with_two(&g);
    g.kills[0] = true;
    assert_ptr_equal(winner_of(&g), &g.candidates[1]);
    assert_int_equal(g.candidates[0].trial.failure, HONE_FAILURE_CRASH);
}

static void a_finalist_that_kills_the_worker_is_found_by_running_it_alone(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 1, 1010, 2, 0);
    add(&g, 2, 1020, 3, 0);
    g.kills[1] = true;
    assert_ptr_equal(winner_of(&g), &g.candidates[0]);
    assert_false(g.candidates[0].out || g.candidates[2].out);
    assert_int_equal(g.candidates[1].trial.failure, HONE_FAILURE_CRASH);
    assert_string_equal(g.rows[1].reason, "the worker is gone");
    static const uint32_t alone[] = {0, 0, 1, 2, 2}; // one that passes is prepared again in the same process
    const uint32_t count = sizeof alone / sizeof alone[0];
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(g.blocks[1 + i].count, 1);
        assert_ptr_equal(g.blocks[1 + i].finalists[0], &g.candidates[alone[i]]);
        assert_true(g.blocks[1 + i].verifies);
    }
    assert_int_equal(g.blocks[1 + count].count, 2);
}

static void a_finalist_that_fails_alone_is_rejected(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 1, 1010, 2, 0);
    g.answers[0] = LOST;
    g.alone = FALLS_OUT;
    assert_int_equal(run(&g), HONE_NOT_FOUND);
    assert_non_null(strstr(g.err.message, "no candidate passed"));
    assert_int_equal(g.candidates[0].trial.failure, HONE_FAILURE_WRONG);
    assert_int_equal(g.candidates[1].trial.failure, HONE_FAILURE_WRONG);
}

// The worker was lost, and the search for the culprit fails for another reason. That ends the contest, although another
// attempt would succeed.
static void a_failure_during_the_search_for_the_culprit_ends_the_contest(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 1, 1010, 2, 0);
    g.answers[0] = LOST;
    g.alone = RUNS_OUT_OF_MEMORY;
    assert_int_equal(run(&g), HONE_OUT_OF_MEMORY);
    assert_int_equal(g.asked, 2);
    assert_false(g.candidates[0].out || g.candidates[1].out);
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 1, 1010, 2, 0);
    g.answers[1] = RUNS_OUT_OF_MEMORY;
    assert_int_equal(run(&g), HONE_OUT_OF_MEMORY);
}

static void a_worker_lost_once_rejects_no_finalist(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0);
    add(&g, 1, 1010, 2, 0);
    g.answers[0] = LOST;
    assert_ptr_equal(winner_of(&g), &g.candidates[0]);
}

// The machine is too busy to measure all of them together.
static void finalists_that_are_lost_together_and_stand_alone_meet_in_smaller_groups(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    for (uint32_t i = 0; i < 4; i++)
        add(&g, i, 1000 + 10 * i, 1, 0);
    g.times_ns[1] = 900;
    g.most_together = 2;
    assert_ptr_equal(winner_of(&g), &g.candidates[1]);
    assert_int_equal(g.blocks[0].count, 4);
    assert_int_equal(g.blocks[1 + 2 * 4].count, 2); // each was confirmed twice, alone
    assert_false(g.candidates[2].out || g.candidates[3].out);
    for (uint32_t most = 1; most <= 2; most++) {
        begin(&g);
        for (uint32_t i = 0; i < 4; i++)
            add(&g, i, 1000 + 10 * i, 1, 0);
        g.most_together = most;
        g.state.chosen.is_there = true; // by a tuner of the caller's
        g.state.chosen.kernel = 2;
        g.state.chosen.config = g.candidates[2].config;
        assert_ptr_equal(winner_of(&g), &g.candidates[2]);
    }
}

static void there_are_no_finals_without_a_candidate(void **state)
{
    static finals_ground g;
    (void)state;
    begin(&g);
    add(&g, 0, 1000, 1, 0)->out = true;
    assert_int_equal(run(&g), HONE_NOT_FOUND);
    assert_int_equal(g.asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_in_rank_take_part_where_they_are_not_hopeless),
        cmocka_unit_test(the_best_of_every_kernel_takes_part_where_that_is_quick),
        cmocka_unit_test(rejected_candidates_and_twins_do_not_take_part),
        cmocka_unit_test(the_default_and_what_is_stored_take_part_however_slow),
        cmocka_unit_test(four_and_what_answers_today_last_beyond_the_first_block),
        cmocka_unit_test(candidates_shown_in_tables_have_ten_rounds),
        cmocka_unit_test(the_fastest_wins_unless_a_simpler_one_ties),
        cmocka_unit_test(what_may_be_lost_counts_as_what_may_be_gained),
        cmocka_unit_test(a_promise_whose_interval_is_wide_leaves_the_default),
        cmocka_unit_test(few_rounds_beside_other_work_leave_the_default),
        cmocka_unit_test(the_default_is_of_a_kernel_that_does_not_yield),
        cmocka_unit_test(the_finals_decide_and_not_the_race),
        cmocka_unit_test(what_is_in_its_place_stays_until_another_is_certainly_faster),
        cmocka_unit_test(a_default_that_was_certainly_slower_does_not_come_back),
        cmocka_unit_test(a_tie_goes_to_the_nearest_to_its_default_then_the_earlier_kernel_then_the_lesser_values),
        cmocka_unit_test(the_finals_end_after_two_blocks_that_are_certain_and_at_the_most_rounds),
        cmocka_unit_test(no_block_is_begun_after_the_contests_end),
        cmocka_unit_test(no_block_is_begun_whose_rounds_end_after_the_contest),
        cmocka_unit_test(builtin_kernels_are_verified_in_the_remaining_time),
        cmocka_unit_test(long_runs_meet_in_fewer_rounds_and_with_fewer_finalists_but_never_alone),
        cmocka_unit_test(a_single_slow_finalist_is_not_timed_again),
        cmocka_unit_test(two_slow_finalists_end_where_the_default_leads_by_every_reading),
        cmocka_unit_test(short_runs_have_what_surrounds_them_counted),
        cmocka_unit_test(samples_that_were_disturbed_do_not_decide),
        cmocka_unit_test(a_neighbour_that_disturbs_both_of_a_round_alike_leaves_it_to_compare_them),
        cmocka_unit_test(a_ranking_that_changed_after_the_race_is_measured_longer),
        cmocka_unit_test(there_are_few_finalists_if_samples_took_long),
        cmocka_unit_test(a_cancel_takes_effect_between_blocks),
        cmocka_unit_test(finalists_that_may_be_faster_stay),
        cmocka_unit_test(the_greatest_error_of_all_blocks_is_kept),
        cmocka_unit_test(one_that_was_crowded_out_and_may_be_much_faster_leaves_the_contest_undecided),
        cmocka_unit_test(what_is_left_open_is_said_with_what_would_settle_it),
        cmocka_unit_test(a_rejected_finalist_is_named_and_the_others_start_again),
        cmocka_unit_test(a_finalist_that_fails_beside_others_is_run_alone),
        cmocka_unit_test(after_a_failure_of_unknown_origin_each_finalist_is_run_alone),
        cmocka_unit_test(a_winner_that_fails_the_last_verification_is_rejected),
        cmocka_unit_test(a_finalist_that_kills_the_worker_is_found_by_running_it_alone),
        cmocka_unit_test(a_finalist_that_fails_alone_is_rejected),
        cmocka_unit_test(a_failure_during_the_search_for_the_culprit_ends_the_contest),
        cmocka_unit_test(a_worker_lost_once_rejects_no_finalist),
        cmocka_unit_test(finalists_that_are_lost_together_and_stand_alone_meet_in_smaller_groups),
        cmocka_unit_test(there_are_no_finals_without_a_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
