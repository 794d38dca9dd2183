// Exporting: what a store holds as one document of one of the formats.
#include "hone/interchange.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/structs.h"
#include "hone/tune.h"
#include "registry/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "interchange.export";

enum { FILE_SIZE = 400 };

// The parts of a document are written side by side, since a store is walked kind by kind.
typedef struct writing {
    const hone_export_options *options;
    hone_store *store;
    hone_buffer text;
    size_t count;
    char *device, *environment; // of the first decision; the document's
    bool one_environment;       // all decisions have it
    hone_buffer scratch;
    hone_status status; // of a dumper
    hone_error *err;
} writing;

static bool is_failed(const writing *w)
{
    return w->text.failed || w->scratch.failed || w->status != HONE_OK;
}

// Parts of documents -------------------------------------------------------------------------------------------

static void put_string(hone_buffer *out, const char *text)
{
    hone_json_string(out, text, strlen(text));
}

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

static bool is_object(const char *text)
{
    hone_view value;
    return text != NULL && hone_json_text_check(hone_view_of(text), HONE_JSON_STRICT, &value, NULL) == HONE_OK &&
           hone_json_is_object(value);
}

static void put_object(hone_buffer *out, const char *name, const char *text)
{
    if (is_object(text)) hone_buffer_format(out, ",\"%s\":%s", name, text);
}

static void next_entry(writing *w)
{
    hone_buffer_text(&w->text, w->count++ > 0 ? ",\n" : "\n");
}

static void leave_out(const writing *w, const hone_store_decision *decision, const char *reason)
{
    char what[200];
    if (w->options->line == NULL) return;
    snprintf(
        what, sizeof what, "%.64s@v%.20s %.20s", decision->key.algorithm, decision->key.version, decision->key.key);
    const hone_import_line line = {HONE_IMPORT_REFUSED, hone_store_url(w->store), what, reason};
    w->options->line(w->options->ctx, &line);
}

static bool is_wanted(const writing *w, const char *device)
{
    return w->options->device == NULL || strcmp(w->options->device, device) == 0;
}

// Bundles ------------------------------------------------------------------------------------------------------

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
    const char *evidence = is_object(decision->evidence) ? decision->evidence : "{}";
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
static void note_first(writing *w, const hone_store_decision *decision)
{
    const char *environment = is_object(decision->environment) ? decision->environment : "{}";
    const hone_allocator *allocator = &w->text.allocator;
    if (w->device == NULL) {
        w->device = hone_copy_text(allocator, decision->key.device, strlen(decision->key.device));
        w->environment = hone_copy_text(allocator, environment, strlen(environment));
        w->one_environment = is_object(decision->environment);
        w->text.failed |= w->device == NULL || w->environment == NULL;
    } else if (strcmp(environment, w->environment) != 0) {
        w->one_environment = false;
    }
}

static bool put_decision(void *ctx, const hone_store_decision *decision)
{
    writing *w = ctx;
    hone_buffer *out = &w->text;
    if (!is_wanted(w, decision->key.device)) return true;
    if (!is_object(decision->config)) {
        leave_out(w, decision, "its config is no JSON object");
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
    return !is_failed(w);
}

static bool put_measured(void *ctx, const hone_store_key *key, const hone_store_measurement *m)
{
    writing *w = ctx;
    hone_buffer *out = &w->text;
    if (!is_wanted(w, key->device) || !is_object(m->config)) return true;
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
    } else {
        put_member(out, "failure", hone_failure_name(m->failure));
        put_member(out, "reason", m->reason);
    }
    hone_buffer_char(out, '}');
    return !is_failed(w);
}

static bool put_alias(void *ctx, const hone_store_alias *alias)
{
    writing *w = ctx;
    next_entry(w);
    hone_buffer_char(&w->text, '{');
    put_member(&w->text, "scheme", alias->scheme);
    put_member(&w->text, "operation", alias->operation);
    put_member(&w->text, "foreign_key", alias->foreign_key);
    put_member(&w->text, "foreign_spec", alias->foreign_spec);
    put_key(&w->text, &alias->key);
    hone_buffer_char(&w->text, '}');
    return !is_failed(w);
}

