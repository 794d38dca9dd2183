#include "search/pool.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "space/bound.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "search.pool";

static const hone_space *space_of(const hone_pool *pool)
{
    return pool->bound->space;
}

static void find_columns(hone_pool *pool)
{
    const hone_space *space = space_of(pool);
    pool->fixed.count = (uint32_t)space->parameter_count;
    for (size_t i = 0; i < space->parameter_count; i++) {
        const hone_space_parameter *parameter = &space->parameters[i];
        pool->fixed.values[i] = hone_space_number(parameter, 0);
        if (parameter->count < 2) continue;
        bool ascending = parameter->integers;
        for (size_t j = 1; j < parameter->count && ascending; j++)
            ascending = hone_space_number(parameter, j - 1) < hone_space_number(parameter, j);
        pool->ascending[pool->columns] = ascending;
        pool->parameters[pool->columns++] = (uint8_t)i;
    }
}

static int64_t search_number(const hone_space_parameter *parameter, int64_t number)
{
    size_t low = 0, high = parameter->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int64_t found = hone_space_number(parameter, middle);
        if (found == number) return (int64_t)middle;
        if (found < number)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

// False: config is none of the space's.
static bool find_positions(const hone_pool *pool, const hone_config *config, uint16_t *out)
{
    const hone_space *space = space_of(pool);
    if (config->count != space->parameter_count) return false;
    for (size_t i = 0, column = 0; i < space->parameter_count; i++) {
        const hone_space_parameter *parameter = &space->parameters[i];
        if (column == pool->columns || pool->parameters[column] != i) {
            if (hone_space_find_number(parameter, config->values[i]) < 0) return false;
            continue;
        }
        int64_t position = pool->ascending[column] ? search_number(parameter, config->values[i])
                                                   : hone_space_find_number(parameter, config->values[i]);
        if (position < 0) return false;
        out[column++] = (uint16_t)position;
    }
    return true;
}

// The slot of these positions: empty when they have no row.
static uint32_t *find_slot(const hone_pool *pool, const uint16_t *positions)
{
    size_t size = pool->columns * sizeof *positions;
    for (size_t i = hone_hash64(positions, size) & (pool->slot_count - 1);; i = (i + 1) & (pool->slot_count - 1)) {
        uint32_t *slot = &pool->slots[i];
        if (*slot == 0 || memcmp(hone_pool_row(pool, *slot - 1), positions, size) == 0) return slot;
    }
}

static bool make_slots(hone_pool *pool, size_t rows)
{
    size_t size = pool->slot_count > 0 ? pool->slot_count : 16;
    while (size / 2 <= rows)
        size *= 2;
    if (size == pool->slot_count) return true;
    uint32_t *slots = hone_alloc_array(&pool->allocator, size, sizeof *slots);
    if (slots == NULL) return false;
    hone_free(&pool->allocator, pool->slots);
    pool->slots = slots;
    pool->slot_count = size;
    for (uint32_t i = 0; i < pool->count; i++)
        *find_slot(pool, hone_pool_row(pool, i)) = i + 1;
    return true;
}

// Room for one more row, in all arrays.
static bool grow(hone_pool *pool)
{
    size_t width = pool->columns > 0 ? pool->columns : 1, capacity = pool->capacity > 0 ? pool->capacity * 2 : 64;
    if (!make_slots(pool, pool->count + 1)) return false;
    if (pool->count < pool->capacity) return true;
    uint16_t *positions = hone_resize(&pool->allocator, pool->positions, capacity * width * sizeof *positions);
    if (positions == NULL) return false;
    pool->positions = positions;
    bool *taken = hone_resize(&pool->allocator, pool->taken, capacity * sizeof *taken);
    if (taken == NULL) return false;
    pool->taken = taken;
    pool->capacity = capacity;
    return true;
}

// Positions that are a valid config's, with or without a row.
static hone_status enter_positions(hone_pool *pool, const uint16_t *positions, uint32_t *out_row, hone_error *err)
{
    if (!grow(pool)) return hone_fail_memory(err, where);
    uint32_t *slot = find_slot(pool, positions);
    if (*slot == 0) {
        memcpy(&pool->positions[pool->count * pool->columns], positions, pool->columns * sizeof *positions);
        pool->taken[pool->count] = false;
        *slot = (uint32_t)++pool->count;
        pool->left++;
    }
    *out_row = *slot - 1;
    return HONE_OK;
}

static hone_status wrong_config(const hone_pool *pool, const hone_config *config, hone_error *err)
{
    char text[160];
    hone_config_text(space_of(pool), config, text, sizeof text);
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "'%s' is no config of this space", text);
}

static hone_status enter_list(hone_pool *pool, const hone_config *configs, size_t count, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        uint32_t row;
        status = hone_pool_enter_valid(pool, &configs[i], &row, err);
    }
    return status;
}

typedef struct visitor {
    hone_pool *pool;
    hone_status status;
    hone_error *err;
} visitor;

static bool enter_visited(void *ctx, const hone_config *config)
{
    visitor *v = ctx;
    v->status = enter_list(v->pool, config, 1, v->err);
    return v->status == HONE_OK;
}

