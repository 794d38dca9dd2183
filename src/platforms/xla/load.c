// Makes a module that runs from a plan: writes its text, compiles it or finds it in the cache, and compares its
// parameters and results with the call. A plugin reads a buffer of another type as if it had the expected one, and ends
// the process if an option is missing.
#include "platforms/cuda/cuda.h"
#include "platforms/xla/loaded.h"

#include "base/error.h"
#include "base/hash.h"
#include "hone/describe.h"
#include "pack/pack.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "xla.load";

// What the call has ---------------------------------------------------------------------------------------------------

static hone_status dtype_of(const hone_tensor *tensor, const char *name, const hone_dtype_info **out, hone_error *err)
{
    *out = hone_dtype_find(tensor->dtype);
    if (*out != NULL && (*out)->pjrt > 0 && tensor->dtype.bits % 8 == 0) return HONE_OK;
    return hone_fail(err, HONE_UNSUPPORTED, where, "%s: xla takes no tensors of its dtype", name);
}

static void take_shape(hone_xla_argument *argument, const hone_tensor *tensor, const hone_dtype_info *info)
{
    argument->type = info->pjrt;
    argument->rank = (size_t)tensor->ndim;
    for (int32_t i = 0; i < tensor->ndim; i++)
        argument->dims[i] = tensor->shape[i];
}

static hone_dtype_id dtype_of_scalar(hone_argument_type type)
{
    static const hone_dtype_id ids[] = {
        [HONE_ARGUMENT_POINTER] = HONE_U64, [HONE_ARGUMENT_I32] = HONE_I32, [HONE_ARGUMENT_U32] = HONE_U32,
        [HONE_ARGUMENT_I64] = HONE_I64,     [HONE_ARGUMENT_U64] = HONE_U64, [HONE_ARGUMENT_F32] = HONE_F32,
        [HONE_ARGUMENT_F64] = HONE_F64};
    return ids[type];
}

static hone_status take_argument(
    const hone_call *call, const hone_argument *from, uint32_t index, hone_xla_argument *to, hone_error *err)
{
    const hone_dtype_info *info = NULL;
    *to = (hone_xla_argument){.kind = from->kind, .scalar = from->type, .value = from->value, .bits = from->as.bits};
    if (from->kind != HONE_ARGUMENT_TENSOR) {
        to->type = hone_dtype_info_of(dtype_of_scalar(from->type))->pjrt;
        if (from->type != HONE_ARGUMENT_POINTER) return HONE_OK;
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "argument %u is a tensor that the call leaves out", (unsigned)index);
    }
    const hone_parameter *parameter = hone_signature_parameter(hone_call_signature(call), from->value);
    const hone_tensor *tensor = hone_call_tensor(call, from->value);
    hone_status status = dtype_of(tensor, parameter->name, &info, err);
    if (status != HONE_OK) return status;
    take_shape(to, tensor, info);
    to->is_result = parameter->is_result;
    return HONE_OK;
}

static hone_status take_arguments(
    const hone_allocator *allocator, const hone_plan *plan, hone_xla_loaded *loaded, hone_error *err)
{
    hone_argument arguments[HONE_MAX_ARGUMENTS];
    hone_status status = hone_launch_arguments(allocator, plan, NULL, arguments, &loaded->argument_count, err);
    for (uint32_t i = 0; status == HONE_OK && i < loaded->argument_count; i++)
        status = take_argument(plan->call, &arguments[i], i, &loaded->arguments[i], err);
    if (status == HONE_OK) loaded->digest = hone_hash64(arguments, loaded->argument_count * sizeof *arguments);
    return status;
}

static hone_status take_results(const hone_call *call, hone_xla_loaded *loaded, hone_error *err)
{
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        const hone_tensor *tensor = hone_call_tensor(call, i);
        const hone_dtype_info *info = NULL;
        if (!parameter->is_result || tensor == NULL) continue;
        hone_status status = dtype_of(tensor, parameter->name, &info, err);
        if (status != HONE_OK) return status;
        loaded->results[loaded->result_count++] = (hone_xla_result){
            .value = (uint32_t)i, .bytes = (size_t)hone_tensor_elements(tensor) * (size_t)(tensor->dtype.bits / 8)};
    }
    return HONE_OK;
}

// What the module has -------------------------------------------------------------------------------------------------

static int64_t product(const int64_t *dims, size_t rank)
{
    int64_t elements = 1;
    for (size_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(elements, dims[i], &elements)) return -1;
    return elements;
}

