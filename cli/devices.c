// hone devices
#include "cli.h"

#include <stdio.h>
#include <string.h>

static json_t *describe(const hone_device_info *device)
{
    char place[64];
    hone_device_text(device->device, place, sizeof place);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:i, s:s?, s:s?, s:s?, s:s?}", "name", device->name, "device",
        place, "fingerprint", device->fingerprint, "backend", hone_backend_name(device->backend), "threads",
        (int)device->threads, "l1_bytes", (json_int_t)device->l1_bytes, "l2_bytes", (json_int_t)device->l2_bytes,
        "l3_bytes", (json_int_t)device->l3_bytes, "memory_bytes", (json_int_t)device->memory_bytes, "clock_mhz",
        (int)device->clock_mhz, "architecture", device->architecture, "driver", device->driver, "runtime",
        device->runtime, "compiler", device->compiler);
}

static json_t *devices_of(hone_cli *cli, hone_platform platform)
{
    json_t *list = json_array();
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (devices[i]->platform == platform) json_array_append_new(list, describe(devices[i]));
    return list;
}

int cli_named_devices(hone_cli *cli, json_t **out)
{
    size_t count = 0;
    const char *text = cli->options.device;
    *out = NULL;
    if (text == NULL) return 0;
    *out = json_object();
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        hone_device_text(devices[i]->device, name, sizeof name);
        if (strcmp(text, "here") == 0 || strcmp(text, name) == 0)
            json_object_set_new(*out, devices[i]->fingerprint, json_true());
    }
    if (strchr(text, '|') != NULL) json_object_set_new(*out, text, json_true());
    if (json_object_size(*out) > 0) return 0;
    return cli_usage(
        "--device is '%s', expected here, a device of this machine, cpu:0, or a fingerprint (hone devices)", text);
}

bool cli_platform_is_interpreted(hone_platform platform)
{
    hone_platform_traits traits;
    return hone_platform_traits_of(platform, &traits, NULL) == HONE_OK && traits.is_interpreted;
}

static json_t *document(hone_cli *cli)
{
    json_t *platforms = json_array();
    for (int platform = HONE_PLATFORM_NONE + 1; platform < HONE_PLATFORM_COUNT; platform++) {
        hone_platform_traits traits;
        const bool is_known = hone_platform_traits_of((hone_platform)platform, &traits, NULL) == HONE_OK;
        if (!is_known || traits.is_by_name_only) continue; // for those who write one
        const char *reason = NULL;
        char words[2048];
        hone_runtime_describe(cli->rt, (hone_platform)platform, words, sizeof words);
        bool here = hone_runtime_platform(cli->rt, (hone_platform)platform, &reason);
        json_array_append_new(
            platforms,
            json_pack(
                "{s:s, s:b, s:s?, s:s, s:o}", "platform", hone_platform_name((hone_platform)platform), "available",
                here, "reason", reason, "plugins", words, "devices", devices_of(cli, (hone_platform)platform)));
    }
    return json_pack("{s:o}", "platforms", platforms);
}

static void print_detail(const json_t *device, const char *name)
{
    const char *words = json_string_value(json_object_get(device, name));
    if (words != NULL && words[0] != '\0') cli_say("  %s %s\n", name, words);
}

static void print_device(const json_t *device)
{
    static const char *const details[] = {"architecture", "driver", "runtime", "compiler", "fingerprint"};
    const double gib = (double)json_integer_value(json_object_get(device, "memory_bytes")) / (1 << 30);
    const json_int_t clock = json_integer_value(json_object_get(device, "clock_mhz"));
    cli_say(
        "  %s, %s, %s, %d threads", json_string_value(json_object_get(device, "name")),
        json_string_value(json_object_get(device, "backend")), json_string_value(json_object_get(device, "device")),
        (int)json_integer_value(json_object_get(device, "threads")));
    if (gib > 0) cli_say(", %.1f GiB", gib);
    if (clock > 0) cli_say(", %d MHz", (int)clock);
    cli_say("\n");
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        print_detail(device, details[i]);
}

static void print_lines(const char *text)
{
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        cli_say("  %.*s\n", (int)size, text);
        text += size + (text[size] != '\0');
    }
}

static void print_text(const json_t *root)
{
    size_t i, j;
    const json_t *platform, *device;
    json_array_foreach(json_object_get(root, "platforms"), i, platform)
    {
        const char *reason = json_string_value(json_object_get(platform, "reason"));
        cli_say("%-9s %s\n", json_string_value(json_object_get(platform, "platform")), reason == NULL ? "" : reason);
        print_lines(json_string_value(json_object_get(platform, "plugins")));
        json_array_foreach(json_object_get(platform, "devices"), j, device) print_device(device);
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
