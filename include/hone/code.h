// Code that a platform compiles or loads: what a kernel of cuda or opencl, or of a pack, has in place of functions.
//
// Texts are expressions of the language of spaces (docs/spaces.md) over the kernel's parameters, the call's dims and
// scalars, and the device. docs/cuda.md and docs/opencl.md have complete examples. What is documented for NVIDIA
// GPUs alone is refused on opencl, where a block is a work-group and a thread a work-item.
#ifndef HONE_CODE_H
#define HONE_CODE_H

#include "hone/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HONE_CODE_COOPERATIVE = 1 << 0,        // all blocks run at the same time and may wait for each other
    HONE_CODE_PROGRAMMATIC_LAUNCH = 1 << 1 // may begin before the preceding kernel has ended
};

// One of source, file and binary is given. Zero means none, or the default.
typedef struct hone_code {
    size_t struct_size;
    const char *source; // text that is compiled for the device, with each parameter of the space as -DNAME=VALUE
    const char *file;   // a path: .cubin, .fatbin and .ptx are loaded as they are, anything else is a source
    const void *binary; // a cubin, a fatbin, or PTX; a program's binary of OpenCL
    size_t binary_size;
    const char *entry;     // the function: on cuda extern "C", on opencl a kernel
    const char *arguments; // what it takes: "x, y, i32(dim), f32(eps)": tensors by name, scalars as TYPE(EXPRESSION);
                           // an optional scalar as TYPE(NAME, EXPRESSION): the expression if it is not given;
                           // on opencl also local(BYTES), the local memory of a work-group; on cuda also
                           // map(TENSOR, SWIZZLE, BOX...), a tensor map (docs/cuda.md)
    const char *grid;      // blocks: "ceildiv(m, block_m), ceildiv(n, block_n)"; NULL means "1"
    const char *block;     // threads of a block, likewise
    const char *cluster;   // blocks of a cluster, likewise; NULL if there are no clusters
    const char *shared;    // bytes of dynamic shared memory, or NULL. Not used on opencl
    const char *constants; // further macros: "DIM = dim, ROWS = rows"
    const char *options;   // further options of the compiler, with spaces between them
    const char *condition; // what must be true of the call and the device: "dim % 8 == 0"; NULL if there is nothing
    const char *target;    // "sm_80": this compute capability or a later one; "sm_90a": exactly this; "cl_12": OpenCL
                           // 1.2 or later; NULL for any
    uint32_t align;        // of every tensor's data, in bytes; 0 selects that of its element
    uint32_t flags;        // HONE_CODE_*
    const char *scratch; // bytes of memory that a run needs beside its tensors: "4 * n"; "scratch" among the arguments
                         // is where they are: aligned to 256 on cuda and cute, to 64 on native, a buffer on opencl.
                         // NULL if a run needs no such memory
    const struct hone_pack_kernel *pack; // of a kernel that hone_pack_load has brought; a program leaves it NULL
    // A second function of the same code, with the same arguments, launched when the first has ended: it adds up what blocks
    // of the first left in scratch memory, for example. On cuda and cute. NULL if there is one function.
    const char *finish;
    const char *finish_grid, *finish_block; // its launch, like grid and block
} hone_code;

// First in an initialiser: {HONE_CODE, .source = text, ...}.
#define HONE_CODE .struct_size = sizeof(hone_code)

#ifdef __cplusplus
}
#endif
#endif
