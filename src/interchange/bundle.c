// hone's bundles: result documents, read entry by entry, with the texts of configs, evidence and environment as they stand.
#include "interchange/importer.h"

#include "base/error.h"
#include "base/number.h"
#include "registry/names.h"
#include "tune/tuner.h"

#include <math.h>
#include <string.h>

static const char where[] = "interchange.bundle";

enum { DOCUMENT_VERSION = 1 };

typedef struct reading {
    hone_importer *importer;
    const char *origin, *section;
    size_t index;
    const char *device;      // of the document; NULL: none
    const char *environment; // of the document; NULL: none
} reading;

static void refuse(const reading *r, const char *what)
{
    const char *entry = hone_importer_format(r->importer, "%s[%zu]", r->section, r->index);
    hone_importer_refuse(r->importer, r->origin, entry, what);
}

// A member that is a text; missing and null: fallback. False: it is something else.
static bool get_text(const reading *r, hone_view entry, const char *name, const char *fallback, const char **out)
{
    hone_view member = hone_json_member(entry, name);
    *out = fallback;
    if (member.size == 0 || hone_json_is_null(member)) return true;
    *out = hone_importer_string(r->importer, member);
    return *out != NULL;
}

// An object as it is written.
static bool get_object(const reading *r, hone_view entry, const char *name, const char *fallback, const char **out)
{
    hone_view member = hone_json_member(entry, name);
    *out = fallback;
    if (member.size == 0 || hone_json_is_null(member)) return true;
    if (hone_json_is_object(member)) *out = hone_importer_text(r->importer, member);
    return hone_json_is_object(member);
}

static bool get_real(hone_view entry, const char *name, double fallback, double *out)
{
    hone_view member = hone_json_member(entry, name);
    *out = fallback;
    if (member.size == 0 || hone_json_is_null(member)) return true;
    return hone_json_is_number(member) && hone_number_parse(member.data, member.size, out) && isfinite(*out);
}

typedef struct text_field {
    const char *name, *fallback;
    const char **out;
} text_field;

// The first field that is no text; NULL when all are.
static const char *get_texts(const reading *r, hone_view entry, const text_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!get_text(r, entry, fields[i].name, fields[i].fallback, fields[i].out)) return fields[i].name;
    return NULL;
}

static const char *get_key(const reading *r, hone_view entry, hone_store_key *out)
{
    const text_field fields[] = {
        {"device", r->device, &out->device}, {"algorithm", NULL, &out->algorithm},
        {"version", "1", &out->version},     {"key", NULL, &out->key},
        {"spec", NULL, &out->spec},
    };
    return get_texts(r, entry, fields, sizeof fields / sizeof *fields);
}

// Decisions ----------------------------------------------------------------------------------------------------

// Returns what is wrong; NULL: nothing.
static const char *get_evidence(const reading *r, hone_view entry, hone_store_decision *out)
{
    hone_evidence evidence = {0};
    if (!get_object(r, entry, "evidence", NULL, &out->evidence) || out->evidence == NULL)
        return "evidence: an object with time_ns is expected";
    hone_view time = hone_json_member(hone_view_of(out->evidence), "time_ns");
    if (!hone_json_is_number(time) ||
        hone_evidence_parse(out->evidence, strlen(out->evidence), &evidence, NULL) != HONE_OK || evidence.time_ns < 0)
        return "evidence.time_ns: a number from 0 is expected";
    out->time_ns = evidence.time_ns;
    out->regime = evidence.regime;
    out->verified = evidence.verified_against[0] != '\0';
    return NULL;
}

// What an export says of them aloud goes before what evidence says.
static const char *get_standing(const reading *r, hone_view entry, hone_store_decision *out)
{
    const char *regime = NULL;
    hone_view verified = hone_json_member(entry, "verified");
    if (verified.size > 0) out->verified = hone_view_is(verified, "true");
    bool is_known =
        get_text(r, entry, "regime", NULL, &regime) && (regime == NULL || hone_regime_by_name(regime, &out->regime));
    return is_known ? NULL : "regime: warm, cold, warm-stable or cold-stable is expected";
}

