// matmul: the algorithm and its kernels.
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"
#include "kernels/matmul/kernels.h"
#include "kernels/rivals/cublaslt.h"
#include "kernels/rivals/rivals.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"
#include "os/tiles.h"

enum {
    AVX2 = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C,
    AVX512 = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ
};

// The number of elements with distinct addresses.
static double elements_of(const hone_call *call, size_t value)
{
    const hone_tensor *tensor = hone_call_tensor(call, value);
    if (tensor == NULL) return 0;
    double elements = 1;
    for (int32_t axis = 0; axis < tensor->ndim; axis++)
        if (hone_axis_stride(tensor, axis) != 0 || tensor->shape[axis] == 0) elements *= (double)tensor->shape[axis];
    return elements;
}

// Each input read once, the output written once.
static void model(const hone_call *call, hone_cost *out_cost)
{
    hone_matmul product = hone_matmul_of_call(call);
    double m = (double)hone_matmul_batch(&product) * (double)product.m, n = (double)product.n, k = (double)product.k;
    double elements = elements_of(call, MATMUL_A) + elements_of(call, MATMUL_B) + elements_of(call, MATMUL_C) +
                      elements_of(call, MATMUL_BIAS) + elements_of(call, MATMUL_RESIDUAL);
    // An activation counts as one operation, its minimum.
    double epilogue = product.has_bias + product.has_residual + (product.activation != MATMUL_NONE);
    out_cost->bytes = elements * (double)hone_element_size(product.dtype);
    out_cost->operations = 2 * m * n * k + m * n * epilogue;
}

static bool product(const hone_call *call, hone_product *out)
{
    const hone_matmul of = hone_matmul_of_call(call);
    if (hone_matmul_has_epilogue(&of)) return false;
    const int32_t rows = hone_call_tensor(call, MATMUL_C)->ndim - 2;
    *out = (hone_product){
        .a = MATMUL_A, .b = MATMUL_B, .out = MATMUL_C, .a_rows = rows, .b_rows = rows + (of.transpose_b ? 1 : 0)};
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature =
        "matmul(a: T[..., m, k], b: T[..., n, k] if transpose_b else [..., k, n], *, transpose_b: bool = false, "
        "bias: T[n]? = none #given, activation: str? = none #given, residual: T[..., m, n]? = none #given) -> "
        "c: T[..., m, n] where T in f32, f16, bf16, f64",
    .reference = hone_matmul_reference,
    .model = model,
    .independent = "... m",
    // Excludes infinities: oneDNN pads short rows of bf16 with zeros, and infinity times zero is NaN.
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
    .product = product,
};

// A tile is mr x nr sums in registers; mc x kc words of a are packed for the second cache, kc rows of b for the third.
static const char tiles_of_32_registers[] = "mr: 6 | 8 | 9 | 12 | 14 default 9\n"
                                            "nr: 32 | 48 | 64 default 48\n"
                                            "kc: 128 | 256 | 384 | 512 default 512\n"
                                            "mc: 56 | 112 | 224 | 448 default 224\n"
                                            "threads: 1..64 *2\n"
                                            "where 384 <= mr * nr <= 448\n"
                                            "where threads <= device.threads\n";
// Two by two tiles of AMX.
static const char tiles_of_amx[] = "mr: 16 | 32 default 32\n"
                                   "nr: 32\n"
                                   "kc: 256 | 512 | 1024 | 2048 default 512\n"
                                   "mc: 128 | 256 | 512 | 1024 default 512\n"
                                   "threads: 1..64 *2\n"
                                   "where threads <= device.threads\n";
static const char tiles_of_9_rows_beside_packed_b[] = "mr: 6 | 8 | 9 default 6\n"
                                                      "nr: 48 | 64 default 64\n"
                                                      "kc: 256 | 512 | 1024 | 2048 default 1024\n"
                                                      "mc: 56 | 112 | 224 | 448 default 448\n"
                                                      "threads: 1..64 *2\n"
                                                      "where 384 <= mr * nr <= 432\n"
                                                      "where threads <= device.threads\n";
static const char tiles_of_9_rows[] = "mr: 6 | 8 | 9 default 6\n"
                                      "nr: 48 | 64 default 64\n"
                                      "kc: 128 | 256 | 512 default 512\n"
                                      "mc: 56 | 112 | 224 default 112\n"
                                      "threads: 1..64 *2\n"
                                      "where 384 <= mr * nr <= 432\n"
                                      "where threads <= device.threads\n";
