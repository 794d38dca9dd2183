// The finals: the race's leader, the default, the store's choice, the best candidate of each kernel and the next in
// rank are measured in rounds of random order. The rounds come in blocks with pauses between them, until the order is
// certain or the contest's time is over. Choosing by the race's own times would choose a lucky candidate: a median of
// five picks a config up to 7 % slower than the best over a large space.
//
// A round has one sample of each finalist, so that what disturbs the machine for a while disturbs all of them. The
// ratio of two finalists and its interval come from the rounds in which nothing disturbed either (statistics.c). Where
// such rounds are rare, all undisturbed samples of both count, those of the race too. A finalist that is certainly
// slower after a block is out: after one block only few are left of the many that the race could not distinguish, and
// these few have the rest of the time. There are pauses between blocks because what disturbs a machine lasts longer
// than a round.
//
// The finals end, after at least two blocks, when every other finalist is certainly slower than the fastest (the 95 %
// interval of the ratio lies above 1) or so near that it does not matter (below 1.005). Where the order is not the
// race's, the blocks are spread over the time that is left, or over the larger of 2 s and four times the duration of
// the race if that is less: without this limit, a contest of 30 s whose race took milliseconds slept for the rest of
// its time. Among tied finalists the winner is chosen by a total order that does not depend on times, so that a tie
// always ends the same, and the present choice stays if it ties.
//
// Testing after each block makes it likelier than 5 % that one of the tests errs. bench_ab counts wrong picks between
// two configs that differ by 2 % (docs/benchmarks.md).
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_BLOCK_ROUNDS = 5, // two blocks make ten rounds
    SLOW_ROUNDS = 3,        // of a single finalist
    BLOCK_ROUNDS = 8,
    MOST_BLOCK_ROUNDS = 32,
    EXTRA_ROUNDS = 2, // runs that a block needs besides its rounds: to verify before and after
    LEAST_BLOCKS = 2,
    RETAKES = 2, // of a disturbed sample
    SHOWN_BLOCKS = 2,
    MOST_ATTEMPTS = 64
};

static const double least_share = 0.15;   // of the contest's time, also when the race has spent all
static const double first_share = 0.5;    // of the finals' time, for the block in which all take part
static const double shown_share = 0.1;    // of the contest's time, for rounds of what is shown after its end
static const double block_seconds = 0.16; // of rounds: a shorter block is not worth the preparing
static const uint64_t pause_ns = 20000000;
static const uint64_t least_spread_ns = 2000000000;
enum { SPREAD_OF_RACE = 4 }; // spreads blocks over so many times the race's duration
static const char where[] = "tune.finals";

// Blocks --------------------------------------------------------------------------------------------------------------

// When the rounds end. The rest of the time is for verifying the winner.
static uint64_t rounds_until(const hone_contest_state *state)
{
    const hone_budget budget = hone_contest_budget(state);
    const uint64_t confirm_ns = (uint64_t)hone_budget_confirm_ns(&budget), end_ns = state->trials.end_ns;
    return confirm_ns < end_ns ? end_ns - confirm_ns : 0;
}

static double seconds_until(const hone_trials *trials, uint64_t until)
{
    const uint64_t now = hone_trials_now(trials);
    return now < until ? (double)(until - now) * 1e-9 : 0;
}

static double seconds_left(const hone_contest_state *state)
{
    return fmax(seconds_until(&state->trials, rounds_until(state)), least_share * state->question.options.seconds);
}

// Runs of this length vary little from one moment to the next.
static bool is_slow(const hone_finalist *finalist)
{
    const double long_ns = 10e6;
    return finalist->candidate->trial.time_ns > long_ns;
}

// A single finalist is not compared with another one.
static bool is_single_and_slow(const hone_finals *finals)
{
    return finals->count == 1 && is_slow(&finals->finalists[0]);
}

// Two slow finalists, of which the one that answers today is the faster by every reading, need no second block.
static bool ends_early(const hone_contest_state *state, const hone_finals *finals)
{
    return finals->count == 2 && is_slow(&finals->finalists[0]) && is_slow(&finals->finalists[1]) &&
           hone_finals_standing_leads(state, finals);
}

static uint32_t rounds_for_block(const hone_finals *finals, double seconds)
{
    const double round = finals->pace * hone_finals_round_seconds(finals), fit = seconds / round - EXTRA_ROUNDS;
    const uint32_t left = HONE_MOST_FINAL_ROUNDS - finals->rounds;
    double wanted = fmin(fmax(block_seconds / round, BLOCK_ROUNDS), MOST_BLOCK_ROUNDS);
    if (is_single_and_slow(finals))
        wanted = SLOW_ROUNDS;
    else if (finals->rounds == 0 || fit < BLOCK_ROUNDS)
        wanted = LEAST_BLOCK_ROUNDS;
    else if (fit < wanted)
        wanted = fit;
    return wanted < left ? (uint32_t)wanted : left;
}

