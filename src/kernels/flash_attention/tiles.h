// Attention for many queries, over the vectors of the including file and its words. A word holds the elements of a
// query or a key that a product takes together:
//
//   WORD                             how many they are: 1 (tiles_of_floats.h), or 2 of bf16 (avx512_bf16.c)
//   words_of_row(row, dtype, ...)    a vector of words of a row
//   word_product(a, b, sum)          the words' products added to sums
//
// Everything is transposed: S^T = K Q^T and O^T = V^T P^T have queries in the lanes of vectors and K's or V's elements
// as broadcast scalars. So K and V are read as they lie in memory, maxima and sums over keys are plain vector
// operations without a step across lanes, and the correction of the online softmax is a multiplication as O^T is
// loaded.
//
// The softmax is the online one, over blocks of keys (Dao et al., "FlashAttention", 2022; Rabe and Staats,
// "Self-attention Does Not Need O(n^2) Memory", 2021): S is never whole. Invariant, after each block and for each
// query: sum = sum of exp(s - most) and O^T = sum of exp(s - most) v over the keys so far. A block that raises `most`
// scales both by factor = exp(old - new). At the end O^T / sum is the result. Work is q kv (dim + value_dim)
// multiply-adds; memory a task is that of a block and its tiles.
//
// A tile is `lanes` vectors of queries of one kv_head, heads of its group side by side, so that grouped heads share
// K and V. A task has several tiles: each block of K and V is copied once a task, converted to floats and close
// together, and serves all of them from the second cache.
#include "kernels/common/scratch.h"
#include "kernels/flash_attention/flash_attention.h"

#include <float.h>
#include <math.h>

// Lower than any other logit, yet finite: minus infinity (a masked logit) minus this is minus infinity, not NaN.
#define TILE_LOWEST -FLT_MAX

typedef struct tiles_job {
    const hone_attention *problem;
    int64_t rows;         // queries of one kv_head
    int64_t lanes;        // queries of a tile
    int64_t tiles;        // of a task
    int64_t block_kv;     // a multiple of VEC_TILE
    int64_t row_blocks;   // tasks of one kv_head
    int64_t dim_words;    // of a query and a key
    int64_t key_stride;   // of the copied keys, words
    int64_t value_padded; // value_dim rounded up to VEC_TILE
    float query_scale, cap;
    _Atomic bool out_of_memory;
} tiles_job;

// One tile's memory. Arrays of [lanes] or [rows][lanes] floats.
typedef struct tile {
    float *query;      // [dim_words][lanes]; floats are scaled, of longer words the logits
    float *out;        // [value_padded][lanes]
    float *most, *sum; // of the softmax so far
    float *low, *high; // first and last key that a lane sees; low > high: none
    int64_t first_row, count;
    int64_t first, last;         // keys [first, last) that some lane sees
    int64_t all_first, all_last; // keys [all_first, all_last) that every lane sees
} tile;

typedef struct tiles_task {
    const tiles_job *job;
    int64_t batch, kv_head;
    float *keys;   // [block_kv][key_stride], words
    float *values; // [value_padded / VEC_TILE][block_kv][VEC_TILE]
    float *scores; // [block_kv][lanes]
    float *factor; // [lanes]
} tiles_task;

HONE_INLINE int64_t tile_row(const tile *t, int64_t lane)
{
    return t->first_row + (lane < t->count ? lane : t->count - 1);
}

// Lanes after the last row repeat it.
static void set_ranges(const hone_attention *p, tile *t, int64_t lanes)
{
    t->first = t->all_last = p->kv_len;
    t->last = t->all_first = 0;
    for (int64_t i = 0; i < lanes; i++) {
        int64_t first, last;
        hone_attention_range(p, tile_row(t, i) / p->group, &first, &last);
        t->low[i] = first < last ? (float)first : 1.0f;
        t->high[i] = first < last ? (float)(last - 1) : 0.0f;
        if (first > t->all_first) t->all_first = first;
        if (last < t->all_last) t->all_last = last;
        if (first == last) continue;
        if (first < t->first) t->first = first;
        if (last > t->last) t->last = last;
    }
}

