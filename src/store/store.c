// The public store: arguments are checked here, once for all kinds, the lock is taken, and the kind's own
// function does the work.
#include "store/ops.h"

#include "base/error.h"
#include "store/row.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct store_kind {
    const char *scheme;
    const hone_store_ops *ops; // NULL: a known kind that is not there yet
} store_kind;

static const store_kind kinds[] = {
    {"memory:", &hone_memory_store_ops},
    {"sqlite:", &hone_sqlite_store_ops},
    {"json:", &hone_json_store_ops},
    {"postgresql:", NULL},
    {"postgres:", NULL},
};

// Opening and closing ------------------------------------------------------------------------------------------

static const store_kind *find_kind(const char *url)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(url, kinds[i].scheme, strlen(kinds[i].scheme)) == 0) return &kinds[i];
    return NULL;
}

static hone_status check_kind(const char *url, const store_kind *kind, hone_error *err)
{
    static const char controls[] =
        "\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18"
        "\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f";
    enum { URL_LIMIT = 4096 };
    if (strnlen(url, URL_LIMIT + 1) > URL_LIMIT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open", "the store's URL is too long, over %d bytes: '%.60s...'",
            (int)URL_LIMIT, url);
    if (strcspn(url, controls) < strlen(url))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open", "the store's URL has a control character as byte %zu: '%.*s...'",
            strcspn(url, controls), (int)strcspn(url, controls), url);
    if (kind == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open",
            "'%s' is no store URL: write sqlite:PATH, json:FOLDER or json:FILE.json, or memory: for none", url);
    if (kind->ops == NULL)
        return hone_fail(
            err, HONE_UNSUPPORTED, "store.open", "'%s': stores of the kind %s are not there yet: use sqlite:PATH", url,
            kind->scheme);
    return HONE_OK;
}

static hone_status open_kind(
    const store_kind *kind,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *url,
    bool read_only,
    hone_store **out,
    hone_error *err)
{
    const char *location = url + strlen(kind->scheme);
    if (!read_only) return kind->ops->open(allocator, log, location, out, err);
    if (kind->ops->open_read_only != NULL) return kind->ops->open_read_only(allocator, log, location, out, err);
    return hone_fail(
        err, HONE_UNSUPPORTED, "store.open", "'%s': only a store sqlite:PATH can be opened for reading alone", url);
}

static bool init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) return false;
    bool ok = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0 &&
              pthread_mutex_init(mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return ok;
}

static hone_status finish_open(hone_store *store, const char *url, hone_error *err)
{
    store->url = hone_copy_text(&store->allocator, url, strlen(url));
    if (store->url != NULL && init_mutex(&store->mutex)) return HONE_OK;
    hone_free(&store->allocator, store->url);
    store->ops->close(store);
    return hone_fail_memory(err, "store.open");
}

hone_status hone_store_open_with(const hone_store_options *options, const char *url, hone_store **out, hone_error *err)
{
    static const hone_store_options defaults = {.struct_size = sizeof defaults};
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "store.open", "out is NULL: give it an address");
    *out = NULL;
    if (options == NULL) options = &defaults;
    if (options->struct_size != sizeof *options)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open",
            "options.struct_size is %zu, expected sizeof(hone_store_options), %zu", options->struct_size,
            sizeof *options);
    if (url == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "store.open", "url is NULL: write sqlite:PATH or memory:");
    const hone_allocator allocator =
        options->allocator.reallocate == NULL ? hone_allocator_system() : options->allocator;
    const hone_log log = {options->log, options->log_ctx, HONE_LOG_DEBUG};
    const store_kind *kind = find_kind(url);
    hone_status status = check_kind(url, kind, err);
    hone_store *store = NULL;
    if (status == HONE_OK) status = open_kind(kind, &allocator, &log, url, options->read_only, &store, err);
    if (status == HONE_OK) status = finish_open(store, url, err);
    if (status == HONE_OK) *out = store;
    return status;
}

hone_status hone_store_open(hone_allocator allocator, const char *url, hone_store **out, hone_error *err)
{
    const hone_store_options options = {.struct_size = sizeof options, .allocator = allocator};
    return hone_store_open_with(&options, url, out, err);
}

