hone_kernel(
    TABLES matmul
    SOURCES table.c matmul.c reference.c gemm.c blocked.c decode.c decoding.c rival.c cuda.c opencl.c xla.c
    EACH_SET float_sets.h
    SETS portable avx2 avx512 portable_f64 avx2_f64 avx512_f64
    AVX512_BF16 avx512_bf16.c
    AMX_BF16 amx_bf16.c
    EMBED matmul.mlir
    CUDA operands.cuh simt.cu operands.cuh tensor_core.cu operands.cuh wgmma.cuh wgmma.cu
    OPENCL matmul.cl)