// A block of the finalists that still take part.
static hone_block block_of(const hone_field *field, const hone_finals *finals, uint32_t rounds)
{
    hone_block block = {.rounds = rounds};
    for (uint32_t i = 0; i < finals->count; i++) {
        if (finals->finalists[i].out || finals->finalists[i].is_spared) continue;
        block.retakes[block.count] = finals->shows || hone_finals_contends(finals, i) ? RETAKES : 0;
        block.finalists[block.count] = finals->finalists[i].candidate;
        block.kernels[block.count++] = field->contestants[finals->finalists[i].candidate->kernel].ref;
    }
    return block;
}

static hone_finalist *find(hone_finals *finals, const hone_candidate *candidate)
{
    for (uint32_t i = 0; i < finals->count; i++)
        if (finals->finalists[i].candidate == candidate) return &finals->finalists[i];
    hone_assert(false);
    return NULL;
}

static void add_samples(hone_finals *finals, const hone_block *asked, const hone_rounds_answer *block)
{
    hone_assert(block->count == asked->count && finals->rounds + block->rounds <= HONE_MOST_FINAL_ROUNDS);
    for (uint32_t i = 0; i < asked->count; i++) {
        hone_finalist *finalist = find(finals, asked->finalists[i]);
        hone_assert(finalist->rounds == finals->rounds);
        for (uint32_t r = 0; r < block->rounds; r++)
            finalist->samples[finalist->rounds++] =
                (hone_sample){block->samples[i][r], block->waited[i][r], block->marks[i][r]};
        double *seen = &finalist->candidate->trial.max_error;
        if (block->max_error[i] > *seen) *seen = block->max_error[i];
    }
    finals->rounds += block->rounds;
}

// Verifies a winner that is a kernel of the library. The library's tests verify it too, so only as many checks are made
// as there is time for; where a smaller call follows, the call itself gets half of that time. Without this limit, a
// contest on a machine with four other busy processes took 10 s instead of 4 s, 6 s of them for these checks.
static hone_status confirm_known(
    hone_contest_state *state, const hone_kernel_ref *kernel, hone_candidate *candidate, hone_error *err)
{
    hone_trials *trials = &state->trials;
    const double part = hone_contest_has_smaller(state) ? 0.5 : 1, left = seconds_until(trials, trials->end_ns),
                 most = part * fmax(left, hone_confirm_share * state->question.options.seconds);
    bool is_done = false;
    hone_confirming how = {seconds_left(state), most, 0, false, false};
    hone_status status = hone_trials_confirm(trials, kernel, candidate, &how, err);
    if (status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE && seconds_until(trials, trials->end_ns) > 0)
        status = hone_contest_verify_smaller(state, candidate, how.left_out, &is_done, err);
    state->verified_briefly = how.left_out && !is_done;
    return status;
}

// Verifies the winner in the time that is left, and does the checks for which there was no time on a smaller call. If
// the kernel takes no smaller call, the checks are made on the call itself however long that takes, and only checks
// that differ little from each other are limited to the time that there is.
static hone_status confirm_winner(
    hone_contest_state *state, const hone_kernel_ref *kernel, hone_candidate *candidate, hone_error *err)
{
    hone_trials *trials = &state->trials;
    if (kernel->builtin) return confirm_known(state, kernel, candidate, err);
    const double left = seconds_until(trials, trials->end_ns),
                 most = fmax(left, hone_confirm_share * state->question.options.seconds);
    const bool leaves = hone_contest_has_smaller(state);
    bool is_done = false;
    state->repeats_seconds = most;
    hone_confirming how = {seconds_left(state), leaves ? most : 0, leaves ? 0 : most, false, false};
    hone_status status = hone_trials_confirm(trials, kernel, candidate, &how, err);
    if (status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE)
        status = hone_contest_verify_smaller(state, candidate, how.left_out, &is_done, err);
    if (status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE && how.left_out && !is_done) {
        how = (hone_confirming){seconds_left(state), 0, most, false, false};
        status = hone_trials_confirm(trials, kernel, candidate, &how, err);
    }
    state->verified_briefly = how.is_brief;
    return status;
}

