// The kernel of NVIDIA's GPUs: what rms_norm.cu is compiled and launched with.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/sources.h"

const char hone_rms_norm_cuda_space[] = "threads_per_row: 32..1024 *2 default 256\n"
                                        "rows_per_block: 1 | 2 | 4 | 8\n"
                                        "vector: 1 | 2 | 4 | 8\n"
                                        "keep: 0 | 1 | 2 | 4 | 8\n"
                                        "where dim % vector == 0\n"
                                        "where threads_per_row * rows_per_block <= 1024\n"
                                        "where rows_per_block <= 1 or threads_per_row <= 256\n"
                                        // A row is held as a whole or not at all, and not by twice the registers.
                                        "where keep == 0 or keep * vector * threads_per_row >= dim\n"
                                        "where keep <= 1 or keep * vector * threads_per_row < 2 * dim\n";

const hone_code hone_rms_norm_cuda_code = {
    HONE_CODE,
    .source = hone_source_rms_norm_rms_norm_cu,
    .entry = "rms_norm",
    .arguments = "x, weight, y, i32(x.size / max(dim, 1)), i32(dim), f32(eps)",
    .grid = "max(1, ceildiv(x.size / max(dim, 1), rows_per_block))",
    .block = "threads_per_row, rows_per_block",
    .target = "sm_80",
    .align = 16,
};
