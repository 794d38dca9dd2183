// The functions in the tables of the attention operations.
#include "kernels/flash_attention/flash_attention.h"
#include "kernels/vector/arguments.h"

static const hone_attention_choice *choice_of(const hone_kernel *kernel)
{
    return kernel->user;
}

hone_status hone_attention_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_attention_choice *choice = choice_of(plan->kernel);
    hone_attention problem = hone_attention_of(plan, args, choice->form);
    return choice->function(&problem, plan, execution);
}

bool hone_tiles_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    return hone_attention_supports(call, choice_of(kernel)->form, why);
}

bool hone_tiles_of_bf16_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    if (hone_attention_of_call(call, choice_of(kernel)->form).dtype == HONE_BF16)
        return hone_attention_supports(call, choice_of(kernel)->form, why);
    hone_fail(
        why, HONE_UNSUPPORTED, "kernels.attention", "the elements are not bf16; this kernel multiplies bf16 alone");
    return false;
}

bool hone_stream_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    if (!hone_attention_supports(call, choice_of(kernel)->form, why)) return false;
    hone_attention problem = hone_attention_of_call(call, choice_of(kernel)->form);
    int64_t rows = problem.q_len * problem.group;
    if (rows <= STREAM_MAX_ROWS) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, "kernels.attention", "q_len * heads / kv_heads is %lld; this kernel takes at most %d",
        (long long)rows, (int)STREAM_MAX_ROWS);
    return false;
}

static int64_t useful_threads(const hone_call *call, const hone_attention_form *form)
{
    hone_cost cost;
    hone_attention_model(call, form, &cost);
    double parts = cost.operations / 2e6 > cost.bytes / 2.5e5 ? cost.operations / 2e6 : cost.bytes / 2.5e5;
    return parts < 64 ? (int64_t)parts : 64;
}

// Tasks of four tiles keep the copies of K and V cheap, as long as there are two tasks for each thread.
bool hone_tiles_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_attention_form *form = choice_of(kernel)->form;
    hone_attention problem = hone_attention_of_call(call, form);
    int64_t rows = problem.q_len * problem.group, threads = hone_threads_for(device, useful_threads(call, form));
    int64_t tiles = 8;
    while (tiles > 1 && (rows <= tiles * 16 || problem.batch * problem.kv_heads * rows < 2 * threads * tiles * 32))
        tiles /= 2;
    out_config->count = 4;
    out_config->values[TILES_LANES] = rows <= 16 ? 1 : 2;
    out_config->values[TILES_TILES] = tiles;
    // A block that a mask cuts is computed completely: shorter blocks are 1.04 to 1.16 times as fast there (Xeon,
    // Sapphire Rapids, causal, 256 to 2048 keys), and as fast elsewhere.
    out_config->values[TILES_BLOCK_KV] = problem.causal || problem.has_window ? 32 : 64;
    out_config->values[TILES_THREADS] = threads;
    return true;
}

// On these processors an instruction that multiplies pairs takes as long as four that multiply floats.
bool hone_tiles_of_bf16_yield(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device)
{
    (void)kernel;
    (void)call;
    return hone_is_processor(device, "GenuineIntel");
}

// Keys are split only if the heads alone do not keep the threads busy.
bool hone_stream_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_attention_form *form = choice_of(kernel)->form;
    hone_attention problem = hone_attention_of_call(call, form);
    int64_t threads = hone_threads_for(device, useful_threads(call, form)), splits = 1;
    while (splits < threads && problem.batch * problem.kv_heads * splits < 2 * threads &&
           splits * 128 <= problem.kv_len)
        splits *= 2;
    out_config->count = 4;
    out_config->values[STREAM_BLOCK_KV] = 256;
    out_config->values[STREAM_SPLITS] = splits;
    out_config->values[STREAM_PREFETCH] = 8;
    out_config->values[STREAM_THREADS] = threads;
    return true;
}
