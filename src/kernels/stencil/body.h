// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// The volume is cut into tiles, a task each. In a tile several rows are computed at once: a row between two of them is
// loaded once for both. Outside of the volume a row of zeros is used, so the inner loop has no conditions.
#include "kernels/stencil/stencil.h"
#include "kernels/vector/arguments.h"

enum { MOST_ROWS = 4, MOST_UNROLL = 4, MOST_TILE_X = 2048 };

static const float zeros[MOST_TILE_X + 1];

typedef struct tiling {
    hone_stencil volume;
    int64_t tile_z, tile_y, tile_x, rows, unroll, prefetch;
    int64_t across_y, across_x; // tiles
    bool by_columns, stream;
} tiling;

// Rows of one plane that are computed together, from column `first` on, to which index 0 of every pointer refers.
typedef struct group {
    const tiling *job;
    int64_t first, count;               // columns
    const float *centre[MOST_ROWS + 2]; // the row before, the rows, the row after
    const float *below[MOST_ROWS], *above[MOST_ROWS];
    const float *ahead[MOST_ROWS]; // to prefetch; NULL: nothing
    float *out[MOST_ROWS];
} group;

static const float *row_at(const tiling *job, int64_t z, int64_t y, int64_t x)
{
    const hone_stencil *v = &job->volume;
    bool inside = z >= 0 && z < v->depth && y >= 0 && y < v->height;
    return inside ? v->x + z * v->x_plane + y * v->x_row + x : zeros;
}

// Computes a single row at one column, with zeros beyond the left and right edges.
static void set_point(const group *g, int row, int64_t i)
{
    const hone_stencil *v = &g->job->volume;
    const float *w = v->weights, *centre = g->centre[row + 1];
    float sum = w[STENCIL_CENTRE] * centre[i];
    if (g->first + i > 0) sum += w[STENCIL_LEFT] * centre[i - 1];
    if (g->first + i + 1 < v->width) sum += w[STENCIL_RIGHT] * centre[i + 1];
    sum += w[STENCIL_UP] * g->centre[row][i] + w[STENCIL_DOWN] * g->centre[row + 2][i];
    g->out[row][i] = sum + w[STENCIL_BELOW] * g->below[row][i] + w[STENCIL_ABOVE] * g->above[row][i];
}

HONE_INLINE vec part_of(const float *row, int64_t i, int64_t count)
{
    return count < VEC_WIDTH ? vec_load_part(row, HONE_F32, i, count) : vec_load(row, HONE_F32, i);
}

// Computes the sums of `count` columns, at most a vector, of all rows.
HONE_INLINE void sums_of(const group *g, const vec *w, int64_t i, int64_t count, int rows, vec *sums)
{
    vec centre[MOST_ROWS + 2];
    HONE_UNROLL
    for (int r = 0; r < rows + 2; r++)
        centre[r] = part_of(g->centre[r], i, count);
    HONE_UNROLL
    for (int r = 0; r < rows; r++) {
        vec sum = vec_mul(w[STENCIL_CENTRE], centre[r + 1]);
        sum = vec_fma(w[STENCIL_UP], centre[r], sum);
        sum = vec_fma(w[STENCIL_DOWN], centre[r + 2], sum);
        sum = vec_fma(w[STENCIL_LEFT], part_of(g->centre[r + 1], i - 1, count), sum);
        sum = vec_fma(w[STENCIL_RIGHT], part_of(g->centre[r + 1], i + 1, count), sum);
        sum = vec_fma(w[STENCIL_BELOW], part_of(g->below[r], i, count), sum);
        sums[r] = vec_fma(w[STENCIL_ABOVE], part_of(g->above[r], i, count), sum);
    }
}

HONE_INLINE void take_weights(const group *g, vec w[STENCIL_POINTS])
{
    HONE_UNROLL
    for (int i = 0; i < STENCIL_POINTS; i++)
        w[i] = vec_set(g->job->volume.weights[i]);
}

