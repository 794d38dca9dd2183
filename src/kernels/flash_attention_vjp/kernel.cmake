hone_kernel(
    TABLES flash_attention_vjp
    SOURCES table.c
    PORTABLE reference.c
    EACH_SET body.h)
