// What can be asked of a bound space without looking at all of it: its default, and whether a config is one of it.
#include "space/bound.h"

#include "base/error.h"

static const char where[] = "space.check";

static hone_status refused_by(const hone_bound_space *space, size_t constraint, const char *place, hone_error *err)
{
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, place, "refused by 'where %.800s'",
        hone_expression_source(space->space->constraints[constraint]).data);
}

// Tests the config whose positions are given.
static hone_status check_positions(
    const hone_bound_space *space, hone_space_walk *walk, const uint16_t *positions, hone_error *err)
{
    if (space->plan.refused) return refused_by(space, space->plan.refused_by, where, err);
    for (size_t i = 0; i < space->space->parameter_count; i++) {
        hone_verdict verdict = hone_space_walk_set(walk, i, positions[i]);
        if (verdict == HONE_REFUSED) return refused_by(space, walk->stopped_at->to, where, err);
        if (verdict == HONE_FAILED) return hone_space_walk_failure(walk, (2u << i) - 1, err);
    }
    return HONE_OK;
}

hone_status hone_space_find_positions(
    const hone_space *space, const hone_config *config, uint16_t *out_positions, hone_error *err)
{
    if (config->count != space->parameter_count)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the config has %u values, and the space %zu parameters", config->count,
            space->parameter_count);
    for (size_t i = 0; i < space->parameter_count; i++) {
        int64_t position = hone_space_find_number(&space->parameters[i], config->values[i]);
        if (position < 0) {
            char values[400];
            hone_space_list_values(&space->parameters[i], values, sizeof values);
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "parameter '%s': %s%lld is not one of its values (%s)",
                space->parameters[i].name, space->parameters[i].integers ? "" : "position ",
                (long long)config->values[i], values);
        }
        out_positions[i] = (uint16_t)position;
    }
    return HONE_OK;
}

hone_status hone_bound_space_check(const hone_bound_space *space, const hone_config *config, hone_error *err)
{
    if (space == NULL || config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "space.check", "the space or the config is NULL");
    hone_space_walk walk;
    uint16_t positions[HONE_MAX_PARAMETERS];
    hone_status status = hone_space_find_positions(space->space, config, positions, err);
    if (status != HONE_OK) return status;
    status = hone_space_walk_init(&walk, space, &space->plan, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = check_positions(space, &walk, positions, err);
    hone_space_walk_deinit(&walk);
    return status;
}

enum { FIRST_TRIES = 20000000 }; // values: half a second

static bool take_first(void *ctx, const hone_space_walk *walk)
{
    (void)walk;
    *(bool *)ctx = true;
    return false;
}

// A component's first combination goes into config.
static hone_status first_of_component(
    const hone_bound_space *space, size_t component, hone_config *config, hone_error *err)
{
    hone_space_walk walk;
    bool found = false;
    hone_status status = hone_space_walk_init(&walk, space, &space->plan, (int)component, err);
    walk.budget = FIRST_TRIES;
    if (status == HONE_OK) status = hone_space_walk_run(&walk, take_first, &found, err);
    const bool given_up = walk.budget == 0;
    for (size_t i = 0; i < walk.depth; i++)
        config->values[walk.order[i]] = walk.point.config.values[walk.order[i]];
    hone_space_walk_deinit(&walk);
    if (status != HONE_OK || found) return status;
    if (given_up)
        return hone_fail(
            err, HONE_UNSUPPORTED, "space.default",
            "the constraints refuse the default config, and %d values tried in the order of the text led to no other: "
            "give "
            "the parameters defaults that fulfil them",
            FIRST_TRIES);
    return hone_fail(
        err, HONE_NOT_FOUND, "space.default", "no config fulfils every constraint of this call and device");
}

// The first config of the whole space is made of the first of each component.
static hone_status first_config(const hone_bound_space *space, hone_config *out, hone_error *err)
{
    hone_config first = {.count = (uint32_t)space->space->parameter_count};
    if (space->plan.refused)
        return hone_fail(
            err, HONE_NOT_FOUND, "space.default", "no config: 'where %.800s' is false for this call and device",
            hone_expression_source(space->space->constraints[space->plan.refused_by]).data);
    for (size_t i = 0; i < space->component_count; i++) {
        hone_status status = first_of_component(space, i, &first, err);
        if (status != HONE_OK) return status;
    }
    *out = first;
    return HONE_OK;
}

hone_status hone_bound_space_default(const hone_bound_space *space, hone_config *out_config, hone_error *err)
{
    if (space == NULL || out_config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "space.default", "the space or out_config is NULL");
    hone_space_walk walk;
    uint16_t positions[HONE_MAX_PARAMETERS];
    for (size_t i = 0; i < space->space->parameter_count; i++)
        positions[i] = (uint16_t)space->space->parameters[i].by_default;
    hone_status status = hone_space_walk_init(&walk, space, &space->plan, HONE_ALL_COMPONENTS, err);
    bool fits = status == HONE_OK && check_positions(space, &walk, positions, NULL) == HONE_OK;
    if (fits) *out_config = walk.point.config;
    hone_space_walk_deinit(&walk);
    return status != HONE_OK || fits ? status : first_config(space, out_config, err);
}
