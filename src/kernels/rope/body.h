// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// One token at a time: its cosines and sines are converted to floats once for all heads, in pieces that fit into the
// first-level cache.
#include "kernels/rope/rope.h"
#include "kernels/vector/pairs.h"

#include <string.h>

enum { PIECE = 512 }; // pairs, a multiple of every VEC_WIDTH

typedef struct job {
    hone_rope of;
    int64_t tokens_per_task;
    bool stream;
} job;

// Pairs `first` to `first + count` of a token.
typedef struct piece {
    const float *cos, *sin;
    int64_t first, count;
} piece;

// One head: the start of its elements, and, if the elements of pairs are apart, the start of their second elements.
typedef struct head {
    const char *x;
    char *y;
    int64_t half;
    bool stream, is_back;
} head;

HONE_INLINE vec get(const char *x, hone_dtype_id dtype, int64_t at, int64_t count)
{
    if (count >= VEC_WIDTH) return vec_load(x, dtype, at);
    return count > 0 ? vec_load_part(x, dtype, at, count) : vec_set(0.0f);
}

HONE_INLINE void put(const head *h, hone_dtype_id dtype, int64_t at, int64_t count, vec value)
{
    if (count >= VEC_WIDTH && h->stream)
        vec_stream(h->y, dtype, at, value);
    else if (count >= VEC_WIDTH)
        vec_store(h->y, dtype, at, value);
    else if (count > 0)
        vec_store_part(h->y, dtype, at, count, value);
}

// Rotates the pairs (a, b) from pair i of the piece on.
HONE_INLINE void turn(const piece *p, int64_t i, int64_t count, vec *a, vec *b)
{
    const vec cos = get((const char *)p->cos, HONE_F32, i, count), sin = get((const char *)p->sin, HONE_F32, i, count);
    const vec one = vec_sub(vec_mul(*a, cos), vec_mul(*b, sin));
    *b = vec_fma(*b, cos, vec_mul(*a, sin));
    *a = one;
}

HONE_INLINE void turn_vector(
    const head *h, const piece *p, hone_dtype_id dtype, bool interleaved, int64_t i, int64_t count)
{
    const int64_t pair = p->first + i, lanes = interleaved ? 2 * count : count;
    const int64_t one = interleaved ? 2 * pair : pair, other = interleaved ? one + VEC_WIDTH : h->half + pair;
    const int64_t rest = interleaved ? lanes - VEC_WIDTH : count;
    vec a = get(h->x, dtype, one, lanes), b = get(h->x, dtype, other, rest);
    if (interleaved) vec_unzip(&a, &b);
    if (h->is_back)
        turn(p, i, count, &b, &a); // rotating (b, a) is rotating (a, b) back
    else
        turn(p, i, count, &a, &b);
    if (interleaved) vec_zip(&a, &b);
    put(h, dtype, one, lanes, a);
    put(h, dtype, other, rest, b);
}

HONE_INLINE void turn_head(const head *h, const piece *p, hone_dtype_id dtype, bool interleaved)
{
    int64_t i = 0;
    for (; i + VEC_WIDTH <= p->count; i += VEC_WIDTH)
        turn_vector(h, p, dtype, interleaved, i, VEC_WIDTH);
    if (i < p->count) turn_vector(h, p, dtype, interleaved, i, p->count - i);
}

HONE_INLINE bool is_aligned(const char *address, int64_t bytes)
{
    return (uintptr_t)address % (uintptr_t)bytes == 0;
}

HONE_INLINE void turn_heads(const job *own, const char *x, char *y, const piece *p, hone_dtype_id dtype)
{
    const hone_rope *of = &own->of;
    const int64_t size = hone_element_size(dtype), whole = VEC_WIDTH * size;
    for (int64_t i = 0; i < of->heads; i++) {
        head h = {x + i * of->x.head * size, y + i * of->y.head * size, of->half, own->stream, of->is_back};
        h.stream &= is_aligned(h.y, whole) && (of->interleaved || of->half % VEC_WIDTH == 0);
        if (of->interleaved)
            turn_head(&h, p, dtype, true);
        else
            turn_head(&h, p, dtype, false);
    }
}

HONE_INLINE void copy_rest(const job *own, const char *x, char *y, int64_t size)
{
    const hone_rope *of = &own->of;
    const int64_t turned = 2 * of->half * size, left = of->x.tokens.length * size - turned;
    for (int64_t i = 0; i < of->heads && left > 0; i++)
        memcpy(y + i * of->y.head * size + turned, x + i * of->x.head * size + turned, (size_t)left);
}

// `count` elements of a table as floats: the table's own data, or a copy in memory.
HONE_INLINE const float *floats_of(
    const hone_rope *of, const hone_rope_angles *table, int64_t position, const piece *p, float *memory)
{
    const int64_t size = hone_element_size(of->table_dtype);
    const char *data = table->data + (position * table->row + p->first * table->step) * size;
    if (of->table_dtype == HONE_F32) return (const float *)(const void *)data;
    for (int64_t i = 0; i < p->count; i += VEC_WIDTH) {
        vec value =
            of->table_dtype == HONE_BF16 ? get(data, HONE_BF16, i, p->count - i) : get(data, HONE_F16, i, p->count - i);
        vec_store(memory, HONE_F32, i, value); // PIECE is a multiple of VEC_WIDTH
    }
    return memory;
}

static void turn_token(const job *own, int64_t token)
{
    const hone_rope *of = &own->of;
    const int64_t size = hone_element_size(of->dtype), position = token % of->positions;
    const char *x = of->x.tokens.data + hone_rows_offset(&of->x.tokens, token) * size;
    char *y = of->y.tokens.data + hone_rows_offset(&of->y.tokens, token) * size;
    float cos[PIECE], sin[PIECE];
    for (int64_t first = 0; first < of->half; first += PIECE) {
        piece p = {.first = first, .count = of->half - first < PIECE ? of->half - first : PIECE};
        p.cos = floats_of(of, &of->cos, position, &p, cos);
        p.sin = floats_of(of, &of->sin, position, &p, sin);
        if (of->dtype == HONE_F32)
            turn_heads(own, x, y, &p, HONE_F32);
        else if (of->dtype == HONE_BF16)
            turn_heads(own, x, y, &p, HONE_BF16);
        else
            turn_heads(own, x, y, &p, HONE_F16);
    }
    copy_rest(own, x, y, size);
}

static void run_task(void *ctx, int64_t index)
{
    const job *own = ctx;
    int64_t token = index * own->tokens_per_task, end = token + own->tokens_per_task;
    for (; token < end && token < own->of.x.tokens.count; token++)
        turn_token(own, token);
    if (own->stream) vec_stream_end();
}

static hone_status run(const hone_plan *plan, const hone_execution *execution, hone_rope of)
{
    const int64_t *config = plan->config;
    if (of.heads == 0) return HONE_OK; // nothing to turn, however many tokens there are
    job own = {.of = of, .tokens_per_task = config[ROPE_TOKENS_PER_TASK], .stream = config[ROPE_STORE] == 1};
    int64_t tasks = (own.of.x.tokens.count + own.tokens_per_task - 1) / own.tokens_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[ROPE_THREADS], tasks, run_task, &own);
    return HONE_OK;
}

hone_status VEC_NAME(hone_rope)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, execution, hone_rope_of(plan, args, false));
}

hone_status VEC_NAME(hone_rope_vjp)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, execution, hone_rope_of(plan, args, true));
}
