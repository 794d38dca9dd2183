// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// A task has the queries of one kv_head, ROWS at a time. It computes their logits over all keys that one of them sees,
// the weights, the products of d_out with the values, and from these the terms of d_query, d_key and d_value. Keys and
// values are converted to floats once per task, also transposed, so that each of the five products has keys or elements
// in the lanes of vectors.
//
// d_key and d_value do not depend on the number of threads: with `splits` the queries of a kv_head are cut into that
// many parts, each with its own sums, which are added in order.
#include "kernels/common/scratch.h"
#include "kernels/flash_attention_vjp/flash_attention_vjp.h"

#include <math.h>
#include <string.h>

enum { ROWS = 8 };

typedef struct job {
    hone_attention_vjp all;
    int64_t splits, rows;    // queries of a kv_head
    int64_t width, keys;     // dim and kv_len as whole vectors
    float *shared, *workers; // shared: sums of all tasks, if there are splits; workers: memory of each worker
    int64_t sums, piece;     // floats of a task's sums, of a worker's memory
} job;

// A worker's memory. The rows of ROWS queries are `width` or `keys` apart.
typedef struct workspace {
    float *key, *value;               // [kv_len][width]
    float *turned_key, *turned_value; // [dim][keys]
    float *d_key, *d_value;           // [kv_len][width]
    float *query, *d_out, *d_query;   // [ROWS][width]
    float *weights, *errors, *slopes; // [ROWS][keys]
    int64_t first[ROWS], last[ROWS];  // the keys that a query sees
    bool is_blind[ROWS];
    int64_t count; // queries
} workspace;

static int64_t worker_floats(const job *own)
{
    const int64_t head = own->all.of.kv_len * own->width, turned = own->all.of.dim * own->keys;
    return 2 * head + 2 * turned + own->sums + 3 * ROWS * own->width + 3 * ROWS * own->keys;
}

static workspace place(const job *own, float *data, float *sums)
{
    const int64_t head = own->all.of.kv_len * own->width, turned = own->all.of.dim * own->keys;
    workspace m = {.key = data, .value = data + head};
    m.turned_key = m.value + head;
    m.turned_value = m.turned_key + turned;
    m.query = m.turned_value + turned;
    m.d_out = m.query + ROWS * own->width;
    m.d_query = m.d_out + ROWS * own->width;
    m.weights = m.d_query + ROWS * own->width;
    m.errors = m.weights + ROWS * own->keys;
    m.slopes = m.errors + ROWS * own->keys;
    m.d_key = sums != NULL ? sums : m.slopes + ROWS * own->keys;
    m.d_value = m.d_key + head;
    return m;
}

// Floats ----------------------------------------------------------------------------------------------------------------

HONE_INLINE void load_row_of(float *out, const char *from, hone_dtype_id dtype, int64_t dim)
{
    int64_t i = 0;
    for (; i + VEC_WIDTH <= dim; i += VEC_WIDTH)
        vec_store(out, HONE_F32, i, vec_load(from, dtype, i));
    if (i < dim) vec_store(out, HONE_F32, i, vec_load_part(from, dtype, i, dim - i)); // `out` has whole vectors
}

static void load_row(float *out, const char *from, hone_dtype_id dtype, int64_t dim)
{
    if (dtype == HONE_F32)
        load_row_of(out, from, HONE_F32, dim);
    else if (dtype == HONE_BF16)
        load_row_of(out, from, HONE_BF16, dim);
    else
        load_row_of(out, from, HONE_F16, dim);
}

HONE_INLINE void store_row_of(char *to, const float *row, hone_dtype_id dtype, int64_t dim)
{
    int64_t i = 0;
    for (; i + VEC_WIDTH <= dim; i += VEC_WIDTH)
        vec_store(to, dtype, i, vec_load(row, HONE_F32, i));
    if (i < dim) vec_store_part(to, dtype, i, dim - i, vec_load(row, HONE_F32, i));
}

static void store_row(char *to, const float *row, hone_dtype_id dtype, int64_t dim)
{
    if (dtype == HONE_F32)
        store_row_of(to, row, HONE_F32, dim);
    else if (dtype == HONE_BF16)
        store_row_of(to, row, HONE_BF16, dim);
    else
        store_row_of(to, row, HONE_F16, dim);
}

