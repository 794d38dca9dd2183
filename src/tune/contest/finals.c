// The finals: the best four and the default, round by round in random order, in blocks apart in time, until the order
// is certain or a tie is declared. The race's own times would crown whoever was lucky (a median of five picks a config
// up to 7 % slower than the best over a large space).
//
// A round has one sample of each finalist, so that what disturbs the machine for a while disturbs all of them; the
// ratio of two finalists and its interval come from rounds (statistics.c). Blocks stand apart in time because what
// disturbs a machine lasts longer than a round. It ends when every other finalist is certainly slower than the fastest
// (the 95 % interval of the ratio lies above 1) or so near that it does not matter (below 1.005), after at least two
// blocks and at most eight. A winner among ties is chosen by a total order that knows no times, so that a tie always
// ends the same.
//
// Looking after each block makes it likelier than 5 % that one of the looks errs.
// bench_ab counts wrong picks between two configs that differ by 2 % (docs/benchmarks.md).
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <string.h>

enum {
    BEST_COUNT = 4,
    KERNEL_COUNT = 6, // with the best of further kernels
    BLOCK_ROUNDS = 8,
    LEAST_BLOCK_ROUNDS = 5, // two blocks make ten rounds
    EXTRA_ROUNDS = 2,       // a block's runs beside its rounds: to verify before and after
    LEAST_FINALISTS = 2,
    LEAST_BLOCKS = 2,
    MOST_BLOCKS = 8, // as many as HONE_MAX_ROUNDS holds
    MOST_ATTEMPTS = 64
};

static const double hopeless = 1.5;         // over the best: no finalist
static const double near = 1.2;             // over the best: a further kernel's best is one
static const double hopeless_default = 3.0; // the default may be slower: its time is shown
// Chosen by hand, wider at first: with these scripts/racing has less regret (docs/benchmarks.md).
static const double tie = 1.002, undecided_tie = 1.005, near_enough = 1.005;
static const double least_share = 0.15; // of the contest's time, also when the race has spent all
static const uint64_t pause_ns = 50000000;
static const double overhead_ns = 1e6; // beside its sample, until threads rest and it is warm again
static const char where[] = "tune.finals";

// Finalists -----------------------------------------------------------------------------------------------------------

static bool is_finalist(const void *ctx, const hone_candidate *candidate)
{
    const hone_finals *finals = ctx;
    for (uint32_t i = 0; i < finals->count; i++)
        if (finals->finalists[i] == candidate) return true;
    return false;
}

// Adds the next best until there are `most`, as long as they are within `reach` of the first.
static void add_best(const hone_standings *standings, hone_finals *out, uint32_t most, double reach, bool other)
{
    hone_candidate *candidate;
    while (out->count < most && (candidate = hone_standings_next_best(standings, is_finalist, out, other)) != NULL) {
        if (out->count > 0 && candidate->rank_ns > reach * out->finalists[0]->rank_ns) return;
        out->finalists[out->count++] = candidate;
    }
}

static bool is_incumbent(const hone_incumbent *incumbent, const hone_candidate *candidate)
{
    return incumbent->is_there && candidate->kernel == incumbent->kernel &&
           hone_config_equal(&candidate->config, &incumbent->config);
}

static hone_candidate *find_incumbent(const hone_standings *standings, const hone_incumbent *incumbent)
{
    for (size_t i = 0; i < standings->count; i++)
        if (!standings->candidates[i].out && is_incumbent(incumbent, &standings->candidates[i]))
            return &standings->candidates[i];
    return NULL;
}

// The default and what the store answers with today take part as long as they are not hopeless.
static void add_special(hone_finals *out, hone_candidate *candidate, double reach)
{
    if (out->count == 0 || out->count == HONE_MAX_FINALISTS || candidate == NULL || is_finalist(out, candidate)) return;
    if (candidate->rank_ns <= reach * out->finalists[0]->rank_ns) out->finalists[out->count++] = candidate;
}

static void choose_finalists(const hone_standings *standings, const hone_incumbent *incumbent, hone_finals *out)
{
    memset(out, 0, sizeof *out);
    add_best(standings, out, BEST_COUNT, hopeless, false);
    // Four configs of one kernel are often as good as one; another kernel may have been unlucky in the race.
    add_best(standings, out, KERNEL_COUNT, near, true);
    add_special(out, find_incumbent(standings, incumbent), hopeless);
    add_special(out, hone_standings_default(standings), hopeless_default);
}

// Order ---------------------------------------------------------------------------------------------------------------

static uint32_t differing(const hone_field *field, const hone_candidate *candidate)
{
    const hone_config *standard = &field->contestants[candidate->kernel].default_config;
    uint32_t count = 0;
    for (uint32_t i = 0; i < candidate->config.count; i++)
        count += candidate->config.values[i] != standard->values[i];
    return count;
}

