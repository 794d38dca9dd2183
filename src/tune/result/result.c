#include "tune/result/result.h"

#include "base/assert.h"
#include "base/error.h"
#include "hone/result.h"
#include "store/common/merge.h"
#include "store/ops.h"
#include "tune/result/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "tune.result";

static char *copy(const hone_allocator *allocator, const char *text)
{
    if (text == NULL) text = "";
    return hone_copy_text(allocator, text, strlen(text));
}

hone_status hone_result_new(
    hone_allocator allocator,
    const char *device,
    const char *environment,
    void *owner,
    hone_result **out,
    hone_error *err)
{
    *out = NULL;
    hone_result *result = hone_alloc(&allocator, sizeof *result);
    if (result == NULL) return hone_fail_memory(err, where);
    atomic_init(&result->references, 1);
    result->allocator = allocator;
    result->owner = owner;
    result->device = copy(&allocator, device);
    result->environment = copy(&allocator, environment);
    if (result->device == NULL || result->environment == NULL) {
        hone_result_release(&result);
        return hone_fail_memory(err, where);
    }
    *out = result;
    return HONE_OK;
}

hone_status hone_result_create(
    hone_allocator allocator, const hone_device_info *device, void *owner, hone_result **out, hone_error *err)
{
    hone_buffer environment;
    hone_buffer_init(&environment, allocator);
    hone_environment_json(device, NULL, &environment);
    hone_status status =
        environment.failed
            ? hone_fail_memory(err, where)
            : hone_result_new(allocator, device->fingerprint, hone_buffer_string(&environment), owner, out, err);
    hone_buffer_deinit(&environment);
    return status;
}

hone_status hone_result_of_device(
    hone_result *result,
    const hone_device_info *device,
    hone_result_texts *texts,
    hone_buffer *environment,
    hone_error *err)
{
    if (strcmp(device->fingerprint, result->device) == 0) return HONE_OK;
    hone_environment_json(device, NULL, environment);
    if (environment->failed) return hone_fail_memory(err, where);
    if (result->count > 0) {
        texts->device = device->fingerprint;
        texts->environment = hone_buffer_string(environment);
        return HONE_OK;
    }
    char *fingerprint = copy(&result->allocator, device->fingerprint);
    char *text = copy(&result->allocator, hone_buffer_string(environment));
    if (fingerprint != NULL && text != NULL) {
        hone_free(&result->allocator, result->device);
        hone_free(&result->allocator, result->environment);
        result->device = fingerprint;
        result->environment = text;
        return HONE_OK;
    }
    hone_free(&result->allocator, fingerprint);
    hone_free(&result->allocator, text);
    return hone_fail_memory(err, where);
}

static void free_entry(const hone_allocator *allocator, hone_result_entry *entry)
{
    hone_free(allocator, entry->call);
    hone_free(allocator, entry->spec);
    hone_free(allocator, entry->revision);
    hone_free(allocator, entry->kernels);
    hone_free(allocator, entry->history);
    hone_free(allocator, entry->device);
    hone_free(allocator, entry->environment);
    memset(entry, 0, sizeof *entry);
}

static void free_failure(const hone_allocator *allocator, hone_result_failure *failure)
{
    hone_free(allocator, failure->call);
    hone_free(allocator, failure->key);
    hone_free(allocator, failure->reason);
    memset(failure, 0, sizeof *failure);
}

// The texts of an alias, some of which may be NULL.
enum { ALIAS_TEXTS = 9 };

static void list_alias_texts(hone_store_alias *alias, const char **out[ALIAS_TEXTS])
{
    const char **const texts[ALIAS_TEXTS] = {&alias->scheme,       &alias->operation,  &alias->foreign_key,
                                             &alias->foreign_spec, &alias->key.device, &alias->key.algorithm,
                                             &alias->key.version,  &alias->key.key,    &alias->key.spec};
    memcpy(out, texts, sizeof texts);
}

static void free_alias(const hone_allocator *allocator, hone_store_alias *alias)
{
    const char **texts[ALIAS_TEXTS];
    list_alias_texts(alias, texts);
    for (size_t i = 0; i < ALIAS_TEXTS; i++)
        hone_free(allocator, (char *)(uintptr_t)*texts[i]);
    memset(alias, 0, sizeof *alias);
}

