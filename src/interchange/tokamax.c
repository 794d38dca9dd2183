// tokamax's cache files: {ARGUMENTS: {CONFIG: {"evaluation_times_ms": [...], ...}, ...}, ...}, where ARGUMENTS and
// CONFIG are JSON in strings. A file holds one operation on one kind of device: its name and its folder's say which.
#include "interchange/importer.h"

#include "base/error.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "interchange.tokamax";
static const char scheme[] = "tokamax";

enum { TIMES_MAX = 4096 };

// Winners -------------------------------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

// False: there is no time.
static bool median_of(hone_view times, double *out)
{
    double values[TIMES_MAX];
    size_t count = 0;
    hone_view key, value;
    hone_json_walk walk = hone_json_walk_of(times);
    while (count < TIMES_MAX && hone_json_walk_next(&walk, &key, &value)) {
        if (!hone_json_is_number(value) || !hone_number_parse(value.data, value.size, &values[count])) return false;
        count++;
    }
    if (count == 0) return false;
    qsort(values, count, sizeof *values, by_value);
    *out = (values[(count - 1) / 2] + values[count / 2]) / 2;
    return true;
}

// The config of the least median, as tokamax chooses it. Empty: none was measured.
static hone_view winner_of(hone_view configs, size_t *out_count)
{
    hone_view config, data, winner = {configs.data, 0};
    double best = 0, median;
    *out_count = 0;
    hone_json_walk walk = hone_json_walk_of(configs);
    for (; hone_json_walk_next(&walk, &config, &data); ++*out_count)
        if (median_of(hone_json_member(data, "evaluation_times_ms"), &median) && (winner.size == 0 || median < best)) {
            winner = config;
            best = median;
        }
    return winner;
}

static const char *describe(hone_importer *importer, hone_view configs)
{
    size_t count;
    hone_view winner = winner_of(configs, &count);
    const char *config = winner.size > 0 ? hone_texts_string(&importer->texts, winner) : NULL;
    if (config == NULL) return "it was never measured: a miss there too";
    return hone_texts_format(&importer->texts, "kept as it came: %.100s is the best of %zu", config, count);
}

// Files ---------------------------------------------------------------------------------------------------------------

static hone_view name_in(const char *path, size_t size)
{
    size_t from = size;
    while (from > 0 && path[from - 1] != '/')
        from--;
    return (hone_view){path + from, size - from};
}

// ".../nvidia_h100_80gb_hbm3/pallas_triton_normalization.json"
static void name_of_file(hone_importer *importer, const char *path, hone_store_foreign *out)
{
    hone_view file = name_in(path, strlen(path));
    size_t folder_end = (size_t)(file.data - path);
    while (folder_end > 0 && path[folder_end - 1] == '/') // "nvidia_h100//normalization.json" is on the same device
        folder_end--;
    hone_view folder = name_in(path, folder_end);
    if (file.size > 5 && memcmp(file.data + file.size - 5, ".json", 5) == 0) file.size -= 5;
    out->operation = file.size > 0 ? hone_texts_keep(&importer->texts, file) : "-";
    out->device = hone_texts_keep(&importer->texts, folder);
}

hone_status hone_read_tokamax(hone_importer *importer, const char *origin, hone_view document, hone_error *err)
{
    hone_store_foreign entry = {.scheme = scheme, .origin = origin};
    hone_view name, value, checked;
    if (hone_json_member(document, "device_kind").size > 0)
        return hone_fail(
            err, HONE_CORRUPT, where,
            "%s: a tokamax result, not a cache file: an object of {arguments: {config: times}} is "
            "expected",
            origin);
    name_of_file(importer, origin, &entry);
    hone_json_walk walk = hone_json_walk_of(document);
    while (hone_json_walk_next(&walk, &name, &value) && !importer->texts.failed) {
        entry.foreign_key = hone_texts_string(&importer->texts, name);
        bool is_call =
            entry.foreign_key != NULL && entry.foreign_key[0] != '\0' && hone_json_is_object(value) &&
            hone_json_text_check(hone_view_of(entry.foreign_key), HONE_JSON_PYTHON, &checked, NULL) == HONE_OK &&
            hone_json_is_object(checked);
        entry.text = hone_texts_keep(&importer->texts, value);
        if (is_call)
            hone_importer_keep(importer, &entry, describe(importer, value));
        else
            hone_importer_refuse(
                importer, origin,
                hone_texts_keep(&importer->texts, (hone_view){name.data, name.size < 120 ? name.size : 120}),
                "arguments as JSON in a string, and an object of configs, are expected");
    }
    return HONE_OK;
}
