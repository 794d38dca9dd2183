#include "runtime/negatives.h"

#include "base/error.h"
#include "base/json.h"
#include "registry/origin.h"
#include "runtime/trust.h"
#include "store/ops.h"
#include "tune/contest/failures.h"

#include <stdio.h>
#include <string.h>

// Finding ------------------------------------------------------------------------------------------------------------

typedef struct finding {
    const hone_request *request;
    hone_negatives *out;
    double now;
    bool failed;
} finding;

static const hone_kernel *kernel_named(const hone_request *request, const char *name)
{
    const hone_kernel_ref *kernel =
        hone_kernel_for_device(request->op->algorithm, name, HONE_PLATFORM_NONE, request->device);
    return kernel != NULL ? &kernel->kernel : NULL;
}

static bool note_time(finding *find, const hone_kernel *kernel, const hone_store_measurement *measurement)
{
    hone_negatives *out = find->out;
    const char *stored = measurement->revision, *revision = kernel->revision;
    if (strcmp(stored != NULL ? stored : "1", revision != NULL ? revision : "1") != 0) return true;
    size_t at = 0;
    while (at < out->measured_count && (out->measured[at].regime != measurement->regime ||
                                        strcmp(out->measured[at].kernel, measurement->kernel) != 0))
        at++;
    if (at == out->measured_count) {
        find->failed =
            !hone_grow(&out->allocator, &out->measured, &out->measured_capacity, at + 1, sizeof *out->measured);
        if (find->failed) return false;
        out->measured[out->measured_count++] = (hone_measured){.regime = measurement->regime};
        snprintf(out->measured[at].kernel, sizeof out->measured[at].kernel, "%s", measurement->kernel);
    }
    hone_measured *row = &out->measured[at];
    if (row->configs++ == 0 || measurement->time_ns < row->time_ns) row->time_ns = measurement->time_ns;
    return true;
}

static bool note(void *ctx, const hone_store_measurement *measurement)
{
    finding *find = ctx;
    hone_negatives *out = find->out;
    const hone_kernel *kernel = kernel_named(find->request, measurement->kernel);
    if (kernel == NULL) return true;
    if (measurement->failure == HONE_FAILURE_NONE) return note_time(find, kernel, measurement);
    find->failed = !hone_grow(&out->allocator, &out->rows, &out->capacity, out->count + 1, sizeof *out->rows);
    if (find->failed) return false;
    hone_negative *row = &out->rows[out->count++];
    *row = (hone_negative){.failure = measurement->failure};
    snprintf(row->kernel, sizeof row->kernel, "%s", measurement->kernel);
    snprintf(row->config, sizeof row->config, "%s", measurement->config);
    snprintf(row->reason, sizeof row->reason, "%s", measurement->reason == NULL ? "" : measurement->reason);
    snprintf(row->measured, sizeof row->measured, "%s", measurement->measured == NULL ? "" : measurement->measured);
    hone_failure_until(measurement, row->until);
    row->stands =
        hone_failure_stands(measurement, kernel, find->request->device, find->now, row->why_not, sizeof row->why_not);
    return true;
}