HONE_INLINE const char *query_row(const tiles_task *task, int64_t row)
{
    const hone_attention *p = task->job->problem;
    int64_t head = task->kv_head * p->group + row % p->group;
    return hone_attention_at(&p->query, hone_element_size(p->dtype), task->batch, row / p->group, head);
}

// Rows of queries become lanes.
HONE_INLINE void load_queries(const tiles_task *task, tile *t, hone_dtype_id dtype)
{
    int64_t lanes = task->job->lanes, words = task->job->dim_words, dim = task->job->problem->dim;
    vec scale = vec_set(task->job->query_scale), block[VEC_WIDTH];
    for (int64_t lane = 0; lane < lanes; lane += VEC_WIDTH) {
        const char *rows[VEC_WIDTH];
        for (int i = 0; i < VEC_WIDTH; i++)
            rows[i] = query_row(task, tile_row(t, lane + i));
        for (int64_t x = 0; x < words; x += VEC_WIDTH) {
            HONE_UNROLL
            for (int i = 0; i < VEC_WIDTH; i++) {
                block[i] = words_of_row(rows[i], dtype, x * WORD, dim - x * WORD);
                if (WORD == 1) block[i] = vec_mul(scale, block[i]);
            }
            vec_transpose(block);
            HONE_UNROLL
            for (int i = 0; i < VEC_WIDTH; i++)
                if (x + i < words) vec_store(t->query, HONE_F32, (x + i) * lanes + lane, block[i]);
        }
    }
}

// Keys after `count`, up to a whole register tile, become zeros.
HONE_INLINE void copy_keys(const tiles_task *task, int64_t from, int64_t count, hone_dtype_id dtype)
{
    const hone_attention *p = task->job->problem;
    int64_t stride = task->job->key_stride, words = task->job->dim_words, size = hone_element_size(dtype);
    for (int64_t j = 0; j < count; j++) {
        const char *key = hone_attention_at(&p->key, size, task->batch, from + j, task->kv_head);
        for (int64_t x = 0; x < words; x += VEC_WIDTH)
            vec_store(task->keys + j * stride, HONE_F32, x, words_of_row(key, dtype, x * WORD, p->dim - x * WORD));
    }
    for (int64_t j = count; j % VEC_TILE; j++)
        memset(task->keys + j * stride, 0, (size_t)words * sizeof(float));
}

// Panels of VEC_TILE elements, key by key, so that the product reads them in order.
HONE_INLINE void copy_values(const tiles_task *task, int64_t from, int64_t count, hone_dtype_id dtype)
{
    const hone_attention *p = task->job->problem;
    int64_t panel = task->job->block_kv * VEC_TILE, size = hone_element_size(dtype);
    for (int64_t j = 0; j < count; j++) {
        const char *value = hone_attention_at(&p->value, size, task->batch, from + j, task->kv_head);
        float *to = task->values + j * VEC_TILE, part[VEC_WIDTH];
        for (int64_t x = 0; x < task->job->value_padded; x += VEC_WIDTH) {
            int64_t rest = p->value_dim - x;
            vec_store(
                part, HONE_F32, 0, rest < VEC_WIDTH ? vec_load_part(value, dtype, x, rest) : vec_load(value, dtype, x));
            for (int64_t i = 0; i < VEC_WIDTH && x + i < task->job->value_padded; i += VEC_TILE, to += panel)
                memcpy(to, part + i, VEC_TILE * sizeof(float));
        }
    }
}

// The products of VEC_TILE keys with all lanes.
HONE_INLINE void multiply_keys(
    vec scores[VEC_TILE][3], const float *keys, const float *query, int64_t words, int64_t stride, int vectors)
{
    HONE_UNROLL
    for (int r = 0; r < VEC_TILE; r++) {
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            scores[r][c] = vec_set(0.0f);
    }
    for (int64_t x = 0; x < words; x++) {
        vec lane[3];
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            lane[c] = vec_load(query, HONE_F32, (x * vectors + c) * VEC_WIDTH);
        HONE_UNROLL
        for (int r = 0; r < VEC_TILE; r++) {
            vec key = vec_set(keys[r * stride + x]);
            HONE_UNROLL
            for (int c = 0; c < vectors; c++)
                scores[r][c] = word_product(key, lane[c], scores[r][c]);
        }
    }
}

