// One kernel of the registry: its space, whether it can run a call, and with which config.
#include "base/error.h"
#include "call/call.h"
#include "platforms/platform.h"
#include "runtime/api/api.h"

static const char where[] = "kernel.check";

const hone_space *hone_kernel_space(const hone_kernel_ref *kernel)
{
    return kernel != NULL ? kernel->space : NULL;
}

hone_status hone_kernel_default(
    const hone_kernel_ref *kernel,
    const hone_call *call,
    const hone_device_info *device,
    hone_config *out_config,
    hone_error *err)
{
    if (kernel == NULL || call == NULL || device == NULL || out_config == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "kernel.default", "the kernel, the call, the device and out must not be NULL");
    return hone_kernel_default_config(kernel, call, device, out_config, err);
}

// Whether the kernel may run on a device of this platform: that of its home, or of a host of its home.
static bool is_of(const hone_kernel *kernel, const hone_device_info *device)
{
    const hone_platform home = hone_platform_home(kernel->platform);
    if (device->platform == home) return true;
    for (const hone_platform *host = hone_platform_facts_of(home)->hosts; *host != HONE_PLATFORM_NONE; host++)
        if (*host == device->platform) return true;
    return false;
}

// For a call, the kernel itself reports whether its library is available.
static hone_status check_library(const hone_kernel *kernel, hone_error *err)
{
    char path[4096];
    const bool calls_one = kernel->library != NULL || kernel->find_library != NULL;
    if (!calls_one || hone_kernel_find_library(kernel, path, sizeof path)) return HONE_OK;
    if (kernel->library != NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "%s is not installed", kernel->library);
    return hone_fail(err, HONE_UNAVAILABLE, where, "the library that it calls is not installed");
}

static hone_status check_on(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, hone_error *err)
{
    hone_status status = hone_kernel_eligible(kernel, call, device, err);
    if (status == HONE_OK && call == NULL) status = check_library(&kernel->kernel, err);
    return status == HONE_OK ? hone_runtime_visit(kernel->owner, kernel, device, err) : status;
}

hone_status hone_kernel_check(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, hone_error *err)
{
    if (kernel == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the kernel is NULL");
    if (call != NULL && hone_call_check(call, kernel->algorithm->signature, where, err) != HONE_OK)
        return HONE_INVALID_ARGUMENT;
    const hone_pack_kernel *pack = kernel->kernel.code != NULL ? kernel->kernel.code->pack : NULL;
    const char *why = NULL;
    if (pack != NULL && pack->refusal != NULL) return hone_fail(err, pack->status, where, "%s", pack->refusal);
    if (device != NULL) return check_on(kernel, call, device, err);
    if (!hone_runtime_platform(kernel->owner, kernel->kernel.platform, &why))
        return hone_fail(err, HONE_UNAVAILABLE, where, "%s", why);
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(kernel->owner, &count);
    hone_error first = {.status = HONE_OK};
    for (size_t i = 0; i < count; i++) {
        hone_error other;
        if (!is_of(&kernel->kernel, devices[i])) continue;
        if (check_on(kernel, call, devices[i], first.status == HONE_OK ? &first : &other) == HONE_OK) return HONE_OK;
    }
    if (first.status != HONE_OK) return hone_fail(err, first.status, first.where, "%s", first.message);
    return hone_fail(err, HONE_UNAVAILABLE, where, "there is no device for it");
}
