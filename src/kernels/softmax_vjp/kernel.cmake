hone_kernel(
    TABLES softmax_vjp
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
