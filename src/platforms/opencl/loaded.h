// A compiled kernel with its launch: the state of a plan.
#ifndef HONE_PLATFORMS_OPENCL_LOADED_H
#define HONE_PLATFORMS_OPENCL_LOADED_H

#include "os/mutex.h"
#include "platforms/opencl/program.h"
#include "platforms/shared/launch.h"

// The kernel in one context: hone's own, or that of a caller's queue or buffers.
typedef struct hone_opencl_binding {
    opencl_context *context;
    opencl_queue *queue; // for runs that provide none
    opencl_program *program;
    uint64_t digest; // of the program; 0 if it is not known
    opencl_kernel *kernel;
    hone_mutex mutex; // only one thread at a time sets the arguments and starts the kernel
    struct hone_opencl_binding *_Atomic next;
} hone_opencl_binding;

typedef struct hone_opencl_loaded {
    hone_platform_instance *instance;
    hone_opencl_device *device;
    hone_opencl_source source;
    hone_buffer options, file; // file: of a pack
    const char *entry;
    size_t global[3], local[3];
    size_t scratch_bytes; // in a buffer for each run; 0: none
    uint64_t digest;      // of the program in hone's own context, its launch and its arguments; 0 if it is not known
    uint32_t count;
    hone_argument arguments[HONE_MAX_ARGUMENTS];
    hone_mutex growing;        // guards the list of bindings
    hone_opencl_binding first; // hone's own
} hone_opencl_loaded;

// Compiles for a context, which it retains, and sets the arguments that no run changes.
hone_status hone_opencl_bind(
    const hone_opencl_loaded *loaded, opencl_context *context, hone_opencl_binding *binding, hone_error *err);
void hone_opencl_unbind(const hone_opencl_loaded *loaded, hone_opencl_binding *binding);

#endif
