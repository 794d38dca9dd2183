// Chooses the finalists: the race's leader, the store's choice, the default, the best candidate of each kernel, and the
// next in rank. They are in the order in which they keep their places when there is little time.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "tune/rule/stopping.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_ROUNDS = 5,
    BEST_COUNT = 5, // next in rank, of any kernel: as many before the kernels' best as after them
    LEAST_FINALISTS = 2
};

static const double hopeless = 1.5;       // times the best: no finalist by rank
static const double close = 1.25;         // times the best: may be the fastest, as far as the race can show
static const double hopeless_kernel = 20; // times the best: a kernel's best is not measured again
static const double kernel_share = 0.05;  // of the time, for the samples of a kernel's best that is hopeless by rank
static const double library_share = 0.25; // of the time, for the rounds of the fastest library
static const double overhead_ns = 1e6;    // besides a sample, until threads rest and the next candidate is warm
// The time that each disturbed sample of the contest adds, for rests and for samples that are taken again. Seen with
// four busy processes on two processors.
static const double disturbed_ns = 4e6, disturbed_runs = 2;

static bool is_finalist(const void *ctx, const hone_candidate *candidate)
{
    const hone_finals *finals = ctx;
    for (uint32_t i = 0; i < finals->count; i++)
        if (finals->finalists[i].candidate == candidate) return true;
    return false;
}

static void admit(hone_finals *out, hone_candidate *candidate)
{
    if (candidate == NULL || out->count == HONE_MAX_TOGETHER || is_finalist(out, candidate)) return;
    out->finalists[out->count++].candidate = candidate;
}

bool hone_incumbent_is(const hone_incumbent *incumbent, const hone_candidate *candidate)
{
    return incumbent->is_there && candidate->kernel == incumbent->kernel &&
           hone_config_equal(&candidate->config, &incumbent->config);
}

// Admits the store's choice or the default, which keep their places.
static void admit_standing(hone_finals *out, hone_candidate *candidate)
{
    admit(out, candidate);
    for (uint32_t i = 0; i < out->count; i++)
        if (out->finalists[i].candidate == candidate) out->finalists[i].keeps_place = true;
}

static hone_candidate *find_incumbent(const hone_standings *standings, const hone_incumbent *incumbent)
{
    for (size_t i = 0; i < standings->count; i++)
        if (!standings->candidates[i].out && hone_incumbent_is(incumbent, &standings->candidates[i]))
            return &standings->candidates[i];
    return NULL;
}

// Adds the next in rank until there are `most`, as long as they are at most `reach` times as slow as the first.
static void admit_best(const hone_standings *standings, hone_finals *out, uint32_t most, double reach)
{
    hone_candidate *candidate;
    const double first_ns = out->finalists[0].candidate->rank_ns;
    if (most > HONE_MAX_TOGETHER) most = HONE_MAX_TOGETHER;
    while (out->count < most && (candidate = hone_standings_next_best(standings, is_finalist, out, false)) != NULL) {
        if (out->count >= LEAST_FINALISTS && candidate->rank_ns > reach * first_ns) return;
        admit(out, candidate);
    }
}

// Adds the best candidate of another kernel if it is close: the few samples of a race do not show which of the two is
// faster.
static void admit_close(const hone_standings *standings, hone_finals *out)
{
    hone_candidate *candidate = hone_standings_next_best(standings, is_finalist, out, true);
    if (candidate != NULL && candidate->rank_ns <= close * out->finalists[0].candidate->rank_ns) admit(out, candidate);
}

static bool calls_library(const hone_field *field, const hone_candidate *candidate)
{
    const hone_kernel *kernel = &field->contestants[candidate->kernel].ref->kernel;
    return kernel->library != NULL || kernel->find_library != NULL;
}

// Adds the fastest candidate that calls a library, which keeps its place, unless its rounds would take the time that
// the others need.
static void admit_library(const hone_field *field, const hone_standings *standings, double seconds, hone_finals *out)
{
    hone_candidate *best = NULL;
    for (size_t i = 0; i < standings->count; i++) {
        hone_candidate *one = &standings->candidates[i];
        if (one->out || one->trial.same || !calls_library(field, one)) continue;
        if (best == NULL || one->rank_ns < best->rank_ns) best = one;
    }
    if (best != NULL && HONE_SURE_ROUNDS * best->rank_ns * 1e-9 <= library_share * seconds) admit(out, best);
}