// Zeros follow the keys.
static void turn(const job *own, const float *rows, float *out)
{
    const hone_attention *p = &own->all.of;
    for (int64_t i = 0; i < p->dim; i++) {
        for (int64_t j = 0; j < p->kv_len; j++)
            out[i * own->keys + j] = rows[j * own->width + i];
        for (int64_t j = p->kv_len; j < own->keys; j++)
            out[i * own->keys + j] = 0;
    }
}

static void load_head(const job *own, const workspace *m, int64_t batch, int64_t kv_head)
{
    const hone_attention *p = &own->all.of;
    const int64_t size = hone_element_size(p->dtype);
    for (int64_t j = 0; j < p->kv_len; j++) {
        load_row(m->key + j * own->width, hone_attention_at(&p->key, size, batch, j, kv_head), p->dtype, p->dim);
        load_row(m->value + j * own->width, hone_attention_at(&p->value, size, batch, j, kv_head), p->dtype, p->dim);
    }
    turn(own, m->key, m->turned_key);
    turn(own, m->value, m->turned_value);
}

static void store_head(const job *own, const float *d_key, const float *d_value, int64_t batch, int64_t kv_head)
{
    const hone_attention *p = &own->all.of;
    const int64_t size = hone_element_size(p->dtype);
    for (int64_t j = 0; j < p->kv_len; j++) {
        store_row(
            hone_attention_at(&own->all.d_key, size, batch, j, kv_head), d_key + j * own->width, p->dtype, p->dim);
        store_row(
            hone_attention_at(&own->all.d_value, size, batch, j, kv_head), d_value + j * own->width, p->dtype, p->dim);
    }
}

// Products --------------------------------------------------------------------------------------------------------------

// The number of adjacent vectors that a broadcast number is multiplied with: as many as fit into registers beside ROWS
// sums.
enum { SIDE_BY_SIDE = VEC_WIDTH >= 16 ? 2 : 1, MOST_VECTORS = ROWS * SIDE_BY_SIDE };

// out[r][i] = sum over k from first to last of left[r][k] right[k][i], for `columns` vectors of elements from i on. left and
// right have rows of as many floats as their strides say; out has right's.
HONE_INLINE void multiply_at(
    const float *left,
    int64_t left_stride,
    const float *right,
    int64_t right_stride,
    float *out,
    int64_t first,
    int64_t last,
    int64_t i,
    const int columns)
{
    vec sums[MOST_VECTORS];
    HONE_UNROLL
    for (int s = 0; s < ROWS * columns; s++)
        sums[s] = vec_set(0.0f);
    for (int64_t k = first; k < last; k++) {
        vec elements[SIDE_BY_SIDE];
        HONE_UNROLL
        for (int c = 0; c < columns; c++)
            elements[c] = vec_load(right, HONE_F32, k * right_stride + i + c * VEC_WIDTH);
        HONE_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const vec factor = vec_set(left[r * left_stride + k]);
            HONE_UNROLL
            for (int c = 0; c < columns; c++)
                sums[r * columns + c] = vec_fma(factor, elements[c], sums[r * columns + c]);
        }
    }
    HONE_UNROLL
    for (int r = 0; r < ROWS; r++) {
        HONE_UNROLL
        for (int c = 0; c < columns; c++)
            vec_store(out, HONE_F32, r * right_stride + i + c * VEC_WIDTH, sums[r * columns + c]);
    }
}

// out[r][j] = rows[r] times key j; the keys are transposed.
// For the keys from `first` on, a whole vector, to `last` and to that vector's end.
static void multiply_turned(
    const job *own, const float *rows, const float *turned, float *out, int64_t first, int64_t last)
{
    int64_t j = first;
    for (; j + SIDE_BY_SIDE * VEC_WIDTH <= last; j += SIDE_BY_SIDE * VEC_WIDTH)
        multiply_at(rows, own->width, turned, own->keys, out, 0, own->all.of.dim, j, SIDE_BY_SIDE);
    for (; j < last; j += VEC_WIDTH)
        multiply_at(rows, own->width, turned, own->keys, out, 0, own->all.of.dim, j, 1);
}

