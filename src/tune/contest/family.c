#include "tune/contest/family.h"

#include "base/assert.h"

#include <string.h>

// Chosen by hand. The others try a config if its time is at most clear_gain times that of the last config that they
// tried, and if their own time is then expected to be at most near_best times the best of all.
static const double clear_gain = 0.98, near_best = 1.05;

bool hone_family_has_both(const hone_kernel *a, const hone_kernel *b)
{
    if (a->platform != b->platform || a->backend != b->backend || a->needs == b->needs) return false;
    if (a->code != NULL || b->code != NULL || a->library != NULL || b->library != NULL) return false;
    if (a->find_library != NULL || b->find_library != NULL) return false;
    if (a->heuristic == NULL || a->heuristic != b->heuristic || a->candidates != NULL || b->candidates != NULL)
        return false;
    return a->space != NULL && b->space != NULL && strcmp(a->space, b->space) == 0;
}

// Whether a kernel differs from all present members of a family in instruction set alone.
static bool belongs_to(const hone_field *field, uint32_t family, uint32_t kernel)
{
    for (uint32_t i = 0; i < kernel; i++)
        if (field->contestants[i].space != NULL && field->contestants[i].family == family &&
            !hone_family_has_both(&field->contestants[i].ref->kernel, &field->contestants[kernel].ref->kernel))
            return false;
    return true;
}

void hone_family_find(hone_field *field)
{
    for (uint32_t i = 0; i < field->count; i++) {
        hone_contestant *contestant = &field->contestants[i];
        contestant->family = i;
        for (uint32_t j = 0; j < i && contestant->space != NULL && contestant->family == i; j++) {
            const uint32_t family = field->contestants[j].family;
            if (field->contestants[j].space != NULL && belongs_to(field, family, i)) contestant->family = family;
        }
    }
}

// Finds the fastest kernel of a family; on a tie, the first one. With `searching`, skips kernels whose search has
// ended. Returns NULL when no kernel qualifies.
static const hone_contestant *find_fastest(const hone_field *field, uint32_t family, bool searching)
{
    const hone_contestant *fastest = NULL;
    for (size_t i = 0; i < field->count; i++) {
        const hone_contestant *one = &field->contestants[i];
        if (one->space == NULL || one->family != family || one->best_ns <= 0) continue;
        if (searching && (!hone_contestant_is_left(one) || hone_search_expected_gain(one->search) <= 0)) continue;
        if (fastest == NULL || one->best_ns < fastest->best_ns) fastest = one;
    }
    return fastest;
}

// The time of a kernel's default config; 0 when it is not known.
static double default_ns(const hone_field *field, const hone_standings *standings, const hone_contestant *contestant)
{
    const uint32_t kernel = (uint32_t)(contestant - field->contestants);
    if (!contestant->has_default) return 0;
    const hone_candidate *candidate = hone_standings_find(standings, kernel, &contestant->default_config);
    return candidate != NULL && !candidate->out ? candidate->rank_ns : 0;
}

bool hone_family_follows(const hone_field *field, const hone_standings *standings, const hone_contestant *contestant)
{
    const hone_contestant *fastest = find_fastest(field, contestant->family, true);
    if (fastest == NULL || fastest == contestant) return false;
    return default_ns(field, standings, contestant) > 0 && default_ns(field, standings, fastest) > 0;
}

void hone_family_tell(
    const hone_field *field,
    const hone_standings *standings,
    uint32_t kernel,
    const hone_config *config,
    double time_ns)
{
    hone_assert(kernel < field->count && time_ns > 0);
    const double own_ns = default_ns(field, standings, &field->contestants[kernel]);
    for (uint32_t i = 0; i < field->count && own_ns > 0; i++) {
        const hone_contestant *other = &field->contestants[i];
        if (i == kernel || other->space == NULL || other->family != field->contestants[kernel].family) continue;
        const double other_ns = default_ns(field, standings, other);
        if (other_ns > 0 && !hone_standings_have(standings, i, config))
            hone_contestant_tell(other, config, time_ns * other_ns / own_ns, HONE_FAILURE_NONE);
    }
}

// Whether the contestant may win with the config that is the fastest of its family.
static bool may_win(
    const hone_field *field,
    const hone_standings *standings,
    const hone_contestant *contestant,
    const hone_candidate *fastest)
{
    const double own_ns = default_ns(field, standings, contestant),
                 its_ns = default_ns(field, standings, &field->contestants[fastest->kernel]);
    const hone_candidate *best = hone_standings_best(standings);
    if (own_ns <= 0 || its_ns <= 0 || best == NULL) return false;
    if (fastest->rank_ns > clear_gain * (contestant->followed_ns > 0 ? contestant->followed_ns : its_ns)) return false;
    return own_ns * fastest->rank_ns / its_ns <= near_best * best->rank_ns;
}

bool hone_family_next(hone_field *field, const hone_standings *standings, uint32_t *out_kernel, hone_config *out_config)
{
    for (uint32_t i = 0; i < field->count; i++) {
        hone_contestant *contestant = &field->contestants[i];
        if (contestant->space == NULL || contestant->put_aside || contestant->best_ns <= 0) continue;
        const hone_contestant *leader = find_fastest(field, contestant->family, false);
        if (leader == contestant) continue;
        const hone_candidate *fastest = hone_standings_best_of(standings, (uint32_t)(leader - field->contestants));
        if (fastest == NULL || !may_win(field, standings, contestant, fastest)) continue;
        contestant->followed_ns = fastest->rank_ns;
        if (hone_standings_have(standings, i, &fastest->config) ||
            hone_bound_space_check(contestant->space, &fastest->config, NULL) != HONE_OK)
            continue;
        *out_kernel = i;
        *out_config = fastest->config;
        return true;
    }
    return false;
}