static hone_status find_in(
    hone_store *store, const hone_request *request, const hone_call *call, hone_negatives *out, hone_error *err)
{
    finding find = {.request = request, .out = out, .now = hone_os_now_utc()};
    const hone_store_key key = {
        .device = request->device->fingerprint,
        .algorithm = request->op->algorithm->name,
        .version = request->op->algorithm->version,
        .key = hone_call_key(call),
        .spec = hone_call_spec(call),
    };
    hone_status status = hone_store_measurements(store, &key, note, &find, err);
    if (find.failed) return hone_fail_memory(err, "explain");
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

// Tuning a call means tuning its bucket, and that is where failures stand. A store that fails keeps nothing from being true
// that the other says.
hone_status hone_negatives_of_call(const hone_request *request, hone_negatives *out, hone_error *err)
{
    hone_store *const stores[] = {hone_runtime_store(request->rt), hone_runtime_system_store(request->rt)};
    const hone_call *tuned = request->bucket != NULL ? request->bucket : request->call;
    hone_status status = HONE_OK;
    for (int i = 0; i < 2 && status != HONE_OUT_OF_MEMORY; i++)
        if (stores[i] != NULL) status = find_in(stores[i], request, tuned, out, err);
    return status == HONE_OUT_OF_MEMORY ? status : HONE_OK;
}

void hone_negatives_deinit(hone_negatives *negatives)
{
    if (negatives->rows != NULL) hone_free(&negatives->allocator, negatives->rows);
    if (negatives->measured != NULL) hone_free(&negatives->allocator, negatives->measured);
    *negatives = (hone_negatives){.allocator = negatives->allocator};
}

static bool is_harm(hone_failure failure)
{
    return failure == HONE_FAILURE_RUN || failure == HONE_FAILURE_WRONG || failure == HONE_FAILURE_BOUNDS ||
           failure == HONE_FAILURE_CRASH || failure == HONE_FAILURE_TIMEOUT || failure == HONE_FAILURE_TRACES;
}

hone_status hone_negatives_check(
    const hone_negatives *negatives, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why)
{
    char text[sizeof negatives->rows->config];
    if (negatives->count == 0 || hone_config_json(kernel->space, config, text, sizeof text) >= sizeof text)
        return HONE_OK;
    for (size_t i = 0; i < negatives->count; i++) {
        const hone_negative *row = &negatives->rows[i];
        if (!row->stands || !is_harm(row->failure) || strcmp(row->kernel, kernel->kernel.name) != 0 ||
            strcmp(row->config, text) != 0)
            continue;
        return hone_fail(
            why, HONE_KERNEL_FAILED, "decide", "%s %s failed when it was measured (%s: %s)", row->kernel, text,
            hone_failure_name(row->failure), row->reason);
    }
    return HONE_OK;
}

const hone_measured *hone_negatives_measured(const hone_negatives *negatives, const char *kernel, hone_regime regime)
{
    for (size_t i = 0; i < negatives->measured_count; i++)
        if (negatives->measured[i].regime == regime && strcmp(negatives->measured[i].kernel, kernel) == 0)
            return &negatives->measured[i];
    return NULL;
}

bool hone_negatives_any(const hone_negatives *negatives, const char *kernel)
{
    for (size_t i = 0; i < negatives->count; i++)
        if (strcmp(negatives->rows[i].kernel, kernel) == 0) return true;
    return false;
}

// Telling ------------------------------------------------------------------------------------------------------------

// Of one kind: how many, and until when the last of them is not tried again.
typedef struct kind_count {
    size_t stands;
    const char *until;
} kind_count;

static void tell_kinds(const kind_count *kinds, hone_buffer *out)
{
    const char *between = "";
    for (int kind = HONE_FAILURE_NONE + 1; kind < HONE_FAILURE_COUNT; kind++) {
        if (kinds[kind].stands == 0) continue;
        hone_buffer_format(
            out, "%s%zu %s, not tried again before %s", between, kinds[kind].stands,
            hone_failure_name((hone_failure)kind), kinds[kind].until);
        between = "; ";
    }
}

void hone_negatives_text(const hone_negatives *negatives, const char *kernel, hone_buffer *out)
{
    kind_count kinds[HONE_FAILURE_COUNT] = {{0}};
    size_t stands = 0, gone = 0;
    const hone_negative *last = NULL;
    for (size_t i = 0; i < negatives->count; i++) {
        const hone_negative *row = &negatives->rows[i];
        kind_count *kind = &kinds[row->failure];
        if (strcmp(row->kernel, kernel) != 0) continue;
        stands += row->stands;
        gone += !row->stands;
        if (last == NULL || strcmp(row->measured, last->measured) > 0) last = row;
        if (!row->stands) continue;
        kind->stands++;
        if (kind->until == NULL || strcmp(row->until, kind->until) > 0) kind->until = row->until;
    }
    if (last == NULL) return;
    hone_buffer_text(out, "           failed: ");
    tell_kinds(kinds, out);
    if (gone > 0)
        hone_buffer_format(
            out, "%s%zu may be tried again (%s)", stands > 0 ? "; " : "", gone,
            last->stands ? "of another time, revision or environment" : last->why_not);
    hone_buffer_format(out, "; the last: %s %s: %s\n", hone_failure_name(last->failure), last->config, last->reason);
}

// What is not known is null.
static void json_text(hone_buffer *out, const char *name, const char *text)
{
    hone_json_field(out, name, text[0] == '\0' ? NULL : text);
}

void hone_negatives_json(const hone_negatives *negatives, const char *kernel, hone_buffer *out)
{
    const char *between = "{";
    hone_buffer_char(out, '[');
    for (size_t i = 0; i < negatives->count; i++) {
        const hone_negative *row = &negatives->rows[i];
        if (strcmp(row->kernel, kernel) != 0) continue;
        hone_buffer_text(out, between);
        json_text(out, "kind", hone_failure_name(row->failure));
        hone_buffer_char(out, ',');
        json_text(out, "config", row->config);
        hone_buffer_char(out, ',');
        json_text(out, "reason", row->reason);
        hone_buffer_char(out, ',');
        json_text(out, "measured", row->measured);
        hone_buffer_char(out, ',');
        json_text(out, "until", row->until);
        hone_buffer_format(out, ",\"believed\":%s,", row->stands ? "true" : "false");
        json_text(out, "why_not", row->why_not);
        hone_buffer_char(out, '}');
        between = ",{";
    }
    hone_buffer_char(out, ']');
}

// Trust (trust.h) ----------------------------------------------------------------------------------------------------

static const char where[] = "decide";

static const hone_pack_kernel *pack_of(const hone_kernel_ref *kernel)
{
    return kernel->kernel.code != NULL ? kernel->kernel.code->pack : NULL;
}

bool hone_kernel_is_of_pack(const hone_kernel_ref *kernel)
{
    return pack_of(kernel) != NULL;
}

static bool is_wrong(hone_failure failure)
{
    return failure == HONE_FAILURE_WRONG || failure == HONE_FAILURE_BOUNDS;
}

static void write_words(char *out, size_t size, const char *call, hone_failure failure, const char *reason)
{
    snprintf(
        out, size, "was found wrong for %.200s (%s: %.160s)", call, hone_failure_name(failure),
        reason != NULL && reason[0] != '\0' ? reason : "no reason is known");
}

// In the stores --------------------------------------------------------------------------------------------------

typedef struct search {
    const hone_kernel_ref *kernel;
    const char *config; // NULL: any
    bool found;
    char words[512];
} search;

// Neither time nor environment counts: only another revision is other code.
static bool look_at(void *ctx, const hone_store_measured *row)
{
    search *s = ctx;
    const hone_store_measurement *failure = &row->measurement;
    if (!is_wrong(failure->failure) || strcmp(failure->kernel, s->kernel->kernel.name) != 0 ||
        strcmp(failure->revision != NULL ? failure->revision : "1", s->kernel->kernel.revision) != 0 ||
        (s->config != NULL && strcmp(failure->config, s->config) != 0) ||
        failure->measured == NULL) // it was forgotten (hone tune --fresh)
        return true;
    char call[HONE_KEY_SIZE + 16];
    snprintf(call, sizeof call, "the call %s", row->key.key);
    write_words(s->words, sizeof s->words, call, failure->failure, failure->reason);
    s->found = true;
    return false;
}

// A store that fails keeps nothing from being true that the other says.
static hone_status look_in_stores(hone_runtime *rt, search *s, hone_error *why)
{
    hone_store *const stores[] = {hone_runtime_store(rt), hone_runtime_system_store(rt)};
    const hone_store_key filter = {.algorithm = s->kernel->algorithm->name, .version = s->kernel->algorithm->version};
    for (int i = 0; i < 2 && !s->found; i++) {
        hone_error ignored = {.message = ""};
        if (stores[i] != NULL && hone_store_failures(stores[i], &filter, look_at, s, &ignored) == HONE_OUT_OF_MEMORY)
            return hone_fail_memory(why, where);
    }
    return HONE_OK;
}

// In this process ------------------------------------------------------------------------------------------------

// Under the mutex.
static const hone_wrong *find_here(const hone_runtime *rt, const hone_kernel_ref *kernel, const char *config)
{
    for (const hone_wrong *wrong = rt->wrongs; wrong != NULL; wrong = wrong->next)
        if (wrong->kernel == kernel && (config == NULL || strcmp(wrong->config, config) == 0)) return wrong;
    return NULL;
}

static void look_here(hone_runtime *rt, search *s)
{
    hone_mutex_lock(&rt->mutex);
    const hone_wrong *wrong = find_here(rt, s->kernel, s->config);
    if (wrong != NULL) memcpy(s->words, wrong->words, sizeof s->words);
    s->found = wrong != NULL;
    hone_mutex_unlock(&rt->mutex);
}

// Calls that it answered are decided again. What a user named stays.
static bool is_doubted(void *kernel, const hone_plan_entry *entry)
{
    return entry->kernel == kernel && entry->source != HONE_SOURCE_OVERRIDE && entry->source != HONE_SOURCE_OVERLAY &&
           entry->source != HONE_SOURCE_LOCK;
}

void hone_runtime_found_wrong(
    void *ctx,
    const hone_kernel_ref *kernel,
    const char *config,
    const char *call,
    hone_failure failure,
    const char *reason)
{
    hone_runtime *rt = ctx;
    if (kernel->builtin || !is_wrong(failure)) return;
    hone_wrong *wrong = hone_alloc(&rt->allocator, sizeof *wrong);
    if (wrong != NULL) {
        wrong->kernel = kernel;
        snprintf(wrong->config, sizeof wrong->config, "%s", config);
        write_words(wrong->words, sizeof wrong->words, call, failure, reason);
        hone_mutex_lock(&rt->mutex);
        if (find_here(rt, kernel, wrong->config) == NULL) {
            wrong->next = rt->wrongs;
            rt->wrongs = wrong;
            wrong = NULL;
        }
        hone_mutex_unlock(&rt->mutex);
        hone_free(&rt->allocator, wrong);
    }
    hone_runtime_answers_changed(rt);
    hone_plan_table_drop(&rt->plans, is_doubted, (void *)(uintptr_t)kernel);
}

void hone_runtime_forget_wrongs(hone_runtime *rt)
{
    while (rt->wrongs != NULL) {
        hone_wrong *gone = rt->wrongs;
        rt->wrongs = gone->next;
        hone_free(&rt->allocator, gone);
    }
}

// Asking -----------------------------------------------------------------------------------------------------------

hone_status hone_kernel_was_right(hone_runtime *rt, const hone_kernel_ref *kernel, const char *config, hone_error *why)
{
    search s = {.kernel = kernel, .config = config};
    if (kernel->builtin || kernel->kernel.is_reference) return HONE_OK;
    look_here(rt, &s);
    hone_status status = s.found ? HONE_OK : look_in_stores(rt, &s, why);
    if (status != HONE_OK || !s.found) return status;
    return hone_fail(
        why, HONE_KERNEL_FAILED, where, "%s%s%s %s; it is not taken again until its revision changes",
        kernel->kernel.name, config != NULL && config[0] != '\0' ? " " : "", config != NULL ? config : "", s.words);
}

// The reference of an algorithm that came with a pack: it says what is right. Of an algorithm that was there before, or was
// brought by another pack, it is not, whatever its pack calls it.
static bool is_own_reference(const hone_kernel_ref *kernel)
{
    const hone_algorithm_entry *entry = kernel->algorithm;
    const char *name = entry->algorithm.reference_kernel;
    size_t count = 0;
    if (!kernel->kernel.is_reference || entry->builtin || entry->algorithm.reference != NULL || name == NULL ||
        strcmp(name, kernel->kernel.name) != 0)
        return false;
    const hone_kernel_ref *const *kernels = hone_registry_list(entry, &count);
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->order < kernel->order && strcmp(kernels[i]->kernel.name, name) == 0) return false;
    return true;
}