// out[r] = sum over the keys of factors[r][j] rows[j].
static void multiply_keys(
    const job *own, const float *factors, const float *rows, float *out, int64_t first, int64_t last)
{
    int64_t i = 0;
    for (; i + SIDE_BY_SIDE * VEC_WIDTH <= own->width; i += SIDE_BY_SIDE * VEC_WIDTH)
        multiply_at(factors, own->keys, rows, own->width, out, first, last, i, SIDE_BY_SIDE);
    for (; i < own->width; i += VEC_WIDTH)
        multiply_at(factors, own->keys, rows, own->width, out, first, last, i, 1);
}

// sums[j] += sum over the queries of factors[r][j] rows[r], for `columns` vectors of elements from i on.
HONE_INLINE void add_queries_at(
    const job *own,
    const float *factors,
    const float *rows,
    float *sums,
    int64_t first,
    int64_t last,
    int64_t i,
    const int columns)
{
    vec elements[MOST_VECTORS];
    HONE_UNROLL
    for (int r = 0; r < ROWS; r++) {
        HONE_UNROLL
        for (int c = 0; c < columns; c++)
            elements[r * columns + c] = vec_load(rows, HONE_F32, r * own->width + i + c * VEC_WIDTH);
    }
    for (int64_t j = first; j < last; j++) {
        vec parts[SIDE_BY_SIDE];
        HONE_UNROLL
        for (int c = 0; c < columns; c++)
            parts[c] = vec_set(0.0f);
        HONE_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const vec factor = vec_set(factors[r * own->keys + j]);
            HONE_UNROLL
            for (int c = 0; c < columns; c++)
                parts[c] = vec_fma(factor, elements[r * columns + c], parts[c]);
        }
        HONE_UNROLL
        for (int c = 0; c < columns; c++) {
            const int64_t at = j * own->width + i + c * VEC_WIDTH;
            vec_store(sums, HONE_F32, at, vec_add(parts[c], vec_load(sums, HONE_F32, at)));
        }
    }
}

static void add_queries(
    const job *own, const float *factors, const float *rows, float *sums, int64_t first, int64_t last)
{
    int64_t i = 0;
    for (; i + SIDE_BY_SIDE * VEC_WIDTH <= own->width; i += SIDE_BY_SIDE * VEC_WIDTH)
        add_queries_at(own, factors, rows, sums, first, last, i, SIDE_BY_SIDE);
    for (; i < own->width; i += VEC_WIDTH)
        add_queries_at(own, factors, rows, sums, first, last, i, 1);
}

// Queries ---------------------------------------------------------------------------------------------------------------

HONE_INLINE vec part_of(const float *row, int64_t i, int64_t count)
{
    return count >= VEC_WIDTH ? vec_load(row, HONE_F32, i) : vec_load_part(row, HONE_F32, i, count);
}

HONE_INLINE void put_part(float *row, int64_t i, int64_t count, vec value)
{
    if (count >= VEC_WIDTH)
        vec_store(row, HONE_F32, i, value);
    else
        vec_store_part(row, HONE_F32, i, count, value);
}

static void clear(float *row, int64_t first, int64_t last)
{
    if (first < last) memset(row + first, 0, (size_t)(last - first) * sizeof *row);
}

// Computes the factor of a weight's error in the gradient of a product of query and key; called before the logits
// become weights. 1 - tanh^2 x is computed as 4 e / (1 + e)^2 with e = exp(-2 |x|), which loses no precision where tanh
// is 1 except for rounding.
static void set_slopes(const hone_attention *p, const float *logits, float *slopes, int64_t count)
{
    const vec zero = vec_set(0.0f), one = vec_set(1.0f), scale = vec_set((float)p->scale);
    const vec inner = vec_set((float)(2 * p->scale / p->cap)), most = vec_set((float)(4 * p->scale));
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        vec slope = scale;
        if (p->has_cap) {
            const vec bent = vec_mul(part_of(logits, i, count - i), inner);
            const vec power = vec_exp(vec_min(bent, vec_sub(zero, bent))), sum = vec_add(one, power);
            slope = vec_div(vec_mul(most, power), vec_mul(sum, sum));
        }
        put_part(slopes, i, count - i, slope);
    }
}

static int64_t heaviest(const float *weights, int64_t count)
{
    int64_t at = 0;
    for (int64_t j = 1; j < count; j++)
        if (weights[j] > weights[at]) at = j;
    return at;
}

