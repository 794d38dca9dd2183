// Sorted tables of rows with changes that can be taken back.
#include "store/memory/table.h"

#include "base/assert.h"

#include <string.h>

void hone_table_deinit(const hone_allocator *allocator, hone_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        hone_free(allocator, table->rows[i]);
    hone_free(allocator, table->rows);
    table->rows = NULL;
    table->count = table->capacity = 0;
}

// The first row that is not before the probe, or with `after` the first that is behind it.
static size_t bound(const hone_table *table, const hone_row *probe, size_t key_count, bool after)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = hone_row_compare(table->rows[middle], probe, key_count);
        if (order < 0 || (after && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void hone_table_range(
    const hone_table *table, const hone_row *probe, size_t key_count, size_t *out_begin, size_t *out_end)
{
    hone_assert(key_count <= table->shape->count);
    *out_begin = bound(table, probe, key_count, false);
    *out_end = bound(table, probe, key_count, true);
}

// Where the probe's key stands or would stand; true when it is there.
static bool locate(const hone_table *table, const hone_row *probe, size_t *out_index)
{
    *out_index = bound(table, probe, table->shape->key_count, false);
    return *out_index < table->count && hone_row_compare(table->rows[*out_index], probe, table->shape->key_count) == 0;
}

const hone_row *hone_table_find(const hone_table *table, const hone_row *probe)
{
    size_t index;
    return locate(table, probe, &index) ? table->rows[index] : NULL;
}

// A row and its texts in one block.
static hone_row *copy_row(const hone_allocator *allocator, const hone_row *row)
{
    size_t size = sizeof *row;
    for (size_t i = 0; i < row->count; i++)
        if (row->cells[i].kind == HONE_CELL_TEXT) size += row->cells[i].size + 1;
    hone_row *copy = hone_alloc(allocator, size);
    if (copy == NULL) return NULL;
    *copy = *row;
    char *texts = (char *)(copy + 1);
    for (size_t i = 0; i < row->count; i++) {
        if (row->cells[i].kind != HONE_CELL_TEXT) continue;
        memcpy(texts, row->cells[i].as.text, row->cells[i].size + 1);
        copy->cells[i].as.text = texts;
        texts += row->cells[i].size + 1;
    }
    return copy;
}

// Whether the row at an index stands between its neighbours. A whole walk would cost what the halving saves.
static bool is_in_order(const hone_table *table, size_t index)
{
    hone_row *const *rows = table->rows;
    const size_t count = table->shape->key_count;
    return (index == 0 || hone_row_compare(rows[index - 1], rows[index], count) < 0) &&
           (index + 1 == table->count || hone_row_compare(rows[index], rows[index + 1], count) < 0);
}

static void insert_at(hone_table *table, size_t index, hone_row *row)
{
    hone_assert(index <= table->count && table->count < table->capacity);
    memmove(&table->rows[index + 1], &table->rows[index], (table->count - index) * sizeof *table->rows);
    table->rows[index] = row;
    table->count++;
    hone_assert(is_in_order(table, index));
}

static void remove_at(hone_table *table, size_t index)
{
    hone_assert(index < table->count);
    table->count--;
    memmove(&table->rows[index], &table->rows[index + 1], (table->count - index) * sizeof *table->rows);
}

static bool reserve_change(hone_table_changes *changes)
{
    return hone_grow(
        &changes->allocator, &changes->list, &changes->capacity, changes->count + 1, sizeof *changes->list);
}

bool hone_table_put(hone_table_changes *changes, hone_table *table, const hone_row *row)
{
    if (!reserve_change(changes)) return false;
    if (!hone_grow(&changes->allocator, &table->rows, &table->capacity, table->count + 1, sizeof *table->rows))
        return false;
    hone_row *copy = copy_row(&changes->allocator, row);
    if (copy == NULL) return false;
    size_t index;
    hone_row *replaced = NULL;
    if (locate(table, row, &index)) {
        replaced = table->rows[index];
        table->rows[index] = copy;
    } else {
        insert_at(table, index, copy);
    }
    changes->list[changes->count++] = (hone_table_change){table, copy, replaced};
    return true;
}

bool hone_table_remove(hone_table_changes *changes, hone_table *table, const hone_row *probe)
{
    size_t index;
    if (!locate(table, probe, &index)) return true;
    if (!reserve_change(changes)) return false;
    changes->list[changes->count++] = (hone_table_change){table, NULL, table->rows[index]};
    remove_at(table, index);
    return true;
}

void hone_table_commit(hone_table_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        hone_free(&changes->allocator, changes->list[i].replaced);
    changes->count = 0;
}

// The inverse of one change, applied from the last change to the first: each then finds the table as it left it. Needs
// no memory: a row that comes back finds the room that it left.
static void take_back(const hone_allocator *allocator, const hone_table_change *change)
{
    size_t index;
    bool there = locate(change->table, change->added != NULL ? change->added : change->replaced, &index);
    if (there && change->replaced != NULL)
        change->table->rows[index] = change->replaced;
    else if (there)
        remove_at(change->table, index);
    else {
        hone_assert(change->added == NULL); // what was added is there
        insert_at(change->table, index, change->replaced);
    }
    hone_free(allocator, change->added);
}

void hone_table_rollback(hone_table_changes *changes)
{
    while (changes->count > 0)
        take_back(&changes->allocator, &changes->list[--changes->count]);
}
