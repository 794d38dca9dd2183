// All configs in the order of the text. Diagrams that have that order are walked side by side, a path each: nothing is
// asked again and nothing leads nowhere. Else the constraints are asked of one value after another.
#include "base/error.h"
#include "space/ranking.h"

typedef struct enumeration {
    const hone_bound_space *bound;
    const hone_space_ranking *ranking;
    bool (*visit)(void *ctx, const hone_space_point *point);
    void *ctx;
    uint8_t varying[HONE_MAX_PARAMETERS]; // parameters, ascending
    size_t varying_count;
    uint32_t nodes[HONE_MAX_PARAMETERS]; // where each component stands
    hone_space_point point;
} enumeration;

static bool visit_walk(void *ctx, const hone_space_walk *walk)
{
    enumeration *e = ctx;
    return e->visit(e->ctx, &walk->point);
}

static hone_status search(enumeration *e, hone_error *err)
{
    hone_space_walk walk;
    hone_status status = hone_space_walk_init(&walk, e->bound, &e->bound->plan, HONE_ALL_COMPONENTS, err);
    if (status == HONE_OK) status = hone_space_walk_run(&walk, visit_walk, e, err);
    hone_space_walk_deinit(&walk);
    return status;
}

// False once visit said so. Nests as deep as there are parameters.
static bool visit_from(enumeration *e, size_t index)
{
    if (index == e->varying_count) return e->visit(e->ctx, &e->point);
    size_t parameter = e->varying[index];
    uint32_t *node = &e->nodes[e->bound->component_of[parameter]], here = *node;
    const hone_space_parameter *p = &e->bound->space->parameters[parameter];
    const hone_space_diagram *diagram = &e->ranking->diagrams[e->bound->component_of[parameter]];
    const hone_space_node *choices = &diagram->nodes[here];
    bool go_on = true;
    for (uint32_t i = choices->first; i < choices->first + choices->edges && go_on; i++) {
        uint16_t position = diagram->positions[i];
        *node = diagram->children[i];
        e->point.positions[parameter] = position;
        e->point.config.values[parameter] = hone_space_number(p, position);
        go_on = visit_from(e, index + 1);
    }
    *node = here;
    return go_on;
}

// A component of one value is set once for all.
static void begin_at_roots(enumeration *e)
{
    const hone_space *space = e->bound->space;
    e->point.config.count = (uint32_t)space->parameter_count;
    for (size_t i = 0; i < space->parameter_count; i++) {
        size_t component = e->bound->component_of[i];
        e->nodes[component] = e->ranking->diagrams[component].root;
        if (e->ranking->diagrams[component].depth == 1 && space->parameters[i].count == 1)
            e->point.config.values[i] = hone_space_number(&space->parameters[i], 0);
        else
            e->varying[e->varying_count++] = (uint8_t)i;
    }
}

hone_status hone_space_enumerate_points(
    const hone_bound_space *bound, bool (*visit)(void *ctx, const hone_space_point *point), void *ctx, hone_error *err)
{
    enumeration e = {.bound = bound, .visit = visit, .ctx = ctx};
    hone_status status = hone_space_ranking_of(bound, &e.ranking, err);
    if (status != HONE_OK || e.ranking->high == 0) return status;
    if (!e.ranking->complete || !e.ranking->in_text_order) return search(&e, err);
    begin_at_roots(&e);
    visit_from(&e, 0);
    return HONE_OK;
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
    if (space == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "space.enumerate", "the space or visit is NULL");
    config_visit v = {visit, ctx};
    return hone_space_enumerate_points(space, visit_config, &v, err);
}
