// Writing and reading the files of a JSON store.
#include "store/json/document.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "store/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "store.json";

// Writing -------------------------------------------------------------------------------------------------------------

void hone_document_begin(hone_buffer *out)
{
    hone_buffer_format(out, "{\"hone_store\": %d, \"records\": [\n", (int)HONE_STORE_SCHEMA);
}

// Bytes that are no UTF-8 stand as hex: JSON has no way to write them.
static void put_text(hone_buffer *out, const char *text, size_t size)
{
    if (hone_text_is_utf8(text, size)) {
        hone_json_string(out, text, size);
        return;
    }
    hone_buffer_text(out, "{\"bytes\": \"");
    for (size_t i = 0; i < size; i++)
        hone_buffer_format(out, "%02x", (unsigned)(unsigned char)text[i]);
    hone_buffer_text(out, "\"}");
}

static void put_real(hone_buffer *out, double real)
{
    if (isfinite(real))
        hone_json_number(out, real);
    else
        hone_buffer_text(out, isnan(real) ? "\"nan\"" : real > 0 ? "\"inf\"" : "\"-inf\"");
}

static void put_cell(hone_buffer *out, const hone_cell *cell)
{
    switch (cell->kind) {
    case HONE_CELL_NULL:
        hone_buffer_text(out, "null");
        break;
    case HONE_CELL_TEXT:
        put_text(out, cell->as.text, cell->size);
        break;
    case HONE_CELL_INTEGER:
        hone_buffer_format(out, "%" PRId64, cell->as.integer);
        break;
    case HONE_CELL_REAL:
        put_real(out, cell->as.real);
        break;
    }
}

// Every record ends its line with a comma but the last, and the last is not known here: the comma stands before.
static void next_line(hone_buffer *out)
{
    if (out->size > 0 && out->data[out->size - 1] == '}') hone_buffer_text(out, ",\n");
}

// What a schema adds to a kind of record comes last and may be missing: records from before keep their checksums.
static uint64_t checksum_of_row(const hone_row *row)
{
    hone_row filled = *row;
    while (filled.count > 0 && filled.cells[filled.count - 1].kind == HONE_CELL_NULL)
        filled.count--;
    return hone_row_checksum(&filled);
}

void hone_document_row(hone_buffer *out, const hone_row_shape *shape, const hone_row *row)
{
    const char *between = "";
    next_line(out);
    hone_buffer_format(out, "{\"%s\": {", shape->name);
    for (size_t i = 0; i < row->count; i++) {
        if (row->cells[i].kind == HONE_CELL_NULL) continue;
        hone_buffer_format(out, "%s\"%s\": ", between, hone_row_column_name(shape, i));
        put_cell(out, &row->cells[i]);
        between = ", ";
    }
    hone_buffer_format(out, "}, \"checksum\": \"%016" PRIx64 "\"}", checksum_of_row(row));
}

void hone_document_damage(hone_buffer *out, const char *text, const char *reason)
{
    next_line(out);
    hone_buffer_text(out, "{\"damaged\": {\"text\": ");
    put_text(out, text, strlen(text));
    hone_buffer_text(out, ", \"reason\": ");
    put_text(out, reason, strlen(reason));
    hone_buffer_text(out, "}}");
}

void hone_document_end(hone_buffer *out)
{
    if (out->size > 0 && out->data[out->size - 1] == '}') hone_buffer_char(out, '\n');
    hone_buffer_text(out, "]}\n");
}

// Reading a record ----------------------------------------------------------------------------------------------------

typedef struct reading {
    const hone_row_shape *const *shapes;
    const hone_document_reader *reader;
    hone_buffer bytes; // of texts that are no UTF-8
    bool out_of_memory;
    bool is_wreck; // damage is not worth a note a line
    bool is_own;   // something that only hone writes was found
} reading;