static const char tiles_of_16_registers[] = "mr: 4 | 6\n"
                                            "nr: 16 | 24 default 24\n"
                                            "kc: 128 | 256 | 512 default 512\n"
                                            "mc: 60 | 120 | 240 default 240\n"
                                            "threads: 1..64 *2\n"
                                            "where mr * nr <= 96 and (mr == 6 or nr == 24)\n"
                                            "where threads <= device.threads\n";
static const char tiles_of_any_machine[] = "mr: 4 | 6 default 6\n"
                                           "nr: 8 | 12 default 8\n"
                                           "kc: 128 | 256 | 512 default 512\n"
                                           "mc: 60 | 120 default 120\n"
                                           "threads: 1..64 *2\n"
                                           "where mr * nr <= 48 and (mr == 6 or nr == 12)\n"
                                           "where threads <= device.threads\n";
static const char threads_alone[] = HONE_THREADS_SPACE;

// Columns of b that are packed together: with kc rows they fit into the last cache; if the products are faster, into
// the second, and beside rows of a that are not packed, into half of it.
enum { COLUMNS = 4096, NEAR_COLUMNS = 512, NEAREST_COLUMNS = 256 };
// Rows from which on AMX is faster than a kernel that reads b in place: 1.0 to 1.6 times at 8, 1.4 to 2.3 at 12, 2.7 to
// 4.6 at 32 (Xeon, Sapphire Rapids).
enum { TILES_FROM = 8 };

// EPYC, Zen 5: the kernel that packs nothing takes .62 to 1.00 of the time of the one that packs at 13 shapes of f32
// and f64, and from four rows on .12 to 1.00 of the time of the kernel for few rows, .96 to 1.4 below
// (docs/benchmarks.md). blocked.c has the measurements for Intel's processors.
static const char packing_is_slow_on[] = "AuthenticAMD,zen5";

static const hone_blocked blocked_avx512 = {
    .form = &hone_matmul_form_plain,
    .slow_on = packing_is_slow_on,
    .slow_in_place = true,
    .set = &hone_gemm_avx512,
    .f64 = &hone_gemm_avx512_f64,
    .mr = 9,
    .nr = 48,
    .kc = 512,
    .mc = 224,
    .columns = COLUMNS};
static const hone_blocked in_place_avx512 = {
    .form = &hone_matmul_form_plain,
    .slow_on = packing_is_slow_on,
    .slow_in_place = true,
    .set = &hone_gemm_avx512,
    .f64 = &hone_gemm_avx512_f64,
    .b_in_place = true,
    .mr = 9,
    .nr = 48,
    .kc = 512,
    .mc = 224,
    .columns = COLUMNS};
static const hone_blocked unpacked_avx512 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_gemm_avx512,
    .f64 = &hone_gemm_avx512_f64,
    .a_in_place = true,
    .b_in_place = true,
    .mr = 6,
    .nr = 64,
    .kc = 512,
    .mc = 112,
    .low_mr = 9,
    .low_nr = 48,
    .columns = COLUMNS};
static const hone_blocked rows_in_place_avx512 = {
    .form = &hone_matmul_form_plain,
    .slow_on = packing_is_slow_on,
    .slow_in_place = true,
    .set = &hone_gemm_avx512,
    .f64 = &hone_gemm_avx512_f64,
    .a_in_place = true,
    .mr = 6,
    .nr = 64,
    .kc = 512,
    .mc = 448,
    .columns = NEAREST_COLUMNS};
static const hone_blocked blocked_bf16 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_gemm_avx512_bf16,
    .bf16_only = true,
    .slow_on = "GenuineIntel", // an instruction that multiplies pairs takes as long as four that multiply floats
    .mr = 9,
    .nr = 48,
    .kc = 512,
    .mc = 224,
    .columns = COLUMNS};
static const hone_blocked in_place_bf16 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_gemm_avx512_bf16,
    .a_in_place = true,
    .bf16_only = true,
    .slow_on = "GenuineIntel",
    .mr = 6,
    .nr = 64,
    .kc = 1024,
    .mc = 448,
    .columns = NEAREST_COLUMNS};
static const hone_blocked blocked_amx = {
    .form = &hone_matmul_form_plain,
    .set = &hone_gemm_amx_bf16,
    .bf16_only = true,
    .tiles = true,
    .mr = 32,
    .nr = 32,
    .kc = 512,
    .mc = 512,
    .columns = NEAR_COLUMNS};
