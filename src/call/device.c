// Names of the device types of DLPack that hone knows.
#include "call/call.h"

static const struct {
    const char *name;
    int32_t type;
} devices[] = {
    {"cpu", HONE_DEVICE_CPU},       {"cuda", HONE_DEVICE_CUDA},   {"cuda_host", HONE_DEVICE_CUDA_HOST},
    {"opencl", HONE_DEVICE_OPENCL}, {"metal", HONE_DEVICE_METAL}, {"rocm", HONE_DEVICE_ROCM},
    {"tpu", HONE_DEVICE_TPU},
};

const char *hone_device_type_name(int32_t type)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i].type == type) return devices[i].name;
    return NULL;
}

int32_t hone_device_type_by_name(hone_view name)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (hone_view_is(name, devices[i].name)) return devices[i].type;
    return 0;
}