HONE_INLINE void set_part(const group *g, const vec *w, int64_t i, int64_t count, int rows)
{
    vec sums[MOST_ROWS];
    sums_of(g, w, i, count, rows, sums);
    HONE_UNROLL
    for (int r = 0; r < rows; r++)
        vec_store_part(g->out[r], HONE_F32, i, count, sums[r]);
}

HONE_INLINE void set_parts_of(const group *g, const vec *w, int64_t i, int64_t to, int rows)
{
    for (; i + VEC_WIDTH <= to; i += VEC_WIDTH)
        set_part(g, w, i, VEC_WIDTH, rows);
    if (i < to) set_part(g, w, i, to - i, rows);
}

HONE_OUTLINE void set_parts_once(const group *g, int64_t i, int64_t to, int rows)
{
    vec w[STENCIL_POINTS];
    take_weights(g, w);
    switch (rows) {
    case 1:
        set_parts_of(g, w, i, to, 1);
        break;
    case 2:
        set_parts_of(g, w, i, to, 2);
        break;
    default:
        set_parts_of(g, w, i, to, 4);
    }
}

// Computes the columns [i, to) that the unrolled loop leaves before and after it. With AVX2 calls would make rows of
// 100 columns take 1.11 times as long; the other sets share one copy of it.
HONE_INLINE void set_parts(const group *g, const vec *w, int64_t i, int64_t to, int rows)
{
    if (VEC_WIDTH == 8)
        set_parts_of(g, w, i, to, rows);
    else
        set_parts_once(g, i, to, rows);
}

HONE_INLINE void fetch(const group *g, int64_t i, int rows)
{
    HONE_UNROLL
    for (int r = 0; r < rows; r++)
        __builtin_prefetch(g->ahead[r] + i);
}

// Columns [from, to), whose left and right neighbours all exist.
HONE_INLINE void set_columns(const group *g, int64_t from, int64_t to, int rows, int unroll, bool stream)
{
    vec w[STENCIL_POINTS];
    take_weights(g, w);
    int64_t i = from, head = (int64_t)((-(uintptr_t)(g->out[0] + from) / sizeof(float)) % VEC_WIDTH);
    if (head > 0 && i < to) {
        if (head > to - i) head = to - i;
        set_parts(g, w, i, i + head, rows);
        i += head;
    }
    for (; i + unroll * VEC_WIDTH <= to; i += unroll * VEC_WIDTH) {
        vec sums[MOST_UNROLL][MOST_ROWS];
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            if (g->ahead[0]) fetch(g, i + u * VEC_WIDTH, rows);
            sums_of(g, w, i + u * VEC_WIDTH, VEC_WIDTH, rows, sums[u]);
        }
        HONE_UNROLL
        for (int r = 0; r < rows; r++)
            HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            int64_t at = i + u * VEC_WIDTH;
            stream ? vec_stream(g->out[r], HONE_F32, at, sums[u][r]) : vec_store(g->out[r], HONE_F32, at, sums[u][r]);
        }
    }
    if (i < to) set_parts(g, w, i, to, rows);
}

// Whether streamed stores are aligned in all rows.
static bool can_stream(const group *g, int rows)
{
    const uintptr_t bytes = VEC_WIDTH * sizeof(float);
    for (int r = 1; r < rows; r++)
        if ((uintptr_t)g->out[r] % bytes != (uintptr_t)g->out[0] % bytes) return false;
    return g->job->stream && (uintptr_t)g->out[0] % sizeof(float) == 0;
}

HONE_INLINE void set_rows(const group *g, int rows, int unroll)
{
    int64_t width = g->job->volume.width, from = g->first == 0, to = g->count - (g->first + g->count == width);
    for (int r = 0; r < rows; r++) {
        if (from > 0) set_point(g, r, 0);
        if (to < g->count && to >= from) set_point(g, r, to);
    }
    if (VEC_STREAMS && can_stream(g, rows))
        set_columns(g, from, to, rows, unroll, true);
    else
        set_columns(g, from, to, rows, unroll, false);
}

