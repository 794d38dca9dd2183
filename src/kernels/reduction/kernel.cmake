hone_kernel(
    TABLES reduction
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
