#include "inputs.h"

#include "call/call.h"
#include "cli.h"
#include "runtime/api/api.h"
#include "tune/tuner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Bytes that the tensor's elements reach, in whole cache lines.
static hone_status allocate(cli_inputs *inputs, size_t index, const hone_tensor *model, hone_error *err)
{
    int64_t bytes = 0, below = 0;
    hone_status status = hone_tensor_span(model, &bytes, &below);
    size_t size = ((size_t)bytes + 127) / 64 * 64;
    if (status == HONE_OK) inputs->blocks[index] = aligned_alloc(64, size);
    if (inputs->blocks[index] == NULL) {
        *err = (hone_error){HONE_OUT_OF_MEMORY, 0, "inputs", "no memory for the made-up inputs"};
        return HONE_OUT_OF_MEMORY;
    }
    memset(inputs->blocks[index], 0, size);
    inputs->sizes[index] = size;
    inputs->tensors[index] = *model;
    inputs->tensors[index].device = (hone_device){HONE_DEVICE_CPU, 0};
    inputs->tensors[index].data = (char *)inputs->blocks[index] + below;
    inputs->tensors[index].byte_offset = 0;
    return HONE_OK;
}

static hone_status fill(
    cli_inputs *inputs, const hone_op *op, const hone_call *call, size_t index, uint64_t seed, hone_error *err)
{
    const hone_algorithm *algorithm = &op->algorithm->algorithm;
    const hone_tensor *tensor = &inputs->tensors[index];
    if (algorithm->make_input != NULL && algorithm->make_input(call, index, tensor, seed)) return HONE_OK;
    return hone_generate(call, index, tensor, seed, 1, NULL, err);
}

// The device whose memory kernels of the call read, and its platform, which is open.
static hone_status find_site(cli_inputs *inputs, hone_runtime *rt, const hone_call *call, hone_error *err)
{
    const hone_device device = hone_call_device(call);
    hone_status status = hone_runtime_find_device(rt, device, &inputs->device, err);
    if (status == HONE_OK && inputs->device == NULL) {
        *err = (hone_error){HONE_UNAVAILABLE, 0, "inputs", ""};
        snprintf(err->message, sizeof err->message, "%s: no platform here has that device", hone_call_text(call));
        return err->status;
    }
    if (status != HONE_OK || device.type == HONE_DEVICE_CPU) return status;
    inputs->ops = hone_platform_ops_of(inputs->device->platform);
    inputs->instance = rt->instances[inputs->device->platform];
    return HONE_OK;
}

static hone_status send(cli_inputs *inputs, size_t index, hone_error *err)
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

static hone_status make_one(
    cli_inputs *inputs, const hone_op *op, const hone_call *call, size_t index, uint64_t seed, hone_error *err)
{
    const hone_tensor *model = hone_call_tensor(call, index);
    inputs->values[index] = hone_call_values(call)[index];
    if (model == NULL) return HONE_OK;
    hone_status status = allocate(inputs, index, model, err);
    bool is_result = hone_signature_parameter(hone_call_signature(call), index)->is_result;
    if (status == HONE_OK && !is_result) status = fill(inputs, op, call, index, seed, err);
    if (status != HONE_OK) return status;
    inputs->values[index] = hone_of_tensor(&inputs->tensors[index]);
    return inputs->ops != NULL ? send(inputs, index, err) : HONE_OK;
}

static bool make_room(cli_inputs *inputs, size_t count)
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

int cli_inputs_make(cli_inputs *inputs, const hone_op *op, const hone_call *call, cli_place place, uint64_t seed)
{
    size_t count = hone_signature_count(hone_call_signature(call));
    memset(inputs, 0, sizeof *inputs);
    hone_error err = {HONE_OUT_OF_MEMORY, 0, "inputs", "no memory for the made-up inputs"};
    if (!make_room(inputs, count)) return cli_fail(&err);
    inputs->count = count;
    hone_status status = place == CLI_ON_DEVICE ? find_site(inputs, op->rt, call, &err) : HONE_OK;
    if (status == HONE_OK) status = hone_call_fits(call, op->rt->cpu, &err);
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = make_one(inputs, op, call, i, seed, &err);
    return status == HONE_OK ? 0 : cli_fail(&err);
}

hone_status cli_inputs_wait(const cli_inputs *inputs, hone_error *err)
{
    if (inputs->ops == NULL || inputs->ops->synchronize == NULL) return HONE_OK;
    return inputs->ops->synchronize(inputs->instance, inputs->device, NULL, err);
}

hone_status cli_inputs_fetch(const cli_inputs *inputs, hone_error *err)
{
    hone_status status = cli_inputs_wait(inputs, err);
    for (size_t i = 0; status == HONE_OK && i < inputs->count; i++) {
        if (inputs->device_blocks[i] == NULL) continue;
        const hone_place to = {inputs->blocks[i], 0}, from = {inputs->device_blocks[i], 0};
        status = inputs->ops->copy(inputs->instance, inputs->device, HONE_COPY_OUT, to, from, inputs->sizes[i], err);
    }
    return status;
}

void cli_inputs_deinit(cli_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->device_blocks[i] != NULL)
            inputs->ops->deallocate(inputs->instance, inputs->device, inputs->device_blocks[i], inputs->sizes[i]);
        free(inputs->blocks[i]);
    }
    free(inputs->sizes);
    free(inputs->device_blocks);
    free(inputs->blocks);
    free(inputs->placed);
    free(inputs->tensors);
    free(inputs->values);
    memset(inputs, 0, sizeof *inputs);
}
