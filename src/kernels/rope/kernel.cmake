hone_kernel(
    TABLES rope
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
