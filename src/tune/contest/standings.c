#include "tune/contest/standings.h"

#include "base/assert.h"
#include "base/memory.h"

const hone_candidate *hone_standings_best(const hone_standings *standings)
{
    hone_assert(standings->best < (int64_t)standings->count);
    return standings->best >= 0 ? &standings->candidates[standings->best] : NULL;
}

const hone_candidate *hone_standings_best_of(const hone_standings *standings, uint32_t kernel)
{
    const hone_candidate *best = NULL;
    for (size_t i = 0; i < standings->count; i++) {
        const hone_candidate *one = &standings->candidates[i];
        if (one->kernel == kernel && !one->out && (best == NULL || one->rank_ns < best->rank_ns)) best = one;
    }
    return best;
}

hone_candidate *hone_standings_add(hone_standings *standings, const hone_allocator *allocator)
{
    if (!hone_grow(
            allocator, &standings->candidates, &standings->capacity, standings->count + 1,
            sizeof *standings->candidates))
        return NULL;
    hone_assert(standings->count < standings->capacity);
    return &standings->candidates[standings->count++];
}

static bool kernel_is_taken(
    const hone_standings *standings, hone_candidate_taken *taken, const void *ctx, uint32_t kernel)
{
    for (size_t i = 0; i < standings->count; i++)
        if (standings->candidates[i].kernel == kernel && taken(ctx, &standings->candidates[i])) return true;
    return false;
}

hone_candidate *hone_standings_next_best(
    const hone_standings *standings, hone_candidate_taken *taken, const void *ctx, bool other)
{
    hone_candidate *best = NULL;
    for (size_t i = 0; i < standings->count; i++) {
        hone_candidate *candidate = &standings->candidates[i];
        // A candidate with the same binary as another has the other's times: one of the two is enough.
        if (candidate->out || candidate->trial.same) continue;
        if (taken(ctx, candidate) || (best != NULL && candidate->rank_ns >= best->rank_ns)) continue;
        if (!other || !kernel_is_taken(standings, taken, ctx, candidate->kernel)) best = candidate;
    }
    return best;
}

static bool nobody(const void *ctx, const hone_candidate *candidate)
{
    (void)ctx;
    (void)candidate;
    return false;
}

void hone_standings_update(hone_standings *standings)
{
    const hone_candidate *best = hone_standings_next_best(standings, nobody, NULL, false);
    standings->best = best != NULL ? best - standings->candidates : -1;
}

static bool is_before(const hone_candidate *a, const hone_candidate *b)
{
    if (a->of_pack != b->of_pack) return b->of_pack;
    return a->yields == b->yields ? a->kernel < b->kernel : b->yields;
}

hone_candidate *hone_standings_default(const hone_standings *standings)
{
    hone_candidate *first = NULL;
    for (size_t i = 0; i < standings->count; i++) {
        hone_candidate *candidate = &standings->candidates[i];
        if (candidate->is_default && !candidate->out && (first == NULL || is_before(candidate, first)))
            first = candidate;
    }
    return first;
}

hone_candidate *hone_standings_find(const hone_standings *standings, uint32_t kernel, const hone_config *config)
{
    for (size_t i = 0; i < standings->count; i++)
        if (standings->candidates[i].kernel == kernel && hone_config_equal(&standings->candidates[i].config, config))
            return &standings->candidates[i];
    return NULL;
}

bool hone_standings_have(const hone_standings *standings, uint32_t kernel, const hone_config *config)
{
    return hone_standings_find(standings, kernel, config) != NULL;
}
