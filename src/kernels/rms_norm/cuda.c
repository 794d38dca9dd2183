// The kernel of NVIDIA's GPUs: how rms_norm.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/sources.h"

const char hone_rms_norm_cuda_space[] = HONE_ROWS_CUDA_SPACE;

const hone_code hone_rms_norm_cuda_code = {
    HONE_CODE,
    .source = hone_source_rms_norm_rms_norm_cu,
    .entry = "rms_norm",
    .arguments = "x, weight, y, i32(x.size / max(dim, 1)), i32(dim), f32(eps)",
    .grid = HONE_ROWS_CUDA_GRID,
    .block = HONE_ROWS_CUDA_BLOCK,
    .cluster = "cluster",
    .target = "sm_80",
    .align = 16,
};
