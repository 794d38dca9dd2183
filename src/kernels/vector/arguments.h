// Helpers for the functions of a kernel's table, about a call and a device: scalars, dense axes, threads, the
// processor.
#ifndef HONE_KERNELS_VECTOR_ARGUMENTS_H
#define HONE_KERNELS_VECTOR_ARGUMENTS_H

#include "base/error.h"
#include "hone/describe.h"
#include "hone/kernel.h"
#include "kernels/common/matrix.h"

#include <string.h>

// The space of kernels that divide their work among threads.
#define HONE_THREADS_SPACE                                                                                             \
    "threads: 1..64 *2\n"                                                                                              \
    "where threads <= device.threads"

// A number given as a float or an integer; `otherwise` if none was given.
static inline double hone_number_of(const hone_value *value, double otherwise)
{
    if (value->tag == HONE_VALUE_FLOAT) return value->as.f64;
    if (value->tag == HONE_VALUE_INT) return (double)value->as.i64;
    return otherwise;
}

// Whether the elements of the tensor's last axis are adjacent, as vector loads require.
static inline bool hone_last_axis_is_dense(const hone_call *call, size_t index, hone_error *why)
{
    const hone_tensor *tensor = hone_call_tensor(call, index);
    if (tensor == NULL || tensor->ndim == 0) return true;
    int32_t last = tensor->ndim - 1;
    int64_t stride = hone_axis_stride(tensor, last);
    if (stride == 1 || tensor->shape[last] <= 1) return true;
    const char *name = hone_signature_parameter(hone_call_signature(call), index)->name;
    hone_fail(
        why, HONE_UNSUPPORTED, "kernels", "%s has stride %lld on its last axis; this kernel asks for 1", name,
        (long long)stride);
    return false;
}

// The largest power of two that is at most the device's threads and at most `useful`.
static inline int64_t hone_threads_for(const hone_device_info *device, int64_t useful)
{
    int64_t threads = 1, limit = device != NULL ? device->threads : 1;
    while (threads * 2 <= limit && threads * 2 <= useful && threads < 64)
        threads *= 2;
    return threads;
}

// Whether a device is a processor of a vendor, "GenuineIntel", or of one of its microarchitectures,
// "AuthenticAMD,zen5": a fingerprint of a CPU begins with "cpu|GenuineIntel,sapphire_rapids,".
static inline bool hone_is_processor(const hone_device_info *device, const char *beginning)
{
    static const char of_cpu[] = "cpu|";
    const size_t begin = sizeof of_cpu - 1, size = strlen(beginning);
    if (strncmp(device->fingerprint, of_cpu, begin) != 0) return false;
    return strncmp(device->fingerprint + begin, beginning, size) == 0 && device->fingerprint[begin + size] == ',';
}

// The number of rows that give a task about task_bytes bytes: a power of four, at most `most`.
static inline int64_t hone_rows_per_task(int64_t row_bytes, int64_t task_bytes, int64_t most)
{
    int64_t rows = 1;
    while (rows < most && rows * row_bytes < task_bytes)
        rows *= 4;
    return rows;
}

// Whether a result of this size should be stored past the last cache; its inputs are as large. A machine's last cache
// may also serve threads of others, as on a part of a server, so 4 MiB of results count as one thread's share (Xeon,
// Sapphire Rapids, a cache of 300 MiB and two threads: rms_norm of f32 with streamed stores is 1.7 times as slow with 1
// MiB, as fast with 2, 1.07 to 1.14 times as fast with 4 and 8, 1.8 times with 16).
static inline bool hone_exceeds_cache(const hone_device_info *device, int64_t bytes)
{
    const int64_t share = (int64_t)4 << 20;
    if (device == NULL || device->l3_bytes <= 0) return false;
    return bytes > device->l3_bytes || bytes > share * (device->threads > 1 ? device->threads : 1);
}

// The value of a named dim; 0 if the call has none with this name.
static inline int64_t hone_dim_of(const hone_call *call, const char *name)
{
    int64_t value = 0;
    return hone_call_dim(call, name, &value) == HONE_OK ? value : 0;
}

#endif
