// Attention in double, query by query, for any strides. The keys and values of a head are converted once.
#include "kernels/common/half.h"
#include "kernels/common/scratch.h"
#include "kernels/flash_attention/flash_attention.h"

#include <math.h>

typedef struct reference {
    const hone_attention *problem;
    double *keys, *values; // [kv_len][dim], [kv_len][value_dim]
    double *query;         // [dim]
    double *weights;       // [kv_len]
    double *sums;          // [value_dim]
} reference;

static void convert(
    double *out, const char *from, int64_t count, int64_t stride, int64_t length, int64_t step, hone_dtype_id dtype)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t x = 0; x < length; x++)
            out[i * length + x] = hone_element_get_double(from, dtype, i * stride + x * step);
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

// Computes the weights of all keys, and the range of keys with weight. A query that sees no key has equal weights.
static void weigh(const reference *r, int64_t position, int64_t *out_first, int64_t *out_last)
{
    const hone_attention *p = r->problem;
    int64_t first, last;
    hone_attention_range(p, position, &first, &last);
    bool blind = first == last;
    double highest = -INFINITY, sum = 0;
    for (int64_t j = first; j < last; j++) {
        double logit = p->scale * dot(r->query, r->keys + j * p->dim, p->dim);
        r->weights[j] = p->has_cap ? p->cap * tanh(logit / p->cap) : logit;
        highest = fmax(highest, r->weights[j]);
    }
    for (int64_t j = 0; j < p->kv_len; j++) {
        bool seen = j >= first && j < last;
        r->weights[j] = blind ? 1 : seen ? exp(r->weights[j] - highest) : 0;
        sum += r->weights[j];
    }
    for (int64_t j = 0; j < p->kv_len; j++)
        // Keys outside of the range have weight 0 even next to NaN
        if (blind || (j >= first && j < last)) r->weights[j] /= sum;
    *out_first = blind ? 0 : first;
    *out_last = blind ? p->kv_len : last;
}

static void attend(const reference *r, int64_t batch, int64_t position, int64_t head)
{
    const hone_attention *p = r->problem;
    int64_t size = hone_element_size(p->dtype);
    const char *query = hone_attention_at(&p->query, size, batch, position, head);
    convert(r->query, query, 1, 0, p->dim, p->query.element, p->dtype);
    int64_t first, last;
    weigh(r, position, &first, &last);
    for (int64_t i = 0; i < p->value_dim; i++)
        r->sums[i] = 0;
    for (int64_t j = first; j < last; j++)
        for (int64_t i = 0; i < p->value_dim; i++)
            r->sums[i] += r->weights[j] * r->values[j * p->value_dim + i];
    char *out = hone_attention_at(&p->out, size, batch, position, head);
    for (int64_t i = 0; i < p->value_dim; i++)
        hone_element_put_double(out, p->dtype, i * p->out.element, r->sums[i]);
    if (p->weights.data == NULL) return;
    char *weights = hone_attention_at(&p->weights, size, batch, position, head);
    for (int64_t j = 0; j < p->kv_len; j++)
        hone_element_put_double(weights, p->dtype, j * p->weights.element, r->weights[j]);
}

static void attend_head(const reference *r, int64_t batch, int64_t kv_head)
{
    const hone_attention *p = r->problem;
    int64_t size = hone_element_size(p->dtype);
    const char *key = hone_attention_at(&p->key, size, batch, 0, kv_head);
    const char *value = hone_attention_at(&p->value, size, batch, 0, kv_head);
    convert(r->keys, key, p->kv_len, p->key.position, p->dim, p->key.element, p->dtype);
    convert(r->values, value, p->kv_len, p->value.position, p->value_dim, p->value.element, p->dtype);
    for (int64_t position = 0; position < p->q_len; position++)
        for (int64_t i = 0; i < p->group; i++)
            attend(r, batch, position, kv_head * p->group + i);
}

hone_status hone_attention_in_double(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    int64_t dims = problem->dim + problem->value_dim;
    double *memory = hone_scratch_get((size_t)((problem->kv_len + 1) * (dims + 1)) * sizeof *memory);
    if (memory == NULL) return HONE_OUT_OF_MEMORY;
    reference r = {.problem = problem, .keys = memory};
    r.values = r.keys + problem->kv_len * problem->dim;
    r.query = r.values + problem->kv_len * problem->value_dim;
    r.sums = r.query + problem->dim;
    r.weights = r.sums + problem->value_dim;
    for (int64_t batch = 0; batch < problem->batch; batch++)
        for (int64_t kv_head = 0; kv_head < problem->kv_heads; kv_head++)
            attend_head(&r, batch, kv_head);
    return HONE_OK;
}
