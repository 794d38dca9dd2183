// What can be asked of a bound space: the number of its configs, its default, and whether a config is one of it.
#include "space/bound.h"

#include "base/error.h"

// Below and with a parameter, given those above it.
typedef struct counting {
    hone_space_walk walk;
    hone_status status;
    hone_error *err;
    uint32_t children[HONE_MAX_PARAMETERS]; // bits, by parameter
} counting;

static void multiply(uint64_t *product, uint64_t factor)
{
    if (__builtin_mul_overflow(*product, factor, product)) *product = UINT64_MAX;
}

static void add(uint64_t *sum, uint64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum)) *sum = UINT64_MAX;
}

static uint64_t count_below(counting *c, size_t parameter, uint32_t above);

// The trees below vary independently, so that their numbers multiply: 10^9 configs are counted in no time.
static uint64_t count_trees(counting *c, uint32_t roots, uint32_t above)
{
    uint64_t product = 1;
    for (; roots != 0 && product != 0; roots &= roots - 1)
        multiply(&product, count_below(c, (size_t)__builtin_ctz(roots), above));
    return product;
}

static uint64_t count_below(counting *c, size_t parameter, uint32_t above)
{
    uint64_t sum = 0;
    size_t values = c->walk.bound->space->parameters[parameter].count;
    above |= 1u << parameter;
    for (uint32_t i = 0; i < values && c->status == HONE_OK; i++) {
        hone_verdict verdict = hone_space_walk_set(&c->walk, parameter, i);
        if (verdict == HONE_FAILED)
            c->status = hone_space_walk_failure(&c->walk, above, c->err);
        else if (verdict == HONE_ACCEPTED)
            add(&sum, count_trees(c, c->children[parameter], above));
    }
    return sum;
}

hone_status hone_bound_space_count(const hone_bound_space *space, uint64_t *out_count, hone_error *err)
{
    uint32_t roots = 0;
    counting c = {.status = HONE_OK, .err = err};
    for (size_t i = 0; i < space->space->parameter_count; i++) {
        if (space->parent_of[i] < 0)
            roots |= 1u << i;
        else
            c.children[space->parent_of[i]] |= 1u << i;
    }
    c.status = hone_space_walk_init(&c.walk, space, HONE_ALL_COMPONENTS, err);
    uint64_t count = c.status != HONE_OK || space->refused ? 0 : count_trees(&c, roots, 0);
    if (c.status == HONE_OK) *out_count = count;
    hone_space_walk_deinit(&c.walk);
    return c.status;
}

static hone_status refused_by(const hone_bound_space *space, size_t constraint, const char *where, hone_error *err)
{
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "refused by 'where %.800s'",
        hone_expression_source(space->space->constraints[constraint]).data);
}

// Tests the config whose positions are given.
static hone_status check_positions(
    const hone_bound_space *space, hone_space_walk *walk, const uint16_t *positions, hone_error *err)
{
    if (space->refused) return refused_by(space, space->refused_by, "space.check", err);
    for (size_t i = 0; i < space->space->parameter_count; i++) {
        hone_verdict verdict = hone_space_walk_set(walk, i, positions[i]);
        if (verdict == HONE_REFUSED) return refused_by(space, walk->stopped_at->to, "space.check", err);
        if (verdict == HONE_FAILED) return hone_space_walk_failure(walk, (2u << i) - 1, err);
    }
    return HONE_OK;
}

hone_status hone_space_find_positions(
    const hone_space *space, const hone_config *config, uint16_t *out_positions, hone_error *err)
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
        out_positions[i] = (uint16_t)position;
    }
    return HONE_OK;
}

hone_status hone_bound_space_check(const hone_bound_space *space, const hone_config *config, hone_error *err)
{
    hone_space_walk walk;
    uint16_t positions[HONE_MAX_PARAMETERS];
    hone_status status = hone_space_find_positions(space->space, config, positions, err);
    if (status != HONE_OK) return status;
    status = hone_space_walk_init(&walk, space, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = check_positions(space, &walk, positions, err);
    hone_space_walk_deinit(&walk);
    return status;
}

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
    hone_status status = hone_space_walk_init(&walk, space, (int)component, err);
    if (status == HONE_OK) status = hone_space_walk_run(&walk, take_first, &found, err);
    for (size_t i = 0; i < walk.depth; i++)
        config->values[walk.order[i]] = walk.point.config.values[walk.order[i]];
    hone_space_walk_deinit(&walk);
    if (status != HONE_OK || found) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, "space.default", "no config fulfils every constraint of this call and device");
}

// The first config of the whole space is made of the first of each component.
static hone_status first_config(const hone_bound_space *space, hone_config *out, hone_error *err)
{
    hone_config first = {.count = (uint32_t)space->space->parameter_count};
    if (space->refused)
        return hone_fail(
            err, HONE_NOT_FOUND, "space.default", "no config: 'where %.800s' is false for this call and device",
            hone_expression_source(space->space->constraints[space->refused_by]).data);
    for (size_t i = 0; i < space->component_count; i++) {
        hone_status status = first_of_component(space, i, &first, err);
        if (status != HONE_OK) return status;
    }
    *out = first;
    return HONE_OK;
}

hone_status hone_bound_space_default(const hone_bound_space *space, hone_config *out_config, hone_error *err)
{
    hone_space_walk walk;
    uint16_t positions[HONE_MAX_PARAMETERS];
    for (size_t i = 0; i < space->space->parameter_count; i++)
        positions[i] = (uint16_t)space->space->parameters[i].by_default;
    hone_status status = hone_space_walk_init(&walk, space, HONE_ALL_COMPONENTS, err);
    bool fits = status == HONE_OK && check_positions(space, &walk, positions, NULL) == HONE_OK;
    if (fits) *out_config = walk.point.config;
    hone_space_walk_deinit(&walk);
    return status != HONE_OK || fits ? status : first_config(space, out_config, err);
}
