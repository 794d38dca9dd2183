// A shared library as the CuTe DSL exports one for tvm-ffi, whose functions compute on the host, where the fake GPU's
// memory is.
#include "fake_log.h"
#include "fake_tvm_ffi.h"
#include "hone/value.h"

#include <math.h>
#include <stdio.h>

static int fail_type(const char *message)
{
    TVMFFIErrorSetRaisedFromCStr("TypeError", message);
    return -1;
}

// As the CuTe platform passes them, by DLPack's address, and as objects, behind a header of 24 bytes.
static const hone_tensor *tensor_of(const hone_value *value)
{
    return value->tag == 70 ? (const hone_tensor *)(const void *)((const char *)value->as.pointer + 24)
                            : value->as.tensor;
}

// Tensors with their strides, numbers, and which stream.
static void log_call(const char *name, const hone_value *arguments, int32_t count)
{
    char text[1024] = "";
    size_t used = 0;
    for (int32_t i = 0; i < count && used + 128 < sizeof text; i++) {
        const hone_value *value = &arguments[i];
        if (value->tag == HONE_VALUE_TENSOR || value->tag == 70) {
            const hone_tensor *tensor = tensor_of(value);
            used += (size_t)snprintf(
                text + used, sizeof text - used, " %d.%d@%d:%d", tensor->dtype.code, tensor->dtype.bits,
                tensor->device.type, tensor->device.id);
            for (int32_t axis = 0; axis < tensor->ndim; axis++)
                used += (size_t)snprintf(
                    text + used, sizeof text - used, "%s%lld/%lld", axis == 0 ? "[" : ",",
                    (long long)tensor->shape[axis], (long long)tensor->strides[axis]);
            used += (size_t)snprintf(text + used, sizeof text - used, "]+%d", (int)tensor->byte_offset);
        } else if (value->tag == HONE_VALUE_FLOAT) {
            used += (size_t)snprintf(text + used, sizeof text - used, " float %g", value->as.f64);
        } else if (value->tag == HONE_VALUE_INT) {
            used += (size_t)snprintf(text + used, sizeof text - used, " int %lld", (long long)value->as.i64);
        } else {
            used += (size_t)snprintf(
                text + used, sizeof text - used, " tag %d %s", value->tag,
                value->as.pointer == NULL ? "default" : "own");
        }
    }
    fake_log("call %s %d:%s", name, count, text);
}

// (a, b, c, stream) in f32
EXPORT int __tvm_ffi_matmul(void *self, const hone_value *arguments, int32_t count, hone_value *result);
int __tvm_ffi_matmul(void *self, const hone_value *arguments, int32_t count, hone_value *result)
{
    (void)self;
    (void)result;
    log_call("matmul", arguments, count);
    if (count != 4) return fail_type("Expects 4 parameters when calling: `matmul(a, b, c, stream)`");
    if (arguments[3].tag != HONE_VALUE_POINTER) return fail_type("argument #3 must be a stream");
    const hone_tensor *a = arguments[0].as.tensor, *b = arguments[1].as.tensor, *c = arguments[2].as.tensor;
    const float *left = a->data, *right = b->data;
    float *sums = c->data;
    for (int64_t i = 0; i < c->shape[0]; i++)
        for (int64_t j = 0; j < c->shape[1]; j++) {
            double sum = 0;
            for (int64_t k = 0; k < a->shape[1]; k++)
                sum += (double)left[i * a->strides[0] + k] * right[k * b->strides[0] + j];
            sums[i * c->strides[0] + j] = (float)sum;
        }
    return 0;
}

// (x, weight, y, dim, eps) in f32; the stream is the environment's
EXPORT int __tvm_ffi_rms_norm(void *self, const hone_value *arguments, int32_t count, hone_value *result);
int __tvm_ffi_rms_norm(void *self, const hone_value *arguments, int32_t count, hone_value *result)
{
    (void)self;
    (void)result;
    log_call("rms_norm", arguments, count);
    if (count != 5) return fail_type("Expects 5 parameters");
    const float *x = tensor_of(&arguments[0])->data, *weight = tensor_of(&arguments[1])->data;
    float *y = tensor_of(&arguments[2])->data;
    const int64_t dim = arguments[3].as.i64, rows = tensor_of(&arguments[0])->shape[0];
    fake_log("stream %s", TVMFFIEnvGetStream(2, 0) == NULL ? "default" : "own");
    for (int64_t row = 0; row < rows; row++) {
        double squares = 0;
        for (int64_t i = 0; i < dim; i++)
            squares += (double)x[row * dim + i] * x[row * dim + i];
        double factor = 1 / sqrt(squares / (double)dim + arguments[4].as.f64);
        for (int64_t i = 0; i < dim; i++)
            y[row * dim + i] = (float)(x[row * dim + i] * factor * weight[i]);
    }
    return 0;
}
