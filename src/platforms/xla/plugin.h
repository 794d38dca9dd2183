// A PJRT plugin: opened, checked for its version and its functions, asked what it is; and calls of its functions.
#ifndef HONE_PLATFORMS_XLA_PLUGIN_H
#define HONE_PLATFORMS_XLA_PLUGIN_H

#include "base/buffer.h"
#include "os/os.h"
#include "platforms/xla/pjrt.h"

// What a plugin is for.
typedef enum hone_xla_kind { XLA_CPU, XLA_CUDA, XLA_TPU, XLA_KIND_COUNT } hone_xla_kind;

const char *hone_xla_kind_name(hone_xla_kind kind);    // "cpu": also what its clients answer
const char *hone_xla_kind_package(hone_xla_kind kind); // the package of PyPI that brings one

typedef struct hone_xla_plugin {
    hone_xla_kind kind;
    const char *path;
    hone_library *library; // NULL: not opened
    const pjrt_api *api;
    char stablehlo[32]; // "1.13.3": the latest that it reads; "" when it does not say
} hone_xla_plugin;

// Opens the library, which is never unloaded, and checks it. HONE_UNAVAILABLE: it cannot be opened, HONE_INCOMPATIBLE:
// it is none, or of another version; with what to do. A plugin starts threads, at the latest with its first client.
hone_status hone_xla_plugin_open(const hone_allocator *allocator, hone_xla_plugin *plugin, hone_error *err);
void hone_xla_plugin_close(const hone_allocator *allocator, hone_xla_plugin *plugin);
bool hone_xla_has(const hone_xla_plugin *plugin, pjrt_slot slot);

// Calls a function that every plugin has. Fails in the plugin's words: "Compile: ... (code 3)".
// Returns: HONE_OK; HONE_OUT_OF_MEMORY (the device has none left); HONE_INCOMPATIBLE; HONE_INVALID_ARGUMENT;
// HONE_UNAVAILABLE;
//          HONE_UNSUPPORTED; else HONE_KERNEL_FAILED.
hone_status hone_xla_call(
    const hone_xla_plugin *plugin, pjrt_slot slot, void *arguments, const char *what, hone_error *err);
// The same where nobody waits for words: destroys the error.
hone_status hone_xla_call_quietly(const hone_xla_plugin *plugin, pjrt_slot slot, void *arguments);
// Gives an object back: destroy of an event, a buffer, an executable. NULL is fine.
void hone_xla_destroy(const hone_xla_plugin *plugin, pjrt_slot slot, void *object);

// places.c: where the plugins of this machine lie. HONE_PJRT_PLUGIN names them, "cpu=PATH,cuda=PATH", or one whose name
// says what it is for; else they are looked for where Python's packages lie.
//   out  [XLA_KIND_COUNT]: each gets a path, or nothing
// HONE_INVALID_ARGUMENT: the variable names a kind that there is not, HONE_OUT_OF_MEMORY.
hone_status hone_xla_find_plugins(hone_buffer out[XLA_KIND_COUNT], hone_error *err);

#endif
