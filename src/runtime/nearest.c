#include "runtime/nearest.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
    const hone_store_key *key;
    json_t *wanted; // kwargs_spec
    hone_neighbours *out;
} search;

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

static void add_difference(
    hone_neighbour *row, double distance, const char *field, const json_t *wanted, const json_t *stored)
{
    char a[48], b[48];
    print_value(wanted, a);
    print_value(stored, b);
    size_t used = strlen(row->differs);
    snprintf(
        row->differs + used, sizeof row->differs - used, "%s%s: %s, stored %s", used == 0 ? "" : "\n", field, a, b);
    row->distance += distance;
}

static void compare_shapes(hone_neighbour *row, const char *name, const json_t *wanted, const json_t *stored)
{
    char field[96];
    if (json_array_size(wanted) != json_array_size(stored)) {
        snprintf(field, sizeof field, "%s.shape", name);
        add_difference(row, 16, field, wanted, stored);
        return;
    }
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        const json_t *a = json_array_get(wanted, i), *b = json_array_get(stored, i);
        if (json_equal(a, b)) continue;
        double ratio = (double)(json_integer_value(a) + 1) / (double)(json_integer_value(b) + 1);
        snprintf(field, sizeof field, "%s.shape[%zu]", name, i);
        add_difference(row, fabs(log2(ratio)), field, a, b);
    }
}

static void compare_parameter(hone_neighbour *row, const char *name, const json_t *wanted, const json_t *stored)
{
    if (json_equal(wanted, stored)) return;
    const json_t *shape = json_object_get(wanted, "shape"), *stored_shape = json_object_get(stored, "shape");
    if (shape == NULL || stored_shape == NULL) {
        add_difference(row, 4, name, wanted, stored);
        return;
    }
    const json_t *dtype = json_object_get(wanted, "dtype"), *stored_dtype = json_object_get(stored, "dtype");
    char field[96];
    snprintf(field, sizeof field, "%s.dtype", name);
    if (!json_equal(dtype, stored_dtype)) add_difference(row, 8, field, dtype, stored_dtype);
    compare_shapes(row, name, shape, stored_shape);
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

static bool compare_row(void *ctx, const hone_store_decision *stored)
{
    search *find = ctx;
    json_t *document = NULL;
    json_t *parameters = parameters_of(stored->key.spec, &document);
    if (parameters != NULL) {
        hone_neighbour row = {.distance = 0};
        snprintf(row.key, sizeof row.key, "%s", stored->key.key);
        const char *name;
        json_t *value;
        json_object_foreach(find->wanted, name, value)
            compare_parameter(&row, name, value, json_object_get(parameters, name));
        if (strcmp(stored->key.device, find->key->device) != 0) {
            size_t used = strlen(row.differs);
            snprintf(
                row.differs + used, sizeof row.differs - used, "%sdevice: %s, stored %s", used == 0 ? "" : "\n",
                find->key->device, stored->key.device);
            row.distance += 2;
        }
        if (row.differs[0] != '\0') keep(find->out, &row);
    }
    json_decref(document);
    return true;
}

hone_status hone_nearest_find(hone_store *store, const hone_store_key *key, hone_neighbours *out, hone_error *err)
{
    memset(out, 0, sizeof *out);
    json_t *document = NULL;
    search find = {key, parameters_of(key->spec, &document), out};
    hone_store_key filter = {.algorithm = key->algorithm, .version = key->version};
    hone_status status = find.wanted == NULL ? HONE_OK : hone_store_scan(store, &filter, compare_row, &find, err);
    json_decref(document);
    return status;
}