void hone_result_release(hone_result **result)
{
    if (result == NULL) return;
    hone_result *gone = *result;
    *result = NULL;
    hone_assert(gone == NULL || atomic_load(&gone->references) > 0);
    if (gone == NULL || atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) != 1) return;
    const hone_allocator allocator = gone->allocator;
    for (size_t i = 0; i < gone->count; i++)
        free_entry(&allocator, &gone->entries[i]);
    for (size_t i = 0; i < gone->alias_count; i++)
        free_alias(&allocator, &gone->aliases[i].alias);
    for (size_t i = 0; i < gone->failure_count; i++)
        free_failure(&allocator, &gone->failures[i]);
    hone_free(&allocator, gone->entries);
    hone_free(&allocator, gone->aliases);
    hone_free(&allocator, gone->failures);
    hone_free(&allocator, gone->environment);
    hone_free(&allocator, gone->device);
    hone_free(&allocator, gone);
}

size_t hone_result_size(const hone_result *result)
{
    return result != NULL ? result->count : 0;
}

const hone_decision *hone_result_decision(const hone_result *result, size_t index)
{
    return result != NULL && index < result->count ? &result->entries[index].decision : NULL;
}

const char *hone_result_call(const hone_result *result, size_t index)
{
    return result != NULL && index < result->count ? result->entries[index].call : NULL;
}

void *hone_result_owner(const hone_result *result)
{
    return result->owner;
}

// Adding --------------------------------------------------------------------------------------------------------------

static hone_claim claim_of(const hone_decision *decision, const char *revision)
{
    const hone_evidence *evidence = &decision->evidence;
    return (hone_claim){
        .kernel = decision->kernel,
        .platform = hone_platform_name(decision->platform),
        .config = decision->config_json,
        .revision = revision != NULL ? revision : "",
        .verified = decision->verified,
        .samples = evidence->samples,
        .time_ns = evidence->time_ns,
        .low_ns = evidence->low_ns,
        .high_ns = evidence->high_ns,
        .started = evidence->started,
        .runner_up = evidence->runner_up,
        .ratio_low = evidence->ratio_low,
    };
}

// Whether a decision replaces an entry, by the rule of hone_store_merge.
static bool is_better(const hone_decision *coming, const char *revision, const hone_result_entry *old)
{
    const hone_claim there = claim_of(&old->decision, old->revision), claim = claim_of(coming, revision);
    return hone_merge_reason_outcome(hone_merge_rule(&there, &claim)) == HONE_MERGE_TAKEN;
}

const char *hone_result_entry_device(const hone_result *result, const hone_result_entry *entry)
{
    return entry->device[0] ? entry->device : result->device;
}

static bool same_key(const hone_result *result, const hone_result_entry *entry, const hone_result_entry *like)
{
    const hone_decision *decision = &like->decision;
    return strcmp(entry->decision.key, decision->key) == 0 &&
           strcmp(entry->decision.algorithm, decision->algorithm) == 0 &&
           strcmp(entry->decision.version, decision->version) == 0 &&
           entry->decision.evidence.regime == decision->evidence.regime &&
           strcmp(hone_result_entry_device(result, entry), hone_result_entry_device(result, like)) == 0 &&
           (entry->spec[0] == '\0' || like->spec[0] == '\0' || strcmp(entry->spec, like->spec) == 0);
}

static hone_result_entry *find_entry(const hone_result *result, const hone_result_entry *like)
{
    for (size_t i = 0; i < result->count; i++)
        if (same_key(result, &result->entries[i], like)) return &result->entries[i];
    return NULL;
}

static bool copy_entry(
    const hone_allocator *allocator,
    const hone_decision *decision,
    const hone_result_texts *texts,
    hone_result_entry *out)
{
    *out = (hone_result_entry){
        .decision = *decision,
        .call = copy(allocator, texts->call),
        .spec = copy(allocator, texts->spec),
        .revision = copy(allocator, texts->revision),
        .kernels = copy(allocator, texts->kernels),
        .history = copy(allocator, texts->history),
        .device = copy(allocator, texts->device),
        .environment = copy(allocator, texts->environment),
    };
    return out->call != NULL && out->spec != NULL && out->revision != NULL && out->kernels != NULL &&
           out->history != NULL && out->device != NULL && out->environment != NULL;
}