static hone_status enter_all(hone_pool *pool, hone_error *err)
{
    visitor v = {pool, HONE_OK, err};
    hone_status status = hone_bound_space_enumerate(pool->bound, enter_visited, &v, err);
    return status == HONE_OK ? v.status : status;
}

static hone_status enter_sample(hone_pool *pool, size_t wanted, size_t *out_found, hone_error *err)
{
    size_t count = 0;
    hone_config *configs = hone_alloc_array(&pool->allocator, wanted, sizeof *configs);
    if (configs == NULL) return hone_fail_memory(err, where);
    hone_status status =
        hone_bound_space_sample(pool->bound, hone_random_next(&pool->random), wanted, configs, &count, err);
    if (status == HONE_OK) status = enter_list(pool, configs, count, err);
    if (status == HONE_UNSUPPORTED) status = HONE_OK; // none is met by chance: neighbours of the default are left
    hone_free(&pool->allocator, configs);
    *out_found = count;
    return status;
}

hone_status hone_pool_refill(hone_pool *pool, hone_error *err)
{
    size_t found;
    for (size_t wanted = HONE_POOL_SAMPLE; !pool->complete && pool->left == 0; wanted *= 2) {
        hone_status status = enter_sample(pool, wanted, &found, err);
        if (status != HONE_OK) return status;
        pool->complete = pool->left == 0 && (found < wanted || wanted > HONE_POOL_LARGEST + pool->count);
    }
    return HONE_OK;
}

hone_status hone_pool_init(
    hone_pool *pool,
    const hone_allocator *allocator,
    const hone_bound_space *bound,
    const hone_config *configs,
    size_t count,
    uint64_t seed,
    hone_error *err)
{
    uint64_t low, high; // of the number of configs; a space that cannot be counted is a large one
    *pool = (hone_pool){.allocator = *allocator, .bound = bound, .random = seed};
    find_columns(pool);
    pool->complete = true;
    if (!grow(pool)) return hone_fail_memory(err, where);
    if (configs != NULL) return enter_list(pool, configs, count, err);
    hone_status status = hone_bound_space_bounds(bound, &low, &high, err);
    if (status != HONE_OK) return status;
    if (high <= HONE_POOL_LISTED) return enter_all(pool, err);
    pool->complete = false;
    size_t found;
    return enter_sample(pool, HONE_POOL_SAMPLE, &found, err);
}

void hone_pool_deinit(hone_pool *pool)
{
    if (pool->allocator.reallocate == NULL) return;
    hone_free(&pool->allocator, pool->positions);
    hone_free(&pool->allocator, pool->taken);
    hone_free(&pool->allocator, pool->slots);
    *pool = (hone_pool){0};
}

hone_status hone_pool_enter_valid(hone_pool *pool, const hone_config *config, uint32_t *out_row, hone_error *err)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    if (!find_positions(pool, config, positions)) return wrong_config(pool, config, err);
    return enter_positions(pool, positions, out_row, err);
}

hone_status hone_pool_enter(hone_pool *pool, const hone_config *config, uint32_t *out_row, hone_error *err)
{
    uint32_t row = hone_pool_find(pool, config);
    if (row != HONE_POOL_NONE) {
        *out_row = row;
        return HONE_OK;
    }
    hone_status status = hone_bound_space_check(pool->bound, config, err);
    return status == HONE_OK ? hone_pool_enter_valid(pool, config, out_row, err) : status;
}

uint32_t hone_pool_find_positions(const hone_pool *pool, const uint16_t *positions)
{
    uint32_t slot = *find_slot(pool, positions);
    return slot == 0 ? HONE_POOL_NONE : slot - 1;
}

uint32_t hone_pool_find(const hone_pool *pool, const hone_config *config)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    return find_positions(pool, config, positions) ? hone_pool_find_positions(pool, positions) : HONE_POOL_NONE;
}

void hone_pool_get(const hone_pool *pool, uint32_t row, hone_config *out_config)
{
    const hone_space *space = space_of(pool);
    const uint16_t *positions = hone_pool_row(pool, row);
    *out_config = pool->fixed;
    for (size_t i = 0; i < pool->columns; i++)
        out_config->values[pool->parameters[i]] =
            hone_space_number(&space->parameters[pool->parameters[i]], positions[i]);
}

void hone_pool_take(hone_pool *pool, uint32_t row)
{
    if (pool->taken[row]) return;
    pool->taken[row] = true;
    pool->left--;
}

size_t hone_pool_values(const hone_pool *pool, size_t column)
{
    return space_of(pool)->parameters[pool->parameters[column]].count;
}

const uint16_t *hone_pool_row(const hone_pool *pool, uint32_t row)
{
    return &pool->positions[row * pool->columns];
}

uint32_t hone_pool_draw(const hone_pool *pool, uint64_t *random)
{
    if (pool->left == 0) return HONE_POOL_NONE;
    uint32_t wanted = hone_random_below(random, (uint32_t)pool->left);
    for (uint32_t row = 0;; row++)
        if (!pool->taken[row] && wanted-- == 0) return row;
}
