// Generated arguments of a call, in the host's memory and, if the call is for another device, in that device's memory;
// and the reference's results for them.
#include "hone/inputs.h"
#include "base/error.h"
#include "base/structs.h"
#include "call/call.h"
#include "platforms/platform.h"
#include "runtime/api/api.h"
#include "tune/worker/partition.h"
#include "tune/worker/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "inputs";

struct hone_inputs {
    const hone_op *op;
    hone_call *call; // retained
    uint64_t seed;
    size_t count;
    hone_value *values;             // [count], what kernels get
    hone_tensor *tensors;           // [count], of the host; those that are not tensors are zero
    hone_tensor *placed;            // [count], of the device; the same without one
    void **blocks;                  // [count], the host's memory
    void **device_blocks;           // [count]; NULL: on the host
    size_t *sizes;                  // [count]
    const hone_device_info *device; // that the call names; NULL: not requested
    const hone_platform_ops *ops;   // NULL: its memory is the host's
    hone_platform_instance *instance;
};

// Bytes that the tensor's elements reach, in whole cache lines.
static hone_status allocate(hone_inputs *inputs, size_t index, const hone_tensor *model, hone_error *err)
{
    int64_t bytes = 0, below = 0;
    hone_status status = hone_tensor_span(model, &bytes, &below);
    size_t size = ((size_t)bytes + 127) / 64 * 64;
    if (status == HONE_OK) inputs->blocks[index] = aligned_alloc(64, size);
    if (inputs->blocks[index] == NULL)
        return hone_fail(err, HONE_OUT_OF_MEMORY, where, "no memory for the made-up inputs");
    memset(inputs->blocks[index], 0, size);
    inputs->sizes[index] = size;
    inputs->tensors[index] = *model;
    inputs->tensors[index].device = (hone_device){HONE_DEVICE_CPU, 0};
    inputs->tensors[index].data = (char *)inputs->blocks[index] + below;
    inputs->tensors[index].byte_offset = 0;
    return HONE_OK;
}

static hone_status fill(hone_inputs *inputs, size_t index, hone_error *err)
{
    const hone_algorithm *algorithm = &inputs->op->algorithm->algorithm;
    const hone_call *call = inputs->call;
    const uint64_t seed = inputs->seed;
    const hone_tensor *tensor = &inputs->tensors[index];
    if (algorithm->make_input != NULL && algorithm->make_input(call, index, tensor, seed)) return HONE_OK;
    return hone_generate(call, index, tensor, seed, 1, NULL, err);
}

// The device whose memory kernels of the call read, and its platform, which is open.
static hone_status find_site(hone_inputs *inputs, hone_error *err)
{
    hone_runtime *rt = inputs->op->rt;
    const hone_call *call = inputs->call;
    const hone_device device = hone_call_device(call);
    hone_status status = hone_runtime_find_device(rt, device, &inputs->device, err);
    if (status == HONE_OK && inputs->device == NULL)
        return hone_fail(err, HONE_UNAVAILABLE, where, "%s: no platform here has that device", hone_call_text(call));
    if (status != HONE_OK || device.type == HONE_DEVICE_CPU) return status;
    inputs->ops = hone_platform_ops_of(inputs->device->platform);
    inputs->instance = rt->instances[inputs->device->platform];
    return HONE_OK;
}

static hone_status send(hone_inputs *inputs, size_t index, hone_error *err)
{
    const hone_platform_ops *ops = inputs->ops;
    hone_tensor *placed = &inputs->placed[index];
    const hone_place from = {inputs->blocks[index], 0};
    hone_place to = {NULL, 0};
    hone_status status =
        ops->allocate(inputs->instance, inputs->device, inputs->sizes[index], &inputs->device_blocks[index], err);
    if (status != HONE_OK) return status;
    to.memory = inputs->device_blocks[index];
    *placed = inputs->tensors[index];
    placed->device = inputs->device->device;
    placed->data = to.memory;
    placed->byte_offset = (uint64_t)((char *)inputs->tensors[index].data - (char *)inputs->blocks[index]);
    inputs->values[index] = hone_of_tensor(placed);
    return ops->copy(inputs->instance, inputs->device, HONE_COPY_IN, to, from, inputs->sizes[index], err);
}

static hone_status make_one(hone_inputs *inputs, size_t index, hone_error *err)
{
    const hone_tensor *model = hone_call_tensor(inputs->call, index);
    inputs->values[index] = hone_call_values(inputs->call)[index];
    if (model == NULL) return HONE_OK;
    hone_status status = allocate(inputs, index, model, err);
    bool is_result = hone_signature_parameter(hone_call_signature(inputs->call), index)->is_result;
    if (status == HONE_OK && !is_result) status = fill(inputs, index, err);
    if (status != HONE_OK) return status;
    inputs->values[index] = hone_of_tensor(&inputs->tensors[index]);
    return inputs->ops != NULL ? send(inputs, index, err) : HONE_OK;
}

