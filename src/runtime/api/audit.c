// hone_tune_audit on top of the tuner: selects the choices to measure, and judges their figures.
#include "runtime/api/audit.h"
#include "base/error.h"
#include "hone/offline.h"
#include "tune/wire/message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "tune.audit";
static const double default_seconds = 5;
enum { MOST_EARLIER = 4 };

// Choices -------------------------------------------------------------------------------------------------------------

typedef struct collecting {
    hone_runtime *rt;
    hone_audit *audit;
    const hone_device_info *device;
    bool failed;
} collecting;

static char *copy_or_null(const hone_allocator *allocator, const char *text)
{
    return text == NULL ? NULL : hone_copy_text(allocator, text, strlen(text));
}

static void fill_stored(hone_audited *out, const hone_store_decision *row)
{
    snprintf(out->algorithm, sizeof out->algorithm, "%s", row->key.algorithm);
    snprintf(out->version, sizeof out->version, "%s", row->key.version);
    snprintf(out->key, sizeof out->key, "%s", row->key.key);
    snprintf(out->kernel, sizeof out->kernel, "%s", row->kernel);
    snprintf(out->config, sizeof out->config, "%s", row->config);
    out->regime = row->regime;
    out->stored_ns = row->time_ns;
}

static bool add_choice(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    collecting *c = ctx;
    hone_audit *audit = c->audit;
    if (!hone_grow(&audit->allocator, &audit->items, &audit->capacity, audit->count + 1, sizeof *audit->items)) {
        c->failed = true;
        return false;
    }
    hone_audit_item *item = &audit->items[audit->count++];
    memset(item, 0, sizeof *item);
    item->device = c->device;
    item->call = copy_or_null(&audit->allocator, row->call);
    item->spec = copy_or_null(&audit->allocator, row->key.spec);
    hone_audited *audited = &item->audited;
    audited->call = item->call;
    fill_stored(audited, row);
    hone_error why = {.message = ""};
    hone_status status = hone_decision_from_store(c->rt, c->device, row, &item->decision, &why);
    audited->served = status == HONE_OK;
    hone_words_copy(audited->reason, sizeof audited->reason, why.message);
    snprintf(audited->changed, sizeof audited->changed, "%s", audited->served ? item->decision.changed : "");
    c->failed = status == HONE_OUT_OF_MEMORY || (row->call != NULL && item->call == NULL) ||
                (row->key.spec != NULL && item->spec == NULL);
    return !c->failed;
}

static hone_status collect(collecting *c, const hone_store_key *filter, hone_error *err)
{
    hone_status status = hone_store_scan(hone_runtime_store(c->rt), HONE_RECORD_DECISION, filter, add_choice, c, err);
    return c->failed ? hone_fail_memory(err, where) : status;
}

static hone_status collect_all(collecting *c, hone_error *err)
{
    hone_status status = hone_runtime_wake(c->rt, err);
    for (size_t i = 0; i < c->rt->all.count && status == HONE_OK; i++) {
        c->device = c->rt->all.devices[i];
        status = collect(c, &(hone_store_key){.device = c->device->fingerprint}, err);
    }
    return status;
}

static hone_status collect_key(collecting *c, const hone_op *op, const hone_call *call, hone_error *err)
{
    const hone_store_key key = {
        c->device->fingerprint, op->algorithm->name, op->algorithm->version, hone_call_key(call), NULL};
    return collect(c, &key, err);
}

// The answer of a call is stored under its own key or that of a stand-in.
static hone_status collect_call(collecting *c, const char *text, hone_error *err)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_request request = {.rt = NULL};
    size_t before = c->audit->count;
    hone_status status = hone_call_of_label(c->rt, text, &op, &call, err);
    if (status == HONE_OK) status = hone_request_init(&request, op, call, NULL, err);
    if (status == HONE_OK) {
        c->device = request.device;
        for (size_t i = 0; i < request.stand_ins.count && status == HONE_OK && c->audit->count == before; i++)
            status = collect_key(c, op, request.stand_ins.calls[i], err);
    }
    if (request.rt != NULL) hone_request_deinit(&request);
    hone_call_release(&call);
    if (status != HONE_OK || c->audit->count > before) return status;
    return hone_fail(err, HONE_NOT_FOUND, where, "%s: the store has no decision: hone tune makes one", text);
}

