// The kernels of the product of a few rows: convert a table's row into a run of decode.h.
#include "kernels/matmul/kernels.h"

#include "base/error.h"
#include "kernels/vector/arguments.h"
#include "os/tiles.h"

// Rows of b that are read together, the prefetch distance in bytes, and whether threads divide k instead of the columns
// of c.
const char hone_decoding_space[] = "streams: 1 | 4 | 8 | 16 | 32 default 8\n"
                                   "ahead: 0 | 512 | 1024 | 2048 default 1024\n"
                                   "split_k: 0 | 1\n"
                                   "threads: 1..64 *2\n"
                                   "where not transpose_b or (streams <= 8 and split_k == 0)\n"
                                   "where transpose_b or streams >= 4\n"
                                   "where split_k == 0 or threads > 1\n"
                                   "where threads <= device.threads\n";

enum { MOST_ROWS = 32 }; // with more rows the blocked product is much faster

static hone_decode_shape shape_of(const int64_t *config)
{
    return (hone_decode_shape){
        .streams = (int32_t)config[DECODING_STREAMS],
        .ahead_bytes = (int32_t)config[DECODING_AHEAD],
        .threads = (int32_t)config[DECODING_THREADS],
        .split_k = config[DECODING_SPLIT_K] != 0,
    };
}

static const hone_decode_set *set_of(const hone_decoding *decoding, const hone_matmul *product)
{
    return product->dtype == HONE_F64 ? decoding->f64 : decoding->set;
}

bool hone_decoding_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_decoding *decoding = kernel->user;
    if (!decoding->form->is_plain(call, why)) return false;
    const hone_matmul product = decoding->form->of_call(call);
    if (product.m > MOST_ROWS) {
        hone_fail(
            why, HONE_UNSUPPORTED, kernel->algorithm, "m is %lld; this kernel is for at most %d rows",
            (long long)product.m, MOST_ROWS);
        return false;
    }
    if (!decoding->bf16_only || product.dtype == HONE_BF16) return true;
    hone_fail(why, HONE_UNSUPPORTED, "matmul", "this kernel multiplies pairs of bf16");
    return false;
}

bool hone_decoding_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_decoding *decoding = kernel->user;
    hone_matmul product = decoding->form->of_call(call);
    int64_t threads = hone_matmul_threads(&product, device);
    out_config->count = DECODING_PARAMETERS;
    // If b is read in rows, the processor prefetches by itself, and more rows at a time are summed in registers (Xeon,
    // Sapphire Rapids: 1.1 to 1.4 times as fast as 16 rows, 1024 bytes and divided columns).
    const int64_t rows = product.m > 8 ? 32 : product.m > 4 ? 16 : 8, columns = product.m > 4 ? 4 : 8;
    out_config->values[DECODING_STREAMS] = product.transpose_b ? columns : rows;
    out_config->values[DECODING_AHEAD] = product.transpose_b ? 1024 : 0;
    const bool splits = decoding->split_until == 0 || product.m <= decoding->split_until;
    out_config->values[DECODING_SPLIT_K] = !product.transpose_b && threads > 1 && splits;
    out_config->values[DECODING_THREADS] = threads;
    return true;
}

bool hone_decoding_yields(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device)
{
    const hone_decoding *decoding = kernel->user;
    const hone_matmul product = decoding->form->of_call(call);
    if (decoding->blocked_from > 0 && product.m >= decoding->blocked_from) return true;
    if (decoding->slow_on != NULL && product.m >= decoding->slow_from && hone_is_processor(device, decoding->slow_on) &&
        (decoding->bf16_only || hone_blocked_reads_in_place(&product, NULL)))
        return true;
    if (decoding->tiles == NULL) return false;
    const uint64_t needs = product.operands == HONE_BF16 ? HONE_CPU_AMX_BF16
                           : product.operands == HONE_I8 ? HONE_CPU_AMX_INT8
                                                         : 0;
    return product.m >= decoding->tiles_from && (device->features & needs) != 0 &&
           hone_blocked_has_tiles(decoding->tiles);
}

hone_status hone_decoding_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)err;
    const hone_decoding *decoding = plan->kernel->user;
    hone_decode_shape shape = shape_of(plan->config);
    hone_matmul product = decoding->form->of_call(plan->call);
    *out_state = NULL;
    *out_scratch_bytes = hone_decode_scratch(set_of(decoding, &product), &shape, &product);
    return HONE_OK;
}

hone_status hone_decoding_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_decoding *decoding = plan->kernel->user;
    hone_decode_shape shape = shape_of(plan->config);
    hone_matmul product = decoding->form->of(plan, args);
    return hone_decode_run(set_of(decoding, &product), &shape, &product, plan, execution);
}