// In a bundle a foreign config is a text: Python's NaN is no JSON.
static bool put_foreign(void *ctx, const hone_store_foreign *foreign)
{
    writing *w = ctx;
    next_entry(w);
    hone_buffer_char(&w->text, '{');
    put_member(&w->text, "scheme", foreign->scheme);
    put_member(&w->text, "operation", foreign->operation);
    put_member(&w->text, "device", foreign->device);
    put_member(&w->text, "foreign_key", foreign->foreign_key);
    put_member(&w->text, "origin", foreign->origin);
    put_member(&w->text, "text", foreign->text);
    hone_buffer_char(&w->text, '}');
    return !is_failed(w);
}

static void begin_list(writing *w, const char *name)
{
    w->count = 0;
    hone_buffer_format(&w->text, ",\n\"%s\":[", name);
}

static void end_list(writing *w)
{
    hone_buffer_text(&w->text, w->count > 0 ? "\n]" : "]");
}

static hone_status write_bundle(writing *w, hone_error *err)
{
    begin_list(w, "entries");
    hone_status status = hone_store_scan(w->store, NULL, put_decision, w, err);
    end_list(w);
    if (status == HONE_OK && w->options->measurements) {
        begin_list(w, "measurements");
        status = hone_store_scan_measurements(w->store, NULL, put_measured, w, err);
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
    // The head is known only now.
    hone_buffer_text(&w->scratch, "{\"hone_result\":1,\"device\":");
    put_string(&w->scratch, w->device != NULL ? w->device : w->options->device != NULL ? w->options->device : "none");
    if (w->one_environment) hone_buffer_format(&w->scratch, ",\"environment\":%s", w->environment);
    hone_buffer_append(&w->scratch, hone_buffer_string(&w->text), w->text.size);
    const hone_buffer whole = w->scratch;
    w->scratch = w->text;
    w->text = whole;
    return status;
}

// Files --------------------------------------------------------------------------------------------------------

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

// A text as the name of a file: what could lead elsewhere is '_'.
static size_t put_name(char *out, size_t size, const char *text, size_t length)
{
    size_t used = 0;
    for (; used < length && used + 1 < size; used++)
        out[used] = is_plain(text[used]) && !(used == 0 && text[used] == '.') ? text[used] : '_';
    if (used == 0 && size > 1) out[used++] = '_';
    out[used] = '\0';
    return used;
}

static void name_operation(const char *operation, char out[FILE_SIZE])
{
    const char *at = strstr(operation, "@v");
    size_t used = put_name(out, FILE_SIZE / 2, operation, at != NULL ? (size_t)(at - operation) : strlen(operation));
    snprintf(out + used, FILE_SIZE - used, ".json");
}

// The file of a foreign entry: as it was imported, else its operation's.
static void name_foreign(const hone_store_foreign *foreign, char out[FILE_SIZE])
{
    size_t used = 0;
    if (strcmp(foreign->scheme, "tokamax") == 0) {
        const char *device = foreign->device != NULL && foreign->device[0] != '\0' ? foreign->device : "_";
        used = put_name(out, FILE_SIZE / 3, device, strlen(device));
        out[used++] = '/';
        used += put_name(out + used, FILE_SIZE / 3, foreign->operation, strlen(foreign->operation));
        snprintf(out + used, FILE_SIZE - used, ".json");
        return;
    }
    const char *slash = foreign->origin == NULL ? NULL : strrchr(foreign->origin, '/');
    const char *file = foreign->origin == NULL ? "" : slash != NULL ? slash + 1 : foreign->origin;
    size_t size = strlen(file);
    if (size > 5 && size < FILE_SIZE / 2 && strcmp(file + size - 5, ".json") == 0)
        put_name(out, FILE_SIZE, file, size);
    else
        name_operation(foreign->operation, out);
}

static bool is_in_file(const writing *w, const char *file)
{
    return w->options->file == NULL || strcmp(w->options->file, file) == 0;
}

// ejkernel and tokamax -----------------------------------------------------------------------------------------

// "key": value, as Python's json.dump lays it out.
static void put_pair(writing *w, const char *key, const char *value)
{
    if (w->count++ > 0) hone_buffer_text(&w->text, ", ");
    put_string(&w->text, key);
    hone_buffer_text(&w->text, ": ");
    hone_buffer_text(&w->text, value);
}

static void put_entry(writing *w, const hone_store_foreign *entry)
{
    char file[FILE_SIZE];
    name_foreign(entry, file);
    if (!is_in_file(w, file)) return;
    hone_buffer_clear(&w->scratch);
    if (w->options->format == HONE_EXCHANGE_EJKERNEL)
        hone_buffer_format(&w->scratch, "%s|%s|", entry->device != NULL ? entry->device : "", entry->operation);
    hone_buffer_text(&w->scratch, entry->foreign_key);
    put_pair(w, hone_buffer_string(&w->scratch), entry->text);
}

static bool put_as_it_came(void *ctx, const hone_store_foreign *foreign)
{
    put_entry(ctx, foreign);
    return !is_failed(ctx);
}

static void put_own_text(hone_buffer *out, const hone_store_decision *decision)
{
    hone_buffer_clear(out);
    hone_buffer_text(out, "{\"kernel\": ");
    put_string(out, decision->kernel);
    hone_buffer_text(out, ", \"platform\": ");
    put_string(out, decision->platform);
    hone_buffer_format(out, ", \"config\": %s", decision->config);
    if (decision->key.spec != NULL) {
        hone_buffer_text(out, ", \"spec\": ");
        put_string(out, decision->key.spec);
    }
    hone_buffer_char(out, '}');
}

// What the dumper gives must be JSON, or the whole file were none.
static hone_status dump(writing *w, const hone_store_decision *decision, hone_store_foreign *entry)
{
    const hone_codec *codec = w->options->codec;
    hone_view value;
    hone_status status = codec->dump(codec->ctx, decision, entry, w->err);
    if (status != HONE_OK) return status;
    if (entry->text == NULL || entry->foreign_key == NULL || entry->operation == NULL)
        return hone_fail(w->err, HONE_INVALID_ARGUMENT, where, "the dumper left text, operation or key NULL");
    status = hone_json_text_check(hone_view_of(entry->text), HONE_JSON_PYTHON, &value, w->err);
    return status == HONE_OK ? HONE_OK : hone_fail_prefix(w->err, status, "the dumper's text");
}

static bool put_ejkernel_decision(void *ctx, const hone_store_decision *decision)
{
    writing *w = ctx;
    char operation[200];
    hone_buffer own;
    if (!is_wanted(w, decision->key.device)) return true;
    if (!is_object(decision->config)) {
        leave_out(w, decision, "its config is no JSON object");
        return true;
    }
    snprintf(operation, sizeof operation, "%.120s@v%.60s", decision->key.algorithm, decision->key.version);
    hone_store_foreign entry = {
        .scheme = "ejkernel",
        .operation = operation,
        .device = decision->key.device,
        .foreign_key = decision->key.key,
    };
    hone_buffer_init(&own, w->text.allocator);
    hone_status status = HONE_OK;
    if (w->options->codec->dump != NULL) {
        status = dump(w, decision, &entry);
    } else {
        put_own_text(&own, decision);
        entry.text = hone_buffer_string(&own);
        w->text.failed |= own.failed;
    }
    if (status == HONE_OK)
        put_entry(w, &entry);
    else if (status == HONE_NOT_FOUND)
        leave_out(w, decision, "the dumper left it out");
    else
        w->status = status;
    hone_buffer_deinit(&own);
    return !is_failed(w);
}

static hone_status write_pairs(writing *w, hone_error *err)
{
    hone_buffer_char(&w->text, '{');
    hone_status status = hone_store_foreigns(w->store, hone_exchange_name(w->options->format), put_as_it_came, w, err);
    if (status == HONE_OK && w->options->format == HONE_EXCHANGE_EJKERNEL)
        status = hone_store_scan(w->store, NULL, put_ejkernel_decision, w, err);
    hone_buffer_char(&w->text, '}');
    return status;
}

// The public functions -----------------------------------------------------------------------------------------

// Options of the caller's header as this one knows them.
static hone_status read_options(
    const hone_export_options *options, hone_export_options *out, hone_codec *codec, hone_error *err)
{
    *out = (hone_export_options){.struct_size = sizeof *out};
    *codec = (hone_codec){.struct_size = sizeof *codec};
    if (options == NULL) return HONE_OK;
    hone_status status =
        hone_struct_copy(out, sizeof *out, options, options->struct_size, "hone_export_options", where, err);
    if (status == HONE_OK && out->codec != NULL)
        status = hone_struct_copy(codec, sizeof *codec, out->codec, out->codec->struct_size, "hone_codec", where, err);
    out->codec = codec;
    if (status == HONE_OK && ((int)out->format < 0 || out->format >= HONE_EXCHANGE_COUNT))
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is no format", (int)out->format);
    return status;
}

hone_status hone_export(
    hone_store *store, const hone_export_options *options, char **out_text, size_t *out_size, hone_error *err)
{
    hone_export_options known;
    hone_codec codec;
    if (store == NULL || out_text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and out_text must not be NULL");
    *out_text = NULL;
    hone_status status = read_options(options, &known, &codec, err);
    if (status != HONE_OK) return status;
    // The text is freed without a store at hand, hence the system's allocator.
    writing w = {.options = &known, .store = store, .err = err};
    hone_buffer_init(&w.text, hone_allocator_system());
    hone_buffer_init(&w.scratch, w.text.allocator);
    bool is_bundle = known.format == HONE_EXCHANGE_ANY || known.format == HONE_EXCHANGE_HONE;
    status = is_bundle ? write_bundle(&w, err) : write_pairs(&w, err);
    if (w.status != HONE_OK) status = w.status;
    if (status == HONE_OK && (w.text.failed || w.scratch.failed)) status = hone_fail_memory(err, where);
    if (status == HONE_OK) {
        if (out_size != NULL) *out_size = w.text.size;
        *out_text = hone_buffer_take(&w.text);
    }
    hone_free(&w.text.allocator, w.device);
    hone_free(&w.text.allocator, w.environment);
    hone_buffer_deinit(&w.text);
    hone_buffer_deinit(&w.scratch);
    return status;
}

typedef struct naming {
    hone_allocator allocator;
    char (*files)[FILE_SIZE];
    size_t count, capacity;
    bool failed;
} naming;

static bool note_file(naming *n, const char *file)
{
    for (size_t i = n->count; i > 0; i--)
        if (strcmp(n->files[i - 1], file) == 0) return true;
    n->failed = !hone_grow(&n->allocator, &n->files, &n->capacity, n->count + 1, sizeof *n->files);
    if (n->failed) return false;
    snprintf(n->files[n->count++], FILE_SIZE, "%s", file);
    return true;
}

static bool note_foreign(void *ctx, const hone_store_foreign *foreign)
{
    char file[FILE_SIZE];
    name_foreign(foreign, file);
    return note_file(ctx, file);
}

static bool note_decision(void *ctx, const hone_store_decision *decision)
{
    char file[FILE_SIZE];
    name_operation(decision->key.algorithm, file);
    return note_file(ctx, file);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

hone_status hone_export_files(
    hone_store *store, hone_exchange format, bool (*visit)(void *ctx, const char *file), void *ctx, hone_error *err)
{
    if (store == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and visit must not be NULL");
    if (format == HONE_EXCHANGE_ANY || format == HONE_EXCHANGE_HONE) {
        visit(ctx, "hone.json");
        return HONE_OK;
    }
    naming n = {.allocator = hone_allocator_system()};
    hone_status status = hone_store_foreigns(store, hone_exchange_name(format), note_foreign, &n, err);
    if (status == HONE_OK && format == HONE_EXCHANGE_EJKERNEL)
        status = hone_store_scan(store, NULL, note_decision, &n, err);
    if (status == HONE_OK && n.failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK && n.count > 0) {
        qsort(n.files, n.count, sizeof *n.files, by_name);
        for (size_t i = 0; i < n.count && visit(ctx, n.files[i]); i++)
            continue;
    }
    hone_free(&n.allocator, n.files);
    return status;
}