void hone_store_close(hone_store **store)
{
    if (store == NULL || *store == NULL) return;
    hone_store *closing = *store;
    *store = NULL;
    pthread_mutex_destroy(&closing->mutex);
    hone_free(&closing->allocator, closing->url);
    closing->ops->close(closing);
}

const char *hone_store_url(const hone_store *store)
{
    return store == NULL ? "" : store->url;
}

// Checks -------------------------------------------------------------------------------------------------------

// What a text of an argument may be. Names are short and printable, so that a message can show them.
typedef enum text_rule { NAME, TEXT, NAME_OR_NULL, TEXT_OR_NULL } text_rule;

typedef struct field {
    const char *name;
    const char *text;
    text_rule rule;
} field;

enum { NAME_LIMIT = 1024, TEXT_LIMIT = 16 << 20 };

static hone_status check_printable(const field *f, size_t size, const char *where, hone_error *err)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)f->text[i] < ' ' || f->text[i] == 0x7f)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "%s has a control character, 0x%02x, as byte %zu", f->name,
                (unsigned)(unsigned char)f->text[i], i);
    return HONE_OK;
}

static hone_status check_text(const field *f, const char *where, hone_error *err)
{
    bool is_name = f->rule == NAME || f->rule == NAME_OR_NULL;
    bool is_needed = f->rule == NAME || f->rule == TEXT;
    const size_t limit = is_name ? NAME_LIMIT : TEXT_LIMIT;
    const size_t size = f->text == NULL ? 0 : strnlen(f->text, limit + 1);
    if (size == 0 && is_needed) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is missing", f->name);
    if (size > limit)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s is longer than %zu bytes: '%.60s...'", f->name, limit, f->text);
    return is_name ? check_printable(f, size, where, err) : HONE_OK;
}

static hone_status check_texts(const field *fields, size_t count, const char *where, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = check_text(&fields[i], where, err);
    return status;
}

static hone_status check_key(const hone_store_key *key, const char *where, hone_error *err)
{
    if (key == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the key is NULL");
    const field texts[] = {
        {"key.device", key->device, NAME}, {"key.algorithm", key->algorithm, NAME}, {"key.version", key->version, NAME},
        {"key.key", key->key, NAME},       {"key.spec", key->spec, TEXT_OR_NULL},
    };
    return check_texts(texts, sizeof texts / sizeof *texts, where, err);
}

static hone_status check_time(double time, const char *name, const char *where, hone_error *err)
{
    if (isfinite(time) && time >= 0) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s is %g: a finite number, not negative, is asked for", name, time);
}

static hone_status check_regime(hone_regime regime, const char *where, hone_error *err)
{
    if (regime == HONE_WARM || regime == HONE_COLD) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "regime is %d: HONE_WARM or HONE_COLD is asked for", (int)regime);
}

static hone_status check_decision(const hone_store_decision *decision, const char *where, hone_error *err)
{
    if (decision == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the decision is NULL");
    const field texts[] = {
        {"decision.kernel", decision->kernel, NAME},
        {"decision.platform", decision->platform, NAME},
        {"decision.config", decision->config, TEXT},
        {"decision.call", decision->call, TEXT_OR_NULL},
        {"decision.source", decision->source, NAME_OR_NULL},
        {"decision.revision", decision->revision, NAME_OR_NULL},
        {"decision.evidence", decision->evidence, TEXT_OR_NULL},
        {"decision.environment", decision->environment, TEXT_OR_NULL},
    };
    hone_status status = check_key(&decision->key, where, err);
    if (status == HONE_OK) status = check_texts(texts, sizeof texts / sizeof *texts, where, err);
    if (status == HONE_OK) status = check_regime(decision->regime, where, err);
    if (status == HONE_OK) status = check_time(decision->time_ns, "decision.time_ns", where, err);
    return status;
}

static hone_status check_times(const hone_store_measurement *measurement, const char *where, hone_error *err)
{
    hone_status status = check_time(measurement->time_ns, "measurement.time_ns", where, err);
    if (status == HONE_OK) status = check_time(measurement->low_ns, "measurement.low_ns", where, err);
    if (status == HONE_OK) status = check_time(measurement->high_ns, "measurement.high_ns", where, err);
    if (status == HONE_OK && isnan(measurement->max_error))
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "measurement.max_error is NaN: a number is asked for, negative when not verified");
    return status;
}

