// Clients of plugins, and the mapping of their devices to hone's.
#include "platforms/xla/instance.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "xla.client";

hone_xla_kind hone_xla_kind_of(const hone_device_info *device)
{
    if (device->device.type == HONE_DEVICE_CPU) return XLA_CPU;
    return device->device.type == HONE_DEVICE_CUDA ? XLA_CUDA : XLA_KIND_COUNT;
}

hone_status hone_xla_visits(hone_platform_instance *instance, const hone_device_info *device, hone_error *err)
{
    hone_xla_kind kind = hone_xla_kind_of(device);
    if (kind < XLA_KIND_COUNT && instance->paths[kind].size > 0) return HONE_OK;
    if (kind == XLA_KIND_COUNT)
        return hone_fail(err, HONE_UNAVAILABLE, where, "there is no PJRT plugin for %s", device->name);
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "there is no PJRT plugin for %s here: install PyPI's %s, or name one in HONE_PJRT_PLUGIN",
        hone_xla_kind_name(kind), hone_xla_kind_package(kind));
}

// Creating ------------------------------------------------------------------------------------------------------------

// By default a client of the CPU has four devices, and a client of a GPU takes three quarters of its memory.
static size_t options_of(hone_xla_kind kind, pjrt_named_value out[1])
{
    static const char devices[] = "cpu_device_count", at_once[] = "preallocate";
    out[0] = (pjrt_named_value){PJRT_HEAD(pjrt_named_value), .value_size = 1};
    if (kind == XLA_TPU) return 0;
    out[0].name = kind == XLA_CPU ? devices : at_once;
    out[0].name_size = strlen(out[0].name);
    out[0].type = kind == XLA_CPU ? PJRT_NAMED_INT : PJRT_NAMED_BOOL;
    if (kind == XLA_CPU)
        out[0].value.i64 = 1;
    else
        out[0].value.truth = false;
    return 1;
}

static hone_status create(hone_xla_client *client, hone_error *err)
{
    static const char what[] = "PJRT_Client_Create";
    pjrt_named_value options[1];
    size_t count = options_of(client->plugin.kind, options);
    pjrt_client_create create = {PJRT_HEAD(pjrt_client_create), .options = options, .option_count = count};
    hone_status status = hone_xla_call(&client->plugin, PJRT_CLIENT_CREATE, &create, what, err);
    if (status == HONE_INVALID_ARGUMENT && count > 0) { // this plugin does not know the option
        create = (pjrt_client_create){PJRT_HEAD(pjrt_client_create)};
        status = hone_xla_call(&client->plugin, PJRT_CLIENT_CREATE, &create, what, err);
    }
    if (status != HONE_OK) return hone_fail_prefix(err, status, "%s", client->plugin.path);
    client->client = create.client;
    return HONE_OK;
}

// A file may have the name of another kind of device than it supports.
static hone_status check_name(const hone_xla_client *client, hone_error *err)
{
    pjrt_get_text name = {PJRT_HEAD(pjrt_get_text), .object = client->client};
    const char *wanted = hone_xla_kind_name(client->plugin.kind);
    hone_status status =
        hone_xla_call(&client->plugin, PJRT_CLIENT_PLATFORM_NAME, &name, "PJRT_Client_PlatformName", err);
    if (status != HONE_OK || (name.size == strlen(wanted) && memcmp(name.text, wanted, name.size) == 0)) return status;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "%s is a plugin for platform %.*s, not for %s", client->plugin.path,
        name.size > 40 ? 40 : (int)name.size, name.text, wanted);
}

static hone_status list_devices(hone_xla_client *client, hone_error *err)
{
    pjrt_addressable_devices list = {PJRT_HEAD(pjrt_addressable_devices), .client = client->client};
    hone_status status =
        hone_xla_call(&client->plugin, PJRT_CLIENT_ADDRESSABLE_DEVICES, &list, "PJRT_Client_AddressableDevices", err);
    if (status != HONE_OK) return status;
    client->devices = list.devices;
    client->device_count = list.count;
    if (list.count > 0) return HONE_OK;
    return hone_fail(err, HONE_UNAVAILABLE, where, "%s finds no device", client->plugin.path);
}

