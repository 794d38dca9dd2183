hone_kernel(
    LEAN
    TABLES silu_mul silu_mul_vjp
    SOURCES table.c cuda.c
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh silu_mul.cu)