hone_status hone_result_add(
    hone_result *result, const hone_decision *decision, const hone_result_texts *texts, hone_error *err)
{
    const hone_allocator *allocator = &result->allocator;
    hone_assert(decision->kernel[0] != '\0');
    hone_result_entry entry;
    bool copied = copy_entry(allocator, decision, texts, &entry);
    hone_result_entry *old = copied ? find_entry(result, &entry) : NULL;
    bool kept = old != NULL && !is_better(decision, texts->revision, old);
    bool room = copied && (old != NULL ||
                           hone_grow(allocator, &result->entries, &result->capacity, result->count + 1, sizeof entry));
    if (kept || !room) {
        free_entry(allocator, &entry);
        return kept ? HONE_OK : hone_fail_memory(err, where);
    }
    if (old != NULL)
        free_entry(allocator, old);
    else
        old = &result->entries[result->count++];
    *old = entry;
    return HONE_OK;
}

hone_status hone_result_add_failure(
    hone_result *result, const char *call, const char *key, const char *reason, hone_error *err)
{
    const hone_allocator *allocator = &result->allocator;
    hone_result_failure failure = {copy(allocator, call), copy(allocator, key), copy(allocator, reason)};
    bool room =
        failure.call != NULL && failure.key != NULL && failure.reason != NULL &&
        hone_grow(allocator, &result->failures, &result->failure_capacity, result->failure_count + 1, sizeof failure);
    if (!room) {
        free_failure(allocator, &failure);
        return hone_fail_memory(err, where);
    }
    result->failures[result->failure_count++] = failure;
    return HONE_OK;
}

static bool copy_alias(const hone_allocator *allocator, const hone_store_alias *alias, hone_store_alias *out)
{
    const char **texts[ALIAS_TEXTS];
    bool copied = true;
    *out = *alias;
    list_alias_texts(out, texts);
    for (size_t i = 0; i < ALIAS_TEXTS; i++) {
        const char *text = *texts[i];
        if (text != NULL) *texts[i] = copy(allocator, text);
        copied = copied && (text == NULL || *texts[i] != NULL);
    }
    return copied;
}

static hone_result_alias *find_alias(const hone_result *result, const hone_store_alias *like)
{
    for (size_t i = 0; i < result->alias_count; i++) {
        const hone_store_alias *alias = &result->aliases[i].alias;
        if (strcmp(alias->foreign_key, like->foreign_key) == 0 && strcmp(alias->operation, like->operation) == 0 &&
            strcmp(alias->scheme, like->scheme) == 0)
            return &result->aliases[i];
    }
    return NULL;
}

hone_status hone_result_add_alias(
    hone_result *result, const hone_store_alias *alias, const char *entry, hone_error *err)
{
    const hone_allocator *allocator = &result->allocator;
    hone_result_alias coming, *old = find_alias(result, alias);
    snprintf(coming.entry, sizeof coming.entry, "%s", entry);
    bool room =
        copy_alias(allocator, alias, &coming.alias) &&
        (old != NULL ||
         hone_grow(allocator, &result->aliases, &result->alias_capacity, result->alias_count + 1, sizeof coming));
    if (!room) {
        free_alias(allocator, &coming.alias);
        return hone_fail_memory(err, where);
    }
    if (old != NULL)
        free_alias(allocator, &old->alias);
    else
        old = &result->aliases[result->alias_count++];
    *old = coming;
    return HONE_OK;
}

void hone_result_note_status(hone_result *result, hone_status status)
{
    result->status = status;
}

hone_status hone_result_status(const hone_result *result)
{
    return result != NULL ? result->status : HONE_INVALID_ARGUMENT;
}

// Merging and storing -------------------------------------------------------------------------------------------------

