// Candidates whose preparing takes long are prepared several at once before their turns: compiled in parallel, timed
// alone. The worker that times them does it, so that the compiler's faults are as isolated as a kernel's.
#include "tune/contest.h"

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

static hone_status prepare_own(hone_contest_state *state, hone_contestant *contestant, hone_error *err)
{
    hone_to_prepare items[HONE_MOST_AHEAD];
    for (uint32_t i = 0; i < contestant->ahead_count; i++)
        items[i] = (hone_to_prepare){contestant->ref, &contestant->ahead[i], 0};
    bool answered;
    uint64_t start = hone_contest_now(state);
    hone_status status = state->measurer->prepare(state, items, contestant->ahead_count, &answered, err);
    contestant->measuring_ns += (double)(hone_contest_now(state) - start);
    contestant->prepares_alone = !answered;
    return status;
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
    return count > 1 ? prepare_own(state, contestant, err) : HONE_OK;
}

static bool waits_for_code(const hone_contest_state *state, const hone_contestant *contestant)
{
    return contestant->space && contestant->has_default && !contestant->put_aside && contestant->ref->kernel.code &&
           !hone_contest_is_entered(state, (uint32_t)(contestant - state->contestants), &contestant->default_config);
}

typedef struct group {
    hone_to_prepare items[HONE_MOST_AHEAD];
    hone_contestant *contestants[HONE_MOST_AHEAD];
    uint32_t count;
} group;

// The next ones, *next moves on behind them.
static void gather(hone_contest_state *state, size_t *next, group *out)
{
    out->count = 0;
    for (; *next < state->count && out->count < HONE_MOST_AHEAD; ++*next) {
        hone_contestant *contestant = &state->contestants[*next];
        if (!waits_for_code(state, contestant)) continue;
        out->contestants[out->count] = contestant;
        out->items[out->count++] = (hone_to_prepare){contestant->ref, &contestant->default_config, 0};
    }
}

// What it takes would not show any more when they are tried.
static void note_costs(const group *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        g->contestants[i]->prepare_ns = g->items[i].took_ns;
        g->contestants[i]->measuring_ns += g->items[i].took_ns;
    }
}

hone_status hone_contest_prepare_defaults(hone_contest_state *state, hone_error *err)
{
    hone_status status = HONE_OK;
    bool answered = true;
    size_t next = 0;
    while (state->measurer->prepare && answered && status == HONE_OK && next < state->count) {
        group g;
        gather(state, &next, &g);
        if (g.count > 1) status = state->measurer->prepare(state, g.items, g.count, &answered, err);
        if (g.count > 1 && status == HONE_OK && answered) note_costs(&g);
    }
    return status;
}
