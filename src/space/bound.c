// What can be asked of a bound space: its configs, their number, its default, and whether a config is one of it.
#include "space/bound.h"

#include "base/error.h"

typedef struct enumeration {
    bool (*visit)(void *ctx, const hone_config *config);
    void *ctx;
} enumeration;

static bool visit_config(void *ctx, const hone_space_walk *walk)
{
    enumeration *e = ctx;
    return e->visit(e->ctx, &walk->config);
}

hone_status hone_bound_space_enumerate(
    const hone_bound_space *space, bool (*visit)(void *ctx, const hone_config *config), void *ctx, hone_error *err)
{
    hone_space_walk walk;
    enumeration e = {visit, ctx};
    hone_status status = hone_space_walk_init(&walk, space, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = hone_space_walk_run(&walk, visit_config, &e, err);
    hone_space_walk_deinit(&walk);
    return status;
}

static bool count_one(void *ctx, const hone_space_walk *walk)
{
    (void)walk;
    ++*(uint64_t *)ctx;
    return true;
}

static hone_status count_component(
    const hone_bound_space *space, size_t component, uint64_t *out_count, hone_error *err)
{
    hone_space_walk walk;
    *out_count = 0;
    hone_status status = hone_space_walk_init(&walk, space, (int)component, err);
    if (status == HONE_OK) status = hone_space_walk_run(&walk, count_one, out_count, err);
    hone_space_walk_deinit(&walk);
    return status;
}

// Components vary independently, so that their numbers multiply and 10^9 configs count in no time.
hone_status hone_bound_space_count(const hone_bound_space *space, uint64_t *out_count, hone_error *err)
{
    uint64_t product = space->refused ? 0 : 1;
    for (size_t i = 0; i < space->component_count && product != 0; i++) {
        uint64_t count;
        hone_status status = count_component(space, i, &count, err);
        if (status != HONE_OK) return status;
        if (__builtin_mul_overflow(product, count, &product)) product = UINT64_MAX;
    }
    *out_count = product;
    return HONE_OK;
}

static hone_status refused_by(const hone_bound_space *space, size_t constraint, const char *where, hone_error *err)
{
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "refused by 'where %.800s'",
        hone_expression_source(space->space->constraints[constraint]).data);
}

// Tests the config whose positions are given.
static hone_status check_positions(
    const hone_bound_space *space, hone_space_walk *walk, const uint32_t *positions, hone_error *err)
{
    if (space->refused) return refused_by(space, space->refused_by, "space.check", err);
    for (size_t i = 0; i < space->space->parameter_count; i++) {
        hone_verdict verdict = hone_space_walk_set(walk, i, positions[i]);
        if (verdict == HONE_REFUSED) return refused_by(space, walk->stopped_at->to, "space.check", err);
        if (verdict == HONE_FAILED) return hone_space_walk_failure(walk, i, err);
    }
    return HONE_OK;
}

static hone_status find_positions(
    const hone_space *space, const hone_config *config, uint32_t *out_positions, hone_error *err)
{
    if (config->count != space->parameter_count)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "space.check", "the config has %u values, and the space %zu parameters",
            config->count, space->parameter_count);
    for (size_t i = 0; i < space->parameter_count; i++) {
        int64_t position = hone_space_find_number(&space->parameters[i], config->values[i]);
        if (position < 0) {
            char values[400];
            hone_space_list_values(&space->parameters[i], values, sizeof values);
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, "space.check", "parameter '%s': %s%lld is none of its values (%s)",
                space->parameters[i].name, space->parameters[i].integers ? "" : "position ",
                (long long)config->values[i], values);
        }
        out_positions[i] = (uint32_t)position;
    }
    return HONE_OK;
}

hone_status hone_bound_space_check(const hone_bound_space *space, const hone_config *config, hone_error *err)
{
    hone_space_walk walk;
    uint32_t positions[HONE_MAX_PARAMETERS];
    hone_status status = find_positions(space->space, config, positions, err);
    if (status != HONE_OK) return status;
    status = hone_space_walk_init(&walk, space, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = check_positions(space, &walk, positions, err);
    hone_space_walk_deinit(&walk);
    return status;
}

static bool take_first(void *ctx, const hone_space_walk *walk)
{
    hone_config *out = ctx;
    *out = walk->config;
    return false;
}

// The first valid config when the defaults do not fit together.
static hone_status default_or_first(
    const hone_bound_space *space, hone_space_walk *walk, hone_config *out, hone_error *err)
{
    hone_config first = {.count = UINT32_MAX};
    uint32_t positions[HONE_MAX_PARAMETERS];
    for (size_t i = 0; i < space->space->parameter_count; i++)
        positions[i] = (uint32_t)space->space->parameters[i].by_default;
    if (check_positions(space, walk, positions, NULL) == HONE_OK) {
        *out = walk->config;
        return HONE_OK;
    }
    hone_status status = hone_space_walk_run(walk, take_first, &first, err);
    if (status != HONE_OK) return status;
    if (first.count == UINT32_MAX && space->refused)
        return hone_fail(
            err, HONE_NOT_FOUND, "space.default", "no config: 'where %.800s' is false for this call and device",
            hone_expression_source(space->space->constraints[space->refused_by]).data);
    if (first.count == UINT32_MAX)
        return hone_fail(err, HONE_NOT_FOUND, "space.default", "no config fulfils every constraint");
    *out = first;
    return HONE_OK;
}

hone_status hone_bound_space_default(const hone_bound_space *space, hone_config *out_config, hone_error *err)
{
    hone_space_walk walk;
    hone_status status = hone_space_walk_init(&walk, space, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = default_or_first(space, &walk, out_config, err);
    hone_space_walk_deinit(&walk);
    return status;
}