// Runs all checks on one finalist alone. *out_stands false: it was rejected.
static hone_status confirm(
    hone_contest_state *state, hone_candidate *candidate, bool wins, bool *out_stands, hone_error *err)
{
    char reason[sizeof candidate->trial.reason];
    const hone_kernel_ref *kernel = state->field.contestants[candidate->kernel].ref;
    hone_confirming how = {.seconds = seconds_left(state)};
    hone_status status = wins ? confirm_winner(state, kernel, candidate, err)
                              : hone_trials_confirm(&state->trials, kernel, candidate, &how, err);
    if (status == HONE_OK && wins && candidate->trial.failure == HONE_FAILURE_NONE)
        status = hone_contest_verify_first_runs(state, candidate, err);
    *out_stands = status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE;
    if (status != HONE_OK || *out_stands) return status;
    memcpy(reason, candidate->trial.reason, sizeof reason);
    hone_contest_reject(state, candidate, candidate->trial.failure, reason);
    return HONE_OK;
}

// The worker was lost while all finalists ran in it. Runs each finalist alone to find the one that caused the loss, in
// a process of its own. Each is prepared twice there, because a kernel that crashes on what it kept of a released plan
// is right the first time. *out_found false: each of them passes alone.
static hone_status find_culprits(hone_contest_state *state, hone_finals *finals, bool *out_found, hone_error *err)
{
    enum { TIMES = 2 };
    hone_status status = HONE_OK;
    *out_found = false;
    for (uint32_t i = 0; i < finals->count && status == HONE_OK; i++) {
        bool stands = true;
        hone_sandbox_drop(&state->trials.sandbox);
        for (int time = 0; time < TIMES && status == HONE_OK && stands; time++)
            status = confirm(state, finals->finalists[i].candidate, false, &stands, err);
        *out_found = *out_found || !stands;
    }
    hone_sandbox_drop(&state->trials.sandbox);
    return status;
}

// Runs a finalist that was wrong in a block alone in a new process: another finalist may have written into memory that
// is not checked. If it is right alone, each of the others is checked alone too. A candidate gets this second chance
// once.
static hone_status doubt(hone_contest_state *state, hone_finals *finals, hone_candidate *failed, hone_error *err)
{
    bool stands;
    failed->doubted = true;
    hone_sandbox_drop(&state->trials.sandbox);
    hone_status status = confirm(state, failed, false, &stands, err);
    for (uint32_t i = 0; i < finals->count && status == HONE_OK && stands; i++) {
        if (finals->finalists[i].candidate == failed) continue;
        hone_sandbox_drop(&state->trials.sandbox);
        status = confirm(state, finals->finalists[i].candidate, false, &stands, err);
    }
    return status;
}

// Whether another finalist of the block may have caused the failure. Only results that are wrong or partial can be
// caused by another one. Kernels of the library write only into their own arrays.
static bool is_doubtful(const hone_block *block, const hone_rounds_answer *answer)
{
    bool others = false;
    for (uint32_t i = 0; i < block->count; i++)
        others = others || (i != answer->failed && !block->kernels[i]->builtin);
    return others && (answer->failure == HONE_FAILURE_WRONG || answer->failure == HONE_FAILURE_PARTIAL);
}

// The result of an attempt: every block is done, or a candidate was rejected and another attempt follows.
typedef enum attempt { ATTEMPT_DONE, ATTEMPT_FELL_OUT, ATTEMPT_LOST } attempt;

// The duration of the runs of one sample, in ns. Where blocks are spread over the time that is left, most of that time
// is for runs: with pauses instead, the blocks would cover no more moments and have fewer runs in each.
static double burst_of(const hone_block *block, uint64_t spread)
{
    const double share = 0.6, most_ns = 10e6, samples = (double)block->rounds * block->count;
    return fmin(fmax(share * (double)spread / samples, hone_burst_ns), most_ns);
}