// Adds the best candidate of every kernel, so that no kernel is called slower after only the race's few samples. Those
// that would take long are left out.
static void admit_kernels(const hone_standings *standings, double seconds, hone_finals *out)
{
    hone_candidate *candidate;
    const double first_ns = out->finalists[0].candidate->rank_ns;
    while (out->count < HONE_MAX_TOGETHER &&
           (candidate = hone_standings_next_best(standings, is_finalist, out, true)) != NULL) {
        const double takes = LEAST_ROUNDS * candidate->rank_ns * 1e-9;
        if (candidate->rank_ns > hopeless_kernel * first_ns) return;
        if (candidate->rank_ns > hopeless * first_ns && takes > kernel_share * seconds) return;
        admit(out, candidate);
    }
}

// The fastest finalist that calls a library; NULL: there is none.
static hone_finalist *find_library(const hone_field *field, hone_finals *finals)
{
    hone_finalist *best = NULL;
    for (uint32_t i = 0; i < finals->count; i++) {
        hone_finalist *one = &finals->finalists[i];
        if (one->out || !calls_library(field, one->candidate)) continue;
        if (best == NULL || one->candidate->rank_ns < best->candidate->rank_ns) best = one;
    }
    return best;
}

static bool is_kernels_best(const hone_finals *finals, const hone_finalist *finalist)
{
    for (uint32_t i = 0; i < finals->count; i++) {
        const hone_candidate *other = finals->finalists[i].candidate;
        if (other->kernel == finalist->candidate->kernel && other->rank_ns < finalist->candidate->rank_ns) return false;
    }
    return true;
}

// The store's choice, the default and the fastest library are shown however long that takes. The best candidates of the
// other kernels are shown if they take no more than their share of the time.
static void mark_shown(const hone_field *field, double seconds, hone_finals *out)
{
    const hone_finalist *library = find_library(field, out);
    const double first_ns = out->finalists[0].candidate->rank_ns;
    for (uint32_t i = 0; i < out->count; i++) {
        hone_finalist *one = &out->finalists[i];
        const double takes = HONE_SURE_ROUNDS * one->candidate->rank_ns * 1e-9;
        const bool has_time = one->candidate->rank_ns <= hopeless * first_ns || takes <= kernel_share * seconds;
        one->is_shown = one->keeps_place || one == library || (is_kernels_best(out, one) && has_time);
    }
}

void hone_finals_choose_finalists(
    const hone_field *field,
    const hone_standings *standings,
    const hone_incumbent *incumbent,
    double seconds,
    hone_finals *out)
{
    memset(out, 0, sizeof *out);
    admit(out, hone_standings_next_best(standings, is_finalist, out, false));
    if (out->count == 0) return;
    admit_standing(out, find_incumbent(standings, incumbent));
    admit_standing(out, hone_standings_default(standings));
    admit_close(standings, out);
    admit_library(field, standings, seconds, out);
    out->least = out->count > LEAST_FINALISTS ? out->count : LEAST_FINALISTS;
    admit_best(standings, out, out->count + BEST_COUNT, hopeless);
    admit_kernels(standings, seconds, out);
    admit_best(standings, out, out->count + BEST_COUNT, hopeless);
    mark_shown(field, seconds, out);
}

void hone_finals_admit(hone_finals *finals, hone_candidate *candidate)
{
    uint32_t at = 0;
    hone_assert(finals->count > 0);
    while (at < finals->count && finals->finalists[at].candidate != candidate)
        at++;
    if (at == finals->count && finals->count < HONE_MAX_TOGETHER) finals->count++;
    if (at == finals->count) at = finals->count - 1;
    finals->finalists[at] = (hone_finalist){.candidate = candidate, .keeps_place = true, .is_shown = true};
    if (at < LEAST_FINALISTS) return;
    hone_finalist moved = finals->finalists[1];
    finals->finalists[1] = finals->finalists[at];
    finals->finalists[at] = moved;
}

bool hone_finals_contends(const hone_finals *finals, uint32_t index)
{
    const hone_finalist *finalist = &finals->finalists[index];
    return finalist->keeps_place || finalist->candidate->rank_ns <= hopeless * finals->finalists[0].candidate->rank_ns;
}

static double sample_seconds(const hone_candidate *candidate, double disturbed)
{
    const double run_ns = fmax(candidate->trial.time_ns, 20e3);
    const double burst_ns = run_ns <= hone_short_run_ns ? hone_burst_ns : run_ns;
    return (burst_ns * (1 + disturbed_runs * disturbed) + overhead_ns + disturbed_ns * disturbed) * 1e-9;
}

