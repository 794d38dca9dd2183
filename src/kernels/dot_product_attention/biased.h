// Attention with the options of other libraries: a bias on the logits, a mask, segments, a two-sided window.
//
//   logit = cap(scale q k^T + bias); a key counts if causal, window, mask and segments let the query see it
//
// A query that sees no key gets the mean of all values, as a softmax over equal logits gives it; a query whose segment
// is below 0 gets zeros. Dims of 1 in bias and mask are broadcast.
//
// biased_attention has the weights as a second result, and ejkernel's rules for them: the bias is added to the capped
// logit, and if there is a bias the mask is ignored.
#ifndef HONE_KERNELS_DOT_PRODUCT_ATTENTION_H
#define HONE_KERNELS_DOT_PRODUCT_ATTENTION_H

#include "kernels/flash_attention/problem.h"

// The order of values.
enum {
    BIASED_QUERY,
    BIASED_KEY,
    BIASED_VALUE,
    BIASED_BIAS,
    BIASED_MASK,
    BIASED_Q_SEGMENTS,
    BIASED_KV_SEGMENTS,
    BIASED_OUT,
    BIASED_CAUSAL,
    BIASED_SOFTMAX_SCALE,
    BIASED_WINDOW_LEFT,
    BIASED_WINDOW_RIGHT,
    BIASED_LOGITS_SOFT_CAP,
    BIASED_COUNT
};
// The weights are a second result, after out, so all later values are one place further on.
enum { BIASED_WEIGHTS = BIASED_OUT + 1 };
// The parameters of the space.
enum { BIASED_ROWS, BIASED_THREADS };

// An array [batch, heads, q_len, kv_len]; strides in elements, 0 for a broadcast axis.
typedef struct hone_biased_array {
    const char *data; // NULL: there is none
    hone_dtype_id dtype;
    int64_t batch, head, position, key;
} hone_biased_array;

typedef struct hone_biased {
    hone_attention attention; // without window and causal, which are in `range`
    bool has_weights;
    hone_biased_array bias, mask;
    hone_biased_array q_segments, kv_segments; // [batch, ..., position] and [batch, ..., key]
    bool causal, has_left, has_right;
    int64_t left, right;
} hone_biased;

hone_biased hone_biased_of(const hone_plan *plan, const hone_value *args);
hone_biased hone_biased_of_call(const hone_call *call);
// The keys [*out_first, *out_last) that causal and window let a position see; both 0 if there are none.
void hone_biased_range(const hone_biased *problem, int64_t position, int64_t *out_first, int64_t *out_last);
// Whether mask and segments let a query see a key.
bool hone_biased_sees(const hone_biased *problem, int64_t batch, int64_t head, int64_t position, int64_t key);
// Whether the query's segment is below 0.
bool hone_biased_is_void(const hone_biased *problem, int64_t batch, int64_t position);
// The element of the array at a key.
static inline int64_t hone_biased_at(
    const hone_biased_array *array, int64_t batch, int64_t head, int64_t position, int64_t key)
{
    return batch * array->batch + head * array->head + position * array->position + key * array->key;
}

hone_run_function hone_biased_reference;
hone_run_function hone_biased_portable, hone_biased_avx2, hone_biased_avx512;

#endif
