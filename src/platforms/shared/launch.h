// What a kernel's code says of its launch, worked out for one plan: grid, block, arguments, macros. Platforms that
// launch kernels of threads share it.
#ifndef HONE_PLATFORMS_SHARED_LAUNCH_H
#define HONE_PLATFORMS_SHARED_LAUNCH_H

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "hone/kernel.h"

struct hone_scalar; // base/scalar.h

enum { HONE_MAX_ARGUMENTS = 64, HONE_MAP_RANK = 5, HONE_MAP_BYTES = 128, HONE_MAP_ALIGN = 64 };

typedef struct hone_launch {
    uint32_t grid[3], block[3], cluster[3];   // cluster all 1: none
    uint32_t finish_grid[3], finish_block[3]; // of the function that is launched behind the first; all 0: none
    uint32_t shared_bytes;
    uint32_t flags; // HONE_CODE_*
} hone_launch;

// What a launch of a platform may ask for on any device that a driver of today knows; the device's own limits are asked
// when the code is loaded.
typedef struct hone_launch_rules {
    uint32_t grid[3], block[3], cluster[3], threads;
    bool has_local;  // local memory is an argument, local(BYTES)
    bool has_maps;   // what a copy engine reads is one, map(TENSOR, SWIZZLE, BOX...)
    bool has_values; // none, bool(...), text(...), [1, 2], view(...) are arguments; results may stand behind "->"
} hone_launch_rules;

typedef enum hone_argument_kind {
    HONE_ARGUMENT_TENSOR,   // the address of a tensor's element [0, 0, ...]
    HONE_ARGUMENT_BITS,     // a scalar that the plan fixes
    HONE_ARGUMENT_SCALAR,   // a scalar that each run brings: one that the call key ignores
    HONE_ARGUMENT_SCRATCH,  // the address of the run's scratch memory
    HONE_ARGUMENT_LOCAL,    // local memory of a work-group, bits bytes; on opencl
    HONE_ARGUMENT_RETURNED, // a result that the code gives back in place of taking it
    HONE_ARGUMENT_MAP,      // a tensor map of NVIDIA's copy engine, HONE_MAP_BYTES aligned to HONE_MAP_ALIGN; on cuda
} hone_argument_kind;

typedef enum hone_argument_type {
    HONE_ARGUMENT_POINTER,
    HONE_ARGUMENT_I8,
    HONE_ARGUMENT_U8,
    HONE_ARGUMENT_I16,
    HONE_ARGUMENT_U16,
    HONE_ARGUMENT_I32,
    HONE_ARGUMENT_U32,
    HONE_ARGUMENT_I64,
    HONE_ARGUMENT_U64,
    HONE_ARGUMENT_F32,
    HONE_ARGUMENT_F64,
    HONE_ARGUMENT_BOOL,
    HONE_ARGUMENT_TEXT,     // bits: where it begins in the plan's texts and lists, a NUL behind it
    HONE_ARGUMENT_INTEGERS, // likewise, of 8 bytes each; of a TENSOR: the shape in which it is passed
} hone_argument_type;

typedef struct hone_argument {
    hone_argument_kind kind;
    hone_argument_type type;
    uint32_t value; // TENSOR, SCALAR, MAP: index of the run's value
    uint32_t size;  // bytes
    union {
        uint64_t bits; // BITS, LOCAL
        int32_t i32;
        float f32;
        double f64;
        struct {
            uint8_t last[HONE_MAP_RANK]; // of each dim of the box its size - 1
            uint8_t rank, swizzle;       // bytes within which 16 at a time are exchanged: 0, 32, 64 or 128
        } map;
    } as;
} hone_argument;

// Appends the source of a plan's code: the text that it was registered with, or the file of its pack, whose bytes are
// compared with their digest each time. A NUL stands behind it.
hone_status hone_launch_source(const hone_plan *plan, hone_buffer *out, hone_error *err);

// HONE_UNSUPPORTED with what is out of range; HONE_INVALID_ARGUMENT for an expression that is not one.
hone_status hone_launch_read(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_launch *out,
    hone_error *err);
//   rules  NULL: the platform has no launches of its own
hone_status hone_launch_arguments(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err);
// The same with texts and lists of integers among them, which are appended to objects.
hone_status hone_launch_values(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_buffer *objects,
    hone_error *err);
// Bytes of scratch memory that a run needs, 0 when its code asks for none; and which of the plan's arguments points
// there.
//   out_index  may be NULL; written when there is one
hone_status hone_launch_scratch(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_argument *arguments,
    uint32_t count,
    size_t *out_bytes,
    uint32_t *out_index,
    hone_error *err);
// Appends "-DNAME=VALUE" and a NUL for each parameter of the space, each constant of the code, and for each tensor x of
// the call "-Dhone_x_f32=1" (its dtype).
hone_status hone_launch_macros(
    const hone_allocator *allocator, const hone_plan *plan, hone_buffer *out, hone_error *err);
// Reads "NAME = EXPRESSION, ..." and hands each pair to put. field: what the text is called in errors.
hone_status hone_launch_pairs(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const struct hone_scalar *value),
    void *ctx,
    hone_error *err);
// Whether a run brings memory of the device to take from. A caller of an older header brings none.
static inline bool hone_launch_is_lent(const hone_execution *execution)
{
    return execution != NULL && execution->struct_size >= offsetof(hone_execution, memory) + sizeof(void *) &&
           execution->take != NULL && execution->give_back != NULL;
}
// A number for a launch of code with these arguments: where all three are equal, so is what runs.
//   code  the code's own
uint64_t hone_launch_digest(uint64_t code, const hone_launch *launch, const hone_argument *arguments, uint32_t count);
// A scalar as a run brings it, in the bits of its type.
uint64_t hone_argument_bits(hone_argument_type type, const hone_value *value);

#endif
