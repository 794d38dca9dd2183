// What a call is: signatures, and arguments checked and bound to one.
//
// A signature is one line of text (docs/signatures.md):
//   matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] where T in f32, f16, bf16
// It checks a call with a clear message, builds the call key, compares two kernels of one algorithm, infers
// results, and makes inputs for tuning.
//
// The order of values in C: positional parameters, results, keyword-only parameters; trailing ones may be
// left out when they have a default or are nullable; none passed for one that is not nullable means the default.
#ifndef HONE_SIGNATURE_H
#define HONE_SIGNATURE_H

#include "hone/allocator.h"
#include "hone/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_signature hone_signature;

// Parses text. *out is the caller's (hone_signature_release); NULL after a failure.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT with the offset and what was expected; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_signature_parse(hone_allocator allocator, const char *text, hone_signature **out, hone_error *err);
// Signatures are immutable and counted; any thread.
HONE_API void hone_signature_release(hone_signature **signature);          // sets it to NULL; NULL is fine
HONE_API const char *hone_signature_name(const hone_signature *signature); // as written
// A call: the arguments of one algorithm, checked, with defaults filled in and dims bound. Immutable once
// made, counted, any thread. A call may hold data pointers (made from arguments) or none (a description).
typedef struct hone_call hone_call;

// Binds values to a signature, checking kinds, dtypes, shapes, ranks, devices, overlap of results.
// Tensors' shapes and strides are copied; data pointers are kept as given.
//   values  in the order of values in C; borrowed for the call
//   count   may be less than hone_signature_count; results may be left out as none only in a description
//   describe  true: results may be none (their shapes are inferred) and data may be NULL
// Returns: HONE_OK; HONE_INVALID_ARGUMENT with the parameter, what was given and what the signature expects:
//   "matmul: b[0] is 511 but k is 512 (from a[1])"; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_call_bind(
    hone_allocator allocator,
    hone_signature *signature,
    const hone_value *values,
    size_t count,
    bool describe,
    hone_call **out,
    hone_error *err);
// Reads call text, "matmul(f32[512,512], f32[512,512], transpose_b=true) @cpu:0", into a description. The name must
// be the signature's, and so the version where one is written.
// Returns: as hone_call_bind; HONE_INVALID_ARGUMENT with the offset and what was expected for an invalid call text.
HONE_API HONE_MUST_CHECK hone_status hone_call_parse(
    hone_allocator allocator, hone_signature *signature, const char *text, hone_call **out, hone_error *err);
HONE_API hone_call *hone_call_retain(hone_call *call);
HONE_API void hone_call_release(hone_call **call);

// One value per parameter and result, in the order of values in C, defaults filled in. Tensors point into
// the call. Borrowed from the call.
HONE_API const hone_value *hone_call_values(const hone_call *call);
// The tensor at an index; NULL for a scalar or an argument that was left out.
HONE_API const hone_tensor *hone_call_tensor(const hone_call *call, size_t index);
// The value of a named dim ("m"), a scalar parameter or "x.shape[1]"-like expression over them.
// For supports, heuristic and model functions. HONE_NOT_FOUND for an unknown name and for an argument that is
// none; HONE_INVALID_ARGUMENT for anything but an integer. A bare name allocates nothing.
HONE_API HONE_MUST_CHECK hone_status hone_call_dim(const hone_call *call, const char *name, int64_t *out_value);
// The dtype bound to a type variable, "T"; NULL when there is none.
HONE_API const hone_dtype_info *hone_call_dtype(const hone_call *call, const char *variable);
// Canonical call text and the call key. Owned by the call, computed at bind.
HONE_API const char *hone_call_text(const hone_call *call);
HONE_API const char *hone_call_key(const hone_call *call); // 16 lower-case hex digits
#ifdef __cplusplus
}
#endif
#endif
