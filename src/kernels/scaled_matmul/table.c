// scaled_matmul: the algorithm and its kernels.
#include "kernels/common/half.h"
#include "kernels/matmul/kernels.h"
#include "kernels/rivals/cublaslt.h"
#include "kernels/rivals/rivals.h"
#include "kernels/scaled_matmul/scaled_matmul.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"
#include "os/tiles.h"

enum { AVX2 = HONE_SCALED_AVX2, AVX512 = HONE_SCALED_AVX512 };

// Each array read once, the result written once. Counts operations on integers.
static void model(const hone_call *call, hone_cost *out_cost)
{
    const hone_matmul product = hone_scaled_matmul_form.of_call(call);
    const double m = (double)product.m, n = (double)product.n, k = (double)product.k;
    const double scales = (product.a_scale_stride != 0 ? m : 1) + (product.b_scale_stride != 0 ? n : 1);
    out_cost->bytes = m * k + k * n + scales * sizeof(float) + (m * n + n) * (double)hone_element_size(product.dtype);
    out_cost->operations = 2 * m * n * k;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature =
        "scaled_matmul(a: Q[m, k] ~ uniform(-128, 127), b: Q[n, k] if transpose_b else [k, n] ~ uniform(-128, 127), "
        "a_scale: f32[m], b_scale: f32[n], bias: T[n], *, transpose_b: bool = false) -> c: T[m, n] "
        "where T in f32, f16, bf16 where Q in i8, f8_e4m3fn, f8_e5m2",
    .reference = hone_scaled_matmul_reference,
    .model = model,
    .independent = "m",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
};

// A tile is mr x nr sums in registers; mc x kc of a are packed for the second cache.
static const char tiles_of_32_registers[] = "mr: 6 | 8 | 9 | 12 | 14 default 9\n"
                                            "nr: 32 | 48 | 64 default 48\n"
                                            "kc: 512 | 1024 | 2048 default 1024\n"
                                            "mc: 56 | 112 | 224 | 448 default 224\n"
                                            "threads: 1..64 *2\n"
                                            "where 384 <= mr * nr <= 448\n"
                                            "where threads <= device.threads\n";
static const char tiles_of_amx[] = "mr: 16 | 32 default 32\n"
                                   "nr: 32\n"
                                   "kc: 512 | 1024 | 2048 | 4096 default 1024\n"
                                   "mc: 128 | 256 | 512 | 1024 default 512\n"
                                   "threads: 1..64 *2\n"
                                   "where threads <= device.threads\n";
static const char tiles_of_16_registers[] = "mr: 4 | 6 default 6\n"
                                            "nr: 16 | 24 default 16\n"
                                            "kc: 256 | 512 | 1024 default 512\n"
                                            "mc: 60 | 120 | 240 default 120\n"
                                            "threads: 1..64 *2\n"
                                            "where mr * nr <= 96 and (mr == 6 or nr == 24)\n"
                                            "where threads <= device.threads\n";
static const char threads_alone[] = HONE_THREADS_SPACE;

// Columns of b that are packed together: with kc rows they fit into the second-level cache.
enum { NEAR_COLUMNS = 512, COLUMNS = 4096 };
// Rows from which on packed operands are faster than b in place: AMX is 1.2 to 1.3 times as fast at 12 and 2.2 to 2.6
// at 32, VNNI 1.0 to 1.4 times at 16 and 1.3 to 2.0 at 32, AVX-512 alone 1.0 to 1.1 and 1.1 to 1.3 (Xeon, Sapphire
// Rapids).
enum { TILES_FROM = 10, BLOCKED_FROM = 14 };

static const hone_blocked blocked_amx = {
    .form = &hone_scaled_matmul_form,
    .set = &hone_scaled_gemm_amx_int8,
    .tiles = true,
    .mr = 32,
    .nr = 32,
    .kc = 1024,
    .mc = 512,
    .columns = NEAR_COLUMNS};
static const hone_blocked blocked_vnni = {
    .form = &hone_scaled_matmul_form,
    .set = &hone_scaled_gemm_avx512_vnni,
    .mr = 9,
    .nr = 48,
    .kc = 1024,
    .mc = 224,
    .columns = COLUMNS};
static const hone_blocked blocked_avx512 = {
    .form = &hone_scaled_matmul_form,
    .set = &hone_scaled_gemm_avx512,
    .mr = 9,
    .nr = 48,
    .kc = 1024,
    .mc = 224,
    .columns = COLUMNS};
static const hone_blocked blocked_avx2 = {
    .form = &hone_scaled_matmul_form,
    .set = &hone_scaled_gemm_avx2,
    .mr = 6,
    .nr = 16,
    .kc = 512,
    .mc = 120,
    .columns = COLUMNS};
static const hone_decoding decoding_vnni = {
    .form = &hone_scaled_matmul_form,
    .set = &hone_scaled_decode_avx512_vnni,
    .tiles = &blocked_amx,
    .tiles_from = TILES_FROM,
    .blocked_from = BLOCKED_FROM};
