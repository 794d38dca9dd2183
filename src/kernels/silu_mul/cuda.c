// The kernels of NVIDIA's GPUs: how silu_mul.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/sources.h"
#include "kernels/vector/arguments.h"

enum { THREADS, VECTOR, PACKS_PER_THREAD, PARAMETERS };

const char hone_silu_mul_cuda_space[] = "threads: 128..1024 *2 default 256\n"
                                        "vector: 2 | 4 | 8 default 4\n"
                                        "packs_per_thread: 1 | 2 | 4 default 2\n";

#define GRID "max(1, ceildiv(ceildiv(gate.size, vector), threads * packs_per_thread))"

const hone_code hone_silu_mul_cuda_code = {
    HONE_CODE,           .source = hone_source_silu_mul_silu_mul_cu,
    .entry = "silu_mul", .arguments = "gate, up, y, i64(gate.size)",
    .grid = GRID,        .block = "threads",
    .target = "sm_80",   .align = 16,
};

const hone_code hone_silu_mul_vjp_cuda_code = {
    HONE_CODE,
    .source = hone_source_silu_mul_silu_mul_cu,
    .entry = "silu_mul_vjp",
    .arguments = "gate, up, d_y, d_gate, d_up, i64(gate.size)",
    .grid = GRID,
    .block = "threads",
    .target = "sm_80",
    .align = 16,
};

// Accesses of 16 bytes; more than one pack per thread if there is work for all multiprocessors.
bool hone_silu_mul_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    const int64_t vector = 128 / hone_call_dtype(call, "T")->bits;
    const int64_t packs = hone_tensor_elements(hone_call_tensor(call, SILU_MUL_GATE)) / vector;
    const bool is_large = device != NULL && packs / 512 > 4 * device->sms;
    out_config->count = PARAMETERS;
    out_config->values[THREADS] = 256;
    out_config->values[VECTOR] = vector;
    out_config->values[PACKS_PER_THREAD] = is_large ? 2 : 1;
    return true;
}
