// The kernel of OpenCL's devices: how rms_norm.cl is compiled and launched.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/sources.h"

// A CPU is fastest with few items per row and unrolled loops, a GPU with many items.
const char hone_rms_norm_opencl_space[] = "items: 1..256 *4 default 64\n"
                                          "rows_per_group: 1 | 2 | 4 | 8\n"
                                          "vector: 1 | 4 | 8 | 16\n"
                                          "where dim % vector == 0\n"
                                          "where items * rows_per_group <= 256\n";

const hone_code hone_rms_norm_opencl_code = {
    HONE_CODE,
    .source = hone_source_rms_norm_opencl,
    .entry = "rms_norm",
    .arguments = "x, weight, y, i32(x.size / max(dim, 1)), i32(dim), f32(eps)",
    .grid = "max(1, ceildiv(x.size / max(dim, 1), rows_per_group))",
    .block = "items, rows_per_group",
    .target = "cl_12",
};