static const hone_blocked blocked_avx2 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_gemm_avx2,
    .f64 = &hone_gemm_avx2_f64,
    .mr = 4,
    .nr = 24,
    .kc = 512,
    .mc = 240,
    .narrow_mr = 6,
    .narrow_nr = 16,
    .columns = COLUMNS};
static const hone_blocked blocked_portable = {
    .form = &hone_matmul_form_plain,
    .set = &hone_gemm_portable,
    .f64 = &hone_gemm_portable_f64,
    .mr = 6,
    .nr = 8,
    .kc = 512,
    .mc = 120,
    .columns = COLUMNS};
static const hone_decoding decoding_avx512 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_decode_avx512,
    .f64 = &hone_decode_avx512_f64,
    .slow_on = packing_is_slow_on,
    .slow_from = 4,
    .tiles = &blocked_amx,
    .tiles_from = TILES_FROM};
static const hone_decoding decoding_bf16 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_decode_avx512_bf16,
    .bf16_only = true,
    // An instruction that multiplies pairs takes as long as four that multiply floats there: this takes .96 to 1.28
    // times the time of avx512_decode from 8 rows on, .65 to .74 with one (docs/bf16-on-a-cpu.md).
    .slow_on = "GenuineIntel",
    .slow_from = 8,
    .tiles = &blocked_amx,
    .tiles_from = TILES_FROM};
static const hone_decoding decoding_avx2 = {
    .form = &hone_matmul_form_plain,
    .set = &hone_decode_avx2,
    .f64 = &hone_decode_avx2_f64,
    // EPYC, Zen 3: the blocked kernel takes .88 of the time at 18 rows of f32 and .70 at 24, 1.0 and more at 12 to 16;
    // with 16 sums in registers, dividing k takes 1.1 to 1.25 times as long at 8 rows, and .72 of the time at 4.
    .blocked_from = 18,
    .split_until = 4};
static const hone_decoding decoding_portable = {
    .form = &hone_matmul_form_plain, .set = &hone_decode_portable, .f64 = &hone_decode_portable_f64};

