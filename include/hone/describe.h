// What things are made of, for those who walk them: tools, bindings, platforms. Names and numbers, the parts of signatures and
// calls, what a runtime can do, what a context says.
#ifndef HONE_DESCRIBE_H
#define HONE_DESCRIBE_H

#include "hone/device.h"
#include "hone/kernel.h"
#include "hone/overlay.h"
#include "hone/policy.h"
#include "hone/runtime.h"
#include "hone/signature.h"
#include "hone/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- names

// "unsupported", "prepare", "run", "wrong", "bounds", "crash", "timeout", "traces", "unstable", "replayed", "stale",
// "impossible", "hidden", "unaligned", "racy", "partial"; "none". Static.
HONE_API const char *hone_failure_name(hone_failure failure);
// Exact lower-case names. HONE_INVALID_ARGUMENT lists the known names.
HONE_API HONE_MUST_CHECK hone_status hone_platform_parse(const char *name, hone_platform *out, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status hone_backend_parse(const char *name, hone_backend *out, hone_error *err);
// Of "default", "tune", "heuristic", "fail", "frozen".
HONE_API HONE_MUST_CHECK hone_status hone_policy_parse(const char *name, hone_policy *out, hone_error *err);

// "warm", "cold", "graph", "eager", "warm-stable", ... Static.
HONE_API const char *hone_regime_name(hone_regime regime);
HONE_API HONE_MUST_CHECK hone_status hone_regime_parse(const char *name, hone_regime *out, hone_error *err);
// The second bit of its number says whether a regime is a stable one.
static inline bool hone_regime_is_stable(hone_regime regime)
{
    return ((unsigned)regime & (unsigned)HONE_WARM_STABLE) != 0;
}
// The same regime, stable or not.
static inline hone_regime hone_regime_with(hone_regime regime, bool is_stable)
{
    const unsigned others = (unsigned)regime & ~(unsigned)HONE_WARM_STABLE;
    return (hone_regime)(others | (is_stable ? (unsigned)HONE_WARM_STABLE : 0));
}
// "cuda:0", as call text names it; "" of a type that hone does not know. At most size bytes with a NUL; returns the bytes that
// the whole takes without it.
HONE_API size_t hone_device_text(hone_device device, char *out, size_t size);

// What is special about a platform. Texts are static.
typedef struct hone_platform_traits {
    bool is_by_name_only; // a query, a list or a runtime finds it only when it is named: the template
    bool is_interpreted;  // its kernels run where an interpreter was lent (hone/interpreter.h)
    // How symbols of a library begin that are functions of this platform, and those of functions that describe one
    // (hone_pack_describe). NULL, both: a function is not known by its symbol.
    const char *exports, *describes;
} hone_platform_traits;

HONE_API HONE_MUST_CHECK hone_status
hone_platform_traits_sized(hone_platform platform, hone_platform_traits *out, size_t size, hone_error *err);
// HONE_INVALID_ARGUMENT: there is no such platform.
HONE_MUST_CHECK static inline hone_status hone_platform_traits_of(
    hone_platform platform, hone_platform_traits *out, hone_error *err)
{
    return hone_platform_traits_sized(platform, out, sizeof *out, err);
}

// --- element types and tensors

// The row of an id; NULL for an invalid number. Static memory.
HONE_API const hone_dtype_info *hone_dtype_info_of(hone_dtype_id id);
// The row by hone's name ("f32") or numpy's ("float32"); NULL if no dtype has that name. Static memory.
HONE_API const hone_dtype_info *hone_dtype_by_name(const char *name);
// Bytes from the first to one past the last element that the view touches, counted from its lowest address
// (*out_below bytes under element [0, 0, ...] when strides are negative). 0 for an empty tensor.
HONE_API HONE_MUST_CHECK hone_status
hone_tensor_span(const hone_tensor *tensor, int64_t *out_bytes, int64_t *out_below);

// --- signatures

typedef enum hone_kind {
    HONE_KIND_TENSOR,
    HONE_KIND_BOOL,
    HONE_KIND_INT,   // "i64"
    HONE_KIND_FLOAT, // "f64"
    HONE_KIND_STRING // "str"
} hone_kind;

// The part that a parameter plays in the call key. A tensor has VALUE or GIVEN.
typedef enum hone_role {
    HONE_ROLE_VALUE,  // the value itself
    HONE_ROLE_BUCKET, // an integer > 0 rounded up to a power of two, others as they are
    HONE_ROLE_IGNORE, // left out; kernels read it from their arguments
    HONE_ROLE_ANY,    // a number: the value; without a decision for it, that for any value answers
    HONE_ROLE_GIVEN   // its value; left out of the key where it has its default, so that calls keep theirs
} hone_role;

// One parameter or result. Lives as long as its signature.
typedef struct hone_parameter {
    const char *name;
    hone_kind kind;
    hone_role role;
    bool is_result;
    bool is_inout; // a result that may be exactly the memory of one parameter
    bool keyword_only;
    bool nullable;            // "?": may be none
    bool has_default;         // may be left out; always with nullable
    hone_value default_value; // scalars; NONE for a nullable parameter's "= none", and for an expression
    const char *type_text;    // the type as written, normalised: "T[n, k] if transpose_b else [k, n]"
    const char
        *default_text; // of a default computed from each call's dims: "1 / sqrt(dim)"; NULL if default_value has it
} hone_parameter;

HONE_API const char *hone_signature_version(const hone_signature *signature); // "1" when none was written
HONE_API const char *hone_signature_text(const hone_signature *signature);    // normalised
// Parameters and results in the order of values in C. index < hone_signature_count.
HONE_API size_t hone_signature_count(const hone_signature *signature);
HONE_API const hone_parameter *hone_signature_parameter(const hone_signature *signature, size_t index);
// The index of the parameter or result with that name; -1 if none has it.
HONE_API int hone_signature_find(const hone_signature *signature, const char *name);

// --- calls

// The algorithm name, and "@v" version or "", that call text starts with. out_version may be NULL.
HONE_API HONE_MUST_CHECK hone_status hone_call_text_name(
    const char *text, char *out_name, size_t name_size, char *out_version, size_t version_size, hone_error *err);
// Reads a canonical call spec (formats.md) by parameter names, also one written by ejkernel.
// Parameters that the signature does not have must be null or one of the known defaults; otherwise
// HONE_UNSUPPORTED with the parameter and its value. A spec names no device: the tensors are on cpu:0.
// Returns: HONE_OK; HONE_UNSUPPORTED (also a value that the signature cannot hold); HONE_CORRUPT (not a spec);
// HONE_INVALID_ARGUMENT (dims, types and conditions, as hone_call_bind); HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_call_from_spec(
    hone_allocator allocator,
    hone_signature *signature,
    const char *spec,
    size_t spec_size,
    hone_call **out,
    hone_error *err);