HONE_INLINE void set_unrolled(const group *g, int rows)
{
    switch (g->job->unroll) {
    case 1:
        set_rows(g, rows, 1);
        break;
    case 2:
        set_rows(g, rows, 2);
        break;
    default:
        set_rows(g, rows, 4);
    }
}

// The next data that are not in a cache yet: in the next plane, rows further on; or the same rows, planes further on.
static const float *ahead_of(const tiling *job, int64_t z, int64_t y, int64_t x)
{
    const hone_stencil *v = &job->volume;
    if (job->prefetch == 0) return NULL;
    int64_t plane = z + 1 + (job->by_columns ? job->prefetch : 0),
            row = y + (job->by_columns ? 0 : job->prefetch * job->rows);
    return row_at(job, plane < v->depth ? plane : v->depth - 1, row < v->height ? row : v->height - 1, x);
}

static void set_group(const tiling *job, int64_t z, int64_t y, int64_t x, int64_t count, int rows)
{
    const hone_stencil *v = &job->volume;
    group g = {.job = job, .first = x, .count = count};
    for (int r = 0; r < rows + 2; r++)
        g.centre[r] = row_at(job, z, y + r - 1, x);
    for (int r = 0; r < rows; r++) {
        g.below[r] = row_at(job, z - 1, y + r, x);
        g.above[r] = row_at(job, z + 1, y + r, x);
        g.ahead[r] = ahead_of(job, z, y + r, x);
        g.out[r] = v->y + z * v->y_plane + (y + r) * v->y_row + x;
    }
    switch (rows) {
    case 1:
        set_unrolled(&g, 1);
        break;
    case 2:
        set_unrolled(&g, 2);
        break;
    default:
        set_unrolled(&g, 4);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void run_task(void *ctx, int64_t index)
{
    const tiling *job = ctx;
    const hone_stencil *v = &job->volume;
    int64_t x = index % job->across_x * job->tile_x, rest = index / job->across_x;
    int64_t y_first = rest % job->across_y * job->tile_y, z_first = rest / job->across_y * job->tile_z;
    int64_t y_last = least(y_first + job->tile_y, v->height), z_last = least(z_first + job->tile_z, v->depth);
    int64_t count = least(job->tile_x, v->width - x), planes = z_last - z_first;
    // Whole groups, then the remaining rows one by one.
    int64_t whole = (y_last - y_first) / job->rows, groups = whole + (y_last - y_first) % job->rows;
    for (int64_t i = 0; i < groups * planes; i++) {
        int64_t z = z_first + (job->by_columns ? i % planes : i / groups);
        int64_t n = job->by_columns ? i / planes : i % groups;
        int64_t y = y_first + (n < whole ? n * job->rows : whole * job->rows + n - whole);
        set_group(job, z, y, x, count, n < whole ? (int)job->rows : 1);
    }
    if (job->stream) vec_stream_end();
}

hone_status VEC_NAME(hone_stencil)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    tiling job = {
        .volume = hone_stencil_of(args),
        .tile_z = config[STENCIL_TILE_Z],
        .tile_y = config[STENCIL_TILE_Y],
        .tile_x = config[STENCIL_TILE_X],
        .rows = config[STENCIL_ROWS],
        .unroll = config[STENCIL_UNROLL],
        .prefetch = config[STENCIL_PREFETCH],
        .by_columns = config[STENCIL_ORDER] == STENCIL_BY_COLUMNS,
        .stream = config[STENCIL_STORE] == 1,
    };
    const hone_stencil *v = &job.volume;
    job.across_y = (v->height + job.tile_y - 1) / job.tile_y;
    job.across_x = (v->width + job.tile_x - 1) / job.tile_x;
    int64_t tasks = (v->depth + job.tile_z - 1) / job.tile_z * job.across_y * job.across_x;
    hone_plan_parallel_for(plan, execution, (int32_t)config[STENCIL_THREADS], tasks, run_task, &job);
    return HONE_OK;
}
