// out = softmax(scale q k^T) v with tensor cores (m16n8k16). Sums are in float; weights are rounded to the tensors'
// dtype. CAUSAL: a query attends to the keys up to its position. RANGED: keys are limited to `window` on both sides of
// the position, unless `window` is negative; logits are capped, unless the cap is 0. The rows of a block are the
// queries that share one key head, ordered by position, then by query head of the group.
//
// A warp has 16 rows and keys_per_warp keys of each tile of its block: warps_m warps have different rows, warps_n warps
// different keys. The blocks of a cluster have different tiles. Their partial results are combined at the end. Tiles of
// keys and values are copied by cp.async; shared memory holds `stages` of them.
enum { threads = 32 * warps_m * warps_n, block_m = 16 * warps_m, tile = keys_per_warp * warps_n };
enum { stride = DIM + 8 }; // elements of a row in shared memory: rows begin in different banks
enum { tile_bytes = tile * stride * 2, logits = keys_per_warp / 8, columns = DIM / 8, steps = DIM / 16 };

#define INFINITE __int_as_float(0x7f800000)

typedef unsigned short element;
typedef long long index64;

extern __shared__ __align__(16) unsigned char memory[];

__device__ unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

__device__ unsigned pair_of(float low, float high)
{
    unsigned pair;
#if defined(hone_query_bf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
    return pair;
}

__device__ float power(float x)
{
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
    return value;
}

__device__ void multiply(float sums[4], const unsigned a[4], unsigned b0, unsigned b1)
{
    asm volatile(
#if defined(hone_query_bf16)
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ void load_matrices(unsigned out[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

__device__ void load_transposed(unsigned out[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

// Starts a copy of 16 bytes, or of zeros if is_there is false.
__device__ void copy_later(unsigned to, const element *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0) : "memory");
}

__device__ void end_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Copies rows [first, first + rows) of a head, `step` elements apart. Rows from `count` on do not exist.
__device__ void copy_rows(unsigned to, const element *from, index64 step, index64 first, index64 count, int rows)
{
    for (int i = threadIdx.x; i < rows * (DIM / 8); i += threads) {
        const int row = i / (DIM / 8), chunk = i % (DIM / 8);
        const bool is_there = first + row < count;
        copy_later(to + (row * stride + chunk * 8) * 2, from + (is_there ? (first + row) * step : 0) + chunk * 8, is_there);
    }
}

struct problem {
    const element *query, *key, *value;
    element *out;
    index64 q_len, kv_len, heads, kv_heads, group, window; // window < 0: no window

    __device__ index64 position_of(index64 row) const
    {
        return row / group;
    }
    // The index of the row's first element in query and out.
    __device__ index64 place_of(index64 row) const
    {
        return ((blockIdx.z * q_len + row / group) * heads + blockIdx.y * group + row % group) * DIM;
    }
};

// The running results of a warp's 16 rows. This thread has rows lane / 4 and lane / 4 + 8.
struct found {
    float most[2], sum[2], out[columns][4];
};

__device__ void load_queries(const problem &p, index64 first, unsigned queries[steps][4])
{
    const unsigned at = shared_address(memory);
    for (int i = threadIdx.x; i < block_m * (DIM / 8); i += threads) {
        const int row = i / (DIM / 8), chunk = i % (DIM / 8);
        const bool is_there = first + row < p.q_len * p.group;
        copy_later(
            at + (row * stride + chunk * 8) * 2, p.query + (is_there ? p.place_of(first + row) : 0) + chunk * 8, is_there);
    }
    end_group();
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 / warps_n * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < steps; i++)
        load_matrices(queries[i], at + (row * stride + i * 16 + lane / 16 * 8) * 2);
    __syncthreads();
}

__device__ void load_tile(const problem &p, int stage, index64 first)
{
    const index64 step = p.kv_heads * DIM, head = (blockIdx.z * p.kv_len * p.kv_heads + blockIdx.y) * DIM;
    const unsigned to = shared_address(memory) + stage * 2 * tile_bytes;
    copy_rows(to, p.key + head, step, first, p.kv_len, tile);
    copy_rows(to + tile_bytes, p.value + head, step, first, p.kv_len, tile);
}

// Multiplies the rows by the warp's keys of a tile.
__device__ void score(unsigned keys, const unsigned queries[steps][4], float out[logits][4])
{
    const int lane = threadIdx.x % 32, key = lane / 16 * 8 + lane % 8, from = lane / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n < logits; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[n][i] = 0;
#pragma unroll
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int n = 0; n < logits; n += 2) {
            unsigned b[4];
            load_matrices(b, keys + ((n * 8 + key) * stride + step * 16 + from) * 2);
            multiply(out[n], queries[step], b[0], b[1]);
            multiply(out[n + 1], queries[step], b[2], b[3]);
        }
}

// Sets logits of the two rows to minus infinity for keys before `begins` and from `ends` on.
__device__ void mask(float out[logits][4], index64 first, const index64 begins[2], const index64 ends[2])
{
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < logits; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const index64 key = first + n * 8 + column + i % 2;
            if (key >= ends[i / 2] || (RANGED && key < begins[i / 2])) out[n][i] = -INFINITE;
        }
}

// tanh for all x, infinities included, with an absolute error of 1e-7.
__device__ float bounded(float x)
{
    return 1 - 2 / (power(x * 2.8853900817779268f) + 1);
}

// Turns logits into weights relative to the largest logit so far, and rescales the previous results to it.
__device__ void weigh(float out[logits][4], found *f)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float most = f->most[row], sum = 0;
#pragma unroll
        for (int n = 0; n < logits; n++)
            most = fmaxf(most, fmaxf(out[n][2 * row], out[n][2 * row + 1]));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        const float base = most == -INFINITE ? 0 : most;
        const float share = power(f->most[row] - base); // 0 before the first key, when nothing is summed yet
        f->most[row] = most;
#pragma unroll
        for (int n = 0; n < logits; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) {
                out[n][i] = power(out[n][i] - base);
                sum += out[n][i];
            }
        f->sum[row] = f->sum[row] * share + sum;
#pragma unroll
        for (int c = 0; c < columns; c++) {
            f->out[c][2 * row] *= share;
            f->out[c][2 * row + 1] *= share;
        }
    }
}

