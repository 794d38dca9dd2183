// hone_agree: the choices that this process would make, as a document that ranks exchange.
#include "hone/agree.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "config/chain.h"
#include "hone/offline.h"
#include "runtime/api/stats.h"
#include "runtime/links/follow.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "agree";

typedef struct choice {
    const hone_op *op;
    hone_call *call; // owned
    const hone_device_info *device;
    bool answered, tunes; // tunes: the first run would tune, with an unknown result
    hone_decision decision;
    const char *revision; // the kernel's; the arena's
    hone_error why;       // if nothing answers
} choice;

typedef struct choices {
    hone_runtime *rt;
    choice *rows;
    size_t count, capacity;
    hone_arena arena;
} choices;

// Calls ----------------------------------------------------------------------------------------------------------------

static hone_status add_call(choices *all, const hone_op *op, hone_call *call, hone_error *err)
{
    if (!hone_grow(&all->rt->allocator, &all->rows, &all->capacity, all->count + 1, sizeof all->rows[0])) {
        hone_call_release(&call);
        return hone_fail_memory(err, where);
    }
    all->rows[all->count++] = (choice){.op = op, .call = call};
    return HONE_OK;
}

static hone_status read_calls(choices *all, const char *const *calls, size_t count, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        const hone_op *op = NULL;
        hone_call *call = NULL;
        if (calls[i] == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "call %zu is NULL", i);
        status = hone_call_of_label(all->rt, calls[i], &op, &call, err);
        if (status == HONE_OK) status = add_call(all, op, call, err);
    }
    return status;
}

static hone_status take_seen(choices *all, hone_error *err)
{
    hone_tally *tally = &all->rt->tally;
    hone_status status = HONE_OK;
    hone_mutex_lock(&tally->mutex);
    for (const hone_tally_row *row = tally->first; row != NULL && status == HONE_OK; row = row->next)
        if (row->call != NULL) status = add_call(all, row->op, hone_call_retain(row->call), err);
    hone_mutex_unlock(&tally->mutex);
    return status;
}

static int compare_rows(const void *left, const void *right)
{
    const choice *a = left, *b = right;
    const hone_algorithm_entry *of_a = a->op->algorithm, *of_b = b->op->algorithm;
    int by = strcmp(of_a->name, of_b->name);
    if (by == 0) by = strcmp(of_a->version, of_b->version);
    return by != 0 ? by : strcmp(hone_call_key(a->call), hone_call_key(b->call));
}

// Keeps each call once, in an order that is the same on all ranks.
static void sort_out(choices *all)
{
    size_t kept = 0;
    if (all->count > 0) qsort(all->rows, all->count, sizeof all->rows[0], compare_rows);
    for (size_t i = 0; i < all->count; i++) {
        if (kept > 0 && compare_rows(&all->rows[kept - 1], &all->rows[i]) == 0)
            hone_call_release(&all->rows[i].call);
        else
            all->rows[kept++] = all->rows[i];
    }
    all->count = kept;
}

// Choosing -------------------------------------------------------------------------------------------------------------

// Under the policy tune: asks the links before the one that would tune.
static hone_status decide_without_tuning(const hone_request *request, choice *row)
{
    hone_link_report reports[HONE_SOURCE_COUNT];
    const size_t count = hone_chain_explain(&hone_runtime_links, request, request->context, HONE_POLICY_TUNE, reports);
    for (size_t i = 0; i < count; i++) {
        if (reports[i].source == HONE_SOURCE_AUTOTUNE && reports[i].own == NULL) {
            row->tunes = true;
            return hone_fail(&row->why, HONE_NOT_FOUND, where, "the first run would tune it");
        }
        if (reports[i].status == HONE_NOT_FOUND) continue;
        row->decision = reports[i].decision;
        row->why = reports[i].why;
        return reports[i].status;
    }
    return hone_fail(&row->why, HONE_NOT_FOUND, where, "nothing answers");
}

static hone_status decide(hone_request *request, choice *row, const hone_kernel_ref **kernel)
{
    if (hone_request_policy(request) != HONE_POLICY_TUNE)
        return hone_request_decide(request, &row->decision, kernel, &row->why);
    request->explaining = true;
    const hone_status status = decide_without_tuning(request, row);
    if (status == HONE_OK) *kernel = hone_decision_kernel(request->op->algorithm, &row->decision);
    return status;
}

// Only HONE_OUT_OF_MEMORY is a failure: a call that nothing answers is a valid result.
static hone_status choose(choices *all, choice *row, hone_error *err)
{
    hone_request request;
    const hone_kernel_ref *kernel = NULL;
    hone_status status = hone_request_init(&request, row->op, row->call, hone_thread_self.context, &row->why);
    if (status == HONE_OK) {
        row->device = request.device;
        status = decide(&request, row, &kernel);
    }
    row->answered = status == HONE_OK && kernel != NULL;
    if (row->answered) {
        hone_runtime_stand_by(&request, &row->decision);
        row->revision = hone_arena_text(&all->arena, kernel->kernel.revision, strlen(kernel->kernel.revision));
        if (row->revision == NULL) status = HONE_OUT_OF_MEMORY;
    }
    hone_request_deinit(&request);
    return status == HONE_OUT_OF_MEMORY ? hone_fail_memory(err, where) : HONE_OK;
}

