#include "tune/result/bundle.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/number.h"
#include "call/call.h"
#include "config/chain.h"
#include "hone/describe.h"
#include "platforms/platform.h"
#include "registry/failure_kinds.h"
#include "registry/names.h"
#include "store/records.h"
#include "tune/tuner.h"

#include <math.h>
#include <string.h>

static const char where[] = "tune.bundle";

enum { DOCUMENT_VERSION = 1 };

// Members -------------------------------------------------------------------------------------------------------------

static bool is_missing(hone_view member)
{
    return member.size == 0 || hone_json_is_null(member);
}

// Reads a member that is a text; missing: fallback. False: it is something else.
static bool get_text(
    const hone_bundle *bundle, hone_view entry, const char *name, const char *fallback, const char **out)
{
    hone_view member = hone_json_member(entry, name);
    *out = is_missing(member) ? fallback : hone_texts_string(bundle->texts, member);
    return is_missing(member) || *out != NULL;
}

// Reads an object and removes white space between its tokens, because configs are compared as texts.
static bool get_object(
    const hone_bundle *bundle, hone_view entry, const char *name, const char *fallback, const char **out)
{
    hone_view member = hone_json_member(entry, name);
    *out = fallback;
    if (is_missing(member)) return true;
    if (hone_json_is_object(member)) *out = hone_texts_compact(bundle->texts, member);
    return hone_json_is_object(member);
}

static bool get_array(const hone_bundle *bundle, hone_view entry, const char *name, const char **out)
{
    hone_view member = hone_json_member(entry, name);
    *out = hone_json_is_array(member) ? hone_texts_compact(bundle->texts, member) : NULL;
    return is_missing(member) || hone_json_is_array(member);
}

static bool get_real(hone_view entry, const char *name, double fallback, double *out)
{
    hone_view member = hone_json_member(entry, name);
    *out = fallback;
    if (is_missing(member)) return true;
    return hone_json_is_number(member) && hone_number_parse(member.data, member.size, out) && isfinite(*out);
}

typedef struct text_field {
    const char *name, *fallback;
    const char **out;
} text_field;

// Reads texts. Returns the first field that is not a string; NULL when all are.
static const char *get_texts(const hone_bundle *bundle, hone_view entry, const text_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!get_text(bundle, entry, fields[i].name, fields[i].fallback, fields[i].out)) return fields[i].name;
    return NULL;
}

static const char *get_key(const hone_bundle *bundle, hone_view entry, hone_store_key *out)
{
    const text_field fields[] = {
        {"device", bundle->device, &out->device},
        {"algorithm", NULL, &out->algorithm},
        {"version", "1", &out->version},
        {"key", NULL, &out->key},
        {"spec", NULL, &out->spec},
    };
    return get_texts(bundle, entry, fields, sizeof fields / sizeof *fields);
}

static const char *not_a_text(const hone_bundle *bundle, const char *name)
{
    return hone_texts_format(bundle->texts, "%s: a text is expected", name);
}

const char *hone_bundle_text(const hone_bundle *bundle, hone_view object, const char *name)
{
    const char *text = NULL;
    return get_text(bundle, object, name, NULL, &text) ? text : NULL;
}

// Decisions -----------------------------------------------------------------------------------------------------------

static const char *get_evidence(
    const hone_bundle *bundle, hone_view entry, hone_store_decision *out, hone_evidence *out_evidence)
{
    if (!get_object(bundle, entry, "evidence", NULL, &out->evidence) || out->evidence == NULL)
        return "evidence: an object with time_ns is expected";
    hone_view time = hone_json_member(hone_view_of(out->evidence), "time_ns");
    if (!hone_json_is_number(time)) return "evidence.time_ns: a number from 0 is expected";
    hone_error why = {.message = ""};
    hone_status status = hone_evidence_parse(out->evidence, strlen(out->evidence), out_evidence, &why);
    bundle->texts->failed |= status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return hone_texts_keep(bundle->texts, hone_view_of(why.message));
    out->time_ns = out_evidence->time_ns;
    out->regime = out_evidence->regime;
    out->verified = out_evidence->verified_against[0] != '\0';
    return NULL;
}