hone_status hone_request_trusts(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    const hone_pack_kernel *pack = pack_of(kernel);
    hone_status status = hone_kernel_was_right(request->rt, kernel, NULL, why);
    if (status != HONE_OK || pack == NULL) return status;
    if (is_own_reference(kernel)) return HONE_OK;
    return hone_fail(
        why, HONE_NOT_FOUND, where,
        "%s of pack %s was never verified for this call, and answers when it was: hone tune '%.300s' verifies and "
        "measures it, so does the policy tune",
        kernel->kernel.name, pack->pack, hone_call_text(request->call));
}

hone_status hone_request_still_trusts(const hone_request *request, const hone_decision *decision, hone_error *why)
{
    const hone_kernel_ref *kernel = hone_decision_kernel(request->op->algorithm, decision);
    hone_status status = HONE_OK;
    if (kernel == NULL || kernel->builtin || kernel->kernel.is_reference) return HONE_OK;
    const bool is_named = decision->source == HONE_SOURCE_OVERRIDE || decision->source == HONE_SOURCE_MEMORY;
    if (!decision->verified && is_named) return HONE_OK; // a user's own word
    if (!decision->verified) status = hone_request_trusts(request, kernel, why);
    if (status == HONE_OK) status = hone_kernel_was_right(request->rt, kernel, decision->config_json, why);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY) why->status = status = HONE_NOT_FOUND;
    return status;
}

void hone_request_warn(const hone_request *request, const hone_kernel_ref *kernel, const hone_decision *decision)
{
    hone_error why = {.message = ""};
    const bool is_named = decision->source == HONE_SOURCE_OVERRIDE || decision->source == HONE_SOURCE_OVERLAY ||
                          decision->source == HONE_SOURCE_LOCK ||
                          (decision->source == HONE_SOURCE_MEMORY && !decision->verified);
    // A frozen program asks its lock file and nothing else.
    if (!is_named || kernel == NULL || hone_request_policy(request) == HONE_POLICY_FROZEN) return;
    if (hone_kernel_was_right(request->rt, kernel, NULL, &why) != HONE_KERNEL_FAILED) return;
    hone_log_write(
        &request->rt->log, HONE_LOG_WARNING, "%s: the %s names a kernel that was found wrong, and is followed: %s",
        hone_call_text(request->call), hone_source_name(decision->source), why.message);
}
