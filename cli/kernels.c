// The kernels of an operation, and the devices that a call or a command is about.
#include "cli.h"

#include <stdio.h>
#include <string.h>

size_t cli_kernels(hone_cli *cli, const hone_op *op, const hone_kernel_ref ***out)
{
    char name[HONE_NAME_SIZE + 20];
    size_t count = 0;
    hone_error err;
    snprintf(name, sizeof name, "%s@v%s", hone_op_name(op), hone_signature_version(hone_op_signature(op)));
    if (hone_registry_kernels(cli->rt, name, out, &count, &err) != HONE_OK) cli_no_memory();
    return count;
}

// The command replaces no kernel, so that one lives on when the list is freed.
const hone_kernel_ref *cli_kernel_named(
    hone_cli *cli, const hone_op *op, const char *name, hone_platform platform, hone_backend backend)
{
    const hone_kernel_ref **all = NULL, *found = NULL;
    const size_t count = cli_kernels(cli, op, &all);
    for (size_t i = 0; i < count; i++) {
        const hone_kernel *kernel = hone_kernel_of(all[i]);
        if (strcmp(kernel->name, name) != 0) continue;
        if (platform != HONE_PLATFORM_NONE && kernel->platform != platform) continue;
        if (found == NULL) found = all[i];
        if (kernel->backend == backend) {
            found = all[i];
            break;
        }
    }
    hone_kernels_release(&all);
    return found;
}

const hone_device_info *cli_device_of(hone_cli *cli, const hone_call *call)
{
    size_t count = 0;
    const hone_device at = hone_call_device(call);
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (devices[i]->device.type == at.type && devices[i]->device.id == at.id) return devices[i];
    return NULL;
}

int cli_device_in(hone_cli *cli, const char *text, const hone_call *call, const char **out)
{
    const char *end = strrchr(text, ')');
    *out = NULL;
    if (end == NULL || strchr(end, '@') == NULL) return 0;
    const hone_device_info *device = cli_device_of(cli, call);
    if (device == NULL) return cli_usage("%s: its device is not here (hone devices)", text);
    *out = device->fingerprint;
    return 0;
}

const hone_device_info *cli_cpu(hone_cli *cli)
{
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (devices[i]->backend == HONE_CPU) return devices[i];
    return NULL;
}
