// Uniform samples of distinct configs.
//
// Where configs have ranks, distinct ranks are distinct configs: exact, and as quick for 10^9 configs as for ten. A
// component that has none is drawn by rejection: uniform values until its constraints hold. When that finds too little,
// the whole space is enumerated through a reservoir, if it is small enough for that. All three are uniform; the same
// seed takes the same way. Ranks are the beginning of a Fisher-Yates shuffle of which only the places that were moved
// are kept; the reservoir is algorithm R of J. S. Vitter, "Random Sampling with a Reservoir" (1985). Drawing and
// enumerating stop after so many tries, some seconds, not by a clock: what was drawn then counts.
#include "space/ranking.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

#include <string.h>

static const char where[] = "space.sample";

enum {
    TRIES_A_CONFIG = 10000, // of rejection
    TRIES_AT_LEAST = 1000000,
    TRIES_AT_MOST = 4000000,
    ENUMERATED_MAX = 10000000 // values that the reservoir may try
};

// Uniform below limit > 0: numbers of the last, incomplete run of `limit` are drawn again.
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    hone_assert(limit > 0);
    uint64_t rest = (UINT64_MAX % limit + 1) % limit, bits;
    do
        bits = hone_random_next(state);
    while (bits > UINT64_MAX - rest);
    return bits % limit;
}

typedef struct sampler {
    const hone_bound_space *bound;
    const hone_space_ranking *ranking;
    hone_space_walk walks[HONE_MAX_PARAMETERS]; // of components that have no ranks
    uint64_t state, tries;
    hone_config *out;
    size_t wanted, count;
    hone_error *err;
} sampler;

// What a Fisher-Yates shuffle of 0 .. n-1 has moved so far; the rest stands where it stood.
typedef struct moved {
    uint64_t *entries; // pairs: index + 1, value
    size_t mask;
} moved;

static uint64_t *find_moved(const moved *m, uint64_t index)
{
    for (size_t i = hone_hash64(&index, sizeof index) & m->mask;; i = (i + 1) & m->mask) {
        uint64_t *entry = &m->entries[2 * i];
        if (entry[0] == index + 1 || entry[0] == 0) return entry;
    }
}

static uint64_t value_at(const moved *m, uint64_t index)
{
    const uint64_t *entry = find_moved(m, index);
    return entry[0] == 0 ? index : entry[1];
}

// A size for open addressing with `entries` in it.
static size_t table_size(size_t entries)
{
    size_t size = 16;
    while (size / 2 < entries)
        size *= 2;
    return size;
}

// The first `wanted` of a shuffle: a larger sample of the same seed begins with the smaller one.
static hone_status sample_ranked(sampler *s)
{
    hone_assert(hone_space_ranking_is_usable(s->ranking));
    uint64_t configs = s->ranking->low;
    if (s->wanted > configs) s->wanted = (size_t)configs;
    size_t size = table_size(s->wanted);
    moved m = {hone_alloc_array(&s->bound->allocator, size, 2 * sizeof *m.entries), size - 1};
    if (m.entries == NULL) return hone_fail_memory(s->err, where);
    for (; s->count < s->wanted; s->count++) {
        uint64_t here = s->count, there = here + random_below(&s->state, configs - here);
        uint64_t value = value_at(&m, here), rank = value_at(&m, there);
        uint64_t *entry = find_moved(&m, there);
        entry[0] = there + 1;
        entry[1] = value;
        hone_space_ranking_at(s->ranking, s->bound, rank, &s->out[s->count]);
    }
    hone_free(&s->bound->allocator, m.entries);
    return HONE_OK;
}

// Uniform values for one component until its constraints hold. HONE_NOT_FOUND: no tries left.
static hone_status draw_component(sampler *s, hone_space_walk *walk, hone_config *out)
{
    const hone_space *space = s->bound->space;
    for (; s->tries > 0; s->tries--) {
        uint32_t drawn = 0;
        hone_verdict verdict = HONE_ACCEPTED;
        for (size_t i = 0; i < walk->depth && verdict == HONE_ACCEPTED; i++) {
            size_t parameter = walk->order[i];
            uint32_t position = (uint32_t)random_below(&s->state, space->parameters[parameter].count);
            drawn |= 1u << parameter;
            verdict = hone_space_walk_set(walk, parameter, position);
            out->values[parameter] = walk->point.config.values[parameter];
            if (verdict == HONE_FAILED) return hone_space_walk_failure(walk, drawn, s->err);
        }
        if (verdict == HONE_ACCEPTED) return HONE_OK;
    }
    return HONE_NOT_FOUND;
}

static bool has_ranks(const hone_space_diagram *diagram)
{
    return diagram->complete && diagram->low < UINT64_MAX;
}

static void draw_rank(sampler *s, const hone_space_diagram *diagram, hone_config *out)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    hone_space_diagram_at(diagram, random_below(&s->state, diagram->low), positions);
    for (size_t i = 0; i < diagram->depth; i++) {
        size_t parameter = diagram->order[i];
        out->values[parameter] = hone_space_number(&s->bound->space->parameters[parameter], positions[parameter]);
    }
}

