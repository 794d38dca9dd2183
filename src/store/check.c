// What an argument of a store's function may be.
#include "store/check.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

static const char put_measurement_where[] = "store.put_measurement";
static const char add_invocations_where[] = "store.add_invocations";
static const char put_alias_where[] = "store.put_alias";
static const char put_foreign_where[] = "store.put_foreign";
static const char batch_where[] = "store.batch";

enum { NAME_LIMIT = 1024, TEXT_LIMIT = 16 << 20 };

static hone_status check_printable(const hone_check_field *f, size_t size, const char *where, hone_error *err)
{
    const size_t i = hone_text_control(f->text, size);
    if (i == size) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s has a control character, 0x%02x, as byte %zu", f->name,
        (unsigned)(unsigned char)f->text[i], i);
}

static hone_status check_text(const hone_check_field *f, const char *where, hone_error *err)
{
    bool is_name = f->rule == HONE_CHECK_NAME || f->rule == HONE_CHECK_NAME_OR_NULL;
    bool is_needed = f->rule == HONE_CHECK_NAME || f->rule == HONE_CHECK_TEXT;
    const size_t limit = is_name ? NAME_LIMIT : TEXT_LIMIT;
    const size_t size = f->text == NULL ? 0 : strnlen(f->text, limit + 1);
    if (size == 0 && is_needed) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is missing", f->name);
    if (size > limit)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s is longer than %zu bytes: '%.60s...'", f->name, limit, f->text);
    return is_name ? check_printable(f, size, where, err) : HONE_OK;
}

hone_status hone_check_texts(const hone_check_field *fields, size_t count, const char *where, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = check_text(&fields[i], where, err);
    return status;
}

hone_status hone_check_key(const hone_store_key *key, const char *where, hone_error *err)
{
    if (key == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the key is NULL");
    const hone_check_field texts[] = {
        {"key.device", key->device, HONE_CHECK_NAME},     {"key.algorithm", key->algorithm, HONE_CHECK_NAME},
        {"key.version", key->version, HONE_CHECK_NAME},   {"key.key", key->key, HONE_CHECK_NAME},
        {"key.spec", key->spec, HONE_CHECK_TEXT_OR_NULL},
    };
    return hone_check_texts(texts, sizeof texts / sizeof *texts, where, err);
}

// What is stored has the key of a call, 16 hex digits; what is looked for may be any.
static hone_status check_stored_key(const hone_store_key *key, const char *where, hone_error *err)
{
    hone_status status = hone_check_key(key, where, err);
    if (status != HONE_OK || hone_is_key(key->key)) return status;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "key.key is '%.60s', expected 16 lower-case hex digits (hone_call_key)",
        key->key);
}

static hone_status check_config(const char *config, const char *name, const char *where, hone_error *err)
{
    const hone_view text = {config, strlen(config)};
    hone_view value;
    hone_error why = {.message = ""};
    hone_status status = hone_json_text_check(text, HONE_JSON_STRICT, &value, &why);
    if (status == HONE_OK && hone_json_is_object(value)) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s is '%.60s', expected a JSON object%s%s", name, config,
        why.message[0] != '\0' ? ": " : "", why.message);
}

static hone_status check_time(double time, const char *name, const char *where, hone_error *err)
{
    if (isfinite(time) && time >= 0) return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is %g, expected a finite number of at least 0", name, time);
}

// A JSON list of times, or NULL.
static hone_status check_samples(const char *samples, const char *where, hone_error *err)
{
    hone_view list, key, item;
    double time;
    if (samples == NULL) return HONE_OK;
    bool ok = hone_json_text_check(hone_view_of(samples), HONE_JSON_STRICT, &list, NULL) == HONE_OK &&
              hone_json_is_array(list);
    if (ok)
        for (hone_json_walk walk = hone_json_walk_of(list); ok && hone_json_walk_next(&walk, &key, &item);)
            ok = hone_json_is_number(item) && hone_number_parse(item.data, item.size, &time) && isfinite(time) &&
                 time >= 0;
    if (ok) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where,
        "measurement.samples_ns is '%.60s', expected a JSON list of finite numbers of at least 0", samples);
}

