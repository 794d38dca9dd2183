// ejkernel's persistent caches: one object whose keys are "device|operation@vN|key", written by Python's json.dump.
#include "interchange/importer.h"

#include "base/error.h"

#include <string.h>

static const char scheme[] = "ejkernel";

// "a|b|op@v1|key": the device may hold bars, so that the key is taken apart from the right.
static bool split_key(hone_importer *importer, const char *joined, hone_store_foreign *out)
{
    const char *key = strrchr(joined, '|'), *operation = NULL;
    for (const char *at = joined; key != NULL && at < key; at++)
        if (*at == '|') operation = at;
    if (operation == NULL || operation + 1 == key || key[1] == '\0') return false;
    out->device = hone_texts_keep(&importer->texts, (hone_view){joined, (size_t)(operation - joined)});
    out->operation = hone_texts_keep(&importer->texts, (hone_view){operation + 1, (size_t)(key - operation - 1)});
    out->foreign_key = key + 1;
    return true;
}

// What hone writes for its own decisions: {"kernel": ..., "platform": ..., "config": {...}, "spec": ...}.
static bool read_own(
    hone_importer *importer, const hone_store_foreign *entry, hone_view value, hone_store_decision *out)
{
    hone_view kernel = hone_json_member(value, "kernel"), platform = hone_json_member(value, "platform"),
              config = hone_json_member(value, "config"), spec = hone_json_member(value, "spec");
    const char *at = strstr(entry->operation, "@v");
    if (!hone_json_is_string(kernel) || !hone_json_is_string(platform) || !hone_json_is_object(config) || at == NULL)
        return false;
    *out = (hone_store_decision){
        .key =
            {.device = entry->device,
             .algorithm =
                 hone_texts_keep(&importer->texts, (hone_view){entry->operation, (size_t)(at - entry->operation)}),
             .version = at + 2,
             .key = entry->foreign_key,
             .spec = hone_texts_string(&importer->texts, spec)},
        .kernel = hone_texts_string(&importer->texts, kernel),
        .platform = hone_texts_string(&importer->texts, platform),
        .config = hone_texts_keep(&importer->texts, config),
        .source = "store",
    };
    return true;
}

static void read_entry(hone_importer *importer, const char *origin, hone_view name, hone_view value)
{
    const char *joined = hone_texts_string(&importer->texts, name);
    hone_store_foreign entry = {.scheme = scheme, .origin = origin};
    hone_store_decision own;
    if (joined == NULL || !split_key(importer, joined, &entry)) {
        hone_importer_refuse(
            importer, origin,
            hone_texts_keep(&importer->texts, (hone_view){name.data, name.size < 120 ? name.size : 120}),
            "the key is not device|operation|key");
        return;
    }
    entry.text = hone_texts_keep(&importer->texts, value);
    if (read_own(importer, &entry, value, &own))
        hone_importer_take(importer, origin, &own);
    else
        hone_importer_keep(
            importer, &entry,
            hone_json_is_null(value) ? "it has no config" : "a config of ejkernel's: kept as it came");
}

hone_status hone_read_ejkernel(hone_importer *importer, const char *origin, hone_view document, hone_error *err)
{
    (void)err;
    hone_view name, value;
    hone_json_walk walk = hone_json_walk_of(document);
    while (hone_json_walk_next(&walk, &name, &value) && !importer->texts.failed)
        read_entry(importer, origin, name, value);
    return HONE_OK;
}
