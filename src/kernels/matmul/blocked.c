// The kernels of the blocked product: convert a table's row into a run of gemm.h.
#include "kernels/matmul/kernels.h"

#include "base/error.h"
#include "kernels/common/half.h"
#include "kernels/vector/arguments.h"
#include "os/tiles.h"

#include <string.h>

static const hone_gemm_set *set_of(const hone_blocked *kernel, const hone_matmul *product)
{
    return product->dtype == HONE_F64 ? kernel->f64 : kernel->set;
}

// A tile of f64 has half as many columns, whose sums fill as many registers.
static hone_gemm_blocking blocking_of(const hone_blocked *kernel, const hone_matmul *product, const int64_t *config)
{
    return (hone_gemm_blocking){
        .mr = (int32_t)config[BLOCKED_MR],
        .nr = (int32_t)(product->dtype == HONE_F64 ? config[BLOCKED_NR] / 2 : config[BLOCKED_NR]),
        .mc = config[BLOCKED_MC],
        .nc = kernel->columns,
        .kc = config[BLOCKED_KC],
        .pack_a = !kernel->a_in_place,
        .pack_b = !kernel->b_in_place,
        .threads = (int32_t)config[BLOCKED_THREADS],
    };
}

// Whether rows of a can be read in place: their elements are the kernel's words, or halves of them.
static bool reads_a_in_place(const hone_blocked *blocked, const hone_matmul *product, hone_error *why)
{
    if (blocked->bf16_only || product->dtype == HONE_F32 || product->dtype == HONE_F64) return true;
    hone_fail(why, HONE_UNSUPPORTED, "matmul", "a is read as it lies: only f32 and f64 can be");
    return false;
}

bool hone_blocked_reads_in_place(const hone_matmul *product, hone_error *why)
{
    if ((product->dtype == HONE_F32 || product->dtype == HONE_F64) && !product->transpose_b) return true;
    hone_fail(why, HONE_UNSUPPORTED, "matmul", "b is read as it lies: only f32 and f64 in [k, n] can be");
    return false;
}

bool hone_blocked_has_tiles(const hone_blocked *blocked)
{
    return blocked->set->tile != NULL && hone_os_lend_tiles();
}

static bool has_tiles(const hone_kernel *kernel, const hone_blocked *blocked, hone_error *why)
{
    if (hone_blocked_has_tiles(blocked)) return true;
    if (blocked->set->tile == NULL) {
        hone_fail(why, HONE_UNSUPPORTED, kernel->algorithm, "hone was built by a compiler without AMX");
        return false;
    }
    hone_fail(
        why, HONE_UNSUPPORTED, kernel->algorithm,
        "the system does not let this process use the tiles of AMX; a thread's alternate signal stack may be too small "
        "for them (expected at least sysconf(_SC_MINSIGSTKSZ) bytes)");
    return false;
}

bool hone_blocked_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_blocked *blocked = kernel->user;
    if (!blocked->form->is_plain(call, why)) return false;
    const hone_matmul product = blocked->form->of_call(call);
    if (blocked->b_in_place && !hone_blocked_reads_in_place(&product, why)) return false;
    if (blocked->a_in_place && !reads_a_in_place(blocked, &product, why)) return false;
    if (blocked->bf16_only && product.dtype != HONE_BF16) {
        hone_fail(why, HONE_UNSUPPORTED, "matmul", "this kernel multiplies pairs of bf16");
        return false;
    }
    return !blocked->tiles || has_tiles(kernel, blocked, why);
}

// Whether padding to the wide tile adds so many more columns than padding to the narrow one that the wide tile is
// slower: 1.19 to 1.25 times as slow with 24 columns for n = 16 and 32, and no slower from 64 on (docs/benchmarks.md).
static bool is_narrow(const hone_blocked *blocked, const hone_matmul *product)
{
    const int64_t part = product->dtype == HONE_F64 ? 2 : 1;
    const int64_t wide = blocked->nr / part, narrow = blocked->narrow_nr / part;
    if (narrow == 0) return false;
    return 20 * hone_gemm_round_up(product->n, wide) > 23 * hone_gemm_round_up(product->n, narrow);
}

