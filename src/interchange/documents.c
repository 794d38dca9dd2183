// The formats of documents: their names, how each is recognised, and its reader.
#include "interchange/importer.h"

#include "base/error.h"
#include "interchange/exporter.h"

#include <string.h>

static const char where[] = "interchange.import";
static const char format_where[] = "interchange.format";

enum { DOCUMENT_LIMIT = 1 << 30 };

// Names ---------------------------------------------------------------------------------------------------------------

static const char *const format_names[HONE_EXCHANGE_COUNT] = {"any", "hone", "ejkernel", "tokamax"};

const char *hone_exchange_name(hone_exchange format)
{
    return (int)format < 0 || format >= HONE_EXCHANGE_COUNT ? "unknown" : format_names[format];
}

hone_status hone_exchange_parse(const char *name, hone_exchange *out, hone_error *err)
{
    for (int i = HONE_EXCHANGE_HONE; name != NULL && i < HONE_EXCHANGE_COUNT; i++) {
        if (strcmp(format_names[i], name) != 0) continue;
        *out = (hone_exchange)i;
        return HONE_OK;
    }
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, format_where, "'%.40s' is not a format: expected hone, ejkernel or tokamax",
        name == NULL ? "NULL" : name);
}

const char *hone_import_outcome_name(hone_import_outcome outcome)
{
    static const char *const names[HONE_IMPORT_COUNT] = {"taken", "kept", "equal", "foreign", "refused"};
    return (int)outcome < 0 || outcome >= HONE_IMPORT_COUNT ? "unknown" : names[outcome];
}

// Reading -------------------------------------------------------------------------------------------------------------

typedef struct format_reader {
    hone_exchange format;
    hone_json_dialect dialect;
    hone_status (*read)(hone_importer *importer, const char *origin, hone_view document, hone_error *err);
} format_reader;

static const format_reader readers[] = {
    {HONE_EXCHANGE_HONE, HONE_JSON_STRICT, hone_read_bundle},
    {HONE_EXCHANGE_EJKERNEL, HONE_JSON_PYTHON, hone_read_ejkernel},
    {HONE_EXCHANGE_TOKAMAX, HONE_JSON_PYTHON, hone_read_tokamax},
};

// A bundle says so; tokamax's keys are JSON in strings; the rest can only be ejkernel's.
static hone_exchange detect(hone_view document)
{
    hone_view key, value;
    if (hone_json_member(document, "hone_result").size > 0) return HONE_EXCHANGE_HONE;
    hone_json_walk walk = hone_json_walk_of(document);
    if (hone_json_walk_next(&walk, &key, &value) && key.size > 2 && key.data[1] == '{') return HONE_EXCHANGE_TOKAMAX;
    return HONE_EXCHANGE_EJKERNEL;
}

static const format_reader *reader_of(hone_exchange format)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i].format == format) return &readers[i];
    return NULL;
}

static hone_status read_document(
    hone_importer *importer, const char *origin, hone_exchange format, const char *text, size_t size, hone_error *err)
{
    hone_view document;
    const format_reader *reader = reader_of(format);
    hone_json_dialect dialect = reader != NULL ? reader->dialect : HONE_JSON_PYTHON;
    hone_status status = hone_json_text_check((hone_view){text, size}, dialect, &document, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "%s", origin);
    if (!hone_json_is_object(document))
        return hone_fail(err, HONE_CORRUPT, where, "%s: a JSON object is expected", origin);
    if (reader == NULL) reader = reader_of(detect(document));
    size_t before = importer->entry_count;
    status = reader->read(importer, origin, document, err);
    if (status != HONE_OK) importer->entry_count = before;
    return status == HONE_OK && importer->texts.failed ? hone_fail_memory(err, where) : status;
}

hone_status hone_importer_add(
    hone_importer *importer, const char *origin, hone_exchange format, const char *text, size_t size, hone_error *err)
{
    if (importer == NULL || text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer and the text must not be NULL");
    if ((int)format < 0 || format >= HONE_EXCHANGE_COUNT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is not a format", (int)format);
    if (importer->is_committed)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer was committed: create another");
    if (size > DOCUMENT_LIMIT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%.200s is larger than %d bytes: split it", origin == NULL ? "" : origin,
            (int)DOCUMENT_LIMIT);
    const char *kept_origin = hone_texts_keep(&importer->texts, hone_view_of(origin == NULL ? "-" : origin));
    // What is read borrows from the text.
    const char *kept = hone_arena_text(&importer->texts.arena, text, size);
    if (kept == NULL || importer->texts.failed) return hone_fail_memory(err, where);
    return read_document(importer, kept_origin, format, kept, size, err);
}
