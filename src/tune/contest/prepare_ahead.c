// Configs whose preparing takes long are prepared several at once before their turns: compiled in parallel, timed alone.
// The worker that times them does it, so that the compiler's faults are as isolated as a kernel's.
#include "tune/contest/contest.h"

#include "hone/code.h"

static const double worth_ns = 30e6;

static uint32_t most_at_once(const hone_contest_state *state)
{
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    size_t left = state->options.evaluations - state->candidate_count, most = HONE_MOST_AHEAD;
    if (most > (size_t)cpu.threads) most = (size_t)cpu.threads;
    return (uint32_t)(most < left ? most : left);
}

// Only what a platform compiles; a function of the kernel's own is tried alone, that its faults be known as its own.
static bool is_worth_it(const hone_contest_state *state, const hone_contestant *contestant)
{
    return state->measurer->prepare && contestant->ref->kernel.code && !contestant->prepares_alone &&
           contestant->prepare_ns > worth_ns;
}

hone_status hone_contest_next_config(
    hone_contest_state *state, hone_contestant *contestant, hone_config *out, hone_error *err)
{
    if (contestant->ahead_next < contestant->ahead_count) {
        *out = contestant->ahead[contestant->ahead_next++];
        return HONE_OK;
    }
    hone_status status = hone_search_next(contestant->search, out, err);
    if (status != HONE_OK || !is_worth_it(state, contestant)) return status;
    uint32_t count = 0, most = most_at_once(state);
    contestant->ahead[count++] = *out;
    while (count < most && hone_search_next(contestant->search, &contestant->ahead[count], NULL) == HONE_OK)
        count++;
    contestant->ahead_count = count;
    contestant->ahead_next = 1;
    bool answered = true;
    uint64_t start = hone_contest_now(state);
    status = count > 1 ? state->measurer->prepare(state, contestant, &answered, err) : HONE_OK;
    contestant->measuring_ns += (double)(hone_contest_now(state) - start);
    contestant->prepares_alone = !answered;
    return status;
}
