#include "runtime/links/negatives.h"

#include "base/error.h"
#include "base/json.h"
#include "registry/failure_kinds.h"
#include "store/ops.h"
#include "tune/contest/failures.h"

#include <stdio.h>
#include <string.h>

// Finding -------------------------------------------------------------------------------------------------------------

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
    // A measurement without a time was only verified.
    if (!hone_same_revision(measurement->revision, kernel->revision) || !(measurement->time_ns > 0)) return true;
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

static bool note(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
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
    const hone_store_key key = hone_request_key(request, call);
    hone_status status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, &key, note, &find, err);
    if (find.failed) return hone_fail_memory(err, "explain");
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

// Tuning a call means tuning its bucket, so the failures are stored under the bucket. If one store fails, the records
// of the other are still valid.
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

hone_status hone_negatives_check(
    const hone_negatives *negatives, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why)
{
    char text[sizeof negatives->rows->config];
    if (negatives->count == 0 || hone_config_json(kernel->space, config, text, sizeof text) >= sizeof text)
        return HONE_OK;
    for (size_t i = 0; i < negatives->count; i++) {
        const hone_negative *row = &negatives->rows[i];
        if (!row->stands || !hone_failure_kind_of(row->failure)->is_harm ||
            strcmp(row->kernel, kernel->kernel.name) != 0 || strcmp(row->config, text) != 0)
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

// Telling -------------------------------------------------------------------------------------------------------------

// Of one kind of failure: how many there are, and until when the last of them prevents a new try.
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

// Writes null if the text is not known.
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
