// hone's decisions as ejkernel's own entries: under its name of the device, the operation and the key of its labels, in
// the words of the operation's config type. Which words those are is data (the row's "configs", call/foreign.h).
#include "interchange/mapping.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "call/foreign.h"
#include "hone/describe.h"
#include "platforms/platform.h"
#include "store/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "interchange.export";
static const char scheme[] = "ejkernel";
static const char any_cpu[] = "cpu|cpu"; // what ejkernel calls every CPU

// A decision of the store. Texts are the mapping's.
typedef struct decided {
    hone_store_decision row;
    bool is_used; // by an alias, or told of
} decided;

typedef struct mapper {
    const hone_exporter *exporter;
    const hone_foreign *foreign; // NULL: no registry, and so no words
    hone_mapping *out;
    decided *decisions; // sorted by key
    size_t decision_count, decision_capacity;
    hone_store_alias *aliases;
    size_t alias_count, alias_capacity;
    const char **devices; // what ejkernel calls those that it recorded or tuned on, each once
    size_t device_count, device_capacity;
} mapper;

// Reading ------------------------------------------------------------------------------------------------------------

static const char *keep(mapper *m, const char *text)
{
    return text == NULL ? NULL : hone_texts_keep(&m->out->texts, hone_view_of(text));
}

static hone_store_key keep_key(mapper *m, const hone_store_key *key)
{
    return (hone_store_key){
        keep(m, key->device), keep(m, key->algorithm), keep(m, key->version), keep(m, key->key), keep(m, key->spec)};
}

static bool take_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    mapper *m = ctx;
    const hone_allocator *a = &m->out->texts.arena.allocator;
    if (!hone_exporter_wants(m->exporter, row->key.device)) return true;
    m->out->texts.failed |=
        !hone_grow(a, &m->decisions, &m->decision_capacity, m->decision_count + 1, sizeof *m->decisions);
    if (m->out->texts.failed) return false;
    m->decisions[m->decision_count++] = (decided){
        .row = {
            .key = keep_key(m, &row->key),
            .kernel = keep(m, row->kernel),
            .platform = keep(m, row->platform),
            .config = keep(m, row->config),
            .regime = row->regime,
        }};
    return true;
}

static bool take_alias(void *ctx, const hone_store_alias *alias)
{
    mapper *m = ctx;
    const hone_allocator *a = &m->out->texts.arena.allocator;
    m->out->texts.failed |= !hone_grow(a, &m->aliases, &m->alias_capacity, m->alias_count + 1, sizeof *m->aliases);
    if (m->out->texts.failed) return false;
    m->aliases[m->alias_count++] = (hone_store_alias){
        .operation = keep(m, alias->operation),
        .foreign_key = keep(m, alias->foreign_key),
        .key = keep_key(m, &alias->key),
    };
    return true;
}

static bool take_device(mapper *m, const char *device)
{
    const hone_allocator *a = &m->out->texts.arena.allocator;
    for (size_t i = 0; i < m->device_count; i++)
        if (device == NULL || strcmp(m->devices[i], device) == 0) return true;
    if (device == NULL) return true;
    m->out->texts.failed |= !hone_grow(a, &m->devices, &m->device_capacity, m->device_count + 1, sizeof *m->devices);
    if (m->out->texts.failed) return false;
    m->devices[m->device_count++] = keep(m, device);
    return true;
}

static bool take_foreign_device(void *ctx, const hone_store_foreign *foreign)
{
    return take_device(ctx, foreign->device);
}

static bool take_recorded_device(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    mapper *m = ctx;
    hone_buffer name; // of a record, where control characters are escaped
    hone_buffer_init(&name, m->out->texts.arena.allocator);
    hone_text_unescape_controls(&name, invocation->key.device);
    m->out->texts.failed |= name.failed;
    const bool goes_on = take_device(m, hone_buffer_string(&name));
    hone_buffer_deinit(&name);
    return goes_on;
}

