// The kernel of NVIDIA's GPUs: how mean_pooling.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/mean_pooling/mean_pooling.h"
#include "kernels/sources.h"
#include "kernels/vector/arguments.h"

enum { LANES, STEPS, VECTOR, ROWS_AT_ONCE, CLUSTER, PARAMETERS };

const char hone_mean_pooling_cuda_space[] = "lanes: 8 | 16 | 32 | 64 | 128 default 32\n"
                                            "steps: 1..64 *2 default 8\n"
                                            "vector: 1 | 2 | 4 | 8\n"
                                            "rows_at_once: 1 | 4 | 8 default 4\n"
                                            "cluster: 1 | 2 | 4 | 8\n"
                                            "where hidden_dim % vector == 0\n"
                                            "where lanes * steps >= 32 and lanes * steps <= 1024\n"
                                            "where lanes <= 8 or lanes * vector < 2 * hidden_dim\n"
                                            "where steps <= 4 or steps * cluster < 2 * seq_len\n"
                                            "where cluster <= 1 or device.capability >= 90\n";

const hone_code hone_mean_pooling_cuda_code = {
    HONE_CODE,
    .source = hone_source_mean_pooling_mean_pooling_cu,
    .entry = "mean_pooling",
    .arguments = "x, out, i64(batch), i64(seq_len), i64(hidden_dim)",
    .grid = "max(1, batch * ceildiv(hidden_dim, lanes * vector)) * cluster",
    .block = "lanes, steps",
    .cluster = "cluster",
    .target = "sm_80",
    .align = 16,
};

// Blocks of 512 threads, and enough blocks per sequence to give work to all multiprocessors.
bool hone_mean_pooling_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    const int64_t channels = hone_dim_of(call, "hidden_dim"), length = hone_dim_of(call, "seq_len");
    const int64_t vector = hone_cuda_vector(channels, hone_call_dtype(call, "T"));
    int64_t lanes = 8, steps = 4, cluster = 1;
    if (channels == 0) return false;
    while (lanes < 64 && lanes * 2 * vector < 2 * channels)
        lanes *= 2;
    while (lanes * steps < 512 && steps * 2 < 2 * length)
        steps *= 2;
    const int64_t blocks = hone_dim_of(call, "batch") * ((channels + lanes * vector - 1) / (lanes * vector));
    while (device != NULL && device->capability >= 90 && cluster < 8 && blocks * cluster < 2 * device->sms &&
           steps * cluster * 2 < length)
        cluster *= 2;
    out_config->count = PARAMETERS;
    out_config->values[LANES] = lanes;
    out_config->values[STEPS] = steps;
    out_config->values[VECTOR] = vector;
    out_config->values[ROWS_AT_ONCE] = 4;
    out_config->values[CLUSTER] = cluster;
    return true;
}
