# What several kernels use, and how fast this machine can be at best.
hone_kernel(
    SOURCES scratch.c
    PORTABLE peak.c
    EACH_SET peak_loop.h)
