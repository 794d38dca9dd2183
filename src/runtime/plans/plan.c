// Makes a plan from a decision: prepares the kernel, packs the words that the plan serves, publishes it.
#include "base/assert.h"
#include "base/error.h"
#include "call/call.h"
#include "hone/interpreter.h"
#include "registry/names.h"
#include "runtime/links/follow.h"
#include "runtime/links/libraries.h"
#include "runtime/plans/plans.h"
#include "runtime/plans/scratch.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "plan.make";

enum { MAX_VALUES = 64 };

// Fills in omitted values, NONE values and integers given for floats, then runs the kernel. It is plan.run only if the
// call that the plan was made for needs it.
static hone_status run_filled(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_plan_entry *entry = (const hone_plan_entry *)(const void *)plan;
    const hone_signature *signature = entry->kernel->algorithm->signature;
    const hone_value *defaults = hone_call_defaults(entry->call);
    hone_value full[MAX_VALUES];
    size_t count = hone_signature_count(signature);
    for (size_t i = 0; i < count; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        full[i] = i < entry->given ? args[i] : hone_of_none();
        if (full[i].tag == HONE_VALUE_NONE && !parameter->nullable) full[i] = defaults[i];
        if (full[i].tag == HONE_VALUE_NONE && i >= entry->given) full[i] = defaults[i];
        if (parameter->kind == HONE_KIND_FLOAT && full[i].tag == HONE_VALUE_INT)
            full[i] = hone_of_float((double)full[i].as.i64);
    }
    return entry->kernel_run(plan, full, execution);
}

// The same where only values at the end are missing, as in a program that is older than parameters which the algorithm
// got later.
static hone_status run_completed(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_plan_entry *entry = (const hone_plan_entry *)(const void *)plan;
    const hone_value *defaults = hone_call_defaults(entry->call);
    const size_t count = entry->op->count, given = entry->given;
    hone_value full[MAX_VALUES];
    if (given > 0) memcpy(full, args, given * sizeof *args);
    memcpy(full + given, defaults + given, (count - given) * sizeof *defaults);
    return entry->kernel_run(plan, full, execution);
}

// Lends the scratch memory that the kernel asked for to a run whose caller provides none. It is entry->kernel_run only
// for kernels that ask for scratch memory.
static hone_status run_with_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_plan_entry *entry = (const hone_plan_entry *)(const void *)plan;
    if (hone_scratch_is_brought(execution, plan->scratch_bytes)) return entry->bare_run(plan, args, execution);
    hone_execution lent = {.struct_size = sizeof lent};
    if (execution != NULL) {
        // The struct is smaller in a program that was compiled with older headers.
        size_t size = execution->struct_size;
        memcpy(&lent, execution, size == 0 || size > sizeof lent ? sizeof lent : size);
        lent.struct_size = sizeof lent;
    }
    lent.scratch = hone_scratch_lend(plan->scratch_bytes);
    lent.scratch_bytes = plan->scratch_bytes;
    if (lent.scratch == NULL) return HONE_OUT_OF_MEMORY;
    hone_status status = entry->bare_run(plan, args, &lent);
    hone_scratch_return(lent.scratch);
    return status;
}

static bool needs_filling(const hone_signature *signature, const hone_value *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if (args[i].tag == HONE_VALUE_NONE && !parameter->nullable) return true;
        if (args[i].tag == HONE_VALUE_INT && parameter->kind == HONE_KIND_FLOAT) return true;
    }
    return false;
}

static hone_run_function *run_of(const hone_plan_entry *entry, const hone_value *args)
{
    const hone_signature *signature = entry->op->algorithm->signature;
    if (needs_filling(signature, args, entry->given)) return run_filled;
    return entry->given < hone_signature_count(signature) ? run_completed : entry->kernel_run;
}

// Tensors of the call, in order, as positions among the values.
static size_t tensor_positions(const hone_call *call, size_t positions[HONE_PACKED_TENSORS])
{
    size_t count = 0, values = hone_signature_count(hone_call_signature(call));
    for (size_t i = 0; i < values && count < HONE_PACKED_TENSORS; i++)
        if (hone_call_tensor(call, i) != NULL) positions[count++] = i;
    return count;
}

