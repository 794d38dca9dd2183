hone_kernel(
    TABLES rope rope_vjp
    SOURCES table.c cuda.c
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh rope.cu)
