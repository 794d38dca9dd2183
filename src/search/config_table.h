// The configs that a search chooses from, as rows of positions. Complete for an explicit list and for spaces of up to
// HONE_TABLE_LISTED configs; of larger ones a sample that grows with neighbours of what is good.
#ifndef HONE_SEARCH_CONFIG_TABLE_H
#define HONE_SEARCH_CONFIG_TABLE_H

#include "base/memory.h"
#include "hone/space.h"

enum {
    HONE_TABLE_LISTED = 50000, // spaces up to this size are listed whole
    HONE_TABLE_SAMPLE = 4000,  // first rows of a larger one
    HONE_TABLE_LARGEST = 24000 // rows of a larger one
};
#define HONE_TABLE_NONE UINT32_MAX // no row

typedef struct hone_config_table {
    hone_allocator allocator;
    const hone_bound_space *bound;
    size_t columns; // parameters with more than one value
    uint8_t parameters[HONE_MAX_PARAMETERS];
    bool ascending[HONE_MAX_PARAMETERS]; // of each column: its integer values ascend
    hone_config fixed;                   // the values of the others
    size_t count, capacity;
    uint16_t *positions; // count * columns
    bool *taken;         // proposed or told
    size_t left;         // rows that are not taken
    uint32_t *slots;     // row + 1, by the hash of its positions
    size_t slot_count;
    bool complete; // every config that may be proposed has a row
    uint64_t random;
} hone_config_table;

// deinit also after a failure.
hone_status hone_config_table_init(
    hone_config_table *table,
    const hone_allocator *allocator,
    const hone_bound_space *bound,
    const hone_config *configs,
    size_t count,
    uint64_t seed,
    hone_error *err);
void hone_config_table_deinit(hone_config_table *table);

// More rows, when all are taken and the table is not complete.
hone_status hone_config_table_refill(hone_config_table *table, hone_error *err);
// The row of a config, added when it is a valid one that has none yet. HONE_INVALID_ARGUMENT says why not.
hone_status hone_config_table_enter(
    hone_config_table *table, const hone_config *config, uint32_t *out_row, hone_error *err);
// The same for one that is known to be valid.
hone_status hone_config_table_enter_valid(
    hone_config_table *table, const hone_config *config, uint32_t *out_row, hone_error *err);
// HONE_TABLE_NONE: it has none.
uint32_t hone_config_table_find_positions(const hone_config_table *table, const uint16_t *positions);
uint32_t hone_config_table_find(const hone_config_table *table, const hone_config *config);
void hone_config_table_get(const hone_config_table *table, uint32_t row, hone_config *out_config);
// Marks a row; marking it again does nothing.
void hone_config_table_take(hone_config_table *table, uint32_t row);
// The number of values of a column.
size_t hone_config_table_values(const hone_config_table *table, size_t column);
const uint16_t *hone_config_table_row(const hone_config_table *table, uint32_t row);
// One of the rows that are not taken, uniformly; HONE_TABLE_NONE when there is none.
uint32_t hone_config_table_draw(const hone_config_table *table, uint64_t *random);

#endif