static int compare_keys(const hone_store_key *x, const hone_store_key *y)
{
    int order = strcmp(x->key, y->key);
    if (order == 0) order = strcmp(x->algorithm, y->algorithm);
    return order != 0 ? order : strcmp(x->version, y->version);
}

// Of one device the decision that calls of the regime warm get stands first.
static int compare_decisions(const void *a, const void *b)
{
    const hone_store_decision *x = &((const decided *)a)->row, *y = &((const decided *)b)->row;
    int order = compare_keys(&x->key, &y->key);
    if (order == 0) order = strcmp(x->key.device, y->key.device);
    return order != 0 ? order : (int)x->regime - (int)y->regime;
}

// The first decision that is not before a key.
static size_t find_first(const mapper *m, const hone_store_key *key)
{
    size_t low = 0, high = m->decision_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_keys(&m->decisions[middle].row.key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Words --------------------------------------------------------------------------------------------------------------

// The part of a config that a path of dots leads to, made where it is null; *out_name is the last part of the path.
static json_t *find_place(json_t *config, const char *path, const char **out_name)
{
    const char *dot = strchr(path, '.');
    *out_name = path;
    if (dot == NULL) return config;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    json_t *inner = json_object_get(config, name);
    if (!json_is_object(inner) && json_object_set_new(config, name, json_object()) == 0)
        inner = json_object_get(config, name);
    *out_name = dot + 1;
    return inner;
}

// The field of ejkernel's config that a word of hone's config is; NULL: none.
static const char *find_field(const json_t *words, const char *word)
{
    const char *path;
    const json_t *same;
    json_object_foreach((json_t *)(uintptr_t)words, path, same)
    {
        for (size_t i = 0; i < json_array_size(same); i++)
            if (strcmp(json_string_value(json_array_get(same, i)), word) == 0) return path;
    }
    return NULL;
}

static bool take_words(const json_t *words, const char *text, json_t *config)
{
    json_t *ours = json_loads(text, 0, NULL), *value;
    const char *word, *name;
    bool any = false;
    json_object_foreach(ours, word, value)
    {
        const char *path = json_is_integer(value) ? find_field(words, word) : NULL;
        json_t *place = path == NULL ? NULL : find_place(config, path, &name);
        any |= place != NULL && json_object_set(place, name, value) == 0;
    }
    json_decref(ours);
    return any;
}

// A kernel of the host's platform is hone's own: ejkernel has no words for its blocks, and reaches it under the
// platform that hone.ejkernel.register() puts it at.
static const char *make_config(
    mapper *m, const json_t *configs, const hone_store_decision *row, bool *out_words, const char **out_reason)
{
    const json_t *place = json_object_get(json_object_get(configs, "platforms"), row->platform);
    *out_words = false;
    if (place == NULL) {
        *out_reason = hone_texts_format(&m->out->texts, "ejkernel has no kernel of platform %s for it", row->platform);
        return NULL;
    }
    json_t *config = json_deep_copy(json_object_get(configs, "default"));
    m->out->texts.failed |= config == NULL || json_object_update(config, (json_t *)(uintptr_t)place) != 0;
    if (strcmp(row->platform, hone_platform_name(hone_platform_host())) != 0)
        *out_words = take_words(json_object_get(configs, "words"), row->config, config);
    char *text = json_dumps(config, JSON_ENSURE_ASCII);
    const char *kept = keep(m, text);
    m->out->texts.failed |= text == NULL;
    free(text);
    json_decref(config);
    return kept;
}

// Entries ------------------------------------------------------------------------------------------------------------

// Whether the device of a fingerprint, "cuda|NVIDIA%20H200,sm_90,...", is what ejkernel calls "NVIDIA H200|VERSION".
static bool is_of_kind(const char *fingerprint, const char *theirs)
{
    const char *at = strchr(fingerprint, '|');
    if (at == NULL) return false;
    for (at++; *at != '\0' && *at != ','; theirs++) {
        unsigned code = (unsigned char)*at;
        const bool is_escape = *at == '%' && sscanf(at + 1, "%2x", &code) == 1;
        at += is_escape ? 3 : 1;
        if (*theirs == '|' || (unsigned char)*theirs != code) return false;
    }
    return *theirs == '|';
}

// A GPU is what the options call it, else what ejkernel itself called it where it recorded or tuned.
static const char *name_gpu(const mapper *m, const char *device, const char **out_reason)
{
    const char *found = m->exporter->options->foreign_device;
    *out_reason = "what ejkernel calls this device is not known: --foreign-device 'KIND|VERSION' says it";
    for (size_t i = 0; i < m->device_count && m->exporter->options->foreign_device == NULL; i++) {
        if (!is_of_kind(device, m->devices[i])) continue;
        *out_reason = "ejkernel has had several names for this device: --foreign-device 'KIND|VERSION' says which";
        if (found != NULL) return NULL;
        found = m->devices[i];
    }
    return found;
}

// ejkernel's name of the device; NULL: *out_reason says why it has none.
static const char *name_device(const mapper *m, const char *device, const char **out_reason)
{
    const hone_exporter *w = m->exporter;
    if (strncmp(device, "cpu|", 4) != 0) return name_gpu(m, device, out_reason);
    *out_reason = "it is of another CPU, and ejkernel calls all of them cpu|cpu: --device FINGERPRINT exports it";
    const bool is_wanted =
        w->options->device != NULL || w->options->device_count > 0 || w->here == NULL || strcmp(device, w->here) == 0;
    return is_wanted ? any_cpu : NULL;
}

static void add_entry(mapper *m, const hone_store_alias *alias, const json_t *configs, const hone_store_decision *row)
{
    hone_mapping *out = m->out;
    const char *reason = NULL;
    bool words = false;
    const char *device = name_device(m, row->key.device, &reason);
    const char *config = device == NULL ? NULL : make_config(m, configs, row, &words, &reason);
    if (config == NULL) {
        hone_exporter_leave_out(m->exporter, row, reason);
        return;
    }
    out->texts.failed |=
        !hone_grow(&out->texts.arena.allocator, &out->items, &out->capacity, out->count + 1, sizeof *out->items);
    if (out->texts.failed) return;
    out->items[out->count++] = (hone_mapped){
        .entry =
            {.scheme = scheme,
             .operation = alias->operation,
             .device = keep(m, device),
             .foreign_key = alias->foreign_key,
             .text = config,
             .origin = keep(m, json_string_value(json_object_get(configs, "file")))},
        .has_words = words,
    };
}

static bool add_decisions(
    mapper *m, const hone_store_alias *alias, const char *call_key, const json_t *configs, const hone_foreign_row *row)
{
    const hone_store_key key = {NULL, alias->key.algorithm, alias->key.version, call_key, NULL};
    const char *last = "";
    bool any = false;
    for (size_t i = find_first(m, &key); i < m->decision_count; i++) {
        decided *found = &m->decisions[i];
        if (compare_keys(&found->row.key, &key) != 0) break;
        const bool is_first = strcmp(last, found->row.key.device) != 0;
        last = found->row.key.device;
        found->is_used = any = true;
        if (is_first && configs != NULL) add_entry(m, alias, configs, &found->row);
        if (is_first && configs == NULL)
            hone_exporter_leave_out(
                m->exporter, &found->row,
                m->foreign == NULL ? "no runtime was given that knows ejkernel's operations"
                : row == NULL      ? "ejkernel's operation has no row in hone"
                                   : "its row has no configs of ejkernel's");
    }
    return any;
}

// The key of the call's bucket; NULL: it has none, or is no call of an algorithm that is here.
static const char *find_bucket(mapper *m, const hone_store_key *key)
{
    const hone_allocator a = m->out->texts.arena.allocator;
    const hone_algorithm_entry *algorithm =
        m->exporter->registry == NULL ? NULL : hone_registry_find(m->exporter->registry, key->algorithm, key->version);
    hone_call *call = NULL, *bucket = NULL;
    if (algorithm == NULL || key->spec == NULL) return NULL;
    if (hone_call_from_spec(a, algorithm->signature, key->spec, strlen(key->spec), &call, NULL) == HONE_OK)
        (void)!hone_call_bucket(call, true, &bucket, NULL);
    const char *found = bucket == NULL ? NULL : keep(m, hone_call_key(bucket));
    hone_call_release(&bucket);
    hone_call_release(&call);
    return found;
}

static void map_alias(mapper *m, const hone_store_alias *alias)
{
    const char *at = strstr(alias->operation, "@v");
    const hone_view name = {alias->operation, at == NULL ? strlen(alias->operation) : (size_t)(at - alias->operation)};
    const hone_foreign_row *row = m->foreign == NULL ? NULL : hone_foreign_find(m->foreign, scheme, name);
    while (row != NULL && row->configs == NULL && row->older != NULL)
        row = row->older;
    const json_t *configs = row == NULL ? NULL : row->configs;
    if (add_decisions(m, alias, alias->key.key, configs, row)) return;
    const char *bucket = find_bucket(m, &alias->key);
    if (bucket != NULL) (void)add_decisions(m, alias, bucket, configs, row);
}

static int compare_entries(const void *a, const void *b)
{
    const hone_store_foreign *x = &((const hone_mapped *)a)->entry, *y = &((const hone_mapped *)b)->entry;
    int order = strcmp(x->operation, y->operation);
    if (order == 0) order = strcmp(x->foreign_key, y->foreign_key);
    return order != 0 ? order : strcmp(x->device, y->device);
}

hone_mapped *hone_mapping_find(const hone_mapping *mapping, const hone_store_foreign *like)
{
    const hone_mapped key = {.entry = *like};
    if (like->device == NULL || mapping->count == 0) return NULL;
    return bsearch(&key, mapping->items, mapping->count, sizeof key, compare_entries);
}

static void map_all(mapper *m)
{
    if (m->decision_count > 0) qsort(m->decisions, m->decision_count, sizeof *m->decisions, compare_decisions);
    for (size_t i = 0; i < m->alias_count && !m->out->texts.failed; i++)
        map_alias(m, &m->aliases[i]);
    for (size_t i = 0; i < m->decision_count; i++)
        if (!m->decisions[i].is_used)
            hone_exporter_leave_out(
                m->exporter, &m->decisions[i].row,
                "no call of ejkernel's is known to be it (hone offline and hone tune --recorded note them)");
    if (m->out->count > 0) qsort(m->out->items, m->out->count, sizeof *m->out->items, compare_entries);
}

hone_status hone_map_ejkernel(const hone_exporter *exporter, hone_mapping *out, hone_error *err)
{
    mapper m = {.exporter = exporter, .out = out};
    *out = (hone_mapping){.texts = {.arena = {.allocator = hone_allocator_system()}}};
    hone_status status = HONE_OK;
    if (exporter->registry != NULL) status = hone_registry_foreign(exporter->registry, &m.foreign, err);
    if (status == HONE_OK)
        status = hone_store_scan(exporter->store, HONE_RECORD_DECISION, NULL, take_decision, &m, err);
    if (status == HONE_OK) status = hone_store_aliases(exporter->store, scheme, take_alias, &m, err);
    if (status == HONE_OK) status = hone_store_foreigns(exporter->store, scheme, take_foreign_device, &m, err);
    if (status == HONE_OK)
        status = hone_store_scan(exporter->store, HONE_RECORD_INVOCATION, NULL, take_recorded_device, &m, err);
    if (status == HONE_OK && !out->texts.failed) map_all(&m);
    if (status == HONE_OK && out->texts.failed) status = hone_fail_memory(err, where);
    hone_free(&out->texts.arena.allocator, m.decisions);
    hone_free(&out->texts.arena.allocator, m.aliases);
    hone_free(&out->texts.arena.allocator, m.devices);
    return status;
}

void hone_mapping_deinit(hone_mapping *mapping)
{
    hone_free(&mapping->texts.arena.allocator, mapping->items);
    hone_arena_destroy(&mapping->texts.arena);
}
