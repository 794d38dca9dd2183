// hone's bundles on their way into a store: entries that are wrong are refused one by one.
#include "tune/result/bundle.h"

#include "base/error.h"
#include "interchange/importer.h"

typedef struct reading {
    hone_importer *importer;
    const char *origin, *section;
    size_t index;
    hone_bundle bundle;
} reading;

static void refuse(const reading *r, const char *why)
{
    const char *entry = hone_texts_format(&r->importer->texts, "%s[%zu]", r->section, r->index);
    hone_importer_refuse(r->importer, r->origin, entry, why);
}

static const char *read_decision(const reading *r, hone_view entry)
{
    hone_store_decision decision;
    hone_evidence evidence;
    const char *wrong = hone_bundle_decision(&r->bundle, entry, &decision, &evidence);
    if (wrong == NULL) hone_importer_take(r->importer, r->origin, &decision);
    return wrong;
}

static const char *read_measured(const reading *r, hone_view entry)
{
    hone_store_measured measured;
    const char *wrong = hone_bundle_measured(&r->bundle, entry, &measured);
    if (wrong == NULL) hone_importer_take_measured(r->importer, &measured);
    return wrong;
}

static const char *read_alias(const reading *r, hone_view entry)
{
    hone_store_alias alias;
    hone_error why = {.message = ""};
    const char *wrong = hone_bundle_alias(&r->bundle, entry, &alias);
    if (wrong == NULL && hone_bundle_check_alias(r->importer->registry, &alias, &why) != HONE_OK)
        wrong = hone_texts_keep(&r->importer->texts, hone_view_of(why.message));
    if (wrong == NULL) hone_importer_take_alias(r->importer, &alias);
    return wrong;
}

static const char *read_foreign(const reading *r, hone_view entry)
{
    hone_store_foreign foreign;
    const char *wrong = hone_bundle_foreign(&r->bundle, entry, &foreign);
    if (wrong == NULL) hone_importer_keep(r->importer, &foreign, "kept as it came");
    return wrong;
}

static const struct {
    const char *name;
    const char *(*read)(const reading *r, hone_view entry); // NULL, or what is wrong
} sections[] = {
    {"entries", read_decision},
    {"measurements", read_measured},
    {"aliases", read_alias},
    {"foreign", read_foreign},
};

hone_status hone_read_bundle(hone_importer *importer, const char *origin, hone_view document, hone_error *err)
{
    reading r = {.importer = importer, .origin = origin};
    hone_status status = hone_bundle_open(&importer->texts, document, &r.bundle, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "%s", origin);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        hone_view key, entry;
        hone_json_walk walk = hone_json_walk_of(hone_json_member(document, sections[i].name));
        r.section = sections[i].name;
        for (r.index = 0; hone_json_walk_next(&walk, &key, &entry) && !importer->texts.failed; r.index++) {
            const char *wrong = sections[i].read(&r, entry);
            if (wrong != NULL) refuse(&r, wrong);
        }
    }
    return HONE_OK;
}