static bool same_layout(const hone_tensor *a, const hone_tensor *b)
{
    if (memcmp(&a->dtype, &b->dtype, sizeof a->dtype) != 0 || a->ndim != b->ndim) return false;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    if (hone_tensor_is_row_major(a) && hone_tensor_is_row_major(b)) return true;
    if (a->strides == NULL || b->strides == NULL) return false;
    return memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof a->strides[0]) == 0;
}

// Lists the pairs of each result and every other tensor. Whether they overlap is the only part of a call's check that
// depends on addresses, so it is all that a hit checks. Two spans of bytes meet if 0 <= result - other + size of result
// - 1 < sum of sizes - 1: one addition and one unsigned comparison per pair (hone_plan_entry_apart). Views that
// interleave without sharing bytes count as meeting here; they take the slow path, which checks exactly
// (call/overlap.c). False if there are too many pairs, or if strides are negative; such a call is checked in full each
// time.
static bool fill_pairs(hone_plan_entry *entry)
{
    const hone_signature *signature = hone_call_signature(entry->call);
    size_t positions[HONE_PACKED_TENSORS];
    size_t count = tensor_positions(entry->call, positions);
    int64_t span[HONE_PACKED_TENSORS];
    for (size_t i = 0; i < count; i++) {
        int64_t below = 0;
        if (hone_tensor_span(hone_call_tensor(entry->call, positions[i]), &span[i], &below) != HONE_OK) return false;
        if (below != 0) return false;
    }
    for (uint32_t r = 0; r < count; r++) {
        const hone_parameter *result = hone_signature_parameter(signature, positions[r]);
        for (uint32_t o = 0; result->is_result && o < count; o++) {
            const hone_parameter *other = hone_signature_parameter(signature, positions[o]);
            if (o == r || (other->is_result && o < r) || span[r] == 0 || span[o] == 0) continue;
            if (entry->pair_count == HONE_MAX_PAIRS) return false;
            bool may_equal =
                result->is_inout && !other->is_result &&
                same_layout(hone_call_tensor(entry->call, positions[r]), hone_call_tensor(entry->call, positions[o]));
            entry->pairs[entry->pair_count++] = (hone_pair){
                (uint64_t)span[r] - 1, (uint64_t)span[r] + (uint64_t)span[o] - 1, (uint8_t)r, (uint8_t)o, may_equal};
        }
    }
    return true;
}

// Approximate size for the table's cap: a kernel's own state is not included, since the table cannot measure it.
static size_t entry_bytes(const hone_plan_entry *entry)
{
    return sizeof *entry + entry->words * 8 + HONE_PACKED_TENSORS * 8 + 1024;
}

static bool allocate_tables(hone_plan_entry *entry, const hone_allocator *allocator, const hone_packed *packed)
{
    hone_assert(packed->words > 0 && packed->words <= HONE_PACKED_WORDS && packed->hash != 0);
    entry->words = (uint8_t)packed->words;
    const size_t words = (packed->words + 3) / 4 * 4, tensors = packed->tensors;
    const size_t most_pairs = tensors * (tensors - 1) / 2 * (sizeof(hone_pair) / sizeof entry->near[0]); // as words
    const bool near = words <= HONE_NEAR_WORDS, pairs_near = (near ? words : 0) + most_pairs <= HONE_NEAR_WORDS;
    entry->word = near ? entry->near : hone_alloc_array(allocator, words, sizeof entry->word[0]);
    entry->pairs = pairs_near ? (hone_pair *)(void *)(entry->near + (near ? words : 0))
                              : hone_alloc_array(allocator, HONE_MAX_PAIRS, sizeof entry->pairs[0]);
    if (entry->word == NULL || entry->pairs == NULL) return false;
    memcpy(entry->word, packed->word, packed->words * sizeof entry->word[0]);
    entry->hash = packed->hash;
    return true;
}