static const hone_row_shape *shape_named(const reading *r, const char *name)
{
    for (const hone_row_shape *const *shape = r->shapes; *shape != NULL; shape++)
        if (strcmp((*shape)->name, name) == 0) return *shape;
    return NULL;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Appends the bytes that hex digits stand for, and a NUL.
static bool append_hex(hone_buffer *out, const char *hex)
{
    for (; hex[0] != '\0'; hex += 2) {
        int high = digit_of(hex[0]);
        int low = hex[1] == '\0' ? -1 : digit_of(hex[1]);
        if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
        hone_buffer_char(out, (char)(high * 16 + low));
    }
    hone_buffer_char(out, '\0');
    return !out->failed;
}

// Texts that are no UTF-8 are given as an offset into r->bytes first, since the buffer moves while it grows.
static bool read_bytes(reading *r, const json_t *value, hone_cell *out)
{
    const char *hex = json_string_value(json_object_get(value, "bytes"));
    size_t start = r->bytes.size;
    if (hex == NULL || json_object_size(value) != 1 || !append_hex(&r->bytes, hex)) return false;
    *out = (hone_cell){.kind = HONE_CELL_TEXT, .size = r->bytes.size - start - 1, .as.integer = (int64_t)start};
    return true;
}

static bool read_text(const json_t *value, hone_cell *out)
{
    if (!json_is_string(value)) return false;
    *out = (hone_cell){.kind = HONE_CELL_TEXT, .size = json_string_length(value), .as.text = json_string_value(value)};
    return true;
}

static bool read_real(const json_t *value, hone_cell *out)
{
    static const char *const words[] = {"nan", "inf", "-inf"};
    const double reals[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    out->kind = HONE_CELL_REAL;
    if (json_is_number(value)) {
        out->as.real = json_number_value(value);
        return true;
    }
    for (size_t i = 0; json_is_string(value) && i < sizeof words / sizeof *words; i++) {
        if (strcmp(json_string_value(value), words[i]) != 0) continue;
        out->as.real = reals[i];
        return true;
    }
    return false;
}

static bool read_integer(const json_t *value, hone_cell *out)
{
    if (!json_is_integer(value)) return false;
    *out = (hone_cell){.kind = HONE_CELL_INTEGER, .as.integer = json_integer_value(value)};
    return true;
}

static bool read_cell(reading *r, hone_cell_kind kind, const json_t *value, hone_cell *out)
{
    *out = (hone_cell){0};
    if (value == NULL || json_is_null(value)) return true;
    if (kind == HONE_CELL_REAL) return read_real(value, out);
    if (kind == HONE_CELL_INTEGER) return read_integer(value, out);
    return json_is_object(value) ? read_bytes(r, value, out) : read_text(value, out);
}

// Points cells that stand for bytes into the buffer, which has stopped moving.
static void settle_bytes(const reading *r, const json_t *fields, const hone_row_shape *shape, hone_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        if (row->cells[i].kind != HONE_CELL_TEXT) continue;
        if (json_is_object(json_object_get(fields, hone_row_column_name(shape, i))))
            row->cells[i].as.text = r->bytes.data + row->cells[i].as.integer;
    }
}

static const char *read_row(reading *r, const hone_row_shape *shape, const json_t *fields, hone_row *row)
{
    size_t known = 0;
    hone_buffer_clear(&r->bytes);
    row->count = shape->count;
    for (size_t i = 0; i < shape->count; i++) {
        const json_t *value = json_object_get(fields, hone_row_column_name(shape, i));
        known += value != NULL;
        if (!read_cell(r, hone_row_column_kind(shape, i), value, &row->cells[i])) return "a field of the wrong kind";
    }
    if (known != json_object_size(fields)) return "a field that this hone does not know";
    settle_bytes(r, fields, shape, row);
    return NULL;
}

static bool checksum_of(const json_t *value, uint64_t *out)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

// NULL: the record was handed on.
static const char *read_record(reading *r, const json_t *record)
{
    union {
        hone_store_key key;
        hone_store_decision decision;
        hone_store_measured measured;
        hone_store_invocation invocation;
        hone_store_alias alias;
        hone_store_foreign foreign;
    } probe;
    const json_t *sum = json_object_get(record, "checksum");
    uint64_t checksum = 0;
    void *kind = json_object_iter((json_t *)(uintptr_t)record);
    if (kind != NULL && strcmp(json_object_iter_key(kind), "checksum") == 0)
        kind = json_object_iter_next((json_t *)(uintptr_t)record, kind);
    if (kind == NULL || json_object_size(record) != 2 || !checksum_of(sum, &checksum))
        return "no record with a checksum";
    const hone_row_shape *shape = shape_named(r, json_object_iter_key(kind));
    if (shape == NULL) return "a record of a kind that this hone does not know";
    hone_row row;
    const char *reason = read_row(r, shape, json_object_iter_value(kind), &row);
    if (reason == NULL && checksum_of_row(&row) != checksum) reason = "it does not match its checksum";
    if (reason == NULL && !hone_row_read(shape, &row, &probe, sizeof probe)) reason = "a value out of its range";
    if (reason == NULL) r->out_of_memory = !r->reader->row(r->reader->ctx, shape, &row);
    r->is_own = r->is_own || reason == NULL;
    return r->bytes.failed ? NULL : reason;
}

// Reading a file ------------------------------------------------------------------------------------------------------

static void note_damage(reading *r, const char *text, const char *reason, bool is_new)
{
    if (!r->is_wreck && !r->out_of_memory) r->out_of_memory = !r->reader->damage(r->reader->ctx, text, reason, is_new);
}

// What was damaged when the file was read before stays what it was. The text may hold bytes that are no UTF-8.
static bool is_noted(reading *r, const json_t *record, const char **out_text, const char **out_reason)
{
    hone_cell cell = {0};
    const json_t *damaged = json_object_get(record, "damaged"), *text = json_object_get(damaged, "text");
    *out_reason = json_string_value(json_object_get(damaged, "reason"));
    hone_buffer_clear(&r->bytes);
    if (json_object_size(record) != 1 || json_object_size(damaged) != 2 || *out_reason == NULL) return false;
    if (!read_cell(r, HONE_CELL_TEXT, text, &cell) || cell.kind != HONE_CELL_TEXT) return false;
    *out_text = json_is_object(text) ? r->bytes.data + cell.as.integer : cell.as.text;
    return true;
}

static void take_record(reading *r, const json_t *record, const char *text)
{
    const char *noted, *why;
    if (is_noted(r, record, &noted, &why)) {
        r->is_own = true;
        note_damage(r, noted, why, false);
        return;
    }
    const char *reason = read_record(r, record);
    if (reason != NULL) note_damage(r, text, reason, true);
    if (r->bytes.failed) r->out_of_memory = true;
}

// A line without its comma, as text of its own, with NULs as question marks.
static char *copy_line(const hone_allocator *allocator, const char *line, size_t size)
{
    char *copy = hone_copy_text(allocator, line, size);
    for (size_t i = 0; copy != NULL && i < size; i++)
        if (copy[i] == '\0') copy[i] = '?';
    return copy;
}

static void take_line(reading *r, const char *line, size_t size)
{
    json_t *record = NULL;
    hone_error err = {0};
    hone_status status = hone_json_parse(line, size, &record, &err);
    r->out_of_memory = status == HONE_OUT_OF_MEMORY;
    char *copy = r->out_of_memory ? NULL : copy_line(&r->bytes.allocator, line, size);
    if (copy == NULL)
        r->out_of_memory = true;
    else if (status == HONE_OK)
        take_record(r, record, copy);
    else
        note_damage(r, copy, "it is no JSON", true);
    hone_free(&r->bytes.allocator, copy);
    json_decref(record);
}

static size_t trimmed(const char *line, size_t size)
{
    while (size > 0 && (line[size - 1] == '\r' || line[size - 1] == ' '))
        size--;
    return size > 0 && line[size - 1] == ',' ? size - 1 : size;
}

// Every line up to the end's. Returns whether the end is there.
static bool take_lines(reading *r, const char *text, const char *end)
{
    while (text < end && !r->out_of_memory) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t size = trimmed(text, (size_t)((newline != NULL ? newline : end) - text));
        if (size == 2 && memcmp(text, "]}", 2) == 0) return true;
        if (size > 0) take_line(r, text, size);
        if (newline == NULL) break;
        text = newline + 1;
    }
    return false;
}