hone_status hone_check_regime(hone_regime regime, const char *where, hone_error *err)
{
    if (regime >= HONE_WARM && regime < HONE_REGIME_COUNT) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "regime is %d: expected one of HONE_WARM to HONE_EAGER_STABLE", (int)regime);
}

hone_status hone_check_decision(const hone_store_decision *decision, const char *where, hone_error *err)
{
    if (decision == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the decision is NULL");
    const hone_check_field texts[] = {
        {"decision.kernel", decision->kernel, HONE_CHECK_NAME},
        {"decision.platform", decision->platform, HONE_CHECK_NAME},
        {"decision.config", decision->config, HONE_CHECK_TEXT},
        {"decision.call", decision->call, HONE_CHECK_TEXT_OR_NULL},
        {"decision.source", decision->source, HONE_CHECK_NAME_OR_NULL},
        {"decision.revision", decision->revision, HONE_CHECK_NAME_OR_NULL},
        {"decision.evidence", decision->evidence, HONE_CHECK_TEXT_OR_NULL},
        {"decision.environment", decision->environment, HONE_CHECK_TEXT_OR_NULL},
    };
    hone_status status = check_stored_key(&decision->key, where, err);
    if (status == HONE_OK) status = hone_check_texts(texts, sizeof texts / sizeof *texts, where, err);
    if (status == HONE_OK) status = check_config(decision->config, "decision.config", where, err);
    if (status == HONE_OK) status = hone_check_regime(decision->regime, where, err);
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
            "measurement.max_error is NaN, expected a number, negative when not verified");
    return status;
}

hone_status hone_check_measurement(const hone_store_measurement *measurement, hone_error *err)
{
    if (measurement == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, put_measurement_where, "the measurement is NULL");
    const hone_check_field texts[] = {
        {"measurement.kernel", measurement->kernel, HONE_CHECK_NAME},
        {"measurement.config", measurement->config, HONE_CHECK_TEXT},
        {"measurement.revision", measurement->revision, HONE_CHECK_NAME_OR_NULL},
        {"measurement.reason", measurement->reason, HONE_CHECK_TEXT_OR_NULL},
        {"measurement.environment", measurement->environment, HONE_CHECK_TEXT_OR_NULL},
        {"measurement.measured", measurement->measured, HONE_CHECK_NAME_OR_NULL},
        {"measurement.samples_ns", measurement->samples_ns, HONE_CHECK_TEXT_OR_NULL},
    };
    hone_status status = hone_check_texts(texts, sizeof texts / sizeof *texts, put_measurement_where, err);
    if (status == HONE_OK) status = check_config(measurement->config, "measurement.config", put_measurement_where, err);
    if (status == HONE_OK) status = hone_check_regime(measurement->regime, put_measurement_where, err);
    if (status != HONE_OK) return status;
    if ((int)measurement->failure < 0 || measurement->failure >= HONE_FAILURE_COUNT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, put_measurement_where, "measurement.failure is %d, expected a hone_failure",
            (int)measurement->failure);
    if (measurement->failure != HONE_FAILURE_NONE) return HONE_OK;
    status = check_times(measurement, put_measurement_where, err);
    return status == HONE_OK ? check_samples(measurement->samples_ns, put_measurement_where, err) : status;
}

hone_status hone_check_invocation(const hone_store_invocation *invocation, hone_error *err)
{
    const hone_check_field texts[] = {
        {"invocation.call", invocation->call, HONE_CHECK_TEXT_OR_NULL},
        {"invocation.kernel", invocation->kernel, HONE_CHECK_NAME_OR_NULL},
        {"invocation.decided", invocation->decided, HONE_CHECK_NAME_OR_NULL},
    };
    hone_status status = hone_check_key(&invocation->key, add_invocations_where, err);
    if (status == HONE_OK) status = hone_check_texts(texts, sizeof texts / sizeof *texts, add_invocations_where, err);
    if (status == HONE_OK) status = check_time(invocation->first, "invocation.first", add_invocations_where, err);
    if (status == HONE_OK) status = check_time(invocation->last, "invocation.last", add_invocations_where, err);
    return status;
}