static hone_status check_measurement(const hone_store_measurement *measurement, hone_error *err)
{
    static const char where[] = "store.put_measurement";
    if (measurement == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the measurement is NULL");
    const field texts[] = {
        {"measurement.kernel", measurement->kernel, NAME},
        {"measurement.config", measurement->config, TEXT},
        {"measurement.revision", measurement->revision, NAME_OR_NULL},
        {"measurement.reason", measurement->reason, TEXT_OR_NULL},
        {"measurement.environment", measurement->environment, TEXT_OR_NULL},
        {"measurement.measured", measurement->measured, NAME_OR_NULL},
    };
    hone_status status = check_texts(texts, sizeof texts / sizeof *texts, where, err);
    if (status == HONE_OK) status = check_regime(measurement->regime, where, err);
    if (status != HONE_OK) return status;
    if ((int)measurement->failure < 0 || measurement->failure >= HONE_FAILURE_COUNT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "measurement.failure is %d: a hone_failure is asked for",
            (int)measurement->failure);
    return measurement->failure == HONE_FAILURE_NONE ? check_times(measurement, where, err) : HONE_OK;
}

static hone_status check_invocation(const hone_store_invocation *invocation, hone_error *err)
{
    static const char where[] = "store.add_invocations";
    const field texts[] = {
        {"invocation.call", invocation->call, TEXT_OR_NULL},
        {"invocation.kernel", invocation->kernel, NAME_OR_NULL},
        {"invocation.decided", invocation->decided, NAME_OR_NULL},
    };
    hone_status status = check_key(&invocation->key, where, err);
    if (status == HONE_OK) status = check_texts(texts, sizeof texts / sizeof *texts, where, err);
    if (status == HONE_OK) status = check_time(invocation->first, "invocation.first", where, err);
    if (status == HONE_OK) status = check_time(invocation->last, "invocation.last", where, err);
    return status;
}

static hone_status check_alias(const hone_store_alias *alias, hone_error *err)
{
    static const char where[] = "store.put_alias";
    if (alias == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the alias is NULL");
    const field texts[] = {
        {"alias.scheme", alias->scheme, NAME},
        {"alias.operation", alias->operation, TEXT}, // as others name it
        {"alias.foreign_key", alias->foreign_key, TEXT},
        {"alias.foreign_spec", alias->foreign_spec, TEXT_OR_NULL},
        {"alias.key.device", alias->key.device, NAME_OR_NULL},
        {"alias.key.algorithm", alias->key.algorithm, NAME},
        {"alias.key.version", alias->key.version, NAME},
        {"alias.key.key", alias->key.key, NAME},
        {"alias.key.spec", alias->key.spec, TEXT_OR_NULL},
    };
    return check_texts(texts, sizeof texts / sizeof *texts, where, err);
}

static hone_status check_foreign(const hone_store_foreign *foreign, hone_error *err)
{
    const field texts[] = {
        {"foreign.scheme", foreign->scheme, NAME},
        {"foreign.operation", foreign->operation, TEXT}, // as others name them
        {"foreign.device", foreign->device, TEXT_OR_NULL},
        {"foreign.foreign_key", foreign->foreign_key, TEXT},
        {"foreign.text", foreign->text, TEXT},
        {"foreign.origin", foreign->origin, TEXT_OR_NULL},
    };
    return check_texts(texts, sizeof texts / sizeof *texts, "store.put_foreign", err);
}

// Fills the error of a NULL store or function pointer.
static hone_status check_handles(const hone_store *store, bool has_visit, const char *where, hone_error *err)
{
    if (store == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store is NULL");
    if (!has_visit) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "visit is NULL: give a function");
    return HONE_OK;
}

// What a NULL filter stands for.
static const hone_store_key all_keys = {0};

// The lock -----------------------------------------------------------------------------------------------------

static hone_status lock(hone_store *store, const char *where, hone_error *err)
{
    int code = pthread_mutex_lock(&store->mutex);
    if (code == 0) return HONE_OK;
    if (code == EDEADLK)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "called from inside a visit of the same store: keep what was visited and call after it");
    return hone_fail_system(err, HONE_IO, where, code, "the store's lock failed");
}

static hone_status unlock(hone_store *store, hone_status status)
{
    pthread_mutex_unlock(&store->mutex);
    return status;
}

// Decisions ----------------------------------------------------------------------------------------------------

hone_status hone_store_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.get";
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = check_key(key, where, err);
    if (status == HONE_OK) status = check_regime(regime, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->get(store, key, regime, visit, ctx, err));
}

