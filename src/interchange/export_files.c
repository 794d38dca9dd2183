// The files that an export of a format has.
#include "interchange/mapping.h"

#include "base/error.h"
#include "base/memory.h"
#include "store/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "interchange.export";

// Names ---------------------------------------------------------------------------------------------------------------

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

// A text as the name of a file: what could lead elsewhere is '_'.
static size_t put_name(char *out, size_t size, const char *text, size_t length)
{
    size_t used = 0;
    for (; used < length && used + 1 < size; used++)
        out[used] = is_plain(text[used]) && !(used == 0 && text[used] == '.') ? text[used] : '_';
    if (used == 0 && size > 1) out[used++] = '_';
    out[used] = '\0';
    return used;
}

void hone_name_operation_file(const char *operation, char out[HONE_EXPORT_FILE_SIZE])
{
    const char *at = strstr(operation, "@v");
    size_t used =
        put_name(out, HONE_EXPORT_FILE_SIZE / 2, operation, at != NULL ? (size_t)(at - operation) : strlen(operation));
    snprintf(out + used, HONE_EXPORT_FILE_SIZE - used, ".json");
}

// The file of a foreign entry: as it was imported, else its operation's.
void hone_name_foreign_file(const hone_store_foreign *foreign, char out[HONE_EXPORT_FILE_SIZE])
{
    size_t used = 0;
    if (strcmp(foreign->scheme, "tokamax") == 0) {
        const char *device = foreign->device != NULL && foreign->device[0] != '\0' ? foreign->device : "_";
        used = put_name(out, HONE_EXPORT_FILE_SIZE / 3, device, strlen(device));
        out[used++] = '/';
        used += put_name(out + used, HONE_EXPORT_FILE_SIZE / 3, foreign->operation, strlen(foreign->operation));
        snprintf(out + used, HONE_EXPORT_FILE_SIZE - used, ".json");
        return;
    }
    const char *slash = foreign->origin == NULL ? NULL : strrchr(foreign->origin, '/');
    const char *file = foreign->origin == NULL ? "" : slash != NULL ? slash + 1 : foreign->origin;
    size_t size = strlen(file);
    if (size > 5 && size < HONE_EXPORT_FILE_SIZE / 2 && strcmp(file + size - 5, ".json") == 0)
        put_name(out, HONE_EXPORT_FILE_SIZE, file, size);
    else
        hone_name_operation_file(foreign->operation, out);
}

// Walking -------------------------------------------------------------------------------------------------------------

typedef struct naming {
    hone_allocator allocator;
    char (*files)[HONE_EXPORT_FILE_SIZE];
    size_t count, capacity;
    bool failed;
} naming;

static bool note_file(naming *n, const char *file)
{
    for (size_t i = n->count; i > 0; i--)
        if (strcmp(n->files[i - 1], file) == 0) return true;
    n->failed = !hone_grow(&n->allocator, &n->files, &n->capacity, n->count + 1, sizeof *n->files);
    if (n->failed) return false;
    snprintf(n->files[n->count++], HONE_EXPORT_FILE_SIZE, "%s", file);
    return true;
}

static bool note_foreign(void *ctx, const hone_store_foreign *foreign)
{
    char file[HONE_EXPORT_FILE_SIZE];
    hone_name_foreign_file(foreign, file);
    return note_file(ctx, file);
}

static bool note_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    char file[HONE_EXPORT_FILE_SIZE];
    hone_name_operation_file(decision->key.algorithm, file);
    return note_file(ctx, file);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

// In ejkernel's words, or by its dumper; what is left out is reported.
static hone_status note_decisions(const hone_exporter *w, naming *n, hone_error *err)
{
    hone_mapping mapping;
    if (w->options->format != HONE_EXCHANGE_EJKERNEL) return HONE_OK;
    if (w->options->codec->dump != NULL)
        return hone_store_scan(w->store, HONE_RECORD_DECISION, NULL, note_decision, n, err);
    hone_status status = hone_map_ejkernel(w, &mapping, err);
    for (size_t i = 0; i < mapping.count && status == HONE_OK; i++)
        (void)note_foreign(n, &mapping.items[i].entry);
    hone_mapping_deinit(&mapping);
    return status;
}

hone_status hone_export_files_with(
    hone_registry *registry,
    const char *here,
    hone_store *store,
    const hone_export_options *options,
    bool (*visit)(void *ctx, const char *file),
    void *ctx,
    hone_error *err)
{
    hone_export_options known;
    hone_codec codec;
    if (store == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and visit must not be NULL");
    hone_status status = hone_export_options_read(options, &known, &codec, err);
    if (status != HONE_OK) return status;
    if (known.format == HONE_EXCHANGE_ANY || known.format == HONE_EXCHANGE_HONE) {
        visit(ctx, "hone.json");
        return HONE_OK;
    }
    known.file = NULL;
    const hone_exporter w = {.options = &known, .store = store, .registry = registry, .here = here};
    naming n = {.allocator = hone_allocator_system()};
    status = hone_store_foreigns(store, hone_exchange_name(known.format), note_foreign, &n, err);
    if (status == HONE_OK) status = note_decisions(&w, &n, err);
    if (status == HONE_OK && n.failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK && n.count > 0) {
        qsort(n.files, n.count, sizeof *n.files, by_name);
        for (size_t i = 0; i < n.count && visit(ctx, n.files[i]); i++)
            continue;
    }
    hone_free(&n.allocator, n.files);
    return status;
}