static hone_status check_results(
    const hone_xla_plugin *plugin,
    pjrt_executable *executable,
    const hone_xla_loaded *loaded,
    const hone_call *call,
    hone_error *err)
{
    pjrt_output_types types = {PJRT_HEAD(pjrt_output_types), .executable = executable};
    pjrt_output_dimensions dims = {PJRT_HEAD(pjrt_output_dimensions), .executable = executable};
    hone_status status = hone_xla_call(plugin, PJRT_EXECUTABLE_OUTPUT_TYPES, &types, "OutputElementTypes", err);
    if (status == HONE_OK && types.count == loaded->result_count)
        status = hone_xla_call(plugin, PJRT_EXECUTABLE_OUTPUT_DIMENSIONS, &dims, "OutputDimensions", err);
    if (status != HONE_OK) return status;
    if (types.count != loaded->result_count)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the module gives %zu results, the algorithm has %u", types.count,
            (unsigned)loaded->result_count);
    for (size_t i = 0, at = 0; i < types.count; at += dims.ranks[i++]) {
        const uint32_t value = loaded->results[i].value;
        const hone_tensor *tensor = hone_call_tensor(call, value);
        if (types.types[i] == hone_dtype_find(tensor->dtype)->pjrt &&
            product(dims.dims + at, dims.ranks[i]) == hone_tensor_elements(tensor))
            continue;
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the module's result %zu has another dtype or size than %s", i,
            hone_signature_parameter(hone_call_signature(call), value)->name);
    }
    return HONE_OK;
}

static hone_status compare_parameters(const char *program, size_t size, hone_xla_loaded *loaded, hone_error *err)
{
    hone_xla_shape shapes[HONE_MAX_ARGUMENTS];
    size_t count = 0;
    hone_status status = hone_xla_read_parameters(program, size, shapes, HONE_MAX_ARGUMENTS, &count, err);
    if (status != HONE_OK) return status;
    if (count != loaded->argument_count)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the module takes %zu arguments, %u are listed", count,
            (unsigned)loaded->argument_count);
    for (size_t i = 0; i < count; i++) {
        hone_xla_argument *argument = &loaded->arguments[i];
        const hone_dtype_info *info = NULL;
        for (int id = 0; id < HONE_DTYPE_COUNT; id++)
            if (hone_dtype_info_of((hone_dtype_id)id)->pjrt == argument->type)
                info = hone_dtype_info_of((hone_dtype_id)id);
        if (info == NULL || shapes[i].type != info->xla ||
            product(shapes[i].dims, shapes[i].rank) != product(argument->dims, argument->rank))
            return hone_fail(err, HONE_INCOMPATIBLE, where, "argument %zu has another dtype or size in the module", i);
        // The module may have the same number of elements in another shape: the rows of a tensor of any rank.
        memcpy(argument->dims, shapes[i].dims, shapes[i].rank * sizeof argument->dims[0]);
        argument->rank = shapes[i].rank;
    }
    return HONE_OK;
}

