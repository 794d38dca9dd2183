// The kernel of NVIDIA's GPUs: how add_rms_norm.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/add_rms_norm/add_rms_norm.h"
#include "kernels/sources.h"

const hone_code hone_add_rms_norm_cuda_code = {
    HONE_CODE,
    .source = hone_source_add_rms_norm_add_rms_norm_cu,
    .entry = "add_rms_norm",
    .arguments = "x, residual, weight, sum, y, i64(x.size / max(dim, 1)), i32(dim), f64(eps)",
    .grid = HONE_ROWS_CUDA_GRID,
    .block = HONE_ROWS_CUDA_BLOCK,
    .cluster = "cluster",
    .target = "sm_80",
    .align = 16,
};
