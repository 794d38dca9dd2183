// From the arrays that a call reads to the arguments of a signature.
#ifndef HONE_OFFLINE_OPERANDS_H
#define HONE_OFFLINE_OPERANDS_H

#include "hone/signature.h"
#include "offline/find.h"

// One array type of a program.
typedef struct hone_array {
    hone_dtype dtype;
    int32_t ndim;
    int64_t dims[HONE_MAX_RANK];
    uint32_t source; // of the types that a call reads: vmap's dims may be taken out of one in several ways
} hone_array;

// Reads "tensor<2x3xf32>" or "f32[2,3]{1,0}". False for tuples, unknown dtypes, dynamic or too many dims.
bool hone_array_read(hone_view type, hone_array *out);

// Where a type like the tensor stands among the operands, from 0; HONE_OPERANDS_NONE: nowhere. Like it are its own
// dims, with `batches` more that vmap put in. XLA writes its own reshapes into the operations of HLO text: there an
// array of as many elements is like it too, but less so than any with the dims: HONE_OPERANDS_RESHAPED is added.
enum { HONE_OPERANDS_RESHAPED = 1000, HONE_OPERANDS_NONE = 2000 };
int hone_operands_find(const hone_operands *operands, const hone_tensor *tensor, uint32_t batches);

// Tries arguments for a signature: one value a parameter, arrays where it asks for tensors that must be there, none
// elsewhere; the likeliest first. visit also sees all arrays that are read; it returns true to end the search, and so
// does the function then.
//   exhaustive  also batch dims in unusual places
typedef bool hone_arguments_visit(
    void *ctx, const hone_value *values, size_t count, const hone_array *arrays, size_t array_count);
bool hone_arguments_try(
    const hone_signature *signature, const hone_found *found, bool exhaustive, hone_arguments_visit *visit, void *ctx);

#endif
