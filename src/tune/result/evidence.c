// Evidence as a JSON object and back. A table has the name and kind of each field.
#include "tune/tuner.h"

#include "base/error.h"
#include "base/json.h"
#include "hone/describe.h"
#include "registry/names.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "tune.evidence";

typedef enum field_kind {
    FIELD_NUMBER,
    FIELD_COUNT,
    FIELD_SEED,
    FIELD_BOOL,
    FIELD_TEXT,
    FIELD_REGIME,
    FIELD_REJECTED
} field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    size_t offset, size;
    bool always; // written also when it is zero
} field;

#define FIELD(member, kind, always)                                                                                    \
    {                                                                                                                  \
#        member, kind, offsetof(hone_evidence, member), sizeof(((hone_evidence *)0)->member), always                   \
    }

static const field fields[] = {
    FIELD(time_ns, FIELD_NUMBER, true),
    FIELD(low_ns, FIELD_NUMBER, false),
    FIELD(high_ns, FIELD_NUMBER, false),
    FIELD(samples, FIELD_COUNT, false),
    FIELD(rounds, FIELD_COUNT, false),
    FIELD(regime, FIELD_REGIME, true),
    FIELD(runner_up, FIELD_TEXT, false),
    FIELD(ratio, FIELD_NUMBER, false),
    FIELD(ratio_low, FIELD_NUMBER, false),
    FIELD(ratio_high, FIELD_NUMBER, false),
    FIELD(default_time_ns, FIELD_NUMBER, false),
    FIELD(default_samples, FIELD_COUNT, false),
    FIELD(verified_against, FIELD_TEXT, false),
    FIELD(verified_by, FIELD_TEXT, false),
    FIELD(tolerance, FIELD_NUMBER, false),
    FIELD(max_error, FIELD_NUMBER, false),
    FIELD(floor_ns, FIELD_NUMBER, false),
    FIELD(floor, FIELD_TEXT, false),
    FIELD(measured, FIELD_COUNT, false),
    FIELD(rejected, FIELD_REJECTED, false),
    FIELD(seconds, FIELD_NUMBER, false),
    FIELD(allowed_seconds, FIELD_NUMBER, false),
    FIELD(prepare_seconds, FIELD_NUMBER, false),
    FIELD(verify_seconds, FIELD_NUMBER, false),
    FIELD(run_seconds, FIELD_NUMBER, false),
    FIELD(wait_seconds, FIELD_NUMBER, false),
    FIELD(load, FIELD_NUMBER, false),
    FIELD(throttled, FIELD_COUNT, false),
    FIELD(stolen, FIELD_NUMBER, false),
    FIELD(disturbed, FIELD_NUMBER, false),
    FIELD(undecided, FIELD_TEXT, false),
    FIELD(seed, FIELD_SEED, false),
    FIELD(isolated, FIELD_BOOL, true),
    FIELD(hone_version, FIELD_TEXT, false),
    FIELD(started, FIELD_TEXT, false),
    FIELD(who, FIELD_TEXT, false),
    FIELD(predicted_regret, FIELD_NUMBER, false),
    FIELD(neighbours, FIELD_TEXT, false),
    FIELD(tuner, FIELD_TEXT, false),
};

enum { FIELD_TOTAL = sizeof fields / sizeof fields[0] };

// Writing -------------------------------------------------------------------------------------------------------------

static bool is_zero(const field *f, const void *at)
{
    const unsigned char *bytes = at;
    if (f->kind == FIELD_TEXT) return bytes[0] == 0;
    for (size_t i = 0; i < f->size; i++)
        if (bytes[i] != 0) return false;
    return true;
}

static void write_rejected(hone_buffer *out, const uint32_t *rejected)
{
    const char *between = "";
    hone_buffer_char(out, '{');
    for (int kind = HONE_FAILURE_NONE + 1; kind < HONE_FAILURE_COUNT; kind++) {
        if (rejected[kind] == 0) continue;
        hone_buffer_format(out, "%s\"%s\":%u", between, hone_failure_name((hone_failure)kind), rejected[kind]);
        between = ",";
    }
    hone_buffer_char(out, '}');
}

