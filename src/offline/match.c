// The order of matching is the table `ways`: arguments in the label, a recorded invocation, arguments proved by the
// key, operands alone.
#include "offline/match.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "call/ejkernel.h"
#include "call/foreign.h"
#include "hone/describe.h"
#include "offline/operands.h"
#include "offline/prove.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "offline.match";

typedef struct matcher {
    const hone_offline_environment *environment;
    hone_arena *arena;
    const hone_found *found;
    const hone_label *label;
    const hone_foreign_row *row;       // of another library's operation; NULL: there is none
    const hone_algorithm_entry *entry; // NULL: hone does not have the algorithm
    hone_matched *out;
    int *patience;
    hone_call *best; // of those that fit the operands
    int best_rank;
    hone_buffer spec; // of the call, in the words of whoever made the label
    hone_error why;   // why the last way did not give a call
    bool disproved;   // the key is that of other arguments than the program shows
    bool failed;      // memory was short
} matcher;

static const char *keep(matcher *m, const char *text, size_t size)
{
    const char *kept = hone_arena_text(m->arena, text, size);
    m->failed |= kept == NULL;
    return kept;
}

static const char *keep_view(matcher *m, hone_view view)
{
    return view.size > 0 ? keep(m, view.data, view.size) : NULL;
}

static bool is_hone(const matcher *m)
{
    return m->label->kind == HONE_LABEL_HONE;
}

// --- calls

static bool take_call(matcher *m, hone_call *call, hone_match how)
{
    m->out->call = call;
    m->out->shown.matched = how;
    return true;
}

// A call of hone's own, of which the spec at hand is the text.
static bool take_own(matcher *m, hone_match how)
{
    hone_call *call;
    m->out->shown.matched = how;
    hone_status status = hone_call_from_spec(
        m->environment->allocator, m->entry->signature, hone_buffer_string(&m->spec), m->spec.size, &call, &m->why);
    m->failed |= status == HONE_OUT_OF_MEMORY;
    return status == HONE_OK ? take_call(m, call, how) : true;
}

static hone_status make_call(matcher *m, const json_t *arguments, hone_call **out, int64_t *out_times)
{
    const hone_offline_environment *e = m->environment;
    if (m->row == NULL)
        return hone_foreign_call(&e->allocator, NULL, 0, m->entry->signature, arguments, out, out_times, &m->why);
    return hone_registry_take_foreign(
        e->registry, &e->allocator, m->row, arguments, &m->entry, out, out_times, &m->why);
}

// What is known of the arguments is known also when hone cannot take them: then the reason, in m->why, says why.
static bool take_arguments(matcher *m, const json_t *arguments, hone_match how)
{
    hone_call *call = NULL;
    int64_t times = 1, *count = &m->out->shown.count;
    m->out->shown.matched = how;
    if (m->row == NULL && m->entry == NULL) return true;
    hone_status status = make_call(m, arguments, &call, &times);
    m->failed |= status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return true;
    if (*count >= 0 && __builtin_mul_overflow(*count, times, count)) *count = -1;
    return take_call(m, call, how);
}

static bool take_named(matcher *m, const json_t *args, const json_t *kwargs, hone_match how)
{
    json_t *arguments = json_copy((json_t *)(uintptr_t)kwargs);
    hone_signature *theirs = hone_foreign_signature(m->row);
    if (theirs == NULL && m->entry != NULL) theirs = m->entry->signature;
    m->failed |= arguments == NULL;
    bool taken =
        arguments != NULL && hone_foreign_name_arguments(theirs, args, arguments) && take_arguments(m, arguments, how);
    json_decref(arguments);
    return taken;
}

// Reads the spec at hand, hone's or a library's, as a call.
static bool take_spec(matcher *m, hone_match how)
{
    if (is_hone(m)) return m->entry == NULL || take_own(m, how);
    json_t *root = NULL;
    hone_status status =
        hone_spec_json(&m->environment->allocator, hone_buffer_string(&m->spec), m->spec.size, &root, &m->why);
    m->failed |= status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return false;
    bool taken = take_named(m, json_object_get(root, "args_spec"), json_object_get(root, "kwargs_spec"), how);
    json_decref(root);
    return taken;
}

