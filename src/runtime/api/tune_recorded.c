// hone_tune_recorded: tunes the calls of a record, from the most to the least frequent; first those without an answer,
// then those whose contest did not decide which kernel is the fastest.
#include "base/error.h"
#include "call/call.h"
#include "runtime/api/batch.h"
#include "runtime/api/work.h"
#include "store/records.h"
#include "tune/result/result.h"

#include <string.h>

static const char where[] = "tune.recorded";

typedef struct queue {
    hone_runtime *rt;
    hone_record_call *items;
    size_t count, capacity;
    size_t elsewhere; // calls of devices that this machine does not have
    bool failed;
} queue;

// The device that a record's fingerprint means, NULL if this machine does not have it. ejkernel's fingerprints are
// short, "cpu|cpu" and "NVIDIA H200|PJRT C API\ncuda 12090", on its page "gpu|NVIDIA H200", and do not distinguish
// CPUs.
const hone_device_info *hone_record_call_device(hone_runtime *rt, const char *fingerprint)
{
    size_t count = 0, kind = strcspn(fingerprint, "|");
    if (strcmp(rt->cpu->fingerprint, fingerprint) == 0) return rt->cpu; // opens no driver
    const bool is_foreign = strchr(fingerprint, ',') == NULL && fingerprint[kind] == '|';
    if (is_foreign && kind == 3 && strncmp(fingerprint, "cpu", kind) == 0) return rt->cpu;
    const hone_device_info *const *devices = hone_runtime_devices(rt, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(devices[i]->fingerprint, fingerprint) == 0) return devices[i];
        if (!is_foreign || devices[i]->backend != HONE_GPU) continue;
        const char *name = devices[i]->name;
        const bool is_gpu = kind == 3 && strncmp(fingerprint, "gpu", kind) == 0;
        if (is_gpu && strcmp(name, fingerprint + kind + 1) == 0) return devices[i];
        if (strlen(name) == kind && strncmp(name, fingerprint, kind) == 0) return devices[i];
    }
    return NULL;
}

static char *copy_or_null(const hone_allocator *allocator, const char *text)
{
    return text == NULL ? NULL : hone_copy_text(allocator, text, strlen(text));
}

static bool add_to_queue(void *ctx, const hone_store_invocation *invocation)
{
    queue *calls = ctx;
    const hone_allocator *allocator = &calls->rt->allocator;
    char name[HONE_NAME_SIZE + 20];
    const hone_device_info *device = hone_record_call_device(calls->rt, invocation->key.device);
    if (device == NULL) {
        calls->elsewhere++;
        return true;
    }
    if (strlen(invocation->key.algorithm) >= HONE_NAME_SIZE || strlen(invocation->key.version) >= 16) return true;
    strcpy(stpcpy(stpcpy(name, invocation->key.algorithm), "@v"), invocation->key.version);
    if (!hone_grow(allocator, &calls->items, &calls->capacity, calls->count + 1, sizeof *calls->items)) {
        calls->failed = true;
        return false;
    }
    hone_record_call *item = &calls->items[calls->count++];
    *item = (hone_record_call){
        .device = device,
        .algorithm = copy_or_null(allocator, name),
        .call = copy_or_null(allocator, invocation->call),
        .spec = copy_or_null(allocator, invocation->key.spec),
        .key = copy_or_null(allocator, invocation->key.key),
        .count = (double)invocation->count,
    };
    calls->failed = calls->failed || item->algorithm == NULL || item->key == NULL;
    return !calls->failed;
}

static void free_queue(queue *calls)
{
    const hone_allocator *allocator = &calls->rt->allocator;
    for (size_t i = 0; i < calls->count; i++) {
        hone_free(allocator, (char *)(uintptr_t)calls->items[i].algorithm);
        hone_free(allocator, (char *)(uintptr_t)calls->items[i].call);
        hone_free(allocator, (char *)(uintptr_t)calls->items[i].spec);
        hone_free(allocator, (char *)(uintptr_t)calls->items[i].key);
    }
    hone_free(allocator, calls->items);
}

