#include "platforms/xla/plugin.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "xla.plugin";

// The order of the table changed last with 0.57; jax requires the same version.
enum { LEAST_MINOR = 57 };

static const struct {
    const char *name, *package;
} kinds[XLA_KIND_COUNT] = {
    [XLA_CPU] = {"cpu", "xla-cpu-pjrt"},
    [XLA_CUDA] = {"cuda", "jax-cuda13-pjrt"},
    [XLA_TPU] = {"tpu", "libtpu"},
};

const char *hone_xla_kind_name(hone_xla_kind kind)
{
    return kinds[kind].name;
}

const char *hone_xla_kind_package(hone_xla_kind kind)
{
    return kinds[kind].package;
}

// The required functions. Those that only check or keep something are optional.
static const struct {
    pjrt_slot slot;
    const char *name;
} needed[] = {
    {PJRT_ERROR_DESTROY, "PJRT_Error_Destroy"},
    {PJRT_ERROR_MESSAGE, "PJRT_Error_Message"},
    {PJRT_ERROR_CODE, "PJRT_Error_GetCode"},
    {PJRT_PLUGIN_INITIALIZE, "PJRT_Plugin_Initialize"},
    {PJRT_PLUGIN_ATTRIBUTES, "PJRT_Plugin_Attributes"},
    {PJRT_EVENT_DESTROY, "PJRT_Event_Destroy"},
    {PJRT_EVENT_AWAIT, "PJRT_Event_Await"},
    {PJRT_CLIENT_CREATE, "PJRT_Client_Create"},
    {PJRT_CLIENT_DESTROY, "PJRT_Client_Destroy"},
    {PJRT_CLIENT_PLATFORM_NAME, "PJRT_Client_PlatformName"},
    {PJRT_CLIENT_PLATFORM_VERSION, "PJRT_Client_PlatformVersion"},
    {PJRT_CLIENT_ADDRESSABLE_DEVICES, "PJRT_Client_AddressableDevices"},
    {PJRT_CLIENT_COMPILE, "PJRT_Client_Compile"},
    {PJRT_CLIENT_BUFFER_FROM_HOST, "PJRT_Client_BufferFromHostBuffer"},
    {PJRT_DESCRIPTION_KIND, "PJRT_DeviceDescription_Kind"},
    {PJRT_DEVICE_DESCRIPTION, "PJRT_Device_GetDescription"},
    {PJRT_DEVICE_LOCAL_HARDWARE_ID, "PJRT_Device_LocalHardwareId"},
    {PJRT_EXECUTABLE_DESTROY, "PJRT_Executable_Destroy"},
    {PJRT_EXECUTABLE_OUTPUT_COUNT, "PJRT_Executable_NumOutputs"},
    {PJRT_LOADED_DESTROY, "PJRT_LoadedExecutable_Destroy"},
    {PJRT_LOADED_EXECUTABLE, "PJRT_LoadedExecutable_GetExecutable"},
    {PJRT_LOADED_EXECUTE, "PJRT_LoadedExecutable_Execute"},
    {PJRT_BUFFER_DESTROY, "PJRT_Buffer_Destroy"},
    {PJRT_BUFFER_DEVICE_POINTER, "PJRT_Buffer_OpaqueDeviceMemoryDataPointer"},
    {PJRT_EXECUTABLE_OUTPUT_TYPES, "PJRT_Executable_OutputElementTypes"},
    {PJRT_EXECUTABLE_OUTPUT_DIMENSIONS, "PJRT_Executable_OutputDimensions"},
    {PJRT_CLIENT_VIEW_OF_DEVICE_BUFFER, "PJRT_Client_CreateViewOfDeviceBuffer"},
};

bool hone_xla_has(const hone_xla_plugin *plugin, pjrt_slot slot)
{
    size_t end = offsetof(pjrt_api, functions) + ((size_t)slot + 1) * sizeof(pjrt_function *);
    return end <= plugin->api->head.struct_size && plugin->api->functions[slot] != NULL;
}

// Calls ---------------------------------------------------------------------------------------------------------------

static hone_status status_of(int code)
{
    switch (code) {
    case PJRT_RESOURCE_EXHAUSTED:
        return HONE_OUT_OF_MEMORY;
    case PJRT_INVALID_ARGUMENT:
    case PJRT_NOT_FOUND:
        return HONE_INVALID_ARGUMENT;
    case PJRT_UNIMPLEMENTED:
        return HONE_UNSUPPORTED;
    case PJRT_FAILED_PRECONDITION:
        return HONE_UNAVAILABLE;
    default:
        return HONE_KERNEL_FAILED;
    }
}

static void destroy_error(const hone_xla_plugin *plugin, pjrt_error *error)
{
    pjrt_error_arguments arguments = {PJRT_HEAD(pjrt_error_arguments), .error = error};
    (void)plugin->api->functions[PJRT_ERROR_DESTROY](&arguments);
}

static int code_of(const hone_xla_plugin *plugin, const pjrt_error *error)
{
    pjrt_error_code arguments = {PJRT_HEAD(pjrt_error_code), .error = error};
    pjrt_error *failed = plugin->api->functions[PJRT_ERROR_CODE](&arguments);
    if (failed != NULL) destroy_error(plugin, failed);
    return arguments.code;
}