// Simpler: nearer to its kernel's default, of a kernel that stands earlier in the registry, of smaller values. A total
// order, so that a tie always ends the same.
static bool is_simpler(const hone_field *field, const hone_candidate *a, const hone_candidate *b)
{
    uint32_t a_differs = differing(field, a), b_differs = differing(field, b);
    if (a_differs != b_differs) return a_differs < b_differs;
    if (a->kernel != b->kernel) return a->kernel < b->kernel;
    for (uint32_t i = 0; i < a->config.count; i++)
        if (a->config.values[i] != b->config.values[i]) return a->config.values[i] < b->config.values[i];
    return false;
}

static double center_of(const double *samples, uint32_t count)
{
    double copy[HONE_MAX_ROUNDS];
    memcpy(copy, samples, count * sizeof copy[0]);
    return hone_center(copy, count);
}

static uint32_t fastest(const hone_finals *finals)
{
    uint32_t best = 0;
    double best_ns = INFINITY;
    for (uint32_t i = 0; i < finals->count; i++) {
        double time_ns = center_of(finals->samples[i], finals->rounds);
        if (time_ns < best_ns) {
            best = i;
            best_ns = time_ns;
        }
    }
    return best;
}

// Whether every other finalist is certainly slower than the fastest, or so near that it does not matter.
static bool is_certain(const hone_finals *finals, uint64_t seed)
{
    uint32_t best = fastest(finals);
    for (uint32_t i = 0; i < finals->count; i++) {
        if (i == best) continue;
        hone_interval ratio = hone_ratio(finals->samples[best], finals->samples[i], finals->rounds, seed);
        if (ratio.low <= 1 && ratio.high > near_enough) return false;
    }
    return true;
}

static uint32_t choose_winner(const hone_contest_state *state, const hone_finals *finals)
{
    const hone_incumbent *incumbent = &state->known.incumbent;
    hone_assert(finals->count > 0 && finals->rounds > 0);
    uint32_t best = fastest(finals), winner = best;
    if (is_incumbent(incumbent, finals->finalists[best])) return best;
    for (uint32_t i = 0; i < finals->count; i++) {
        if (i == best) continue;
        hone_interval ratio =
            hone_ratio(finals->samples[best], finals->samples[i], finals->rounds, state->question.options.seed);
        bool undecided = ratio.low <= 1, tied = ratio.middle <= tie || (undecided && ratio.middle <= undecided_tie);
        // What is in its place stays there until another is certainly faster.
        if ((tied || undecided) && is_incumbent(incumbent, finals->finalists[i])) return i;
        if (tied && is_simpler(&state->field, finals->finalists[i], finals->finalists[winner])) winner = i;
    }
    return winner;
}

// Blocks --------------------------------------------------------------------------------------------------------------

static double seconds_left(const hone_trials *trials)
{
    uint64_t now = hone_trials_now(trials);
    double left = now < trials->end_ns ? (double)(trials->end_ns - now) * 1e-9 : 0;
    return fmax(left, least_share * trials->question->options.seconds);
}

static double seconds_for_block(const hone_trials *trials)
{
    return seconds_left(trials) / LEAST_BLOCKS;
}

static double round_seconds(const hone_finals *finals)
{
    double round = 0;
    for (uint32_t i = 0; i < finals->count; i++)
        round += (fmax(finals->finalists[i]->trial.time_ns, 20e3) + overhead_ns) * 1e-9;
    return round;
}

// Runs of seconds leave time for few: better two finalists and ten rounds than six and one.
static void fit_finalists(hone_finals *finals, double seconds)
{
    while (finals->count > LEAST_FINALISTS && round_seconds(finals) * (LEAST_BLOCK_ROUNDS + EXTRA_ROUNDS) > seconds)
        finals->count--;
}

static uint32_t rounds_for_block(const hone_finals *finals, double seconds)
{
    double fit = seconds / round_seconds(finals) - EXTRA_ROUNDS;
    return fit >= BLOCK_ROUNDS ? BLOCK_ROUNDS : LEAST_BLOCK_ROUNDS;
}

static void add_samples(hone_finals *finals, const hone_rounds_answer *block)
{
    hone_assert(block->count == finals->count && finals->rounds <= HONE_MAX_ROUNDS);
    for (uint32_t r = 0; r < block->rounds && finals->rounds < HONE_MAX_ROUNDS; r++, finals->rounds++)
        for (uint32_t i = 0; i < finals->count; i++)
            finals->samples[i][finals->rounds] = block->samples[i][r];
    for (uint32_t i = 0; i < finals->count; i++) {
        double *seen = &finals->finalists[i]->trial.max_error;
        if (block->max_error[i] > *seen) *seen = block->max_error[i];
    }
}