// The logits of keys [from, from + count), and their maxima.
HONE_INLINE void score(const tiles_task *task, const tile *t, int64_t from, int64_t count, int vectors, vec most[3])
{
    const tiles_job *job = task->job;
    int64_t padded = (count + VEC_TILE - 1) / VEC_TILE * VEC_TILE;
    bool masked = t->all_first > from || t->all_last < from + padded;
    for (int64_t j = 0; j < count; j += VEC_TILE) {
        vec scores[VEC_TILE][3];
        multiply_keys(scores, task->keys + j * job->key_stride, t->query, job->dim_words, job->key_stride, vectors);
        HONE_UNROLL
        for (int r = 0; r < VEC_TILE; r++) {
            HONE_UNROLL
            for (int c = 0; c < vectors; c++) {
                vec value = WORD == 1 ? scores[r][c] : vec_mul(scores[r][c], vec_set(job->query_scale));
                if (job->problem->has_cap) value = vec_mul(vec_tanh(value), vec_set(job->cap));
                if (masked) {
                    vec low = vec_load(t->low, HONE_F32, c * VEC_WIDTH),
                        high = vec_load(t->high, HONE_F32, c * VEC_WIDTH);
                    value = vec_within(low, vec_set((float)(from + j + r)), high, value, vec_set(-INFINITY));
                }
                most[c] = vec_max(most[c], value);
                vec_store(task->scores, HONE_F32, ((j + r) * vectors + c) * VEC_WIDTH, value);
            }
        }
    }
}

// Converts logits to weights; corrects the sum for the new maximum, and computes the `factor` that corrects O^T.
// Multiplies by log2 e after the subtraction, since its rounding would add to the difference.
HONE_INLINE void weigh(const tiles_task *task, tile *t, int64_t count, int vectors, const vec most[3])
{
    vec sum[3], log2_e = vec_set(0x1.715476p0f);
    HONE_UNROLL
    for (int c = 0; c < vectors; c++) {
        vec factor = vec_exp2(vec_mul(vec_sub(vec_load(t->most, HONE_F32, c * VEC_WIDTH), most[c]), log2_e));
        vec_store(task->factor, HONE_F32, c * VEC_WIDTH, factor);
        vec_store(t->most, HONE_F32, c * VEC_WIDTH, most[c]);
        sum[c] = vec_mul(factor, vec_load(t->sum, HONE_F32, c * VEC_WIDTH));
    }
    for (int64_t j = 0; j < count; j++) {
        HONE_UNROLL
        for (int c = 0; c < vectors; c++) {
            int64_t at = (j * vectors + c) * VEC_WIDTH;
            vec weight = vec_exp2(vec_mul(vec_sub(vec_load(task->scores, HONE_F32, at), most[c]), log2_e));
            sum[c] = vec_add(sum[c], weight);
            vec_store(task->scores, HONE_F32, at, weight);
        }
    }
    HONE_UNROLL
    for (int c = 0; c < vectors; c++)
        vec_store(t->sum, HONE_F32, c * VEC_WIDTH, sum[c]);
}

// VEC_TILE rows of O^T = O^T * factor + V^T P^T.
HONE_INLINE void multiply_values(
    float *out, const float *factor, const float *values, const float *weights, int64_t count, int vectors)
{
    vec sums[VEC_TILE][3];
    HONE_UNROLL
    for (int r = 0; r < VEC_TILE; r++) {
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            sums[r][c] = vec_mul(
                vec_load(out, HONE_F32, (r * vectors + c) * VEC_WIDTH), vec_load(factor, HONE_F32, c * VEC_WIDTH));
    }
    for (int64_t j = 0; j < count; j++) {
        vec lane[3];
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            lane[c] = vec_load(weights, HONE_F32, (j * vectors + c) * VEC_WIDTH);
        HONE_UNROLL
        for (int r = 0; r < VEC_TILE; r++) {
            vec value = vec_set(values[j * VEC_TILE + r]);
            HONE_UNROLL
            for (int c = 0; c < vectors; c++)
                sums[r][c] = vec_fma(value, lane[c], sums[r][c]);
        }
    }
    HONE_UNROLL
    for (int r = 0; r < VEC_TILE; r++) {
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            vec_store(out, HONE_F32, (r * vectors + c) * VEC_WIDTH, sums[r][c]);
    }
}

