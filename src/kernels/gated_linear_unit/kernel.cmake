hone_kernel(
    TABLES gated_linear_unit
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