// Whether padding to tiles of one kind adds so many more rows than padding to the other that it is slower: 8 rows
// become 12 in tiles of 6, which takes 1.1 to 1.3 times as long as tiles of 9 (docs/benchmarks.md). If b takes more
// than half of the last cache, the memory's speed decides, and wide tiles read it faster: there tiles of 9 rows take
// 1.3 to 1.4 times as long.
static bool is_low(const hone_blocked *blocked, const hone_matmul *product, const hone_device_info *device)
{
    const int64_t size = product->dtype == HONE_F64 ? 8 : 4, part = size / 4;
    if (blocked->low_mr == 0 || device == NULL || 2 * product->k * product->n * size > device->l3_bytes) return false;
    return 20 * hone_gemm_round_up(product->m, blocked->mr) * hone_gemm_round_up(product->n, blocked->nr / part) >
           23 * hone_gemm_round_up(product->m, blocked->low_mr) *
               hone_gemm_round_up(product->n, blocked->low_nr / part);
}

// Chooses the tile that was fastest at most shapes.
bool hone_blocked_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_blocked *blocked = kernel->user;
    hone_matmul product = blocked->form->of_call(call);
    out_config->count = BLOCKED_PARAMETERS;
    const bool narrow = is_narrow(blocked, &product), low = is_low(blocked, &product, device);
    out_config->values[BLOCKED_MR] = narrow ? blocked->narrow_mr : low ? blocked->low_mr : blocked->mr;
    out_config->values[BLOCKED_NR] = narrow ? blocked->narrow_nr : low ? blocked->low_nr : blocked->nr;
    out_config->values[BLOCKED_KC] = blocked->kc;
    out_config->values[BLOCKED_MC] = blocked->mc;
    out_config->values[BLOCKED_THREADS] = hone_matmul_threads(&product, device);
    return true;
}

// Whether packing is slower than not packing. Xeon, Emerald Rapids: packing takes 1.07 to 1.7 times as long if b takes
// at most half of the second cache, and .54 of the time if it takes twice that cache (docs/benchmarks.md).
static bool packs_in_vain(const hone_matmul *product, const hone_device_info *device)
{
    const int64_t bytes = product->k * product->n * hone_element_size(product->dtype);
    return hone_is_processor(device, "GenuineIntel") && bytes <= device->l2_bytes / 2 &&
           hone_blocked_reads_in_place(product, NULL);
}

bool hone_blocked_yields(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device)
{
    const hone_blocked *blocked = kernel->user;
    const hone_matmul product = blocked->form->of_call(call);
    if (blocked->slow_in_place && packs_in_vain(&product, device)) return true;
    if (blocked->slow_on == NULL || !hone_is_processor(device, blocked->slow_on)) return false;
    if (!blocked->slow_in_place) return true;
    return blocked->a_in_place ? hone_blocked_reads_in_place(&product, NULL)
                               : reads_a_in_place(blocked, &product, NULL);
}

hone_status hone_blocked_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)err;
    const hone_blocked *blocked = plan->kernel->user;
    hone_matmul product = blocked->form->of_call(plan->call);
    hone_gemm_blocking blocking = blocking_of(blocked, &product, plan->config);
    *out_state = NULL;
    *out_scratch_bytes = hone_gemm_scratch(set_of(blocked, &product), &blocking, &product);
    return HONE_OK;
}

// Blocks larger than a small product are all equivalent, so many configs have the same digest.
uint64_t hone_blocked_digest(const hone_plan *plan)
{
    const hone_blocked *blocked = plan->kernel->user;
    hone_matmul product = blocked->form->of_call(plan->call);
    hone_gemm_blocking blocking = blocking_of(blocked, &product, plan->config);
    return hone_gemm_digest(set_of(blocked, &product), &blocking, &product);
}

hone_status hone_blocked_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_blocked *blocked = plan->kernel->user;
    hone_matmul product = blocked->form->of(plan, args);
    hone_gemm_blocking blocking = blocking_of(blocked, &product, plan->config);
    return hone_gemm_run(set_of(blocked, &product), &blocking, &product, plan, execution);
}
