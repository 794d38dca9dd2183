// Attention as composed from a matrix library: a product, a softmax over its rows, a product, head by head. It shows
// what a fused kernel gains, and wins where that is slower.
#include "base/memory.h"
#include "kernels/common/scratch.h"
#include "kernels/flash_attention/flash_attention.h"
#include "kernels/rivals/rivals.h"
#include "kernels/vector/arguments.h"

#include <string.h>

static const char where[] = "kernels.attention";

static const int64_t most_scores = 1 << 26; // floats of one head's logits

typedef struct composition {
    void *scores, *out; // the library's products
    hone_attention_weigh *weigh;
} composition;

typedef struct composed_job {
    const hone_attention *problem;
    const hone_attention_choice *choice;
    const composition *made;
    int32_t library_threads;
    int64_t rows, parts; // queries of one product, products of one kv_head
    _Atomic hone_status status;
} composed_job;

// For one query: a product computes the group's heads together; otherwise the positions of one head.
static bool grouped(const hone_attention *problem)
{
    return problem->q_len == 1;
}

static int64_t rows_of(const hone_attention *problem)
{
    return grouped(problem) ? problem->group : problem->q_len;
}

static hone_matmul score_product(const hone_attention *p, bool transposes_key)
{
    hone_matmul product = {.m = rows_of(p), .n = p->kv_len, .k = p->dim, .dtype = HONE_F32, .operands = HONE_F32};
    product.a_stride = grouped(p) ? p->query.head : p->query.position;
    product.b_stride = transposes_key ? p->kv_len : p->key.position;
    product.c_stride = p->kv_len;
    product.transpose_b = !transposes_key;
    return product;
}

static hone_matmul value_product(const hone_attention *p)
{
    hone_matmul product = {.m = rows_of(p), .n = p->value_dim, .k = p->kv_len, .dtype = HONE_F32, .operands = HONE_F32};
    product.a_stride = p->kv_len;
    product.b_stride = p->value.position;
    product.c_stride = grouped(p) ? p->out.head : p->out.position;
    return product;
}

bool hone_composed_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_attention_choice *choice = kernel->user;
    if (!hone_attention_supports(call, choice->form, why)) return false;
    hone_attention problem = hone_attention_of_call(call, choice->form);
    if (problem.dtype != HONE_F32) {
        hone_fail(
            why, HONE_UNSUPPORTED, where,
            "a library's product of 16 bit floats rounds the logits to 16 bits; the composition takes f32 alone");
        return false;
    }
    if (problem.q_len && problem.kv_len > most_scores / problem.q_len) {
        hone_fail(why, HONE_UNSUPPORTED, where, "the logits of a head take more than 256 MiB");
        return false;
    }
    hone_matmul scores = score_product(&problem, choice->transposes_key), out = value_product(&problem);
    const hone_rival *rival = choice->rival;
    return rival->supports(rival, &scores, why) && rival->supports(rival, &out, why);
}

bool hone_composed_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_attention_choice *choice = kernel->user;
    hone_cost cost;
    hone_attention_model(call, choice->form, &cost);
    out_config->count = 2;
    out_config->values[COMPOSED_PARALLEL] = COMPOSED_OVER_HEADS;
    out_config->values[COMPOSED_THREADS] =
        hone_threads_for(device, cost.operations > 1.28e8 ? 64 : (int64_t)(cost.operations / 2e6));
    return true;
}

static hone_attention_weigh *best_weigh(const hone_device_info *device)
{
    static const struct {
        uint64_t needs;
        hone_attention_weigh *weigh;
    } best[] = {
        {HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ, hone_attention_weigh_avx512},
        {HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C, hone_attention_weigh_avx2},
    };
    for (size_t i = 0; device != NULL && i < sizeof best / sizeof *best; i++)
        if ((device->features & best[i].needs) == best[i].needs) return best[i].weigh;
    return hone_attention_weigh_portable;
}

void hone_composed_release(const hone_kernel *kernel, void *state)
{
    const hone_attention_choice *choice = kernel->user;
    hone_allocator allocator = hone_allocator_system();
    composition *made = state;
    if (made == NULL) return;
    choice->rival->destroy(made->scores);
    choice->rival->destroy(made->out);
    hone_free(&allocator, made);
}

