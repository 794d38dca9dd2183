# What several kernels use, and how fast this machine can be at best.
hone_kernel(
    SOURCES scratch.c cuda.c
    PORTABLE peak.c
    AVX512_BF16 peak_bf16.c
    EACH_SET peak_loop.h)