static hone_status check_decisions(
    const hone_store *store, const hone_store_decision *decisions, size_t count, const char *where, hone_error *err)
{
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK && decisions == NULL && count > 0)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "the decisions are NULL");
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = check_decision(&decisions[i], where, err);
    return status;
}

hone_status hone_store_put_all(hone_store *store, const hone_store_decision *decisions, size_t count, hone_error *err)
{
    static const char where[] = "store.put";
    hone_status status = check_decisions(store, decisions, count, where, err);
    if (status != HONE_OK || count == 0) return status;
    status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->put_all(store, decisions, count, NULL, err));
}

static void tell_outcomes(const hone_merge_reason *reasons, size_t count, hone_merge_visit *on_outcome, void *ctx)
{
    for (size_t i = 0; i < count; i++)
        on_outcome(ctx, i, hone_merge_reason_outcome(reasons[i]), hone_merge_reason_text(reasons[i]));
}

hone_status hone_store_merge(
    hone_store *store,
    const hone_store_decision *decisions,
    size_t count,
    hone_merge_visit *on_outcome,
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.merge";
    hone_merger merger;
    hone_status status = check_decisions(store, decisions, count, where, err);
    if (status != HONE_OK || count == 0) return status;
    status = hone_merger_init(&merger, &store->allocator, count, err);
    if (status != HONE_OK) return status;
    status = lock(store, where, err);
    if (status == HONE_OK) status = unlock(store, store->ops->put_all(store, decisions, count, &merger, err));
    if (status == HONE_OK && on_outcome != NULL) tell_outcomes(merger.reasons, count, on_outcome, ctx);
    hone_merger_deinit(&merger);
    return status;
}

// Batches ------------------------------------------------------------------------------------------------------

hone_status hone_store_check_decision(const hone_store_decision *decision, hone_error *err)
{
    return check_decision(decision, "store.batch", err);
}

hone_status hone_store_check_measured(const hone_store_measured *measured, hone_error *err)
{
    hone_status status = check_key(&measured->key, "store.batch", err);
    return status == HONE_OK ? check_measurement(&measured->measurement, err) : status;
}

hone_status hone_store_check_alias(const hone_store_alias *alias, hone_error *err)
{
    return check_alias(alias, err);
}

hone_status hone_store_check_foreign(const hone_store_foreign *foreign, hone_error *err)
{
    return check_foreign(foreign, err);
}

static hone_status check_batch(const hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    static const char where[] = "store.batch";
    hone_status status = check_decisions(store, batch->decisions, batch->decision_count, where, err);
    for (size_t i = 0; status == HONE_OK && i < batch->removed_count; i++)
        status = check_key(&batch->removed[i], where, err);
    for (size_t i = 0; status == HONE_OK && i < batch->measured_count; i++) {
        status = hone_store_check_measured(&batch->measured[i], err);
    }
    for (size_t i = 0; status == HONE_OK && i < batch->alias_count; i++)
        status = check_alias(&batch->aliases[i], err);
    for (size_t i = 0; status == HONE_OK && i < batch->foreign_count; i++)
        status = check_foreign(&batch->foreigns[i], err);
    return status;
}

typedef struct rival {
    const char *spec;
    const hone_store_measurement *coming;
    bool stays; // what is stored says as much
} rival;

static bool is_rival(void *ctx, const hone_store_measured *measured)
{
    rival *r = ctx;
    const hone_store_measurement *stored = &measured->measurement, *coming = r->coming;
    // The walk also gives what may be another call's.
    bool same_spec = (r->spec == NULL) == (measured->key.spec == NULL) && hone_spec_agrees(r->spec, measured->key.spec);
    if (!same_spec || stored->regime != coming->regime || strcmp(stored->kernel, coming->kernel) != 0 ||
        strcmp(stored->config, coming->config) != 0)
        return true;
    // A measurement stays before a failure, and a failure before one that is not known to be later.
    bool is_later =
        coming->measured != NULL && stored->measured != NULL && strcmp(coming->measured, stored->measured) > 0;
    if (coming->failure != HONE_FAILURE_NONE)
        r->stays = stored->failure == HONE_FAILURE_NONE || !is_later;
    else if (stored->failure == HONE_FAILURE_NONE)
        r->stays = stored->samples >= coming->samples;
    return !r->stays;
}

