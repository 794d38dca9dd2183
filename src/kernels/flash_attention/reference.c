// Attention in double, query by query, for any strides. Three passes over the keys in place of a row of logits, which
// would need memory: their maximum, their sum, their products.
#include "kernels/common/half.h"
#include "kernels/flash_attention/flash_attention.h"

#include <math.h>

typedef struct query {
    const hone_attention *problem;
    const char *query, *key, *value;
    char *out, *weights;
    int64_t first, last; // keys it sees
} query;

static double logit(const query *q, int64_t j)
{
    const hone_attention *p = q->problem;
    double sum = 0;
    for (int64_t i = 0; i < p->dim; i++) {
        double a = (double)hone_element_get(q->query, p->dtype, i * p->query.element);
        double b = (double)hone_element_get(q->key, p->dtype, j * p->key.position + i * p->key.element);
        sum += a * b;
    }
    sum *= p->scale;
    return p->has_cap ? p->cap * tanh(sum / p->cap) : sum;
}

static void put_weights(const query *q, double highest, double sum)
{
    const hone_attention *p = q->problem;
    for (int64_t j = 0; j < p->kv_len; j++) {
        bool seen = j >= q->first && j < q->last;
        double weight = q->first == q->last ? 1 / (double)p->kv_len : seen ? exp(logit(q, j) - highest) / sum : 0;
        hone_element_put(q->weights, p->dtype, j * p->weights.element, (float)weight);
    }
}

enum { CHUNK = 64 }; // elements of a result that one pass over the keys sums

static void put_chunk(const query *q, int64_t from, int64_t count, double highest, double sum)
{
    const hone_attention *p = q->problem;
    double sums[CHUNK] = {0};
    for (int64_t j = q->first; j < q->last; j++) {
        double weight = exp(logit(q, j) - highest);
        for (int64_t i = 0; i < count; i++)
            sums[i] += weight * (double)hone_element_get(
                                    q->value, p->dtype, j * p->value.position + (from + i) * p->value.element);
    }
    for (int64_t i = 0; i < count; i++)
        hone_element_put(q->out, p->dtype, (from + i) * p->out.element, (float)(sums[i] / sum));
}

static void attend(const query *q)
{
    const hone_attention *p = q->problem;
    double highest = -INFINITY, sum = 0;
    for (int64_t j = q->first; j < q->last; j++)
        highest = fmax(highest, logit(q, j));
    for (int64_t j = q->first; j < q->last; j++)
        sum += exp(logit(q, j) - highest);
    if (q->weights) put_weights(q, highest, sum);
    if (q->first == q->last) return;
    for (int64_t i = 0; i < p->value_dim; i += CHUNK)
        put_chunk(q, i, p->value_dim - i < CHUNK ? p->value_dim - i : CHUNK, highest, sum);
}

static void attend_row(const hone_attention *p, int64_t batch, int64_t head, int64_t position)
{
    int64_t size = hone_element_size(p->dtype), kv_head = head / p->group;
    query q = {
        .problem = p,
        .query = hone_attention_at(&p->query, size, batch, position, head),
        .key = hone_attention_at(&p->key, size, batch, 0, kv_head),
        .value = hone_attention_at(&p->value, size, batch, 0, kv_head),
        .out = hone_attention_at(&p->out, size, batch, position, head),
        .weights = p->weights.data ? hone_attention_at(&p->weights, size, batch, position, head) : NULL,
    };
    hone_attention_range(p, position, &q.first, &q.last);
    attend(&q);
    if (q.first == q.last) hone_attention_mean(p, batch, kv_head, position * p->group + head % p->group);
}

hone_status hone_attention_in_double(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads; h++)
            for (int64_t i = 0; i < problem->q_len; i++)
                attend_row(problem, b, h, i);
    return HONE_OK;
}
