// Whether a kernel can run one call on one device, and with which config when nobody measured.
#include "registry/tables.h"

#include "base/error.h"
#include "os/os.h"
#include "registry/names.h"

#include <string.h>

static const char where[] = "registry.eligible";

// On the devices of its home, or of those that its home visits.
static bool runs_on(const hone_registry *registry, hone_platform platform, hone_platform of_device)
{
    const hone_platform_facts *facts = registry->platforms(platform);
    if (facts != NULL && facts->home != HONE_PLATFORM_NONE) facts = registry->platforms(facts->home);
    if (facts == NULL) return false;
    if (facts->hosts[0] == HONE_PLATFORM_NONE) return facts->platform == of_device;
    for (const hone_platform *host = facts->hosts; *host != HONE_PLATFORM_NONE; host++)
        if (*host == of_device) return true;
    return false;
}

static hone_status check_hardware(const hone_kernel_ref *ref, const hone_device_info *device, hone_error *err)
{
    const hone_kernel *kernel = &ref->kernel;
    if (ref->registry->left_out >> kernel->platform & 1)
        return hone_fail(
            err, HONE_UNAVAILABLE, where, "is a kernel of platform %s, which HONE_PLATFORMS does not name",
            hone_registry_platform_name(ref->registry, kernel->platform));
    if (!runs_on(ref->registry, kernel->platform, device->platform))
        return hone_fail(
            err, HONE_UNAVAILABLE, where, "is a kernel of platform %s, the device is one of %s",
            hone_registry_platform_name(ref->registry, kernel->platform),
            hone_registry_platform_name(ref->registry, device->platform));
    if (kernel->backend == HONE_TPU && device->backend != HONE_TPU)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "is for a TPU, and hone finds none here: its module is kept and checked, and needs a machine with a TPU "
            "and "
            "PyPI's libtpu to run");
    if (kernel->backend != HONE_ANY && kernel->backend != device->backend)
        return hone_fail(
            err, HONE_UNAVAILABLE, where, "is for backend %s, the device is a %s", hone_backend_name(kernel->backend),
            hone_backend_name(device->backend));
    uint64_t missing = kernel->needs & ~device->features;
    if (missing != 0) {
        char names[256];
        hone_cpu_features_text(missing, ", ", names, sizeof names);
        return hone_fail(err, HONE_UNAVAILABLE, where, "needs %s, which %s does not have", names, device->name);
    }
    return HONE_OK;
}

// Memory that a device can read: its own, and for the CPU also the pinned memory of the host.
static bool reads(hone_device device, hone_device tensor)
{
    if (device.type == HONE_DEVICE_CPU && tensor.type == HONE_DEVICE_CUDA_HOST) return true;
    return device.type == tensor.type && device.id == tensor.id;
}

static hone_status check_tensors(const hone_call *call, const hone_device_info *device, hone_error *err)
{
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL && !reads(device->device, tensor->device))
            return hone_fail(
                err, HONE_UNSUPPORTED, where, "%s lies on device %d:%d (DLPack), the kernel runs on %d:%d",
                hone_signature_parameter(signature, i)->name, (int)tensor->device.type, (int)tensor->device.id,
                (int)device->device.type, (int)device->device.id);
    }
    return HONE_OK;
}

// Floats by their bits, as in the call key: a NaN is itself.
static bool same_value(const hone_value *a, const hone_value *b)
{
    if (a->tag != b->tag) return false;
    if (a->tag == HONE_VALUE_STRING) return strcmp(a->as.string, b->as.string) == 0;
    return a->tag == HONE_VALUE_NONE || a->as.i64 == b->as.i64;
}

// Left at its default a parameter asks nothing of the kernel; that of a nullable one is none, where no other is said.
static bool is_default(const hone_call *call, size_t i)
{
    return hone_signature_parameter(hone_call_signature(call), i)->has_default &&
           same_value(&hone_call_values(call)[i], &hone_call_defaults(call)[i]);
}

