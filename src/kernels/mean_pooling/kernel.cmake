hone_kernel(
    TABLES mean_pooling
    SOURCES table.c cuda.c
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh mean_pooling.cu)