static const char *get_decision(const reading *r, hone_view entry, hone_store_decision *out)
{
    const text_field fields[] = {
        {"call", NULL, &out->call},
        {"kernel", NULL, &out->kernel},
        {"platform", "native", &out->platform},
        {"source", "autotune", &out->source},
        {"revision", NULL, &out->revision},
    };
    const char *wrong = get_key(r, entry, &out->key);
    if (wrong == NULL) wrong = get_texts(r, entry, fields, sizeof fields / sizeof *fields);
    if (wrong != NULL) return hone_importer_format(r->importer, "%s: a text is expected", wrong);
    hone_source source;
    if (!hone_source_by_name(out->source, &source)) return "source: no source of that name";
    if (!get_object(r, entry, "config", "{}", &out->config)) return "config: an object is expected";
    if (!get_object(r, entry, "environment", r->environment, &out->environment))
        return "environment: an object is expected";
    const char *why = get_evidence(r, entry, out);
    return why != NULL ? why : get_standing(r, entry, out);
}

static void read_decision(const reading *r, hone_view entry)
{
    hone_store_decision decision = {0};
    const char *wrong = hone_json_is_object(entry) ? get_decision(r, entry, &decision) : "an object is expected";
    if (wrong != NULL)
        refuse(r, wrong);
    else
        hone_importer_take(r->importer, r->origin, &decision);
}

// Measurements and failures ------------------------------------------------------------------------------------

static const char *get_measured(const reading *r, hone_view entry, hone_store_measured *out)
{
    hone_store_measurement *m = &out->measurement;
    const char *regime = NULL, *failure = NULL;
    double samples = 0;
    const text_field fields[] = {
        {"kernel", NULL, &m->kernel},     {"revision", NULL, &m->revision}, {"reason", NULL, &m->reason},
        {"measured", NULL, &m->measured}, {"regime", "warm", &regime},      {"failure", "none", &failure},
    };
    const char *wrong = get_key(r, entry, &out->key);
    if (wrong == NULL) wrong = get_texts(r, entry, fields, sizeof fields / sizeof *fields);
    if (wrong != NULL) return hone_importer_format(r->importer, "%s: a text is expected", wrong);
    if (!hone_failure_by_name(failure, &m->failure)) return "failure: no failure of that name";
    if (!hone_regime_by_name(regime, &m->regime)) return "regime: warm, cold, warm-stable or cold-stable is expected";
    bool ok = get_object(r, entry, "config", "{}", &m->config) &&
              get_object(r, entry, "environment", NULL, &m->environment) &&
              get_real(entry, "time_ns", 0, &m->time_ns) && get_real(entry, "low_ns", 0, &m->low_ns) &&
              get_real(entry, "high_ns", 0, &m->high_ns) && get_real(entry, "max_error", -1, &m->max_error) &&
              get_real(entry, "samples", 0, &samples);
    if (!ok || !(samples >= 0 && samples <= UINT32_MAX)) return "a field of the wrong kind";
    m->samples = (uint32_t)samples;
    if (m->time_ns < 0 || m->low_ns < 0 || m->high_ns < 0) return "a time below 0";
    const hone_store_key *key = &out->key;
    bool named = key->device && key->algorithm && key->version && key->key && m->kernel;
    return named && key->device[0] && key->algorithm[0] && key->version[0] && key->key[0] && m->kernel[0]
               ? NULL
               : "device, algorithm, version, key and kernel are expected";
}

static void read_measured(const reading *r, hone_view entry)
{
    hone_store_measured measured = {0};
    hone_error why = {0};
    const char *wrong = hone_json_is_object(entry) ? get_measured(r, entry, &measured) : "an object is expected";
    if (wrong == NULL && hone_store_check_measured(&measured, &why) != HONE_OK)
        wrong = hone_importer_text(r->importer, hone_view_of(why.message));
    if (wrong != NULL)
        refuse(r, wrong);
    else
        hone_importer_take_measured(r->importer, &measured);
}

// Aliases and foreign configs ----------------------------------------------------------------------------------

