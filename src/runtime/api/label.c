// hone_call_of_label: finds the call that a label of a program stands for, by the key in the label.
#include "base/error.h"
#include "base/hash.h"
#include "hone/offline.h"
#include "runtime/api/api.h"
#include "store/records.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "call.of_label";

// A label in its parts: "ejkernel_ops#OP@vVERSION:KEY", "hone#OP.vVERSION:KEY", "OP@vVERSION:KEY", "KEY".
typedef struct label_parts {
    char operation[HONE_NAME_SIZE + 20]; // "OP@vVERSION"; "": any
    char key[20];
} label_parts;

static hone_status take_apart(const char *label, label_parts *out, hone_error *err)
{
    const char *hash = strchr(label, '#'), *colon = strrchr(label, ':');
    const char *operation = hash != NULL ? hash + 1 : label, *key = colon != NULL ? colon + 1 : label;
    const size_t size = colon != NULL && colon > operation ? (size_t)(colon - operation) : 0;
    const bool is_ours = hash != NULL && (size_t)(hash - label) == 4 && strncmp(label, "hone", 4) == 0;
    if (!hone_is_key(key) || size >= sizeof out->operation || (hash != NULL && size == 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "'%.80s' is neither a key of 16 hex digits nor a label such as ejkernel_ops#flash_attention@v2:KEY", label);
    snprintf(out->operation, sizeof out->operation, "%.*s", (int)size, operation);
    snprintf(out->key, sizeof out->key, "%s", key);
    char *version = is_ours ? strstr(out->operation, ".v") : NULL;
    if (version != NULL) *version = '@';
    return HONE_OK;
}

// The results of searching a store for the label; the texts belong to the search.
typedef struct search {
    const label_parts *label;
    hone_buffer name, text;                               // "ALGORITHM@vVERSION"; the call's text, or its spec
    bool is_spec, is_decided;                             // no decision tells the text; one did
    char algorithm[HONE_NAME_SIZE], version[16], key[20]; // of the alias; "": there is none
    char taken[HONE_NAME_SIZE], other[HONE_NAME_SIZE];    // the algorithm that was found; another one with the same key
} search;

// A key is computed from sizes and dtypes alone, so calls of several algorithms may share it. Whether this call has the
// algorithm that was found before.
static bool is_of_one_algorithm(search *s, const char *algorithm)
{
    if (s->taken[0] == '\0') snprintf(s->taken, sizeof s->taken, "%s", algorithm);
    if (strcmp(s->taken, algorithm) == 0) return true;
    snprintf(s->other, sizeof s->other, "%s", algorithm);
    return false;
}

static void take(search *s, const hone_store_key *key, const char *text, bool is_spec)
{
    hone_buffer_clear(&s->name);
    hone_buffer_clear(&s->text);
    hone_buffer_format(&s->name, "%s@v%s", key->algorithm, key->version);
    hone_buffer_text(&s->text, text);
    s->is_spec = is_spec;
}

static void take_alias(void *ctx, const hone_store_alias *alias)
{
    search *s = ctx;
    if (alias->key.spec != NULL) take(s, &alias->key, alias->key.spec, true);
    snprintf(s->algorithm, sizeof s->algorithm, "%s", alias->key.algorithm);
    snprintf(s->version, sizeof s->version, "%s", alias->key.version);
    snprintf(s->key, sizeof s->key, "%s", alias->key.key);
}

static bool visit_alias(void *ctx, const hone_store_alias *alias)
{
    search *s = ctx;
    if (strcmp(alias->foreign_key, s->label->key) != 0) return true;
    if (!is_of_one_algorithm(s, alias->key.algorithm)) return false;
    if (s->key[0] == '\0') take_alias(s, alias);
    return true;
}

// A decision has the call's device; a spec does not.
static bool visit_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    search *s = ctx;
    char name[HONE_NAME_SIZE + 20];
    snprintf(name, sizeof name, "%.*s@v%s", HONE_NAME_SIZE - 1, decision->key.algorithm, decision->key.version);
    if (decision->call == NULL ||
        (s->key[0] == '\0' && s->label->operation[0] != '\0' && strcmp(name, s->label->operation) != 0))
        return true;
    if (s->label->operation[0] == '\0' && !is_of_one_algorithm(s, decision->key.algorithm)) return false;
    if (!s->is_decided) take(s, &decision->key, decision->call, false);
    s->is_decided = true;
    return s->label->operation[0] == '\0';
}