hone_status hone_composed_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_attention_choice *choice = plan->kernel->user;
    hone_attention problem = hone_attention_of_call(plan->call, choice->form);
    hone_allocator allocator = hone_allocator_system();
    composition *made = hone_alloc(&allocator, sizeof *made);
    if (made == NULL) return hone_fail_memory(err, where);
    bool in_library = plan->config[COMPOSED_PARALLEL] == COMPOSED_IN_LIBRARY;
    int32_t threads = in_library ? (int32_t)plan->config[COMPOSED_THREADS] : 1;
    hone_matmul scores = score_product(&problem, choice->transposes_key), out = value_product(&problem);
    made->weigh = best_weigh(plan->device);
    hone_status status = choice->rival->create(choice->rival, &scores, threads, &made->scores, err);
    if (status == HONE_OK) status = choice->rival->create(choice->rival, &out, threads, &made->out, err);
    if (status != HONE_OK) {
        hone_composed_release(plan->kernel, made);
        return status;
    }
    *out_scratch_bytes = 0;
    *out_state = made;
    return HONE_OK;
}

// Keys that a query does not see have weight 0; a query that sees no key has equal weights.
static void weigh_row(const composed_job *job, float *logits, int64_t position)
{
    const hone_attention *p = job->problem;
    int64_t first, last;
    hone_attention_range(p, position, &first, &last);
    for (int64_t j = 0; first == last && j < p->kv_len; j++)
        logits[j] = 1.0f / (float)p->kv_len;
    if (first == last) return;
    memset(logits, 0, (size_t)first * sizeof *logits);
    memset(logits + last, 0, (size_t)(p->kv_len - last) * sizeof *logits);
    job->made->weigh(logits + first, last - first, p->scale, p->has_cap ? p->cap : 0);
}

static void transpose_key(const hone_attention *p, const float *key, float *out)
{
    for (int64_t j = 0; j < p->kv_len; j++)
        for (int64_t i = 0; i < p->dim; i++)
            out[i * p->kv_len + j] = key[j * p->key.position + i];
}

static hone_status attend(const composed_job *job, int64_t batch, int64_t kv_head, int64_t head)
{
    const hone_attention *p = job->problem;
    const hone_rival *rival = job->choice->rival;
    int64_t scores_size = job->rows * p->kv_len, key_size = job->choice->transposes_key ? p->kv_len * p->dim : 0;
    float *scores = hone_scratch_get((size_t)(scores_size + key_size) * sizeof *scores);
    if (scores == NULL) return HONE_OUT_OF_MEMORY;
    const char *query = hone_attention_at(&p->query, 4, batch, 0, head);
    const void *key = hone_attention_at(&p->key, 4, batch, 0, kv_head);
    const char *value = hone_attention_at(&p->value, 4, batch, 0, kv_head);
    if (key_size) {
        transpose_key(p, key, scores + scores_size);
        key = scores + scores_size;
    }
    hone_status status =
        rival->run(job->made->scores, &(hone_matmul){.a = query, .b = key, .c = scores}, job->library_threads);
    for (int64_t i = 0; i < job->rows; i++)
        weigh_row(job, scores + i * p->kv_len, grouped(p) ? 0 : i);
    if (status != HONE_OK) return status;
    char *out = hone_attention_at(&p->out, 4, batch, 0, head);
    return rival->run(job->made->out, &(hone_matmul){.a = scores, .b = value, .c = out}, job->library_threads);
}

static void composed_task(void *ctx, int64_t index)
{
    composed_job *job = ctx;
    const hone_attention *p = job->problem;
    int64_t part = index % job->parts, kv_head = index / job->parts % p->kv_heads;
    hone_status status = attend(job, index / job->parts / p->kv_heads, kv_head, kv_head * p->group + part);
    if (status != HONE_OK) job->status = status;
}

hone_status hone_composed_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_attention_choice *choice = plan->kernel->user;
    hone_attention problem = hone_attention_of(plan, args, choice->form);
    composed_job job = {.problem = &problem, .choice = choice, .made = plan->state, .status = HONE_OK};
    bool in_library = plan->config[COMPOSED_PARALLEL] == COMPOSED_IN_LIBRARY;
    job.library_threads = in_library && execution != NULL ? execution->threads : 0;
    job.rows = rows_of(&problem);
    job.parts = grouped(&problem) ? 1 : problem.group;
    int32_t threads = in_library ? 1 : (int32_t)plan->config[COMPOSED_THREADS];
    hone_plan_parallel_for(plan, execution, threads, problem.batch * problem.kv_heads * job.parts, composed_task, &job);
    return job.status;
}