// Finalists [first, first + count) in one block.
static hone_block block_of(
    const hone_field *field, const hone_finals *finals, uint32_t first, uint32_t count, uint32_t rounds)
{
    hone_assert(first + count <= finals->count);
    hone_block block = {.count = count, .rounds = rounds};
    for (uint32_t i = 0; i < count; i++) {
        block.finalists[i] = finals->finalists[first + i];
        block.kernels[i] = field->contestants[block.finalists[i]->kernel].ref;
    }
    return block;
}

// The worker was lost with all finalists in it. Alone, the culprit shows itself. False: nobody did.
static hone_status find_culprits(hone_contest_state *state, hone_finals *finals, bool *out_found, hone_error *err)
{
    hone_rounds_answer alone;
    *out_found = false;
    for (uint32_t i = 0; i < finals->count; i++) {
        hone_candidate *candidate = finals->finalists[i];
        hone_error why = {0};
        hone_block block = block_of(&state->field, finals, i, 1, LEAST_BLOCK_ROUNDS);
        block.seed = i;
        block.seconds = seconds_for_block(&state->trials);
        hone_status status = hone_trials_run_rounds(&state->trials, &block, &alone, &why);
        if (status == HONE_KERNEL_FAILED) {
            hone_contest_reject(state, candidate, HONE_FAILURE_CRASH, why.message);
            *out_found = true;
        } else if (status != HONE_OK) {
            return hone_fail(err, status, where, "%s", why.message);
        } else if (alone.failure != HONE_FAILURE_NONE) {
            hone_contest_reject(state, candidate, alone.failure, alone.reason);
            *out_found = true;
        }
    }
    return HONE_OK;
}

// What one attempt came to: every block done, or somebody fell out and there is another attempt.
typedef enum attempt { ATTEMPT_DONE, ATTEMPT_FELL_OUT, ATTEMPT_LOST } attempt;

static hone_status run_block(
    hone_contest_state *state, const hone_finals *finals, uint32_t index, hone_rounds_answer *out, hone_error *err)
{
    double seconds = seconds_for_block(&state->trials);
    hone_block block = block_of(&state->field, finals, 0, finals->count, rounds_for_block(finals, seconds));
    block.seed = state->question.options.seed + index + 1;
    block.seconds = seconds;
    return hone_trials_run_rounds(&state->trials, &block, out, err);
}

static hone_status run_blocks(hone_contest_state *state, hone_finals *finals, attempt *out, hone_error *err)
{
    hone_rounds_answer block;
    hone_trials *trials = &state->trials;
    for (uint32_t b = 0; b < MOST_BLOCKS; b++) {
        hone_error why = {0};
        hone_status status = run_block(state, finals, b, &block, &why);
        *out = ATTEMPT_LOST;
        if (status == HONE_KERNEL_FAILED) return HONE_OK;
        if (status != HONE_OK) return hone_fail(err, status, where, "%s", why.message);
        *out = ATTEMPT_FELL_OUT;
        if (block.failure != HONE_FAILURE_NONE) {
            uint32_t failed = block.failed < finals->count ? block.failed : 0;
            hone_contest_reject(state, finals->finalists[failed], block.failure, block.reason);
            return HONE_OK;
        }
        add_samples(finals, &block);
        *out = ATTEMPT_DONE;
        bool late = hone_trials_now(trials) >= trials->end_ns;
        if (late || (b + 1 >= LEAST_BLOCKS && is_certain(finals, state->question.options.seed))) break;
        hone_trials_pause(trials, pause_ns);
    }
    return HONE_OK;
}

static hone_status nobody(hone_error *err)
{
    return hone_fail(err, HONE_NOT_FOUND, where, "no candidate passed");
}

hone_status hone_contest_run_finals(hone_contest_state *state, hone_finals *out, hone_error *err)
{
    for (uint32_t tried = 0; tried < MOST_ATTEMPTS; tried++) {
        attempt came = ATTEMPT_LOST;
        bool found = true;
        choose_finalists(&state->standings, &state->known.incumbent, out);
        if (out->count == 0) return nobody(err);
        fit_finalists(out, seconds_for_block(&state->trials));
        hone_status status = run_blocks(state, out, &came, err);
        if (status == HONE_OK && came == ATTEMPT_LOST) status = find_culprits(state, out, &found, err);
        if (status != HONE_OK) return status;
        if (came == ATTEMPT_DONE) {
            out->winner = choose_winner(state, out);
            return HONE_OK;
        }
    }
    return hone_fail(
        err, HONE_NOT_FOUND, where,
        "the finalists fell out %d times over: the machine or the kernels are not to be relied on", MOST_ATTEMPTS);
}