// The document ---------------------------------------------------------------------------------------------------------

static void print_choice(const choice *row, hone_buffer *out)
{
    const hone_decision *decision = &row->decision;
    hone_buffer_char(out, '{');
    hone_json_field(out, "platform", hone_platform_name(decision->platform));
    hone_buffer_char(out, ',');
    hone_json_field(out, "backend", hone_backend_name(decision->backend));
    hone_buffer_char(out, ',');
    hone_json_field(out, "kernel", decision->kernel);
    hone_buffer_format(out, ",\"config\":%s,", decision->config_json);
    hone_json_field(out, "revision", row->revision);
    hone_buffer_char(out, '}');
}

static void print_row(const choice *row, hone_buffer *out)
{
    const hone_algorithm_entry *algorithm = row->op->algorithm;
    const struct {
        const char *name, *text;
    } fields[] = {
        {"algorithm", algorithm->name},
        {"version", algorithm->version},
        {"key", hone_call_key(row->call)},
        {"call", hone_call_text(row->call)},
        {"device", row->device != NULL ? row->device->fingerprint : NULL},
        {"link", row->answered ? hone_source_name(row->decision.source) : NULL},
        {"why", row->answered ? NULL : row->why.message}};
    hone_buffer_char(out, '{');
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        hone_json_field(out, fields[i].name, fields[i].text);
        hone_buffer_char(out, ',');
    }
    hone_buffer_format(out, "\"tunes\":%s,\"choice\":", row->tunes ? "true" : "false");
    if (row->answered)
        print_choice(row, out);
    else
        hone_buffer_text(out, "null");
    hone_buffer_char(out, '}');
}

static void digest_of(const choices *all, hone_buffer *text, char out[HONE_DIGEST_SIZE])
{
    for (size_t i = 0; i < all->count; i++) {
        const choice *row = &all->rows[i];
        hone_buffer_format(
            text, "%s@v%s %s ", row->op->algorithm->name, row->op->algorithm->version, hone_call_key(row->call));
        if (row->answered)
            print_choice(row, text);
        else
            hone_buffer_text(text, row->tunes ? "tunes" : "none");
        hone_buffer_char(text, '\n');
    }
    hone_hash_sha256(hone_buffer_string(text), text->size, out);
}

static void print_document(const choices *all, const char *digest, hone_buffer *out)
{
    hone_runtime *rt = all->rt;
    hone_buffer_format(out, "{\"hone_agree\":1,\"digest\":\"%s\",\"hone\":\"%s\",", digest, hone_version());
    hone_json_field(out, "policy", hone_policy_name(hone_context_policy(hone_thread_self.context, rt->policy)));
    hone_buffer_char(out, ',');
    hone_json_field(out, "store", rt->store.url);
    hone_buffer_char(out, ',');
    hone_json_field(out, "system_store", rt->system_store.url);
    hone_buffer_char(out, ',');
    hone_json_field(out, "lock", rt->lock_path);
    hone_buffer_text(out, ",\"rows\":[");
    for (size_t i = 0; i < all->count; i++) {
        if (i > 0) hone_buffer_char(out, ',');
        print_row(&all->rows[i], out);
    }
    hone_buffer_text(out, "]}\n");
}

static hone_status say(
    const choices *all, hone_sink *sink, void *ctx, char out_digest[HONE_DIGEST_SIZE], hone_error *err)
{
    char digest[HONE_DIGEST_SIZE];
    hone_buffer text;
    hone_buffer_init(&text, all->rt->allocator);
    digest_of(all, &text, digest);
    bool failed = text.failed;
    hone_buffer_clear(&text);
    print_document(all, digest, &text);
    failed = failed || text.failed;
    if (!failed && sink != NULL) sink(ctx, hone_buffer_string(&text), text.size);
    if (!failed && out_digest != NULL) memcpy(out_digest, digest, sizeof digest);
    hone_buffer_deinit(&text);
    return failed ? hone_fail_memory(err, where) : HONE_OK;
}

hone_status hone_agree(
    hone_runtime *rt,
    const char *const *calls,
    size_t count,
    hone_sink *sink,
    void *ctx,
    char out_digest[HONE_DIGEST_SIZE],
    hone_error *err)
{
    if (rt == NULL || (sink == NULL && out_digest == NULL))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the runtime, and both of the sink and out_digest, must not be NULL");
    choices all = {.rt = rt, .arena = {.allocator = rt->allocator}};
    hone_status status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = calls != NULL ? read_calls(&all, calls, count, err) : take_seen(&all, err);
    if (status == HONE_OK) {
        sort_out(&all);
        hone_runtime_take_up(rt);
    }
    for (size_t i = 0; i < all.count && status == HONE_OK; i++)
        status = choose(&all, &all.rows[i], err);
    if (status == HONE_OK) status = say(&all, sink, ctx, out_digest, err);
    for (size_t i = 0; i < all.count; i++)
        hone_call_release(&all.rows[i].call);
    hone_free(&rt->allocator, all.rows);
    hone_arena_destroy(&all.arena);
    return status;
}