// A spec does not name a device, so its call is for the CPU; this puts it on the device.
static hone_status put_on(
    hone_runtime *rt, const hone_device_info *device, hone_signature *signature, hone_call **call, hone_error *err)
{
    hone_buffer text;
    hone_call *there = NULL;
    hone_buffer_init(&text, rt->allocator);
    hone_buffer_format(
        &text, "%s @%s:%d", hone_call_text(*call), hone_device_type_name(device->device.type), (int)device->device.id);
    hone_status status = text.failed
                             ? hone_fail_memory(err, where)
                             : hone_call_parse(rt->allocator, signature, hone_buffer_string(&text), &there, err);
    hone_buffer_deinit(&text);
    if (status != HONE_OK) return status;
    hone_call_release(call);
    *call = there;
    return HONE_OK;
}

// Finds the call of another library's record by its rows; HONE_NOT_FOUND if there is none.
static hone_status find_foreign(
    hone_runtime *rt, const hone_record_call *item, const hone_op **op, hone_call **call, hone_error *err)
{
    const hone_view operation = {item->algorithm, strcspn(item->algorithm, "@")};
    const hone_algorithm_entry *entry = NULL;
    char name[HONE_NAME_SIZE + 20];
    if (item->call != NULL || item->spec == NULL) return HONE_NOT_FOUND;
    hone_status status =
        hone_registry_foreign_call(rt->registry, &rt->allocator, "ejkernel", operation, item->spec, &entry, call, err);
    if (status != HONE_OK) return status;
    snprintf(name, sizeof name, "%s@v%s", entry->name, entry->version);
    return hone_op_get(rt, name, op, err);
}

// An ejkernel record carries ejkernel's version, so an unknown version means the newest.
static hone_status find_own(
    hone_runtime *rt, const hone_record_call *item, const hone_op **op, hone_call **call, hone_error *err)
{
    hone_status status = hone_op_get(rt, item->algorithm, op, err);
    if (status == HONE_NOT_FOUND) {
        char name[HONE_NAME_SIZE + 20];
        strcpy(name, item->algorithm);
        *strstr(name, "@v") = '\0';
        status = hone_op_get(rt, name, op, err);
    }
    if (status != HONE_OK) return status;
    hone_signature *signature = (*op)->algorithm->signature;
    if (item->call != NULL) return hone_call_parse(rt->allocator, signature, item->call, call, err);
    if (item->spec == NULL) return hone_fail(err, HONE_NOT_FOUND, where, "the record holds neither call nor spec");
    return hone_call_from_spec(rt->allocator, signature, item->spec, strlen(item->spec), call, err);
}

hone_status hone_record_call_find(
    hone_runtime *rt, const hone_record_call *item, const hone_op **op, hone_call **call, hone_error *err)
{
    hone_status status = find_foreign(rt, item, op, call, err);
    if (status == HONE_NOT_FOUND) status = find_own(rt, item, op, call, err);
    if (status != HONE_OK || item->call != NULL || item->device == rt->cpu) return status;
    return put_on(rt, item->device, hone_op_signature(*op), call, err);
}

// In the first pass, a call whose answer was left open waits until all calls without an answer have been tuned.
static hone_status tune_found(
    hone_batch *batch, hone_record_call *item, const hone_op *op, const hone_call *call, hone_error *why)
{
    hone_evidence answer;
    double seconds = 0;
    if (item->again_seconds > 0) return hone_batch_take_up(batch, op, call, item->again_seconds, why);
    if (!hone_runtime_is_answered(op, call, &batch->options, &answer) || !hone_batch_is_open(batch, &answer, &seconds))
        return hone_batch_tune(batch, op, call, item->count, HONE_WARM, why);
    item->again_seconds = seconds;
    return HONE_OK;
}

// A call that ejkernel recorded has ejkernel's key, and its label in a program has the same key.
hone_status hone_record_call_alias(
    hone_batch *batch, const hone_record_call *item, const hone_call *call, hone_error *err)
{
    const hone_signature *signature = hone_call_signature(call);
    const char *version = hone_signature_version(signature), *at = strstr(item->algorithm, "@v");
    if (strcmp(item->key, hone_call_key(call)) == 0 && strcmp(at + 2, version) == 0) return HONE_OK;
    const hone_store_alias alias = {
        .scheme = "ejkernel",
        .operation = item->algorithm,
        .foreign_key = item->key,
        .foreign_spec = item->spec,
        .key = {NULL, hone_signature_name(signature), version, hone_call_key(call), hone_call_spec(call)},
    };
    return hone_batch_alias(batch, &alias, call, err);
}