// Processes one copied block of keys and values for one tile.
HONE_INLINE void attend_block(const tiles_task *task, tile *t, int64_t from, int64_t count, int vectors)
{
    vec most[3];
    HONE_UNROLL
    for (int c = 0; c < vectors; c++)
        most[c] = vec_load(t->most, HONE_F32, c * VEC_WIDTH);
    score(task, t, from, count, vectors, most);
    weigh(task, t, count, vectors, most);
    int64_t panel = task->job->block_kv * VEC_TILE, lanes = task->job->lanes;
    for (int64_t x = 0; x < task->job->value_padded; x += VEC_TILE)
        multiply_values(
            t->out + x * lanes, task->factor, task->values + x / VEC_TILE * panel, task->scores, count, vectors);
}

// Divides O^T by its sums and stores it as rows.
HONE_INLINE void store_tile(const tiles_task *task, const tile *t, hone_dtype_id dtype)
{
    const hone_attention *p = task->job->problem;
    int64_t lanes = task->job->lanes, padded = task->job->value_padded;
    vec block[VEC_WIDTH];
    for (int64_t lane = 0; lane < t->count; lane += VEC_WIDTH) {
        vec scale = vec_div(vec_set(1.0f), vec_load(t->sum, HONE_F32, lane));
        for (int64_t x = 0; x < p->value_dim; x += VEC_WIDTH) {
            HONE_UNROLL
            for (int i = 0; i < VEC_WIDTH; i++)
                block[i] = x + i < padded ? vec_mul(scale, vec_load(t->out, HONE_F32, (x + i) * lanes + lane)) : scale;
            vec_transpose(block);
            int64_t count = p->value_dim - x < VEC_WIDTH ? p->value_dim - x : VEC_WIDTH;
            HONE_UNROLL
            for (int i = 0; i < VEC_WIDTH; i++) {
                if (lane + i >= t->count) break;
                int64_t row = t->first_row + lane + i, head = task->kv_head * p->group + row % p->group;
                char *out = hone_attention_at(&p->out, hone_element_size(dtype), task->batch, row / p->group, head);
                vec_store_part(out, dtype, x, count, block[i]);
            }
        }
    }
    for (int64_t i = 0; i < t->count; i++)
        if (t->low[i] > t->high[i]) hone_attention_mean(p, task->batch, task->kv_head, t->first_row + i);
}

HONE_INLINE void attend_tiles(const tiles_task *task, tile *tiles, int64_t count, hone_dtype_id dtype)
{
    int64_t first = task->job->problem->kv_len, last = 0, block = task->job->block_kv;
    for (int64_t i = 0; i < count; i++) {
        load_queries(task, &tiles[i], dtype);
        if (tiles[i].first < first) first = tiles[i].first;
        if (tiles[i].last > last) last = tiles[i].last;
    }
    for (int64_t from = first; from < last; from += block) {
        int64_t keys = last - from < block ? last - from : block;
        copy_keys(task, from, keys, dtype);
        copy_values(task, from, keys, dtype);
        for (int64_t i = 0; i < count; i++) {
            if (tiles[i].first >= from + keys || tiles[i].last <= from) continue;
            switch (task->job->lanes / VEC_WIDTH) {
            case 1:
                attend_block(task, &tiles[i], from, keys, 1);
                break;
            case 2:
                attend_block(task, &tiles[i], from, keys, 2);
                break;
            default:
                attend_block(task, &tiles[i], from, keys, 3);
            }
        }
    }
    for (int64_t i = 0; i < count; i++)
        store_tile(task, &tiles[i], dtype);
}

