// The slow path of a call: a first call, an invalid call, a kernel that failed.
//
// A kernel that fails at run time, or reports only then that it cannot run, is disabled for this exact call, its plans
// are dropped, and the chain is asked again. The chain then answers with another kernel, in the end with the reference.
// Each round disables one kernel, so the loop ends. A kernel that a context names is the user's explicit choice: its
// failure is returned.
#include "base/assert.h"
#include "base/error.h"
#include "platforms/platform.h"
#include "registry/names.h"
#include "runtime/plans/plans.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "run";

// Bounds the loop over failing kernels: each round disables one.
enum { MAX_ROUNDS = 256 };

// Statuses that a kernel itself returned, and numbers that are not a status.
static bool is_of_kernel(hone_status status)
{
    return status == HONE_UNSUPPORTED || status == HONE_KERNEL_FAILED || (unsigned)status > HONE_KERNEL_FAILED;
}

typedef struct failed_plan {
    const hone_kernel_ref *kernel;
    const char *key;
} failed_plan;

static bool is_failed(void *ctx, const hone_plan_entry *entry)
{
    const failed_plan *failed = ctx;
    return entry->kernel == failed->kernel && strcmp(entry->call_key, failed->key) == 0;
}

static void name_failure(const hone_plan_entry *entry, hone_status status, hone_error *out)
{
    const hone_kernel *kernel = &entry->kernel->kernel;
    hone_platform_run_words(entry->rt->instances[hone_platform_home(kernel->platform)], kernel, status, out);
}

// Disables the kernel of an entry for its call and takes its plans out of the table. False if there is no memory.
static bool retire_kernel(hone_runtime *rt, const hone_plan_entry *entry, hone_status status)
{
    failed_plan failed = {entry->kernel, entry->call_key};
    hone_error words;
    char reason[sizeof words.message + 64];
    name_failure(entry, status, &words);
    snprintf(
        reason, sizeof reason, "%s at run time: %s",
        status == HONE_UNSUPPORTED ? "it answered unsupported" : "it failed", words.message);
    bool aside = hone_runtime_set_aside(rt, entry->kernel, entry->call_key, reason);
    if (aside) hone_plan_table_drop(&rt->plans, is_failed, &failed);
    return aside;
}

static hone_status fail_kernel(const hone_plan_entry *entry, hone_status status, hone_error *err)
{
    hone_error words;
    name_failure(entry, status, &words);
    return hone_fail(
        err, is_of_kernel(status) ? HONE_KERNEL_FAILED : status, where, "kernel %s of %s failed: %s",
        entry->kernel->kernel.name, hone_call_text(entry->call), words.message);
}

hone_status hone_plan_failed(const hone_plan *plan, hone_status status, hone_error *err)
{
    if (plan == NULL || status == HONE_OK) return status;
    return fail_kernel((const hone_plan_entry *)(const void *)plan, status, err);
}

static hone_status check_arguments(const hone_op *op, const hone_value *args, size_t count, hone_error *err)
{
    if (op == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation is NULL");
    if (args == NULL && count > 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: the arguments are NULL", op->algorithm->name);
    return hone_epoch_register() != NULL ? HONE_OK : hone_fail_memory(err, where);
}

static void count_call(const hone_op *op, hone_plan_entry *entry)
{
    if (atomic_load_explicit(&op->rt->recording, memory_order_relaxed))
        atomic_fetch_add_explicit(&entry->calls, 1, memory_order_relaxed);
}

static const hone_tensor *first_tensor(const hone_value *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (args[i].tag == HONE_VALUE_TENSOR) return args[i].as.tensor;
    return NULL;
}

// hone cannot know on which stream the caller's data are produced; it logs once which stream it uses.
static void tell_no_stream(hone_runtime *rt, const hone_tensor *tensor)
{
    if (atomic_exchange(&rt->told_no_stream, true)) return;
    hone_log_write(
        &rt->log, HONE_LOG_INFO,
        "a run on device type %d, id %d brings no stream: it is started on the default one, whose order with other "
        "streams is the caller's (hone_execution.stream)",
        (int)tensor->device.type, (int)tensor->device.id);
}

// Deciding and preparing make driver calls that break a graph that is being captured, so none of them begins then. The
// default stream itself is never captured, but work on it breaks the capture of a stream that waits for it.
static hone_status check_stream(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err)
{
    const hone_tensor *tensor = first_tensor(args, count);
    bool captured = false;
    hone_error why;
    if (tensor == NULL || tensor->device.type == HONE_DEVICE_CPU) return HONE_OK;
    void *stream = execution != NULL ? execution->stream : NULL;
    if (stream == NULL && tensor->device.type == HONE_DEVICE_CUDA) tell_no_stream(op->rt, tensor);
    if (hone_stream_is_captured(op->rt, tensor->device, stream, &captured, &why) != HONE_OK || !captured)
        return HONE_OK; // the decision of the call reports the device's error
    return hone_fail(
        err, HONE_UNSUPPORTED, where,
        "%s: %s is being captured into a graph, and no kernel is ready for this call: the first call of a kind "
        "decides and loads code, which breaks a capture. Make the call once before the capture begins, or bind a plan "
        "then and call that",
        op->algorithm->name, stream != NULL ? "its stream" : "a stream that the default one waits for");
}

// The first call of a thread: another thread may have put the answer into the table.
static hone_status run_first(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err)
{
    hone_status status = check_arguments(op, args, count, err);
    return status == HONE_OK ? hone_run(op, args, count, execution, err) : status;
}

hone_status hone_run_slowly(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err)
{
    if (hone_thread_self.slot == NULL) return run_first(op, args, count, execution, err);
    hone_status status = check_arguments(op, args, count, err);
    if (status == HONE_OK) status = check_stream(op, args, count, execution, err);
    if (status != HONE_OK) return status;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        hone_plan_entry *entry = NULL;
        status = hone_plan_make(op, args, count, &entry, err);
        if (status != HONE_OK) return status;
        count_call(op, entry);
        hone_thread_self.depth++;
        status = entry->run(&entry->plan, args, execution);
        hone_thread_self.depth--;
        bool again = is_of_kernel(status) && entry->source != HONE_SOURCE_OVERRIDE;
        if (again && !retire_kernel(op->rt, entry, status)) {
            again = false;
            status = HONE_OUT_OF_MEMORY;
        }
        if (status != HONE_OK && !again) status = fail_kernel(entry, status, err);
        hone_plan_entry_release(entry);
        if (!again) return status;
    }
    return hone_fail(err, HONE_KERNEL_FAILED, where, "%s: every kernel failed", op->algorithm->name);
}

hone_status hone_run_failed(
    const hone_op *op,
    hone_plan_entry *entry,
    const hone_value *args,
    size_t count,
    const hone_execution *execution,
    hone_status status,
    hone_error *err)
{
    hone_assert(status != HONE_OK && hone_thread_self.slot != NULL); // a hit: its thread is inside an epoch
    if (!is_of_kernel(status) || entry->source == HONE_SOURCE_OVERRIDE) return fail_kernel(entry, status, err);
    if (!retire_kernel(op->rt, entry, status)) return hone_fail_memory(err, where);
    return hone_run_slowly(op, args, count, execution, err);
}
