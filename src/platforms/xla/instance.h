// The resources of one open xla platform; shared by the files of this folder only.
#ifndef HONE_PLATFORMS_XLA_INSTANCE_H
#define HONE_PLATFORMS_XLA_INSTANCE_H

#include "os/mutex.h"
#include "platforms/shared/launch.h"
#include "platforms/xla/plugin.h"
#include "platforms/xla/xla.h"

// A plugin and its client, which owns its devices. Opened by the first plan that needs it.
typedef struct hone_xla_client {
    hone_xla_plugin plugin;
    pjrt_client *client;         // NULL: not created
    pjrt_device *const *devices; // the client's
    size_t device_count;
    char version[64]; // of the underlying platform: "cuda 13000"
} hone_xla_client;

struct hone_platform_instance {
    hone_allocator allocator;
    const hone_log *log;
    hone_mutex mutex; // guards the opening
    hone_buffer paths[XLA_KIND_COUNT];
    hone_xla_client clients[XLA_KIND_COUNT];
    hone_platform_instance *cuda; // copies within a GPU's memory; NULL: not needed yet
    hone_mutex telling;           // guards failure
    hone_error failure;           // of the last run that failed; HONE_OK if it was reported, or there was none
};

// client.c
hone_xla_kind hone_xla_kind_of(const hone_device_info *device);
// hone_platform_ops.visits
hone_status hone_xla_visits(hone_platform_instance *instance, const hone_device_info *device, hone_error *err);
// Opens the plugin for a device and creates its client; *out_device is the plugin's device.
hone_status hone_xla_need_client(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_xla_client **out,
    pjrt_device **out_device,
    hone_error *err);
// Only opens the plugin, to read its properties.
hone_status hone_xla_need_plugin(hone_platform_instance *instance, hone_xla_kind kind, hone_error *err);
void hone_xla_forget_client(hone_platform_instance *instance, hone_xla_client *client);
// The name of a device, "NVIDIA H200".
void hone_xla_device_kind(const hone_xla_client *client, pjrt_device *device, char *out, size_t size);

// text.c: replaces each ${...} in a source: an expression over the plan, ${x.type} ("4x8xbf16") and ${x.element} of a
// tensor x.
hone_status hone_xla_expand(
    const hone_allocator *allocator, const hone_plan *plan, const char *source, hone_buffer *out, hone_error *err);

// options.c: a CompileOptionsProto with the kernel's options, each of which is an expression over the plan.
hone_status hone_xla_options(
    const hone_allocator *allocator, const hone_plan *plan, bool portable, hone_buffer *out, hone_error *err);

// One tensor that a module accepts or returns.
typedef struct hone_xla_shape {
    int type; // hone_dtype_info.xla
    int64_t dims[HONE_MAX_RANK];
    size_t rank;
} hone_xla_shape;

// program.c: the shapes of a module's parameters, from its HloModuleProtoWithConfig. HONE_CORRUPT if it is not one.
hone_status hone_xla_read_parameters(
    const char *bytes, size_t size, hone_xla_shape *out, size_t capacity, size_t *out_count, hone_error *err);

// compile.c: compiles, or finds in the cache what was compiled with the same plugin, device, options and program.
hone_status hone_xla_compile(
    hone_platform_instance *instance,
    const hone_xla_client *client,
    pjrt_device *device,
    const hone_buffer *program,
    const hone_buffer *options,
    pjrt_loaded **out,
    hone_error *err);

// load.c
hone_status hone_xla_prepare_kernel(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_xla_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);

// run.c
hone_status hone_xla_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);
uint64_t hone_xla_digest(const hone_plan *plan);
bool hone_xla_last_failure(hone_platform_instance *instance, hone_error *err);

#endif
