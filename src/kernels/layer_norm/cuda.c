// The kernel of NVIDIA's GPUs: how layer_norm.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/sources.h"

const hone_code hone_layer_norm_cuda_code = {
    HONE_CODE,
    .source = hone_source_layer_norm_layer_norm_cu,
    .entry = "layer_norm",
    .arguments = "x, weight, bias, y, i64(x.size / max(dim, 1)), i32(dim), f64(eps), f64(weight_offset)",
    .constants = "SUBTRACT_MEAN = subtract_mean",
    .grid = HONE_ROWS_CUDA_GRID,
    .block = HONE_ROWS_CUDA_BLOCK,
    .cluster = "cluster",
    .target = "sm_80",
    .align = 16,
};