// NULL: no memory.
static const int64_t *keep_config(hone_plan_entry *entry, const hone_allocator *allocator, const hone_config *config)
{
    const bool near = config->count <= HONE_NEAR_PARAMETERS;
    int64_t *values =
        near ? entry->near_config : hone_alloc_array(allocator, HONE_MAX_PARAMETERS, sizeof config->values[0]);
    if (values != NULL) memcpy(values, config->values, config->count * sizeof config->values[0]);
    return values;
}

// Reserves the scratch memory that this thread's runs will use, so that a lack of memory is reported before the first
// run.
static hone_status take_scratch(hone_plan_entry *entry, size_t size, hone_error *err)
{
    if (size == 0) return HONE_OK;
    bool direct = entry->plan.run == entry->kernel_run;
    entry->plan.scratch_bytes = size;
    entry->bare_run = entry->kernel_run;
    entry->kernel_run = run_with_scratch;
    if (direct) entry->plan.run = run_with_scratch;
    if (hone_scratch_reserve(size)) return HONE_OK;
    return hone_fail(
        err, HONE_OUT_OF_MEMORY, "plan.prepare",
        "kernel %s asks for %zu bytes of scratch memory for %s, and there is "
        "no memory for them",
        entry->kernel->kernel.name, size, hone_call_text(entry->call));
}

static hone_platform_instance *instance_of(const hone_plan_entry *entry)
{
    return entry->rt->instances[hone_platform_home(entry->kernel->kernel.platform)];
}

static hone_status prepare(hone_plan_entry *entry, hone_error *err)
{
    const hone_kernel *kernel = &entry->kernel->kernel;
    hone_error why = {.where = "kernel.prepare", .message = ""};
    void *state = NULL;
    size_t scratch_bytes = 0;
    hone_thread_self.depth++; // a kernel may call hone while it prepares, and those calls are nested
    hone_status status = hone_platform_prepare(instance_of(entry), &entry->plan, &state, &scratch_bytes, &why);
    hone_thread_self.depth--;
    if (status == HONE_OK) {
        entry->plan.state = state;
        return take_scratch(entry, scratch_bytes, err);
    }
    return hone_fail(
        err, status, "plan.prepare", "kernel %s cannot be prepared for %s: %s", kernel->name,
        hone_call_text(entry->call), why.message[0] != '\0' ? why.message : hone_status_name(status));
}

// Whether a plan does not depend on what other processes store: its context has replaced the store link, or has a
// function before that link which gave the answer.
static bool is_contexts_own(const hone_context *context, hone_source source)
{
    return hone_context_find_link(context, HONE_SOURCE_STORE) != NULL ||
           (source < HONE_SOURCE_STORE && hone_context_find_link(context, source) != NULL);
}

// Whether a kernel is short: the library's own code on the CPU, which calls no callbacks, with little work. Excludes
// references, which may take a hundred times as long as the estimate of the work, and kernels with scratch memory,
// which is lent under a lock.
static bool is_short(const hone_plan_entry *entry)
{
    const double most_bytes = 65536, most_operations = 100000;
    const hone_kernel_ref *kernel = entry->kernel;
    const hone_algorithm *algorithm = &kernel->algorithm->algorithm;
    hone_cost cost = {0, 0};
    if (!kernel->builtin || kernel->kernel.run == NULL || kernel->kernel.is_reference || algorithm->model == NULL)
        return false;
    if (entry->plan.device->device.type != HONE_DEVICE_CPU || entry->plan.scratch_bytes > 0) return false;
    algorithm->model(entry->call, &cost);
    return cost.bytes <= most_bytes && cost.operations <= most_operations;
}

