// Finds the calls nearest to one that has no answer, for people: with their differences, nearest first.
//
// The distance is a sum over parameters, in doublings: |log2| of the ratio of two sizes, and fixed costs for what is
// not a size. A different rank costs 16, like a size ratio of 65,536; a dtype 8, a scalar 4, and a device 2, like four
// times the size. This distance selects no kernel: the link that answers from near calls has its own (src/transfer).
#include "runtime/links/nearest.h"

#include "base/json.h"
#include "hone/describe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
    const hone_store_key *key;
    json_t *wanted;   // kwargs_spec
    const char *word; // describes where the call was found: "stored", "locked"
    hone_neighbours *out;
} search;

// A neighbour while it is compared.
typedef struct candidate {
    hone_neighbour row;
    const char *word;
} candidate;

static json_t *parameters_of(const char *spec, json_t **document)
{
    *document = NULL;
    if (spec == NULL || hone_json_parse(spec, strlen(spec), document, NULL) != HONE_OK) return NULL;
    return json_object_get(*document, "kwargs_spec");
}

static void print_value(const json_t *value, char out[48])
{
    char *text = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    snprintf(out, 48, "%s", text == NULL ? "nothing" : text);
    free(text);
}

static void add_line(candidate *of, double distance, const char *field, const char *wanted, const char *found)
{
    hone_neighbour *row = &of->row;
    size_t used = strlen(row->differs);
    snprintf(
        row->differs + used, sizeof row->differs - used, "%s%s: %s, %s %s", used == 0 ? "" : "\n", field, wanted,
        of->word, found);
    row->distance += distance;
}

static void add_difference(
    candidate *of, double distance, const char *field, const json_t *wanted, const json_t *stored)
{
    char a[48], b[48];
    print_value(wanted, a);
    print_value(stored, b);
    add_line(of, distance, field, a, b);
}

static void compare_shapes(candidate *of, const char *name, const json_t *wanted, const json_t *stored)
{
    char field[96];
    if (json_array_size(wanted) != json_array_size(stored)) {
        snprintf(field, sizeof field, "%s.shape", name);
        add_difference(of, 16, field, wanted, stored);
        return;
    }
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        const json_t *a = json_array_get(wanted, i), *b = json_array_get(stored, i);
        if (json_equal(a, b)) continue;
        double ratio = (double)(json_integer_value(a) + 1) / (double)(json_integer_value(b) + 1);
        snprintf(field, sizeof field, "%s.shape[%zu]", name, i);
        add_difference(of, fabs(log2(ratio)), field, a, b);
    }
}

static void compare_parameter(candidate *of, const char *name, const json_t *wanted, const json_t *stored)
{
    if (json_equal(wanted, stored)) return;
    const json_t *shape = json_object_get(wanted, "shape"), *stored_shape = json_object_get(stored, "shape");
    if (shape == NULL || stored_shape == NULL) {
        add_difference(of, 4, name, wanted, stored);
        return;
    }
    const json_t *dtype = json_object_get(wanted, "dtype"), *stored_dtype = json_object_get(stored, "dtype");
    char field[96];
    snprintf(field, sizeof field, "%s.dtype", name);
    if (!json_equal(dtype, stored_dtype)) add_difference(of, 8, field, dtype, stored_dtype);
    compare_shapes(of, name, shape, stored_shape);
}

static void keep(hone_neighbours *out, const hone_neighbour *row)
{
    size_t at = out->count;
    while (at > 0 && out->rows[at - 1].distance > row->distance)
        at--;
    if (at == HONE_NEAREST_MAX) return;
    size_t last = out->count < HONE_NEAREST_MAX ? out->count++ : HONE_NEAREST_MAX - 1;
    memmove(&out->rows[at + 1], &out->rows[at], (last - at) * sizeof out->rows[0]);
    out->rows[at] = *row;
}

// Adds a call that has a canonical text, if it is near and not the same.
static void compare_call(search *find, const hone_store_key *found, uint32_t line)
{
    json_t *document = NULL;
    json_t *parameters = parameters_of(found->spec, &document);
    if (parameters != NULL) {
        candidate of = {.row = {.line = line}, .word = find->word};
        snprintf(of.row.key, sizeof of.row.key, "%s", found->key);
        const char *name;
        json_t *value;
        json_object_foreach(find->wanted, name, value)
            compare_parameter(&of, name, value, json_object_get(parameters, name));
        if (strcmp(found->device, find->key->device) != 0) add_line(&of, 2, "device", find->key->device, found->device);
        if (of.row.differs[0] != '\0') keep(find->out, &of.row);
    }
    json_decref(document);
}

static bool compare_row(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *stored = record->decision;
    compare_call(ctx, &stored->key, 0);
    return true;
}

hone_status hone_nearest_find(hone_store *store, const hone_store_key *key, hone_neighbours *out, hone_error *err)
{
    memset(out, 0, sizeof *out);
    json_t *document = NULL;
    search find = {key, parameters_of(key->spec, &document), "stored", out};
    hone_store_key filter = {.algorithm = key->algorithm, .version = key->version};
    hone_status status =
        find.wanted == NULL ? HONE_OK : hone_store_scan(store, HONE_RECORD_DECISION, &filter, compare_row, &find, err);
    json_decref(document);
    return status;
}

static void compare_locked(
    search *find, const hone_lock_line *line, hone_allocator allocator, hone_signature *signature)
{
    hone_call *call = NULL;
    if (line->call == NULL || hone_call_parse(allocator, signature, line->call, &call, NULL) != HONE_OK) return;
    const hone_store_key found = {line->device, line->algorithm, line->version, line->key, hone_call_spec(call)};
    compare_call(find, &found, line->number);
    hone_call_release(&call);
}

void hone_nearest_locked(
    const hone_lock *lock,
    hone_allocator allocator,
    hone_signature *signature,
    const hone_store_key *key,
    hone_neighbours *out)
{
    enum { MOST = 1000 };
    memset(out, 0, sizeof *out);
    json_t *document = NULL;
    search find = {key, parameters_of(key->spec, &document), "locked", out};
    for (size_t i = 0, seen = 0; find.wanted != NULL && i < hone_lock_size(lock) && seen < MOST; i++) {
        const hone_lock_line *line = hone_lock_at(lock, i);
        if (strcmp(line->algorithm, key->algorithm) != 0 || strcmp(line->version, key->version) != 0) continue;
        compare_locked(&find, line, allocator, signature);
        seen++;
    }
    json_decref(document);
}
