// Loads a variant of a pack as a function of tvm-ffi's C interface, and calls it: tensors as in DLPack, scalars, the
// stream.
#include "platforms/cute/export.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "platforms/cuda/instance.h"
#include "platforms/cute/runtime.h"
#include "platforms/native/kernel.h"
#include "platforms/shared/launch.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "cute.export";

// How the function receives the stream: as its last argument, or from tvm-ffi's environment of the thread.
typedef enum stream_way { STREAM_ARGUMENT, STREAM_ENVIRONMENT } stream_way;

typedef struct cute_export {
    hone_platform_instance *instance;
    hone_cuda_gpu *gpu;
    hone_cute_runtime runtime;
    hone_library *library;
    hone_ffi_function *function;
    stream_way stream;
    uint64_t digest;      // of the library, the function and its arguments
    atomic_bool captured; // a graph of the host launches it, so its library stays loaded
    uint32_t count;
    hone_argument arguments[HONE_MAX_ARGUMENTS];
} cute_export;

bool hone_cute_is_export(const hone_kernel *kernel)
{
    const hone_pack_kernel *pack = kernel->code != NULL ? kernel->code->pack : NULL;
    return pack != NULL && pack->variant_count > 0 && pack->variants[0].file != NULL &&
           hone_native_is_library(pack->variants[0].file);
}

// Checks that need no device ------------------------------------------------------------------------------------------

static hone_status read_stream(const json_t *facts, stream_way *out, hone_error *err)
{
    const char *text = json_string_value(json_object_get(facts, "stream"));
    if (json_object_size(facts) != 1 || text == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "facts: must be {\"stream\": \"argument\"} or {\"stream\": \"environment\"}, how an export learns of its "
            "stream");
    *out = strcmp(text, "argument") == 0 ? STREAM_ARGUMENT : STREAM_ENVIRONMENT;
    if (*out == STREAM_ARGUMENT || strcmp(text, "environment") == 0) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "facts: stream: '%.40s' is neither argument nor environment", text);
}

static hone_status read_facts(const char *text, stream_way *out, hone_error *err)
{
    json_t *facts = NULL;
    hone_status status = hone_json_parse(text, strlen(text), &facts, err);
    if (status != HONE_OK) return status;
    status = read_stream(facts, out, err);
    json_decref(facts);
    return status;
}

// Refuses fields for what an export does itself.
static hone_status check_absent(const hone_code *code, hone_error *err)
{
    const struct {
        const char *name, *text;
    } fields[] = {{"grid", code->grid},      {"block", code->block},     {"cluster", code->cluster},
                  {"shared", code->shared},  {"options", code->options}, {"constants", code->constants},
                  {"scratch", code->scratch}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].text != NULL)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "%s: an export of the CuTe DSL has none: it launches itself",
                fields[i].name);
    return code->flags == 0 ? HONE_OK : hone_fail(err, HONE_INVALID_ARGUMENT, where, "flags: an export has none");
}

static hone_status check_kinds(const hone_pack_kernel *kernel, hone_error *err)
{
    for (size_t i = 1; i < kernel->variant_count; i++)
        if (kernel->variants[i].file == NULL || !hone_native_is_library(kernel->variants[i].file))
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where,
                "variants[%zu]: a kernel whose first variant is an export (.so) has no other kinds", i);
    return HONE_OK;
}

hone_status hone_cute_export_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    stream_way stream;
    if (kernel->backend != HONE_GPU)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "backend: an export of the CuTe DSL is for gpu");
    if (variant->code.arguments == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: is missing: what the function takes, in order, but the stream");
    hone_status status = hone_ffi_check_entry(&variant->code, err);
    if (status == HONE_OK) status = check_kinds(kernel, err);
    if (status == HONE_OK) status = check_absent(&variant->code, err);
    if (status == HONE_OK) status = read_facts(variant->facts, &stream, err);
    return status == HONE_OK ? hone_native_check_library(variant->file, err) : status;
}

// The plan ------------------------------------------------------------------------------------------------------------

static hone_status take_arguments(cute_export *made, const hone_plan *plan, hone_error *err)
{
    hone_status status =
        hone_launch_arguments(&made->instance->allocator, plan, NULL, made->arguments, &made->count, err);
    if (status == HONE_OK && made->count + 1 > HONE_MAX_ARGUMENTS)
        return hone_fail(err, HONE_UNSUPPORTED, where, "arguments: more than %d", HONE_MAX_ARGUMENTS - 1);
    return status;
}

static uint64_t digest_of(const cute_export *made, const hone_pack_variant *variant)
{
    const hone_launch launches_itself = {.flags = (uint32_t)made->stream};
    uint64_t code = hone_hash64(variant->file->sha256, strlen(variant->file->sha256));
    code = hone_hash64_add(code, variant->code.entry, strlen(variant->code.entry));
    return hone_launch_digest(code, &launches_itself, made->arguments, made->count);
}

