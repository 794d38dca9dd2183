// The libraries as kernels of matmul.
#include "base/error.h"
#include "kernels/matmul/kernels.h"
#include "kernels/rivals/rivals.h"
#include "os/os.h"

#include <stdatomic.h>

bool hone_rival_kernel_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_rival *rival = kernel->user;
    hone_matmul product = hone_matmul_of_call(call);
    if (!hone_matmul_is_plain(call, why)) return false;
    if (rival->finishes || !hone_matmul_has_epilogue(&product)) return rival->supports(rival, &product, why);
    hone_fail(
        why, HONE_UNSUPPORTED, "matmul", "%s multiplies and no more: bias, activation and residual are not given to it",
        rival->name);
    return false;
}

bool hone_rival_kernel_find_library(const hone_kernel *kernel, char *path, size_t size)
{
    const hone_rival *rival = kernel->user;
    if (rival->find != NULL) return rival->find(rival, path, size);
    return kernel->library != NULL && hone_library_find(kernel->library, path, size);
}

bool hone_rival_kernel_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    hone_matmul product = hone_matmul_of_call(call);
    out_config->count = 1;
    out_config->values[0] = hone_matmul_threads(&product, device);
    return true;
}

static int32_t threads_of(const hone_plan *plan)
{
    return plan->kernel->space != NULL ? (int32_t)plan->config[0] : 1;
}

hone_status hone_rival_kernel_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_rival *rival = plan->kernel->user;
    hone_matmul product = hone_matmul_of_call(plan->call);
    *out_scratch_bytes = 0;
    return rival->create(rival, &product, threads_of(plan), out_state, err);
}

void hone_rival_kernel_release(const hone_kernel *kernel, void *state)
{
    const hone_rival *rival = kernel->user;
    rival->destroy(state);
}

// A run of a batch by a library that only multiplies two matrices.
typedef struct rival_batch {
    const hone_plan *plan;
    const hone_matmul *product;
    int32_t threads;   // of one product
    atomic_int status; // of a product that failed
} rival_batch;

static void run_one(void *ctx, int64_t index)
{
    rival_batch *all = ctx;
    const hone_rival *rival = all->plan->kernel->user;
    const hone_matmul one = hone_matmul_at(all->product, index);
    hone_status status = rival->run(all->plan->state, &one, all->threads);
    if (status != HONE_OK) atomic_store_explicit(&all->status, (int)status, memory_order_relaxed);
}

// If there is a product for every thread, each of hone's threads runs one; else the library's threads all work on one.
static hone_status run_batch(const hone_plan *plan, const hone_matmul *product, const hone_execution *execution)
{
    int32_t threads =
        plan->kernel->space != NULL ? threads_of(plan) : (int32_t)hone_matmul_threads(product, plan->device);
    if (execution != NULL && execution->threads > 0 && execution->threads < threads) threads = execution->threads;
    rival_batch all = {.plan = plan, .product = product, .threads = threads};
    atomic_init(&all.status, (int)HONE_OK);
    if (threads > 1 && product->batch >= threads) {
        all.threads = 1;
        hone_plan_parallel_for(plan, execution, threads, product->batch, run_one, &all);
    } else {
        for (int64_t i = 0; i < product->batch; i++)
            run_one(&all, i);
    }
    return (hone_status)atomic_load_explicit(&all.status, memory_order_relaxed);
}

hone_status hone_rival_kernel_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_rival *rival = plan->kernel->user;
    hone_matmul product = hone_matmul_of(plan, args);
    if (product.leading > 0 && !rival->batches) return run_batch(plan, &product, execution);
    return rival->run(plan->state, &product, execution != NULL ? execution->threads : 0);
}