// Reads `verified` and `regime` of an entry. They take precedence over the evidence.
static const char *get_standing(const hone_bundle *bundle, hone_view entry, hone_store_decision *out)
{
    const char *regime = NULL;
    hone_view verified = hone_json_member(entry, "verified");
    if (!is_missing(verified)) {
        out->verified = hone_view_is(verified, "true");
        if (!out->verified && !hone_view_is(verified, "false")) return "verified: true or false is expected";
    }
    bool is_known = get_text(bundle, entry, "regime", NULL, &regime) &&
                    (regime == NULL || hone_regime_by_name(regime, &out->regime));
    return is_known ? NULL : "regime: expected " HONE_REGIME_NAMES;
}

const char *hone_bundle_decision(
    const hone_bundle *bundle, hone_view entry, hone_store_decision *out, hone_evidence *out_evidence)
{
    const text_field fields[] = {
        {"call", NULL, &out->call},
        {"kernel", NULL, &out->kernel},
        {"platform", hone_platform_name(hone_platform_host()), &out->platform},
        {"source", "autotune", &out->source},
        {"revision", NULL, &out->revision},
    };
    *out = (hone_store_decision){0};
    *out_evidence = (hone_evidence){0};
    if (!hone_json_is_object(entry)) return "an object is expected";
    const char *wrong = get_key(bundle, entry, &out->key);
    if (wrong == NULL) wrong = get_texts(bundle, entry, fields, sizeof fields / sizeof *fields);
    if (wrong != NULL) return not_a_text(bundle, wrong);
    hone_source source;
    if (!hone_source_by_name(out->source, &source)) return "source: no source of that name";
    if (!get_object(bundle, entry, "config", "{}", &out->config)) return "config: an object is expected";
    if (!get_object(bundle, entry, "environment", bundle->environment, &out->environment))
        return "environment: an object is expected";
    const char *why = get_evidence(bundle, entry, out, out_evidence);
    return why != NULL ? why : get_standing(bundle, entry, out);
}

// Checking ------------------------------------------------------------------------------------------------------------

static bool fits(const char *text, size_t size)
{
    return text != NULL && text[0] != '\0' && strlen(text) < size;
}

static hone_status check_texts(const hone_store_decision *decision, hone_error *why)
{
    const struct {
        const char *name, *text;
        size_t size;
    } texts[] = {
        {"device", decision->key.device, 4096},           {"algorithm", decision->key.algorithm, HONE_NAME_SIZE},
        {"version", decision->key.version, 16},           {"kernel", decision->kernel, HONE_NAME_SIZE},
        {"platform", decision->platform, HONE_NAME_SIZE}, {"config", decision->config, 1024},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!fits(texts[i].text, texts[i].size))
            return hone_fail(
                why, HONE_CORRUPT, where, "%s: a text of 1 to %zu bytes is expected", texts[i].name, texts[i].size - 1);
    if (!hone_is_key(decision->key.key))
        return hone_fail(why, HONE_CORRUPT, where, "key: 16 lower-case hex digits are expected");
    if (!isfinite(decision->time_ns) || decision->time_ns < 0)
        return hone_fail(why, HONE_CORRUPT, where, "time_ns: a number from 0 is expected");
    return HONE_OK;
}

// Checks that the text hashes to the key. name: of the text's field.
static hone_status check_spec(const char *name, const char *spec, const char *key, hone_error *why)
{
    char proved[HONE_KEY_SIZE];
    if (spec == NULL) return HONE_OK;
    hone_hash_key(spec, strlen(spec), proved);
    if (strcmp(proved, key) == 0) return HONE_OK;
    return hone_fail(why, HONE_CORRUPT, where, "%s hashes to %s, not to its key: one of them is damaged", name, proved);
}

// A decision may be stored under the key of another call that stands for its call: its bucket, for example.
static hone_status check_stand_ins(const hone_call *call, const char *key, hone_error *why)
{
    hone_stand_ins stand_ins;
    hone_status status = hone_call_stand_ins(call, &stand_ins, why);
    if (status != HONE_OK) return status;
    if (hone_stand_ins_find(&stand_ins, key) == NULL)
        status = hone_fail(
            why, HONE_CORRUPT, where, "call: '%.200s' has the key %s, not the entry's, %s: one of them is damaged",
            hone_call_text(call), hone_call_key(call), key);
    hone_stand_ins_deinit(&stand_ins);
    return status;
}

