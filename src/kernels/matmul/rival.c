// The libraries as kernels of matmul.
#include "base/error.h"
#include "kernels/matmul/kernels.h"
#include "kernels/rivals/rivals.h"
#include "os/os.h"

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

hone_status hone_rival_kernel_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_rival *rival = plan->kernel->user;
    hone_matmul product = hone_matmul_of_call(plan->call);
    int32_t threads = plan->kernel->space != NULL ? (int32_t)plan->config[0] : 1;
    *out_scratch_bytes = 0;
    return rival->create(rival, &product, threads, out_state, err);
}

void hone_rival_kernel_release(const hone_kernel *kernel, void *state)
{
    const hone_rival *rival = kernel->user;
    rival->destroy(state);
}

hone_status hone_rival_kernel_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_rival *rival = plan->kernel->user;
    hone_matmul product = hone_matmul_of(plan, args);
    return rival->run(plan->state, &product, execution != NULL ? execution->threads : 0);
}