enum { TILES_MAX = 8 };

// Floats that one tile keeps.
static int64_t tile_floats(const tiles_job *job)
{
    return (job->dim_words + job->value_padded + 4) * job->lanes;
}

static int64_t task_floats(const tiles_job *job)
{
    int64_t block = job->block_kv * (job->key_stride + job->value_padded + job->lanes) + job->lanes;
    return block + job->tiles * tile_floats(job);
}

static float *take(float **memory, int64_t count)
{
    float *taken = *memory;
    *memory += count;
    return taken;
}

static void place_tile(const tiles_job *job, tile *t, float **memory)
{
    t->query = take(memory, job->dim_words * job->lanes);
    t->out = take(memory, job->value_padded * job->lanes);
    t->most = take(memory, job->lanes);
    t->sum = take(memory, job->lanes);
    t->low = take(memory, job->lanes);
    t->high = take(memory, job->lanes);
    memset(t->out, 0, (size_t)(job->value_padded * job->lanes) * sizeof(float));
    memset(t->sum, 0, (size_t)job->lanes * sizeof(float));
    for (int64_t i = 0; i < job->lanes; i++)
        t->most[i] = TILE_LOWEST;
    set_ranges(job->problem, t, job->lanes);
}

static void tiles_task_run(void *ctx, int64_t index)
{
    tiles_job *job = ctx;
    float *memory = hone_scratch_get((size_t)task_floats(job) * sizeof(float));
    if (!memory) {
        job->out_of_memory = true;
        return;
    }
    // The last rows of a kv_head first: under a causal mask they see the most keys.
    int64_t head = index / job->row_blocks,
            row = (job->row_blocks - 1 - index % job->row_blocks) * job->lanes * job->tiles;
    tiles_task task = {.job = job, .batch = head / job->problem->kv_heads, .kv_head = head % job->problem->kv_heads};
    task.keys = take(&memory, job->block_kv * job->key_stride);
    task.values = take(&memory, job->block_kv * job->value_padded);
    task.scores = take(&memory, job->block_kv * job->lanes);
    task.factor = take(&memory, job->lanes);
    tile tiles[TILES_MAX];
    int64_t count = 0;
    for (; count < job->tiles && row < job->rows; count++, row += job->lanes) {
        tiles[count].first_row = row;
        tiles[count].count = job->rows - row < job->lanes ? job->rows - row : job->lanes;
        place_tile(job, &tiles[count], &memory);
    }
    switch (WORD == 1 ? job->problem->dtype : HONE_BF16) {
    case HONE_F32:
        attend_tiles(&task, tiles, count, HONE_F32);
        break;
    case HONE_BF16:
        attend_tiles(&task, tiles, count, HONE_BF16);
        break;
    default:
        attend_tiles(&task, tiles, count, HONE_F16);
    }
}

hone_status VEC_NAME(hone_attention_tiles)(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    tiles_job job = {.problem = problem, .rows = problem->q_len * problem->group, .block_kv = config[TILES_BLOCK_KV]};
    job.lanes = config[TILES_LANES] * VEC_WIDTH;
    job.tiles = config[TILES_TILES];
    job.row_blocks = (job.rows + job.lanes * job.tiles - 1) / (job.lanes * job.tiles);
    job.dim_words = (problem->dim + WORD - 1) / WORD;
    // An odd number of cache lines, so that the rows of a register tile do not map to the same set of a cache.
    job.key_stride = (job.dim_words + 15) / 16 * 16 + (job.dim_words + 15) / 16 % 2 * 16 + 16;
    job.value_padded = (problem->value_dim + VEC_TILE - 1) / VEC_TILE * VEC_TILE;
    job.query_scale = (float)(problem->has_cap ? problem->scale / problem->cap : problem->scale);
    job.cap = (float)problem->cap;
    int64_t tasks = problem->batch * problem->kv_heads * job.row_blocks;
    hone_plan_parallel_for(plan, execution, (int32_t)config[TILES_THREADS], tasks, tiles_task_run, &job);
    return job.out_of_memory ? HONE_OUT_OF_MEMORY : HONE_OK;
}
