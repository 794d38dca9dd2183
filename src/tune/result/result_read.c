// Reads the result document (formats.md), completely or not at all.
#include "tune/result/result.h"

#include "base/error.h"
#include "base/hash.h"
#include "config/chain.h"
#include "registry/names.h"
#include "store/records.h"
#include "tune/result/bundle.h"

#include <string.h>

static const char where[] = "tune.result";

typedef struct reading {
    hone_bundle bundle;
    hone_registry *registry;
    hone_result *result;
    size_t index; // of the entry, for messages
    hone_error *err;
} reading;

static hone_status fail_entry(const reading *r, const char *what)
{
    return hone_fail(r->err, HONE_CORRUPT, where, "entries[%zu]: %s", r->index, what);
}

// Copies the texts of an entry for which a decision has fields.
static hone_status copy_texts(const reading *r, const hone_store_decision *row, hone_decision *out)
{
    const struct {
        const char *name, *text;
        char *out;
        size_t size;
    } texts[] = {
        {"algorithm", row->key.algorithm, out->algorithm, sizeof out->algorithm},
        {"version", row->key.version, out->version, sizeof out->version},
        {"key", row->key.key, out->key, sizeof out->key},
        {"kernel", row->kernel, out->kernel, sizeof out->kernel},
        {"config", row->config, out->config_json, sizeof out->config_json},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t size = texts[i].text == NULL ? 0 : strlen(texts[i].text);
        if (size == 0 || size >= texts[i].size)
            return hone_fail(
                r->err, HONE_CORRUPT, where, "entries[%zu].%s: a text of 1 to %zu bytes is expected", r->index,
                texts[i].name, texts[i].size - 1);
        memcpy(texts[i].out, texts[i].text, size + 1);
    }
    return HONE_OK;
}

// Makes the decision of an entry. The config stays a text: it is checked against the registered kernels when it is
// served. A contest has measured a time, so time_ns must be above 0.
static hone_status make_decision(
    const reading *r, const hone_store_decision *row, const hone_evidence *evidence, hone_decision *out)
{
    *out = (hone_decision){.evidence = *evidence, .verified = row->verified};
    out->evidence.regime = row->regime;
    if (row->time_ns <= 0) return fail_entry(r, "evidence.time_ns: more than 0 is expected");
    hone_status status = copy_texts(r, row, out);
    if (status != HONE_OK) return status;
    (void)hone_source_by_name(row->source, &out->source); // the bundle has checked the name
    hone_error why = {.message = ""};
    return hone_platform_parse(row->platform, &out->platform, &why) == HONE_OK ? HONE_OK : fail_entry(r, why.message);
}

// The text; NULL if the document has the same.
static const char *unless(const char *text, const char *of_document)
{
    return text == NULL || strcmp(text, of_document) == 0 ? NULL : text;
}

static hone_status keep_entry(
    const reading *r, const hone_store_decision *row, const hone_decision *decision, const char *kernels)
{
    const hone_result_texts texts = {
        .call = row->call,
        .spec = row->key.spec,
        .revision = row->revision,
        .kernels = kernels,
        .device = unless(row->key.device, r->result->device),
        .environment = unless(row->environment, r->result->environment),
    };
    return hone_result_add(r->result, decision, &texts, r->err);
}

static hone_status read_entry(const reading *r, hone_view entry)
{
    hone_store_decision row;
    hone_evidence evidence;
    hone_decision decision;
    const char *wrong = hone_bundle_decision(&r->bundle, entry, &row, &evidence);
    if (r->bundle.texts->failed) return hone_fail_memory(r->err, where);
    if (wrong != NULL) return fail_entry(r, wrong);
    hone_error why = {.message = ""};
    hone_status status = hone_bundle_check_decision(r->registry, &row, &why);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(r->err, where);
    if (status != HONE_OK) return fail_entry(r, why.message);
    status = make_decision(r, &row, &evidence, &decision);
    if (status != HONE_OK) return status;
    hone_view kernels = hone_json_member(hone_view_of(row.evidence), "kernels");
    const char *best = hone_json_is_array(kernels) ? hone_texts_keep(r->bundle.texts, kernels) : NULL;
    if (r->bundle.texts->failed) return hone_fail_memory(r->err, where);
    return keep_entry(r, &row, &decision, best);
}

