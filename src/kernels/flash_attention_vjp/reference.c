// In double, query by query, for any strides.
#include "kernels/common/half.h"
#include "kernels/common/scratch.h"
#include "kernels/flash_attention_vjp/flash_attention_vjp.h"

#include <math.h>
#include <string.h>

const hone_attention_form hone_attention_vjp_form = {
    .results = 1,
    .causal = ATTENTION_VJP_CAUSAL,
    .softmax_scale = ATTENTION_VJP_SOFTMAX_SCALE,
    .sliding_window = ATTENTION_VJP_SLIDING_WINDOW,
    .logits_soft_cap = ATTENTION_VJP_LOGITS_SOFT_CAP,
};

static hone_attention_array array_of(const hone_tensor *tensor)
{
    return (hone_attention_array){
        .data = hone_tensor_data(tensor),
        .batch = hone_axis_stride(tensor, 0),
        .position = hone_axis_stride(tensor, 1),
        .head = hone_axis_stride(tensor, 2),
        .element = hone_axis_stride(tensor, 3),
    };
}

hone_attention_vjp hone_attention_vjp_of(const hone_plan *plan, const hone_value *args)
{
    return (hone_attention_vjp){
        .of = hone_attention_of(plan, args, &hone_attention_vjp_form),
        .d_query = array_of(args[ATTENTION_VJP_D_QUERY].as.tensor),
        .d_key = array_of(args[ATTENTION_VJP_D_KEY].as.tensor),
        .d_value = array_of(args[ATTENTION_VJP_D_VALUE].as.tensor),
    };
}

// A kv_head's keys and values with their gradients, [kv_len][dim] each, and a query with its own.
typedef struct reference {
    const hone_attention_vjp *job;
    double *keys, *values, *d_keys, *d_values;
    double *query, *d_out, *d_query;   // [dim]
    double *weights, *slopes, *errors; // [kv_len]
} reference;

// Converts one row of an array, whose elements are `array->element` apart.
static void convert(double *out, const hone_attention *p, const hone_attention_array *array, const char *from)
{
    for (int64_t i = 0; i < p->dim; i++)
        out[i] = hone_element_get_double(from, p->dtype, i * array->element);
}

static void put(const hone_attention *p, const hone_attention_array *array, char *to, const double *row)
{
    for (int64_t i = 0; i < p->dim; i++)
        hone_element_put_double(to, p->dtype, i * array->element, row[i]);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void weigh(const reference *r, int64_t first, int64_t last)
{
    const hone_attention *p = &r->job->of;
    double highest = -INFINITY, sum = 0;
    for (int64_t j = first; j < last; j++) {
        const double logit = p->scale * dot(r->query, r->keys + j * p->dim, p->dim);
        const double bent = p->has_cap ? tanh(logit / p->cap) : 0, open = p->has_cap ? 1 / cosh(logit / p->cap) : 1;
        r->slopes[j] = p->scale * open * open; // 1 - tanh^2, without loss of precision where tanh is nearly 1
        r->weights[j] = p->has_cap ? p->cap * bent : logit;
        highest = fmax(highest, r->weights[j]);
    }
    for (int64_t j = first; j < last; j++) {
        r->weights[j] = exp(r->weights[j] - highest);
        sum += r->weights[j];
    }
    for (int64_t j = first; j < last; j++)
        r->weights[j] /= sum;
}

static void weigh_blindly(const reference *r)
{
    for (int64_t j = 0; j < r->job->of.kv_len; j++) {
        r->weights[j] = 1 / (double)r->job->of.kv_len;
        r->slopes[j] = 0;
    }
}

static void differentiate(const reference *r, int64_t batch, int64_t position, int64_t head)
{
    const hone_attention *p = &r->job->of;
    const int64_t size = hone_element_size(p->dtype);
    int64_t first, last;
    double mean = 0;
    convert(r->query, p, &p->query, hone_attention_at(&p->query, size, batch, position, head));
    convert(r->d_out, p, &p->out, hone_attention_at(&p->out, size, batch, position, head));
    hone_attention_range(p, position, &first, &last);
    const bool is_blind = first == last;
    if (is_blind) {
        last = p->kv_len;
        weigh_blindly(r);
    } else {
        weigh(r, first, last);
    }
    for (int64_t j = first; j < last; j++) {
        r->errors[j] = dot(r->d_out, r->values + j * p->dim, p->dim);
        mean += r->weights[j] * r->errors[j];
    }
    memset(r->d_query, 0, (size_t)p->dim * sizeof *r->d_query);
    for (int64_t j = first; j < last; j++) {
        const double error = is_blind ? 0 : r->weights[j] * (r->errors[j] - mean) * r->slopes[j];
        for (int64_t i = 0; i < p->dim; i++) {
            r->d_values[j * p->dim + i] += r->weights[j] * r->d_out[i];
            if (is_blind) continue;
            r->d_query[i] += error * r->keys[j * p->dim + i];
            r->d_keys[j * p->dim + i] += error * r->query[i];
        }
    }
    put(p, &r->job->d_query, hone_attention_at(&r->job->d_query, size, batch, position, head), r->d_query);
}

static void differentiate_head(const reference *r, int64_t batch, int64_t kv_head)
{
    const hone_attention *p = &r->job->of;
    const int64_t size = hone_element_size(p->dtype);
    for (int64_t j = 0; j < p->kv_len; j++) {
        convert(r->keys + j * p->dim, p, &p->key, hone_attention_at(&p->key, size, batch, j, kv_head));
        convert(r->values + j * p->dim, p, &p->value, hone_attention_at(&p->value, size, batch, j, kv_head));
    }
    memset(r->d_keys, 0, (size_t)(2 * p->kv_len * p->dim) * sizeof *r->d_keys); // d_values follow in memory
    for (int64_t position = 0; position < p->q_len; position++)
        for (int64_t i = 0; i < p->group; i++)
            differentiate(r, batch, position, kv_head * p->group + i);
    for (int64_t j = 0; j < p->kv_len; j++) {
        put(p, &r->job->d_key, hone_attention_at(&r->job->d_key, size, batch, j, kv_head), r->d_keys + j * p->dim);
        put(p, &r->job->d_value, hone_attention_at(&r->job->d_value, size, batch, j, kv_head),
            r->d_values + j * p->dim);
    }
}

hone_status hone_attention_vjp_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_attention_vjp job = hone_attention_vjp_of(plan, args);
    const int64_t head = job.of.kv_len * job.of.dim;
    double *memory = hone_scratch_get((size_t)(4 * head + 3 * job.of.dim + 3 * job.of.kv_len + 1) * sizeof *memory);
    if (memory == NULL) return HONE_OUT_OF_MEMORY;
    reference r = {.job = &job, .keys = memory, .values = memory + head};
    r.d_keys = r.values + head;
    r.d_values = r.d_keys + head;
    r.query = r.d_values + head;
    r.d_out = r.query + job.of.dim;
    r.d_query = r.d_out + job.of.dim;
    r.weights = r.d_query + job.of.dim;
    r.slopes = r.weights + job.of.kv_len;
    r.errors = r.slopes + job.of.kv_len;
    for (int64_t batch = 0; batch < job.of.batch; batch++)
        for (int64_t kv_head = 0; kv_head < job.of.kv_heads; kv_head++)
            differentiate_head(&r, batch, kv_head);
    return HONE_OK;
}
