// Configs that take long to prepare are prepared several at once before they are tried: compiled in parallel, timed
// alone. The worker that times them also prepares them, so that faults of the compiler are as isolated as those of a
// kernel.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "hone/code.h"

static const double worth_ns = 30e6;

static uint32_t most_at_once(size_t evaluations_left)
{
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    size_t left = evaluations_left, most = HONE_MOST_PREPARED;
    if (most > (size_t)cpu.threads) most = (size_t)cpu.threads;
    return (uint32_t)(most < left ? most : left);
}

// Only code that a platform compiles is prepared ahead. A prepare function of the kernel's own runs alone, so that its
// faults are known to be its own.
static bool is_worth_it(const hone_trials *trials, const hone_contestant *contestant)
{
    return trials->measurer->prepare != NULL && contestant->ref->kernel.code != NULL && !contestant->prepares_alone &&
           contestant->prepare_ns > worth_ns;
}

hone_status hone_contest_next_config(
    hone_trials *trials, hone_contestant *contestant, size_t evaluations_left, hone_config *out, hone_error *err)
{
    hone_assert(contestant->search != NULL && contestant->prepared_count <= HONE_MOST_PREPARED);
    if (hone_contestant_is_prepared(contestant)) {
        *out = contestant->prepared[contestant->prepared_next++];
        return HONE_OK;
    }
    hone_status status = hone_search_next(contestant->search, out, err);
    if (status != HONE_OK || !is_worth_it(trials, contestant)) return status;
    uint32_t count = 0, most = most_at_once(evaluations_left);
    contestant->prepared[count++] = *out;
    while (count < most && hone_search_next(contestant->search, &contestant->prepared[count], NULL) == HONE_OK)
        count++;
    contestant->prepared_count = count;
    contestant->prepared_next = 1;
    bool answered = true;
    uint64_t start = hone_trials_now(trials);
    if (count > 1)
        status = trials->measurer->prepare(trials, contestant->ref, contestant->prepared, count, &answered, err);
    const double took_ns = (double)(hone_trials_now(trials) - start);
    contestant->measuring_ns += took_ns;
    contestant->preparing_ns += took_ns;
    contestant->ahead_ns = count > 1 && answered ? took_ns / count : 0;
    contestant->prepares_alone = !answered;
    return status;
}