// errors[j] = weights[j] (errors[j] - sum of weights errors) slopes[j]. Weights sum to 1, so subtracting the same
// number from all errors changes nothing. Subtracting the error of the heaviest key makes that key's error 0, so that
// no sum is a difference of rounded numbers if it has nearly all of the weight.
static void set_errors(const float *weights, float *errors, const float *slopes, int64_t count)
{
    const vec most = vec_set(errors[heaviest(weights, count)]);
    vec sum = vec_set(0.0f);
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        const vec apart = vec_sub(part_of(errors, i, count - i), most);
        sum = vec_fma(part_of(weights, i, count - i), apart, sum); // weights are 0 after the end
        put_part(errors, i, count - i, apart);
    }
    const vec mean = vec_set(vec_sum(sum));
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        const vec apart = vec_sub(part_of(errors, i, count - i), mean);
        const vec share = vec_mul(part_of(weights, i, count - i), apart);
        put_part(errors, i, count - i, vec_mul(share, part_of(slopes, i, count - i)));
    }
}

// Of the keys from `first` to `last`, only those that the query sees have weight.
static void weigh_query(const job *own, const workspace *m, int64_t r, int64_t first, int64_t last)
{
    const hone_attention *p = &own->all.of;
    float *weights = m->weights + r * own->keys, *errors = m->errors + r * own->keys;
    float *slopes = m->slopes + r * own->keys;
    const int64_t from = m->first[r], to = m->last[r];
    if (r >= m->count) {
        clear(weights, first, last);
        clear(errors, first, last);
        return;
    }
    if (m->is_blind[r]) {
        for (int64_t j = 0; j < p->kv_len; j++)
            weights[j] = 1.0f / (float)p->kv_len;
        clear(errors, first, last);
        return;
    }
    set_slopes(p, weights + from, slopes + from, to - from);
    VEC_NAME(hone_attention_weigh)(weights + from, to - from, p->scale, p->has_cap ? p->cap : 0);
    set_errors(weights + from, errors + from, slopes + from, to - from);
    clear(weights, first, from);
    clear(weights, to, last);
    clear(errors, first, from);
    clear(errors, to, last);
}

static void differentiate(const job *own, workspace *m)
{
    int64_t first = own->keys, last = 0;
    for (int64_t r = 0; r < m->count; r++) {
        first = m->first[r] < first ? m->first[r] : first;
        last = m->last[r] > last ? m->last[r] : last;
    }
    first = first / VEC_WIDTH * VEC_WIDTH;
    multiply_turned(own, m->query, m->turned_key, m->weights, first, last);
    multiply_turned(own, m->d_out, m->turned_value, m->errors, first, last);
    for (int64_t r = 0; r < ROWS; r++)
        weigh_query(own, m, r, first, last);
    // A query that is not finite must not affect the keys that it does not see.
    if (m->count == 1) first = m->first[0];
    add_queries(own, m->weights, m->d_out, m->d_value, first, last);
    if (m->count == 1 && m->is_blind[0]) last = first;
    multiply_keys(own, m->errors, m->key, m->d_query, first, last);
    add_queries(own, m->errors, m->query, m->d_key, first, last);
}

static bool is_finite(const float *row, int64_t width)
{
    vec sum = vec_set(0.0f);
    const vec zero = vec_set(0.0f);
    for (int64_t i = 0; i < width; i += VEC_WIDTH)
        sum = vec_fma(vec_load(row, HONE_F32, i), zero, sum); // infinity gives NaN too
    return vec_sum(sum) == 0;
}

// Queries `row` to `row + count` of a kv_head: position by position, heads of the group inside.
static void load_queries(const job *own, workspace *m, int64_t batch, int64_t kv_head, int64_t row, int64_t count)
{
    const hone_attention *p = &own->all.of;
    const int64_t size = hone_element_size(p->dtype);
    m->count = count;
    memset(m->query, 0, (size_t)(2 * ROWS * own->width) * sizeof *m->query); // d_out follows in memory
    for (int64_t r = 0; r < count; r++) {
        const int64_t position = (row + r) / p->group, head = kv_head * p->group + (row + r) % p->group;
        load_row(
            m->query + r * own->width, hone_attention_at(&p->query, size, batch, position, head), p->dtype, p->dim);
        load_row(m->d_out + r * own->width, hone_attention_at(&p->out, size, batch, position, head), p->dtype, p->dim);
        hone_attention_range(p, position, &m->first[r], &m->last[r]);
        m->is_blind[r] = m->first[r] == m->last[r];
        if (m->is_blind[r]) m->last[r] = p->kv_len;
    }
}