// Adds the warp's weighted values of a tile.
__device__ void add_values(unsigned values, const float weights[logits][4], found *f)
{
    const int lane = threadIdx.x % 32, key = lane / 8 % 2 * 8 + lane % 8, from = lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < logits; n += 2) {
        const unsigned a[4] = {pair_of(weights[n][0], weights[n][1]), pair_of(weights[n][2], weights[n][3]),
                               pair_of(weights[n + 1][0], weights[n + 1][1]), pair_of(weights[n + 1][2], weights[n + 1][3])};
#pragma unroll
        for (int c = 0; c < columns; c += 2) {
            unsigned b[4];
            load_transposed(b, values + ((n * 8 + key) * stride + c * 8 + from) * 2);
            multiply(f->out[c], a, b[0], b[1]);
            multiply(f->out[c + 1], a, b[2], b[3]);
        }
    }
}

// Adds the sums of the four threads that share a row.
__device__ void end_sums(found *f)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        f->sum[row] += __shfl_xor_sync(0xffffffffu, f->sum[row], 1);
        f->sum[row] += __shfl_xor_sync(0xffffffffu, f->sum[row], 2);
    }
}

__device__ void write_pair(const problem &p, index64 row, int column, float low, float high)
{
    if (row < p.q_len * p.group) *reinterpret_cast<unsigned *>(p.out + p.place_of(row) + column) = pair_of(low, high);
}

__device__ void write_alone(const problem &p, index64 first, const found &f)
{
    const int lane = threadIdx.x % 32;
    const index64 row = first + threadIdx.x / 32 / warps_n * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float share = 1 / f.sum[half];
#pragma unroll
        for (int c = 0; c < columns; c++)
            write_pair(
                p, row + 8 * half, c * 8 + lane % 4 * 2, f.out[c][2 * half] * share, f.out[c][2 * half + 1] * share);
    }
}

// Joining -------------------------------------------------------------------------------------------------------------

// A warp's partial result in shared memory: the largest logit and the sum of each row, then the output rows.
enum { part_floats = 16 * (2 + DIM) };

__device__ void wait_for_all()
{
#if splits > 1
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

__device__ float read_part(int rank, int warp, int index)
{
    const float *at = reinterpret_cast<const float *>(memory) + warp * part_floats + index;
#if splits > 1
    unsigned there;
    float value;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(at)), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    return value;
#else
    return *at;
#endif
}

__device__ void write_part(const found &f)
{
    float *to = reinterpret_cast<float *>(memory) + threadIdx.x / 32 * part_floats;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = lane / 4 + 8 * half;
        if (lane % 4 == 0) to[row] = f.most[half];
        if (lane % 4 == 0) to[16 + row] = f.sum[half];
#pragma unroll
        for (int c = 0; c < columns; c++) {
            to[32 + row * DIM + c * 8 + lane % 4 * 2] = f.out[c][2 * half];
            to[32 + row * DIM + c * 8 + lane % 4 * 2 + 1] = f.out[c][2 * half + 1];
        }
    }
}