static void read_version(hone_xla_client *client)
{
    pjrt_get_text version = {PJRT_HEAD(pjrt_get_text), .object = client->client};
    if (hone_xla_call_quietly(&client->plugin, PJRT_CLIENT_PLATFORM_VERSION, &version) != HONE_OK) version.size = 0;
    snprintf(
        client->version, sizeof client->version, "%.*s", version.size > 60 ? 60 : (int)version.size,
        version.text != NULL ? version.text : "");
}

static void destroy_client(hone_xla_client *client)
{
    if (client->client != NULL) hone_xla_destroy(&client->plugin, PJRT_CLIENT_DESTROY, client->client);
    client->client = NULL;
    client->device_count = 0;
}

static hone_status need_plugin(hone_platform_instance *instance, hone_xla_client *client, hone_error *err)
{
    if (client->plugin.library != NULL) return HONE_OK;
    return hone_xla_plugin_open(&instance->allocator, &client->plugin, err);
}

static hone_status need_client(hone_platform_instance *instance, hone_xla_client *client, hone_error *err)
{
    if (client->client != NULL) return HONE_OK;
    hone_status status = need_plugin(instance, client, err);
    if (status == HONE_OK) status = create(client, err);
    if (status == HONE_OK) status = check_name(client, err);
    if (status == HONE_OK) status = list_devices(client, err);
    if (status == HONE_OK)
        read_version(client);
    else if (client->plugin.api != NULL)
        destroy_client(client);
    return status;
}

hone_status hone_xla_need_plugin(hone_platform_instance *instance, hone_xla_kind kind, hone_error *err)
{
    hone_mutex_lock(&instance->mutex);
    hone_status status = need_plugin(instance, &instance->clients[kind], err);
    hone_mutex_unlock(&instance->mutex);
    return status;
}

void hone_xla_forget_client(hone_platform_instance *instance, hone_xla_client *client)
{
    destroy_client(client);
    hone_xla_plugin_close(&instance->allocator, &client->plugin);
}

// Devices -------------------------------------------------------------------------------------------------------------

static hone_status find_device(
    const hone_xla_client *client, const hone_device_info *device, pjrt_device **out, hone_error *err)
{
    for (size_t i = 0; i < client->device_count; i++) {
        pjrt_get_int id = {PJRT_HEAD(pjrt_get_int), .object = client->devices[i]};
        *out = client->devices[i];
        if (client->plugin.kind == XLA_CPU) return HONE_OK;
        if (hone_xla_call_quietly(&client->plugin, PJRT_DEVICE_LOCAL_HARDWARE_ID, &id) == HONE_OK &&
            id.value == device->device.id)
            return HONE_OK;
    }
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "%s shows %zu devices, and no number %d among them", client->plugin.path,
        client->device_count, (int)device->device.id);
}

hone_status hone_xla_need_client(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_xla_client **out,
    pjrt_device **out_device,
    hone_error *err)
{
    hone_status status = hone_xla_visits(instance, device, err);
    if (status != HONE_OK) return status;
    hone_xla_client *client = &instance->clients[hone_xla_kind_of(device)];
    hone_mutex_lock(&instance->mutex);
    status = need_client(instance, client, err);
    hone_mutex_unlock(&instance->mutex);
    if (status == HONE_OK) status = find_device(client, device, out_device, err);
    if (status == HONE_OK) *out = client;
    return status;
}

void hone_xla_device_kind(const hone_xla_client *client, pjrt_device *device, char *out, size_t size)
{
    pjrt_get description = {PJRT_HEAD(pjrt_get), .object = device};
    pjrt_get_text kind = {PJRT_HEAD(pjrt_get_text)};
    out[0] = '\0';
    if (hone_xla_call_quietly(&client->plugin, PJRT_DEVICE_DESCRIPTION, &description) != HONE_OK) return;
    kind.object = description.value;
    if (hone_xla_call_quietly(&client->plugin, PJRT_DESCRIPTION_KIND, &kind) != HONE_OK || kind.text == NULL) return;
    snprintf(out, size, "%.*s", kind.size > 100 ? 100 : (int)kind.size, kind.text);
}
