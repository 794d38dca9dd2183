// A row is a config as positions of its values, without parameters of one value; it is found by a hash of the positions
// (open addressing, at most half full, a power of two of slots). A table holds a space whole as long as that is cheap;
// of a larger one it holds a sample, which a new best extends by its neighbours (hone_search_extend): so that the
// models' cost a step is bounded whatever the space is. Sizes were chosen by hand. Rows are never removed, so a row's
// number stays.
#include "search/config_table.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "space/bound.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "search.config_table";

static const hone_space *space_of(const hone_config_table *table)
{
    return table->bound->space;
}

static void find_columns(hone_config_table *table)
{
    const hone_space *space = space_of(table);
    table->fixed.count = (uint32_t)space->parameter_count;
    for (size_t i = 0; i < space->parameter_count; i++) {
        const hone_space_parameter *parameter = &space->parameters[i];
        table->fixed.values[i] = hone_space_number(parameter, 0);
        if (parameter->count < 2) continue;
        bool ascending = parameter->integers;
        for (size_t j = 1; j < parameter->count && ascending; j++)
            ascending = hone_space_number(parameter, j - 1) < hone_space_number(parameter, j);
        table->ascending[table->columns] = ascending;
        table->parameters[table->columns++] = (uint8_t)i;
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

// False: config is not one of the space's.
static bool find_positions(const hone_config_table *table, const hone_config *config, uint16_t *out)
{
    const hone_space *space = space_of(table);
    if (config->count != space->parameter_count) return false;
    for (size_t i = 0, column = 0; i < space->parameter_count; i++) {
        const hone_space_parameter *parameter = &space->parameters[i];
        if (column == table->columns || table->parameters[column] != i) {
            if (hone_space_find_number(parameter, config->values[i]) < 0) return false;
            continue;
        }
        int64_t position = table->ascending[column] ? search_number(parameter, config->values[i])
                                                    : hone_space_find_number(parameter, config->values[i]);
        if (position < 0) return false;
        out[column++] = (uint16_t)position;
    }
    return true;
}

// The slot of these positions: empty when they have no row.
static uint32_t *find_slot(const hone_config_table *table, const uint16_t *positions)
{
    size_t size = table->columns * sizeof *positions;
    hone_assert(table->slot_count > table->count && (table->slot_count & (table->slot_count - 1)) == 0);
    for (size_t i = hone_hash64(positions, size) & (table->slot_count - 1);; i = (i + 1) & (table->slot_count - 1)) {
        uint32_t *slot = &table->slots[i];
        if (*slot == 0 || memcmp(hone_config_table_row(table, *slot - 1), positions, size) == 0) return slot;
    }
}

static bool make_slots(hone_config_table *table, size_t rows)
{
    size_t size = table->slot_count > 0 ? table->slot_count : 16;
    while (size / 2 <= rows)
        size *= 2;
    if (size == table->slot_count) return true;
    uint32_t *slots = hone_alloc_array(&table->allocator, size, sizeof *slots);
    if (slots == NULL) return false;
    hone_free(&table->allocator, table->slots);
    table->slots = slots;
    table->slot_count = size;
    for (uint32_t i = 0; i < table->count; i++)
        *find_slot(table, hone_config_table_row(table, i)) = i + 1;
    return true;
}

// Room for one more row, in all arrays.
static bool grow(hone_config_table *table)
{
    size_t width = table->columns > 0 ? table->columns : 1, capacity = table->capacity > 0 ? table->capacity * 2 : 64;
    if (!make_slots(table, table->count + 1)) return false;
    if (table->count < table->capacity) return true;
    uint16_t *positions = hone_resize(&table->allocator, table->positions, capacity * width * sizeof *positions);
    if (positions == NULL) return false;
    table->positions = positions;
    bool *taken = hone_resize(&table->allocator, table->taken, capacity * sizeof *taken);
    if (taken == NULL) return false;
    table->taken = taken;
    table->capacity = capacity;
    return true;
}

// Positions that are a valid config's, with or without a row.
static hone_status enter_positions(
    hone_config_table *table, const uint16_t *positions, uint32_t *out_row, hone_error *err)
{
    if (!grow(table)) return hone_fail_memory(err, where);
    uint32_t *slot = find_slot(table, positions);
    if (*slot == 0) {
        memcpy(&table->positions[table->count * table->columns], positions, table->columns * sizeof *positions);
        table->taken[table->count] = false;
        *slot = (uint32_t)++table->count;
        table->left++;
    }
    *out_row = *slot - 1;
    return HONE_OK;
}

static hone_status wrong_config(const hone_config_table *table, const hone_config *config, hone_error *err)
{
    char text[160];
    hone_config_text(space_of(table), config, text, sizeof text);
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "'%s' is not a config of this space", text);
}

static hone_status enter_list(hone_config_table *table, const hone_config *configs, size_t count, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        uint32_t row;
        status = hone_config_table_enter_valid(table, &configs[i], &row, err);
    }
    return status;
}

typedef struct visitor {
    hone_config_table *table;
    hone_status status;
    hone_error *err;
} visitor;

static bool enter_visited(void *ctx, const hone_config *config)
{
    visitor *v = ctx;
    v->status = enter_list(v->table, config, 1, v->err);
    return v->status == HONE_OK;
}