// The spec that a payload's arguments make, and the key that it hashes to.
static bool write_payload_spec(matcher *m, const json_t *payload)
{
    json_t *args = json_object_get(payload, "args"), *kwargs = json_object_get(payload, "kwargs");
    if (!json_is_array(args) || !json_is_object(kwargs)) return false;
    hone_buffer_clear(&m->spec);
    hone_buffer_text(&m->spec, "{\"args_spec\":");
    hone_json_canonical(&m->spec, args);
    hone_buffer_text(&m->spec, ",\"batch_axes\":null,\"kwargs_spec\":");
    hone_json_canonical(&m->spec, kwargs);
    hone_buffer_text(&m->spec, ",\"method\":null}");
    m->failed |= m->spec.failed;
    return !m->failed;
}

// The label's JSON, and the label with it in place of what the program escaped.
static void show_payload(matcher *m, const char *json)
{
    const hone_view text = m->label->text;
    const char *brace = memchr(text.data, '{', text.size);
    hone_buffer label;
    m->out->shown.payload = json;
    if (brace == NULL) return;
    hone_buffer_init(&label, m->environment->allocator);
    hone_buffer_append(&label, text.data, (size_t)(brace - text.data));
    hone_buffer_text(&label, json);
    if (brace > text.data && brace[-1] == '(') hone_buffer_char(&label, ')');
    m->failed |= label.failed;
    m->out->shown.label = keep(m, hone_buffer_string(&label), label.size);
    hone_buffer_deinit(&label);
}

// The payload of a label. NULL: it is no JSON, or memory was short.
static json_t *read_payload(matcher *m)
{
    const char *json = hone_label_json(m->arena, m->label);
    json_t *payload = NULL;
    if (json == NULL) m->failed = true;
    if (m->failed) return NULL;
    hone_status status = hone_spec_json(&m->environment->allocator, json, strlen(json), &payload, &m->why);
    m->failed |= status == HONE_OUT_OF_MEMORY;
    if (status == HONE_OK) show_payload(m, json);
    return status == HONE_OK ? payload : NULL;
}

static bool match_tokamax(matcher *m)
{
    json_t *payload = read_payload(m);
    if (payload == NULL) return false;
    const json_t *arguments = json_object_get(payload, "arguments");
    bool taken = take_arguments(m, json_is_object(arguments) ? arguments : payload, HONE_MATCH_LABEL);
    json_decref(payload);
    return taken;
}

static bool match_payload(matcher *m)
{
    json_t *payload = read_payload(m);
    if (payload == NULL) return false;
    bool written = write_payload_spec(m, payload);
    if (written) {
        char key[HONE_KEY_SIZE];
        hone_hash_key(hone_buffer_string(&m->spec), m->spec.size, key);
        m->out->shown.key = keep(m, key, HONE_KEY_SIZE - 1);
        written = take_named(m, json_object_get(payload, "args"), json_object_get(payload, "kwargs"), HONE_MATCH_LABEL);
    }
    json_decref(payload);
    return written;
}

static bool is_seen(const hone_found *found, const hone_tensor *tensor)
{
    for (uint32_t v = 0; v < found->view_count; v++)
        if (hone_operands_find(&found->views[v], tensor, found->vmaps) < HONE_OPERANDS_NONE) return true;
    return false;
}

// Where the program shows what the operations under the label read: whether that has each array that the call takes.
static bool reads_all(const matcher *m, const hone_call *call)
{
    const hone_signature *signature = m->entry->signature;
    for (size_t i = 0; m->found->view_count > 0 && i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor =
            hone_signature_parameter(signature, i)->is_result ? NULL : hone_call_tensor(call, i);
        if (tensor != NULL && !is_seen(m->found, tensor)) return false;
    }
    return true;
}

static bool match_label(matcher *m)
{
    if (m->label->kind == HONE_LABEL_JSON) return match_payload(m);
    if (m->label->kind == HONE_LABEL_TOKAMAX) return match_tokamax(m);
    if (!is_hone(m) || m->found->call.size == 0 || m->entry == NULL) return false;
    const char *text = hone_arena_text(m->arena, m->found->call.data, m->found->call.size);
    hone_call *call = NULL;
    m->failed |= text == NULL;
    if (text == NULL) return false;
    hone_status status = hone_call_parse(m->environment->allocator, m->entry->signature, text, &call, &m->why);
    m->failed |= status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return false;
    if (!hone_view_is(m->label->key, hone_call_key(call)) && !reads_all(m, call)) {
        (void)hone_fail(
            &m->why, HONE_UNSUPPORTED, where,
            "the call in the label matches neither its key nor what its operations read: %.100s", text);
        hone_call_release(&call);
        return false;
    }
    return take_call(m, call, HONE_MATCH_LABEL);
}

