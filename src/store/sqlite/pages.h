// The records on the pages of an SQLite file, read past SQLite: what is left of a file whose structure is damaged.
//
// Each page is looked at by itself, so that one that is damaged takes no other with it. Whether a record is what was
// written is for its checksum to say.
// The format: https://www.sqlite.org/fileformat2.html
#ifndef HONE_STORE_SQLITE_PAGES_H
#define HONE_STORE_SQLITE_PAGES_H

#include "base/memory.h"
#include "store/common/row.h"

enum { HONE_PAGE_CELLS = HONE_ROW_CELLS + 2 };

typedef struct hone_page_record {
    bool is_of_table; // it has a number; else it stands in an index, as the rows of tables without numbers do
    int64_t number;
    size_t count;
    hone_cell cells[HONE_PAGE_CELLS]; // texts are borrowed
} hone_page_record;

typedef enum hone_pages {
    HONE_PAGES_IN_USE, // what stands on a page of the list of free pages was deleted, and is passed over
    HONE_PAGES_ALL     // also where the file's header or that list is damaged. What hone deletes is wiped (open.c)
} hone_pages;

// Visits each record until visit returns false.
//   path  a file that nobody writes, without a WAL
// Returns: HONE_OK; HONE_CORRUPT (IN_USE: no SQLite file, or its list of free pages is damaged, so that nobody can say
// what was deleted); HONE_IO; HONE_OUT_OF_MEMORY.
hone_status hone_pages_read(
    const char *path,
    hone_pages which,
    const hone_allocator *allocator,
    bool (*visit)(void *ctx, const hone_page_record *record),
    void *ctx,
    hone_error *err);

#endif
