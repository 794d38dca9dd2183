// The words of the public API that need nothing else: status names and the version.
#include "hone/status.h"

static const char *const status_names[] = {
    [HONE_OK] = "ok",
    [HONE_INVALID_ARGUMENT] = "invalid argument",
    [HONE_OUT_OF_MEMORY] = "out of memory",
    [HONE_NOT_FOUND] = "not found",
    [HONE_UNSUPPORTED] = "unsupported",
    [HONE_UNAVAILABLE] = "unavailable",
    [HONE_INCOMPATIBLE] = "incompatible",
    [HONE_CORRUPT] = "corrupt",
    [HONE_BUSY] = "busy",
    [HONE_IO] = "input/output error",
    [HONE_CANCELLED] = "cancelled",
    [HONE_KERNEL_FAILED] = "kernel failed",
};

const char *hone_status_name(hone_status status)
{
    size_t index = (size_t)status;
    return index < sizeof status_names / sizeof status_names[0] ? status_names[index] : "unknown status";
}

const char *hone_version(void)
{
    return HONE_VERSION;
}