static bool make_room(hone_inputs *inputs, size_t count)
{
    inputs->values = calloc(count + 1, sizeof *inputs->values);
    inputs->tensors = calloc(count + 1, sizeof *inputs->tensors);
    inputs->placed = calloc(count + 1, sizeof *inputs->placed);
    inputs->blocks = calloc(count + 1, sizeof *inputs->blocks);
    inputs->device_blocks = calloc(count + 1, sizeof *inputs->device_blocks);
    inputs->sizes = calloc(count + 1, sizeof *inputs->sizes);
    return inputs->values != NULL && inputs->tensors != NULL && inputs->placed != NULL && inputs->blocks != NULL &&
           inputs->device_blocks != NULL && inputs->sizes != NULL;
}

static hone_status make_all(hone_inputs *inputs, bool on_device, hone_error *err)
{
    hone_runtime *rt = inputs->op->rt;
    if (!make_room(inputs, inputs->count))
        return hone_fail(err, HONE_OUT_OF_MEMORY, where, "no memory for the made-up inputs");
    hone_status status = on_device ? find_site(inputs, err) : HONE_OK;
    if (status == HONE_OK) status = hone_call_fits(inputs->call, rt->cpu, err);
    for (size_t i = 0; status == HONE_OK && i < inputs->count; i++)
        status = make_one(inputs, i, err);
    return status;
}

// on_device: in the memory of the call's device; otherwise in the host's memory.
static hone_status make(
    const hone_op *op, const hone_call *call, bool on_device, uint64_t seed, hone_inputs **out, hone_error *err)
{
    hone_inputs *inputs = hone_alloc(&op->rt->allocator, sizeof *inputs);
    *out = inputs;
    if (inputs == NULL) return hone_fail_memory(err, where);
    inputs->op = op;
    inputs->call = hone_call_retain((hone_call *)(uintptr_t)call);
    inputs->seed = seed;
    inputs->count = hone_signature_count(hone_call_signature(call));
    const hone_status status = make_all(inputs, on_device, err);
    if (status != HONE_OK) hone_inputs_release(out);
    return status;
}

hone_status hone_inputs_make(
    const hone_op *op, const hone_call *call, uint64_t seed, hone_inputs **out, hone_error *err)
{
    if (out != NULL) *out = NULL;
    if (op == NULL || call == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation, the call and out must not be NULL");
    const hone_status status = hone_call_check(call, op->algorithm->signature, where, err);
    return status == HONE_OK ? make(op, call, true, seed, out, err) : status;
}

void hone_inputs_release(hone_inputs **pointer)
{
    if (pointer == NULL) return;
    hone_inputs *inputs = *pointer;
    *pointer = NULL;
    if (inputs == NULL) return;
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->device_blocks != NULL && inputs->device_blocks[i] != NULL)
            inputs->ops->deallocate(inputs->instance, inputs->device, inputs->device_blocks[i], inputs->sizes[i]);
        if (inputs->blocks != NULL) free(inputs->blocks[i]);
    }
    free(inputs->sizes);
    free(inputs->device_blocks);
    free(inputs->blocks);
    free(inputs->placed);
    free(inputs->tensors);
    free(inputs->values);
    hone_call_release(&inputs->call);
    hone_free(&inputs->op->rt->allocator, inputs);
}

const hone_value *hone_inputs_values(const hone_inputs *inputs, size_t *out_count)
{
    if (out_count != NULL) *out_count = inputs != NULL ? inputs->count : 0;
    return inputs != NULL ? inputs->values : NULL;
}

// Verifying -----------------------------------------------------------------------------------------------------------

// Waits for the device, and copies its memory to the host's.
static hone_status fetch(const hone_inputs *inputs, hone_error *err)
{
    hone_status status = HONE_OK;
    if (inputs->ops != NULL && inputs->ops->synchronize != NULL)
        status = inputs->ops->synchronize(inputs->instance, inputs->device, NULL, err);
    for (size_t i = 0; status == HONE_OK && i < inputs->count; i++) {
        if (inputs->device_blocks[i] == NULL) continue;
        const hone_place to = {inputs->blocks[i], 0}, from = {inputs->device_blocks[i], 0};
        status = inputs->ops->copy(inputs->instance, inputs->device, HONE_COPY_OUT, to, from, inputs->sizes[i], err);
    }
    return status;
}

