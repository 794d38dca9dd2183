// Any bytes as an SQLite file whose pages are read past SQLite: each record that is visited can be read to its end.
#include "store/sqlite/pages.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_record(void *ctx, const hone_page_record *record)
{
    (void)ctx;
    if (record->count > HONE_PAGE_CELLS) abort();
    for (size_t i = 0; i < record->count; i++) {
        const hone_cell *cell = &record->cells[i];
        if (cell->kind == HONE_CELL_TEXT && cell->as.text[cell->size] != '\0') abort();
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    hone_allocator allocator = hone_allocator_system();
    hone_error err;
    if (path[0] == '\0') snprintf(path, sizeof path, "/tmp/hone-fuzz-pages-%d", (int)getpid());
    FILE *stream = fopen(path, "wb");
    if (stream == NULL) return 0;
    fwrite(data, 1, size, stream);
    fclose(stream);
    hone_status status = hone_pages_read(path, HONE_PAGES_IN_USE, &allocator, read_record, NULL, &err);
    if (status != HONE_OK && status != HONE_CORRUPT) abort();
    if (hone_pages_read(path, HONE_PAGES_ALL, &allocator, read_record, NULL, &err) != HONE_OK) abort();
    unlink(path);
    return 0;
}
