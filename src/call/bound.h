// The parts of a call. Everything lives in the call's arena.
#ifndef HONE_CALL_BOUND_H
#define HONE_CALL_BOUND_H

#include "base/hash.h"
#include "call/signature.h"

struct hone_call {
    atomic_uint references;
    hone_arena arena;
    hone_signature *signature;
    hone_value *values;            // one a parameter and result
    hone_value *defaults;          // the same: what stands where one is left out; none where nothing does
    hone_tensor *tensors;          // the same; what values point to
    uint32_t *aligns;              // the same; as hone_tensor_align
    bool *inferred;                // the same
    hone_scalar *slots;            // one a slot of the signature
    bool *known;                   // the same: false for what only a none could have told
    const hone_dtype_info **types; // one a type variable; NULL: not bound
    bool description;
    bool spelled; // text and spec say defaults of dims as the numbers that they are
    hone_device device;
    const char *text, *spec;
    char key[HONE_KEY_SIZE];
};

// What a call is made from. All borrowed.
typedef struct hone_call_source {
    const hone_value *values; // in the order of values in C
    size_t count;
    const bool *given; // false: left out, so that the default stands even where none is allowed; NULL: all are given
    const uint32_t *aligns; // alignment classes of tensors without data; NULL: those of the data
    bool describe;
    bool spelled;
} hone_call_source;

hone_status hone_call_build(
    hone_allocator allocator,
    hone_signature *signature,
    const hone_call_source *source,
    hone_call **out,
    hone_error *err);
// The strides as texts and keys write them: one for each layout.
void hone_call_layout(const hone_tensor *tensor, int64_t out_strides[HONE_MAX_RANK]);
// Whether the value at index is the one that stands where it is left out.
bool hone_call_is_default(const hone_call *call, size_t index);
// Whether all that an expression reads is known.
bool hone_call_knows(const hone_call *call, const hone_expression *expression);
// Appends one argument as canonical JSON.
void hone_append_argument(hone_buffer *out, const hone_call *call, size_t index);
// Write text, and spec and key, of a call whose values are bound.
hone_status hone_call_write_text(hone_call *call, hone_error *err);
hone_status hone_call_write_spec(hone_call *call, hone_error *err);
// Rounded up to a power of two; v <= 0 and what has no such power in 64 bits as they are.
int64_t hone_round_up_pow2(int64_t v);

#endif
