hone_kernel(
    TABLES layer_norm
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