// The kernel that is marked as the reference, or the one that the algorithm names.
static const hone_kernel_ref *reference_of(const hone_op *op)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(op->algorithm, &count);
    const char *name = op->algorithm->algorithm.reference_kernel;
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->kernel.is_reference || (name != NULL && strcmp(kernels[i]->kernel.name, name) == 0))
            return kernels[i];
    return NULL;
}

// The function of an algorithm that a program registered.
static hone_status run_function(const hone_op *op, const hone_call *call, const hone_value *values, hone_error *err)
{
    static const int64_t no_config[HONE_MAX_PARAMETERS];
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    kernel.name = "reference";
    kernel.algorithm = op->algorithm->name;
    kernel.platform = hone_platform_host();
    kernel.is_reference = true;
    kernel.run = op->algorithm->algorithm.reference;
    const hone_plan plan = {
        .say = hone_platform_say,
        .run = kernel.run,
        .config = no_config,
        .kernel = &kernel,
        .call = call,
        .device = op->rt->cpu};
    const hone_status status = plan.run(&plan, values, NULL);
    if (status == HONE_OK) return HONE_OK;
    return hone_fail(
        err, HONE_KERNEL_FAILED, where, "the reference of %s fails: %s", op->algorithm->name, hone_status_name(status));
}

// kernel NULL: runs the algorithm's function.
static hone_status run_reference(
    const hone_op *op,
    const hone_kernel_ref *kernel,
    const hone_call *call,
    const hone_value *values,
    size_t count,
    hone_error *err)
{
    return kernel != NULL ? hone_kernel_run(kernel, values, count, NULL, err) : run_function(op, call, values, err);
}

static void compare(const hone_inputs *ours, const hone_inputs *reference, hone_verified *out)
{
    const hone_algorithm_entry *algorithm = ours->op->algorithm;
    for (size_t i = 0; i < ours->count; i++) {
        const hone_parameter *parameter = hone_signature_parameter(algorithm->signature, i);
        if (!parameter->is_result) continue;
        double largest = 0, error = 0;
        hone_error err = {.message = ""};
        (void)hone_verify_largest(&reference->tensors[i], &largest, NULL);
        hone_yardstick yardstick =
            hone_verify_yardstick(&algorithm->algorithm.tolerance, ours->tensors[i].dtype, largest);
        yardstick.takes_nan = true; // the result of one call defines the operation's result, NaN included
        const hone_status status = hone_verify_compare(
            NULL, parameter->name, &ours->tensors[i], &reference->tensors[i], &yardstick, &error, &err);
        out->max_error = error > out->max_error ? error : out->max_error;
        if (status == HONE_OK) continue;
        snprintf(out->wrong, sizeof out->wrong, "%.390s", err.message);
        out->is_right = false;
    }
}

static hone_status verify(const hone_inputs *inputs, hone_verified *out, hone_error *err)
{
    hone_inputs *reference = NULL;
    hone_registry_reader reader;
    *out = (hone_verified){.has_reference = false};
    const bool is_function = inputs->op->algorithm->algorithm.reference != NULL;
    hone_status status = fetch(inputs, err);
    if (status != HONE_OK) return status;
    hone_registry_enter(inputs->op->rt->registry, &reader);
    const hone_kernel_ref *kernel = is_function ? NULL : reference_of(inputs->op);
    if (kernel != NULL || is_function) {
        out->has_reference = out->is_right = true;
        status = make(inputs->op, inputs->call, false, inputs->seed, &reference, err);
        if (status == HONE_OK)
            status = run_reference(inputs->op, kernel, inputs->call, reference->values, reference->count, err);
        if (status == HONE_OK) compare(inputs, reference, out);
        hone_inputs_release(&reference);
    }
    hone_registry_leave(&reader);
    return status;
}

