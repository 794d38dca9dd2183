// stencil: its signature, its kernels, and their cost model and heuristics.
#include "kernels/stencil/stencil.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "tile_z: 1 | 4 | 16 | 64 default 16\n"
                            "tile_y: 4..64 *2 default 16\n"
                            "tile_x: 128 | 512 | 2048\n"
                            "rows: 1 | 2 | 4 default 2\n"
                            "unroll: 1 | 2 | 4\n"
                            "order: planes | columns\n"
                            "store: cached | streamed\n"
                            "prefetch: 0 | 1 | 2\n" HONE_THREADS_SPACE "\n"
                            "where tile_z == 1 or tile_z < 4 * depth\n"
                            "where tile_y == 4 or tile_y < 2 * height\n"
                            "where tile_x == 128 or tile_x < 4 * width";

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    return hone_last_axis_is_dense(call, STENCIL_X, why) && hone_last_axis_is_dense(call, STENCIL_Y, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double points = (double)hone_tensor_elements(hone_call_tensor(call, STENCIL_X));
    out_cost->bytes = 2 * 4 * points;
    out_cost->operations = (2 * STENCIL_POINTS - 1) * points;
}

// The largest tile of a list of which a dim fills more than a quarter, or half; the first if no tile qualifies.
static int64_t tile_for(int64_t tile, int64_t least, int64_t step, int64_t size)
{
    while (tile > least && tile >= step * size)
        tile /= step;
    return tile;
}

static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t bytes = hone_tensor_elements(hone_call_tensor(call, STENCIL_X)) * 4;
    int64_t *values = out_config->values;
    out_config->count = 9;
    values[STENCIL_TILE_Z] = tile_for(16, 1, 4, hone_dim_of(call, "depth"));
    values[STENCIL_TILE_Y] = tile_for(16, 4, 2, hone_dim_of(call, "height"));
    values[STENCIL_TILE_X] = tile_for(2048, 128, 4, hone_dim_of(call, "width"));
    values[STENCIL_ROWS] = 2;
    values[STENCIL_UNROLL] = 1;
    values[STENCIL_ORDER] = STENCIL_BY_PLANES;
    values[STENCIL_STORE] = hone_exceeds_cache(device, bytes);
    values[STENCIL_PREFETCH] = 0;
    values[STENCIL_THREADS] = hone_threads_for(device, bytes >> 17);
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = "stencil(x: f32[depth, height, width], weights: f32[7]) -> y: f32[depth, height, width]",
    .reference = hone_stencil_reference,
    .tolerance = {.relative = 1e-5, .scale = 16},
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN,
    .model = model,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "stencil", .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space,                 \
                 .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_stencil_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_stencil_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_stencil_portable},
    {HONE_KERNEL, .algorithm = "stencil", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_stencil_reference},
};

const hone_kernel_table hone_stencil_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
