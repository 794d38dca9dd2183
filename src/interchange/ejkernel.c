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

static void read_entry(hone_importer *importer, const char *origin, hone_view name, hone_view value)
{
    const char *joined = hone_texts_string(&importer->texts, name);
    hone_store_foreign entry = {.scheme = scheme, .origin = origin};
    if (joined == NULL || !split_key(importer, joined, &entry)) {
        hone_importer_refuse(
            importer, origin,
            hone_texts_keep(&importer->texts, (hone_view){name.data, name.size < 120 ? name.size : 120}),
            "the key is not device|operation|key");
        return;
    }
    entry.text = hone_texts_keep(&importer->texts, value);
    hone_importer_keep(
        importer, &entry, hone_json_is_null(value) ? "it has no config" : "a config of ejkernel's: kept as it came");
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
