// The handlers: from XLA's frame to hone_run and back.
#include "xla_ffi/host.h"
#include "xla_ffi/memory.h"
#include "xla_ffi/site.h"
#include "xla_ffi/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "xla.call";

// --- errors

static xla_ffi_code code_of(hone_status status)
{
    static const xla_ffi_code codes[] = {
        [HONE_OK] = XLA_FFI_UNKNOWN,
        [HONE_INVALID_ARGUMENT] = XLA_FFI_INVALID_ARGUMENT,
        [HONE_OUT_OF_MEMORY] = XLA_FFI_RESOURCE_EXHAUSTED,
        [HONE_NOT_FOUND] = XLA_FFI_NOT_FOUND,
        [HONE_UNSUPPORTED] = XLA_FFI_UNIMPLEMENTED,
        [HONE_UNAVAILABLE] = XLA_FFI_UNAVAILABLE,
        [HONE_INCOMPATIBLE] = XLA_FFI_FAILED_PRECONDITION,
        [HONE_CORRUPT] = XLA_FFI_DATA_LOSS,
        [HONE_BUSY] = XLA_FFI_ABORTED,
        [HONE_IO] = XLA_FFI_INTERNAL,
        [HONE_CANCELLED] = XLA_FFI_CANCELLED,
        [HONE_KERNEL_FAILED] = XLA_FFI_INTERNAL,
    };
    return (size_t)status < sizeof codes / sizeof *codes ? codes[status] : XLA_FFI_UNKNOWN;
}

static xla_ffi_error *raise(const xla_ffi_frame *frame, const hone_error *err)
{
    char message[sizeof err->message + 16];
    snprintf(message, sizeof message, "hone: %s", err->message);
    xla_ffi_error_create create = {.struct_size = sizeof create, .message = message, .code = code_of(err->status)};
    return frame->api->error_create(&create);
}

static hone_status fail_count(const hone_xla_site *site, const char *what, int64_t came, size_t asked, hone_error *err)
{
    const hone_signature *signature = hone_op_signature(site->op);
    *err = (hone_error){.status = HONE_INVALID_ARGUMENT, .where = where};
    const int one = asked == 1; // "result", not "results"
    snprintf(
        err->message, sizeof err->message, "%s: expected %zu %.*s, got %" PRId64 ": %s", hone_signature_name(signature),
        asked, (int)strlen(what) - one, what, came, hone_signature_text(signature));
    return HONE_INVALID_ARGUMENT;
}

static hone_status fail_buffer(const hone_xla_site *site, size_t value, const xla_ffi_buffer *buffer, hone_error *err)
{
    const hone_signature *signature = hone_op_signature(site->op);
    const hone_parameter *parameter = hone_signature_parameter(signature, value);
    *err = (hone_error){.status = HONE_INVALID_ARGUMENT, .where = where};
    snprintf(
        err->message, sizeof err->message,
        "%s: %s is an array of XLA's type %d and %" PRId64 " dimensions; it is asked for as %s, of up to %d dimensions",
        hone_signature_name(signature), parameter->name, buffer->dtype, buffer->rank, parameter->type_text,
        (int)HONE_MAX_RANK);
    return HONE_INVALID_ARGUMENT;
}

static hone_status fail_stack(const hone_xla_site *site, size_t i, hone_error *err)
{
    const hone_signature *signature = hone_op_signature(site->op);
    *err = (hone_error){.status = HONE_INVALID_ARGUMENT, .where = where};
    snprintf(
        err->message, sizeof err->message,
        "%s: %s is asked for as one of a stack, and what came has no first dimension, or none in it",
        hone_signature_name(signature), hone_signature_parameter(signature, site->tensors[i])->name);
    return HONE_INVALID_ARGUMENT;
}

// --- arrays

static bool take_buffer(const xla_ffi_buffer *buffer, hone_device device, hone_tensor *out)
{
    hone_dtype dtype = hone_xla_dtype(buffer->dtype);
    if (dtype.lanes == 0 || buffer->rank < 0 || buffer->rank > HONE_MAX_RANK) return false;
    *out = (hone_tensor){
        .data = buffer->data,
        .device = device,
        .ndim = (int32_t)buffer->rank,
        .dtype = dtype,
        .shape = buffer->dims,
    };
    return true;
}

static hone_status take_buffers(
    const hone_xla_site *site,
    const xla_ffi_buffers *buffers,
    size_t count,
    size_t first,
    hone_device device,
    hone_tensor *tensors,
    hone_value *values,
    hone_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t value = site->tensors[first + i];
        if (buffers->types[i] != XLA_FFI_IS_BUFFER || !take_buffer(buffers->buffers[i], device, &tensors[first + i]))
            return fail_buffer(site, value, buffers->buffers[i], err);
        values[value] = hone_of_tensor(&tensors[first + i]);
    }
    return HONE_OK;
}

