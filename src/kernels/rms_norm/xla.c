// The kernels of XLA: how rms_norm.mlir is compiled.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/sources.h"

const char hone_rms_norm_xla_cpu_space[] = "vector_width: 256 | 512 | 128";

const hone_code hone_rms_norm_xla_cpu_code = {
    HONE_CODE,
    .source = hone_source_rms_norm_rms_norm_mlir,
    .arguments = "x, weight, y",
    .options = "xla_cpu_prefer_vector_width = vector_width",
    .condition = "x.size > 0",
};

const hone_code hone_rms_norm_xla_gpu_code = {
    HONE_CODE,
    .source = hone_source_rms_norm_rms_norm_mlir,
    .arguments = "x, weight, y",
    .condition = "x.size > 0",
};
