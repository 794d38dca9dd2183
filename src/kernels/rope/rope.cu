// Rotates the pairs of the first 2 HALF elements of each head by the angles of their position: (a, b) becomes (a cos -
// b sin, b cos + a sin). INTERLEAVED: pair i is elements 2 i and 2 i + 1, otherwise i and HALF + i. Elements after the
// pairs are copied.
//
// A thread has `vector` pairs, or `vector` elements to copy, of one head in each of `heads_per_thread` groups of heads.
#if defined(hone_cos_f32)
typedef float angle_element;
#elif defined(hone_cos_f16)
typedef f16 angle_element;
#else
typedef bf16 angle_element;
#endif
typedef pack_of<element, vector> pack;
typedef pack_of<angle_element, vector> angle_pack;

enum { turns = HALF / vector, copies = (DIM - 2 * HALF) / vector, items = turns + copies > 0 ? turns + copies : 1 };
enum { groups = HEADS > 0 ? (HEADS + heads_per_thread - 1) / heads_per_thread : 1 };

__device__ pack load(const element *from)
{
    return *reinterpret_cast<const pack *>(from);
}

__device__ void store(element *to, const pack &values)
{
    *reinterpret_cast<pack *>(to) = values;
}

__device__ void turn_one(element a, element b, float cos, float sin, element *out_a, element *out_b)
{
    const float wide_a = widen(a), wide_b = widen(b);
    narrow(wide_a * cos - wide_b * sin, out_a);
    narrow(wide_b * cos + wide_a * sin, out_b);
}

__device__ void turn_head(const element *x, element *y, const float *cos, const float *sin)
{
    pack one = load(x), other = load(x + (INTERLEAVED ? vector : HALF)), out_one, out_other;
#pragma unroll
    for (int i = 0; i < vector; i++) {
#if !INTERLEAVED
        turn_one(one.at[i], other.at[i], cos[i], sin[i], &out_one.at[i], &out_other.at[i]);
#elif vector == 1
        turn_one(one.at[0], other.at[0], cos[0], sin[0], &out_one.at[0], &out_other.at[0]);
#else
        const int at = 2 * i % vector;
        if (i < vector / 2)
            turn_one(one.at[at], one.at[at + 1], cos[i], sin[i], &out_one.at[at], &out_one.at[at + 1]);
        else
            turn_one(other.at[at], other.at[at + 1], cos[i], sin[i], &out_other.at[at], &out_other.at[at + 1]);
#endif
    }
    store(y, out_one);
    store(y + (INTERLEAVED ? vector : HALF), out_other);
}

extern "C" __global__ void __launch_bounds__(threads) rope(
    const element *x, const angle_element *cos, const angle_element *sin, element *y, long long tokens, long long positions)
{
    const long long index = (long long)blockIdx.x * threads + threadIdx.x;
    const long long token = index / ((long long)items * groups);
    const int within = (int)(index % ((long long)items * groups)), item = within % items, group = within / items;
    if (token >= tokens) return;
    float cosines[vector], sines[vector];
    if (item < turns) {
        const long long at = (token % positions) * HALF + item * vector;
        const angle_pack of_cos = *reinterpret_cast<const angle_pack *>(cos + at);
        const angle_pack of_sin = *reinterpret_cast<const angle_pack *>(sin + at);
#pragma unroll
        for (int i = 0; i < vector; i++) {
            cosines[i] = widen(of_cos.at[i]);
            sines[i] = widen(of_sin.at[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < heads_per_thread; i++) {
        const int head = group + i * groups;
        if (head >= HEADS) continue;
        const long long first = (token * HEADS + head) * DIM;
        if (item < turns) {
            const long long at = first + item * vector * (INTERLEAVED ? 2 : 1);
            turn_head(x + at, y + at, cosines, sines);
        } else {
            const long long at = first + 2 * HALF + (item - turns) * vector;
            store(y + at, load(x + at));
        }
    }
}