static bool match_recorded(matcher *m)
{
    const hone_operation *shown = &m->out->shown;
    if (shown->key == NULL || shown->version == NULL || m->environment->recorded == NULL) return false;
    hone_buffer_clear(&m->spec);
    void *ctx = m->environment->ctx;
    if (!m->environment->recorded(ctx, shown->algorithm, shown->version, shown->key, &m->spec)) return false;
    m->failed |= m->spec.failed;
    char key[HONE_KEY_SIZE];
    hone_hash_key(hone_buffer_string(&m->spec), m->spec.size, key);
    if (strcmp(key, shown->key) != 0) return false; // a record whose text is not what its key says proves nothing
    return take_spec(m, HONE_MATCH_RECORDED);
}

// A key that nothing which the program shows hashes to disproves what the operands alone look like; where it is not
// known how a library writes the text, it says nothing.
static bool match_proved(matcher *m)
{
    const hone_operation *shown = &m->out->shown;
    const hone_foreign_row *row = m->row; // the newest that knows the library's function
    while (row != NULL && row->signature == NULL && row->older != NULL)
        row = row->older;
    const bool theirs = row != NULL && row->signature != NULL;
    if (shown->key == NULL || (m->entry == NULL && !theirs) || m->found->view_count == 0) return false;
    const hone_prove_question question = {
        .signature = theirs ? row->signature : m->entry->signature,
        .row = row,
        .foreign = !is_hone(m),
        .found = m->found,
        .key = shown->key,
    };
    bool proved = hone_prove(&m->environment->allocator, &question, m->patience, &m->spec);
    m->failed |= m->spec.failed;
    m->disproved = !proved && (is_hone(m) || theirs);
    return proved && take_spec(m, HONE_MATCH_PROVED);
}

// How late in the program's operations under the label an array like the call's first result is made; 0: last of all.
static int rank_result(const matcher *m, const hone_call *call)
{
    const hone_signature *signature = m->entry->signature;
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor =
            hone_signature_parameter(signature, i)->is_result ? hone_call_tensor(call, i) : NULL;
        if (tensor != NULL) return hone_operands_find(&m->found->made, tensor, m->found->vmaps);
    }
    return 0;
}

// Keeps the arguments whose result is made latest: the results of a call are what it ends with.
static bool bind_operands(
    void *ctx, const hone_value *values, size_t count, const hone_array *arrays, size_t array_count)
{
    matcher *m = ctx;
    (void)arrays;
    (void)array_count;
    hone_call *call;
    hone_status status =
        hone_call_bind(m->environment->allocator, m->entry->signature, values, count, true, &call, &m->why);
    m->failed |= status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return m->failed;
    int rank = rank_result(m, call);
    if (m->best != NULL && rank >= m->best_rank) {
        hone_call_release(&call);
        return false;
    }
    hone_call_release(&m->best);
    m->best = call;
    m->best_rank = rank;
    return rank == 0;
}

static bool match_operands(matcher *m)
{
    if (m->entry == NULL || m->found->view_count == 0) return false;
    hone_buffer_clear(&m->spec); // what is in it belongs to a way that led nowhere
    hone_arguments_try(m->entry->signature, m->found, false, bind_operands, m);
    if (m->failed || m->best == NULL) return false;
    hone_call *best = m->best;
    m->best = NULL;
    return take_call(m, best, HONE_MATCH_OPERANDS);
}

static bool (*const ways[])(matcher *m) = {match_label, match_recorded, match_proved, match_operands};

// --- words

static bool has_kernel(const hone_algorithm_entry *entry)
{
    hone_registry_reader reader;
    hone_registry_enter(entry->registry, &reader);
    size_t count;
    bool found = false;
    const hone_kernel_ref *const *kernels = hone_registry_list(entry, &count);
    for (size_t i = 0; i < count && !found; i++)
        found = !kernels[i]->kernel.is_reference;
    hone_registry_leave(&reader);
    return found;
}

