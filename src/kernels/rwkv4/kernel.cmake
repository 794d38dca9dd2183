hone_kernel(
    TABLES rwkv4
    SOURCES table.c cuda.c
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh rwkv4.cu)
