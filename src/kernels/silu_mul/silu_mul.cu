// y = silu(gate) up, and silu_mul_vjp its gradient: d_up = silu(gate) d_y, d_gate = s (1 + gate (1 - s)) up d_y with
// s = 1 / (1 + e^-gate). Each thread has `packs_per_thread` packs of `vector` elements; the packs of a block are
// contiguous.
typedef pack_of<element, vector> pack;

// Its distance from 1 is that of -x, which does not cancel.
__device__ float sigmoid(float x)
{
    return __fdividef(1, 1 + expf(-x));
}

// Calls whole(pack) for each whole pack of this thread, and single(index) for the elements after the last whole pack.
template <class Whole, class Single> __device__ void each(long long count, Whole whole, Single single)
{
    const long long packs = count / vector, first = (long long)blockIdx.x * (threads * packs_per_thread) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < packs_per_thread; i++)
        if (first + i * threads < packs) whole(first + i * threads, i);
    const long long rest = packs * vector + threadIdx.x;
    if (blockIdx.x == 0 && rest < count) single(rest);
}

// factor a b, with the larger of a and b first: a factor below 1 times a subnormal number may be 0, and 0 times an infinity is NaN.
__device__ float times_both(float factor, float a, float b)
{
    return fabsf(a) >= fabsf(b) ? factor * a * b : factor * b * a;
}

__device__ void gate_one(element gate, element up, element *y)
{
    const float wide = widen(gate);
    narrow(times_both(sigmoid(wide), wide, widen(up)), y);
}

extern "C" __global__ void __launch_bounds__(threads) silu_mul(const element *gate, const element *up, element *y, long long count)
{
    pack gates[packs_per_thread], ups[packs_per_thread];
    each(
        count,
        [&](long long at, int i) {
            gates[i] = reinterpret_cast<const pack *>(gate)[at];
            ups[i] = reinterpret_cast<const pack *>(up)[at];
        },
        [](long long) {});
    each(
        count,
        [&](long long at, int i) {
            pack out;
#pragma unroll
            for (int j = 0; j < vector; j++)
                gate_one(gates[i].at[j], ups[i].at[j], &out.at[j]);
            reinterpret_cast<pack *>(y)[at] = out;
        },
        [&](long long at) { gate_one(gate[at], up[at], &y[at]); });
}

__device__ void turn_back(element gate, element up, element d_y, element *d_gate, element *d_up)
{
    const float wide = widen(gate), s = sigmoid(wide), slope = s * (1 + wide * sigmoid(-wide));
    narrow(times_both(slope, widen(up), widen(d_y)), d_gate);
    narrow(times_both(s, wide, widen(d_y)), d_up);
}

extern "C" __global__ void __launch_bounds__(threads) silu_mul_vjp(
    const element *gate, const element *up, const element *d_y, element *d_gate, element *d_up, long long count)
{
    pack gates[packs_per_thread], ups[packs_per_thread], slopes[packs_per_thread];
    each(
        count,
        [&](long long at, int i) {
            gates[i] = reinterpret_cast<const pack *>(gate)[at];
            ups[i] = reinterpret_cast<const pack *>(up)[at];
            slopes[i] = reinterpret_cast<const pack *>(d_y)[at];
        },
        [](long long) {});
    each(
        count,
        [&](long long at, int i) {
            pack of_gate, of_up;
#pragma unroll
            for (int j = 0; j < vector; j++)
                turn_back(gates[i].at[j], ups[i].at[j], slopes[i].at[j], &of_gate.at[j], &of_up.at[j]);
            reinterpret_cast<pack *>(d_gate)[at] = of_gate;
            reinterpret_cast<pack *>(d_up)[at] = of_up;
        },
        [&](long long at) { turn_back(gate[at], up[at], d_y[at], &d_gate[at], &d_up[at]); });
}