static hone_status collect_choices(collecting *c, const char *const *calls, size_t count, hone_error *err)
{
    if (hone_runtime_store(c->rt) == NULL)
        return hone_fail(err, HONE_NOT_FOUND, where, "nothing to audit: %s", hone_runtime_store_reason(c->rt));
    hone_status status = count == 0 ? collect_all(c, err) : HONE_OK;
    for (size_t i = 0; i < count && status == HONE_OK; i++)
        status = collect_call(c, calls[i], err);
    return status;
}

// Measuring -----------------------------------------------------------------------------------------------------------

static hone_status find_call(
    hone_runtime *rt, const hone_audit_item *item, const hone_op **op, hone_call **call, hone_error *err)
{
    char name[sizeof item->audited.algorithm + sizeof item->audited.version + 4];
    snprintf(name, sizeof name, "%s@v%s", item->audited.algorithm, item->audited.version);
    if (item->call == NULL && item->spec == NULL)
        return hone_fail(err, HONE_NOT_FOUND, where, "its record has neither a call text nor a spec");
    hone_status status = hone_op_get(rt, name, op, err);
    if (status != HONE_OK) return status;
    hone_signature *signature = (*op)->algorithm->signature;
    // The call's text also has the device and every scalar, but it is only for people to read: the key decides whether
    // it is the right call.
    if (item->call != NULL) status = hone_call_parse(rt->allocator, signature, item->call, call, err);
    if (item->spec == NULL || (*call != NULL && strcmp(hone_call_key(*call), item->audited.key) == 0)) return status;
    hone_call_release(call);
    status = hone_call_from_spec(rt->allocator, signature, item->spec, strlen(item->spec), call, err);
    if (status == HONE_OK && item->call != NULL)
        hone_log_write(
            &rt->log, HONE_LOG_WARNING, "%s %s: its call text, %s, is another call's: %s is looked at", name,
            item->audited.key, item->call, hone_call_text(*call));
    return status;
}

// A program that follows a lock file keeps using the kernel that the file names.
static void tell_of_lock(const hone_runtime *rt, hone_audit_item *item)
{
    hone_audited *audited = &item->audited;
    const hone_lock_line *line =
        rt->lock == NULL
            ? NULL
            : hone_lock_find(rt->lock, audited->algorithm, audited->version, audited->key, item->device->fingerprint);
    if (line != NULL && strcmp(line->kernel, audited->kernel) == 0)
        snprintf(audited->pinned, sizeof audited->pinned, "%.200s:%u", rt->lock_path, line->number);
}

// Removes the choice: the call that it is stored for is decided by the next best candidate from now on, or has no
// decision.
static void take_back(hone_runtime *rt, hone_audit_item *item, const hone_call *call, const hone_decision *next)
{
    char reason[400];
    hone_error why = {.message = ""};
    hone_audited *audited = &item->audited;
    snprintf(reason, sizeof reason, "an audit found it %s: %s", hone_failure_name(audited->failure), audited->reason);
    hone_status status = hone_decision_take_back(
        rt, hone_runtime_store(rt), item->device, call, &item->decision, item->spec,
        next->kernel[0] != '\0' ? next : NULL, reason, &why);
    audited->taken_back = status == HONE_OK;
    if (status == HONE_OK) hone_runtime_doubt(rt, item->device, hone_call_spec(call), &item->decision);
    if (status == HONE_OK) return;
    audited->next_kernel[0] = '\0';
    hone_log_write(
        &rt->log, HONE_LOG_WARNING, "%s: %s was rejected by an audit and is not taken back: %s", hone_call_text(call),
        audited->kernel, why.message);
    atomic_fetch_add(&rt->unstored, 1);
}

// Calls for which the item's kernel was measured before, the latest first.
typedef struct earlier {
    hone_call *calls[MOST_EARLIER];
    size_t count;
} earlier;

