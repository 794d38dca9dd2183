// The kernel of NVIDIA's GPUs: how softmax.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/softmax/softmax.h"
#include "kernels/sources.h"

const hone_code hone_softmax_cuda_code = {
    HONE_CODE,
    .source = hone_source_softmax_softmax_cu,
    .entry = "softmax",
    .arguments = "x, y, i64(x.size / max(dim, 1)), i32(dim), f64(scale)",
    .grid = HONE_ROWS_CUDA_GRID,
    .block = HONE_ROWS_CUDA_BLOCK,
    .cluster = "cluster",
    .target = "sm_80",
    .align = 16,
};