HONE_API const hone_signature *hone_call_signature(const hone_call *call);
// The device that the call's tensors live on.
HONE_API hone_device hone_call_device(const hone_call *call);
// Canonical JSON of a call. Owned by the call, computed at bind.
HONE_API const char *hone_call_spec(const hone_call *call);
// The call with every "~pow2" dim rounded up to a power of two (tensor shapes follow; no data), whose key is
// looked up after the exact one. *out is NULL when nothing in the signature is bucketed or the bucket is the call
// itself.
// upper = true: the bucket's upper end; false: its middle (3/4 of the upper end). Data pointers are dropped; a view
// that is not row-major keeps its strides. HONE_INVALID_ARGUMENT when the rounded call breaks a condition of the
// signature.
HONE_API HONE_MUST_CHECK hone_status
hone_call_bucket(const hone_call *call, bool upper, hone_call **out, hone_error *err);

// A key that the answer of a call may be stored under. Shown by hone.
typedef struct hone_lookup_key {
    const char *key;
    bool is_exact; // of the call itself, not of one that stands for it
} hone_lookup_key;

// Visits the keys that the answer of a call may stand under, in the order in which stores are asked, until visit returns false:
// first those of the call itself (is_exact), its own before earlier spellings, then those of calls that stand for it, its bucket's
// among them. Keys are borrowed for the visit.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_call_keys(const hone_call *call, bool (*visit)(void *ctx, const hone_lookup_key *key), void *ctx, hone_error *err);

// --- runtimes and operations

// Whether a platform can run here; *out_reason (may be NULL) says why not and what to install, else NULL. Static or
// runtime's memory.
HONE_API bool hone_runtime_platform(hone_runtime *rt, hone_platform platform, const char **out_reason);
// What runs the kernels of a platform without devices of its own, with versions: lines for people, cut to size bytes
// including a NUL. "": its devices tell, or the platform is not here. May load libraries. Returns the length of the
// whole text without the NUL.
HONE_API size_t hone_runtime_describe(hone_runtime *rt, hone_platform platform, char *out, size_t size);
// Dims along which a call splits into independent parts (hone_algorithm.independent); NULL if none are known.
HONE_API const char *hone_op_independent(const hone_op *op);
// The name that its algorithm is registered and stored under: lower case, without a version.
HONE_API const char *hone_op_name(const hone_op *op);
// What was registered: model, reference, tolerance and the rest, zero where it said nothing. Lives as long as the runtime.
HONE_API const hone_algorithm *hone_op_algorithm(const hone_op *op);

// --- overlays and contexts

HONE_API size_t hone_overlay_size(const hone_overlay *overlay);
// A number that is unique among all contexts of this process; 0 for NULL.
HONE_API uint64_t hone_context_number(const hone_context *context);
// A hash of a context's contents: the same in every process and runtime for contexts that are derived alike with equal
// overlays (in any order of their entries), overrides and policies; 0 for NULL and for an empty one. For things that
// outlive the process and name a context, such as compiled programs.
HONE_API uint64_t hone_context_digest(const hone_context *context);
// The policy of calls that are made under a context, which may be NULL.
HONE_API hone_policy hone_policy_of(hone_runtime *rt, const hone_context *context);

#ifdef __cplusplus
}
#endif
#endif