// Combines the partial results. The threads of the cluster share the rows' pairs of columns.
__device__ void join(const problem &p, index64 first, int rank)
{
    for (int i = rank * threads + threadIdx.x; i < block_m * (DIM / 2); i += splits * threads) {
        const int row = i / (DIM / 2), column = i % (DIM / 2) * 2, warp = row / 16 * warps_n, within = row % 16;
        float most = -INFINITE, sum = 0, low = 0, high = 0;
        if (first + row >= p.q_len * p.group) continue;
        for (int part = 0; part < splits * warps_n; part++)
            most = fmaxf(most, read_part(part / warps_n, warp + part % warps_n, within));
        for (int part = 0; part < splits * warps_n; part++) {
            const int from = part / warps_n, of = warp + part % warps_n;
            const float own = read_part(from, of, within);
            // A part without a key adds nothing, unless its sum is NaN.
            const float share = own == -INFINITE ? 0 : power(own - most);
            const float own_sum = read_part(from, of, 16 + within);
            sum += own == -INFINITE ? own_sum : own_sum * share;
            low += read_part(from, of, 32 + within * DIM + column) * share;
            high += read_part(from, of, 32 + within * DIM + column + 1) * share;
        }
        write_pair(p, first + row, column, low / sum, high / sum);
    }
}

// ------------------------------------------------------------------------------------------------------------------

// The first and the end of the keys that a row attends to. Neither decreases from row to row.
__device__ index64 begin_of(const problem &p, index64 row)
{
    return RANGED && p.window >= 0 && p.position_of(row) > p.window ? p.position_of(row) - p.window : 0;
}

__device__ index64 end_of(const problem &p, index64 row)
{
    const index64 position = p.position_of(row), after = CAUSAL ? 0 : p.window;
    const bool ends = CAUSAL || (RANGED && p.window >= 0);
    return ends && position + after + 1 < p.kv_len ? position + after + 1 : p.kv_len;
}

extern "C" __global__ void __launch_bounds__(threads) flash_attention(
    const element *query,
    const element *key,
    const element *value,
    element *out,
    index64 q_len,
    index64 kv_len,
    int heads,
    int kv_heads,
    double softmax_scale
#if RANGED
    ,
    index64 window,
    double cap
#endif
)
{
#if !RANGED
    const index64 window = -1;
    const double cap = 0;
#endif
    const problem p = {query, key, value, out, q_len, kv_len, heads, kv_heads, heads / kv_heads, window};
    // The last rows have the most keys, and begin first.
    const index64 block = gridDim.x / splits - 1 - blockIdx.x / splits, first = block * block_m;
    const int rank = blockIdx.x % splits, warp_n = threadIdx.x / 32 % warps_n;
    const double log2e = 1.4426950408889634;
    const float factor = (float)(cap != 0 ? softmax_scale / cap : softmax_scale * log2e), limit = (float)(cap * log2e);
    const index64 last_row = first + block_m < q_len * p.group ? first + block_m - 1 : q_len * p.group - 1;
    const index64 end = end_of(p, last_row), least_end = end_of(p, first), most_begin = begin_of(p, last_row);
    const index64 first_tile = begin_of(p, first) / tile, end_tile = (end + tile - 1) / tile;
    const index64 each = (end_tile - first_tile + splits - 1) / splits;
    const index64 from = first_tile + rank * each, to = from + each < end_tile ? from + each : end_tile;
    const index64 own_row = first + threadIdx.x / 32 / warps_n * 16 + threadIdx.x % 32 / 4;
    const index64 begins[2] = {begin_of(p, own_row), begin_of(p, own_row + 8)};
    const index64 ends[2] = {end_of(p, own_row), end_of(p, own_row + 8)};
    unsigned queries[steps][4];
    load_queries(p, first, queries);
    found f = {{-INFINITE, -INFINITE}, {0, 0}, {}};
    for (int stage = 0; stage < stages - 1; stage++) {
        if (from + stage < to) load_tile(p, stage, (from + stage) * tile);
        end_group();
    }
    for (index64 t = from; t < to; t++) {
        const int stage = (int)((t - from) % stages), next = (int)((t - from + stages - 1) % stages);
        const index64 begin = t * tile + warp_n * keys_per_warp;
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
        __syncthreads();
        if (t + stages - 1 < to) load_tile(p, next, (t + stages - 1) * tile);
        end_group();
        const unsigned keys = shared_address(memory) + stage * 2 * tile_bytes + warp_n * keys_per_warp * stride * 2;
        float weights[logits][4];
        score(keys, queries, weights);
#pragma unroll
        for (int n = 0; n < logits; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                weights[n][i] = RANGED && limit != 0 ? limit * bounded(weights[n][i] * factor) : weights[n][i] * factor;
        if (begin + keys_per_warp > least_end || (RANGED && begin < most_begin)) mask(weights, begin, begins, ends);
        weigh(weights, &f);
        add_values(keys + tile_bytes, weights, &f);
    }
    end_sums(&f);
#if splits * warps_n == 1
    write_alone(p, first, f);
#else
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    write_part(f);
    wait_for_all();
    join(p, first, rank);
    wait_for_all();
#endif
}