static hone_status put_measured_batch(hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    hone_status status = HONE_OK;
    size_t put = 0;
    for (size_t i = 0; status == HONE_OK && i < batch->measured_count; i++) {
        const hone_store_measured *coming = &batch->measured[i];
        rival r = {coming->key.spec, &coming->measurement, false};
        status = store->ops->measurements(store, &coming->key, is_rival, &r, err);
        if (status != HONE_OK || r.stays) continue;
        status = store->ops->put_measurement(store, &coming->key, &coming->measurement, err);
        put++;
    }
    if (batch->out_measured != NULL) *batch->out_measured = put;
    return status;
}

static hone_status put_parts(hone_store *store, const hone_store_batch *batch, hone_merger *merger, hone_error *err)
{
    const hone_store_ops *ops = store->ops;
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < batch->removed_count; i++) {
        status = ops->remove(store, &batch->removed[i], err);
        if (status == HONE_NOT_FOUND) status = HONE_OK;
    }
    if (status == HONE_OK && batch->decision_count > 0)
        status = ops->put_all(store, batch->decisions, batch->decision_count, merger, err);
    if (status == HONE_OK) status = put_measured_batch(store, batch, err);
    for (size_t i = 0; status == HONE_OK && i < batch->alias_count; i++)
        status = ops->put_alias(store, &batch->aliases[i], err);
    if (status == HONE_OK && batch->foreign_count > 0)
        status = ops->put_foreigns(store, batch->foreigns, batch->foreign_count, err);
    return status;
}

hone_status hone_store_put_batch(hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    hone_merger merger;
    hone_status status = check_batch(store, batch, err);
    if (status == HONE_OK) status = hone_merger_init(&merger, &store->allocator, batch->decision_count, err);
    if (status != HONE_OK) return status;
    status = lock(store, "store.batch", err);
    if (status == HONE_OK) {
        status = store->ops->begin(store, err);
        if (status == HONE_OK) status = store->ops->end(store, put_parts(store, batch, &merger, err), err);
        (void)unlock(store, status);
    }
    if (status == HONE_OK && batch->on_outcome != NULL)
        tell_outcomes(merger.reasons, batch->decision_count, batch->on_outcome, batch->ctx);
    hone_merger_deinit(&merger);
    return status;
}

hone_status hone_store_put(hone_store *store, const hone_store_decision *decision, hone_error *err)
{
    return hone_store_put_all(store, decision, 1, err);
}

hone_status hone_store_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    static const char where[] = "store.remove";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK) status = check_key(key, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->remove(store, key, err));
}

hone_status hone_store_scan(
    hone_store *store,
    const hone_store_key *filter,
    bool (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.scan";
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->scan(store, filter == NULL ? &all_keys : filter, visit, ctx, err));
}

// Measurements -------------------------------------------------------------------------------------------------

hone_status hone_store_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    static const char where[] = "store.put_measurement";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK) status = check_key(key, where, err);
    if (status == HONE_OK) status = check_measurement(measurement, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->put_measurement(store, key, measurement, err));
}

typedef struct measured_visit {
    bool (*of_key)(void *ctx, const hone_store_measurement *measurement);
    bool (*of_all)(void *ctx, const hone_store_key *key, const hone_store_measurement *measurement);
    void *ctx;
} measured_visit;

static bool visit_of_key(void *ctx, const hone_store_measured *measured)
{
    const measured_visit *visit = ctx;
    return visit->of_key(visit->ctx, &measured->measurement);
}

static bool visit_of_all(void *ctx, const hone_store_measured *measured)
{
    const measured_visit *visit = ctx;
    return visit->of_all(visit->ctx, &measured->key, &measured->measurement);
}