double hone_finals_round_seconds(const hone_finals *finals)
{
    double round = 0;
    for (uint32_t i = 0; i < finals->count; i++)
        if (!finals->finalists[i].out && !finals->finalists[i].is_spared)
            round +=
                sample_seconds(finals->finalists[i].candidate, hone_finals_contends(finals, i) ? finals->disturbed : 0);
    return round;
}

// The pace is the time of the race's samples over their expected time. With a dozen other threads ready, sixteen
// finalists took seven times as long as on a quiet machine: the first block had three rounds instead of five, and the
// contest ended late and replaced the default.
double hone_finals_first_pace(const hone_finals *finals, const hone_standings *standings, const hone_spending *spending)
{
    const double least_ns = 1e8; // a shorter time of samples does not show how busy the machine is
    double expected = 0;
    if (spending->sampling_ns < least_ns) return 1;
    for (size_t i = 0; i < standings->count; i++) {
        const hone_candidate *one = &standings->candidates[i];
        if (one->resumed || one->trial.same || one->trial.failure != HONE_FAILURE_NONE) continue;
        expected += one->trial.taken * sample_seconds(one, finals->disturbed);
    }
    return expected > 0 ? fmax(1, 1e-9 * spending->sampling_ns / expected) : 1;
}

// Runs of seconds leave time for few rounds: two or three finalists with ten rounds are better than sixteen with one.
void hone_finals_fit(hone_finals *finals, uint32_t rounds, double seconds)
{
    while (finals->count > finals->least && finals->pace * hone_finals_round_seconds(finals) * rounds > seconds)
        finals->count--;
}

uint32_t hone_finalist_missing_rounds(const hone_finalist *finalist)
{
    uint32_t alone = 0;
    for (uint32_t i = 0; i < finalist->rounds; i++)
        alone += finalist->samples[i].marks == 0;
    if (finalist->rounds < HONE_SURE_ROUNDS) return HONE_SURE_ROUNDS - finalist->rounds;
    // A run that was disturbed in every round would be disturbed in further rounds, too.
    if (alone == 0 || alone >= HONE_SURE_ROUNDS || finalist->rounds >= HONE_SHOWN_ROUNDS) return 0;
    const uint32_t wanted = (HONE_SURE_ROUNDS - alone) * finalist->rounds / alone + 1,
                   most = HONE_SHOWN_ROUNDS - finalist->rounds;
    return wanted < most ? wanted : most;
}

// Whether tables need the finalist for a comparison. A finalist that was spared before has fewer rounds, and stays
// spared.
static bool is_needed(const hone_finals *finals, uint32_t index, uint32_t fastest, const hone_finalist *library)
{
    const hone_finalist *one = &finals->finalists[index];
    return !one->out && one->rounds == finals->rounds && (index == fastest || one->keeps_place || one == library);
}

uint32_t hone_finals_missing_rounds(hone_finals *finals, const hone_field *field, uint32_t fastest)
{
    uint32_t most = 0;
    const hone_finalist *library = find_library(field, finals);
    for (uint32_t i = 0; i < finals->count; i++) {
        if (!is_needed(finals, i, fastest, library)) continue;
        const uint32_t missing = hone_finalist_missing_rounds(&finals->finalists[i]);
        if (missing > most) most = missing;
    }
    return most;
}

bool hone_finals_spare(hone_finals *finals, const hone_field *field, uint32_t fastest, uint32_t rounds, double seconds)
{
    const hone_finalist *library = find_library(field, finals);
    for (uint32_t i = 0; i < finals->count; i++) {
        hone_finalist *one = &finals->finalists[i];
        one->is_spared = !is_needed(finals, i, fastest, library);
    }
    const bool has_time = rounds * finals->pace * hone_finals_round_seconds(finals) <= seconds;
    for (uint32_t i = 0; i < finals->count; i++) {
        hone_finalist *one = &finals->finalists[i];
        const bool may_join =
            one->is_spared &&
            (!has_time || (one->rounds == finals->rounds && (one->is_shown || hone_finals_contends(finals, i))));
        if (!may_join) continue;
        one->is_spared = false;
        one->is_spared = has_time && rounds * finals->pace * hone_finals_round_seconds(finals) > seconds;
    }
    return has_time;
}
