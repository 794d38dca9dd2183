hone_kernel(
    TABLES flash_attention
    SOURCES table.c run.c compose.c cuda.c
    PORTABLE reference.c problem.c
    EACH_SET streams.h tiles.h weigh.h
    EMBED flash_attention.cu
    CUDA wgmma.cuh wgmma.cu)
