// A PJRT plugin: opening, the checks of its version and functions, its properties; and calls of its functions.
#ifndef HONE_PLATFORMS_XLA_PLUGIN_H
#define HONE_PLATFORMS_XLA_PLUGIN_H

#include "base/buffer.h"
#include "os/os.h"
#include "platforms/xla/pjrt.h"

// The kind of device that a plugin supports.
typedef enum hone_xla_kind { XLA_CPU, XLA_CUDA, XLA_TPU, XLA_KIND_COUNT } hone_xla_kind;

const char *hone_xla_kind_name(hone_xla_kind kind);    // "cpu": also the name that its clients report
const char *hone_xla_kind_package(hone_xla_kind kind); // the package of PyPI that provides one

typedef struct hone_xla_plugin {
    hone_xla_kind kind;
    const char *path;
    hone_library *library; // NULL: not opened
    const pjrt_api *api;
    char stablehlo[32]; // "1.13.3": the latest version that it reads; "" if not known
} hone_xla_plugin;

// Opens the library, which is never unloaded, and checks it. HONE_UNAVAILABLE: it cannot be opened; HONE_INCOMPATIBLE:
// it is not a plugin, or has another version; with advice. A plugin starts threads, at the latest with its first
// client.
hone_status hone_xla_plugin_open(const hone_allocator *allocator, hone_xla_plugin *plugin, hone_error *err);
void hone_xla_plugin_close(const hone_allocator *allocator, hone_xla_plugin *plugin);
bool hone_xla_has(const hone_xla_plugin *plugin, pjrt_slot slot);

// Calls a function that every plugin has. Fails with the plugin's message: "Compile: ... (code 3)".
// Returns: HONE_OK; HONE_OUT_OF_MEMORY (the device has none left); HONE_INCOMPATIBLE; HONE_INVALID_ARGUMENT;
// HONE_UNAVAILABLE; HONE_UNSUPPORTED; else HONE_KERNEL_FAILED.
hone_status hone_xla_call(
    const hone_xla_plugin *plugin, pjrt_slot slot, void *arguments, const char *what, hone_error *err);
// The same without a message: destroys the error.
hone_status hone_xla_call_quietly(const hone_xla_plugin *plugin, pjrt_slot slot, void *arguments);
// Releases an object: destroy of an event, a buffer, an executable. Accepts NULL.
void hone_xla_destroy(const hone_xla_plugin *plugin, pjrt_slot slot, void *object);

// places.c: finds the plugins of this machine. HONE_PJRT_PLUGIN names them, "cpu=PATH,cuda=PATH", or one whose file
// name shows its kind; otherwise they are searched for in Python's packages.
//   out  [XLA_KIND_COUNT]: each gets a path, or stays empty
// HONE_INVALID_ARGUMENT if the variable names an unknown kind; HONE_OUT_OF_MEMORY.
hone_status hone_xla_find_plugins(hone_buffer out[XLA_KIND_COUNT], hone_error *err);

#endif
