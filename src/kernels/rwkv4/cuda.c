// The kernel of NVIDIA's GPUs: how rwkv4.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/rwkv4/rwkv4.h"
#include "kernels/sources.h"

const char hone_rwkv4_cuda_space[] = "threads: 32 | 64 | 128 | 256 default 64\n"
                                     "ahead: 1 | 4 | 8 default 4\n";

const hone_code hone_rwkv4_cuda_code = {
    HONE_CODE,
    .source = hone_source_rwkv4_rwkv4_cu,
    .entry = "rwkv4",
    .arguments = "w, u, k, v, state, wkv, i64(batch), i64(seq_len), i64(chans)",
    .grid = "max(1, ceildiv(batch * chans, threads))",
    .block = "threads",
    .target = "sm_80",
};