// All unsupported parameters at once, in the order of the signature.
static hone_status check_unsupported(const hone_kernel_ref *ref, const hone_call *call, hone_error *err)
{
    const hone_signature *signature = hone_call_signature(call);
    char names[512];
    size_t used = 0;
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if ((ref->unsupported >> i & 1) == 0 || is_default(call, i)) continue;
        const char *between = used > 0 ? ", " : "";
        size_t size = strlen(between) + strlen(parameter->name);
        if (used + size >= sizeof names) break;
        memcpy(names + used, between, strlen(between));
        memcpy(names + used + strlen(between), parameter->name, strlen(parameter->name));
        used += size;
    }
    if (used == 0) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%.*s: not supported by this kernel, leave it at its default", (int)used, names);
}

// The call's values put to the kernel's own signature: its dtypes, ranks and sizes may be fewer.
static hone_status check_own_signature(const hone_kernel_ref *ref, const hone_call *call, hone_error *err)
{
    const hone_signature *whole = hone_call_signature(call);
    const hone_value *given = hone_call_values(call);
    hone_value values[HONE_MAX_VALUES];
    size_t count = hone_signature_count(ref->signature);
    for (size_t i = 0; i < count; i++) {
        int index = hone_signature_find(whole, hone_signature_parameter(ref->signature, i)->name);
        values[i] = index < 0 ? hone_of_none() : given[index];
    }
    hone_error why = {0};
    hone_call *bound = NULL;
    hone_status status = hone_call_bind(ref->registry->allocator, ref->signature, values, count, true, &bound, &why);
    hone_call_release(&bound);
    if (status == HONE_OK) return HONE_OK;
    if (status != HONE_INVALID_ARGUMENT) return hone_fail(err, status, where, "%s", why.message);
    return hone_fail(err, HONE_UNSUPPORTED, where, "its signature: %s", why.message);
}

static hone_status ask_kernel(const hone_kernel *kernel, const hone_call *call, hone_error *err)
{
    if (kernel->supports == NULL) return HONE_OK;
    hone_error why = {0};
    if (kernel->supports(kernel, call, &why)) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s",
        why.message[0] != '\0' ? why.message : "refuses the call and says no reason");
}

hone_status hone_kernel_eligible(
    const hone_kernel_ref *ref, const hone_call *call, const hone_device_info *device, hone_error *err)
{
    hone_status status = device == NULL ? HONE_OK : check_hardware(ref, device, err);
    if (status != HONE_OK || call == NULL) return status;
    if (device != NULL) status = check_tensors(call, device, err);
    if (status == HONE_OK && ref->unsupported != 0) status = check_unsupported(ref, call, err);
    if (status == HONE_OK && ref->signature != ref->algorithm->signature) status = check_own_signature(ref, call, err);
    if (status == HONE_OK) status = hone_registry_check_code(ref, call, device, err);
    if (status == HONE_OK) status = ask_kernel(&ref->kernel, call, err);
    return status;
}

bool hone_kernel_find_library(const hone_kernel *kernel, char *path, size_t size)
{
    if (kernel->find_library != NULL) return kernel->find_library(kernel, path, size);
    return kernel->library != NULL && hone_library_find(kernel->library, path, size);
}

bool hone_kernel_yields(const hone_kernel_ref *ref, const hone_call *call, const hone_device_info *device)
{
    return ref->kernel.yields != NULL && ref->kernel.yields(&ref->kernel, call, device);
}

// The config that the kernel itself proposes; false when it proposes none that its space allows.
static bool proposed(
    const hone_kernel *kernel,
    const hone_bound_space *space,
    const hone_call *call,
    const hone_device_info *device,
    hone_config *out)
{
    if (kernel->heuristic != NULL && kernel->heuristic(kernel, call, device, out) &&
        hone_bound_space_check(space, out, NULL) == HONE_OK)
        return true;
    return kernel->candidates != NULL && kernel->candidates(kernel, call, 0, out);
}

hone_status hone_kernel_default_config(
    const hone_kernel_ref *ref,
    const hone_call *call,
    const hone_device_info *device,
    hone_config *out,
    hone_error *err)
{
    hone_bound_space *space = NULL;
    hone_status status = hone_space_bind(ref->space, call, device, &space, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "kernel '%s'", ref->kernel.name);
    hone_config config = {0};
    if (!proposed(&ref->kernel, space, call, device, &config)) {
        status = hone_bound_space_default(space, &config, err);
        if (status != HONE_OK) status = hone_fail_prefix(err, status, "kernel '%s'", ref->kernel.name);
    }
    hone_bound_space_release(&space);
    if (status == HONE_OK) *out = config;
    return status;
}
