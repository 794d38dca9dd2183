// The table of all platforms. A new platform is a folder beside null/ and a line of the table.
#include "platforms/cuda/cuda.h"
#include "platforms/cute/cute.h"
#include "platforms/ffi/ffi.h"
#include "platforms/native/native.h"
#include "platforms/null/null.h"
#include "platforms/opencl/opencl.h"
#include "platforms/platform.h"
#include "platforms/python/python.h"
#include "platforms/tilelang/tilelang.h"
#include "platforms/triton/triton.h"
#include "platforms/xla/xla.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/structs.h"
#include "hone/describe.h"
#include "registry/names.h"
#include "space/term.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

const hone_platform_ops *const hone_platforms[HONE_PLATFORM_COUNT] = {
    [HONE_NATIVE] = &hone_native_platform, // C, and functions of this process
    [HONE_OPENCL] = &hone_opencl_platform,     [HONE_CUDA] = &hone_cuda_platform,
    [HONE_TRITON] = &hone_triton_platform,     // over CUDA's driver
    [HONE_CUTE] = &hone_cute_platform,         // over CUDA's driver
    [HONE_TILELANG] = &hone_tilelang_platform, // C that TileLang writes, on the CPU
    [HONE_XLA] = &hone_xla_platform,           // modules of StableHLO
    [HONE_PALLAS] = &hone_pallas_platform,
    [HONE_NULL] = &hone_null_platform, // the skeleton
    [HONE_FFI] = &hone_ffi_platform,   // libraries for tvm-ffi
    [HONE_PYTHON] = &hone_python_platform,
};

static hone_pack_gpu first_gpu(void);

const hone_pack_platforms hone_platform_packs = {hone_platform_facts_of, hone_platform_check, first_gpu};

const hone_platform_ops *hone_platform_ops_of(hone_platform platform)
{
    return (unsigned)platform < HONE_PLATFORM_COUNT ? hone_platforms[platform] : NULL;
}

// Finds the GPU for which packs are read. Opens the driver for this query, since a pack may be read before the
// platforms are opened.
static hone_pack_gpu first_gpu(void)
{
    const hone_allocator system = hone_allocator_system();
    hone_platform_instance *cuda = NULL;
    hone_pack_gpu gpu = {.cuda = 0};
    hone_error unused;
    size_t count = 0;
    int major = 0, minor = 0;
    if (hone_cuda_platform.open(&system, NULL, &cuda, &unused) != HONE_OK) return gpu;
    const hone_device_info *devices = hone_cuda_platform.devices(cuda, &count);
    if (count > 0) {
        const char *at = devices->driver != NULL ? strstr(devices->driver, "CUDA ") : NULL;
        const bool is_known = at != NULL && sscanf(at, "CUDA %d.%d", &major, &minor) >= 1;
        gpu = (hone_pack_gpu){is_known ? major * 100 + minor : INT_MAX, devices->capability};
    }
    hone_cuda_platform.close(&cuda);
    return gpu;
}

// Facts ---------------------------------------------------------------------------------------------------------------

const hone_platform_facts *hone_platform_facts_of(hone_platform platform)
{
    const hone_platform_ops *ops = hone_platform_ops_of(platform);
    return ops != NULL ? &ops->facts : NULL;
}

hone_platform hone_platform_home(hone_platform platform)
{
    const hone_platform_facts *facts = hone_platform_facts_of(platform);
    return facts != NULL && facts->home != HONE_PLATFORM_NONE ? facts->home : platform;
}

bool hone_platform_has_regime(hone_platform platform, hone_regime regime)
{
    const hone_platform_ops *ops = hone_platform_ops_of(hone_platform_home(platform));
    regime = hone_regime_with(regime, false);
    if (regime == HONE_WARM || regime == HONE_COLD) return true;
    if (ops == NULL) return false;
    return regime == HONE_EAGER ? ops->synchronize != NULL : ops->is_capturing != NULL && ops->time != NULL;
}

hone_platform hone_platform_host(void)
{
    hone_platform host = HONE_PLATFORM_NONE + 1;
    while (!hone_platforms[host]->facts.is_host)
        host++;
    return host;
}

const char *hone_platform_name(hone_platform platform)
{
    if (platform == HONE_PLATFORM_AUTO) return "auto";
    if (platform == HONE_PLATFORM_NONE) return "none";
    const hone_platform_facts *facts = hone_platform_facts_of(platform);
    return facts != NULL ? facts->name : "unknown platform";
}