// Runs the next block, of the finalists that still take part.
//   spread  as burst_of
static hone_status run_block(
    hone_contest_state *state,
    hone_finals *finals,
    uint32_t rounds,
    double seconds,
    uint64_t spread,
    attempt *out,
    hone_error *err)
{
    hone_rounds_answer answer;
    hone_error why = {0};
    hone_block block = block_of(&state->field, finals, rounds);
    block.seed = state->question.options.seed + ++finals->blocks;
    block.burst_ns = burst_of(&block, spread);
    block.seconds = seconds;
    const uint64_t start = hone_trials_now(&state->trials);
    hone_status status = hone_trials_run_rounds(&state->trials, &block, &answer, &why);
    const double took = (double)(hone_trials_now(&state->trials) - start) * 1e-9;
    if (answer.rounds > 0) finals->pace = fmax(1, took / (answer.rounds * hone_finals_round_seconds(finals)));
    *out = ATTEMPT_LOST;
    if (status == HONE_KERNEL_FAILED) return HONE_OK;
    if (status != HONE_OK) return hone_fail(err, status, where, "%s", why.message);
    if (answer.failure != HONE_FAILURE_NONE && answer.failed >= block.count) return HONE_OK;
    *out = ATTEMPT_FELL_OUT;
    if (answer.failure != HONE_FAILURE_NONE) {
        hone_candidate *failed = find(finals, block.finalists[answer.failed])->candidate;
        if (is_doubtful(&block, &answer) && !failed->doubted) return doubt(state, finals, failed, err);
        hone_contest_reject(state, failed, answer.failure, answer.reason);
        return HONE_OK;
    }
    add_samples(finals, &block, &answer);
    *out = ATTEMPT_DONE;
    return HONE_OK;
}

// Until when blocks are spread where times are unsteady, for finals that begin now.
static uint64_t spread_until(const hone_contest_state *state)
{
    const hone_trials *trials = &state->trials;
    const uint64_t now = hone_trials_now(trials), end_ns = rounds_until(state),
                   wanted = SPREAD_OF_RACE * (now - trials->started_ns);
    const uint64_t until = now + (wanted > least_spread_ns ? wanted : least_spread_ns);
    return until < end_ns ? until : end_ns;
}

// The ns between the starts of two blocks, so that the blocks that may follow are spread over all of the time until
// then: some of them meet a condition that changes by the second.
static uint64_t spread_ns(const hone_trials *trials, const hone_finals *finals, uint64_t until)
{
    const uint64_t now = hone_trials_now(trials), left = now < until ? until - now : 0;
    const uint64_t pause = left / (2 + (HONE_MOST_FINAL_ROUNDS - finals->rounds) / MOST_BLOCK_ROUNDS);
    return pause > pause_ns ? pause : pause_ns;
}

// Pauses in pieces of 100 ms, so that the caller can cancel the contest soon: where times are unsteady a pause takes
// seconds.
static hone_status pause_between(hone_contest_state *state, uint64_t ns, hone_error *err)
{
    const uint64_t piece_ns = 100 * 1000 * 1000;
    for (uint64_t left = ns; left > 0;) {
        const uint64_t piece = left < piece_ns ? left : piece_ns;
        if (hone_question_is_cancelled(&state->question)) break;
        hone_trials_pause(&state->trials, piece);
        left -= piece;
    }
    return hone_question_is_cancelled(&state->question) ? hone_fail(err, HONE_CANCELLED, where, "cancelled") : HONE_OK;
}

// Whether the smallest block would end before the contest does, at the pace of the last block.
static bool has_time_for_block(const hone_contest_state *state, const hone_finals *finals)
{
    const double seconds = SLOW_ROUNDS * finals->pace * hone_finals_round_seconds(finals);
    return seconds <= seconds_until(&state->trials, state->trials.end_ns);
}

// Where there is nobody to be compared with, a few samples of this contest's race give the time as well as rounds do,
// and when the contest's time is over a single one has to do.
static bool needs_rounds(const hone_contest_state *state, const hone_finals *finals)
{
    const hone_candidate *first = finals->finalists[0].candidate;
    if (!is_single_and_slow(finals) || first->resumed) return true;
    return first->trial.kept == 0 || (first->trial.kept < SLOW_ROUNDS && has_time_for_block(state, finals));
}

