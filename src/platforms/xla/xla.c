#include "platforms/xla/xla.h"

#include "base/error.h"
#include "platforms/cuda/cuda.h"
#include "platforms/xla/instance.h"

#include <string.h>

static const char where[] = "xla.open";

static void xla_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    for (int kind = 0; kind < XLA_KIND_COUNT; kind++) {
        hone_xla_forget_client(gone, &gone->clients[kind]);
        hone_buffer_deinit(&gone->paths[kind]);
    }
    if (gone->cuda != NULL) hone_cuda_platform.close(&gone->cuda);
    hone_mutex_deinit(&gone->telling);
    hone_mutex_deinit(&gone->mutex);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static hone_status find_plugins(hone_platform_instance *instance, hone_error *err)
{
    bool any = false;
    hone_status status = hone_xla_find_plugins(instance->paths, err);
    if (status != HONE_OK) return status;
    for (int kind = 0; kind < XLA_KIND_COUNT; kind++) {
        any = any || instance->paths[kind].size > 0;
        instance->clients[kind].plugin.kind = (hone_xla_kind)kind;
        instance->clients[kind].plugin.path = hone_buffer_string(&instance->paths[kind]);
    }
    if (any) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "xla and pallas need a PJRT plugin: PyPI's xla-cpu-pjrt for the CPU, jax-cuda13-pjrt for NVIDIA's GPUs; "
        "HONE_PJRT_PLUGIN names one in another folder");
}

// Opens no plugin: a plugin starts threads, and a process that forks must not have any.
static hone_status xla_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    instance->log = log;
    hone_mutex_init_long(&instance->mutex);
    hone_mutex_init_long(&instance->telling);
    for (int kind = 0; kind < XLA_KIND_COUNT; kind++)
        hone_buffer_init(&instance->paths[kind], *allocator);
    hone_status status = find_plugins(instance, err);
    if (status == HONE_OK)
        *out = instance;
    else
        xla_close(&instance);
    return status;
}

static const hone_device_info *xla_devices(hone_platform_instance *instance, size_t *out_count)
{
    (void)instance;
    *out_count = 0;
    return NULL;
}

static void describe_plugin(hone_platform_instance *instance, hone_xla_kind kind, hone_buffer *out)
{
    const hone_xla_plugin *plugin = &instance->clients[kind].plugin;
    hone_error why = {.message = ""};
    if (plugin->path[0] == '\0') {
        hone_buffer_format(
            out, "%s: no plugin, PyPI's %s brings one", hone_xla_kind_name(kind), hone_xla_kind_package(kind));
    } else if (hone_xla_need_plugin(instance, kind, &why) != HONE_OK) {
        hone_buffer_format(out, "%s: %s", hone_xla_kind_name(kind), why.message);
    } else {
        hone_buffer_format(
            out, "%s: %s, PJRT %d.%d%s%s", hone_xla_kind_name(kind), plugin->path, plugin->api->version.major,
            plugin->api->version.minor, plugin->stablehlo[0] != '\0' ? ", StableHLO " : "", plugin->stablehlo);
    }
}

static void xla_describe(hone_platform_instance *instance, hone_buffer *out)
{
    for (int kind = 0; instance != NULL && kind < XLA_KIND_COUNT; kind++) {
        if (kind > 0) hone_buffer_char(out, '\n');
        describe_plugin(instance, (hone_xla_kind)kind, out);
    }
}

// A module of StableHLO has one function, main, which the plugin launches.
static const char *module_refuses(const hone_code *code)
{
    if (code->entry != NULL && strcmp(code->entry, "main") != 0)
        return "names an entry: a module of StableHLO has main";
    if (code->grid != NULL || code->block != NULL || code->cluster != NULL || code->shared != NULL ||
        code->flags != 0 || code->finish != NULL)
        return "describes a launch: grid, block, cluster, shared, flags and finish are not for modules";
    if (code->scratch != NULL) return "asks for scratch memory: a module's is the plugin's business";
    if (code->constants != NULL || code->target != NULL)
        return "has constants or a target: write ${...} into the source, and a backend";
    return NULL;
}

// On a CPU a Pallas kernel is interpreted step by step: its results are correct, but its time is meaningless.
static const char *pallas_is_untimed(const hone_device_info *device)
{
    if (device->backend != HONE_CPU) return NULL;
    return "runs in interpret mode on a CPU, for correctness only: its time says nothing of the kernel, so it does not "
           "compete";
}

const hone_platform_ops hone_xla_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_XLA,
         .name = "xla",
         .hosts = {HONE_NATIVE, HONE_CUDA},
         .ranks = {{80, HONE_BACKEND_NONE}},
         .falls_back_to_any = true,
         .takes_code = true,
         .is_module = true,
         .refuses = module_refuses},
    .open = xla_open,
    .close = xla_close,
    .devices = xla_devices,
    .prepare = hone_xla_prepare_kernel,
    .release = hone_xla_release,
    .run = hone_xla_run,
    .visits = hone_xla_visits,
    .describe = xla_describe,
    .check = hone_xla_check_pack,
    .last_failure = hone_xla_last_failure,
    .wakes = true,
    .digest = hone_xla_digest,
};

const hone_platform_ops hone_pallas_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_PALLAS,
         .name = "pallas",
         .home = HONE_XLA,
         .ranks = {{10, HONE_TPU}},
         .takes_code = true,
         .is_module = true,
         .refuses = module_refuses,
         .is_untimed = pallas_is_untimed},
    .prepare = hone_xla_prepare_kernel,
    .release = hone_xla_release,
    .run = hone_xla_run,
    .check = hone_xla_check_pack,
    .digest = hone_xla_digest,
};
