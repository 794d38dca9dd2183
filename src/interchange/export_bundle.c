// hone's bundles, written.
#include "interchange/exporter.h"

#include "base/json.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "hone/describe.h"
#include "hone/tune.h"
#include "registry/names.h"
#include "store/records.h"
#include "tune/result/bundle.h"

#include <string.h>

// Members -------------------------------------------------------------------------------------------------------------

// ,"name":"text" where there is one.
static void put_member(hone_buffer *out, const char *name, const char *text)
{
    if (text == NULL) return;
    if (out->size > 0 && out->data[out->size - 1] != '{') hone_buffer_char(out, ',');
    hone_json_field(out, name, text);
}

static void put_number(hone_buffer *out, const char *name, double number)
{
    hone_buffer_format(out, ",\"%s\":", name);
    hone_json_number(out, number);
}

static void put_object(hone_buffer *out, const char *name, const char *text)
{
    if (hone_is_object(text)) hone_buffer_format(out, ",\"%s\":%s", name, text);
}

// Writes a list as it stands in the store. Text that is not a JSON list is left out.
static void put_list(hone_buffer *out, const char *name, const char *text)
{
    hone_view list;
    if (text != NULL && hone_json_text_check(hone_view_of(text), HONE_JSON_STRICT, &list, NULL) == HONE_OK &&
        hone_json_is_array(list))
        hone_buffer_format(out, ",\"%s\":%s", name, text);
}

static void next_entry(hone_exporter *w)
{
    hone_buffer_text(&w->text, w->count++ > 0 ? ",\n" : "\n");
}

// Entries -------------------------------------------------------------------------------------------------------------

static void put_key(hone_buffer *out, const hone_store_key *key)
{
    put_member(out, "device", key->device);
    put_member(out, "algorithm", key->algorithm);
    put_member(out, "version", key->version);
    put_member(out, "key", key->key);
    put_member(out, "spec", key->spec);
}

// Evidence as it stands, with the time where it has none: a reader asks for it.
static void put_evidence(hone_buffer *out, const hone_store_decision *decision)
{
    const char *evidence = hone_is_object(decision->evidence) ? decision->evidence : "{}";
    hone_view value, key, member;
    (void)!hone_json_text_check(hone_view_of(evidence), HONE_JSON_STRICT, &value, NULL);
    hone_buffer_text(out, ",\"evidence\":");
    if (hone_json_is_number(hone_json_member(value, "time_ns"))) {
        hone_buffer_append(out, value.data, value.size);
        return;
    }
    hone_buffer_text(out, "{\"time_ns\":");
    hone_json_number(out, decision->time_ns);
    for (hone_json_walk walk = hone_json_walk_of(value); hone_json_walk_next(&walk, &key, &member);) {
        hone_buffer_char(out, ',');
        hone_buffer_append(out, key.data, key.size);
        hone_buffer_char(out, ':');
        hone_buffer_append(out, member.data, member.size);
    }
    hone_buffer_char(out, '}');
}

// The first decision's device and environment are the document's.
static void note_first(hone_exporter *w, const hone_store_decision *decision)
{
    const char *environment = hone_is_object(decision->environment) ? decision->environment : "{}";
    const hone_allocator *allocator = &w->text.allocator;
    if (w->device == NULL) {
        w->device = hone_copy_text(allocator, decision->key.device, strlen(decision->key.device));
        w->environment = hone_copy_text(allocator, environment, strlen(environment));
        w->one_environment = hone_is_object(decision->environment);
        w->text.failed |= w->device == NULL || w->environment == NULL;
    } else if (strcmp(environment, w->environment) != 0) {
        w->one_environment = false;
    }
}

static bool put_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    hone_exporter *w = ctx;
    hone_buffer *out = &w->text;
    if (!hone_exporter_wants(w, decision->key.device)) return true;
    if (!hone_is_object(decision->config)) {
        hone_exporter_leave_out(w, decision, "its config is not a JSON object");
        return true;
    }
    note_first(w, decision);
    next_entry(w);
    hone_buffer_char(out, '{');
    put_key(out, &decision->key);
    put_member(out, "call", decision->call);
    put_member(out, "kernel", decision->kernel);
    put_member(out, "platform", decision->platform);
    put_member(out, "source", decision->source);
    put_member(out, "revision", decision->revision);
    put_member(out, "regime", hone_regime_name(decision->regime));
    hone_buffer_format(out, ",\"verified\":%s", decision->verified ? "true" : "false");
    put_object(out, "config", decision->config);
    put_evidence(out, decision);
    put_object(out, "environment", decision->environment);
    hone_buffer_char(out, '}');
    return !hone_exporter_is_failed(w);
}

