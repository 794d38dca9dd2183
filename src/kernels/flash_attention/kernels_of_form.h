// The kernels of an algorithm that is flash attention under some name: a table.c includes this after its form. The
// table.c defines ATTENTION_ALGORITHM, the algorithm's name, ATTENTION_SIGNATURE(DTYPES), its signature,
// ATTENTION_RANGED_CODE, the code of a GPU's kernel with its window and cap, and `form`, the positions of its
// arguments.
#include "kernels/common/cuda.h"
#include "kernels/flash_attention/flash_attention.h"
#include "kernels/rivals/rivals.h"

// algorithm->reference, which has no kernel from which to get the form.
static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_attention problem = hone_attention_of(plan, args, &form);
    return hone_attention_in_double(&problem, plan, execution);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    hone_attention_model(call, &form, out_cost);
}

static const hone_attention_choice tiles_avx512_bf16 = {.form = &form, .function = hone_attention_tiles_avx512_bf16};
static const hone_attention_choice tiles_avx512 = {.form = &form, .function = hone_attention_tiles_avx512};
static const hone_attention_choice tiles_avx2 = {.form = &form, .function = hone_attention_tiles_avx2};
static const hone_attention_choice tiles_portable = {.form = &form, .function = hone_attention_tiles_portable};
static const hone_attention_choice stream_avx512 = {.form = &form, .function = hone_attention_stream_avx512};
static const hone_attention_choice stream_avx2 = {.form = &form, .function = hone_attention_stream_avx2};
static const hone_attention_choice stream_portable = {.form = &form, .function = hone_attention_stream_portable};
static const hone_attention_choice composed_onednn = {.form = &form, .rival = &hone_rival_onednn};
static const hone_attention_choice composed_openblas = {.form = &form, .rival = &hone_rival_openblas};
static const hone_attention_choice composed_libxsmm = {
    .form = &form, .rival = &hone_rival_libxsmm, .transposes_key = true};
static const hone_attention_choice cuda = {.form = &form};

#define AVX512 (HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ)
#define AVX2   (HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C)
#define NATIVE HONE_KERNEL, .algorithm = ATTENTION_ALGORITHM, .platform = HONE_NATIVE, .backend = HONE_CPU
#define TILES  .supports = hone_tiles_supports, .heuristic = hone_tiles_heuristic, .run = hone_attention_run
#define TILES_OF_BF16                                                                                                  \
    .supports = hone_tiles_of_bf16_supports, .heuristic = hone_tiles_heuristic, .run = hone_attention_run,             \
    .yields = hone_tiles_of_bf16_yield
#define STREAM .supports = hone_stream_supports, .heuristic = hone_stream_heuristic, .run = hone_attention_run
#define COMPOSED                                                                                                       \
    .supports = hone_composed_supports, .heuristic = hone_composed_heuristic, .prepare = hone_composed_prepare,        \
    .release = hone_composed_release, .run = hone_composed_run

static const hone_kernel kernels[] = {
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "avx512_stream", .priority = 34, .needs = AVX512,
     .space = STREAM_SPACE, .user = (void *)&stream_avx512, STREAM},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "avx512_bf16", .priority = 33,
     .needs = AVX512 | HONE_CPU_AVX512_BF16, .space = TILES_SPACE, .user = (void *)&tiles_avx512_bf16, TILES_OF_BF16},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "avx512", .priority = 32, .needs = AVX512,
     .space = TILES_SPACE, .user = (void *)&tiles_avx512, TILES},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "avx2_stream", .priority = 24, .needs = AVX2,
     .space = STREAM_SPACE, .user = (void *)&stream_avx2, STREAM},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "avx2", .priority = 22, .needs = AVX2,
     .space = TILES_SPACE, .user = (void *)&tiles_avx2, TILES},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "onednn_composed", .library = HONE_ONEDNN_SONAME,
     .priority = 20, .space = COMPOSED_SPACE, .user = (void *)&composed_onednn, COMPOSED},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "openblas_composed",
     .library = HONE_OPENBLAS_SONAME, .priority = 18, .space = COMPOSED_SPACE, .user = (void *)&composed_openblas,
     COMPOSED},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "libxsmm_composed", .priority = 16,
     .space = COMPOSED_SPACE, .user = (void *)&composed_libxsmm, COMPOSED},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "portable_stream", .priority = 12,
     .space = STREAM_SPACE, .user = (void *)&stream_portable, STREAM},
    {NATIVE, .signature = ATTENTION_SIGNATURE(HONE_FLOATS), .name = "portable", .priority = 10, .space = TILES_SPACE,
     .user = (void *)&tiles_portable, TILES},
    {HONE_KERNEL, .algorithm = ATTENTION_ALGORITHM, .name = "cuda_tensor_core", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 50, .signature = ATTENTION_SIGNATURE("f16, bf16"),
     .space = hone_attention_cuda_space, .user = (void *)&cuda, .supports = hone_attention_cuda_supports,
     .heuristic = hone_attention_cuda_heuristic, .code = &hone_attention_cuda_code},
    {HONE_KERNEL, .algorithm = ATTENTION_ALGORITHM, .name = "cuda_tensor_core_ranged", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 48, .signature = ATTENTION_SIGNATURE("f16, bf16"),
     .space = hone_attention_cuda_space, .user = (void *)&cuda, .supports = hone_attention_cuda_ranged_supports,
     .heuristic = hone_attention_cuda_heuristic, .code = &ATTENTION_RANGED_CODE},
    {HONE_KERNEL, .algorithm = ATTENTION_ALGORITHM, .name = "cuda_wgmma", .platform = HONE_CUDA, .backend = HONE_GPU,
     .priority = 52, .signature = ATTENTION_SIGNATURE("f16, bf16"), .space = hone_attention_wgmma_space,
     .user = (void *)&cuda, .supports = hone_attention_cuda_supports, .heuristic = hone_attention_wgmma_heuristic,
     .code = &hone_attention_wgmma_code},
    {NATIVE, .name = "reference", .is_reference = true, .run = reference},
};
