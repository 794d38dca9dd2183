// What is left of a damaged file, put into a sound store.
#ifndef HONE_STORE_SQLITE_HARVEST_H
#define HONE_STORE_SQLITE_HARVEST_H

#include "store/sqlite/connection.h"
#include "store/sqlite/pages.h"

#include "base/buffer.h"

typedef struct hone_harvest {
    hone_arena arena; // texts of the calls
    struct hone_measured_call *calls;
    size_t call_count, call_capacity;
    hone_connection *into; // in a transaction; NULL: records are counted, and put nowhere
    hone_buffer text;
    uint64_t carried, set_aside; // records, the latter to the quarantine
    hone_status status;          // of what a visit did
    hone_error *err;
} hone_harvest;

void hone_harvest_init(hone_harvest *s, const hone_allocator *allocator, hone_connection *into, hone_error *err);
void hone_harvest_deinit(hone_harvest *s);
// Whether a file that SQLite does not open is a damaged store of hone: its header says so, or is damaged itself, or a
// record of hone's stands sound on its pages. Only such a file may be moved, since a URL may name the file of another
// program. Writes nothing.
// Returns: HONE_OK; HONE_IO; HONE_OUT_OF_MEMORY.
hone_status hone_harvest_look(const hone_allocator *allocator, const char *path, bool *out_is_store, hone_error *err);
// From the pages of a file without a WAL (pages.h). HONE_CORRUPT: nothing was taken, since what was deleted cannot be
// told.
hone_status hone_harvest_pages(hone_harvest *s, const char *path, hone_pages which);
// What SQLite finds, from both ends of each table: what was deleted is not among it.
hone_status hone_harvest_tables(hone_harvest *s, const char *path);

#endif