// Checks that the call is one that the key answers for: an audit, for example, runs the call.
static hone_status check_call(
    const hone_algorithm_entry *algorithm, const hone_store_decision *decision, hone_error *why)
{
    hone_call *call = NULL;
    hone_error reason = {.message = ""};
    if (algorithm == NULL || decision->call == NULL) return HONE_OK;
    hone_status status = hone_call_parse(hone_allocator_system(), algorithm->signature, decision->call, &call, &reason);
    if (status != HONE_OK)
        return hone_fail(why, status, where, "call: expected a call of %s: %s", algorithm->name, reason.message);
    status = check_stand_ins(call, decision->key.key, why);
    hone_call_release(&call);
    return status;
}

// Each backend may have a kernel of this name, so the config must fit one of them.
static hone_status check_config(
    hone_registry *registry,
    const hone_algorithm_entry *algorithm,
    const hone_store_decision *decision,
    hone_platform platform,
    hone_error *why)
{
    hone_config config;
    hone_registry_reader reader;
    hone_registry_enter(registry, &reader);
    const hone_kernel_ref *kernel = hone_kernel_by_name(algorithm, decision->kernel, platform);
    hone_status status = kernel == NULL ? HONE_OK : HONE_INVALID_ARGUMENT;
    for (; kernel != NULL && status == HONE_INVALID_ARGUMENT; kernel = hone_kernel_after(algorithm, kernel, platform))
        status = hone_config_from_json(kernel->space, decision->config, strlen(decision->config), &config, why);
    hone_registry_leave(&reader);
    return status;
}

hone_status hone_bundle_check_decision(hone_registry *registry, const hone_store_decision *decision, hone_error *why)
{
    hone_platform platform;
    hone_status status = check_texts(decision, why);
    if (status == HONE_OK) status = hone_store_check_decision(decision, why);
    if (status == HONE_OK) status = check_spec("spec", decision->key.spec, decision->key.key, why);
    if (status == HONE_OK) status = hone_platform_parse(decision->platform, &platform, why);
    if (status != HONE_OK || registry == NULL) return status;
    // An algorithm that is registered is checked here; others are checked when the decision is served.
    const hone_algorithm_entry *algorithm =
        hone_registry_find(registry, decision->key.algorithm, decision->key.version);
    if (algorithm == NULL) return HONE_OK;
    status = check_call(algorithm, decision, why);
    return status == HONE_OK ? check_config(registry, algorithm, decision, platform, why) : status;
}

static bool is_scheme(const hone_foreign *foreign, const char *scheme)
{
    for (; foreign != NULL; foreign = foreign->older)
        for (size_t i = 0; i < foreign->count; i++)
            if (strcmp(foreign->rows[i].library, scheme) == 0) return true;
    return false;
}

// Whether an operation of another system can be the algorithm. True also if no row describes the operation.
static bool can_be(const hone_foreign_row *row, const char *algorithm)
{
    bool found = row == NULL;
    for (; row != NULL && !found; row = row->older)
        for (size_t i = 0; i < hone_foreign_take_count(row) && !found; i++)
            found = strcmp(hone_foreign_algorithm(row, i), algorithm) == 0;
    return found;
}

static hone_status check_target(hone_registry *registry, const hone_store_key *key, hone_error *why)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(registry, key->algorithm, key->version);
    hone_call *call = NULL;
    hone_error reason = {.message = ""};
    if (algorithm == NULL || key->spec == NULL) return HONE_OK;
    hone_status status = hone_call_from_spec(
        hone_allocator_system(), algorithm->signature, key->spec, strlen(key->spec), &call, &reason);
    hone_call_release(&call);
    if (status == HONE_OK) return HONE_OK;
    return hone_fail(why, status, where, "spec: expected a call of %s: %s", algorithm->name, reason.message);
}