static bool is_of_kernel(const hone_audit_item *a, const hone_audit_item *b)
{
    return a->audited.served && a->device == b->device && strcmp(a->audited.algorithm, b->audited.algorithm) == 0 &&
           strcmp(a->audited.version, b->audited.version) == 0 && strcmp(a->audited.kernel, b->audited.kernel) == 0;
}

// Calls that cannot be reconstructed are skipped.
static void find_earlier(hone_runtime *rt, const hone_audit *audit, const hone_audit_item *item, earlier *out)
{
    out->count = 0;
    for (size_t i = (size_t)(item - audit->items); i-- > 0 && out->count < MOST_EARLIER;) {
        const hone_audit_item *one = &audit->items[i];
        const hone_op *op = NULL;
        hone_call *call = NULL;
        if (is_of_kernel(one, item) && find_call(rt, one, &op, &call, NULL) == HONE_OK && call != NULL)
            out->calls[out->count++] = call;
        else
            hone_call_release(&call);
    }
}

static hone_status measure(
    hone_runtime *rt,
    hone_audit_item *item,
    const hone_op *op,
    const hone_call *call,
    const earlier *before,
    double threshold,
    const hone_tune_options *options,
    hone_error *err)
{
    hone_tune_environment environment;
    hone_permit permit;
    hone_decision next = {.kernel = ""};
    const hone_permit_environment permits = hone_runtime_permit_environment(rt);
    hone_status status = hone_runtime_contest_environment(rt, item->device, true, &environment, err);
    if (status == HONE_OK) status = hone_permit_begin_device(&permit, &permits, item->device, call, options, err);
    if (status != HONE_OK) return status;
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    const hone_contest_request request = {&environment, op->algorithm, call, options};
    hone_thread_self.depth++;
    status = hone_audit_run(
        &request, (const hone_call *const *)before->calls, before->count, &item->decision, threshold, &item->audited,
        &next, err);
    hone_thread_self.depth--;
    hone_registry_leave(&reader);
    hone_permit_end_measuring(&permit);
    if (status != HONE_OK || !hone_audit_takes_back(item->audited.failure)) return status;
    tell_of_lock(rt, item);
    if (!options->no_store) take_back(rt, item, call, &next);
    return HONE_OK;
}

// Whether the failure concerns one call alone: it is reported for that call, and the audit continues.
static bool is_of_the_call(hone_status status)
{
    return status == HONE_NOT_FOUND || status == HONE_UNSUPPORTED || status == HONE_INVALID_ARGUMENT ||
           status == HONE_KERNEL_FAILED;
}

static hone_status audit_item(
    hone_runtime *rt, const hone_audit *audit, hone_audit_item *item, const hone_tune_options *given, hone_error *err)
{
    earlier before;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error why = {.message = ""};
    hone_tune_options options = *given;
    options.regime = item->audited.regime;
    hone_status status = find_call(rt, item, &op, &call, &why);
    const bool is_known = status == HONE_OK;
    find_earlier(rt, audit, item, &before);
    if (is_known) status = measure(rt, item, op, call, &before, audit->threshold, &options, &why);
    for (size_t i = 0; i < before.count; i++)
        hone_call_release(&before.calls[i]);
    hone_call_release(&call);
    if (is_of_the_call(status)) {
        // The kernel may still be correct if only the arguments to run it with are not known.
        item->audited.no_call = !is_known;
        item->audited.failure = is_known ? HONE_FAILURE_UNSUPPORTED : HONE_FAILURE_NONE;
        hone_words_copy(item->audited.reason, sizeof item->audited.reason, why.message);
        return HONE_OK;
    }
    if (status != HONE_OK && err != NULL) *err = why;
    return status;
}

bool hone_audit_passes(const hone_audited *audited, double threshold)
{
    if (!audited->served) return true;
    if (audited->failure != HONE_FAILURE_NONE || audited->no_call) return false;
    bool regrets = audited->regret_low > threshold;
    bool drifted =
        audited->changed[0] != '\0' && audited->stored_ns > 0 && audited->low_ns > (1 + threshold) * audited->stored_ns;
    return !regrets && !drifted;
}

// Drops the items that were not measured, so that they are not reported.
static void forget_from(hone_audit *audit, size_t first)
{
    for (size_t i = first; i < audit->count; i++) {
        hone_free(&audit->allocator, audit->items[i].call);
        hone_free(&audit->allocator, audit->items[i].spec);
    }
    audit->count = first;
}