// Stacks become that one of their arrays which the last operand names; one outside is the nearest, as for dynamic_slice.
static hone_status take_slices(
    const hone_xla_site *site, const xla_ffi_frame *frame, hone_tensor *tensors, hone_error *err)
{
    const xla_ffi_buffer *last = frame->arguments.buffers[site->parameter_count];
    if (last->dtype != XLA_FFI_S32 || last->rank != 0) {
        *err = (hone_error){.status = HONE_INVALID_ARGUMENT, .where = where};
        snprintf(
            err->message, sizeof err->message,
            "hone_call: the number of a slice is an s32 of rank 0; an array of XLA's type %d and %" PRId64
            " dimensions came",
            last->dtype, last->rank);
        return HONE_INVALID_ARGUMENT;
    }
    const int32_t asked = *(const int32_t *)last->data;
    for (size_t i = 0; i < site->parameter_count; i++) {
        hone_tensor *tensor = &tensors[i];
        if (!(site->sliced >> i & 1)) continue;
        if (tensor->ndim == 0 || tensor->shape[0] == 0) return fail_stack(site, i, err);
        const int64_t most = tensor->shape[0] - 1, index = asked < 0 ? 0 : asked < most ? asked : most;
        size_t bytes = tensor->dtype.bits / 8u;
        for (int32_t d = 1; d < tensor->ndim; d++)
            bytes *= (size_t)tensor->shape[d];
        tensor->data = (char *)tensor->data + (size_t)index * bytes;
        tensor->shape++;
        tensor->ndim--;
    }
    return HONE_OK;
}

static hone_status run(
    const xla_ffi_frame *frame,
    const hone_xla_site *site,
    hone_device device,
    const hone_execution *execution,
    hone_error *err)
{
    hone_tensor tensors[HONE_XLA_TENSORS];
    hone_value values[HONE_XLA_VALUES];
    const size_t operands = site->parameter_count + (site->sliced != 0);
    if ((size_t)frame->arguments.size != operands)
        return fail_count(site, "arrays", frame->arguments.size, operands, err);
    if ((size_t)frame->results.size != site->result_count)
        return fail_count(site, "results", frame->results.size, site->result_count, err);
    for (size_t i = 0; i < site->count; i++)
        values[i] = site->values[i];
    hone_status status = take_buffers(site, &frame->arguments, site->parameter_count, 0, device, tensors, values, err);
    if (status == HONE_OK && site->sliced != 0) status = take_slices(site, frame, tensors, err);
    if (status == HONE_OK)
        status = take_buffers(
            site, &frame->results, site->result_count, site->parameter_count, device, tensors, values, err);
    if (status != HONE_OK) return status;
    hone_context *previous = hone_context_enter(site->context);
    status = hone_run(site->op, values, site->count, execution, err);
    hone_context_enter(previous);
    return status;
}

// --- frames

// XLA asks once what the handler was made for; such a frame has nothing else in it.
static bool answer_metadata(const xla_ffi_frame *frame)
{
    for (xla_ffi_extension *at = frame->extension; at != NULL; at = at->next) {
        if (at->type != XLA_FFI_EXTENSION_METADATA) continue;
        xla_ffi_metadata *metadata = ((xla_ffi_metadata_extension *)(void *)at)->metadata;
        metadata->api_version.major = XLA_FFI_MAJOR;
        metadata->api_version.minor = XLA_FFI_MINOR;
        metadata->traits = 0;
        return true;
    }
    return false;
}

static xla_ffi_error *call(
    const xla_ffi_frame *frame, hone_device device, const hone_execution *execution, const hone_xla_site *site)
{
    hone_error err;
    hone_status status = run(frame, site, device, execution, &err);
    return status == HONE_OK ? NULL : raise(frame, &err);
}

// The site, unless the frame asks for nothing more: then *out_done.
static xla_ffi_error *open_frame(const xla_ffi_frame *frame, const hone_xla_site **out, bool *out_done)
{
    hone_error err;
    *out_done = true;
    if (frame->extension != NULL && answer_metadata(frame)) return NULL;
    if (hone_xla_site_find(&frame->attributes, out, &err) != HONE_OK) return raise(frame, &err);
    *out_done = frame->stage != XLA_FFI_EXECUTE;
    return NULL;
}

xla_ffi_error *hone_xla_call_cpu(xla_ffi_frame *frame)
{
    const hone_xla_site *site = NULL;
    bool done;
    xla_ffi_error *error = open_frame(frame, &site, &done);
    if (done) return error;
    hone_xla_pool pool = {frame->api, frame->context};
    hone_execution execution = {.struct_size = sizeof execution, .parallel_for = hone_xla_parallel_for, .pool = &pool};
    return call(frame, (hone_device){HONE_DEVICE_CPU, 0}, &execution, site);
}

xla_ffi_error *hone_xla_call_cuda(xla_ffi_frame *frame)
{
    const hone_xla_site *site = NULL;
    bool done;
    xla_ffi_error *error = open_frame(frame, &site, &done);
    if (done) return error;
    xla_ffi_stream_get stream = {.struct_size = sizeof stream, .context = frame->context};
    xla_ffi_ordinal_get ordinal = {.struct_size = sizeof ordinal, .context = frame->context};
    error = frame->api->stream_get(&stream);
    if (error == NULL && XLA_FFI_HAS(frame->api, ordinal_get)) error = frame->api->ordinal_get(&ordinal);
    if (error != NULL) return error;
    if (site->sliced != 0) {
        hone_error err = {.status = HONE_UNSUPPORTED, .where = where};
        snprintf(
            err.message, sizeof err.message,
            "hone_call: hone_sliced is for the CPU; on a GPU slice the array before the call");
        return raise(frame, &err);
    }
    hone_execution execution = {
        .struct_size = sizeof execution,
        .stream = stream.stream,
        .take = hone_xla_take,
        .give_back = hone_xla_give_back,
        .memory = frame,
    };
    return call(frame, (hone_device){HONE_DEVICE_CUDA, ordinal.ordinal}, &execution, site);
}