static hone_status check_parameters(
    const hone_allocator *allocator,
    const hone_xla_plugin *plugin,
    pjrt_executable *executable,
    hone_xla_loaded *loaded,
    hone_error *err)
{
    pjrt_program program = {PJRT_HEAD(pjrt_program)};
    pjrt_get get = {PJRT_HEAD(pjrt_get), .object = executable, .value = &program};
    if (!hone_xla_has(plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM) ||
        hone_xla_call_quietly(plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, &get) != HONE_OK)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%s does not show what it compiled, so that nobody knows whether the arguments fit", plugin->path);
    program.code = hone_alloc(allocator, program.code_size + 1);
    if (program.code == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_xla_call(plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, &get, "OptimizedProgram", err);
    if (status == HONE_OK) status = compare_parameters(program.code, program.code_size, loaded, err);
    hone_free(allocator, program.code);
    return status;
}

static hone_status check_module(
    const hone_allocator *allocator, hone_xla_loaded *loaded, const hone_call *call, hone_error *err)
{
    const hone_xla_plugin *plugin = &loaded->client->plugin;
    pjrt_get get = {PJRT_HEAD(pjrt_get), .object = loaded->loaded};
    hone_status status =
        hone_xla_call(plugin, PJRT_LOADED_EXECUTABLE, &get, "PJRT_LoadedExecutable_GetExecutable", err);
    if (status != HONE_OK) return status;
    status = check_results(plugin, get.value, loaded, call, err);
    if (status == HONE_OK) status = check_parameters(allocator, plugin, get.value, loaded, err);
    hone_xla_destroy(plugin, PJRT_EXECUTABLE_DESTROY, get.value);
    return status;
}

// ----------------------------------------------------------------------------------------------------------------------

static bool is_bytecode(const hone_buffer *bytes)
{
    return bytes->size >= 4 && memcmp(bytes->data, "ML\xefR", 4) == 0;
}

// Reads a file of a pack, whose digest is checked each time: bytecode, or a source.
static hone_status read_pack(const hone_allocator *allocator, const hone_plan *plan, hone_buffer *out, hone_error *err)
{
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_buffer file;
    hone_buffer_init(&file, *allocator);
    hone_status status = hone_pack_read_file(variant->file, &file, err);
    if (status == HONE_OK && is_bytecode(&file))
        hone_buffer_append(out, file.data, file.size);
    else if (status == HONE_OK)
        status = hone_xla_expand(allocator, plan, hone_buffer_string(&file), out, err);
    hone_buffer_deinit(&file);
    return status;
}

static hone_status make_program(
    const hone_allocator *allocator, const hone_plan *plan, hone_buffer *out, hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    if (plan->kernel->code->pack != NULL) return read_pack(allocator, plan, out, err);
    if (code->source != NULL) return hone_xla_expand(allocator, plan, code->source, out, err);
    hone_buffer_append(out, code->binary, code->binary_size);
    return out->failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status compile(const hone_plan *plan, hone_xla_loaded *loaded, hone_error *err)
{
    hone_platform_instance *instance = loaded->instance;
    hone_buffer program, options;
    hone_buffer_init(&program, instance->allocator);
    hone_buffer_init(&options, instance->allocator);
    bool first = loaded->client->devices[0] == loaded->device;
    hone_status status = make_program(&instance->allocator, plan, &program, err);
    if (status == HONE_OK) status = hone_xla_options(&instance->allocator, plan, !first, &options, err);
    const uint64_t module = hone_hash64_add(loaded->digest, hone_buffer_string(&program), program.size);
    loaded->digest = hone_hash64_add(module, hone_buffer_string(&options), options.size);
    if (status == HONE_OK)
        status = hone_xla_compile(instance, loaded->client, loaded->device, &program, &options, &loaded->loaded, err);
    hone_buffer_deinit(&program);
    hone_buffer_deinit(&options);
    return status;
}

static hone_status need_cuda(hone_platform_instance *instance, const hone_xla_loaded *loaded, hone_error *err)
{
    hone_status status = HONE_OK;
    if (loaded->on_host) return HONE_OK;
    hone_mutex_lock(&instance->mutex);
    if (instance->cuda == NULL)
        status = hone_cuda_platform.open(&instance->allocator, instance->log, &instance->cuda, err);
    hone_mutex_unlock(&instance->mutex);
    return status;
}

static void unload(hone_xla_loaded *loaded)
{
    if (loaded->loaded != NULL) hone_xla_destroy(&loaded->client->plugin, PJRT_LOADED_DESTROY, loaded->loaded);
    hone_free(&loaded->instance->allocator, loaded);
}

static hone_status load(
    hone_platform_instance *instance, const hone_plan *plan, hone_xla_loaded *loaded, hone_error *err)
{
    hone_xla_client *client = NULL;
    loaded->instance = instance;
    loaded->info = plan->device;
    loaded->on_host = plan->device->device.type == HONE_DEVICE_CPU;
    if (hone_code_of_plan(plan) == NULL)
        return hone_fail(err, HONE_NOT_FOUND, where, "the pack has no variant for this config");
    hone_status status = take_arguments(&instance->allocator, plan, loaded, err);
    if (status == HONE_OK) status = take_results(plan->call, loaded, err);
    if (status == HONE_OK) status = need_cuda(instance, loaded, err);
    if (status == HONE_OK) status = hone_xla_need_client(instance, plan->device, &client, &loaded->device, err);
    loaded->client = client;
    if (status == HONE_OK) status = compile(plan, loaded, err);
    return status == HONE_OK ? check_module(&instance->allocator, loaded, plan->call, err) : status;
}

hone_status hone_xla_prepare_kernel(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code == NULL)
        return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
    hone_xla_loaded *loaded = hone_alloc(&instance->allocator, sizeof *loaded);
    if (loaded == NULL) return hone_fail_memory(err, where);
    hone_status status = load(instance, plan, loaded, err);
    if (status == HONE_OK)
        *out_state = loaded;
    else
        unload(loaded);
    return status;
}

void hone_xla_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    (void)instance;
    if (kernel->code != NULL && state != NULL)
        unload(state);
    else if (kernel->code == NULL && kernel->release != NULL)
        kernel->release(kernel, state);
}

uint64_t hone_xla_digest(const hone_plan *plan)
{
    const hone_xla_loaded *loaded = plan->state;
    return loaded->digest;
}
