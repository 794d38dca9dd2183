// A document of any bytes into a store, out of it, and into another: what was taken once must be taken again, the same.
#ifndef HONE_FUZZ_EXCHANGE_H
#define HONE_FUZZ_EXCHANGE_H

#include "hone/hone.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// False: it is no document of that format. Whatever is one must be stored.
static inline bool exchange_import(
    hone_store *store, hone_exchange format, const char *text, size_t size, hone_import_report *out)
{
    hone_importer *importer = NULL;
    hone_error err;
    if (hone_importer_create(NULL, NULL, &importer, &err) != HONE_OK) abort();
    hone_status status = hone_importer_add(importer, "device/operation.json", format, text, size, &err);
    if (status != HONE_OK && err.message[0] == '\0') abort();
    if (status == HONE_OK && hone_importer_commit(importer, store, out, &err) != HONE_OK) abort();
    hone_importer_release(&importer);
    return status == HONE_OK;
}

static inline char *exchange_export(hone_store *store, hone_exchange format, size_t *out_size)
{
    const hone_export_options options = {.struct_size = sizeof options, .format = format, .measurements = true};
    char *text = NULL;
    hone_error err;
    if (hone_export(store, &options, &text, out_size, &err) != HONE_OK) abort();
    return text;
}

static inline int exchange_fuzz(hone_exchange format, const uint8_t *data, size_t size)
{
    hone_store *store = NULL, *other = NULL;
    hone_import_report report;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), "memory:", &store, &err) != HONE_OK ||
        hone_store_open(hone_allocator_system(), "memory:", &other, &err) != HONE_OK)
        abort();
    if (exchange_import(store, format, (const char *)data, size, &report)) {
        size_t first_size = 0, second_size = 0;
        char *first = exchange_export(store, format, &first_size);
        if (!exchange_import(other, format, first, first_size, &report)) abort();
        if (report.outcomes[HONE_IMPORT_REFUSED] != 0) abort();
        char *second = exchange_export(other, format, &second_size);
        if (first_size != second_size || memcmp(first, second, first_size) != 0) abort();
        hone_text_release(&first);
        hone_text_release(&second);
    }
    hone_store_close(&store);
    hone_store_close(&other);
    return 0;
}

#endif