static void take_array(reading *r, const json_t *records)
{
    for (size_t i = 0; i < json_array_size(records) && !r->out_of_memory; i++) {
        const json_t *record = json_array_get(records, i);
        char *text = json_dumps(record, JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        r->out_of_memory = text == NULL;
        if (text != NULL) take_record(r, record, text);
        free(text);
    }
}

static hone_status check_version(const char *path, json_int_t version, hone_error *err)
{
    if (version >= 1 && version <= HONE_STORE_SCHEMA) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "%s: its version is %lld and this hone knows up to %d; it was left as it was: use the newer hone, or name "
        "another "
        "path",
        path, (long long)version, (int)HONE_STORE_SCHEMA);
}

// The whole of it as one JSON document, laid out by somebody else.
static hone_status take_document(reading *r, const char *path, const json_t *root, bool *out_is_whole, hone_error *err)
{
    const json_t *version = json_object_get(root, "hone_store");
    if (!json_is_integer(version))
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%s: JSON of something else; it was left as it was: name another path, or read it by hone store import "
            "(--format ejkernel or tokamax)",
            path);
    const json_t *records = json_object_get(root, "records");
    *out_is_whole = json_is_array(records);
    hone_status status = check_version(path, json_integer_value(version), err);
    if (status == HONE_OK) take_array(r, records);
    return status;
}

