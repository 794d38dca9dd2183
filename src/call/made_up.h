// Calls of a signature that nobody asked: dtypes, sizes, scalars and optional tensors by a seed. What a kernel is tried on
// before it answers, and what the tests walk every kernel with.
#ifndef HONE_CALL_MADE_UP_H
#define HONE_CALL_MADE_UP_H

#include "call/signature.h"

enum { HONE_MADE_UP_LEADING = 3 }; // dims that "..." stands for, at most

// A call that is being made. Zero but for the first four; free the memory it lies in when the call was bound.
typedef struct hone_made_up {
    const hone_signature *signature;
    hone_device device;
    uint64_t state;        // of the random numbers: seeds that are neighbours give unrelated calls
    int64_t most_elements; // of a tensor
    bool leaves_none;      // of the scalars at its default, where another value is known
    // Sets the strides, and the address, of a tensor that has its shape. NULL: all are dense, and have no data.
    void (*lay_out)(void *ctx, hone_tensor *tensor, size_t index, int64_t *strides);
    void *ctx;
    const hone_call *like; // optional tensors are there as they are here; NULL: each by a draw
    size_t turned;         // but this one, counted from 1, which is there where it is not; 0: none
    hone_scalar slots[HONE_MAX_SLOTS];
    hone_dtype_id dtypes[HONE_MAX_VARIABLES];
    int64_t leading[HONE_MADE_UP_LEADING];
    int32_t leading_count;
    hone_value values[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
} hone_made_up;

// A number below count.
uint64_t hone_made_up_draw(hone_made_up *m, uint64_t count);
// The steps of one call, in their order. The sizes of dims (slots of kind SLOT_DIM) and m->leading are the caller's.
void hone_made_up_draw_dtypes(hone_made_up *m);
// Half of the scalars are left at their default, or none.
void hone_made_up_draw_scalars(hone_made_up *m);
// False: a shape cannot be told, or is too large.
bool hone_made_up_make_tensors(hone_made_up *m);
// All of it, for the device and with the dtypes of another call of the signature, and with small sizes that are odd, or
// multiples of what blocks of kernels are made of. Of two seeds that follow each other one leaves no scalar at its
// default. *out NULL with HONE_OK: the signature refuses this one.
hone_status hone_made_up_call(hone_allocator allocator, const hone_call *like, uint64_t seed, hone_call **out);
// The same call with smaller dims: the largest is halved, as long as its arrays take more than most_bytes together. A dim
// stays where the signature refuses the call without it, or takes(ctx, call) does. Arrays are dense, and aligned as the
// other's. *out NULL with HONE_OK: none is small enough.
hone_status hone_made_up_smaller(
    hone_allocator allocator,
    const hone_call *like,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out);

// The same with every dim halved that may be, whatever the arrays take, and then as above. *out NULL with HONE_OK: none may
// be, or none is small enough.
hone_status hone_made_up_half(
    hone_allocator allocator,
    const hone_call *like,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out);

// The same with every dim doubled that may be and is more than 1, as long as its arrays take no more than most_bytes
// together. *out NULL with HONE_OK: none may be.
//   other  a call whose dims have as many elements as are to be doubled; NULL: all are
hone_status hone_made_up_double(
    hone_allocator allocator,
    const hone_call *like,
    const hone_call *other,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out);

// The same call, of the same sizes, with one thing changed that says how arrays are read or what is left out: a bool, an
// optional number or text, which becomes none, or a number where it was none, an optional tensor, rows that lie apart, or a dtype.
//   number  of those that the signature and takes(ctx, call) admit, from 0 on
// *out NULL with HONE_OK: there are not so many.
hone_status hone_made_up_sibling(
    hone_allocator allocator,
    const hone_call *like,
    uint32_t number,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out);

// The same call with other sizes of two dims whose product stays: they are swapped, or one is halved and the other doubled. An array
// of both has as many elements as before.
//   number  of those that the signature and takes(ctx, call) admit, and whose arrays take no more than most_bytes together
// *out NULL with HONE_OK: there are not so many.
hone_status hone_made_up_rearranged(
    hone_allocator allocator,
    const hone_call *like,
    uint32_t number,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out);

#endif
