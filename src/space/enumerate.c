// All configs in the order of the text. Several components are listed first and their lists walked side by side, so
// that an inner one is not searched again for every combination of the outer ones.
#include "space/bound.h"

#include "base/error.h"

typedef struct enumeration {
    const hone_bound_space *bound;
    bool (*visit)(void *ctx, const hone_space_point *point);
    void *ctx;
    hone_space_listing *listings; // by component
    size_t level_of[HONE_MAX_PARAMETERS];
    uint32_t nodes[HONE_MAX_PARAMETERS]; // where each parameter stands, in its level
    hone_space_point point;
} enumeration;

static bool visit_walk(void *ctx, const hone_space_walk *walk)
{
    enumeration *e = ctx;
    return e->visit(e->ctx, &walk->point);
}

static hone_status enumerate_searching(enumeration *e, hone_error *err)
{
    hone_space_walk walk;
    hone_status status = hone_space_walk_init(&walk, e->bound, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = hone_space_walk_run(&walk, visit_walk, e, err);
    hone_space_walk_deinit(&walk);
    return status;
}

// The nodes that a parameter can stand on, given the parameter above it in its component.
static void range_of(const enumeration *e, size_t parameter, uint32_t *out_first, uint32_t *out_end)
{
    const hone_space_listing *listing = &e->listings[e->bound->component_of[parameter]];
    size_t level = e->level_of[parameter];
    if (level == 0) {
        *out_first = 0;
        *out_end = (uint32_t)listing->levels[0].count;
        return;
    }
    const hone_space_level *above = &listing->levels[level - 1];
    *out_first = above->children[e->nodes[above->parameter]];
    *out_end = above->children[e->nodes[above->parameter] + 1];
}

// False once visit said so. Nests as deep as there are parameters.
static bool visit_from(enumeration *e, size_t parameter)
{
    if (parameter == e->bound->space->parameter_count) return e->visit(e->ctx, &e->point);
    uint32_t node, end;
    const hone_space_parameter *p = &e->bound->space->parameters[parameter];
    const hone_space_listing *listing = &e->listings[e->bound->component_of[parameter]];
    const hone_space_level *level = &listing->levels[e->level_of[parameter]];
    for (range_of(e, parameter, &node, &end); node < end; node++) {
        e->nodes[parameter] = node;
        e->point.positions[parameter] = level->positions[node];
        e->point.config.values[parameter] = hone_space_number(p, level->positions[node]);
        if (!visit_from(e, parameter + 1)) return false;
    }
    return true;
}

static bool all_listed(const enumeration *e)
{
    for (size_t i = 0; i < e->bound->component_count; i++)
        if (!e->listings[i].complete) return false;
    return true;
}

static hone_status enumerate_listed(enumeration *e, hone_error *err)
{
    for (size_t i = 0; i < e->bound->component_count; i++) {
        hone_status status = hone_space_listing_init(&e->listings[i], e->bound, i, err);
        if (status != HONE_OK) return status;
        for (size_t j = 0; j < e->listings[i].depth; j++)
            e->level_of[e->listings[i].levels[j].parameter] = j;
    }
    if (hone_space_listing_is_empty(e->listings, e->bound->component_count)) return HONE_OK;
    if (!all_listed(e)) return enumerate_searching(e, err);
    e->point.config.count = (uint32_t)e->bound->space->parameter_count;
    visit_from(e, 0);
    return HONE_OK;
}

// Components of more than one parameter.
static size_t count_joined(const hone_bound_space *bound)
{
    size_t sizes[HONE_MAX_PARAMETERS] = {0}, joined = 0;
    for (size_t i = 0; i < bound->space->parameter_count; i++)
        joined += ++sizes[bound->component_of[i]] == 2;
    return joined;
}

hone_status hone_space_enumerate_points(
    const hone_bound_space *space, bool (*visit)(void *ctx, const hone_space_point *point), void *ctx, hone_error *err)
{
    enumeration e = {.bound = space, .visit = visit, .ctx = ctx};
    if (space->refused) return HONE_OK;
    if (count_joined(space) < 2) return enumerate_searching(&e, err);
    e.listings = hone_alloc_array(&space->allocator, space->component_count, sizeof *e.listings);
    if (e.listings == NULL) return hone_fail_memory(err, "space.enumerate");
    hone_status status = enumerate_listed(&e, err);
    for (size_t i = 0; i < space->component_count; i++)
        hone_space_listing_deinit(&e.listings[i]);
    hone_free(&space->allocator, e.listings);
    return status;
}

typedef struct config_visit {
    bool (*visit)(void *ctx, const hone_config *config);
    void *ctx;
} config_visit;

static bool visit_config(void *ctx, const hone_space_point *point)
{
    const config_visit *v = ctx;
    return v->visit(v->ctx, &point->config);
}

hone_status hone_bound_space_enumerate(
    const hone_bound_space *space, bool (*visit)(void *ctx, const hone_config *config), void *ctx, hone_error *err)
{
    config_visit v = {visit, ctx};
    return hone_space_enumerate_points(space, visit_config, &v, err);
}
