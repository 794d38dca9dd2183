// Makes an executable from a module: the plugin compiles it, or it comes from the cache on disk. A key covers all
// inputs, including the plugin's file: a plugin accepts code that another version compiled, and runs it wrongly.
#include "platforms/xla/instance.h"

#include "base/error.h"
#include "base/hash.h"
#include "platforms/shared/compiled.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "xla.compile";

static void put_block(hone_buffer *out, const hone_buffer *block)
{
    hone_buffer_format(out, "%zu:", block->size);
    hone_buffer_append(out, hone_buffer_string(block), block->size);
}

static hone_status make_key(
    const hone_allocator *allocator,
    const hone_xla_client *client,
    pjrt_device *device,
    const hone_buffer *program,
    const hone_buffer *options,
    char out[HONE_SHA256_HEX_SIZE],
    hone_error *err)
{
    char kind[128];
    hone_buffer all;
    const hone_xla_plugin *plugin = &client->plugin;
    hone_file_stamp stamp = hone_os_file_stamp(plugin->path);
    hone_xla_device_kind(client, device, kind, sizeof kind);
    hone_buffer_init(&all, *allocator);
    hone_buffer_format(
        &all, "pjrt\n%s\n%" PRIu64 " %" PRId64 "\n%d.%d %s\n%s\n%s\n", plugin->path, stamp.size, stamp.time_ns,
        plugin->api->version.major, plugin->api->version.minor, plugin->stablehlo, client->version, kind);
    put_block(&all, options);
    put_block(&all, program);
    hone_hash_sha256(hone_buffer_string(&all), all.size, out);
    bool failed = all.failed;
    hone_buffer_deinit(&all);
    return failed ? hone_fail_memory(err, where) : HONE_OK;
}

static bool load_kept(
    const hone_allocator *allocator, const hone_xla_client *client, const char *key, pjrt_loaded **out)
{
    hone_buffer kept;
    if (!hone_xla_has(&client->plugin, PJRT_DESERIALIZE_AND_LOAD)) return false;
    hone_buffer_init(&kept, *allocator);
    bool found = hone_compiled_find(key, &kept) && !kept.failed && kept.size > 0;
    if (found) {
        pjrt_deserialize arguments = {
            PJRT_HEAD(pjrt_deserialize), .client = client->client, .bytes = kept.data, .size = kept.size};
        found = hone_xla_call_quietly(&client->plugin, PJRT_DESERIALIZE_AND_LOAD, &arguments) == HONE_OK;
        *out = arguments.loaded;
    }
    hone_buffer_deinit(&kept);
    return found;
}

static pjrt_executable *executable_of(const hone_xla_plugin *plugin, pjrt_loaded *loaded)
{
    pjrt_get get = {PJRT_HEAD(pjrt_get), .object = loaded};
    return hone_xla_call_quietly(plugin, PJRT_LOADED_EXECUTABLE, &get) == HONE_OK ? get.value : NULL;
}

// Caches the executable. A plugin that cannot serialise compiles every time.
static void keep(const hone_allocator *allocator, const hone_xla_plugin *plugin, const char *key, pjrt_loaded *loaded)
{
    pjrt_executable *executable = executable_of(plugin, loaded);
    pjrt_serialize arguments = {PJRT_HEAD(pjrt_serialize), .executable = executable};
    if (executable != NULL && hone_xla_has(plugin, PJRT_EXECUTABLE_SERIALIZE) &&
        hone_xla_call_quietly(plugin, PJRT_EXECUTABLE_SERIALIZE, &arguments) == HONE_OK) {
        hone_buffer bytes;
        hone_buffer_init(&bytes, *allocator);
        hone_buffer_append(&bytes, arguments.bytes, arguments.size);
        if (!bytes.failed) hone_compiled_keep(key, &bytes);
        hone_buffer_deinit(&bytes);
        if (arguments.free_owner != NULL) arguments.free_owner(arguments.owner);
    }
    hone_xla_destroy(plugin, PJRT_EXECUTABLE_DESTROY, executable);
}

hone_status hone_xla_compile(
    hone_platform_instance *instance,
    const hone_xla_client *client,
    pjrt_device *device,
    const hone_buffer *program,
    const hone_buffer *options,
    pjrt_loaded **out,
    hone_error *err)
{
    static const char format[] = "mlir"; // for texts, bytecode and portable artifacts
    char key[HONE_SHA256_HEX_SIZE];
    hone_status status = make_key(&instance->allocator, client, device, program, options, key, err);
    if (status != HONE_OK || load_kept(&instance->allocator, client, key, out)) return status;
    const pjrt_program code = {
        PJRT_HEAD(pjrt_program),          .code = program->data, .code_size = program->size, .format = format,
        .format_size = sizeof format - 1,
    };
    pjrt_compile arguments = {
        PJRT_HEAD(pjrt_compile),  .client = client->client,      .program = &code,
        .options = options->data, .options_size = options->size,
    };
    status = hone_xla_call(&client->plugin, PJRT_CLIENT_COMPILE, &arguments, "PJRT_Client_Compile", err);
    if (status != HONE_OK) return status;
    *out = arguments.loaded;
    keep(&instance->allocator, &client->plugin, key, *out);
    return HONE_OK;
}
