// The order of the text is tried first, since it is also that of enumerating. A component whose diagram grows large in
// it gets a chosen order; one that is too large in both is not counted, but its number is bounded. The rank of a config
// is a number in mixed base: a digit for each component, the first the highest, each below its component's count.
//
// Limits were chosen by hand; docs/benchmarks.md ("Spaces") has what counting takes with them.
#include "space/ranking.h"

#include "base/assert.h"
#include "space/order.h"

#include "base/error.h"
#include "space/space.h"

#include <inttypes.h>

static const char where[] = "space.count", where_at[] = "space.at", where_rank[] = "space.rank";

static const hone_space_limits small = {768u << 10, 500000}, large = {32u << 20, 20000000};

typedef struct attempt {
    const hone_space_limits *limits;
    bool chosen; // order
} attempt;

static const attempt attempts[] = {{&small, false}, {&small, true}, {&large, true}, {&large, false}};

typedef struct ranker {
    const hone_bound_space *bound;
    hone_space_ranking *ranking;
    hone_space_plan chosen;
    bool has_looked, has_chosen; // for an order; one
    hone_error *err;
} ranker;

static hone_status look_for_order(ranker *r)
{
    uint8_t order[HONE_MAX_PARAMETERS];
    if (r->has_looked) return HONE_OK;
    r->has_looked = true;
    r->has_chosen = hone_space_choose_order(r->bound, order);
    return r->has_chosen ? hone_space_plan_init(&r->chosen, r->bound, order, r->err) : HONE_OK;
}

static void keep_bounds(hone_space_diagram *better, uint64_t low, uint64_t high)
{
    if (low > better->low) better->low = low;
    if (high < better->high) better->high = high;
}

static hone_status try_attempt(ranker *r, const attempt *how, size_t component)
{
    hone_space_diagram *diagram = &r->ranking->diagrams[component];
    const hone_space_plan *plan = how->chosen ? &r->chosen : &r->bound->plan;
    hone_status status = how->chosen ? look_for_order(r) : HONE_OK;
    if (status != HONE_OK || (how->chosen && !r->has_chosen)) return status;
    uint64_t low = diagram->low, high = diagram->high;
    hone_space_diagram_deinit(diagram);
    status = hone_space_diagram_init(diagram, r->bound, plan, component, how->limits, r->err);
    // In another order constraints are asked of combinations that the text's order never comes to.
    bool given_up = how->chosen && status == HONE_INVALID_ARGUMENT;
    if (given_up) *diagram = (hone_space_diagram){.allocator = r->bound->allocator, .low = low, .high = high};
    if (status == HONE_OK && !diagram->complete) keep_bounds(diagram, low, high);
    return given_up ? HONE_OK : status;
}

static hone_status rank_component(ranker *r, size_t component)
{
    hone_status status = HONE_OK;
    hone_space_diagram *diagram = &r->ranking->diagrams[component];
    *diagram = (hone_space_diagram){.allocator = r->bound->allocator, .high = UINT64_MAX};
    for (size_t i = 0; status == HONE_OK && !diagram->complete && i < sizeof attempts / sizeof *attempts; i++)
        status = try_attempt(r, &attempts[i], component);
    return status;
}

