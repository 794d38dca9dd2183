// Code that is loaded, with its launch: the state of a plan. Immutable but for the arguments of a run, and captured.
#ifndef HONE_PLATFORMS_CUDA_LOADED_H
#define HONE_PLATFORMS_CUDA_LOADED_H

#include "platforms/cuda/instance.h"
#include "platforms/shared/launch.h"

enum { HONE_CUDA_MAPS = 8 };

// A tensor map but for the address, from the innermost dim on.
typedef struct hone_cuda_map {
    int type, swizzle; // CUDA_MAP_*
    uint32_t rank, box[HONE_MAP_RANK];
    uint64_t sizes[HONE_MAP_RANK], steps[HONE_MAP_RANK - 1]; // steps in bytes
} hone_cuda_map;

typedef struct hone_cuda_loaded {
    hone_platform_instance *instance;
    hone_cuda_gpu *gpu;
    cuda_context *context;
    cuda_library *library; // one of the two
    cuda_module *module;
    cuda_function *function, *finish; // finish NULL: one launch a run
    hone_launch launch;
    cuda_launch_attribute attributes[3];
    uint32_t attribute_count;
    size_t scratch_bytes;   // device memory that each run takes from its stream; 0: none
    uint32_t scratch_index; // of the argument that points there
    uint64_t digest;        // of the code, its launch and its arguments
    atomic_bool captured;   // a graph of the host launches it for as long as the process likes: it is never unloaded
    uint32_t map_count;
    hone_cuda_map maps[HONE_CUDA_MAPS]; // of the arguments that are some, in their order
    uint32_t count;
    hone_argument arguments[HONE_MAX_ARGUMENTS];
} hone_cuda_loaded;

// The code of a plan before it is loaded. Texts and bytes are the kernel's, or in the two buffers.
typedef struct hone_cuda_image {
    const void *bytes; // a cubin, a fatbin or PTX, with a NUL behind it
    size_t size;
    const char *entry, *finish; // finish NULL: none
    hone_buffer owned, text;
} hone_cuda_image;

// What differs between the platforms that launch through the driver: fills in launch and arguments of loaded, then
// image.
typedef hone_status hone_cuda_read(
    hone_cuda_loaded *loaded, const hone_plan *plan, hone_cuda_image *image, hone_error *err);

// load.c: reads, loads, compares with what the binary and the device say. *out_state is for hone_cuda_run and
// hone_cuda_release.
hone_status hone_cuda_load(
    hone_platform_instance *instance, const hone_plan *plan, hone_cuda_read *read, void **out_state, hone_error *err);
// Launch, arguments and source of a plan as its code has them; options: further ones of the compiler, NULL: none.
hone_status hone_cuda_read_code(
    hone_cuda_loaded *loaded, const hone_plan *plan, const char *options, hone_cuda_image *image, hone_error *err);

// maps.c: those of the arguments, tried once. HONE_UNSUPPORTED for a tensor, a box or a driver that has none.
hone_status hone_cuda_read_maps(hone_cuda_loaded *loaded, const hone_plan *plan, hone_error *err);
// Writes HONE_MAP_BYTES, aligned to HONE_MAP_ALIGN.
cuda_result hone_cuda_encode_map(const cuda_driver *driver, const hone_cuda_map *map, void *memory, void *out);

#endif
