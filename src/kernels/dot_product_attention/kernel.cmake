# Over the streams of flash_attention.
hone_kernel(
    TABLES dot_product_attention biased_attention
    SOURCES table.c
    PORTABLE biased.c reference.c
    EACH_SET body.h)
