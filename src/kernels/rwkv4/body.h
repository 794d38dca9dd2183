// The kernel over the vectors of the including file. Channels are lanes. Each step depends on the one before, so a task
// processes several vectors of channels together, whose steps overlap.
//
// The recurrence (Peng et al., "RWKV: Reinventing RNNs for the Transformer Era", 2023), for each channel with decay
// exp(w) and bonus u:
//   wkv_t = (a + exp(u + k_t) v_t) / (b + exp(u + k_t))
//   a     = exp(-decay) a + exp(k_t) v_t,    b = exp(-decay) b + exp(k_t)
// The sums would overflow, so both are kept relative to an exponent e: the true sums are a exp(e) and b exp(e), and e
// is the largest exponent so far, decayed. Invariant: every weight is at most 1, and one of each pair is 1. So for the
// larger exponent of a step no exponential is needed, only exp(-|difference|) for the other: two exponentials and a
// division per step, and one pass over k and v.
#include "kernels/rwkv4/rwkv4.h"

#include <math.h>

typedef struct rwkv4_job {
    hone_rwkv4 problem;
    int64_t vectors, blocks;
} rwkv4_job;

typedef struct mixture {
    vec a, b, e, decay, bonus;
} mixture;

// The weights of the terms with exponent `old` and with exponent `new`, relative to the larger exponent.
HONE_INLINE void relate(vec old, vec new, vec *out_old, vec *out_new)
{
    vec difference = vec_sub(new, old), zero = vec_set(0.0f), one = vec_set(1.0f), all = vec_set(INFINITY);
    vec smaller = vec_exp(vec_min(difference, vec_sub(zero, difference)));
    *out_old = vec_within(zero, difference, all, smaller, one);
    *out_new = vec_within(zero, difference, all, one, smaller);
}

HONE_INLINE vec step(mixture *m, vec k, vec v)
{
    vec old, new, boosted = vec_add(m->bonus, k), decayed = vec_sub(m->e, m->decay);
    relate(m->e, boosted, &old, &new);
    vec wkv = vec_div(vec_fma(old, m->a, vec_mul(new, v)), vec_fma(old, m->b, new));
    relate(decayed, k, &old, &new);
    m->a = vec_fma(old, m->a, vec_mul(new, v));
    m->b = vec_fma(old, m->b, new);
    m->e = vec_max(decayed, k);
    return wkv;
}

HONE_INLINE vec load_channels(const hone_rwkv4_array *array, int64_t batch, int64_t row, int64_t channel, int64_t count)
{
    const char *at = hone_rwkv4_at(array, hone_element_size(array->dtype), batch, row, channel);
    if (array->dtype == HONE_F32) return vec_load_part(at, HONE_F32, 0, count);
    return array->dtype == HONE_BF16 ? vec_load_part(at, HONE_BF16, 0, count) : vec_load_part(at, HONE_F16, 0, count);
}

HONE_INLINE mixture begin(const hone_rwkv4 *p, int64_t batch, int64_t channel, int64_t count)
{
    mixture m = {.a = vec_set(0.0f), .b = vec_set(0.0f), .e = vec_set(-INFINITY)};
    m.bonus = load_channels(&p->u, 0, 0, channel, count);
    float decay[VEC_WIDTH];
    vec_store(decay, HONE_F32, 0, load_channels(&p->w, 0, 0, channel, count));
    for (int i = 0; i < VEC_WIDTH; i++)
        decay[i] = expf(decay[i]);
    m.decay = vec_load(decay, HONE_F32, 0);
    if (!p->state.data) return m;
    m.a = load_channels(&p->state, batch, 0, channel, count);
    m.b = load_channels(&p->state, batch, 1, channel, count);
    m.e = load_channels(&p->state, batch, 2, channel, count);
    return m;
}

HONE_OUTLINE mixture begin_once(const hone_rwkv4 *p, int64_t batch, int64_t channel, int64_t count)
{
    return begin(p, batch, channel, count);
}

// The other sets share one copy of it: portable takes .53 to .66 of the time with it. With AVX-512 f32 would take 1.05
// times as long.
HONE_INLINE mixture begin_channels(const hone_rwkv4 *p, int64_t batch, int64_t channel, int64_t count)
{
    return VEC_WIDTH == 16 ? begin(p, batch, channel, count) : begin_once(p, batch, channel, count);
}

// Computes all steps of `vectors` vectors of channels, the last of which has `tail` channels.
HONE_INLINE void mix(
    const hone_rwkv4 *p, int64_t batch, int64_t channel, int64_t tail, hone_dtype_id dtype, int vectors)
{
    mixture states[4];
    int64_t size = hone_element_size(dtype);
    HONE_UNROLL
    for (int c = 0; c < vectors; c++)
        states[c] = begin_channels(p, batch, channel + c * VEC_WIDTH, c + 1 < vectors ? VEC_WIDTH : tail);
    for (int64_t t = 0; t < p->seq_len; t++) {
        const char *k = hone_rwkv4_at(&p->k, size, batch, t, channel),
                   *v = hone_rwkv4_at(&p->v, size, batch, t, channel);
        char *out = hone_rwkv4_at(&p->wkv, size, batch, t, channel);
        HONE_UNROLL
        for (int c = 0; c < vectors; c++) {
            int64_t count = c + 1 < vectors ? VEC_WIDTH : tail;
            vec keys = vec_load_part(k, dtype, c * VEC_WIDTH, count),
                values = vec_load_part(v, dtype, c * VEC_WIDTH, count);
            vec_store_part(out, dtype, c * VEC_WIDTH, count, step(&states[c], keys, values));
        }
    }
}

HONE_INLINE void mix_block(const hone_rwkv4 *p, int64_t batch, int64_t channel, int64_t count, hone_dtype_id dtype)
{
    int64_t vectors = (count + VEC_WIDTH - 1) / VEC_WIDTH, tail = count - (vectors - 1) * VEC_WIDTH;
    switch (vectors) {
    case 1:
        mix(p, batch, channel, tail, dtype, 1);
        break;
    case 2:
        mix(p, batch, channel, tail, dtype, 2);
        break;
    case 3:
        mix(p, batch, channel, tail, dtype, 3);
        break;
    default:
        mix(p, batch, channel, tail, dtype, 4);
    }
}

static void run_task(void *ctx, int64_t index)
{
    const rwkv4_job *job = ctx;
    const hone_rwkv4 *p = &job->problem;
    int64_t block = job->vectors * VEC_WIDTH, channel = index % job->blocks * block, batch = index / job->blocks;
    int64_t count = p->channels - channel < block ? p->channels - channel : block;
    switch (p->k.dtype) {
    case HONE_F32:
        mix_block(p, batch, channel, count, HONE_F32);
        break;
    case HONE_BF16:
        mix_block(p, batch, channel, count, HONE_BF16);
        break;
    default:
        mix_block(p, batch, channel, count, HONE_F16);
    }
}

hone_status VEC_NAME(hone_rwkv4)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    rwkv4_job job = {.problem = hone_rwkv4_of(args), .vectors = plan->config[RWKV4_VECTORS]};
    int64_t block = job.vectors * VEC_WIDTH;
    job.blocks = (job.problem.channels + block - 1) / block;
    int32_t threads = (int32_t)plan->config[RWKV4_THREADS];
    hone_plan_parallel_for(plan, execution, threads, job.problem.batch * job.blocks, run_task, &job);
    return HONE_OK;
}