static hone_status run_blocks(hone_contest_state *state, hone_finals *finals, attempt *out, hone_error *err)
{
    hone_trials *trials = &state->trials;
    const uint64_t until = spread_until(state);
    uint64_t spread = 0; // between the starts of two blocks
    for (uint32_t b = 0; finals->rounds < HONE_MOST_FINAL_ROUNDS; b++) {
        const uint64_t start = hone_trials_now(trials);
        const double seconds = (b < LEAST_BLOCKS ? first_share : 1) * seconds_left(state);
        hone_status status = run_block(state, finals, rounds_for_block(finals, seconds), seconds, spread, out, err);
        if (status != HONE_OK || *out != ATTEMPT_DONE) return status;
        bool certain = hone_finals_settle(finals, state->question.options.seed);
        bool unsteady = hone_finals_are_unsteady(finals);
        bool late = hone_trials_now(trials) >= (unsteady ? until : rounds_until(state));
        const uint32_t least = is_single_and_slow(finals) ? 1 : LEAST_BLOCKS;
        if (ends_early(state, finals)) break;
        if (late || (b + 1 >= least && certain && !unsteady) || !has_time_for_block(state, finals)) break;
        const uint64_t took = hone_trials_now(trials) - start;
        spread = unsteady ? spread_ns(trials, finals, until) : 0;
        status = pause_between(state, spread > took + pause_ns ? spread - took : pause_ns, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// Runs further rounds if the rounds ended early, so that no shown candidate is called slower by one sample.
static hone_status run_shown(hone_contest_state *state, hone_finals *finals, attempt *out, hone_error *err)
{
    hone_status status = HONE_OK;
    double seconds = shown_share * state->question.options.seconds;
    for (int block = 0; block < SHOWN_BLOCKS && status == HONE_OK && *out == ATTEMPT_DONE && finals->count > 1;
         block++) {
        const uint64_t start = hone_trials_now(&state->trials);
        const uint32_t fastest = hone_finals_fastest(finals),
                       rounds = hone_finals_missing_rounds(finals, &state->field, fastest);
        if (rounds == 0 || !hone_finals_spare(finals, &state->field, fastest, rounds, seconds)) break;
        finals->shows = true;
        status = run_block(state, finals, rounds, seconds, 0, out, err);
        seconds -= (double)(hone_trials_now(&state->trials) - start) * 1e-9;
    }
    return status;
}

static hone_status nobody(hone_error *err)
{
    return hone_fail(err, HONE_NOT_FOUND, where, "no candidate passed");
}

// The candidate that the caller's own tuner has chosen; NULL: there is none, or it was rejected.
static hone_candidate *find_chosen(hone_contest_state *state)
{
    hone_candidate *chosen = NULL;
    if (state->chosen.is_there)
        chosen = hone_standings_find(&state->standings, state->chosen.kernel, &state->chosen.config);
    return chosen != NULL && !chosen->out ? chosen : NULL;
}

static uint32_t choose_winner(hone_contest_state *state, hone_finals *finals)
{
    hone_candidate *chosen = find_chosen(state);
    return chosen != NULL ? (uint32_t)(find(finals, chosen) - finals->finalists)
                          : hone_finals_choose_winner(state, finals);
}

// Keeps the first `most` finalists. The choice of the caller's own tuner, which is one of the first two, is among them.
static void keep_most(hone_finals *finals, uint32_t most, hone_candidate *chosen)
{
    if (finals->count <= most) return;
    finals->count = most;
    if (most == 1 && chosen != NULL)
        finals->finalists[0] = (hone_finalist){.candidate = chosen, .keeps_place = true, .is_shown = true};
}

hone_status hone_contest_run_finals(hone_contest_state *state, hone_finals *out, hone_error *err)
{
    uint32_t most = HONE_MAX_TOGETHER;
    for (uint32_t tried = 0; tried < MOST_ATTEMPTS; tried++) {
        attempt came = ATTEMPT_LOST;
        bool found = false;
        const double seconds = seconds_left(state);
        hone_finals_choose_finalists(&state->field, &state->standings, &state->known.incumbent, seconds, out);
        if (out->count == 0) return nobody(err);
        hone_candidate *chosen = find_chosen(state);
        if (chosen != NULL) hone_finals_admit(out, chosen);
        out->disturbed = hone_trials_disturbed(&state->trials);
        out->pace = hone_finals_first_pace(out, &state->standings, &state->spending);
        hone_finals_fit(out, LEAST_BLOCK_ROUNDS + EXTRA_ROUNDS, first_share * seconds);
        keep_most(out, most, chosen);
        hone_status status = HONE_OK;
        if (needs_rounds(state, out))
            status = run_blocks(state, out, &came, err);
        else
            came = ATTEMPT_DONE;
        if (status == HONE_OK && came == ATTEMPT_DONE) status = run_shown(state, out, &came, err);
        if (status == HONE_OK && came == ATTEMPT_LOST) status = find_culprits(state, out, &found, err);
        if (status != HONE_OK) return status;
        // If each passes alone, the machine is the cause: on a busy one, twelve finalists that are prepared in a new
        // process exceed the limit every time.
        if (came == ATTEMPT_LOST && !found && out->count > 1) most = out->count / 2;
        if (came != ATTEMPT_DONE) continue;
        out->winner = choose_winner(state, out);
        bool stands;
        status = confirm(state, out->finalists[out->winner].candidate, true, &stands, err);
        if (status != HONE_OK || stands) return status;
    }
    return hone_fail(
        err, HONE_NOT_FOUND, where,
        "the finalists were rejected %d times over: the machine or the kernels are not to be relied on", MOST_ATTEMPTS);
}
