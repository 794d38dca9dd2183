# Another form of flash_attention.
hone_kernel(
    TABLES scaled_dot_product_attention
    SOURCES table.c)
