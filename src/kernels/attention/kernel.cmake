# Over the reference and the streams of flash_attention.
hone_kernel(
    LEAN
    TABLES attention
    SOURCES table.c
    EACH_SET body.h)
