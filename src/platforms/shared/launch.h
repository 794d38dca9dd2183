// The launch of a kernel's code, evaluated for one plan: grid, block, arguments, macros. Shared by platforms that
// launch kernels of threads.
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
    uint32_t finish_grid[3], finish_block[3]; // of the function that is launched after the first; all 0: none
    uint32_t shared_bytes;
    uint32_t flags; // HONE_CODE_*
} hone_launch;

// The limits of a launch on a platform, for all devices that current drivers know; the device's own limits are checked
// when the code is loaded.
typedef struct hone_launch_rules {
    uint32_t grid[3], block[3], cluster[3], threads;
    bool has_local;  // local memory is an argument, local(BYTES)
    bool has_maps;   // a tensor map for a copy engine is an argument, map(TENSOR, SWIZZLE, BOX...)
    bool has_values; // none, bool(...), text(...), [1, 2], view(...) are arguments; results may follow "->"
} hone_launch_rules;

typedef enum hone_argument_kind {
    HONE_ARGUMENT_TENSOR,   // the address of a tensor's element [0, 0, ...]
    HONE_ARGUMENT_BITS,     // a scalar that the plan fixes
    HONE_ARGUMENT_SCALAR,   // a scalar that each run provides: one that the call key ignores
    HONE_ARGUMENT_SCRATCH,  // the address of the run's scratch memory
    HONE_ARGUMENT_LOCAL,    // local memory of a work-group, bits bytes; on opencl
    HONE_ARGUMENT_RETURNED, // a result that the code returns instead of writing it to an argument
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
    HONE_ARGUMENT_TEXT,     // bits: its offset in the plan's texts and lists; NUL-terminated
    HONE_ARGUMENT_INTEGERS, // likewise, of 8 bytes each; for a TENSOR: the shape in which it is passed
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
            uint8_t last[HONE_MAP_RANK]; // the size of each dim of the box, minus 1
            uint8_t rank, swizzle;       // width of the swizzle in bytes, with units of 16 bytes: 0, 32, 64 or 128
        } map;
    } as;
} hone_argument;

// Appends the source of a plan's code, NUL-terminated: the text that it was registered with, or the file of its pack,
// whose digest is checked each time.
hone_status hone_launch_source(const hone_plan *plan, hone_buffer *out, hone_error *err);

// HONE_UNSUPPORTED with the value that is out of range; HONE_INVALID_ARGUMENT for an invalid expression.
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
// The same, also with texts and lists of integers, which are appended to objects.
hone_status hone_launch_values(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_buffer *objects,
    hone_error *err);
// The bytes of scratch memory that a run needs, 0 if its code asks for none; and the index of the plan's argument that
// points to it.
//   out_index  may be NULL; written if there is one
hone_status hone_launch_scratch(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_argument *arguments,
    uint32_t count,
    size_t *out_bytes,
    uint32_t *out_index,
    hone_error *err);
// Appends "-DNAME=VALUE" and a NUL for each parameter of the space and each constant of the code, and "-Dhone_x_f32=1"
// (its dtype) for each tensor x of the call.
hone_status hone_launch_macros(
    const hone_allocator *allocator, const hone_plan *plan, hone_buffer *out, hone_error *err);
// Reads "NAME = EXPRESSION, ..." and passes each pair to put. field: the name of the text in error messages.
hone_status hone_launch_pairs(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const struct hone_scalar *value),
    void *ctx,
    hone_error *err);
// Whether a run provides device memory to borrow from. A caller with an older header provides none.
static inline bool hone_launch_is_lent(const hone_execution *execution)
{
    return execution != NULL && execution->struct_size >= offsetof(hone_execution, memory) + sizeof(void *) &&
           execution->take != NULL && execution->give_back != NULL;
}
// A digest of a launch of code with these arguments: if code, launch and arguments are equal, the same code runs.
//   code  the code's own
uint64_t hone_launch_digest(uint64_t code, const hone_launch *launch, const hone_argument *arguments, uint32_t count);
// A scalar of a run, as the bits of its type.
uint64_t hone_argument_bits(hone_argument_type type, const hone_value *value);

#endif
