// The kernel of NVIDIA's GPUs: how rope.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/rope/rope.h"
#include "kernels/sources.h"
#include "kernels/vector/arguments.h"

enum { THREADS, VECTOR, HEADS_PER_THREAD, PARAMETERS };

const char hone_rope_cuda_space[] = "threads: 64..512 *2 default 256\n"
                                    "vector: 1 | 2 | 4 | 8\n"
                                    "heads_per_thread: 1 | 2 | 4 | 8\n"
                                    "where half % vector == 0 and dim % vector == 0\n"
                                    "where heads_per_thread <= 1 or heads_per_thread <= heads\n";

// A thread handles `vector` pairs, or elements after the pairs, of heads_per_thread heads.
#define ITEMS "x.size / max(dim * heads, 1) * ((dim - half) // vector) * ceildiv(heads, heads_per_thread)"

const hone_code hone_rope_cuda_code = {
    HONE_CODE,
    .source = hone_source_rope_rope_cu,
    .entry = "rope",
    .arguments = "x, cos, sin, y, i64(x.size / max(dim * heads, 1)), i64(seq)",
    .constants = "HALF = half, DIM = dim, HEADS = heads, INTERLEAVED = interleaved",
    .grid = "max(1, ceildiv(" ITEMS ", threads))",
    .block = "threads",
    .target = "sm_80",
    .align = 16,
};

// Accesses of 16 bytes if heads allow them; with many heads, angles are read once for several of them.
bool hone_rope_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    const int64_t half = hone_dim_of(call, "half"), dim = hone_dim_of(call, "dim"), heads = hone_dim_of(call, "heads");
    const hone_dtype_info *dtype = hone_call_dtype(call, "T");
    const int64_t of_halves = hone_cuda_vector(half, dtype), of_heads = hone_cuda_vector(dim, dtype);
    const int64_t vector = of_halves < of_heads ? of_halves : of_heads;
    const int64_t elements = hone_tensor_elements(hone_call_tensor(call, ROPE_X));
    int64_t together = 1;
    while (together < 4 && together * 2 <= heads && device != NULL && elements / vector / together > device->sms * 2048)
        together *= 2;
    out_config->count = PARAMETERS;
    out_config->values[THREADS] = 256;
    out_config->values[VECTOR] = vector;
    out_config->values[HEADS_PER_THREAD] = together;
    return true;
}