// The first line as hone writes it; *version is what stands in it.
static bool is_own_header(const char *text, const char *newline, long long *version)
{
    char line[64];
    int used = 0;
    size_t size = newline == NULL ? sizeof line : (size_t)(newline - text);
    if (size >= sizeof line) return false;
    memcpy(line, text, size);
    line[size] = '\0';
    return sscanf(line, "{\"hone_store\": %6lld, \"records\": [%n", version, &used) == 1 && used > 0 &&
           strspn(line + used, "\r ") == strlen(line + used);
}

// A file whose head is damaged. The lines of it that are sound are taken; the others stay in the file, which is kept
// aside as a whole. Where neither the head nor a line is hone's, the file is somebody else's.
static hone_status take_wreck(reading *r, const char *path, const char *text, size_t size, hone_error *err)
{
    static const char head[] = "{\"hone_store\"";
    r->is_wreck = true;
    (void)take_lines(r, text, text + size);
    if (r->out_of_memory || r->is_own || strncmp(text, head, sizeof head - 1) == 0) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "%s: it is not a JSON store of hone, not even a damaged one, and was not changed: name another path, or "
        "read it by hone store import where another system wrote it (--format ejkernel or tokamax)",
        path);
}

static hone_status read_text_of(
    reading *r, const char *path, const char *text, size_t size, bool *out_broken, hone_error *err)
{
    long long version = 0;
    json_t *root = NULL;
    const char *newline = memchr(text, '\n', size);
    if (is_own_header(text, newline, &version)) {
        hone_status status = check_version(path, version, err);
        if (status == HONE_OK) *out_broken = !take_lines(r, newline + 1, text + size);
        return status;
    }
    bool is_whole = false;
    hone_status status = hone_json_parse(text, size, &root, err);
    if (status == HONE_OK) status = take_document(r, path, root, &is_whole, err);
    if (status == HONE_CORRUPT) status = HONE_OK; // no JSON
    *out_broken = status == HONE_OK && !is_whole;
    if (*out_broken) status = take_wreck(r, path, text, size, err);
    json_decref(root);
    return status;
}

hone_status hone_document_read(
    const char *path,
    const char *text,
    size_t size,
    const hone_row_shape *const *shapes,
    const hone_document_reader *reader,
    bool *out_broken,
    hone_error *err)
{
    reading r = {.shapes = shapes, .reader = reader};
    *out_broken = false;
    if (size == 0) return HONE_OK;
    hone_buffer_init(&r.bytes, reader->allocator);
    hone_status status = read_text_of(&r, path, text, size, out_broken, err);
    if (status == HONE_OK && r.out_of_memory) status = hone_fail_memory(err, where);
    hone_buffer_deinit(&r.bytes);
    return status;
}