static void say_why_not(matcher *m)
{
    hone_operation *shown = &m->out->shown;
    char text[sizeof m->why.message + 100];
    if (m->entry == NULL && is_hone(m) &&
        hone_registry_find(m->environment->registry, shown->algorithm, NULL) != NULL) {
        snprintf(text, sizeof text, "'%.100s' has no version %.100s here", shown->algorithm, shown->version);
    } else if (m->entry == NULL) {
        snprintf(
            text, sizeof text, "hone has no algorithm named '%.100s'",
            m->row != NULL ? hone_foreign_algorithm(m->row, 0) : shown->algorithm);
    } else if (m->out->call != NULL && !has_kernel(m->entry)) {
        snprintf(text, sizeof text, "no kernel of '%.100s' is registered", m->entry->name);
    } else if (m->out->call != NULL && m->disproved) {
        snprintf(
            text, sizeof text,
            "the label's key is of other arguments than the program shows; record the program's calls and import them");
    } else if (m->out->call != NULL) {
        return;
    } else if (shown->matched != HONE_MATCH_NONE || m->why.status != HONE_OK) {
        snprintf(text, sizeof text, "%s", m->why.message);
    } else {
        snprintf(
            text, sizeof text,
            "the program does not show which arrays it reads; record the program's calls and import them");
    }
    shown->reason = keep(m, text, strlen(text));
}

static void show(matcher *m)
{
    hone_operation *shown = &m->out->shown;
    if (m->out->call != NULL) {
        const char *text = hone_call_text(m->out->call), *key = hone_call_key(m->out->call);
        shown->call = keep(m, text, strlen(text));
        shown->call_key = keep(m, key, strlen(key));
    }
    say_why_not(m);
    shown->tunable = m->out->call != NULL && shown->reason == NULL;
    bool theirs = !is_hone(m) && m->label->kind != HONE_LABEL_TOKAMAX;
    if (theirs && m->spec.size > 0) m->out->foreign_spec = keep(m, hone_buffer_string(&m->spec), m->spec.size);
}

// Where the label stands: the path of scopes without it, else the function, "@NAME"; and the arrays that are read.
static void keep_place(matcher *m)
{
    hone_operation *shown = &m->out->shown;
    hone_view prefix = m->found->label->prefix;
    char name[200];
    while (prefix.size > 0 && (prefix.data[prefix.size - 1] == '/' || prefix.data[prefix.size - 1] == '('))
        prefix.size--; // also "vmap(", which the label stands in
    shown->path = keep_view(m, prefix);
    if (prefix.size == 0 && m->found->body.size > 0) {
        snprintf(name, sizeof name, "@%.*s", (int)m->found->body.size, m->found->body.data);
        shown->path = keep(m, name, strlen(name));
    }
    hone_buffer arrays;
    hone_buffer_init(&arrays, m->environment->allocator);
    const hone_operands *view = m->found->view_count > 0 ? &m->found->views[0] : NULL;
    for (uint32_t i = 0; view != NULL && i < view->count; i++) {
        hone_array array;
        if (!hone_array_read(view->types[i], &array)) continue;
        hone_buffer_format(&arrays, "%s%s[", arrays.size > 0 ? ", " : "", hone_dtype_find(array.dtype)->name);
        hone_buffer_integers(&arrays, array.dims, (size_t)array.ndim);
        hone_buffer_char(&arrays, ']');
    }
    m->failed |= arrays.failed;
    if (arrays.size > 0) shown->arrays = keep(m, arrays.data, arrays.size);
    hone_buffer_deinit(&arrays);
}

static void name_operation(matcher *m)
{
    hone_operation *shown = &m->out->shown;
    shown->algorithm = keep_view(m, m->label->operation);
    shown->version = keep_view(m, m->label->version);
    shown->key = keep_view(m, m->label->key);
    shown->label = keep_view(m, m->label->text);
    shown->count = m->found->count;
    keep_place(m);
    if (m->failed || is_hone(m) || shown->version == NULL) return;
    hone_buffer name;
    hone_buffer_init(&name, m->environment->allocator);
    hone_buffer_format(&name, "%s@v%s", shown->algorithm, shown->version);
    m->failed |= name.failed;
    m->out->operation = keep(m, hone_buffer_string(&name), name.size);
    hone_buffer_deinit(&name);
}