hone_status hone_inputs_verify_sized(const hone_inputs *inputs, hone_verified *out, size_t size, hone_error *err)
{
    hone_verified known;
    if (inputs == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the inputs and out must not be NULL");
    const hone_status status = verify(inputs, &known, err);
    if (status == HONE_OK) hone_struct_give(out, size, &known, sizeof known);
    return status;
}

// What an algorithm says of itself -----------------------------------------------------------------------------------

// The values of one part: views of the inputs' memory.
typedef struct part_values {
    hone_value values[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
} part_values;

static hone_status run_part(
    hone_inputs *inputs, const hone_kernel_ref *kernel, const hone_parting *parting, uint64_t part, hone_error *err)
{
    hone_allocator *allocator = &inputs->op->rt->allocator;
    part_values *views = hone_alloc(allocator, sizeof *views);
    if (views == NULL) return hone_fail_memory(err, where);
    for (uint32_t i = 0; i < inputs->count; i++) {
        views->values[i] = inputs->values[i];
        if (inputs->blocks[i] == NULL) continue;
        views->tensors[i] = inputs->tensors[i];
        hone_part_view(parting, part, i, &inputs->tensors[i], views->shapes[i], views->strides[i], &views->tensors[i]);
        views->values[i] = hone_of_tensor(&views->tensors[i]);
    }
    hone_call *call = NULL;
    hone_signature *signature = hone_signature_retain((hone_signature *)hone_call_signature(inputs->call));
    hone_status status = hone_call_bind(*allocator, signature, views->values, inputs->count, false, &call, err);
    // A part that is not a valid call, or that the reference refuses, cannot be compared.
    if (status == HONE_OK) status = run_reference(inputs->op, kernel, call, views->values, inputs->count, err);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY)
        status = hone_fail_prefix(err, HONE_UNSUPPORTED, "a part of %s alone", hone_call_text(inputs->call));
    hone_call_release(&call);
    hone_signature_release(&signature);
    hone_free(allocator, views);
    return status;
}

// Computes two parts over the results of the whole call: nothing changes if the parts do not influence each other.
static hone_status check_parts(
    hone_inputs *whole, hone_inputs *apart, const hone_kernel_ref *kernel, const hone_parting *parting, hone_error *err)
{
    const hone_op *op = whole->op;
    hone_verified found = {.is_right = true};
    hone_status status = run_reference(op, kernel, whole->call, whole->values, whole->count, err);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY) status = hone_fail_prefix(err, HONE_UNSUPPORTED, "parts");
    for (size_t i = 0; i < whole->count; i++)
        if (whole->blocks[i] != NULL) memcpy(apart->blocks[i], whole->blocks[i], whole->sizes[i]);
    if (status == HONE_OK) status = run_part(apart, kernel, parting, 0, err);
    if (status == HONE_OK) status = run_part(apart, kernel, parting, parting->count - 1, err);
    if (status == HONE_OK) compare(apart, whole, &found);
    if (status != HONE_OK || found.is_right) return status;
    return hone_fail(
        err, HONE_KERNEL_FAILED, where,
        "independent = '%s' is not true of %s: its reference gives another result for a part alone: %s",
        op->algorithm->algorithm.independent, op->algorithm->name, found.wrong);
}

static hone_status check_parts_of(
    const hone_op *op,
    const hone_call *call,
    const hone_kernel_ref *kernel,
    const hone_parting *parting,
    uint64_t seed,
    hone_error *err)
{
    const size_t most_bytes = 64u << 20;
    hone_inputs *whole = NULL, *apart = NULL;
    int64_t bytes = 0, below = 0, all = 0;
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor == NULL || hone_tensor_span(tensor, &bytes, &below) != HONE_OK) continue;
        all += bytes;
    }
    if ((size_t)all > most_bytes)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s has %lld bytes, and parts of at most %zu are compared",
            hone_call_text(call), (long long)all, most_bytes);
    hone_status status = make(op, call, false, seed, &whole, err);
    if (status == HONE_OK) status = make(op, call, false, seed, &apart, err);
    if (status == HONE_OK) status = check_parts(whole, apart, kernel, parting, err);
    hone_inputs_release(&whole);
    hone_inputs_release(&apart);
    return status;
}

hone_status hone_inputs_check_parts(const hone_op *op, const hone_call *call, uint64_t seed, hone_error *err)
{
    hone_registry_reader reader;
    hone_parting parting;
    if (op == NULL || call == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation and the call must not be NULL");
    hone_status status = hone_call_check(call, op->algorithm->signature, where, err);
    if (status != HONE_OK || op->algorithm->builtin) return status;
    hone_registry_enter(op->rt->registry, &reader);
    const bool is_function = op->algorithm->algorithm.reference != NULL;
    const hone_kernel_ref *kernel = is_function ? NULL : reference_of(op);
    hone_parting_find(op->algorithm->algorithm.independent, call, &parting);
    if (!is_function && kernel == NULL)
        status = hone_fail(err, HONE_UNSUPPORTED, where, "%s has no reference", op->algorithm->name);
    else if (parting.count < 2)
        status = hone_fail(err, HONE_UNSUPPORTED, where, "%s has no parts", hone_call_text(call));
    else
        status = check_parts_of(op, call, kernel, &parting, seed, err);
    hone_registry_leave(&reader);
    return status;
}