static hone_status enter_all(hone_config_table *table, hone_error *err)
{
    visitor v = {table, HONE_OK, err};
    hone_status status = hone_bound_space_enumerate(table->bound, enter_visited, &v, err);
    return status == HONE_OK ? v.status : status;
}

static hone_status enter_sample(hone_config_table *table, size_t wanted, size_t *out_found, hone_error *err)
{
    size_t count = 0;
    hone_config *configs = hone_alloc_array(&table->allocator, wanted, sizeof *configs);
    if (configs == NULL) return hone_fail_memory(err, where);
    hone_status status =
        hone_bound_space_sample(table->bound, hone_random_next(&table->random), wanted, configs, &count, err);
    if (status == HONE_OK) status = enter_list(table, configs, count, err);
    if (status == HONE_UNSUPPORTED) status = HONE_OK; // none is met by chance: neighbours of the default are left
    hone_free(&table->allocator, configs);
    *out_found = count;
    return status;
}

hone_status hone_config_table_refill(hone_config_table *table, hone_error *err)
{
    size_t found;
    for (size_t wanted = HONE_TABLE_SAMPLE; !table->complete && table->left == 0; wanted *= 2) {
        hone_status status = enter_sample(table, wanted, &found, err);
        if (status != HONE_OK) return status;
        table->complete = table->left == 0 && (found < wanted || wanted > HONE_TABLE_LARGEST + table->count);
    }
    return HONE_OK;
}

hone_status hone_config_table_init(
    hone_config_table *table,
    const hone_allocator *allocator,
    const hone_bound_space *bound,
    const hone_config *configs,
    size_t count,
    uint64_t seed,
    hone_error *err)
{
    uint64_t low, high; // of the number of configs; a space that cannot be counted is a large one
    *table = (hone_config_table){.allocator = *allocator, .bound = bound, .random = seed};
    find_columns(table);
    table->complete = true;
    if (!grow(table)) return hone_fail_memory(err, where);
    if (configs != NULL) return enter_list(table, configs, count, err);
    hone_status status = hone_bound_space_bounds(bound, &low, &high, err);
    if (status != HONE_OK) return status;
    if (high <= HONE_TABLE_LISTED) return enter_all(table, err);
    table->complete = false;
    size_t found;
    return enter_sample(table, HONE_TABLE_SAMPLE, &found, err);
}

void hone_config_table_deinit(hone_config_table *table)
{
    if (table->allocator.reallocate == NULL) return;
    hone_free(&table->allocator, table->positions);
    hone_free(&table->allocator, table->taken);
    hone_free(&table->allocator, table->slots);
    *table = (hone_config_table){0};
}

hone_status hone_config_table_enter_valid(
    hone_config_table *table, const hone_config *config, uint32_t *out_row, hone_error *err)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    if (!find_positions(table, config, positions)) return wrong_config(table, config, err);
    return enter_positions(table, positions, out_row, err);
}

hone_status hone_config_table_enter(
    hone_config_table *table, const hone_config *config, uint32_t *out_row, hone_error *err)
{
    uint32_t row = hone_config_table_find(table, config);
    if (row != HONE_TABLE_NONE) {
        *out_row = row;
        return HONE_OK;
    }
    hone_status status = hone_bound_space_check(table->bound, config, err);
    return status == HONE_OK ? hone_config_table_enter_valid(table, config, out_row, err) : status;
}

uint32_t hone_config_table_find_positions(const hone_config_table *table, const uint16_t *positions)
{
    uint32_t slot = *find_slot(table, positions);
    return slot == 0 ? HONE_TABLE_NONE : slot - 1;
}

uint32_t hone_config_table_find(const hone_config_table *table, const hone_config *config)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    return find_positions(table, config, positions) ? hone_config_table_find_positions(table, positions)
                                                    : HONE_TABLE_NONE;
}

void hone_config_table_get(const hone_config_table *table, uint32_t row, hone_config *out_config)
{
    const hone_space *space = space_of(table);
    const uint16_t *positions = hone_config_table_row(table, row);
    hone_assert(row < table->count);
    *out_config = table->fixed;
    for (size_t i = 0; i < table->columns; i++)
        out_config->values[table->parameters[i]] =
            hone_space_number(&space->parameters[table->parameters[i]], positions[i]);
}

void hone_config_table_take(hone_config_table *table, uint32_t row)
{
    hone_assert(row < table->count);
    if (table->taken[row]) return;
    table->taken[row] = true;
    table->left--;
}

size_t hone_config_table_values(const hone_config_table *table, size_t column)
{
    return space_of(table)->parameters[table->parameters[column]].count;
}

const uint16_t *hone_config_table_row(const hone_config_table *table, uint32_t row)
{
    return &table->positions[row * table->columns];
}

uint32_t hone_config_table_draw(const hone_config_table *table, uint64_t *random)
{
    if (table->left == 0) return HONE_TABLE_NONE;
    uint32_t wanted = hone_random_below(random, (uint32_t)table->left);
    for (uint32_t row = 0;; row++)
        if (!table->taken[row] && wanted-- == 0) return row;
}