// What makes two operations one: the key, where there is one; else the call, else what was seen of the operands.
static void identify(matcher *m)
{
    const hone_operation *shown = &m->out->shown;
    hone_buffer name;
    hone_buffer_init(&name, m->environment->allocator);
    hone_buffer_format(&name, "%s\n%s\n", is_hone(m) ? "hone" : "", shown->algorithm);
    hone_buffer_text(&name, shown->key != NULL ? shown->key : shown->call != NULL ? shown->call : "");
    bool payload = m->label->kind == HONE_LABEL_TOKAMAX && shown->call == NULL;
    if (payload) hone_buffer_append(&name, m->label->payload.data, m->label->payload.size);
    m->failed |= name.failed;
    m->out->identity = keep(m, hone_buffer_string(&name), name.size);
    hone_buffer_deinit(&name);
}

// --- labels that lie

// Labels outlive what they name: a compile cache gives back programs with the labels of an earlier run. Arguments of
// which no array is read by the operations under the label are such.
static bool disagrees(const matcher *m)
{
    const hone_match how = m->out->shown.matched;
    bool told = how == HONE_MATCH_LABEL || how == HONE_MATCH_RECORDED;
    if (!told || m->out->call == NULL || m->found->view_count == 0 || m->found->transposed) return false;
    size_t count = hone_signature_count(m->entry->signature);
    for (size_t i = 0; i < count; i++) {
        const hone_tensor *tensor = hone_call_tensor(m->out->call, i);
        if (tensor != NULL && is_seen(m->found, tensor)) return false;
    }
    return true;
}

// "gated_linear_unit" for "GatedLinearUnit".
static void write_snake(const char *name, char *out, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; name[i] != '\0' && at + 2 < size; i++) {
        const bool upper = name[i] >= 'A' && name[i] <= 'Z';
        if (upper && i > 0) out[at++] = '_';
        out[at++] = upper ? (char)(name[i] - 'A' + 'a') : name[i];
    }
    out[at] = '\0';
}

// hone's versions are its own: a library's operation is what its row says, else the newest algorithm of its name.
static void find_algorithm(matcher *m)
{
    hone_registry *registry = m->environment->registry;
    const hone_operation *shown = &m->out->shown;
    const hone_foreign *foreign = NULL;
    char name[64];
    if (is_hone(m)) {
        m->entry = hone_registry_find(registry, shown->algorithm, shown->version);
        return;
    }
    m->failed |= hone_registry_foreign(registry, &foreign, &m->why) == HONE_OUT_OF_MEMORY;
    const char *library = m->label->kind == HONE_LABEL_TOKAMAX ? "tokamax" : "ejkernel";
    m->row = hone_foreign_find(foreign, library, m->label->operation);
    write_snake(shown->algorithm, name, sizeof name);
    for (const hone_foreign_row *row = m->row; row != NULL && m->entry == NULL; row = row->older)
        for (size_t i = 0; i < hone_foreign_take_count(row) && m->entry == NULL; i++)
            m->entry = hone_registry_find(registry, hone_foreign_algorithm(row, i), NULL);
    if (m->row == NULL) m->entry = hone_registry_find(registry, shown->algorithm, NULL);
    if (m->row == NULL && m->entry == NULL) m->entry = hone_registry_find(registry, name, NULL);
}

hone_status hone_match_found(
    const hone_offline_environment *environment,
    hone_arena *arena,
    const hone_found *found,
    int *patience,
    hone_matched *out,
    hone_error *err)
{
    *out = (hone_matched){0};
    matcher m = {
        .environment = environment,
        .arena = arena,
        .found = found,
        .label = &found->label->label,
        .out = out,
        .patience = patience,
    };
    hone_buffer_init(&m.spec, environment->allocator);
    name_operation(&m);
    if (!m.failed) find_algorithm(&m);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !m.failed; i++)
        if (ways[i](&m)) break;
    if (!m.failed) show(&m);
    if (!m.failed) identify(&m);
    out->disagrees = !m.failed && disagrees(&m);
    out->transposed = found->transposed;
    out->seen = found->view_count > 0;
    out->multiplies = found->multiplies;
    out->read_bytes = found->read_bytes;
    out->shown.once_bytes = found->once_bytes;
    hone_call_release(&m.best);
    hone_buffer_deinit(&m.spec);
    if (!m.failed) return HONE_OK;
    hone_call_release(&out->call);
    return hone_fail_memory(err, where);
}