static hone_status load(cute_export *made, const hone_plan *plan, hone_error *err)
{
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_status status = hone_cuda_gpu_of(made->instance, plan->device, &made->gpu, err);
    if (status == HONE_OK) status = read_facts(variant->facts, &made->stream, err);
    if (status == HONE_OK) status = take_arguments(made, plan, err);
    if (status == HONE_OK) status = hone_cute_runtime_open(&made->instance->allocator, &made->runtime, err);
    if (status == HONE_OK) status = hone_native_open_library(variant->file, &made->library, err);
    if (status != HONE_OK) return status;
    made->digest = digest_of(made, variant);
    return hone_ffi_find_function(made->library, variant->file, variant->code.entry, &made->function, err);
}

hone_status hone_cute_export_prepare(
    hone_platform_instance *instance, const hone_plan *plan, void **out_state, hone_error *err)
{
    cute_export *made = hone_alloc(&instance->allocator, sizeof *made);
    if (made == NULL) return hone_fail_memory(err, where);
    made->instance = instance;
    hone_status status = load(made, plan, err);
    if (status == HONE_OK)
        *out_state = made;
    else
        hone_cute_export_release(instance, made);
    return status;
}

void hone_cute_export_release(hone_platform_instance *instance, void *state)
{
    const hone_allocator system = hone_allocator_system();
    cute_export *made = state;
    bool captured = atomic_load_explicit(&made->captured, memory_order_relaxed);
    if (made->library != NULL && !captured) hone_library_close(&system, &made->library);
    if (!captured) hone_cute_runtime_close(&instance->allocator, &made->runtime);
    hone_free(&instance->allocator, made);
}

// A run ---------------------------------------------------------------------------------------------------------------

// The tensors of one call as tvm-ffi expects them: with strides, and on the device of the run.
typedef struct call_tensor {
    hone_tensor tensor;
    int64_t strides[HONE_MAX_RANK];
} call_tensor;

static hone_value pass_tensor(const cute_export *made, const hone_tensor *given, call_tensor *out)
{
    int64_t stride = 1;
    out->tensor = *given;
    out->tensor.data = hone_tensor_data(given);
    out->tensor.byte_offset = 0;
    out->tensor.device = made->gpu->info.device;
    out->tensor.strides = out->strides;
    for (int32_t i = given->ndim - 1; i >= 0; i--) {
        out->strides[i] = stride;
        stride *= given->shape[i];
    }
    return hone_of_tensor(&out->tensor);
}

static hone_status call(const cute_export *made, const hone_value *values, uint32_t count, void *stream)
{
    const hone_device device = made->gpu->info.device;
    hone_value result = hone_of_none();
    void *before = NULL;
    char words[HONE_CUDA_WORDS_SIZE];
    bool is_set = made->stream == STREAM_ENVIRONMENT &&
                  made->runtime.ffi.set_stream(device.type, device.id, stream, &before) == 0;
    int failed =
        made->stream == STREAM_ENVIRONMENT && !is_set ? 1 : made->function(NULL, values, (int32_t)count, &result);
    if (failed != 0) {
        hone_ffi_runtime_words(&made->runtime.ffi, words, sizeof words);
        hone_cuda_keep_words(made->instance, words);
    }
    if (is_set) (void)made->runtime.ffi.set_stream(device.type, device.id, before, NULL);
    return failed == 0 ? HONE_OK : HONE_KERNEL_FAILED;
}

hone_status hone_cute_export_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    cute_export *made = plan->state;
    hone_value values[HONE_MAX_ARGUMENTS];
    call_tensor tensors[HONE_MAX_ARGUMENTS];
    void *stream = execution != NULL ? execution->stream : NULL;
    cuda_context *before = NULL;
    uint32_t count = made->count;
    for (uint32_t i = 0; i < count; i++) {
        const hone_argument *argument = &made->arguments[i];
        if (argument->kind == HONE_ARGUMENT_TENSOR)
            values[i] = pass_tensor(made, args[argument->value].as.tensor, &tensors[i]);
        else if (argument->kind == HONE_ARGUMENT_SCALAR)
            values[i] = hone_ffi_number(argument->type, hone_argument_bits(argument->type, &args[argument->value]));
        else
            values[i] = hone_ffi_number(argument->type, argument->as.bits);
    }
    if (made->stream == STREAM_ARGUMENT) values[count++] = hone_of_pointer(stream);
    if (hone_cuda_enter(made->instance, made->gpu, &before, NULL) != HONE_OK) return HONE_KERNEL_FAILED;
    hone_cuda_note_capture(made->instance, made->gpu, stream, &made->captured);
    hone_status status = call(made, values, count, stream);
    hone_cuda_leave(made->instance, before);
    return status;
}

uint64_t hone_cute_export_digest(const hone_plan *plan)
{
    const cute_export *made = plan->state;
    return made->digest;
}
