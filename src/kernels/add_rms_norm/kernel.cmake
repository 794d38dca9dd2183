hone_kernel(
    TABLES add_rms_norm
    SOURCES table.c xla.c
    PORTABLE reference.c
    EACH_SET body.h
    EMBED add_rms_norm.mlir)