hone_status hone_xla_call(
    const hone_xla_plugin *plugin, pjrt_slot slot, void *arguments, const char *what, hone_error *err)
{
    pjrt_error *error = plugin->api->functions[slot](arguments);
    if (error == NULL) return HONE_OK;
    pjrt_error_message message = {PJRT_HEAD(pjrt_error_message), .error = error};
    (void)plugin->api->functions[PJRT_ERROR_MESSAGE](&message);
    int code = code_of(plugin, error);
    const char *text = message.text != NULL ? message.text : "no words for it";
    size_t size = message.text != NULL ? message.size : strlen(text);
    const char *end = memchr(text, '\n', size);
    if (end != NULL && end > text) size = (size_t)(end - text);
    hone_status status =
        hone_fail(err, status_of(code), where, "%s: %.*s (code %d)", what, size > 180 ? 180 : (int)size, text, code);
    if (err != NULL) err->system_code = code;
    destroy_error(plugin, error);
    return status;
}

hone_status hone_xla_call_quietly(const hone_xla_plugin *plugin, pjrt_slot slot, void *arguments)
{
    pjrt_error *error = plugin->api->functions[slot](arguments);
    if (error == NULL) return HONE_OK;
    hone_status status = status_of(code_of(plugin, error));
    destroy_error(plugin, error);
    return status;
}

void hone_xla_destroy(const hone_xla_plugin *plugin, pjrt_slot slot, void *object)
{
    pjrt_one arguments = {PJRT_HEAD(pjrt_one), .object = object};
    if (object != NULL) (void)hone_xla_call_quietly(plugin, slot, &arguments);
}

// Opening -------------------------------------------------------------------------------------------------------------

static hone_status check_table(const hone_xla_plugin *plugin, hone_error *err)
{
    const pjrt_api *api = plugin->api;
    if (api == NULL || api->head.struct_size < offsetof(pjrt_api, functions))
        return hone_fail(err, HONE_INCOMPATIBLE, where, "%s: its GetPjrtApi answers no table", plugin->path);
    if (api->version.major != 0 || api->version.minor < LEAST_MINOR)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%s speaks version %d.%d of PJRT's interface, hone 0.%d and later: take a newer %s", plugin->path,
            api->version.major, api->version.minor, (int)LEAST_MINOR, hone_xla_kind_package(plugin->kind));
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!hone_xla_has(plugin, needed[i].slot))
            return hone_fail(
                err, HONE_INCOMPATIBLE, where, "%s has no %s: it is broken, or of another version (0.%d)", plugin->path,
                needed[i].name, api->version.minor);
    return HONE_OK;
}

static void read_attributes(hone_xla_plugin *plugin)
{
    static const char wanted[] = "stablehlo_current_version";
    pjrt_attributes attributes = {PJRT_HEAD(pjrt_attributes)};
    plugin->stablehlo[0] = '\0';
    if (hone_xla_call_quietly(plugin, PJRT_PLUGIN_ATTRIBUTES, &attributes) != HONE_OK) return;
    for (size_t i = 0; i < attributes.count; i++) {
        const pjrt_named_value *value = &attributes.values[i];
        if (value->type != PJRT_NAMED_INTS || value->value_size != 3 || value->name_size != sizeof wanted - 1 ||
            memcmp(value->name, wanted, sizeof wanted - 1) != 0)
            continue;
        const int64_t *part = value->value.i64s;
        snprintf(
            plugin->stablehlo, sizeof plugin->stablehlo, "%" PRId64 ".%" PRId64 ".%" PRId64, part[0], part[1], part[2]);
    }
}

typedef const pjrt_api *get_function(void);

static hone_status take_table(hone_xla_plugin *plugin, hone_error *err)
{
    void *symbol = hone_library_symbol(plugin->library, "GetPjrtApi");
    get_function *get = NULL;
    if (symbol == NULL)
        return hone_fail(err, HONE_INCOMPATIBLE, where, "%s has no GetPjrtApi: it is not a PJRT plugin", plugin->path);
    memcpy(&get, &symbol, sizeof get);
    plugin->api = get();
    hone_status status = check_table(plugin, err);
    pjrt_head initialise = {.struct_size = sizeof initialise};
    if (status == HONE_OK)
        status = hone_xla_call(plugin, PJRT_PLUGIN_INITIALIZE, &initialise, "PJRT_Plugin_Initialize", err);
    if (status == HONE_OK) read_attributes(plugin);
    return status;
}

hone_status hone_xla_plugin_open(const hone_allocator *allocator, hone_xla_plugin *plugin, hone_error *err)
{
    const char *const names[] = {plugin->path, NULL};
    hone_status status = hone_library_open(allocator, names, &plugin->library, err);
    if (status == HONE_OK) status = take_table(plugin, err);
    if (status != HONE_OK) hone_xla_plugin_close(allocator, plugin);
    return status;
}

void hone_xla_plugin_close(const hone_allocator *allocator, hone_xla_plugin *plugin)
{
    if (plugin->library != NULL) hone_library_close(allocator, &plugin->library);
    plugin->api = NULL;
}
