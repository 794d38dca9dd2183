// In double, query by query, for any strides. The keys and values of a head are converted once.
#include "kernels/common/half.h"
#include "kernels/common/scratch.h"
#include "kernels/dot_product_attention/biased.h"

#include <math.h>

typedef struct reference {
    const hone_biased *problem;
    double *keys, *values; // [kv_len][dim], [kv_len][value_dim]
    double *query, *sums;  // [dim], [value_dim]
    double *weights;       // [kv_len]
} reference;

static void convert(
    double *out, const char *from, int64_t count, int64_t stride, int64_t length, int64_t step, hone_dtype_id dtype)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t x = 0; x < length; x++)
            out[i * length + x] = (double)hone_element_get(from, dtype, i * stride + x * step);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static double logit(const reference *r, int64_t batch, int64_t head, int64_t position, int64_t key)
{
    const hone_biased *b = r->problem;
    const hone_attention *p = &b->attention;
    const double sum = p->scale * dot(r->query, r->keys + key * p->dim, p->dim);
    const double bias = b->bias.data != NULL
                            ? (double)hone_element_get(
                                  b->bias.data, b->bias.dtype, hone_biased_at(&b->bias, batch, head, position, key))
                            : 0;
    if (!p->has_cap) return sum + bias;
    return b->has_weights ? p->cap * tanh(sum / p->cap) + bias : p->cap * tanh((sum + bias) / p->cap);
}

// Computes the weights of all keys, which are equal for a query that sees no key.
static void weigh(const reference *r, int64_t batch, int64_t head, int64_t position)
{
    const hone_attention *p = &r->problem->attention;
    int64_t first, last;
    bool blind = true;
    double highest = -INFINITY, sum = 0;
    hone_biased_range(r->problem, position, &first, &last);
    for (int64_t j = 0; j < p->kv_len; j++) {
        const bool seen = j >= first && j < last && hone_biased_sees(r->problem, batch, head, position, j);
        r->weights[j] = seen ? logit(r, batch, head, position, j) : -INFINITY;
        if (seen) highest = fmax(highest, r->weights[j]);
        blind &= !seen;
    }
    for (int64_t j = 0; j < p->kv_len; j++) {
        const bool seen = !isinf(r->weights[j]) || r->weights[j] > 0;
        r->weights[j] = blind ? 1 : seen ? exp(r->weights[j] - highest) : 0;
        sum += r->weights[j];
    }
    for (int64_t j = 0; j < p->kv_len; j++)
        r->weights[j] /= sum;
}

static void put_weights(const reference *r, int64_t batch, int64_t head, int64_t position, bool is_void)
{
    const hone_attention *p = &r->problem->attention;
    char *out = hone_attention_at(&p->weights, hone_element_size(p->dtype), batch, position, head);
    for (int64_t j = 0; j < p->kv_len; j++)
        hone_element_put(out, p->dtype, j * p->weights.element, is_void ? 0 : (float)r->weights[j]);
}

static void attend(const reference *r, int64_t batch, int64_t head, int64_t position)
{
    const hone_attention *p = &r->problem->attention;
    const int64_t size = hone_element_size(p->dtype);
    const bool is_void = hone_biased_is_void(r->problem, batch, position);
    char *out = hone_attention_at(&p->out, size, batch, position, head);
    convert(
        r->query, hone_attention_at(&p->query, size, batch, position, head), 1, 0, p->dim, p->query.element, p->dtype);
    weigh(r, batch, head, position);
    if (r->problem->has_weights) put_weights(r, batch, head, position, is_void);
    for (int64_t x = 0; x < p->value_dim; x++)
        r->sums[x] = 0;
    for (int64_t j = 0; j < p->kv_len && !is_void; j++)
        for (int64_t x = 0; x < p->value_dim && r->weights[j] != 0; x++)
            r->sums[x] += r->weights[j] * r->values[j * p->value_dim + x];
    for (int64_t x = 0; x < p->value_dim; x++)
        hone_element_put(out, p->dtype, x * p->out.element, (float)r->sums[x]);
}

static void attend_head(const reference *r, int64_t batch, int64_t kv_head)
{
    const hone_attention *p = &r->problem->attention;
    const int64_t size = hone_element_size(p->dtype);
    const char *key = hone_attention_at(&p->key, size, batch, 0, kv_head);
    const char *value = hone_attention_at(&p->value, size, batch, 0, kv_head);
    convert(r->keys, key, p->kv_len, p->key.position, p->dim, p->key.element, p->dtype);
    convert(r->values, value, p->kv_len, p->value.position, p->value_dim, p->value.element, p->dtype);
    for (int64_t position = 0; position < p->q_len; position++)
        for (int64_t i = 0; i < p->group; i++)
            attend(r, batch, kv_head * p->group + i, position);
}

hone_status hone_biased_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_biased b = hone_biased_of(plan, args);
    const hone_attention *p = &b.attention;
    const int64_t dims = p->dim + p->value_dim;
    double *memory = hone_scratch_get((size_t)((p->kv_len + 1) * (dims + 1)) * sizeof *memory);
    if (memory == NULL) return HONE_OUT_OF_MEMORY;
    reference r = {.problem = &b, .keys = memory};
    r.values = r.keys + p->kv_len * p->dim;
    r.query = r.values + p->kv_len * p->value_dim;
    r.sums = r.query + p->dim;
    r.weights = r.sums + p->value_dim;
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t kv_head = 0; kv_head < p->kv_heads; kv_head++)
            attend_head(&r, batch, kv_head);
    return HONE_OK;
}