static hone_status tune_item(hone_batch *batch, hone_record_call *item, hone_error *err)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error why = {.message = ""};
    hone_status status = hone_record_call_find(batch->rt, item, &op, &call, &why);
    if (status == HONE_OK) status = tune_found(batch, item, op, call, &why);
    if (status == HONE_OK) status = hone_record_call_alias(batch, item, call, &why);
    if (status != HONE_OK && status != HONE_CANCELLED && status != HONE_OUT_OF_MEMORY) {
        hone_result_note_status(batch->result, status);
        status = hone_result_add_failure(
            batch->result, item->call != NULL ? item->call : item->algorithm, item->key, why.message, err);
    } else if (status != HONE_OK && err != NULL)
        *err = why;
    hone_call_release(&call);
    return status;
}

hone_status hone_tune_recorded(
    hone_runtime *rt, const hone_tune_options *options, hone_result **out_result, hone_error *err)
{
    if (rt == NULL || out_result == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and out_result must not be NULL");
    *out_result = NULL;
    hone_tune_options read;
    hone_status status = hone_tune_options_read(rt, options, &read, err);
    options = &read;
    hone_result *result = NULL;
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = hone_result_create(rt->allocator, rt->cpu, rt, &result, err);
    if (status != HONE_OK) return status;
    queue calls = {.rt = rt};
    status = hone_record_scan(rt, NULL, add_to_queue, &calls, err);
    if (status == HONE_OK && calls.failed) status = hone_fail_memory(err, where);
    if (calls.elsewhere > 0)
        hone_log_write(
            &rt->log, HONE_LOG_INFO, "%zu recorded calls are of devices that are not here, and are tuned there",
            calls.elsewhere);
    hone_batch batch;
    hone_batch_init(&batch, rt, options, calls.count, result);
    for (size_t i = 0; i < calls.count && status == HONE_OK; i++)
        status = tune_item(&batch, &calls.items[i], err);
    if (status == HONE_OK) status = hone_batch_spend_rest(&batch, err);
    for (size_t i = 0; i < calls.count && status == HONE_OK; i++)
        if (calls.items[i].again_seconds > 0) status = tune_item(&batch, &calls.items[i], err);
    hone_batch_deinit(&batch);
    free_queue(&calls);
    return hone_tune_finish(result, status, out_result);
}

// Whether a recorded call is decided ----------------------------------------------------------------------------------

static bool find_verified(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    *(bool *)ctx = decision->verified;
    return !decision->verified;
}

// Whether the stores have a verified decision for a call of another machine. This process cannot know what the chain on
// that machine would answer.
static bool is_decided_there(hone_runtime *rt, const hone_store_key *key)
{
    hone_store *const stores[] = {hone_runtime_store(rt), hone_runtime_system_store(rt)};
    bool is_decided = false;
    for (int i = 0; i < 2 && !is_decided; i++)
        if (stores[i] != NULL)
            (void)!hone_store_scan(stores[i], HONE_RECORD_DECISION, key, find_verified, &is_decided, NULL);
    return is_decided;
}

bool hone_record_is_decided(hone_runtime *rt, const hone_store_invocation *invocation)
{
    if (rt == NULL || invocation == NULL) return false;
    const hone_store_key *key = &invocation->key;
    char name[HONE_NAME_SIZE + 20];
    hone_record_call item = {.algorithm = name, .call = invocation->call, .spec = key->spec};
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_decision decision;
    hone_error why;
    if (rt == NULL || strlen(key->algorithm) >= HONE_NAME_SIZE || strlen(key->version) >= 16 ||
        hone_runtime_discover(rt, &why) != HONE_OK)
        return false;
    item.device = hone_record_call_device(rt, key->device);
    if (item.device == NULL) return is_decided_there(rt, key);
    strcpy(stpcpy(stpcpy(name, key->algorithm), "@v"), key->version);
    const bool is_decided = hone_record_call_find(rt, &item, &op, &call, &why) == HONE_OK &&
                            hone_runtime_is_decided(op, call, &decision, NULL);
    hone_call_release(&call);
    return is_decided;
}