static bool put_measured(void *ctx, const hone_store_record *record)
{
    const hone_store_key *key = record->key;
    const hone_store_measurement *m = record->measurement;
    hone_exporter *w = ctx;
    hone_buffer *out = &w->text;
    if (!hone_exporter_wants(w, key->device) || !hone_is_object(m->config)) return true;
    next_entry(w);
    hone_buffer_char(out, '{');
    put_key(out, key);
    put_member(out, "kernel", m->kernel);
    put_member(out, "revision", m->revision);
    put_member(out, "regime", hone_regime_name(m->regime));
    put_member(out, "measured", m->measured);
    put_object(out, "config", m->config);
    put_object(out, "environment", m->environment);
    if (m->failure == HONE_FAILURE_NONE) {
        put_number(out, "time_ns", m->time_ns);
        put_number(out, "low_ns", m->low_ns);
        put_number(out, "high_ns", m->high_ns);
        put_number(out, "max_error", m->max_error);
        hone_buffer_format(out, ",\"samples\":%u", m->samples);
        put_list(out, "samples_ns", m->samples_ns);
    } else {
        put_member(out, "failure", hone_failure_name(m->failure));
        put_member(out, "reason", m->reason);
    }
    hone_buffer_char(out, '}');
    return !hone_exporter_is_failed(w);
}

static bool put_alias(void *ctx, const hone_store_alias *alias)
{
    hone_exporter *w = ctx;
    next_entry(w);
    hone_bundle_put_alias(alias, NULL, &w->text);
    return !hone_exporter_is_failed(w);
}

// In a bundle a foreign config is a text: Python's NaN is no JSON.
static bool put_foreign(void *ctx, const hone_store_foreign *foreign)
{
    hone_exporter *w = ctx;
    if (hone_store_is_note(foreign->scheme)) return true;
    next_entry(w);
    hone_buffer_char(&w->text, '{');
    put_member(&w->text, "scheme", foreign->scheme);
    put_member(&w->text, "operation", foreign->operation);
    put_member(&w->text, "device", foreign->device);
    put_member(&w->text, "foreign_key", foreign->foreign_key);
    put_member(&w->text, "origin", foreign->origin);
    put_member(&w->text, "text", foreign->text);
    hone_buffer_char(&w->text, '}');
    return !hone_exporter_is_failed(w);
}

static void begin_list(hone_exporter *w, const char *name)
{
    w->count = 0;
    hone_buffer_format(&w->text, ",\n\"%s\":[", name);
}

static void end_list(hone_exporter *w)
{
    hone_buffer_text(&w->text, w->count > 0 ? "\n]" : "]");
}

// The head is known only when the decisions are written.
static void put_head(hone_exporter *w)
{
    hone_buffer_text(&w->scratch, "{\"hone_result\":1,\"device\":");
    const char *device = w->device != NULL ? w->device : w->options->device != NULL ? w->options->device : "none";
    hone_json_string(&w->scratch, device, strlen(device));
    if (w->one_environment) hone_buffer_format(&w->scratch, ",\"environment\":%s", w->environment);
    hone_buffer_append(&w->scratch, hone_buffer_string(&w->text), w->text.size);
    const hone_buffer whole = w->scratch;
    w->scratch = w->text;
    w->text = whole;
}

hone_status hone_write_bundle(hone_exporter *w, hone_error *err)
{
    begin_list(w, "entries");
    hone_status status = hone_store_scan(w->store, HONE_RECORD_DECISION, NULL, put_decision, w, err);
    end_list(w);
    if (status == HONE_OK && w->options->measurements) {
        begin_list(w, "measurements");
        status = hone_store_scan(w->store, HONE_RECORD_MEASUREMENT, NULL, put_measured, w, err);
        end_list(w);
    }
    if (status != HONE_OK) return status;
    begin_list(w, "aliases");
    status = hone_store_aliases(w->store, NULL, put_alias, w, err);
    end_list(w);
    if (status != HONE_OK) return status;
    begin_list(w, "foreign");
    status = hone_store_foreigns(w->store, NULL, put_foreign, w, err);
    end_list(w);
    hone_buffer_text(&w->text, "}\n");
    put_head(w);
    return status;
}
