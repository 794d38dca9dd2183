hone_kernel(
    TABLES add_rms_norm
    SOURCES table.c cuda.c xla.c
    PORTABLE reference.c
    EACH_SET body.h
    EMBED add_rms_norm.mlir
    CUDA element.cuh row.cuh range.cuh norm.cuh add_rms_norm.cu)
