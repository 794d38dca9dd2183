// How long does a candidate take? Applies the stopping rule of rule/stopping.c, and rounds in which every finalist is
// sampled once, to kernels that run: on a shared machine separate blocks of samples drift apart by several percent,
// interleaved ones by one.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"

#include <math.h>

static const char where[] = "tune.measure";

enum { RACE_RETAKES = 2 }; // for a disturbed sample

// Not on a device: what its driver holds more of from run to run is not the candidate's.
static void look(const hone_runner *runner)
{
    if (runner->session->site.instance == NULL) hone_side_effects_look(&runner->session->effects, runner->batch);
}

// One candidate in the race.
typedef struct racer {
    hone_runner *runner;
    double best_ns; // the best time so far, for the stopping rule
} racer;

// Whether the verified run has warmed the candidate up: a run so long needs no other. A candidate that would be dropped
// for the time of that run gets a run whose waits are known.
static bool is_warm(const racer *r)
{
    const bool is_near = r->best_ns <= 0 || r->runner->verify_ns < 2 * r->best_ns;
    return hone_site_is_host(&r->runner->session->site) && r->runner->verify_ns > hone_warmed_ns && is_near;
}

static hone_failure warm(void *ctx, hone_sample *out, hone_error *err)
{
    racer *r = ctx;
    if (is_warm(r)) {
        *out = (hone_sample){.time_ns = r->runner->verify_ns};
        return HONE_FAILURE_NONE;
    }
    hone_failure failure = hone_runner_warm_marked(r->runner, out, err);
    look(r->runner);
    return failure;
}

// Whether what samples left is compared in the race. Of the library's own kernels that is done in the finals: in the
// race it is for kernels that compute less in timed runs, and took up to an eighth of what is done against cheats.
static bool is_judged(const hone_runner *runner)
{
    return !runner->is_known || runner->verify_ns > hone_long_verified_ns;
}

static hone_failure sample(void *ctx, hone_sample *out, double *out_spent_ns, hone_error *err)
{
    hone_runner *runner = ((racer *)ctx)->runner;
    const double before_ns = runner->run_ns;
    hone_failure failure = hone_runner_sample_in_race(runner, RACE_RETAKES, out, err);
    *out_spent_ns = runner->run_ns - before_ns;
    look(runner);
    return failure == HONE_FAILURE_NONE && is_judged(runner) ? hone_runner_judge_sample(runner, err) : failure;
}

static uint64_t now_ns(void *ctx)
{
    (void)ctx;
    return hone_os_now_ns();
}

hone_failure hone_measure_candidate(
    hone_runner *runner, const hone_stopping *stopping, hone_trial *out, hone_error *err)
{
    racer r = {runner, stopping->best_ns};
    const hone_sampler sampler = {&r, warm, sample, now_ns};
    return hone_stopping_run(stopping, &sampler, out, err);
}

static hone_failure run_on(hone_runner *runner, uint32_t samples, hone_error *err)
{
    hone_failure failure = HONE_FAILURE_NONE;
    double unused_ns;
    for (uint32_t i = 0; i < samples && failure == HONE_FAILURE_NONE; i++)
        failure = hone_runner_sample(runner, &unused_ns, err);
    return failure;
}

// Runs it for longer and longer: what a runtime or the C library keeps for its threads has an end, a leak goes on. If
// the time ends before enough samples were taken, the candidate is acquitted; if it ends before all were taken, it is
// acquitted of what grew unevenly.
hone_failure hone_pursue_leak(hone_runner *runner, const hone_stopping *stopping, double run_ns, hone_error *err)
{
    enum { LEAST_FIRST = 8, FIRST_SAMPLES = 16, ENOUGH_SAMPLES = 32, MOST_SAMPLES = 256, MANY_RUNS = 8192 };
    const double first_ns = 100e6; // of the first piece: for slow candidates fewer runs show as well that nothing grows
    // A candidate that allocates pieces of other sizes in each run needs some thousand runs to fill what the C library
    // keeps of each size.
    const double many_ns = 500e6;
    hone_side_effects *effects = &runner->session->effects;
    hone_assert(run_ns >= 0 && runner->batch >= 1);
    hone_failure failure = HONE_FAILURE_NONE;
    double left_ns = stopping->limit_ns;
    uint32_t taken = 0, first = FIRST_SAMPLES;
    while (first > LEAST_FIRST && run_ns * runner->batch * first > first_ns)
        first /= 2;
    if (hone_side_effects_suspects(effects)) hone_side_effects_look_again(effects, 0);
    const uint32_t many = (uint32_t)(fmin(MANY_RUNS, many_ns / fmax(run_ns, 1)) / runner->batch);
    const uint32_t most = many > MOST_SAMPLES ? many : MOST_SAMPLES;
    while (taken < most && hone_side_effects_suspects(effects) && failure == HONE_FAILURE_NONE) {
        uint32_t samples = taken == 0 ? first : taken;
        left_ns -= run_ns * runner->batch * samples;
        if (left_ns < 0) {
            if (taken < ENOUGH_SAMPLES) hone_side_effects_acquit(effects);
            hone_side_effects_acquit_uneven(effects);
            break;
        }
        failure = run_on(runner, samples, err);
        hone_side_effects_look_again(effects, samples * runner->batch);
        hone_session_pass_phase(runner->session);
        taken += samples;
    }
    return failure;
}

