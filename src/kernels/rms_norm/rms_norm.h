// RMS norm over the last axis: y = x / sqrt(mean(x^2) + eps) * weight.
#ifndef HONE_KERNELS_RMS_NORM_H
#define HONE_KERNELS_RMS_NORM_H

#include "kernels/vector/rows.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { RMS_NORM_X, RMS_NORM_WEIGHT, RMS_NORM_Y, RMS_NORM_EPS };
enum { RMS_NORM_UNROLL, RMS_NORM_ROWS_PER_TASK, RMS_NORM_STORE, RMS_NORM_THREADS };

typedef struct hone_rms_norm {
    hone_rows x, y;
    const void *weight;
    int64_t weight_step;
    double eps;
    hone_dtype_id dtype;
} hone_rms_norm;

hone_rms_norm hone_rms_norm_of(const hone_plan *plan, const hone_value *args);
// Computes one row in double: the reference, and the fallback of a kernel if the squares of a row exceed the range of
// floats.
void hone_rms_norm_row(const hone_rms_norm *norm, int64_t row);

// The space of the processor's kernels and its config by heuristic; add_rms_norm has the same.
//   x              one axis or more
//   element_bytes  what a kernel reads for an element of x
//   device         may be NULL
extern const char hone_rms_norm_space[];
void hone_rms_norm_config(
    const hone_tensor *x, int64_t element_bytes, const hone_device_info *device, hone_config *out_config);

hone_run_function hone_rms_norm_reference, hone_rms_norm_portable, hone_rms_norm_avx2, hone_rms_norm_avx512;

// cuda.c: the kernel of NVIDIA's GPUs.
extern const hone_code hone_rms_norm_cuda_code;
extern const char hone_rms_norm_cuda_space[];

// opencl.c: the kernel of OpenCL's devices.
extern const hone_code hone_rms_norm_opencl_code;
extern const char hone_rms_norm_opencl_space[];

// xla.c: the kernels of XLA.
extern const hone_code hone_rms_norm_xla_cpu_code, hone_rms_norm_xla_gpu_code;
extern const char hone_rms_norm_xla_cpu_space[];

#endif