static const hone_decoding decoding_avx512 = {
    .form = &hone_scaled_matmul_form,
    .set = &hone_scaled_decode_avx512,
    .tiles = &blocked_amx,
    .tiles_from = TILES_FROM,
    .blocked_from = BLOCKED_FROM};
static const hone_decoding decoding_avx2 = {.form = &hone_scaled_matmul_form, .set = &hone_scaled_decode_avx2};

static bool choose_threads(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    const hone_matmul product = hone_scaled_matmul_form.of_call(call);
    out_config->count = 1;
    out_config->values[0] = hone_matmul_threads(&product, device);
    return true;
}

#define ON_GPU HONE_KERNEL, .algorithm = "scaled_matmul", .platform = HONE_CUDA, .backend = HONE_GPU
#define NATIVE HONE_KERNEL, .algorithm = "scaled_matmul", .platform = HONE_NATIVE, .backend = HONE_CPU
static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512_vnni_decode", .priority = 46, .needs = AVX512 | HONE_CPU_AVX512_VNNI,
     .space = hone_decoding_space, .user = (void *)&decoding_vnni, HONE_DECODING_KERNEL},
    {NATIVE, .name = "avx512_decode", .priority = 44, .needs = AVX512, .space = hone_decoding_space,
     .user = (void *)&decoding_avx512, HONE_DECODING_KERNEL},
    {NATIVE, .name = "amx_int8", .priority = 38, .needs = AVX512 | HONE_CPU_AVX512_VNNI | HONE_CPU_AMX_INT8,
     .space = tiles_of_amx, .user = (void *)&blocked_amx, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512_vnni", .priority = 36, .needs = AVX512 | HONE_CPU_AVX512_VNNI,
     .space = tiles_of_32_registers, .user = (void *)&blocked_vnni, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx512", .priority = 34, .needs = AVX512, .space = tiles_of_32_registers,
     .user = (void *)&blocked_avx512, HONE_BLOCKED_KERNEL},
    {NATIVE, .name = "avx2_decode", .priority = 24, .needs = AVX2, .space = hone_decoding_space,
     .user = (void *)&decoding_avx2, HONE_DECODING_KERNEL},
    {NATIVE, .name = "avx2", .priority = 22, .needs = AVX2, .space = tiles_of_16_registers,
     .user = (void *)&blocked_avx2, HONE_BLOCKED_KERNEL},
    // Without VNNI oneDNN adds pairs of products in 16 bits, which saturates (its "Nuances of int8 Computations").
    {NATIVE, .name = "onednn3", .priority = 19, .needs = AVX512 | HONE_CPU_AVX512_VNNI, .space = threads_alone,
     .user = (void *)&hone_rival_onednn3, .supports = hone_scaled_onednn3_supports, .heuristic = choose_threads,
     .prepare = hone_scaled_onednn3_prepare, .release = hone_rival_kernel_release, .run = hone_scaled_onednn3_run,
     .find_library = hone_rival_kernel_find_library},
    {NATIVE, .name = "portable", .priority = 10, .space = threads_alone, .heuristic = choose_threads,
     .run = hone_scaled_matmul_portable},
    {ON_GPU, .name = "cublaslt", .library = HONE_CUBLASLT_SONAME, .priority = 70,
     .signature = hone_scaled_cublaslt_signature, .space = hone_cublaslt_space,
     .user = (void *)&hone_scaled_matmul_form, .supports = hone_scaled_cublaslt_supports,
     .prepare = hone_cublaslt_prepare, .release = hone_cublaslt_release, .run = hone_cublaslt_run,
     .digest = hone_cublaslt_digest, .find_library = hone_cublaslt_find},
    {ON_GPU, .name = "cuda_wgmma", .priority = 61, .signature = hone_scaled_tensor_core_signature,
     .space = hone_scaled_wgmma_space, .heuristic = hone_wgmma_heuristic, .code = &hone_scaled_wgmma_code},
    {ON_GPU, .name = "cuda_wgmma_f8", .priority = 61, .signature = hone_scaled_wgmma_f8_signature,
     .space = hone_scaled_wgmma_f8_space, .heuristic = hone_wgmma_heuristic, .code = &hone_scaled_wgmma_f8_code},
    {ON_GPU, .name = "cuda_tensor_core", .priority = 60, .signature = hone_scaled_tensor_core_signature,
     .space = hone_scaled_tensor_core_space, .heuristic = hone_tensor_core_heuristic,
     .code = &hone_scaled_tensor_core_code},
    {ON_GPU, .name = "cuda_tensor_core_f8", .priority = 60, .signature = hone_scaled_tensor_core_f8_signature,
     .space = hone_scaled_tensor_core_space, .heuristic = hone_tensor_core_heuristic,
     .code = &hone_scaled_tensor_core_f8_code},
    {ON_GPU, .name = "cuda_simt", .priority = 50, .space = hone_scaled_simt_space, .code = &hone_scaled_simt_code},
    {NATIVE, .name = "reference", .is_reference = true, .run = hone_scaled_matmul_reference},
};

const hone_kernel_table hone_scaled_matmul_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
