// rms_norm as somebody would write it with OpenBLAS, which has none: a dot product of each row, then a plain loop.
#ifndef HONE_BENCH_COMPOSED_H
#define HONE_BENCH_COMPOSED_H

#include <hone/hone.h>

// Registers it as the kernel "composed" of rms_norm. Its space is the threads over which the rows are split.
hone_status composed_register(hone_runtime *rt, hone_error *err);

#endif