static hone_status make_entry(
    const hone_request *request,
    const hone_kernel_ref *kernel,
    const hone_decision *decision,
    const hone_value *args,
    size_t count,
    const hone_packed *packed,
    hone_plan_entry **out,
    hone_error *err)
{
    hone_runtime *rt = request->rt;
    hone_pool *pool = hone_runtime_pool(rt);
    hone_plan_entry *entry = hone_plan_entry_take(rt);
    if (entry == NULL) return hone_fail_memory(err, where);
    entry->kernel = hone_kernel_retain(kernel);
    entry->kernel_run = hone_platform_run_of(&kernel->kernel);
    entry->op = request->op;
    entry->source = decision->source;
    hone_assert(count <= request->op->count);
    entry->given = count;
    entry->call = hone_call_retain((hone_call *)(uintptr_t)request->call);
    entry->call_key = hone_call_key(entry->call);
    const hone_call *bucket = request->stand_ins.bucket, *general = request->stand_ins.general;
    if (bucket != NULL) memcpy(entry->bucket_key, hone_call_key(bucket), sizeof entry->bucket_key);
    if (general != NULL) memcpy(entry->general_key, hone_call_key(general), sizeof entry->general_key);
    entry->context_number = hone_context_number(request->context);
    entry->is_contexts_own = is_contexts_own(request->context, decision->source);
    entry->number = hone_counters_take(&entry->before);
    const int64_t *config = keep_config(entry, &rt->allocator, &decision->config);
    entry->plan = (hone_plan){
        .run = run_of(entry, args),
        .config = config,
        .kernel = &kernel->kernel,
        .call = entry->call,
        .device = request->device,
        .parallel_for = pool != NULL ? hone_pool_run : NULL,
        .pool = pool,
        .say = hone_platform_say,
    };
    const bool has_tables = packed == NULL || allocate_tables(entry, &rt->allocator, packed);
    hone_status status = config != NULL && has_tables ? HONE_OK : hone_fail_memory(err, where);
    if (status == HONE_OK) status = prepare(entry, err);
    entry->run = entry->plan.run;
    entry->is_short = status == HONE_OK && is_short(entry);
    entry->bytes = entry_bytes(entry);
    if (status == HONE_OK)
        *out = entry;
    else
        hone_plan_entry_release(entry);
    return status;
}

static bool is_entry(void *ctx, const hone_plan_entry *entry)
{
    return entry == ctx;
}

// Publishes an entry that was decided while `answers` was the number of the chain's answers. If the number has changed
// since, the thread that changed it may have searched the table before the entry was in it: then the entry is dropped
// at once, and the next call decides again.
static void publish_entry(hone_runtime *rt, hone_plan_entry *entry, uint64_t answers)
{
    hone_error why = {.message = ""};
    if (hone_plan_table_publish(&rt->plans, entry, &why) != HONE_OK)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "a plan was not kept: %s", why.message);
    else if (atomic_load(&rt->answers) != answers)
        hone_plan_table_drop(&rt->plans, is_entry, entry);
}

// Whether the table may serve this call later; packs the words for it.
static bool pack_for_table(const hone_op *op, const hone_value *args, size_t count, hone_packed *packed)
{
    uint32_t context = hone_thread_self.context_number;
    if (context == UINT32_MAX || op->head >= 1u << 24 || op->count > 255) return false;
    return hone_pack(packed, op->head | count << 24 | (uint64_t)context << 32, args, count, op->ignored);
}

// Counts the call with its answer; entry is NULL if nothing answered it.
static void tally(
    const hone_request *request, hone_call *call, const char *config, uint64_t start_ns, hone_plan_entry *entry)
{
    const hone_tally_choice choice = {
        .call = call,
        .op = request->op,
        .device = request->device,
        .source = entry != NULL ? entry->source : HONE_SOURCE_NONE,
        .kernel = entry != NULL ? entry->kernel : NULL,
        .config = entry != NULL ? config : "",
    };
    hone_tally_note(&request->rt->tally, &choice, hone_os_now_ns() - start_ns, entry);
}

// Records a call that nothing answers, so that it can be tuned. An answered call is counted by its entry.
static void record_unanswered(const hone_request *request)
{
    hone_runtime *rt = request->rt;
    hone_error why = {.message = ""};
    if (!atomic_load(&rt->recording)) return;
    if (hone_recorder_add(rt->recorder, request->device->fingerprint, request->call, 1, NULL, NULL, &why) != HONE_OK)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "%s", why.message);
    hone_runtime_tell_dropped(rt);
}

