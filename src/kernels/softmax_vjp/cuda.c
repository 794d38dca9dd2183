// The kernel of NVIDIA's GPUs: how softmax_vjp.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/softmax_vjp/softmax_vjp.h"
#include "kernels/sources.h"

const hone_code hone_softmax_vjp_cuda_code = {
    HONE_CODE,
    .source = hone_source_softmax_vjp_softmax_vjp_cu,
    .entry = "softmax_vjp",
    .arguments = "y, d_y, d_x, i64(y.size / max(dim, 1)), i32(dim), f64(scale)",
    .grid = HONE_ROWS_CUDA_GRID_OF("y"),
    .block = HONE_ROWS_CUDA_BLOCK,
    .cluster = "cluster",
    .target = "sm_80",
    .align = 16,
};
