hone_kernel(
    TABLES mean_pooling
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
