// RWKV-4's time mix in float, with one thread for each batch and channel. A thread reads `ahead` steps of keys and
// values while it mixes the previous ones.
#if defined(hone_w_f32)
typedef float weight_element;
#elif defined(hone_w_f16)
typedef f16 weight_element;
#else
typedef bf16 weight_element;
#endif

struct steps {
    element k[ahead], v[ahead];
};

// The running sums of weighted values and of weights, divided by exp(exponent).
struct mixed {
    float values, weights, exponent;
};

__device__ steps load_steps(const element *k, const element *v, long long step, long long count, long long stride)
{
    steps loaded;
#pragma unroll
    for (int i = 0; i < ahead; i++) {
        if (step + i >= count) continue;
        loaded.k[i] = k[(step + i) * stride];
        loaded.v[i] = v[(step + i) * stride];
    }
    return loaded;
}

// The relative weights of the exponents `before` and `now`. The larger one has weight 1, even if it is infinite.
__device__ void relate(float before, float now, float *of_before, float *of_now)
{
    const float smaller = expf(-fabsf(now - before));
    *of_before = now >= before ? smaller : 1;
    *of_now = now >= before ? 1 : smaller;
}

__device__ float mix(float k, float v, float decay, float bonus, mixed *m)
{
    float before, now;
    relate(m->exponent, bonus + k, &before, &now);
    const float result = (before * m->values + now * v) / (before * m->weights + now);
    relate(m->exponent - decay, k, &before, &now);
    m->values = before * m->values + now * v;
    m->weights = before * m->weights + now;
    m->exponent = fmaxf(m->exponent - decay, k);
    return result;
}

extern "C" __global__ void __launch_bounds__(threads) rwkv4(
    const weight_element *w,
    const weight_element *u,
    const element *k,
    const element *v,
    const float *state,
    element *wkv,
    long long batches,
    long long count,
    long long channels)
{
    const long long index = (long long)blockIdx.x * threads + threadIdx.x;
    if (index >= batches * channels) return;
    const long long batch = index / channels, channel = index % channels, first = batch * count * channels + channel;
    const float decay = expf(widen(w[channel])), bonus = widen(u[channel]);
    mixed m = {0, 0, __int_as_float(0xff800000)};
    if (state != nullptr) {
        const float *own = state + batch * 3 * channels + channel;
        m = mixed{own[0], own[channels], own[2 * channels]};
    }
    steps next = load_steps(k + first, v + first, 0, count, channels);
    for (long long step = 0; step < count; step += ahead) {
        const steps now = next;
        next = load_steps(k + first, v + first, step + ahead, count, channels);
#pragma unroll
        for (int i = 0; i < ahead; i++)
            if (step + i < count)
                narrow(mix(widen(now.k[i]), widen(now.v[i]), decay, bonus, &m), &wkv[first + (step + i) * channels]);
    }
}
