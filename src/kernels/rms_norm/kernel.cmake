hone_kernel(
    TABLES rms_norm
    SOURCES table.c cuda.c opencl.c xla.c
    PORTABLE reference.c
    EACH_SET body.h
    EMBED rms_norm.cu rms_norm.mlir
    OPENCL rms_norm.cl)
