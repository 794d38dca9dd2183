// Documents of foreign operations.
#include "call/foreign.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static const char where[] = "foreign.read";

enum { ROWS_MAX = 4096 };

typedef struct reader {
    hone_foreign *foreign;
    size_t row;
    hone_error *err;
} reader;

static hone_status wrong(const reader *r, const char *field, const char *expected)
{
    return hone_fail(
        r->err, HONE_INVALID_ARGUMENT, where, "row %zu of foreign operations: %s: expected %s", r->row, field,
        expected);
}

static hone_status check_fields(const reader *r, const json_t *row)
{
    static const char *const known[] = {"library", "operation", "signature", "values", "windows", "configs", "takes"};
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)row, name, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], name) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            return hone_fail(
                r->err, HONE_INVALID_ARGUMENT, where,
                "row %zu of foreign operations: there is no field '%.60s'; the fields are: library operation signature "
                "values windows configs takes",
                r->row, name);
    }
    return HONE_OK;
}

static hone_status check_values(const reader *r, const json_t *values)
{
    const char *name;
    const json_t *value;
    if (values != NULL && !json_is_object(values)) return wrong(r, "values", "an object");
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        if (json_array_size(value) == 0) return wrong(r, name, "an array of at least one value");
    }
    return HONE_OK;
}

static bool are_objects(const json_t *object)
{
    const char *name;
    const json_t *value;
    if (!json_is_object(object)) return false;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (!json_is_object(value)) return false;
    }
    return true;
}

static bool are_words(const json_t *object)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!json_is_string(json_array_get(value, i))) return false;
        if (!json_is_array(value)) return false;
    }
    return object == NULL || json_is_object(object);
}

static hone_status check_configs(const reader *r, const json_t *configs)
{
    if (configs == NULL) return HONE_OK;
    if (!json_is_object(configs)) return wrong(r, "configs", "an object");
    if (!json_is_string(json_object_get(configs, "file"))) return wrong(r, "configs", "\"file\", a text");
    if (!json_is_object(json_object_get(configs, "default"))) return wrong(r, "configs", "\"default\", an object");
    if (!are_objects(json_object_get(configs, "platforms")))
        return wrong(r, "configs", "\"platforms\", an object of objects");
    return are_words(json_object_get(configs, "words"))
               ? HONE_OK
               : wrong(r, "configs", "\"words\", an object of arrays of texts");
}

static hone_status check_takes(const reader *r, const json_t *takes)
{
    if (json_array_size(takes) == 0) return wrong(r, "takes", "an array of at least one algorithm");
    for (size_t i = 0; i < json_array_size(takes); i++) {
        const json_t *take = json_array_get(takes, i);
        const json_t *arguments = json_object_get(take, "arguments"), *spelled = json_object_get(take, "spelled");
        if (!json_is_string(json_object_get(take, "algorithm"))) return wrong(r, "takes", "\"algorithm\", a text");
        if (arguments != NULL && !json_is_object(arguments)) return wrong(r, "takes", "\"arguments\", an object");
        if (spelled != NULL && !json_is_object(spelled)) return wrong(r, "takes", "\"spelled\", an object");
    }
    return HONE_OK;
}

static hone_status read_signature(const reader *r, const json_t *text, hone_signature **out)
{
    if (text == NULL) return HONE_OK;
    if (!json_is_string(text)) return wrong(r, "signature", "a text");
    hone_status status = hone_signature_parse(r->foreign->allocator, json_string_value(text), out, r->err);
    return status == HONE_OK ? status : hone_fail_prefix(r->err, status, "row %zu of foreign operations", r->row);
}