hone_status hone_bundle_check_alias(hone_registry *registry, const hone_store_alias *alias, hone_error *why)
{
    const char *const keys[][2] = {{"foreign_key", alias->foreign_key}, {"key", alias->key.key}};
    const hone_foreign *foreign = NULL;
    for (size_t i = strcmp(alias->scheme, "ejkernel") == 0 ? 0 : 1; i < 2; i++)
        if (!hone_is_key(keys[i][1]))
            return hone_fail(why, HONE_CORRUPT, where, "%s: 16 lower-case hex digits are expected", keys[i][0]);
    hone_status status = check_spec("spec", alias->key.spec, alias->key.key, why);
    if (status == HONE_OK && strcmp(alias->scheme, "ejkernel") == 0)
        status = check_spec("foreign_spec", alias->foreign_spec, alias->foreign_key, why);
    if (status == HONE_OK && registry != NULL) status = hone_registry_foreign(registry, &foreign, why);
    if (status != HONE_OK || registry == NULL) return status;
    if (!is_scheme(foreign, alias->scheme))
        return hone_fail(
            why, HONE_CORRUPT, where, "scheme: '%.60s' is unknown here (ejkernel, tokamax, those of loaded packs)",
            alias->scheme);
    const hone_view operation = {alias->operation, strcspn(alias->operation, "@")};
    if (!can_be(hone_foreign_find(foreign, alias->scheme, operation), alias->key.algorithm))
        return hone_fail(
            why, HONE_CORRUPT, where, "algorithm: %s's %.100s cannot be a call of %.100s", alias->scheme,
            alias->operation, alias->key.algorithm);
    return check_target(registry, &alias->key, why);
}

// Measurements and failures -------------------------------------------------------------------------------------------

static const char *get_times(const hone_bundle *bundle, hone_view entry, hone_store_measurement *m)
{
    double samples = 0;
    bool ok = get_object(bundle, entry, "config", "{}", &m->config) &&
              get_object(bundle, entry, "environment", NULL, &m->environment) &&
              get_real(entry, "time_ns", 0, &m->time_ns) && get_real(entry, "low_ns", 0, &m->low_ns) &&
              get_real(entry, "high_ns", 0, &m->high_ns) && get_real(entry, "max_error", -1, &m->max_error) &&
              get_real(entry, "samples", 0, &samples) && get_array(bundle, entry, "samples_ns", &m->samples_ns);
    if (!ok || !(samples >= 0 && samples <= UINT32_MAX)) return "a field of the wrong kind";
    m->samples = (uint32_t)samples;
    return m->time_ns < 0 || m->low_ns < 0 || m->high_ns < 0 ? "a time below 0" : NULL;
}

static bool is_named(const hone_store_measured *measured)
{
    const hone_store_key *key = &measured->key;
    const char *const needed[] = {
        key->device, key->algorithm, key->version, key->key, measured->measurement.kernel,
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i] == NULL || needed[i][0] == '\0') return false;
    return true;
}

const char *hone_bundle_measured(const hone_bundle *bundle, hone_view entry, hone_store_measured *out)
{
    hone_store_measurement *m = &out->measurement;
    const char *regime = NULL, *failure = NULL;
    const text_field fields[] = {
        {"kernel", NULL, &m->kernel},     {"revision", NULL, &m->revision}, {"reason", NULL, &m->reason},
        {"measured", NULL, &m->measured}, {"regime", "warm", &regime},      {"failure", "none", &failure},
    };
    *out = (hone_store_measured){0};
    if (!hone_json_is_object(entry)) return "an object is expected";
    const char *wrong = get_key(bundle, entry, &out->key);
    if (wrong == NULL) wrong = get_texts(bundle, entry, fields, sizeof fields / sizeof *fields);
    if (wrong != NULL) return not_a_text(bundle, wrong);
    if (!hone_failure_by_name(failure, &m->failure)) return "failure: no failure of that name";
    if (!hone_regime_by_name(regime, &m->regime)) return "regime: expected " HONE_REGIME_NAMES;
    const char *why = get_times(bundle, entry, m);
    if (why == NULL && !is_named(out)) why = "device, algorithm, version, key and kernel are expected";
    hone_error refused = {.message = ""};
    if (why == NULL && hone_store_check_measured(out, &refused) != HONE_OK)
        why = hone_texts_keep(bundle->texts, hone_view_of(refused.message));
    return why;
}

// Aliases and foreign configs -----------------------------------------------------------------------------------------

