// hone devices
#include "cli.h"

#include <stdio.h>

static json_t *devices_of(hone_cli *cli, hone_platform platform)
{
    json_t *list = json_array();
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++) {
        if (devices[i]->platform != platform) continue;
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I}", "name", devices[i]->name, "fingerprint",
                      devices[i]->fingerprint, "backend", hone_backend_name(devices[i]->backend), "threads",
                      (int)devices[i]->threads, "l1_bytes", (json_int_t)devices[i]->l1_bytes, "l2_bytes",
                      (json_int_t)devices[i]->l2_bytes, "l3_bytes", (json_int_t)devices[i]->l3_bytes, "memory_bytes",
                      (json_int_t)devices[i]->memory_bytes));
    }
    return list;
}

static json_t *document(hone_cli *cli)
{
    json_t *platforms = json_array();
    for (int platform = HONE_NATIVE; platform < HONE_PLATFORM_COUNT; platform++) {
        if (platform == HONE_NULL) continue; // the skeleton is for those who write one
        const char *reason = NULL;
        bool here = hone_runtime_platform(cli->rt, (hone_platform)platform, &reason);
        json_array_append_new(
            platforms, json_pack(
                           "{s:s, s:b, s:s?, s:o}", "platform", hone_platform_name((hone_platform)platform),
                           "available", here, "reason", reason, "devices", devices_of(cli, (hone_platform)platform)));
    }
    return json_pack("{s:o}", "platforms", platforms);
}

static void print_text(const json_t *root)
{
    size_t i, j;
    const json_t *platform, *device;
    json_array_foreach(json_object_get(root, "platforms"), i, platform)
    {
        const char *reason = json_string_value(json_object_get(platform, "reason"));
        printf("%-9s %s\n", json_string_value(json_object_get(platform, "platform")), reason == NULL ? "" : reason);
        json_array_foreach(json_object_get(platform, "devices"), j, device) printf(
            "  %s, %s, %d threads\n  fingerprint %s\n", json_string_value(json_object_get(device, "name")),
            json_string_value(json_object_get(device, "backend")),
            (int)json_integer_value(json_object_get(device, "threads")),
            json_string_value(json_object_get(device, "fingerprint")));
    }
}

int cli_devices(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status != 0) return status;
    json_t *root = document(cli);
    if (cli->options.json) {
        cli_print_json(root);
        return EXIT_DONE;
    }
    print_text(root);
    json_decref(root);
    return EXIT_DONE;
}
