hone_kernel(
    TABLES rms_norm
    SOURCES table.c cuda.c opencl.c xla.c
    PORTABLE reference.c
    EACH_SET body.h
    EMBED rms_norm.mlir
    CUDA element.cuh row.cuh range.cuh norm.cuh rms_norm.cu
    OPENCL rms_norm.cl)
