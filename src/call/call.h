// What the rest of hone needs of calls beyond the public header: tensors' reach and overlap, elements, input
// data, comparison of signatures, what of a call was inferred.
#ifndef HONE_CALL_CALL_H
#define HONE_CALL_CALL_H

#include "base/buffer.h"
#include "base/text.h"
#include "hone/describe.h"
#include "os/os.h"

enum {
    HONE_MAX_VALUES = 64,    // parameters and results of one signature
    HONE_ORDINARY_ALIGN = 16 // bytes; data aligned to this or more needs no mention in a key
};

// --- tensors

// The strides in elements, those of a dense row-major tensor where the tensor has none. tensor->ndim are written.
void hone_tensor_strides(const hone_tensor *tensor, int64_t out_strides[HONE_MAX_RANK]);
// Bytes from [0, 0, ...] to the element of an index in row-major order, which the tensor has.
int64_t hone_tensor_offset(const hone_tensor *tensor, int64_t index);
// The alignment class of the data: 0 is ordinary (16 bytes or more, or no data), else the largest power of two
// that divides the address.
uint32_t hone_tensor_align(const hone_tensor *tensor);
// True when no two elements share memory, so that the tensor can be written.
bool hone_tensor_keeps_apart(const hone_tensor *tensor);
// True when some byte belongs to both tensors. Exact but for strides so odd that the search is cut short (then true).
bool hone_tensors_overlap(const hone_tensor *a, const hone_tensor *b);

// Whether a name of an expression can mean something in a call of the signature: a dim, a scalar, a fact about a tensor
// ("x.shape" with an index, "x.ndim", "x.size"; else index -1), or none for a tensor that may be left out.
bool hone_signature_knows(const hone_signature *signature, hone_view name, int64_t index);

// "cpu", "cuda", ...; NULL for a type that hone does not know.
const char *hone_device_type_name(int32_t type);
// Whether the data of its tensors are handles, which say nothing of where bytes lie.
bool hone_device_has_handles(int32_t type);
// 0 when there is no such name.
int32_t hone_device_type_by_name(hone_view name);

// --- elements

// Element number `index` of a dense array, as a double; the real part of a complex number. NaN for an unknown dtype.
double hone_element_load(hone_dtype_id dtype, const void *array, int64_t index);
// Stores value, rounded to nearest even; out of range: infinity where the dtype has one, else the largest (floats)
// or the nearest bound (integers). NaN becomes 0 in integers. The imaginary part of a complex number becomes 0.
void hone_element_store(hone_dtype_id dtype, void *array, int64_t index, double value);

// --- signatures

// Compares two signatures: names in order, kinds, roles of results, defaults, types after normalisation (dims
// and type variables may be named otherwise). Parameters that only tune (block_m, num_warps ...) are left out, and those
// of role `given` that only one of them has.
//   report   called with one line a mismatch; may be NULL
// Returns true when they agree; *out_failed (may be NULL) is set when memory was short and the answer means nothing.
bool hone_signature_compare(
    const hone_signature *a,
    const hone_signature *b,
    void (*report)(void *ctx, const char *line),
    void *ctx,
    bool *out_failed);
hone_signature *hone_signature_retain(hone_signature *signature);
// True for the names of parameters that only tune and do not belong to an algorithm's interface.
bool hone_is_tuning_parameter(const char *name);
// The index of an algorithm's name and version inside call text or a signature is found by hone_call_text_name.

// --- calls

// HONE_INVALID_ARGUMENT if the call is of another signature; `from` is where the error is said to be found.
hone_status hone_call_check(const hone_call *call, const hone_signature *signature, const char *from, hone_error *err);

// What stands where a parameter is left out, one a parameter and result; expressions have the value that the call's dims
// give them.
const hone_value *hone_call_defaults(const hone_call *call);
// The calls under whose keys the answer of a call may stand, in the order in which they are asked for:
//   the call itself; as it was spelled before defaults could be expressions; the same two of its dims rounded up, from before
//   scalars could be `#any`; its bucket; and the general one: the bucket with other scalars of role `any`, for where the
//   bucket's kernel does not take the call's. Those that are the same, or that the signature refuses, stand there once or not.
enum { HONE_STAND_INS = 6 };
typedef struct hone_stand_ins {
    hone_call *calls[HONE_STAND_INS];
    size_t count;
    size_t exact;                      // so many are the call itself
    const hone_call *bucket, *general; // among them; NULL: there is none
} hone_stand_ins;

hone_status hone_call_stand_ins(const hone_call *call, hone_stand_ins *out, hone_error *err);
void hone_stand_ins_deinit(hone_stand_ins *stand_ins);
// The call among them that has a key; NULL when none has.
const hone_call *hone_stand_ins_find(const hone_stand_ins *stand_ins, const char *key);
// The call with other scalars of role `any`, which stands for all that its kernel may not take. NULL: it has none.
hone_status hone_call_general(const hone_call *call, hone_call **out, hone_error *err);
// True for a result that was not given but inferred (its tensor has no data).
bool hone_call_is_inferred(const hone_call *call, size_t index);
// Its tensors have no data from here on; what is known of their places, their alignment, stays. Of who made the call.
void hone_call_forget_data(hone_call *call);
// True for a call made with describe, from text or from a spec: its tensors may have no data.
bool hone_call_is_description(const hone_call *call);
// The alignment class of the tensor at index: as hone_tensor_align.
uint32_t hone_call_align(const hone_call *call, size_t index);
// True when the tensor at index is row-major and its data aligned to 16 bytes or more.
bool hone_call_is_ordinary(const hone_call *call, size_t index);
// True when some dim of the signature is bucketed ("~pow2").
bool hone_signature_has_buckets(const hone_signature *signature);

// Fills tensor, which has the dtype and shape of the call's parameter at index and host memory of its own, with
// data for tuning: the signature's generator, or without one normal(0, 1) for floats and complex numbers, small
// uniform integers, fair bools. The same call, index and seed give the same data on every machine, with any pool.
//   scale  of floats: what their generator makes is multiplied by it. Above 1: integers without a generator are as large
//          as no result overflows by, half of those with one are at the ends of what it says,
//          and floats of ones() and zeros() are near these
//   pool   makes large tensors by its threads; NULL: the calling thread alone
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (a generator that does not fit: uniform(5, 1), permutation into too small a
// dtype).
HONE_MUST_CHECK hone_status hone_generate(
    const hone_call *call,
    size_t index,
    const hone_tensor *tensor,
    uint64_t seed,
    double scale,
    hone_pool *pool,
    hone_error *err);

// Whether a scale above 1 makes other numbers of the tensor at index, which are no multiples.
bool hone_has_limits(const hone_call *call, size_t index);

// Which scalars of a call get other values. A kernel may take one kind of them, and not the other.
typedef enum hone_scalar_change {
    HONE_CHANGE_NOTHING,
    HONE_CHANGE_SCALARS, // of both kinds
    HONE_CHANGE_FLOATS,
    HONE_CHANGE_SWITCHES, // bools on which no shape depends
    HONE_CHANGE_IGNORED,  // floats and bools of role "ignore", which one plan takes as each run brings them
    HONE_CHANGE_SIGNS,    // floats of role "any", whose decision is one for all values: they get the other sign
    HONE_SCALAR_CHANGES
} hone_scalar_change;

// made_up.c: changes a call's values, defaults filled in. Integers and texts stay: what they mean nobody says. So does a float that is
// none, or not finite. False: nothing was changed.
bool hone_change_scalars(const hone_signature *signature, hone_scalar_change change, hone_value *values);

#endif