static hone_status draw(sampler *s, hone_config *out)
{
    *out = (hone_config){.count = (uint32_t)s->bound->space->parameter_count};
    for (size_t i = 0; i < s->bound->component_count; i++) {
        const hone_space_diagram *diagram = &s->ranking->diagrams[i];
        hone_status status = HONE_OK;
        if (has_ranks(diagram))
            draw_rank(s, diagram, out);
        else
            status = draw_component(s, &s->walks[i], out);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// True when config was not there; the table holds indices of s->out, plus one.
static bool enter(const sampler *s, size_t *table, size_t mask, const hone_config *config)
{
    size_t size = config->count * sizeof *config->values;
    for (size_t i = hone_hash64(config->values, size) & mask;; i = (i + 1) & mask) {
        if (table[i] == 0) {
            table[i] = s->count + 1;
            return true;
        }
        if (memcmp(s->out[table[i] - 1].values, config->values, size) == 0) return false;
    }
}

// Independent draws without those that came before. HONE_NOT_FOUND: no tries left.
static hone_status sample_drawn(sampler *s)
{
    hone_status status = HONE_OK;
    size_t size = table_size(s->wanted);
    size_t *table = hone_alloc_array(&s->bound->allocator, size, sizeof *table);
    if (table == NULL) return hone_fail_memory(s->err, where);
    s->tries = s->wanted < TRIES_AT_MOST / TRIES_A_CONFIG ? s->wanted * (uint64_t)TRIES_A_CONFIG : TRIES_AT_MOST;
    if (s->tries < TRIES_AT_LEAST) s->tries = TRIES_AT_LEAST;
    while (s->count < s->wanted && status == HONE_OK) {
        hone_config *config = &s->out[s->count];
        status = s->tries == 0 ? HONE_NOT_FOUND : draw(s, config);
        if (status == HONE_OK && enter(s, table, size - 1, config))
            s->count++;
        else if (s->tries > 0)
            s->tries--; // a config that is there already, too
    }
    hone_free(&s->bound->allocator, table);
    return status;
}

typedef struct reservoir {
    sampler *sampler;
    hone_config *configs; // as many as are wanted
    uint64_t seen;
} reservoir;

static bool keep(void *ctx, const hone_space_walk *walk)
{
    reservoir *r = ctx;
    uint64_t place = r->seen++;
    if (r->seen > r->sampler->wanted) place = random_below(&r->sampler->state, r->seen);
    if (place < r->sampler->wanted) r->configs[place] = walk->point.config;
    return true;
}

static hone_status nothing_drawn(sampler *s)
{
    return hone_fail(
        s->err, HONE_UNSUPPORTED, where,
        "the space is too large to be enumerated, and of %d random configs none was valid: write constraints that each "
        "read few parameters, or values that fit by themselves",
        TRIES_AT_LEAST);
}

// All of a space that is small enough for it. Of another one what was drawn stays as it is.
static hone_status sample_reservoir(sampler *s)
{
    hone_space_walk walk;
    const hone_allocator *allocator = &s->bound->allocator;
    reservoir r = {s, hone_alloc_array(allocator, s->wanted, sizeof *r.configs), 0};
    if (r.configs == NULL) return hone_fail_memory(s->err, where);
    hone_status status = hone_space_walk_init(&walk, s->bound, &s->bound->plan, HONE_ALL_COMPONENTS, s->err);
    walk.budget = ENUMERATED_MAX;
    if (status == HONE_OK) status = hone_space_walk_run(&walk, keep, &r, s->err);
    if (status == HONE_OK && walk.budget > 0) {
        s->count = r.seen < s->wanted ? (size_t)r.seen : s->wanted;
        memcpy(s->out, r.configs, s->count * sizeof *s->out);
    } else if (status == HONE_OK && s->count == 0) {
        status = nothing_drawn(s);
    }
    hone_space_walk_deinit(&walk);
    hone_free(allocator, r.configs);
    return status;
}

static hone_status sample(sampler *s)
{
    hone_status status = hone_space_ranking_of(s->bound, &s->ranking, s->err);
    if (status != HONE_OK || s->ranking->high == 0) return status;
    if (hone_space_ranking_is_usable(s->ranking)) return sample_ranked(s);
    for (size_t i = 0; i < s->bound->component_count && status == HONE_OK; i++)
        if (!has_ranks(&s->ranking->diagrams[i]))
            status = hone_space_walk_init(&s->walks[i], s->bound, &s->bound->plan, (int)i, s->err);
    if (status == HONE_OK) status = sample_drawn(s);
    return status == HONE_NOT_FOUND ? sample_reservoir(s) : status;
}

hone_status hone_bound_space_sample(
    const hone_bound_space *space,
    uint64_t seed,
    size_t count,
    hone_config *out_configs,
    size_t *out_count,
    hone_error *err)
{
    if (space == NULL || out_count == NULL || (count > 0 && out_configs == NULL))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the space, out_configs or out_count is NULL");
    hone_status status = HONE_OK;
    sampler *s = hone_alloc(&space->allocator, sizeof *s);
    if (s == NULL) return hone_fail_memory(err, where);
    s->bound = space;
    s->state = seed;
    s->out = out_configs;
    s->wanted = count;
    s->err = err;
    if (count > 0) status = sample(s);
    if (status == HONE_OK) *out_count = s->count;
    for (size_t i = 0; i < space->component_count; i++)
        if (s->walks[i].bound != NULL) hone_space_walk_deinit(&s->walks[i]);
    hone_free(&space->allocator, s);
    return status;
}