static hone_status read_failure(const reading *r, hone_view failed)
{
    const hone_bundle *bundle = &r->bundle;
    const char *call = hone_bundle_text(bundle, failed, "call"), *key = hone_bundle_text(bundle, failed, "key"),
               *reason = hone_bundle_text(bundle, failed, "reason");
    if (bundle->texts->failed) return hone_fail_memory(r->err, where);
    return hone_result_add_failure(r->result, call, key, reason, r->err);
}

static hone_status read_alias(const reading *r, hone_view item)
{
    hone_store_alias alias;
    const char *wrong = hone_bundle_alias(&r->bundle, item, &alias);
    if (r->bundle.texts->failed) return hone_fail_memory(r->err, where);
    hone_error why = {.message = ""};
    const hone_status checked = wrong != NULL ? HONE_OK : hone_bundle_check_alias(r->registry, &alias, &why);
    if (checked == HONE_OUT_OF_MEMORY) return hone_fail_memory(r->err, where);
    if (checked != HONE_OK) wrong = why.message;
    if (wrong != NULL) return hone_fail(r->err, HONE_CORRUPT, where, "aliases[%zu]: %s", r->index, wrong);
    const char *entry = hone_bundle_text(&r->bundle, item, "entry");
    if (r->bundle.texts->failed) return hone_fail_memory(r->err, where);
    return hone_result_add_alias(r->result, &alias, entry != NULL ? entry : alias.key.key, r->err);
}

static hone_status read_list(reading *r, const char *name, hone_status (*read)(const reading *r, hone_view item))
{
    hone_view key, item;
    hone_status status = HONE_OK;
    hone_json_walk walk = hone_json_walk_of(hone_json_member(r->bundle.document, name));
    for (r->index = 0; status == HONE_OK && hone_json_walk_next(&walk, &key, &item); r->index++)
        status = read(r, item);
    return status;
}

static hone_status read_document(
    hone_texts *texts, hone_view document, hone_registry *registry, void *owner, hone_result **out, hone_error *err)
{
    reading r = {.registry = registry, .err = err};
    hone_status status = hone_bundle_open(texts, document, &r.bundle, err);
    if (status == HONE_OK && texts->failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK && (r.bundle.device == NULL || r.bundle.device[0] == '\0'))
        status = hone_fail(err, HONE_CORRUPT, where, "device: the fingerprint, a text, is expected");
    if (status == HONE_OK)
        status = hone_result_new(texts->arena.allocator, r.bundle.device, r.bundle.environment, owner, &r.result, err);
    if (status == HONE_OK) status = read_list(&r, "entries", read_entry);
    if (status == HONE_OK) status = read_list(&r, "aliases", read_alias);
    if (status == HONE_OK) status = read_list(&r, "failed", read_failure);
    if (status == HONE_OK)
        *out = r.result;
    else
        hone_result_release(&r.result);
    return status;
}

hone_status hone_result_read(
    hone_allocator allocator,
    hone_registry *registry,
    void *owner,
    const char *json,
    size_t size,
    hone_result **out,
    hone_error *err)
{
    hone_texts texts = {.arena = {.allocator = allocator}};
    hone_view document;
    *out = NULL;
    hone_status status = hone_json_text_check((hone_view){json, size}, HONE_JSON_STRICT, &document, err);
    if (status == HONE_OK) status = read_document(&texts, document, registry, owner, out, err);
    hone_arena_destroy(&texts.arena);
    return status;
}
