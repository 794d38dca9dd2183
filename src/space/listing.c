// Components written out, where they are small enough: what is listed has no dead ends, no constraint is asked again,
// and every combination has a rank.
#include "space/bound.h"

#include "base/error.h"

static const char where[] = "space.list";

enum {
    LISTED_MAX = 1000000, // combinations
    BUDGET = 10000000     // values tried
};

typedef struct listing_visit {
    hone_space_listing *listing;
    bool out_of_memory;
} listing_visit;

static bool add_node(hone_space_listing *listing, size_t depth, uint16_t position)
{
    hone_space_level *level = &listing->levels[depth];
    hone_space_level *above = depth == 0 ? NULL : level - 1;
    const hone_allocator *allocator = &listing->allocator;
    size_t count = level->count + 1;
    if (!hone_grow(allocator, &level->positions, &level->capacities[0], count, sizeof *level->positions) ||
        !hone_grow(allocator, &level->parents, &level->capacities[1], count, sizeof *level->parents) ||
        !hone_grow(allocator, &level->children, &level->capacities[2], count + 1, sizeof *level->children))
        return false;
    level->positions[level->count] = position;
    level->parents[level->count] = above == NULL ? 0 : (uint32_t)(above->count - 1);
    if (depth + 1 < listing->depth) level->children[level->count] = (uint32_t)listing->levels[depth + 1].count;
    level->count = count;
    return true;
}

// The first level on which a combination leaves the path of the one before it.
static size_t branch_of(const hone_space_listing *listing, const hone_space_walk *walk)
{
    size_t depth = 0;
    for (; depth < listing->depth; depth++) {
        const hone_space_level *level = &listing->levels[depth];
        if (level->count == 0 || level->positions[level->count - 1] != walk->point.positions[level->parameter]) break;
    }
    return depth;
}

static bool add_combination(void *ctx, const hone_space_walk *walk)
{
    listing_visit *v = ctx;
    hone_space_listing *listing = v->listing;
    if (listing->count == LISTED_MAX) return false;
    for (size_t i = branch_of(listing, walk); i < listing->depth; i++) {
        v->out_of_memory = !add_node(listing, i, (uint16_t)walk->point.positions[listing->levels[i].parameter]);
        if (v->out_of_memory) return false;
    }
    listing->count++;
    return true;
}

// The end of the last node's children.
static void close_levels(hone_space_listing *listing)
{
    for (size_t i = 0; i + 1 < listing->depth; i++)
        if (listing->count > 0)
            listing->levels[i].children[listing->levels[i].count] = (uint32_t)listing->levels[i + 1].count;
}

static hone_status list_component(hone_space_listing *listing, hone_space_walk *walk, hone_error *err)
{
    listing_visit v = {listing, false};
    listing->depth = walk->depth;
    for (size_t i = 0; i < walk->depth; i++)
        listing->levels[i].parameter = walk->order[i];
    walk->budget = BUDGET;
    hone_status status = hone_space_walk_run(walk, add_combination, &v, err);
    if (status != HONE_OK) return status;
    if (v.out_of_memory) return hone_fail_memory(err, where);
    listing->complete = walk->budget > 0 && listing->count < LISTED_MAX;
    close_levels(listing);
    return HONE_OK;
}

hone_status hone_space_listing_init(
    hone_space_listing *listing, const hone_bound_space *bound, size_t component, hone_error *err)
{
    hone_space_walk walk;
    *listing = (hone_space_listing){.allocator = bound->allocator};
    hone_status status = hone_space_walk_init(&walk, bound, (int)component, err);
    if (status == HONE_OK) status = list_component(listing, &walk, err);
    hone_space_walk_deinit(&walk);
    return status;
}

void hone_space_listing_deinit(hone_space_listing *listing)
{
    for (size_t i = 0; i < listing->depth; i++) {
        hone_free(&listing->allocator, listing->levels[i].positions);
        hone_free(&listing->allocator, listing->levels[i].parents);
        hone_free(&listing->allocator, listing->levels[i].children);
    }
    listing->depth = 0;
}

void hone_space_listing_get(
    const hone_space_listing *listing, const hone_space *space, size_t rank, hone_config *config)
{
    for (size_t i = listing->depth; i-- > 0;) {
        const hone_space_level *level = &listing->levels[i];
        config->values[level->parameter] =
            hone_space_number(&space->parameters[level->parameter], level->positions[rank]);
        rank = level->parents[rank];
    }
}

bool hone_space_listing_is_empty(const hone_space_listing *listings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (listings[i].complete && listings[i].count == 0) return true;
    return false;
}
