hone_kernel(
    TABLES rms_norm_vjp add_rms_norm_vjp layer_norm_vjp
    SOURCES table.c cuda.c
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh norm_vjp.cu)