static void read_alias(const reading *r, hone_view entry)
{
    hone_store_alias alias = {0};
    const text_field fields[] = {
        {"scheme", NULL, &alias.scheme},           {"operation", NULL, &alias.operation},
        {"foreign_key", NULL, &alias.foreign_key}, {"foreign_spec", NULL, &alias.foreign_spec},
        {"device", NULL, &alias.key.device},       {"algorithm", NULL, &alias.key.algorithm},
        {"version", NULL, &alias.key.version},     {"key", NULL, &alias.key.key},
        {"spec", NULL, &alias.key.spec},
    };
    const char *const *const needed[] = {&alias.scheme,        &alias.operation,   &alias.foreign_key,
                                         &alias.key.algorithm, &alias.key.version, &alias.key.key};
    bool ok = hone_json_is_object(entry) && get_texts(r, entry, fields, sizeof fields / sizeof *fields) == NULL;
    for (size_t i = 0; ok && i < sizeof needed / sizeof *needed; i++)
        ok = *needed[i] != NULL && (*needed[i])[0] != '\0';
    if (ok && hone_store_check_alias(&alias, NULL) == HONE_OK)
        hone_importer_take_alias(r->importer, &alias);
    else
        refuse(r, "printable scheme, operation, foreign_key, algorithm, version and key are expected as texts");
}

static void read_foreign(const reading *r, hone_view entry)
{
    hone_store_foreign foreign = {0};
    const text_field fields[] = {
        {"scheme", NULL, &foreign.scheme}, {"operation", NULL, &foreign.operation},
        {"device", "", &foreign.device},   {"foreign_key", NULL, &foreign.foreign_key},
        {"text", NULL, &foreign.text},     {"origin", NULL, &foreign.origin},
    };
    const char *const *const needed[] = {&foreign.scheme, &foreign.operation, &foreign.foreign_key, &foreign.text};
    bool ok = hone_json_is_object(entry) && get_texts(r, entry, fields, sizeof fields / sizeof *fields) == NULL;
    for (size_t i = 0; ok && i < sizeof needed / sizeof *needed; i++)
        ok = *needed[i] != NULL && (*needed[i])[0] != '\0';
    hone_view checked;
    if (ok && hone_json_text_check(hone_view_of(foreign.text), HONE_JSON_PYTHON, &checked, NULL) != HONE_OK) ok = false;
    if (ok)
        hone_importer_keep(r->importer, &foreign, "kept as it came");
    else
        refuse(r, "scheme, operation, foreign_key and a JSON text are expected");
}

// The document -------------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    void (*read)(const reading *r, hone_view entry);
} sections[] = {
    {"entries", read_decision},
    {"measurements", read_measured},
    {"aliases", read_alias},
    {"foreign", read_foreign},
};

static hone_status check_root(const char *origin, hone_view document, hone_error *err)
{
    hone_view version = hone_json_member(document, "hone_result");
    int64_t number = 0;
    if (!hone_json_is_number(version) || !hone_integer_parse(version.data, version.size, &number))
        return hone_fail(
            err, HONE_CORRUPT, where, "%s: no result document: an object with \"hone_result\":1 is expected", origin);
    if (number != DOCUMENT_VERSION)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%s: a result document of version %lld, this hone reads version %d", origin,
            (long long)number, DOCUMENT_VERSION);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        hone_view list = hone_json_member(document, sections[i].name);
        if ((i == 0 || list.size > 0) && !hone_json_is_array(list))
            return hone_fail(err, HONE_CORRUPT, where, "%s: %s: an array is expected", origin, sections[i].name);
    }
    return HONE_OK;
}

hone_status hone_read_bundle(hone_importer *importer, const char *origin, hone_view document, hone_error *err)
{
    reading r = {.importer = importer, .origin = origin};
    hone_status status = check_root(origin, document, err);
    if (status != HONE_OK) return status;
    if (!get_text(&r, document, "device", NULL, &r.device) ||
        !get_object(&r, document, "environment", NULL, &r.environment))
        return hone_fail(
            err, HONE_CORRUPT, where, "%s: device is a text, and environment an object, where they are there", origin);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        hone_view key, entry;
        hone_json_walk walk = hone_json_walk_of(hone_json_member(document, sections[i].name));
        r.section = sections[i].name;
        for (r.index = 0; hone_json_walk_next(&walk, &key, &entry) && !importer->failed; r.index++)
            sections[i].read(&r, entry);
    }
    return HONE_OK;
}