// A cache that fills grows in one of the pieces, a leak in all of them.
hone_failure hone_pursue_slow_leak(hone_runner *runner, hone_error *err)
{
    enum { PIECES = 4 }; // each has as many runs as all before it, and at least `least`; the first also takes first_ns
    const uint64_t first_ns = 100000000;
    const double most_run_ns = 1e6, least_runs = 4000, least_ns = 2e8;
    hone_side_effects *effects = &runner->session->effects;
    hone_failure failure = HONE_FAILURE_NONE;
    uint32_t runs = 0;
    if (effects->shared || runner->session->site.instance != NULL || runner->verify_ns > most_run_ns) return failure;
    const uint32_t least = (uint32_t)fmin(least_runs, least_ns / fmax(runner->verify_ns, 1));
    hone_side_effects_suspect_all(effects);
    for (int i = 0; i < PIECES && hone_side_effects_suspects(effects) && failure == HONE_FAILURE_NONE; i++) {
        const uint64_t start = hone_os_now_ns();
        const uint32_t wanted = runs > least ? runs : least;
        uint32_t piece = 0;
        while (failure == HONE_FAILURE_NONE && (piece < wanted || (i == 0 && hone_os_now_ns() - start < first_ns))) {
            failure = run_on(runner, 1, err);
            piece += runner->batch;
        }
        hone_side_effects_look_again(effects, piece);
        hone_session_pass_phase(runner->session);
        runs += piece;
    }
    return failure;
}

typedef struct interleaved {
    hone_runner *const *runners;
    const uint32_t *retakes; // of each runner
    uint64_t until_ns;       // then nothing is taken again: three rounds took four times a block's seconds
} interleaved;

static hone_failure sample_in_round(void *ctx, uint32_t index, hone_sample *out, hone_error *err)
{
    const interleaved *all = ctx;
    hone_runner *runner = all->runners[index];
    const uint64_t arguments = hone_arguments_digest(runner);
    const uint32_t retakes = hone_os_now_ns() < all->until_ns ? all->retakes[index] : 0;
    hone_failure failure = hone_runner_sample_in_round(runner, retakes, out, err);
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_judge_sample(runner, err);
    failure = hone_runner_check_arguments(runner, arguments, failure, err);
    return failure == HONE_FAILURE_NONE ? hone_side_effects_compare(&runner->session->effects, err) : failure;
}

hone_failure hone_measure_rounds(
    hone_runner *const *runners, const hone_rounds *asked, hone_rounds_answer *out, hone_error *err)
{
    const uint64_t until_ns = hone_os_now_ns() + (uint64_t)fmin(fmax(asked->limit_ns, 0), 1e18);
    interleaved all = {runners, asked->retakes, until_ns};
    const hone_round_sampler who = {&all, sample_in_round, now_ns};
    return hone_rounds_run(&who, asked, out, err);
}

uint32_t hone_session_read_advice(const hone_session *session)
{
    hone_os_span spans[HONE_MAX_VALUES];
    size_t count = 0;
    if (!session->buffers.guards || !hone_site_is_host(&session->site)) return 0;
    for (size_t i = 0; i < session->buffers.count; i++) {
        const hone_fenced *fenced = &session->buffers.sets[0].fenced[i];
        if (fenced->block != NULL) spans[count++] = (hone_os_span){fenced->low, fenced->span};
    }
    return hone_os_advice(spans, count);
}

hone_failure hone_session_check_advice(hone_session *session, hone_error *err)
{
    const uint32_t given = hone_session_read_advice(session) & ~session->advice;
    if (given == 0) return HONE_FAILURE_NONE;
    session->spoiled = true;
    hone_fail(
        err, HONE_KERNEL_FAILED, where, "tells the system of the memory of its arguments %s, and leaves it so",
        hone_os_advice_words(given));
    return HONE_FAILURE_TRACES;
}

hone_failure hone_session_look_after(hone_session *session, hone_failure failure, hone_error *err)
{
    hone_error why = {0};
    hone_failure left = hone_side_effects_end(&session->effects, session->own_pool, &why);
    bool wrote = failure == HONE_FAILURE_BOUNDS; // it is unknown where else it wrote
    session->spoiled =
        session->spoiled || wrote || left != HONE_FAILURE_NONE || hone_side_effects_bloated(&session->effects);
    if (failure != HONE_FAILURE_NONE || left == HONE_FAILURE_NONE) return failure;
    *err = why;
    return left;
}