hone_status hone_platform_parse(const char *name, hone_platform *out, hone_error *err)
{
    return hone_platform_by_name(hone_platform_facts_of, name, out, err);
}

// Kernels -------------------------------------------------------------------------------------------------------------

hone_run_function *hone_platform_run_of(const hone_kernel *kernel)
{
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    return kernel->run != NULL || ops == NULL ? kernel->run : ops->run;
}

hone_status hone_platform_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    if (ops != NULL && ops->check != NULL) return ops->check(kernel, variant, err);
    return hone_fail(
        err, HONE_UNSUPPORTED, "platforms.check", "platform %s takes no packs in this version of hone",
        hone_platform_name(kernel->platform));
}

// A variant's condition may read its config, so it is checked only once there is a config.
static hone_status check_variant(const hone_plan *plan, hone_error *err)
{
    static const char where[] = "platforms.prepare";
    const hone_pack_kernel *kernel = plan->kernel->code->pack;
    const hone_pack_variant *variant = hone_pack_variant_of(kernel, plan->config);
    const hone_term_scope scope = {
        .space = kernel->space, .config = plan->config, .call = plan->call, .device = plan->device};
    hone_scalar holds;
    if (kernel->refusal != NULL) return hone_fail(err, kernel->status, where, "%s", kernel->refusal);
    if (variant == NULL)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "pack %s has no code of kernel %s for this config", kernel->pack,
            kernel->name);
    if (variant->code.condition == NULL) return HONE_OK;
    hone_status status = hone_term_of(hone_allocator_system(), variant->code.condition, &scope, &holds, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "condition");
    if (hone_scalar_truth(&holds)) return HONE_OK;
    return hone_fail(err, HONE_UNSUPPORTED, where, "asks for %s", variant->code.condition);
}

static bool serves(const hone_platform_instance *instance, const hone_platform_ops *ops)
{
    return ops != NULL && (instance != NULL || ops->stands_alone);
}

hone_status hone_platform_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    hone_assert(kernel != NULL && plan->config != NULL);
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code != NULL && kernel->code->pack != NULL) {
        hone_status status = check_variant(plan, err);
        if (status != HONE_OK) return status;
    }
    if (serves(instance, ops) && ops->prepare != NULL)
        return ops->prepare(instance, plan, out_state, out_scratch_bytes, err);
    return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
}

void hone_platform_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    if (state == NULL) return;
    if (serves(instance, ops) && ops->release != NULL)
        ops->release(instance, kernel, state);
    else if (kernel->release != NULL)
        kernel->release(kernel, state);
}

uint64_t hone_platform_digest(const hone_plan *plan)
{
    const hone_kernel *kernel = plan->kernel;
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    if (kernel->digest != NULL) return kernel->digest(plan);
    return kernel->code != NULL && ops != NULL && ops->digest != NULL ? ops->digest(plan) : 0;
}

// The message of the kernel that failed last on this thread.
static _Thread_local struct {
    const hone_kernel *kernel; // NULL: nothing was said
    hone_status status;
    char words[256];
} said;

hone_status hone_platform_say(const hone_plan *plan, hone_status status, const char *words)
{
    if (status == HONE_OK || words == NULL) return status;
    said.kernel = plan->kernel;
    said.status = status;
    snprintf(said.words, sizeof said.words, "%s", words);
    return status;
}

void hone_platform_run_words(
    hone_platform_instance *instance, const hone_kernel *kernel, hone_status status, hone_error *out)
{
    if (said.kernel == kernel && said.status == status) {
        hone_fail(out, status, "platforms.run", "%s", said.words);
        said.kernel = NULL; // the message must not be used for the next failure
        return;
    }
    const hone_platform_ops *ops = hone_platform_ops_of(hone_platform_home(kernel->platform));
    if (ops != NULL && instance != NULL && ops->last_failure != NULL && ops->last_failure(instance, out)) return;
    hone_fail(out, status, "platforms.run", "run answered '%s'", hone_status_name(status));
}

hone_status hone_platform_traits_sized(hone_platform platform, hone_platform_traits *out, size_t size, hone_error *err)
{
    const hone_platform_ops *ops = hone_platform_ops_of(platform);
    if (ops == NULL || out == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "platform.traits", "there is no platform %d, or out is NULL", (int)platform);
    const hone_platform_traits traits = {
        .is_by_name_only = ops->facts.is_by_name_only,
        .is_interpreted = ops->facts.is_interpreted,
        .exports = ops->exports,
        .describes = ops->describes,
    };
    hone_struct_give(out, size, &traits, sizeof traits);
    return HONE_OK;
}
