hone_kernel(
    TABLES softmax_vjp
    SOURCES table.c cuda.c
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh row.cuh softmax_vjp.cu)