static hone_status read_row(const reader *r, const json_t *json, hone_foreign_row *row)
{
    const json_t *windows = json_object_get(json, "windows");
    if (!json_is_object(json)) return wrong(r, "it", "an object");
    row->library = json_string_value(json_object_get(json, "library"));
    row->operation = json_string_value(json_object_get(json, "operation"));
    row->values = json_object_get(json, "values");
    row->windows = windows;
    row->configs = json_object_get(json, "configs");
    row->takes = json_object_get(json, "takes");
    if (row->library == NULL) return wrong(r, "library", "a text");
    if (row->operation == NULL) return wrong(r, "operation", "a text");
    if (windows != NULL && !json_is_array(windows)) return wrong(r, "windows", "an array of names");
    for (size_t i = 0; i < json_array_size(windows); i++)
        if (!json_is_string(json_array_get(windows, i))) return wrong(r, "windows", "an array of names");
    hone_status status = check_fields(r, json);
    if (status == HONE_OK) status = check_values(r, row->values);
    if (status == HONE_OK) status = check_configs(r, row->configs);
    if (status == HONE_OK) status = check_takes(r, row->takes);
    if (status == HONE_OK) status = read_signature(r, json_object_get(json, "signature"), &row->signature);
    return status;
}

static hone_status read_rows(reader *r, const json_t *root)
{
    const size_t count = json_array_size(root);
    if (!json_is_array(root) || count > ROWS_MAX)
        return hone_fail(r->err, HONE_INVALID_ARGUMENT, where, "foreign operations are an array of at most 4096 rows");
    hone_foreign *f = r->foreign;
    f->rows = hone_alloc_array(&f->allocator, count, sizeof *f->rows);
    if (f->rows == NULL) return hone_fail_memory(r->err, where);
    hone_status status = HONE_OK;
    for (; f->count < count && status == HONE_OK; f->count++) {
        r->row = f->count;
        status = read_row(r, json_array_get(root, f->count), &f->rows[f->count]);
    }
    return status;
}

hone_status hone_foreign_read(
    const hone_allocator *allocator, const char *text, size_t size, hone_foreign **out, hone_error *err)
{
    *out = NULL;
    hone_foreign *f = hone_alloc(allocator, sizeof *f);
    if (f == NULL) return hone_fail_memory(err, where);
    f->allocator = *allocator;
    reader r = {.foreign = f, .err = err};
    hone_status status = hone_json_parse(text, size, &f->root, err);
    if (status == HONE_OK) status = read_rows(&r, f->root);
    if (status == HONE_OK)
        *out = f;
    else
        hone_foreign_release(&f);
    return status;
}

void hone_foreign_release(hone_foreign **foreign)
{
    for (hone_foreign *f = *foreign; f != NULL;) {
        hone_foreign *older = f->older;
        for (size_t i = 0; i < f->count; i++)
            hone_signature_release(&f->rows[i].signature);
        hone_allocator allocator = f->allocator;
        hone_free(&allocator, f->rows);
        json_decref(f->root);
        hone_free(&allocator, f);
        f = older;
    }
    *foreign = NULL;
}

static const hone_foreign_row *find_in(const hone_foreign *f, size_t from, const char *library, hone_view operation)
{
    for (size_t i = from; i < f->count; i++)
        if (strcmp(f->rows[i].library, library) == 0 && hone_view_is(operation, f->rows[i].operation))
            return &f->rows[i];
    return NULL;
}

void hone_foreign_link(hone_foreign *newer, hone_foreign *older)
{
    newer->older = older;
    for (size_t i = 0; i < newer->count; i++) {
        hone_foreign_row *row = &newer->rows[i];
        const hone_view operation = {row->operation, strlen(row->operation)};
        row->older = find_in(newer, i + 1, row->library, operation);
        if (row->older == NULL) row->older = hone_foreign_find(older, row->library, operation);
    }
}

const hone_foreign_row *hone_foreign_find(const hone_foreign *foreign, const char *library, hone_view operation)
{
    const hone_foreign_row *row = NULL;
    for (const hone_foreign *f = foreign; f != NULL && row == NULL; f = f->older)
        row = find_in(f, 0, library, operation);
    return row;
}

hone_signature *hone_foreign_signature(const hone_foreign_row *row)
{
    while (row != NULL && row->signature == NULL)
        row = row->older;
    return row != NULL ? row->signature : NULL;
}

size_t hone_foreign_take_count(const hone_foreign_row *row)
{
    return json_array_size(row->takes);
}

const char *hone_foreign_algorithm(const hone_foreign_row *row, size_t index)
{
    return json_string_value(json_object_get(json_array_get(row->takes, index), "algorithm"));
}
