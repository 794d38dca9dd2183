// A softmax over a row of logits in place, over the vectors of the including file.
#include "kernels/flash_attention/flash_attention.h"

#include <math.h>

HONE_INLINE vec logit(const float *logits, int64_t i, int64_t count, bool capped, vec scale, vec cap)
{
    bool part = count - i < VEC_WIDTH;
    vec value = part ? vec_load_part(logits, HONE_F32, i, count - i) : vec_load(logits, HONE_F32, i);
    value = vec_mul(value, scale);
    if (capped) value = vec_mul(vec_tanh(value), cap);
    return part ? vec_first(count - i, value, vec_set(-INFINITY)) : value;
}

HONE_INLINE void put_logit(float *logits, int64_t i, int64_t count, vec value)
{
    if (count - i < VEC_WIDTH)
        vec_store_part(logits, HONE_F32, i, count - i, value);
    else
        vec_store(logits, HONE_F32, i, value);
}

void VEC_NAME(hone_attention_weigh)(float *logits, int64_t count, double scale, double cap)
{
    const vec log2_e = vec_set(0x1.715476p0f);
    bool capped = cap != 0;
    vec factor = vec_set((float)(capped ? scale / cap : scale)), limit = vec_set((float)cap);
    vec most = vec_set(-INFINITY), sum = vec_set(0.0f);
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        vec value = logit(logits, i, count, capped, factor, limit);
        most = vec_max(most, value);
        put_logit(logits, i, count, value);
    }
    most = vec_set(vec_highest(most));
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        vec difference = vec_sub(logit(logits, i, count, false, vec_set(1.0f), limit), most);
        vec power = vec_exp2(vec_mul(difference, log2_e));
        sum = vec_add(sum, power);
        put_logit(logits, i, count, power);
    }
    vec share = vec_set(1.0f / vec_sum(sum));
    for (int64_t i = 0; i < count; i += VEC_WIDTH)
        put_logit(logits, i, count, logit(logits, i, count, false, share, limit));
}