static void write_value(hone_buffer *out, const field *f, const void *at)
{
    switch (f->kind) {
    case FIELD_NUMBER:
        hone_json_number(out, *(const double *)at);
        break;
    case FIELD_COUNT:
        hone_buffer_format(out, "%u", *(const uint32_t *)at);
        break;
    case FIELD_SEED:
        hone_buffer_format(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case FIELD_BOOL:
        hone_buffer_text(out, *(const bool *)at ? "true" : "false");
        break;
    case FIELD_TEXT:
        hone_json_string(out, at, strlen(at));
        break;
    case FIELD_REGIME:
        hone_buffer_format(out, "\"%s\"", hone_regime_name(*(const hone_regime *)at));
        break;
    case FIELD_REJECTED:
        write_rejected(out, at);
        break;
    }
}

void hone_evidence_json(const hone_evidence *evidence, hone_buffer *out)
{
    const char *between = "";
    hone_buffer_char(out, '{');
    for (size_t i = 0; i < FIELD_TOTAL; i++) {
        const void *at = (const char *)evidence + fields[i].offset;
        if (!fields[i].always && is_zero(&fields[i], at)) continue;
        hone_buffer_format(out, "%s\"%s\":", between, fields[i].name);
        write_value(out, &fields[i], at);
        between = ",";
    }
    hone_buffer_char(out, '}');
}

// Reading -------------------------------------------------------------------------------------------------------------

static bool read_count(const json_t *value, uint32_t *out)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > UINT32_MAX) return false;
    *out = (uint32_t)number;
    return true;
}

static bool read_rejected(const json_t *object, uint32_t *out)
{
    if (!json_is_object(object)) return false;
    for (int kind = HONE_FAILURE_NONE + 1; kind < HONE_FAILURE_COUNT; kind++) {
        const json_t *value = json_object_get(object, hone_failure_name((hone_failure)kind));
        if (value != NULL && !read_count(value, &out[kind])) return false;
    }
    return true;
}

static bool read_text(const json_t *value, char *out, size_t size)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) >= size) return false;
    snprintf(out, size, "%s", text);
    return true;
}

static bool read_number(const json_t *value, double *out)
{
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= 0;
}

static bool read_seed(const json_t *value, uint64_t *out)
{
    // jansson's integers are signed: a larger seed is written as an unsigned number and read as a real.
    *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)json_number_value(value);
    return json_is_number(value);
}

static bool read_value(const json_t *value, const field *f, void *at)
{
    switch (f->kind) {
    case FIELD_NUMBER:
        return read_number(value, at);
    case FIELD_COUNT:
        return read_count(value, at);
    case FIELD_SEED:
        return read_seed(value, at);
    case FIELD_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_TEXT:
        return read_text(value, at, f->size);
    case FIELD_REGIME:
        return json_is_string(value) && hone_regime_by_name(json_string_value(value), at);
    case FIELD_REJECTED:
        return read_rejected(value, at);
    }
    return false;
}

static hone_status read_all(const json_t *root, hone_evidence *out, hone_error *err)
{
    if (!json_is_object(root)) return hone_fail(err, HONE_CORRUPT, where, "evidence is no JSON object");
    for (size_t i = 0; i < FIELD_TOTAL; i++) {
        const json_t *value = json_object_get(root, fields[i].name);
        if (value == NULL || json_is_null(value)) continue;
        if (!read_value(value, &fields[i], (char *)out + fields[i].offset))
            return hone_fail(err, HONE_CORRUPT, where, "evidence.%s has a value that it cannot have", fields[i].name);
    }
    return HONE_OK;
}

hone_status hone_evidence_parse(const char *json, size_t size, hone_evidence *out, hone_error *err)
{
    json_t *root = NULL;
    hone_evidence evidence = {0};
    hone_status status = hone_json_parse(json, size, &root, err);
    if (status == HONE_OK) status = read_all(root, &evidence, err);
    json_decref(root);
    if (status == HONE_OK) *out = evidence;
    return status;
}

bool hone_evidence_of(const char *json, hone_evidence *out)
{
    memset(out, 0, sizeof *out);
    return json != NULL && hone_evidence_parse(json, strlen(json), out, NULL) == HONE_OK;
}
