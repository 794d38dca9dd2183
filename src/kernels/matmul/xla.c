// The kernels of XLA: how matmul.mlir is compiled.
#include "kernels/matmul/kernels.h"
#include "kernels/sources.h"

const char hone_matmul_xla_cpu_space[] = "vector_width: 256 | 512 | 128";

const hone_code hone_matmul_xla_cpu_code = {
    HONE_CODE,
    .source = hone_source_matmul_matmul_mlir,
    .arguments = "a, b, c",
    .options = "xla_cpu_prefer_vector_width = vector_width",
    .condition = "m > 0 and n > 0 and k > 0",
};

const char hone_matmul_xla_gpu_space[] = "triton_gemm: true | false";

const hone_code hone_matmul_xla_gpu_code = {
    HONE_CODE,
    .source = hone_source_matmul_matmul_mlir,
    .arguments = "a, b, c",
    .options = "xla_gpu_enable_triton_gemm = triton_gemm",
    .condition = "m > 0 and n > 0 and k > 0",
};
