hone_kernel(
    TABLES scaled_matmul
    SOURCES table.c scaled_matmul.c onednn3.c cublaslt.c cuda.c
    PORTABLE portable.c
    EACH_SET pairs.h
    SETS avx2 avx512
    AVX512_VNNI avx512_vnni.c
    AMX_INT8 amx_int8.c)