// The common fields of every row: a native kernel of the CPU.
#define NATIVE HONE_KERNEL, .algorithm = "matmul", .platform = HONE_NATIVE, .backend = HONE_CPU
#define RIVAL                                                                                                          \
    .supports = hone_rival_kernel_supports, .prepare = hone_rival_kernel_prepare,                                      \
    .release = hone_rival_kernel_release, .run = hone_rival_kernel_run, .find_library = hone_rival_kernel_find_library

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512_bf16_decode", .priority = 46, .needs = AVX512 | HONE_CPU_AVX512_BF16,
     .space = hone_decoding_space, .user = (void *)&decoding_bf16, HONE_DECODING_KERNEL},
    {NATIVE, .name = "avx512_decode", .priority = 44, .needs = AVX512, .space = hone_decoding_space,
     .user = (void *)&decoding_avx512, HONE_DECODING_KERNEL},
    {NATIVE, .name = "amx_bf16", .priority = 38, .needs = AVX512 | HONE_CPU_AVX512_BF16 | HONE_CPU_AMX_BF16,
     .space = tiles_of_amx, .user = (void *)&blocked_amx, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512_bf16_in_place", .priority = 37, .needs = AVX512 | HONE_CPU_AVX512_BF16,
     .space = tiles_of_9_rows_beside_packed_b, .user = (void *)&in_place_bf16, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512_bf16", .priority = 36, .needs = AVX512 | HONE_CPU_AVX512_BF16,
     .space = tiles_of_32_registers, .user = (void *)&blocked_bf16, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512", .priority = 34, .needs = AVX512, .space = tiles_of_32_registers,
     .user = (void *)&blocked_avx512, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512_in_place", .priority = 32, .needs = AVX512, .space = tiles_of_32_registers,
     .user = (void *)&in_place_avx512, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512_rows_in_place", .priority = 33, .needs = AVX512, .space = tiles_of_9_rows_beside_packed_b,
     .user = (void *)&rows_in_place_avx512, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512_unpacked", .priority = 31, .needs = AVX512, .space = tiles_of_9_rows,
     .user = (void *)&unpacked_avx512, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx2_decode", .priority = 24, .needs = AVX2, .space = hone_decoding_space,
     .user = (void *)&decoding_avx2, HONE_DECODING_KERNEL},
    {NATIVE, .name = "avx2", .priority = 22, .needs = AVX2, .space = tiles_of_16_registers,
     .user = (void *)&blocked_avx2, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "onednn", .library = HONE_ONEDNN_SONAME, .priority = 20, .space = threads_alone,
     .user = (void *)&hone_rival_onednn, .heuristic = hone_rival_kernel_heuristic, RIVAL},
    {NATIVE, .name = "onednn3", .priority = 19, .space = threads_alone, .user = (void *)&hone_rival_onednn3,
     .heuristic = hone_rival_kernel_heuristic, RIVAL},
    {NATIVE, .name = "openblas", .library = HONE_OPENBLAS_SONAME, .priority = 18, .space = threads_alone,
     .user = (void *)&hone_rival_openblas, .heuristic = hone_rival_kernel_heuristic, RIVAL},
    {NATIVE, .name = "numpy_openblas", .priority = 17, .space = threads_alone,
     .user = (void *)&hone_rival_numpy_openblas, .heuristic = hone_rival_kernel_heuristic, RIVAL},
    {NATIVE, .name = "scipy_openblas", .priority = 15, .space = threads_alone,
     .user = (void *)&hone_rival_scipy_openblas, .heuristic = hone_rival_kernel_heuristic, RIVAL},
    {NATIVE, .name = "libxsmm", .priority = 16, .needs = HONE_CPU_AVX, .user = (void *)&hone_rival_libxsmm, RIVAL},
    {NATIVE, .name = "portable_decode", .priority = 12, .space = hone_decoding_space,
     .user = (void *)&decoding_portable, HONE_DECODING_KERNEL},
    {NATIVE, .name = "portable", .priority = 10, .space = tiles_of_any_machine, .user = (void *)&blocked_portable,
     HONE_BLOCKED_KERNEL},
    {HONE_KERNEL, .algorithm = "matmul", .name = "cublaslt", .library = HONE_CUBLASLT_SONAME, .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 70, .signature = hone_cublaslt_signature, .space = hone_cublaslt_space,
     .user = (void *)&hone_matmul_form_plain, .supports = hone_cublaslt_supports, .prepare = hone_cublaslt_prepare,
     .release = hone_cublaslt_release, .run = hone_cublaslt_run, .digest = hone_cublaslt_digest,
     .find_library = hone_cublaslt_find},
    {HONE_KERNEL, .algorithm = "matmul", .name = "cuda_tensor_core", .platform = HONE_CUDA, .backend = HONE_GPU,
     .priority = 60, .signature = hone_tensor_core_signature, .space = hone_tensor_core_space,
     .heuristic = hone_tensor_core_heuristic, .code = &hone_tensor_core_code},
    // If it can run the call it is the fastest of hone's own, except for the smallest products (docs/gpu.md).
    {HONE_KERNEL, .algorithm = "matmul", .name = "cuda_wgmma", .platform = HONE_CUDA, .backend = HONE_GPU,
     .priority = 61, .signature = hone_tensor_core_signature, .space = hone_wgmma_space,
     .heuristic = hone_wgmma_heuristic, .code = &hone_wgmma_code},
    {HONE_KERNEL, .algorithm = "matmul", .name = "cuda_simt", .platform = HONE_CUDA, .backend = HONE_GPU,
     .priority = 50, .signature = hone_simt_signature, .space = hone_simt_space, .code = &hone_simt_code},
    {HONE_KERNEL, .algorithm = "matmul", .name = "opencl", .platform = HONE_OPENCL, .backend = HONE_ANY, .priority = 50,
     .signature = hone_matmul_plain_signature, .space = hone_matmul_opencl_space, .code = &hone_matmul_opencl_code},
    {HONE_KERNEL, .algorithm = "matmul", .name = "xla", .platform = HONE_XLA, .backend = HONE_GPU, .priority = 40,
     .signature = hone_matmul_plain_signature, .space = hone_matmul_xla_gpu_space, .code = &hone_matmul_xla_gpu_code},
    {HONE_KERNEL, .algorithm = "matmul", .name = "xla", .platform = HONE_XLA, .backend = HONE_CPU, .priority = 5,
     .signature = hone_matmul_plain_signature, .space = hone_matmul_xla_cpu_space, .code = &hone_matmul_xla_cpu_code},
    {NATIVE, .name = "reference", .is_reference = true, .supports = hone_matmul_knows_activation,
     .run = hone_matmul_reference},
};

const hone_kernel_table hone_matmul_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
