// The kernel of XLA: how add_rms_norm.mlir is compiled.
#include "kernels/add_rms_norm/add_rms_norm.h"
#include "kernels/sources.h"

const char hone_add_rms_norm_xla_space[] = "vector_width: 256 | 512 | 128";

const hone_code hone_add_rms_norm_xla_code = {
    HONE_CODE,
    .source = hone_source_add_rms_norm_add_rms_norm_mlir,
    .arguments = "x, residual, weight, sum, y",
    .options = "xla_cpu_prefer_vector_width = vector_width",
    .condition = "x.size > 0",
};
