// The valid configs around a config: each parameter is changed in turn and only what comes behind it is asked again.
// Before the changed parameter the walk stands as the base set it; behind it, parameters of other components are not
// asked when the base is valid, for no constraint connects them. Cost: a walk of at most the parameters behind, a
// value.
#include "space/bound.h"

#include "base/error.h"

static const char where[] = "space.neighbours";

typedef struct neighbours {
    hone_space_walk walk;
    uint16_t base[HONE_MAX_PARAMETERS]; // positions
    bool base_is_valid;
    bool (*visit)(void *ctx, const hone_config *config);
    void *ctx;
    bool stopped; // visit said so
    hone_error *err;
} neighbours;

// Asks everything behind `changed`. A valid base needs no question about other components.
static hone_verdict set_behind(neighbours *n, size_t changed)
{
    const hone_bound_space *bound = n->walk.bound;
    for (size_t i = changed + 1; i < bound->space->parameter_count; i++) {
        bool apart = bound->component_of[i] != bound->component_of[changed];
        hone_verdict verdict = apart && n->base_is_valid ? HONE_ACCEPTED : hone_space_walk_set(&n->walk, i, n->base[i]);
        if (verdict != HONE_ACCEPTED) return verdict;
    }
    return HONE_ACCEPTED;
}

static hone_status try_value(neighbours *n, size_t parameter, uint32_t position)
{
    hone_verdict verdict = hone_space_walk_set(&n->walk, parameter, position);
    if (verdict == HONE_ACCEPTED) verdict = set_behind(n, parameter);
    if (verdict == HONE_FAILED) return hone_space_walk_failure(&n->walk, UINT32_MAX, n->err);
    if (verdict == HONE_ACCEPTED) n->stopped = !n->visit(n->ctx, &n->walk.point.config);
    return HONE_OK;
}

static hone_status change_parameter(neighbours *n, size_t parameter, uint32_t first, uint32_t end)
{
    hone_status status = HONE_OK;
    for (uint32_t i = first; i < end && status == HONE_OK && !n->stopped; i++)
        if (i != n->base[parameter]) status = try_value(n, parameter, i);
    return status;
}

static hone_status visit_neighbours(neighbours *n, hone_neighbourhood which)
{
    const hone_space *space = n->walk.bound->space;
    for (size_t i = 0; i < space->parameter_count; i++) {
        uint32_t first = 0, end = (uint32_t)space->parameters[i].count, here = n->base[i];
        if (which == HONE_NEIGHBOURS_ADJACENT) {
            first = here > 0 ? here - 1 : here;
            end = here + 2 < end ? here + 2 : end;
        }
        hone_status status = change_parameter(n, i, first, end);
        if (status != HONE_OK || n->stopped) return status;
        // What the parameters up to here refuse, no change behind them mends.
        if (hone_space_walk_set(&n->walk, i, n->base[i]) != HONE_ACCEPTED) return HONE_OK;
        n->walk.point.config.values[i] = hone_space_number(&space->parameters[i], n->base[i]);
    }
    return HONE_OK;
}

// Every number of the config is set, so that a visit sees it whole.
static void set_base(neighbours *n, const hone_config *config)
{
    const hone_space *space = n->walk.bound->space;
    n->walk.point.config = *config;
    n->base_is_valid = true;
    for (size_t i = 0; i < space->parameter_count && n->base_is_valid; i++)
        n->base_is_valid = hone_space_walk_set(&n->walk, i, n->base[i]) == HONE_ACCEPTED;
}

hone_status hone_bound_space_neighbours(
    const hone_bound_space *space,
    const hone_config *config,
    hone_neighbourhood which,
    bool (*visit)(void *ctx, const hone_config *config),
    void *ctx,
    hone_error *err)
{
    if (space == NULL || config == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the space, the config or visit is NULL");
    neighbours n = {.visit = visit, .ctx = ctx, .err = err};
    if (which != HONE_NEIGHBOURS_HAMMING && which != HONE_NEIGHBOURS_ADJACENT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "there is no neighbourhood %d", (int)which);
    hone_status status = hone_space_find_positions(space->space, config, n.base, err);
    if (status != HONE_OK || space->plan.refused) return status;
    status = hone_space_walk_init(&n.walk, space, &space->plan, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) {
        set_base(&n, config);
        status = visit_neighbours(&n, which);
    }
    hone_space_walk_deinit(&n.walk);
    return status;
}
