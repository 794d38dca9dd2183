hone_kernel(
    TABLES stencil
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