hone_status hone_check_alias(const hone_store_alias *alias, hone_error *err)
{
    if (alias == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, put_alias_where, "the alias is NULL");
    const hone_check_field texts[] = {
        {"alias.scheme", alias->scheme, HONE_CHECK_NAME},
        {"alias.operation", alias->operation, HONE_CHECK_TEXT}, // as others name it
        {"alias.foreign_key", alias->foreign_key, HONE_CHECK_TEXT},
        {"alias.foreign_spec", alias->foreign_spec, HONE_CHECK_TEXT_OR_NULL},
        {"alias.key.device", alias->key.device, HONE_CHECK_NAME_OR_NULL},
        {"alias.key.algorithm", alias->key.algorithm, HONE_CHECK_NAME},
        {"alias.key.version", alias->key.version, HONE_CHECK_NAME},
        {"alias.key.key", alias->key.key, HONE_CHECK_NAME},
        {"alias.key.spec", alias->key.spec, HONE_CHECK_TEXT_OR_NULL},
    };
    return hone_check_texts(texts, sizeof texts / sizeof *texts, put_alias_where, err);
}

hone_status hone_check_foreign(const hone_store_foreign *foreign, hone_error *err)
{
    const hone_check_field texts[] = {
        {"foreign.scheme", foreign->scheme, HONE_CHECK_NAME},
        {"foreign.operation", foreign->operation, HONE_CHECK_TEXT}, // as others name them
        {"foreign.device", foreign->device, HONE_CHECK_TEXT_OR_NULL},
        {"foreign.foreign_key", foreign->foreign_key, HONE_CHECK_TEXT},
        {"foreign.text", foreign->text, HONE_CHECK_TEXT},
        {"foreign.origin", foreign->origin, HONE_CHECK_TEXT_OR_NULL},
    };
    return hone_check_texts(texts, sizeof texts / sizeof *texts, put_foreign_where, err);
}

// Fills the error of a NULL store or function pointer.
hone_status hone_check_handles(const hone_store *store, bool has_visit, const char *where, hone_error *err)
{
    if (store == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store is NULL");
    if (!has_visit) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "visit is NULL: give a function");
    return HONE_OK;
}

hone_status hone_check_decisions(
    const hone_store *store, const hone_store_decision *decisions, size_t count, const char *where, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, where, err);
    if (status == HONE_OK && decisions == NULL && count > 0)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "the decisions are NULL");
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = hone_check_decision(&decisions[i], where, err);
    return status;
}

hone_status hone_store_check_decision(const hone_store_decision *decision, hone_error *err)
{
    return hone_check_decision(decision, batch_where, err);
}

hone_status hone_store_check_measured(const hone_store_measured *measured, hone_error *err)
{
    hone_status status = hone_check_key(&measured->key, batch_where, err);
    return status == HONE_OK ? hone_check_measurement(&measured->measurement, err) : status;
}

hone_status hone_store_check_invocation(const hone_store_invocation *invocation, hone_error *err)
{
    return hone_check_invocation(invocation, err);
}

hone_status hone_store_check_alias(const hone_store_alias *alias, hone_error *err)
{
    return hone_check_alias(alias, err);
}

hone_status hone_store_check_foreign(const hone_store_foreign *foreign, hone_error *err)
{
    return hone_check_foreign(foreign, err);
}

hone_status hone_check_batch(const hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    hone_status status = hone_check_decisions(store, batch->decisions, batch->decision_count, batch_where, err);
    for (size_t i = 0; status == HONE_OK && i < batch->removed_count; i++)
        status = hone_check_key(&batch->removed[i], batch_where, err);
    for (size_t i = 0; status == HONE_OK && i < batch->measured_count; i++)
        status = hone_store_check_measured(&batch->measured[i], err);
    for (size_t i = 0; status == HONE_OK && i < batch->alias_count; i++)
        status = hone_check_alias(&batch->aliases[i], err);
    for (size_t i = 0; status == HONE_OK && i < batch->foreign_count; i++)
        status = hone_check_foreign(&batch->foreigns[i], err);
    return status;
}
