#include "inputs.h"

#include "call/call.h"
#include "cli.h"
#include "runtime/runtime.h"
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
        if (err != NULL) *err = (hone_error){HONE_OUT_OF_MEMORY, 0, "inputs", "no memory for the made-up inputs"};
        return HONE_OUT_OF_MEMORY;
    }
    memset(inputs->blocks[index], 0, size);
    inputs->tensors[index] = *model;
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
    return hone_generate(call, index, tensor, seed, err);
}

int cli_inputs_make(cli_inputs *inputs, const hone_op *op, const hone_call *call, uint64_t seed)
{
    const hone_signature *signature = hone_call_signature(call);
    size_t count = hone_signature_count(signature);
    memset(inputs, 0, sizeof *inputs);
    inputs->values = calloc(count + 1, sizeof *inputs->values);
    inputs->tensors = calloc(count + 1, sizeof *inputs->tensors);
    inputs->blocks = calloc(count + 1, sizeof *inputs->blocks);
    hone_error err = {HONE_OUT_OF_MEMORY, 0, "inputs", "no memory for the made-up inputs"};
    if (inputs->values == NULL || inputs->tensors == NULL || inputs->blocks == NULL) return cli_fail(&err);
    const hone_device device = hone_call_device(call);
    if (device.type != HONE_DEVICE_CPU) {
        err = (hone_error){HONE_UNSUPPORTED, 0, "inputs", ""};
        snprintf(
            err.message, sizeof err.message,
            "%s: made-up inputs of this command lie in the host's memory; hone tune and hone explain take calls on "
            "other "
            "devices",
            hone_call_text(call));
        return cli_fail(&err);
    }
    if (hone_call_fits(call, op->rt->cpu, &err) != HONE_OK) return cli_fail(&err);
    inputs->count = count;
    for (size_t i = 0; i < count; i++) {
        const hone_tensor *model = hone_call_tensor(call, i);
        inputs->values[i] = hone_call_values(call)[i];
        if (model == NULL) continue;
        hone_status status = allocate(inputs, i, model, &err);
        bool result = hone_signature_parameter(signature, i)->is_result;
        if (status == HONE_OK && !result) status = fill(inputs, op, call, i, seed, &err);
        if (status != HONE_OK) return cli_fail(&err);
        inputs->values[i] = hone_of_tensor(&inputs->tensors[i]);
    }
    return 0;
}

void cli_inputs_deinit(cli_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->blocks[i]);
    free(inputs->blocks);
    free(inputs->tensors);
    free(inputs->values);
    memset(inputs, 0, sizeof *inputs);
}
