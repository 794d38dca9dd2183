// Names of the device types of DLPack that hone knows.
#include "call/call.h"

#include "hone/describe.h"

#include <stdio.h>

static const struct {
    const char *name;
    int32_t type;
    bool has_handles; // its data are handles and no addresses
} devices[] = {
    {"cpu", HONE_DEVICE_CPU, false},
    {"cuda", HONE_DEVICE_CUDA, false},
    {"cuda_host", HONE_DEVICE_CUDA_HOST, false},
    {"opencl", HONE_DEVICE_OPENCL, true},
    {"metal", HONE_DEVICE_METAL, false},
    {"rocm", HONE_DEVICE_ROCM, false},
    {"tpu", HONE_DEVICE_TPU, false},
};

const char *hone_device_type_name(int32_t type)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i].type == type) return devices[i].name;
    return NULL;
}

bool hone_device_has_handles(int32_t type)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i].type == type) return devices[i].has_handles;
    return false;
}

int32_t hone_device_type_by_name(hone_view name)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (hone_view_is(name, devices[i].name)) return devices[i].type;
    return 0;
}

size_t hone_device_text(hone_device device, char *out, size_t size)
{
    const char *name = hone_device_type_name(device.type);
    if (size > 0) out[0] = '\0';
    return name == NULL ? 0 : (size_t)snprintf(out, size, "%s:%d", name, (int)device.id);
}