static hone_status look(
    hone_runtime *rt, const hone_audit *audit, size_t index, const hone_tune_options *options, hone_error *err)
{
    hone_audit_item *item = &audit->items[index];
    hone_status status = item->audited.served ? audit_item(rt, audit, item, options, err) : HONE_OK;
    if (status == HONE_OK) item->audited.passed = hone_audit_passes(&item->audited, audit->threshold);
    return status;
}

// Measures slow choices again after all others. A neighbour process that takes one processor for a while makes every
// config with two threads look slow; a choice that really is slow is slow later too.
static hone_status look_again(
    hone_runtime *rt, const hone_audit *audit, const hone_tune_options *given, hone_error *err)
{
    hone_tune_options options = *given;
    hone_status status = HONE_OK;
    options.seed = given->seed != 0 ? ~given->seed : 0;
    for (size_t i = 0; i < audit->count && status == HONE_OK; i++) {
        const hone_audited *audited = &audit->items[i].audited;
        const bool is_slow = !audited->passed && audited->failure == HONE_FAILURE_NONE && !audited->no_call;
        if (is_slow) status = look(rt, audit, i, &options, err);
    }
    return status;
}

static hone_status audit_all(hone_runtime *rt, hone_audit *audit, const hone_tune_options *options, hone_error *err)
{
    for (size_t i = 0; i < audit->count; i++) {
        hone_status status = look(rt, audit, i, options, err);
        if (status == HONE_CANCELLED) forget_from(audit, i);
        if (status != HONE_OK) return status;
    }
    return look_again(rt, audit, options, err);
}

static hone_status read_options(
    const hone_runtime *rt, double threshold, const hone_tune_options *given, hone_tune_options *out, hone_error *err)
{
    if (!(threshold >= 0) || !isfinite(threshold))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the threshold is %g, expected a share of 0 or more: .05 is 5 %%",
            threshold);
    hone_status status = hone_tune_options_read(rt, given, out, err);
    if (status == HONE_OK && out->seconds == 0) out->seconds = default_seconds;
    // These options would exclude the choice itself, and an earlier failure must not prevent a new measurement.
    out->kernel = out->platform = NULL;
    out->fresh = out->keep_existing = false;
    return status;
}

hone_status hone_tune_audit(
    hone_runtime *rt,
    const char *const *calls,
    size_t count,
    double threshold,
    const hone_tune_options *options,
    hone_audit **out,
    hone_error *err)
{
    if (rt == NULL || out == NULL || (count > 0 && calls == NULL))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime, the calls and out must not be NULL");
    *out = NULL;
    hone_tune_options read;
    hone_status status = read_options(rt, threshold, options, &read, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    hone_audit *audit = hone_alloc(&rt->allocator, sizeof *audit);
    if (audit == NULL) return hone_fail_memory(err, where);
    audit->allocator = rt->allocator;
    audit->threshold = threshold;
    collecting c = {.rt = rt, .audit = audit};
    status = collect_choices(&c, calls, count, err);
    if (status == HONE_OK) status = audit_all(rt, audit, &read, err);
    if (status == HONE_OK || (status == HONE_CANCELLED && audit->count > 0))
        *out = audit;
    else
        hone_audit_release(&audit);
    return status;
}

void hone_audit_release(hone_audit **audit)
{
    if (audit == NULL) return;
    hone_audit *gone = *audit;
    *audit = NULL;
    if (gone == NULL) return;
    const hone_allocator allocator = gone->allocator;
    for (size_t i = 0; i < gone->count; i++) {
        hone_free(&allocator, gone->items[i].call);
        hone_free(&allocator, gone->items[i].spec);
    }
    hone_free(&allocator, gone->items);
    hone_free(&allocator, gone);
}

size_t hone_audit_size(const hone_audit *audit)
{
    return audit != NULL ? audit->count : 0;
}

const hone_audited *hone_audit_choice(const hone_audit *audit, size_t index)
{
    return audit != NULL && index < audit->count ? &audit->items[index].audited : NULL;
}
