// Loaded code with its launch: the state of a plan. Immutable, except for the arguments of a run, and `captured`.
#ifndef HONE_PLATFORMS_CUDA_LOADED_H
#define HONE_PLATFORMS_CUDA_LOADED_H

#include "platforms/cuda/instance.h"
#include "platforms/shared/launch.h"

enum { HONE_CUDA_MAPS = 8 };

// A tensor map without its address; dims begin with the innermost.
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
    cuda_function *function, *finish; // finish NULL: a run is one launch
    hone_launch launch;
    cuda_launch_attribute attributes[3];
    uint32_t attribute_count;
    size_t scratch_bytes;   // device memory that each run takes in stream order; 0: none
    uint32_t scratch_index; // of the argument that points to it
    uint64_t digest;        // of the code, its launch and its arguments
    atomic_bool captured;   // a graph of the host may launch it at any later time: it is never unloaded
    uint32_t map_count;
    hone_cuda_map maps[HONE_CUDA_MAPS]; // of the arguments that are tensor maps, in their order
    uint32_t count;
    hone_argument arguments[HONE_MAX_ARGUMENTS];
} hone_cuda_loaded;

// The code of a plan before it is loaded. Texts and bytes belong to the kernel, or are in the two buffers.
typedef struct hone_cuda_image {
    const void *bytes; // a cubin, a fatbin or PTX, followed by a NUL
    size_t size;
    const char *entry, *finish; // finish NULL: none
    hone_buffer owned, text;
} hone_cuda_image;

// The step that differs between the platforms that launch through the driver: fills in launch and arguments of loaded,
// then image.
typedef hone_status hone_cuda_read(
    hone_cuda_loaded *loaded, const hone_plan *plan, hone_cuda_image *image, hone_error *err);

// load.c: reads and loads the code, and checks it against the binary's and the device's limits. *out_state is for
// hone_cuda_run and hone_cuda_release.
hone_status hone_cuda_load(
    hone_platform_instance *instance, const hone_plan *plan, hone_cuda_read *read, void **out_state, hone_error *err);
// Reads launch, arguments and source from a plan's code; options: further compiler options, NULL if there are none.
hone_status hone_cuda_read_code(
    hone_cuda_loaded *loaded, const hone_plan *plan, const char *options, hone_cuda_image *image, hone_error *err);

// maps.c: the tensor maps of the arguments, each tried once. HONE_UNSUPPORTED if the tensor, the box or the driver does
// not support it.
hone_status hone_cuda_read_maps(hone_cuda_loaded *loaded, const hone_plan *plan, hone_error *err);
// Writes HONE_MAP_BYTES, aligned to HONE_MAP_ALIGN.
cuda_result hone_cuda_encode_map(const cuda_driver *driver, const hone_cuda_map *map, void *memory, void *out);

#endif
