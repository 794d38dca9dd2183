// The kernel of OpenCL's devices: how matmul.cl is compiled and launched.
#include "kernels/matmul/kernels.h"
#include "kernels/sources.h"

const char hone_matmul_opencl_space[] = "tile_m: 16 | 32 | 64 | 128 default 32\n"
                                        "tile_n: 16 | 32 | 64 | 128 default 32\n"
                                        "tile_k: 8 | 16 | 32 default 16\n"
                                        "item_m: 1 | 2 | 4 | 8 default 4\n"
                                        "item_n: 1 | 4 | 8 | 16 default 4\n"
                                        // From 4 to 256 work-items.
                                        "where tile_m * tile_n >= 4 * item_m * item_n\n"
                                        "where tile_m * tile_n <= 256 * item_m * item_n\n"
                                        "where (tile_m + tile_n + 2) * tile_k * 4 <= 32768\n"
                                        "where tile_m == 16 or tile_m < 2 * m\n"
                                        "where tile_n == 16 or tile_n < 2 * n\n";

const hone_code hone_matmul_opencl_code = {
    HONE_CODE,
    .source = hone_source_matmul_opencl,
    .entry = "matmul",
    .arguments = "a, b, c, i32(m), i32(n), i32(k)",
    .constants = "TRANSPOSE_B = transpose_b",
    .grid = "ceildiv(n, tile_n), ceildiv(m, tile_m)",
    .block = "tile_m / item_m * (tile_n / item_n)",
    .condition = "m > 0 and n > 0",
    .target = "cl_12",
};
