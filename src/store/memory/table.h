// Sorted tables of rows, and changes to them that are kept or taken back together.
#ifndef HONE_STORE_MEMORY_TABLE_H
#define HONE_STORE_MEMORY_TABLE_H

#include "store/common/row.h"

// Rows in key order. Finding is a binary search; inserting moves pointers only.
typedef struct hone_table {
    const hone_row_shape *shape;
    hone_row **rows;
    size_t count, capacity;
} hone_table;

// One row that came, went, or took another's place.
typedef struct hone_table_change {
    hone_table *table;
    hone_row *added;    // NULL: the row was removed
    hone_row *replaced; // NULL: there was none
} hone_table_change;

// Changes since the last commit: a failure halfway leaves the tables as they were.
typedef struct hone_table_changes {
    hone_allocator allocator;
    hone_table_change *list;
    size_t count, capacity;
} hone_table_changes;

void hone_table_deinit(const hone_allocator *allocator, hone_table *table);
// The half-open range of rows whose first key_count cells equal the probe's.
void hone_table_range(
    const hone_table *table, const hone_row *probe, size_t key_count, size_t *out_begin, size_t *out_end);
// The row with the probe's whole key; NULL when there is none.
const hone_row *hone_table_find(const hone_table *table, const hone_row *probe);

// Puts a copy of row, in place of the one with its key. False: no memory, nothing changed.
bool hone_table_put(hone_table_changes *changes, hone_table *table, const hone_row *row);
// Removes the row with the probe's key, if there is one. False: no memory, nothing changed.
bool hone_table_remove(hone_table_changes *changes, hone_table *table, const hone_row *probe);
void hone_table_commit(hone_table_changes *changes);
void hone_table_rollback(hone_table_changes *changes);

#endif