static bool is_in_text_order(const hone_space_diagram *diagram)
{
    for (size_t i = 1; i < diagram->depth; i++)
        if (diagram->order[i] < diagram->order[i - 1]) return false;
    return true;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

// Stops at a component without any combination: there is no config then, whatever the others are.
static hone_status rank_all(ranker *r)
{
    hone_space_ranking *ranking = r->ranking;
    ranking->low = ranking->high = 1;
    ranking->complete = ranking->in_text_order = true;
    for (size_t i = 0; i < r->bound->component_count && ranking->high > 0; i++) {
        hone_status status = rank_component(r, i);
        if (status != HONE_OK) return status;
        const hone_space_diagram *diagram = &ranking->diagrams[i];
        ranking->complete = ranking->complete && diagram->complete;
        ranking->in_text_order = ranking->in_text_order && is_in_text_order(diagram);
        ranking->low = product(ranking->low, diagram->low);
        ranking->high = product(ranking->high, diagram->high);
    }
    return HONE_OK;
}

static hone_status make_ranking(const hone_bound_space *bound, hone_space_ranking **out, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_space_ranking *ranking = hone_alloc(&bound->allocator, sizeof *ranking);
    if (ranking == NULL) return hone_fail_memory(err, where);
    ranking->allocator = bound->allocator;
    ranker r = {.bound = bound, .ranking = ranking, .err = err};
    if (!bound->plan.refused) status = rank_all(&r);
    hone_space_plan_deinit(&r.chosen);
    if (status == HONE_OK)
        *out = ranking;
    else
        hone_space_ranking_release(ranking);
    return status;
}

hone_status hone_space_ranking_of(
    const hone_bound_space *bound, const hone_space_ranking **out_ranking, hone_error *err)
{
    // What is remembered changes no answer that a reader of the bound space gets.
    hone_bound_space *owner = (hone_bound_space *)(uintptr_t)bound;
    hone_space_ranking *made = NULL, *known = atomic_load_explicit(&owner->ranking, memory_order_acquire);
    *out_ranking = known;
    if (known != NULL) return HONE_OK;
    hone_status status = make_ranking(bound, &made, err);
    if (status != HONE_OK) return status;
    if (!atomic_compare_exchange_strong(&owner->ranking, &known, made)) {
        hone_space_ranking_release(made); // another thread was first
        made = known;
    }
    *out_ranking = made;
    return HONE_OK;
}

void hone_space_ranking_release(hone_space_ranking *ranking)
{
    if (ranking == NULL) return;
    for (size_t i = 0; i < HONE_MAX_PARAMETERS; i++)
        hone_space_diagram_deinit(&ranking->diagrams[i]);
    hone_allocator allocator = ranking->allocator;
    hone_free(&allocator, ranking);
}

bool hone_space_ranking_is_usable(const hone_space_ranking *ranking)
{
    return ranking->complete && ranking->high < UINT64_MAX;
}

void hone_space_ranking_at(
    const hone_space_ranking *ranking, const hone_bound_space *bound, uint64_t rank, hone_config *out_config)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    const hone_space *space = bound->space;
    hone_assert(hone_space_ranking_is_usable(ranking) && rank < ranking->low);
    for (size_t i = bound->component_count; i-- > 0;) {
        hone_space_diagram_at(&ranking->diagrams[i], rank % ranking->diagrams[i].low, positions);
        rank /= ranking->diagrams[i].low;
    }
    *out_config = (hone_config){.count = (uint32_t)space->parameter_count};
    for (size_t i = 0; i < space->parameter_count; i++)
        out_config->values[i] = hone_space_number(&space->parameters[i], positions[i]);
}

// HONE_OK with a ranking that has ranks.
static hone_status usable_ranking(
    const hone_bound_space *bound, const char *what, const hone_space_ranking **out, hone_error *err)
{
    hone_status status = hone_space_ranking_of(bound, out, err);
    if (status != HONE_OK || hone_space_ranking_is_usable(*out)) return status;
    return hone_fail(
        err, HONE_UNSUPPORTED, what,
        "the space is too large and too entangled to be counted: it has %" PRIu64 " to %" PRIu64 "%s valid configs",
        (*out)->low, (*out)->high, (*out)->high == UINT64_MAX ? " or more" : "");
}

hone_status hone_bound_space_bounds(
    const hone_bound_space *space, uint64_t *out_low, uint64_t *out_high, hone_error *err)
{
    if (space == NULL || out_low == NULL || out_high == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "space.bounds", "the space, out_low or out_high is NULL");
    const hone_space_ranking *ranking;
    hone_status status = hone_space_ranking_of(space, &ranking, err);
    if (status != HONE_OK) return status;
    *out_low = ranking->low;
    *out_high = ranking->high;
    return HONE_OK;
}

hone_status hone_bound_space_count(const hone_bound_space *space, uint64_t *out_count, hone_error *err)
{
    uint64_t low, high;
    const hone_space_ranking *ranking;
    hone_status status = hone_bound_space_bounds(space, &low, &high, err);
    if (status == HONE_OK && low != high) status = usable_ranking(space, where, &ranking, err);
    if (status == HONE_OK) *out_count = low;
    return status;
}

hone_status hone_bound_space_at(const hone_bound_space *space, uint64_t rank, hone_config *out_config, hone_error *err)
{
    if (space == NULL || out_config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where_at, "the space or out_config is NULL");
    const hone_space_ranking *ranking;
    hone_status status = usable_ranking(space, where_at, &ranking, err);
    if (status != HONE_OK) return status;
    if (rank >= ranking->low)
        return hone_fail(
            err, HONE_NOT_FOUND, where_at, "rank %" PRIu64 ": the space has %" PRIu64 " valid configs", rank,
            ranking->low);
    hone_space_ranking_at(ranking, space, rank, out_config);
    return HONE_OK;
}

hone_status hone_bound_space_rank(
    const hone_bound_space *space, const hone_config *config, uint64_t *out_rank, hone_error *err)
{
    if (space == NULL || config == NULL || out_rank == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where_rank, "the space, the config or out_rank is NULL");
    uint64_t rank = 0, own;
    uint16_t positions[HONE_MAX_PARAMETERS];
    const hone_space_ranking *ranking;
    hone_status status = usable_ranking(space, where_rank, &ranking, err);
    if (status == HONE_OK) status = hone_bound_space_check(space, config, err);
    if (status == HONE_OK) status = hone_space_find_positions(space->space, config, positions, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; i < space->component_count; i++) {
        if (!hone_space_diagram_rank(&ranking->diagrams[i], positions, &own)) own = 0; // a checked config has one
        rank = rank * ranking->diagrams[i].low + own;
    }
    *out_rank = rank;
    return HONE_OK;
}
