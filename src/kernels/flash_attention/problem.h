// Attention as its kernels see it, for all operations: out = softmax(mask(cap(scale q k^T))) v.
//
// The rules are ejkernel's. Positions of queries and keys both count from 0, also when q_len differs from kv_len:
//   causal          query i sees keys 0 to i
//   sliding_window  query i sees keys i - window to i + window, both included
//   logits_soft_cap logits become cap * tanh(logit / cap), after the scale and before the mask
// A query that sees no key gets the mean of all values, as a softmax over equal masked logits gives it.
#ifndef HONE_KERNELS_FLASH_ATTENTION_PROBLEM_H
#define HONE_KERNELS_FLASH_ATTENTION_PROBLEM_H

#include "hone/kernel.h"

// Strides, in elements, of batch, position and head; inside a head they are 1 except in the reference.
typedef struct hone_attention_array {
    char *data;
    int64_t batch, position, head, element;
} hone_attention_array;

typedef struct hone_attention {
    hone_attention_array query, key, value, out;
    hone_attention_array weights; // [batch, heads, q_len, kv_len]; data NULL if they are not a result
    hone_dtype_id dtype;
    int64_t batch, q_len, heads, kv_heads, group, kv_len, dim, value_dim; // group = heads / kv_heads
    double scale, cap;
    bool causal, has_window, has_cap;
    int64_t window;
} hone_attention;

// The positions of an operation's scalars among its values; -1 for one that it lacks.
typedef struct hone_attention_form {
    int results; // 1: out; 2: out and weights
    int causal, softmax_scale, sliding_window, logits_soft_cap;
} hone_attention_form;

// Order of values: query, key, value, results, scalars.
hone_attention hone_attention_of(const hone_plan *plan, const hone_value *args, const hone_attention_form *form);
// The same from a call, whose pointers are not valid.
hone_attention hone_attention_of_call(const hone_call *call, const hone_attention_form *form);

// The keys [*out_first, *out_last) that the query at a position sees; both 0 if there are none.
static inline void hone_attention_range(
    const hone_attention *problem, int64_t position, int64_t *out_first, int64_t *out_last)
{
    int64_t first = 0, last = problem->kv_len;
    if (problem->causal && position + 1 < last) last = position + 1;
    if (problem->has_window && position - problem->window > first) first = position - problem->window;
    if (problem->has_window && position + problem->window + 1 < last) last = position + problem->window + 1;
    bool some = first < last;
    *out_first = some ? first : 0;
    *out_last = some ? last : 0;
}

// The element of batch, position and head.
static inline char *hone_attention_at(
    const hone_attention_array *array, int64_t size, int64_t batch, int64_t position, int64_t head)
{
    return array->data + (batch * array->batch + position * array->position + head * array->head) * size;
}

// out[batch, position of row, head of row] = mean of the values of kv_head. Rows are the queries of one kv_head:
// position by position, with the heads of the group inside.
void hone_attention_mean(const hone_attention *problem, int64_t batch, int64_t kv_head, int64_t row);

// What the tables of the operations share.
bool hone_attention_supports(const hone_call *call, const hone_attention_form *form, hone_error *why);
void hone_attention_model(const hone_call *call, const hone_attention_form *form, hone_cost *out_cost);

#endif
