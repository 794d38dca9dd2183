// Records as rows of cells: the one place that knows which field of which record stands in which column.
// Every kind of store keeps these rows; the key's cells come first, in the order of the scans.
#ifndef HONE_STORE_COMMON_ROW_H
#define HONE_STORE_COMMON_ROW_H

#include "base/memory.h"
#include "hone/store.h"

typedef enum hone_cell_kind { HONE_CELL_NULL, HONE_CELL_TEXT, HONE_CELL_INTEGER, HONE_CELL_REAL } hone_cell_kind;

typedef struct hone_cell {
    hone_cell_kind kind;
    size_t size; // TEXT: bytes without the NUL
    union {
        const char *text; // NUL-terminated, borrowed
        int64_t integer;
        double real;
    } as;
} hone_cell;

enum { HONE_ROW_CELLS = 17 };

typedef struct hone_row {
    size_t count;
    size_t first_count; // of its shape; 0: all
    hone_cell cells[HONE_ROW_CELLS];
} hone_row;

// A measurement or failure with the key that it stands under.
typedef struct hone_store_measured {
    hone_store_key key;
    hone_store_measurement measurement;
} hone_store_measured;

// The shape of one kind of record. Opaque but for its sizes.
typedef struct hone_row_shape {
    const char *name; // "decision": also the table's name
    const struct hone_row_column *columns;
    size_t count;
    size_t key_count;   // leading columns that tell two records apart
    size_t first_count; // columns of the first schema; 0: all. A later one that is NULL is left out of the checksum
} hone_row_shape;

extern const hone_row_shape hone_row_decision;    // hone_store_decision
extern const hone_row_shape hone_row_measurement; // hone_store_measured that did not fail
extern const hone_row_shape hone_row_failure;     // hone_store_measured that failed
extern const hone_row_shape hone_row_invocation;  // hone_store_invocation
extern const hone_row_shape hone_row_alias;       // hone_store_alias
extern const hone_row_shape hone_row_foreign;     // hone_store_foreign
extern const hone_row_shape hone_row_job;         // hone_job (store/common/job.h)
extern const hone_row_shape hone_row_quarantine;  // hone_store_quarantined

// The name of a column, by which records stand in tables and documents, and what its cells hold where they are not
// NULL. index < shape->count.
const char *hone_row_column_name(const hone_row_shape *shape, size_t index);
hone_cell_kind hone_row_column_kind(const hone_row_shape *shape, size_t index);

// Cells of a record, borrowing its texts. Negative zeros become zeros, since not every store keeps their sign.
void hone_row_of(const hone_row_shape *shape, const void *record, hone_row *out);
// The record of a row of that shape, borrowing its texts; fields without a column are zero. False when a cell
// has the wrong kind or is out of its field's range: the row was not written by hone.
bool hone_row_read(const hone_row_shape *shape, const hone_row *row, void *record, size_t record_size);
// XXH3 over kind, size and bytes of every cell, but for the last ones that are NULL and came with a later schema: so a
// record keeps its checksum when its table gets more columns.
uint64_t hone_row_checksum(const hone_row *row);
// Order of the first count cells: NULL < numbers < texts (by bytes).
int hone_row_compare(const hone_row *a, const hone_row *b, size_t count);

// Whether two canonical texts may belong to one call: where one of them is missing, nobody can say otherwise.
bool hone_spec_agrees(const char *a, const char *b);
// Whether a filter names one call: all but the canonical text is there.
bool hone_key_is_whole(const hone_store_key *filter);
// Whether a record's key passes a filter, whose NULL fields match all.
bool hone_key_matches(const hone_store_key *filter, const hone_store_key *key);

#endif