static hone_status ask(search *s, hone_store *store, hone_error *err)
{
    const label_parts *label = s->label;
    hone_status status =
        label->operation[0] == '\0'
            ? hone_store_aliases(store, NULL, visit_alias, s, err)
            : hone_store_get_alias(store, "ejkernel", label->operation, label->key, take_alias, s, err);
    if (status != HONE_OK && status != HONE_NOT_FOUND) return status;
    const bool is_alias = s->key[0] != '\0';
    const hone_store_key filter = {
        .algorithm = is_alias ? s->algorithm : NULL,
        .version = is_alias ? s->version : NULL,
        .key = is_alias ? s->key : label->key,
    };
    return hone_store_scan(store, HONE_RECORD_DECISION, &filter, visit_decision, s, err);
}

static hone_status make_call(
    hone_runtime *rt, const search *s, const hone_op **out_op, hone_call **out_call, hone_error *err)
{
    hone_status status = hone_op_get(rt, hone_buffer_string(&s->name), out_op, err);
    if (status != HONE_OK) return status;
    hone_signature *signature = hone_op_signature(*out_op);
    return s->is_spec ? hone_call_from_spec(
                            rt->allocator, signature, hone_buffer_string(&s->text), s->text.size, out_call, err)
                      : hone_call_parse(rt->allocator, signature, hone_buffer_string(&s->text), out_call, err);
}

static hone_status find_call(hone_runtime *rt, search *s, const hone_op **out_op, hone_call **out_call, hone_error *err)
{
    hone_store *const stores[] = {hone_runtime_store(rt), hone_runtime_system_store(rt)};
    hone_status status = HONE_OK;
    for (size_t i = 0; i < 2 && status == HONE_OK && s->text.size == 0; i++)
        if (stores[i] != NULL) status = ask(s, stores[i], err);
    if (status != HONE_OK) return status;
    if (s->name.failed || s->text.failed) return hone_fail_memory(err, where);
    if (s->other[0] != '\0')
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s is the key of calls of %s, %s: name the call", s->label->key,
            s->taken, s->other);
    if (s->text.size > 0) return make_call(rt, s, out_op, out_call, err);
    return hone_fail(
        err, HONE_NOT_FOUND, where, "no store knows the key %s%s%s (hone offline and hone tune --recorded note keys)",
        s->label->key, s->label->operation[0] != '\0' ? " of " : "", s->label->operation);
}

static hone_status parse_text(
    hone_runtime *rt, const char *text, const hone_op **out_op, hone_call **out_call, hone_error *err)
{
    char name[HONE_NAME_SIZE], version[16], full[HONE_NAME_SIZE + 20];
    hone_status status = hone_call_text_name(text, name, sizeof name, version, sizeof version, err);
    if (status != HONE_OK) return status;
    char *end = stpcpy(full, name);
    if (version[0] != '\0') strcpy(stpcpy(end, "@v"), version);
    status = hone_op_get(rt, full, out_op, err);
    return status == HONE_OK ? hone_call_parse(rt->allocator, hone_op_signature(*out_op), text, out_call, err) : status;
}

hone_status hone_call_of_label(
    hone_runtime *rt, const char *label, const hone_op **out_op, hone_call **out_call, hone_error *err)
{
    if (rt == NULL || label == NULL || out_op == NULL || out_call == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the runtime, the label, out_op and out_call must not be NULL");
    label_parts parts;
    search s = {.label = &parts};
    *out_call = NULL;
    if (strchr(label, '(') != NULL || (strchr(label, ':') == NULL && !hone_is_key(label)))
        return parse_text(rt, label, out_op, out_call, err);
    hone_status status = take_apart(label, &parts, err);
    if (status != HONE_OK) return status;
    hone_buffer_init(&s.name, rt->allocator);
    hone_buffer_init(&s.text, rt->allocator);
    status = find_call(rt, &s, out_op, out_call, err);
    hone_buffer_deinit(&s.name);
    hone_buffer_deinit(&s.text);
    return status;
}
