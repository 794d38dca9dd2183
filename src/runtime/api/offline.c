// hone_program_read and hone_offline on top of src/offline: connects them to the recorded calls and to the stored
// answers.
#include "offline/offline.h"
#include "base/error.h"
#include "os/os.h"
#include "runtime/api/api.h"
#include "runtime/api/batch.h"
#include "store/records.h"
#include "tune/result/result.h"

#include <string.h>

static const char where[] = "program.read";

typedef struct batch {
    hone_runtime *rt;
    hone_result *result;
    hone_batch *calls; // NULL: nothing is tuned
} batch;

typedef struct recorded_spec {
    hone_buffer *out;
    bool found;
} recorded_spec;

static bool take_spec(void *ctx, const hone_store_invocation *invocation)
{
    recorded_spec *spec = ctx;
    if (invocation->key.spec == NULL) return true;
    hone_buffer_text(spec->out, invocation->key.spec);
    spec->found = true;
    return false;
}

static bool recorded(void *ctx, const char *algorithm, const char *version, const char *key, hone_buffer *out_spec)
{
    hone_runtime *rt = ((batch *)ctx)->rt;
    recorded_spec spec = {out_spec, false};
    hone_error why;
    hone_status status =
        hone_recorder_find(rt->recorder, hone_runtime_store(rt), algorithm, version, key, take_spec, &spec, &why);
    if (status != HONE_OK && status != HONE_NOT_FOUND)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "recorded calls were not read: %s", why.message);
    return spec.found;
}

// The total size of this CPU's caches: the outer one may exclude what the inner ones hold.
static int64_t cache_bytes(void)
{
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    return cpu.l3_bytes > 0 ? cpu.l3_bytes + cpu.threads * cpu.l2_bytes : 0;
}

static hone_status tune(void *ctx, const hone_call *call, int64_t count, hone_regime regime, hone_error *err)
{
    batch *work = ctx;
    const hone_op *op = NULL;
    hone_status status = hone_op_get(work->rt, hone_signature_name(hone_call_signature(call)), &op, err);
    if (status == HONE_OK) status = hone_batch_tune(work->calls, op, call, (double)count, regime, err);
    if (status != HONE_OK) hone_result_note_status(work->result, status);
    return status;
}

static hone_status failed(void *ctx, const char *call, const char *key, const char *reason, hone_error *err)
{
    return hone_result_add_failure(((batch *)ctx)->result, call, key, reason, err);
}

static hone_status alias(void *ctx, const hone_store_alias *alias, const hone_call *call, hone_error *err)
{
    return hone_batch_alias(((batch *)ctx)->calls, alias, call, err);
}

static hone_offline_environment environment_of(batch *work)
{
    return (hone_offline_environment){
        .allocator = work->rt->allocator,
        .registry = work->rt->registry,
        .ctx = work,
        .recorded = recorded,
        .tune = tune,
        .failed = failed,
        .alias = work->calls != NULL ? alias : NULL,
    };
}

hone_status hone_program_read(
    hone_runtime *rt, const char *name, const char *text, size_t size, hone_program **out, hone_error *err)
{
    if (rt == NULL || out == NULL || (text == NULL && size > 0))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime, the text and out must not be NULL");
    batch work = {.rt = rt};
    hone_offline_environment environment = environment_of(&work);
    environment.cache_bytes = cache_bytes();
    return hone_offline_read(&environment, name, text, size, out, err);
}

hone_status hone_offline(
    hone_runtime *rt,
    const hone_program *program,
    bool unproved,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err)
{
    if (rt == NULL || program == NULL || out_result == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "offline", "the runtime, the program and out_result must not be NULL");
    *out_result = NULL;
    hone_tune_options read;
    hone_status status = hone_tune_options_read(rt, options, &read, err);
    options = &read;
    batch work = {.rt = rt};
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = hone_result_create(rt->allocator, rt->cpu, rt, &work.result, err);
    if (status != HONE_OK) return status;
    hone_batch calls;
    hone_batch_init(&calls, rt, options, hone_program_operations(program), work.result);
    work.calls = &calls;
    hone_offline_environment environment = environment_of(&work);
    status = hone_offline_tune(&environment, program, unproved, err);
    if (status == HONE_OK) status = hone_batch_spend_rest(&calls, err);
    hone_batch_deinit(&calls);
    if (status == HONE_OK || (status == HONE_CANCELLED && hone_result_size(work.result) > 0))
        *out_result = work.result;
    else
        hone_result_release(&work.result);
    return status;
}
