// Who meets in the finals: the race's leader, what the store answers with, the default, the best of each kernel, and the
// next in rank. They stand in the order in which they keep their places when there is little time.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "tune/rule/stopping.h"

#include <math.h>
#include <string.h>

enum {
    BEST_COUNT = 5, // next in rank, of any kernels, before the kernels' best, and as many after them
    LEAST_ROUNDS = 5,
    LEAST_FINALISTS = 2
};

static const double hopeless = 1.5;       // over the best: no finalist by rank
static const double close = 1.25;         // over the best: may be the fastest for all that the race can tell
static const double hopeless_kernel = 20; // over the best: a kernel's best is not timed once more
static const double kernel_share = 0.05;  // of the time, for the samples of one that is hopeless but its kernel's best
static const double overhead_ns = 1e6;    // beside a sample, until threads rest and it is warm again
// What is added for each disturbed sample of the contest: rests, and samples that are taken again. Seen with four busy
// processes on two processors.
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

// What answers today.
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

// Adds the next in rank until there are `most`, as long as they are within `reach` of the first.
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

// The first of another kernel, where it is close: the few samples of a race do not tell which of the two is faster.
static void admit_close(const hone_standings *standings, hone_finals *out)
{
    hone_candidate *candidate = hone_standings_next_best(standings, is_finalist, out, true);
    if (candidate != NULL && candidate->rank_ns <= close * out->finalists[0].candidate->rank_ns) admit(out, candidate);
}

// Every kernel's best is sampled in rounds, so that none is called slower after the race's few samples, unless that
// takes long.
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

void hone_finals_choose_finalists(
    const hone_standings *standings, const hone_incumbent *incumbent, double seconds, hone_finals *out)
{
    memset(out, 0, sizeof *out);
    admit(out, hone_standings_next_best(standings, is_finalist, out, false));
    if (out->count == 0) return;
    admit_standing(out, find_incumbent(standings, incumbent));
    admit_standing(out, hone_standings_default(standings));
    admit_close(standings, out);
    out->least = out->count > LEAST_FINALISTS ? out->count : LEAST_FINALISTS;
    admit_best(standings, out, out->count + BEST_COUNT, hopeless);
    admit_kernels(standings, seconds, out);
    admit_best(standings, out, out->count + BEST_COUNT, hopeless);
}

void hone_finals_admit(hone_finals *finals, hone_candidate *candidate)
{
    uint32_t at = 0;
    hone_assert(finals->count > 0);
    while (at < finals->count && finals->finalists[at].candidate != candidate)
        at++;
    if (at == finals->count && finals->count < HONE_MAX_TOGETHER) finals->count++;
    if (at == finals->count) at = finals->count - 1;
    finals->finalists[at] = (hone_finalist){.candidate = candidate, .keeps_place = true};
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

static double sample_seconds(const hone_finals *finals, uint32_t index)
{
    const double run_ns = fmax(finals->finalists[index].candidate->trial.time_ns, 20e3);
    const double disturbed = hone_finals_contends(finals, index) ? finals->disturbed : 0;
    const double burst_ns = run_ns <= hone_short_run_ns ? hone_burst_ns : run_ns;
    return (burst_ns * (1 + disturbed_runs * disturbed) + overhead_ns + disturbed_ns * disturbed) * 1e-9;
}

double hone_finals_round_seconds(const hone_finals *finals)
{
    double round = 0;
    for (uint32_t i = 0; i < finals->count; i++)
        if (!finals->finalists[i].out) round += sample_seconds(finals, i);
    return round;
}

// Runs of seconds leave time for few: better two or three finalists and ten rounds than sixteen and one.
void hone_finals_fit(hone_finals *finals, uint32_t rounds, double seconds)
{
    while (finals->count > finals->least && hone_finals_round_seconds(finals) * rounds > seconds)
        finals->count--;
}