static void store_queries(const job *own, const workspace *m, int64_t batch, int64_t kv_head, int64_t row)
{
    const hone_attention *p = &own->all.of;
    for (int64_t r = 0; r < m->count; r++) {
        const int64_t position = (row + r) / p->group, head = kv_head * p->group + (row + r) % p->group;
        char *to = hone_attention_at(&own->all.d_query, hone_element_size(p->dtype), batch, position, head);
        store_row(to, m->d_query + r * own->width, p->dtype, p->dim);
    }
}

static void run_queries(const job *own, workspace *m, int64_t batch, int64_t kv_head, int64_t row, int64_t count)
{
    bool is_plain = true;
    load_queries(own, m, batch, kv_head, row, count);
    for (int64_t r = 0; r < 2 * ROWS; r++)
        is_plain = is_plain && is_finite(m->query + r * own->width, own->width);
    if (is_plain || count == 1) {
        differentiate(own, m);
        store_queries(own, m, batch, kv_head, row);
        return;
    }
    for (int64_t r = 0; r < count; r++)
        run_queries(own, m, batch, kv_head, row + r, 1);
}

static void run_task(void *ctx, int64_t index, int32_t worker)
{
    const job *own = ctx;
    const hone_attention *p = &own->all.of;
    const int64_t head = index / own->splits, split = index % own->splits;
    const int64_t batch = head / p->kv_heads, kv_head = head % p->kv_heads;
    workspace m =
        place(own, own->workers + worker * own->piece, own->shared != NULL ? own->shared + index * own->sums : NULL);
    const int64_t blocks = (own->rows + ROWS - 1) / ROWS;
    const int64_t first = blocks * split / own->splits * ROWS, end = blocks * (split + 1) / own->splits * ROWS;
    const int64_t last = end < own->rows ? end : own->rows;
    load_head(own, &m, batch, kv_head);
    memset(m.d_key, 0, (size_t)own->sums * sizeof *m.d_key);
    for (int64_t row = first; row < last; row += ROWS)
        run_queries(own, &m, batch, kv_head, row, last - row < ROWS ? last - row : ROWS);
    if (own->shared == NULL) store_head(own, m.d_key, m.d_value, batch, kv_head);
}

// Adds the sums of all splits of a kv_head, in their order.
static void join_splits(void *ctx, int64_t head)
{
    const job *own = ctx;
    const hone_attention *p = &own->all.of;
    float *into = own->shared + head * own->splits * own->sums;
    for (int64_t split = 1; split < own->splits; split++)
        for (int64_t i = 0; i < own->sums; i++)
            into[i] += into[split * own->sums + i];
    store_head(own, into, into + own->sums / 2, head / p->kv_heads, head % p->kv_heads);
}

static int64_t whole_vectors(int64_t count)
{
    return (count + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
}

hone_status VEC_NAME(hone_attention_vjp)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    job own = {.all = hone_attention_vjp_of(plan, args), .splits = plan->config[ATTENTION_VJP_SPLITS]};
    const hone_attention *p = &own.all.of;
    const int32_t threads = (int32_t)plan->config[ATTENTION_VJP_THREADS];
    const int64_t heads = p->batch * p->kv_heads, tasks = heads * own.splits;
    own.rows = p->q_len * p->group;
    own.width = whole_vectors(p->dim);
    own.keys = whole_vectors(p->kv_len);
    own.sums = 2 * p->kv_len * own.width;
    own.piece = (worker_floats(&own) + 15) / 16 * 16;
    const int64_t shared = own.splits > 1 ? (tasks * own.sums + 15) / 16 * 16 : 0;
    float *memory = hone_scratch_get((size_t)(threads * own.piece + shared) * sizeof *memory);
    if (memory == NULL) return HONE_OUT_OF_MEMORY;
    own.workers = memory;
    own.shared = own.splits > 1 ? memory + threads * own.piece : NULL;
    hone_plan_parallel_workers(plan, execution, threads, tasks, run_task, &own);
    if (own.splits > 1) hone_plan_parallel_for(plan, execution, threads, heads, join_splits, &own);
    return HONE_OK;
}
