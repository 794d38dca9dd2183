#include "kernels/flash_attention/problem.h"

#include "kernels/common/half.h"
#include "kernels/vector/arguments.h"

#include <math.h>

static hone_attention_array array_of(const hone_tensor *tensor)
{
    hone_attention_array array = {
        .data = hone_tensor_data(tensor),
        .batch = hone_axis_stride(tensor, 0),
        .position = hone_axis_stride(tensor, 1),
        .head = hone_axis_stride(tensor, 2),
        .element = hone_axis_stride(tensor, 3),
    };
    return array;
}

// The fields that come from shapes alone.
static void fill_sizes(
    hone_attention *problem, const hone_tensor *query, const hone_tensor *key, const hone_tensor *value)
{
    problem->batch = query->shape[0];
    problem->q_len = query->shape[1];
    problem->heads = query->shape[2];
    problem->dim = query->shape[3];
    problem->kv_len = key->shape[1];
    problem->kv_heads = key->shape[2];
    problem->value_dim = value->shape[3];
    problem->group = problem->kv_heads ? problem->heads / problem->kv_heads : 1;
    problem->dtype = hone_float_id(query->dtype);
}

// Limited so that positions can be added to it, but beyond any position.
static int64_t clamped(int64_t window)
{
    const int64_t most = INT64_C(1) << 61;
    return window > most ? most : window < -most ? -most : window;
}

static void fill_scalars(hone_attention *problem, const hone_value *fixed, const hone_attention_form *form)
{
    problem->causal = fixed[form->causal].as.i64 != 0;
    problem->scale = hone_number_of(&fixed[form->softmax_scale], 1 / sqrt((double)problem->dim));
    problem->has_window = fixed[form->sliding_window].tag != HONE_VALUE_NONE;
    problem->window = clamped(fixed[form->sliding_window].as.i64);
    problem->has_cap = form->logits_soft_cap >= 0 && fixed[form->logits_soft_cap].tag != HONE_VALUE_NONE;
    problem->cap = problem->has_cap ? hone_number_of(&fixed[form->logits_soft_cap], 1) : 1;
}

static hone_attention problem_of(const hone_value *args, const hone_value *fixed, const hone_attention_form *form)
{
    hone_attention problem = {0};
    fill_sizes(&problem, args[0].as.tensor, args[1].as.tensor, args[2].as.tensor);
    fill_scalars(&problem, fixed, form);
    problem.query = array_of(args[0].as.tensor);
    problem.key = array_of(args[1].as.tensor);
    problem.value = array_of(args[2].as.tensor);
    problem.out = array_of(args[3].as.tensor);
    if (form->results == 2) {
        problem.weights = array_of(args[4].as.tensor);
        int64_t head = problem.weights.position; // [batch, heads, q_len, kv_len]: the axes are in another order
        problem.weights.position = problem.weights.head;
        problem.weights.head = head;
    }
    return problem;
}

hone_attention hone_attention_of(const hone_plan *plan, const hone_value *args, const hone_attention_form *form)
{
    return problem_of(args, hone_call_values(plan->call), form);
}

hone_attention hone_attention_of_call(const hone_call *call, const hone_attention_form *form)
{
    return problem_of(hone_call_values(call), hone_call_values(call), form);
}

void hone_attention_mean(const hone_attention *problem, int64_t batch, int64_t kv_head, int64_t row)
{
    int64_t size = hone_element_size(problem->dtype);
    const char *value = hone_attention_at(&problem->value, size, batch, 0, kv_head);
    char *out = hone_attention_at(
        &problem->out, size, batch, row / problem->group, kv_head * problem->group + row % problem->group);
    for (int64_t i = 0; i < problem->value_dim; i++) {
        double sum = 0;
        for (int64_t j = 0; j < problem->kv_len; j++)
            sum += (double)hone_element_get(
                value, problem->dtype, j * problem->value.position + i * problem->value.element);
        double mean = problem->kv_len ? sum / (double)problem->kv_len : 0;
        hone_element_put(out, problem->dtype, i * problem->out.element, (float)mean);
    }
}

static const double most_factor = 1e38;

bool hone_attention_supports(const hone_call *call, const hone_attention_form *form, hone_error *why)
{
    for (size_t i = 0; i < 3 + (size_t)form->results; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    hone_attention problem = hone_attention_of_call(call, form);
    const char *reason = NULL;
    double factor = problem.has_cap ? problem.scale / problem.cap : problem.scale;
    if (problem.kv_len == 0 || problem.dim == 0)
        reason = "kv_len or dim is 0; this kernel asks for at least one key and one element";
    else if (problem.has_cap && problem.cap == 0)
        reason = "logits_soft_cap is 0, which divides by zero; give none for no cap";
    else if (problem.kv_len > 1 << 24 || problem.q_len > 1 << 24)
        reason = "q_len or kv_len is over 2^24; this kernel keeps positions in floats";
    else if (!(fabs(factor) <= most_factor && fabs(problem.cap) <= most_factor))
        reason = "softmax_scale, logits_soft_cap or their quotient is over 1e38; this kernel keeps them in floats";
    if (reason == NULL) return true;
    hone_fail(why, HONE_UNSUPPORTED, "kernels.attention", "%s", reason);
    return false;
}

// Counts the (query, key) pairs that are not masked, times the cost of each. Keys that are masked for all queries are
// not read.
void hone_attention_model(const hone_call *call, const hone_attention_form *form, hone_cost *out_cost)
{
    hone_attention problem = hone_attention_of_call(call, form);
    double pairs = 0, dims = (double)(problem.dim + problem.value_dim);
    int64_t least = problem.kv_len, most = 0; // keys that some query sees
    for (int64_t i = 0; i < problem.q_len; i++) {
        int64_t first, last;
        hone_attention_range(&problem, i, &first, &last);
        pairs += (double)(last - first);
        if (last > first && first < least) least = first;
        if (last > first && last > most) most = last;
    }
    double queries = (double)(problem.batch * problem.q_len * problem.heads);
    double keys = (double)(problem.batch * (most > least ? most - least : 0) * problem.kv_heads);
    double weights = form->results == 2 ? queries * (double)problem.kv_len : 0;
    out_cost->operations = 2 * dims * pairs * (double)(problem.batch * problem.heads);
    out_cost->bytes = (queries * dims + keys * dims + weights) * (double)hone_element_size(problem.dtype);
}