const char *hone_bundle_alias(const hone_bundle *bundle, hone_view entry, hone_store_alias *out)
{
    const text_field fields[] = {
        {"scheme", NULL, &out->scheme},           {"operation", NULL, &out->operation},
        {"foreign_key", NULL, &out->foreign_key}, {"foreign_spec", NULL, &out->foreign_spec},
        {"device", NULL, &out->key.device},       {"algorithm", NULL, &out->key.algorithm},
        {"version", NULL, &out->key.version},     {"key", NULL, &out->key.key},
        {"spec", NULL, &out->key.spec},
    };
    *out = (hone_store_alias){0};
    bool ok = hone_json_is_object(entry) && get_texts(bundle, entry, fields, sizeof fields / sizeof *fields) == NULL &&
              hone_store_check_alias(out, NULL) == HONE_OK;
    return ok ? NULL : "printable scheme, operation, foreign_key, algorithm, version and key are expected as texts";
}

void hone_bundle_put_alias(const hone_store_alias *alias, const char *entry, hone_buffer *out)
{
    const char *const fields[][2] = {
        {"scheme", alias->scheme},           {"operation", alias->operation},
        {"foreign_key", alias->foreign_key}, {"foreign_spec", alias->foreign_spec},
        {"device", alias->key.device},       {"algorithm", alias->key.algorithm},
        {"version", alias->key.version},     {"key", alias->key.key},
        {"spec", alias->key.spec},           {"entry", entry},
    };
    const char *between = "{";
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i][1] == NULL) continue;
        hone_buffer_text(out, between);
        hone_json_field(out, fields[i][0], fields[i][1]);
        between = ",";
    }
    hone_buffer_char(out, '}');
}

const char *hone_bundle_foreign(const hone_bundle *bundle, hone_view entry, hone_store_foreign *out)
{
    const text_field fields[] = {
        {"scheme", NULL, &out->scheme},           {"operation", NULL, &out->operation}, {"device", "", &out->device},
        {"foreign_key", NULL, &out->foreign_key}, {"text", NULL, &out->text},           {"origin", NULL, &out->origin},
    };
    const char *const *const needed[] = {&out->scheme, &out->operation, &out->foreign_key, &out->text};
    *out = (hone_store_foreign){0};
    bool ok = hone_json_is_object(entry) && get_texts(bundle, entry, fields, sizeof fields / sizeof *fields) == NULL;
    for (size_t i = 0; ok && i < sizeof needed / sizeof *needed; i++)
        ok = *needed[i] != NULL && (*needed[i])[0] != '\0';
    hone_view checked;
    ok = ok && hone_json_text_check(hone_view_of(out->text), HONE_JSON_PYTHON, &checked, NULL) == HONE_OK;
    return ok ? NULL : "scheme, operation, foreign_key and a JSON text are expected";
}

// The document --------------------------------------------------------------------------------------------------------

static hone_status check_version(hone_view document, hone_error *err)
{
    hone_view version = hone_json_member(document, "hone_result");
    int64_t number = 0;
    if (!hone_json_is_number(version) || !hone_integer_parse(version.data, version.size, &number))
        return hone_fail(err, HONE_CORRUPT, where, "no result document: an object with \"hone_result\":1 is expected");
    if (number == DOCUMENT_VERSION) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "a result document of version %lld, this hone reads version %d",
        (long long)number, DOCUMENT_VERSION);
}

static hone_status check_lists(hone_view document, hone_error *err)
{
    static const char *const lists[] = {"entries", "measurements", "aliases", "foreign", "failed"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        hone_view list = hone_json_member(document, lists[i]);
        if ((i == 0 || list.size > 0) && !hone_json_is_array(list))
            return hone_fail(err, HONE_CORRUPT, where, "%s: an array is expected", lists[i]);
    }
    return HONE_OK;
}

hone_status hone_bundle_open(hone_texts *texts, hone_view document, hone_bundle *out, hone_error *err)
{
    *out = (hone_bundle){.texts = texts, .document = document};
    hone_status status = check_version(document, err);
    if (status == HONE_OK) status = check_lists(document, err);
    if (status != HONE_OK) return status;
    if (get_text(out, document, "device", NULL, &out->device) &&
        get_object(out, document, "environment", NULL, &out->environment))
        return HONE_OK;
    return hone_fail(err, HONE_CORRUPT, where, "device is a text, and environment an object, where they are there");
}