hone_status hone_plan_make(
    const hone_op *op, const hone_value *args, size_t count, hone_plan_entry **out, hone_error *err)
{
    const uint64_t start_ns = hone_os_now_ns();
    hone_runtime *rt = op->rt;
    hone_decision decision;
    hone_call *call = NULL;
    if (op->count > MAX_VALUES)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s has %zu values; at most %d are supported", op->algorithm->name, op->count,
            (int)MAX_VALUES);
    hone_status status = hone_call_bind(rt->allocator, op->algorithm->signature, args, count, false, &call, err);
    if (status != HONE_OK) return status;
    hone_request request;
    hone_packed packed;
    bool publish = pack_for_table(op, args, count, &packed);
    uint64_t answers = atomic_load(&rt->answers);
    status = hone_request_init(&request, op, call, hone_thread_self.context, err);
    while (status == HONE_OK) {
        decision = (hone_decision){0};
        const hone_kernel_ref *kernel = NULL;
        status = hone_request_decide(&request, &decision, &kernel, err);
        if (status != HONE_OK) break;
        hone_error why = {.message = ""};
        status = hone_request_try_libraries(&request, kernel, &why);
        if (status == HONE_OK)
            status = make_entry(&request, kernel, &decision, args, count, publish ? &packed : NULL, out, &why);
        if (status == HONE_OK || status == HONE_OUT_OF_MEMORY || decision.source == HONE_SOURCE_OVERRIDE) {
            if (status != HONE_OK && err != NULL) *err = why;
            break;
        }
        // A kernel that cannot be prepared here is disabled for this call, and the chain is asked again.
        bool aside = hone_runtime_set_aside(rt, kernel, hone_call_key(call), why.message);
        status = aside ? HONE_OK : hone_fail_memory(err, where);
    }
    if (request.device != NULL && status != HONE_OUT_OF_MEMORY)
        tally(&request, call, decision.config_json, start_ns, status == HONE_OK ? *out : NULL);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY && request.device != NULL) record_unanswered(&request);
    if (status == HONE_OK && publish && fill_pairs(*out)) publish_entry(rt, *out, answers);
    if (status == HONE_OK && !hone_source_is((*out)->source, HONE_LINK_NAMED)) hone_runtime_follow(rt);
    hone_request_deinit(&request);
    hone_call_release(&call);
    return status;
}

hone_status hone_bind(
    const hone_op *op, const hone_value *args, size_t count, const hone_plan **out_plan, hone_error *err)
{
    if (op == NULL || out_plan == NULL || (args == NULL && count > 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "bind", "the operation, the arguments and out_plan must not be NULL");
    *out_plan = NULL;
    hone_plan_entry *entry = NULL;
    hone_status status = hone_plan_make(op, args, count, &entry, err);
    if (status != HONE_OK) return status;
    hone_runtime_retain(op->rt);
    hone_plan_table_hold(&op->rt->plans, entry);
    *out_plan = &entry->plan;
    return HONE_OK;
}

bool hone_plan_is_current(const hone_plan *plan)
{
    const hone_plan_entry *entry = (const hone_plan_entry *)(const void *)plan;
    return plan != NULL && !atomic_load_explicit(&entry->outdated, memory_order_relaxed);
}

bool hone_plan_is_short(const hone_plan *plan)
{
    return plan != NULL && ((const hone_plan_entry *)(const void *)plan)->is_short;
}

void hone_plan_release(const hone_plan **plan)
{
    if (plan == NULL || *plan == NULL) return;
    hone_plan_entry *entry = (hone_plan_entry *)(uintptr_t)*plan;
    *plan = NULL;
    hone_runtime *rt = entry->rt;
    hone_plan_table_let_go(&rt->plans, entry);
    hone_plan_entry_release(entry);
    hone_runtime_release(rt);
}
