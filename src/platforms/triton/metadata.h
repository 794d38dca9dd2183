// Reads the metadata that Triton writes for a cubin, and derives the launch from it: how many threads, how much shared
// memory, which pointers follow the author's own arguments.
#ifndef HONE_PLATFORMS_TRITON_METADATA_H
#define HONE_PLATFORMS_TRITON_METADATA_H

#include "platforms/shared/launch.h"

#include <stdbool.h>

enum { HONE_TRITON_NAME_SIZE = 256, HONE_TRITON_DESCRIPTORS = 8 };

// A tensor descriptor that the host creates: on sm_90 and later a tensor map with this box.
typedef struct hone_triton_descriptor {
    uint32_t rank, box[HONE_MAP_RANK]; // elements, from the outermost dim on
    uint32_t swizzle;                  // bytes, as in map(TENSOR, SWIZZLE, BOX...)
} hone_triton_descriptor;

typedef struct hone_triton_metadata {
    char name[HONE_TRITON_NAME_SIZE]; // of the function
    char version[32];                 // Triton's: "3.9.0"
    uint32_t threads;                 // of a block
    uint32_t shared_bytes;            // dynamic shared memory
    uint32_t blocks;                  // of a cluster, for each program of the grid; 1: no clusters
    uint64_t scratch_bytes;           // global memory that each block needs in addition to its tensors
    uint64_t scratch_align;
    uint32_t trailing; // pointers that Triton has added after the arguments; the first is the scratch memory's
    int capability;    // 90
    uint32_t descriptor_count;
    hone_triton_descriptor descriptors[HONE_TRITON_DESCRIPTORS]; // in the order of the arguments
    bool cooperative, programmatic;
} hone_triton_metadata;

// text: a JSON object as Triton writes it, at least {"name", "triton_version", "target", "num_warps", "shared"}.
// Returns: HONE_OK; HONE_CORRUPT (a field is missing, or has another type); HONE_INCOMPATIBLE (another backend, an
// older Triton, descriptors other than of tiles, instrumentation); HONE_OUT_OF_MEMORY.
hone_status hone_triton_metadata_read(const char *text, hone_triton_metadata *out, hone_error *err);

#endif