static hone_status add_all(hone_result *to, const hone_result *from, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < from->count && status == HONE_OK; i++) {
        const hone_result_entry *entry = &from->entries[i];
        const hone_result_texts texts = {entry->call,    entry->spec,   entry->revision,   entry->kernels,
                                         entry->history, entry->device, entry->environment};
        status = hone_result_add(to, &entry->decision, &texts, err);
    }
    for (size_t i = 0; i < from->alias_count && status == HONE_OK; i++)
        status = hone_result_add_alias(to, &from->aliases[i].alias, from->aliases[i].entry, err);
    for (size_t i = 0; i < from->failure_count && status == HONE_OK; i++) {
        const hone_result_failure *failure = &from->failures[i];
        status = hone_result_add_failure(to, failure->call, failure->key, failure->reason, err);
    }
    return status;
}

hone_status hone_result_merge(const hone_result *a, const hone_result *b, hone_result **out, hone_error *err)
{
    if (a == NULL || b == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a result or out is NULL");
    }
    *out = NULL;
    if (strcmp(a->device, b->device) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "one result is of device '%s', the other of '%s': merge those of one device", a->device, b->device);
    hone_result *both = NULL;
    hone_status status = hone_result_new(a->allocator, a->device, b->environment, a->owner, &both, err);
    if (status == HONE_OK) status = add_all(both, a, err);
    if (status == HONE_OK) status = add_all(both, b, err);
    if (status == HONE_OK)
        *out = both;
    else
        hone_result_release(&both);
    return status;
}

static void fill_row(
    const hone_result *result, const hone_result_entry *entry, const char *evidence, hone_store_decision *out)
{
    const hone_decision *decision = &entry->decision;
    *out = (hone_store_decision){
        .key =
            {hone_result_entry_device(result, entry), decision->algorithm, decision->version, decision->key,
             entry->spec[0] ? entry->spec : NULL},
        .call = entry->call[0] ? entry->call : NULL,
        .kernel = decision->kernel,
        .platform = hone_platform_name(decision->platform),
        .config = decision->config_json[0] ? decision->config_json : "{}",
        .source = hone_source_name(decision->source),
        .revision = entry->revision[0] ? entry->revision : NULL,
        .verified = decision->verified,
        .regime = decision->evidence.regime,
        .time_ns = decision->evidence.time_ns,
        .evidence = evidence,
        .environment = entry->environment[0] ? entry->environment : result->environment,
    };
}

// Puts all evidence into one buffer, with a NUL after each, and fills the rows afterwards, when the buffer moves no
// more.
static hone_status fill_rows(
    const hone_result *result, hone_store_decision *rows, hone_buffer *evidence, hone_error *err)
{
    for (size_t i = 0; i < result->count; i++) {
        hone_evidence_json(&result->entries[i].decision.evidence, evidence);
        hone_buffer_char(evidence, '\0');
    }
    if (evidence->failed) return hone_fail_memory(err, where);
    const char *at = hone_buffer_string(evidence);
    for (size_t i = 0; i < result->count; i++, at += strlen(at) + 1)
        fill_row(result, &result->entries[i], at, &rows[i]);
    return HONE_OK;
}

typedef struct putting {
    const hone_result *result;
    const hone_store_decision *rows;
} putting;

static hone_status put_all(hone_store *store, void *ctx, hone_error *err)
{
    const putting *p = ctx;
    hone_status status = hone_store_put_within(
        store, &(hone_store_batch){.decisions = p->rows, .decision_count = p->result->count}, err);
    for (size_t i = 0; status == HONE_OK && i < p->result->alias_count; i++)
        status = hone_store_put_within(
            store, &(hone_store_batch){.aliases = &p->result->aliases[i].alias, .alias_count = 1}, err);
    return status;
}

hone_status hone_result_store(const hone_result *result, hone_store *store, hone_error *err)
{
    if (result == NULL || store == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the result or the store is NULL");
    if (result->count == 0 && result->alias_count == 0) return HONE_OK;
    hone_buffer evidence;
    hone_buffer_init(&evidence, result->allocator);
    hone_store_decision *rows = hone_alloc_array(&result->allocator, result->count, sizeof *rows);
    hone_status status = rows != NULL ? fill_rows(result, rows, &evidence, err) : hone_fail_memory(err, where);
    if (status == HONE_OK) status = hone_store_transact(store, put_all, &(putting){result, rows}, err);
    hone_free(&result->allocator, rows);
    hone_buffer_deinit(&evidence);
    return status;
}