hone_status hone_store_measurements(
    hone_store *store,
    const hone_store_key *key,
    bool (*visit)(void *ctx, const hone_store_measurement *measurement),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.measurements";
    measured_visit measured = {.of_key = visit, .ctx = ctx};
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = check_key(key, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->measurements(store, key, visit_of_key, &measured, err));
}

hone_status hone_store_scan_measurements(
    hone_store *store,
    const hone_store_key *filter,
    bool (*visit)(void *ctx, const hone_store_key *key, const hone_store_measurement *measurement),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.scan_measurements";
    measured_visit measured = {.of_all = visit, .ctx = ctx};
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    if (filter == NULL) filter = &all_keys;
    return unlock(store, store->ops->measurements(store, filter, visit_of_all, &measured, err));
}

// Invocations --------------------------------------------------------------------------------------------------

hone_status hone_store_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    static const char where[] = "store.add_invocations";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK && invocations == NULL && count > 0)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "the invocations are NULL");
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = check_invocation(&invocations[i], err);
    if (status != HONE_OK || count == 0) return status;
    status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->add_invocations(store, invocations, count, err));
}

hone_status hone_store_find_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    static const char where[] = "store.invocations";
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->invocations(store, filter, visit, ctx, err));
}

hone_status hone_store_invocations(
    hone_store *store,
    const char *device,
    bool (*visit)(void *ctx, const hone_store_invocation *invocation),
    void *ctx,
    hone_error *err)
{
    const hone_store_key filter = {.device = device};
    return hone_store_find_invocations(store, &filter, visit, ctx, err);
}

hone_status hone_store_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    static const char where[] = "store.clear_invocations";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->clear_invocations(store, device, err));
}

// Aliases ------------------------------------------------------------------------------------------------------

hone_status hone_store_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    static const char where[] = "store.put_alias";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK) status = check_alias(alias, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->put_alias(store, alias, err));
}

hone_status hone_store_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.get_alias";
    const field texts[] = {
        {"scheme", scheme, NAME}, {"operation", operation, TEXT}, {"foreign_key", foreign_key, TEXT}};
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = check_texts(texts, sizeof texts / sizeof *texts, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->get_alias(store, scheme, operation, foreign_key, visit, ctx, err));
}

hone_status hone_store_aliases(
    hone_store *store,
    const char *scheme,
    bool (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.aliases";
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->aliases(store, scheme, visit, ctx, err));
}

// Foreign configs ----------------------------------------------------------------------------------------------

hone_status hone_store_put_foreign(hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    static const char where[] = "store.put_foreign";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK && foreigns == NULL && count > 0)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "the foreign configs are NULL");
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = check_foreign(&foreigns[i], err);
    if (status == HONE_OK && count > 0) status = lock(store, where, err);
    if (status != HONE_OK || count == 0) return status;
    return unlock(store, store->ops->put_foreigns(store, foreigns, count, err));
}

hone_status hone_store_foreigns(
    hone_store *store,
    const char *scheme,
    bool (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    static const char where[] = "store.foreigns";
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->foreigns(store, scheme, visit, ctx, err));
}

// Damage -------------------------------------------------------------------------------------------------------

hone_status hone_store_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    static const char where[] = "store.set_aside";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK) status = check_key(key, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->set_aside(store, key, regime, reason, err));
}

hone_status hone_store_quarantine(
    hone_store *store, bool (*visit)(void *ctx, const hone_store_quarantined *quarantined), void *ctx, hone_error *err)
{
    static const char where[] = "store.quarantine";
    hone_status status = check_handles(store, visit != NULL, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->quarantine(store, visit, ctx, err));
}

hone_status hone_store_clear_quarantine(hone_store *store, hone_error *err)
{
    static const char where[] = "store.clear_quarantine";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->clear_quarantine(store, err));
}

hone_status hone_store_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    static const char where[] = "store.verify";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK && out == NULL) status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->verify(store, out, err));
}

// Counts -------------------------------------------------------------------------------------------------------

hone_status hone_store_get_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    static const char where[] = "store.stat";
    hone_status status = check_handles(store, true, where, err);
    if (status == HONE_OK && out == NULL) status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    if (status == HONE_OK) status = lock(store, where, err);
    if (status != HONE_OK) return status;
    return unlock(store, store->ops->stat(store, out, err));
}
