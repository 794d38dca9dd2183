hone_kernel(
    TABLES flash_attention
    SOURCES table.c run.c compose.c cuda.c
    PORTABLE reference.c problem.c
    EACH_SET streams.h tiles_of_floats.h tiles.h weigh.h
    AVX512_BF16 avx512_bf16.c
    EMBED flash_attention.cu
    CUDA wgmma.cuh wgmma.cu)
