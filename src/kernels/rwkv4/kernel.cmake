hone_kernel(
    TABLES rwkv4
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
