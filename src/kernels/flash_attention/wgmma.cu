// out = softmax(scale q k^T) v by the tensor cores of compute capability 9.0 (common/wgmma.cuh), sums in float, weights
// rounded to the tensors' dtype. CAUSAL: a query sees the keys up to its position. The rows of a block are queries of one
// head of keys: position by position, heads of the group inside.
//
// A block has 64 rows for each of `groups` warpgroups. One more warpgroup copies tiles of `keys` keys and values in turn into a
// ring of `stages`. The tensor cores multiply queries by the keys of one tile and weights by the values of the tile before at
// the same time; with `turns` the warpgroups take the tensor cores in turn, so that one computes weights while another
// multiplies (Shah et al., FlashAttention-3, arXiv:2407.08608, sections 3.1 and 3.2).
enum {
    threads = 128 * groups + 128,
    block_m = 64 * groups,
    chunks = DIM / 8, // of 16 bytes in a row
    part_bytes = keys * LINE_BYTES, // 64 columns of a tile
    query_part_bytes = block_m * LINE_BYTES,
    query_bytes = block_m * DIM * 2,
    tile_bytes = keys * DIM * 2,
    logits = keys / 2, // of a thread
    sums_count = DIM / 2
};

#define INFINITE __int_as_float(0x7f800000)

typedef long long index64;

extern __shared__ __align__(ATOM_BYTES) unsigned char memory[];

__device__ float power(float x)
{
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
    return value;
}

// Barriers of the ring: of each place, that it is full, and that it is empty again.
struct ring {
    unsigned base;

    __device__ unsigned tile(int index) const
    {
        return base + query_bytes + index % stages * tile_bytes;
    }
    __device__ unsigned full(int index) const
    {
        return base + query_bytes + stages * tile_bytes + index % stages * 16;
    }
    __device__ unsigned empty(int index) const
    {
        return full(index) + 8;
    }
};

__device__ void begin_barrier(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ bool has_passed(unsigned barrier, int parity)
{
    unsigned passed;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(passed)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return passed != 0;
}

__device__ void wait_for(unsigned barrier, int parity)
{
    while (!has_passed(barrier, parity)) {
    }
}

// One of the threads of a warp says that the warp has done with a tile of the ring.
__device__ void release(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barrier);
}

// Barriers of warpgroups: number 1 + g is of the 128 threads of one, 4 + g says that it is the turn of one of two.
__device__ void wait_for_group(int g)
{
    asm volatile("bar.sync %0, 128;" ::"r"(1 + g) : "memory");
}

__device__ void wait_for_turn(int g)
{
#if turns
    asm volatile("bar.sync %0, 256;" ::"r"(4 + g) : "memory");
#endif
}

__device__ void give_turn_to(int g)
{
#if turns
    asm volatile("bar.arrive %0, 256;" ::"r"(4 + g) : "memory");
#endif
}

struct problem {
    const element *query, *key, *value;
    element *out;
    index64 q_len, kv_len;
    int heads, kv_heads, group, row_blocks, pairs; // of batch and head of keys
    double scale;
};

// A block's rows. Those that see the most keys come first, of `spread` heads at a time, whose keys and values share the last cache.
struct work {
    index64 position, batch; // of the first row
    int head, member;        // of the keys; of the first row in its group
    index64 rows;            // that are left from the first on

    explicit __device__ work(const problem &p)
    {
        const int most = spread < p.pairs ? spread : p.pairs;
        const int part = blockIdx.x / (most * p.row_blocks), within = blockIdx.x % (most * p.row_blocks);
        const int width = p.pairs - part * most < most ? p.pairs - part * most : most;
        const index64 first = (index64)(p.row_blocks - 1 - within / width) * block_m;
        const int pair = part * most + within % width;
        position = first / p.group;
        member = (int)(first % p.group);
        head = pair % p.kv_heads;
        batch = pair / p.kv_heads;
        rows = p.q_len * p.group - first;
    }
    __device__ index64 position_of(const problem &p, int row) const
    {
        return position + (member + row) / p.group;
    }
    // Of the row's first element in query and out.
    __device__ index64 place_of(const problem &p, int row) const
    {
        return ((batch * p.q_len + position_of(p, row)) * p.heads + head * p.group + (member + row) % p.group) * DIM;
    }
    // Where the keys that a row sees end.
    __device__ index64 end_of(const problem &p, int row) const
    {
        return CAUSAL && position_of(p, row) + 1 < p.kv_len ? position_of(p, row) + 1 : p.kv_len;
    }
    __device__ int tiles(const problem &p) const
    {
        return (int)((end_of(p, rows < block_m ? (int)rows - 1 : block_m - 1) + keys - 1) / keys);
    }
};

// Copying -------------------------------------------------------------------------------------------------------------

// Warps that copy a tile, and the rows that they copy at once.
enum { team_threads = 32 * copiers, teams = 4 / copiers, team_rows = team_threads / chunks };
static_assert(stages % teams == 0, "a place of the ring has one team, which has seen it empty each time before");

// `keys` rows of a head, of which `count` are there: a thread's chunk of each team_rows of them, `from` of the first.
__device__ void copy_tile(unsigned to, const element *from, index64 step, int count)
{
    const int thread = threadIdx.x % team_threads, chunk = thread % chunks;
    to += chunk / 8 * part_bytes;
#pragma unroll 8
    for (int row = thread / chunks; row < keys; row += team_rows) {
        copy_chunk(to + place_along_k(row, chunk % 8), from, row < count); // what is not there is not read
        from += team_rows * step;
    }
}

// All tiles: of keys to even places, of values to odd ones. Teams have the places in turn. Each waits for what it copied and
// makes the tensor cores see it, so that nobody who multiplies needs a fence.
__device__ void copy_tiles(const problem &p, const work &w, ring r)
{
    const int thread = threadIdx.x % team_threads, tiles = w.tiles(p);
    const index64 step = (index64)p.kv_heads * DIM;
    const index64 first = (w.batch * p.kv_len * p.kv_heads + w.head) * DIM + thread / chunks * step + thread % chunks * 8;
#pragma unroll 1
    for (int place = threadIdx.x % 128 / team_threads; place < 2 * tiles; place += teams) {
        const index64 begin = (index64)(place / 2) * keys, left = p.kv_len - begin;
        if (place >= stages) wait_for(r.empty(place), (place / stages - 1) & 1);
        copy_tile(r.tile(place), (place % 2 == 0 ? p.key : p.value) + first + begin * step, step, left < keys ? (int)left : keys);
        asm volatile("cp.async.wait_all;\n\tfence.proxy.async.shared::cta;" ::: "memory");
        release(r.full(place));
    }
}

// The group's 64 rows. What multiplies the logits is positive: queries take the sign, and become 0 where it is 0.
__device__ void copy_queries(const problem &p, const work &w, unsigned to, int g)
{
    const int thread = threadIdx.x % 128;
#pragma unroll 4
    for (int i = thread; i < 64 * chunks; i += 128) {
        const int row = 64 * g + i / chunks, chunk = i % chunks;
        const bool is_there = row < w.rows;
        copy_chunk(
            to + chunk / 8 * query_part_bytes + place_along_k(row, chunk % 8),
            p.query + (is_there ? w.place_of(p, row) : 0) + chunk * 8, is_there);
    }
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    if (!(p.scale > 0)) {
        const element exponent = OPERAND[0] == 'b' ? 0x7f80 : 0x7c00;
        for (int i = thread; i < 64 * chunks; i += 128) {
            const int row = 64 * g + i / chunks, chunk = i % chunks;
            element *at = reinterpret_cast<element *>(
                memory + chunk / 8 * query_part_bytes + place_along_k(row, chunk % 8));
            for (int j = 0; j < 8; j++)
                at[j] = p.scale < 0 ? at[j] ^ 0x8000 : (at[j] & exponent) == exponent ? exponent | 1 : 0; // NaN stays, 0 inf is one
        }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    wait_for_group(g);
}

// Multiplying ----------------------------------------------------------------------------------------------------------

// Begins the products of the group's rows with the keys of a tile.
__device__ void begin_scores(float (&scores)[logits], unsigned long long queries, unsigned tile)
{
    const unsigned long long lines = describe_along_k(tile, 0);
    begin_products();
#pragma unroll
    for (int step = 0; step < DIM / 16; step++)
        multiply<0>(
            scores, move(queries, step / 4 * query_part_bytes + step % 4 * 32),
            move(lines, step / 4 * part_bytes + step % 4 * 32), step > 0);
    end_products();
}

// Begins to add a tile's values by their weights.
__device__ void begin_values(float (&sums)[sums_count], const unsigned (&weights)[logits / 2], unsigned tile)
{
    const unsigned long long lines = describe_along_n(tile, 0, keys);
    begin_products();
#pragma unroll
    for (int step = 0; step < keys / 16; step++)
        multiply<1>(sums, weights + 4 * step, move(lines, step * 16 * LINE_BYTES), 1);
    end_products();
}

__device__ void wait_for_tile(ring r, int place)
{
    wait_for(r.full(place), place / stages & 1);
}

// What a thread knows of its two rows.
struct found {
    float most[2], sum[2];
};

// Minus infinity for keys from `ends` on, which count from the tile's first.
__device__ void mask(float (&scores)[logits], const int ends[2])
{
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < logits; i++)
        if (i / 4 * 8 + i % 2 >= ends[i / 2 % 2] - column) scores[i] = -INFINITE;
}

// Logits become weights over the largest logit so far; out_share: of what was found before.
__device__ void weigh(float (&scores)[logits], float factor, found *f, float out_share[2])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float most[2] = {f->most[row], -INFINITE}, sum[2] = {0, 0};
#pragma unroll
        for (int i = 2 * row; i < logits; i += 4) {
            most[0] = fmaxf(most[0], scores[i]);
            most[1] = fmaxf(most[1], scores[i + 1]);
        }
        most[0] = fmaxf(most[0], most[1]);
        most[0] = fmaxf(most[0], __shfl_xor_sync(0xffffffffu, most[0], 1));
        most[0] = fmaxf(most[0], __shfl_xor_sync(0xffffffffu, most[0], 2));
        const float base = most[0] == -INFINITE ? 0 : most[0] * factor;
        out_share[row] = power(fmaf(f->most[row], factor, -base)); // before the first key 0, of nothing
        f->most[row] = most[0];
#pragma unroll
        for (int i = 2 * row; i < logits; i += 4) {
            scores[i] = power(fmaf(scores[i], factor, -base));
            scores[i + 1] = power(fmaf(scores[i + 1], factor, -base));
            sum[0] += scores[i];
            sum[1] += scores[i + 1];
        }
        f->sum[row] = f->sum[row] * out_share[row] + (sum[0] + sum[1]);
    }
}

__device__ void narrow_all(const float (&scores)[logits], unsigned (&weights)[logits / 2])
{
#pragma unroll
    for (int i = 0; i < logits / 2; i++)
        weights[i] = narrow(scores[2 * i], scores[2 * i + 1]);
}

// The group's rows, by way of where its queries were.
__device__ void write_rows(const problem &p, const work &w, int g, const float (&sums)[sums_count], const found &f)
{
    const int thread = threadIdx.x % 128, lane = threadIdx.x % 32, first = 64 * g + thread / 32 * 16;
    wait_for_group(g); // the products of all its warps have read their queries
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = f.sum[half];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const float share = 1 / sum;
#pragma unroll
        for (int i = 2 * half; i < sums_count; i += 4) {
            const int row = first + lane / 4 + 8 * half, chunk = i / 4;
            *reinterpret_cast<unsigned *>(
                memory + chunk / 8 * query_part_bytes + place_along_k(row, chunk % 8) + lane % 4 * 4) =
                narrow(sums[i] * share, sums[i + 1] * share);
        }
    }
    __syncwarp();
#pragma unroll 4
    for (int i = lane; i < 16 * chunks; i += 32) {
        const int row = first + i / chunks, chunk = i % chunks;
        if (row < w.rows)
            *reinterpret_cast<uint4 *>(p.out + w.place_of(p, row) + chunk * 8) = *reinterpret_cast<const uint4 *>(
                memory + chunk / 8 * query_part_bytes + place_along_k(row, chunk % 8));
    }
}

__device__ void mask_tile(float (&scores)[logits], const index64 ends[2], int tile)
{
    const index64 begin = (index64)tile * keys;
    const int own_ends[2] = {(int)(ends[0] - begin < keys ? ends[0] - begin : keys),
                             (int)(ends[1] - begin < keys ? ends[1] - begin : keys)};
    mask(scores, own_ends);
}

// What a thread has of a piece of work.
struct state {
    float scores[logits], sums[sums_count], factor;
    unsigned weights[logits / 2];
    found f;
    index64 ends[2];
};

// The keys of tile t and the values of the tile before.
template <bool is_masked> __device__ void attend_tile(state &s, ring r, int g, int t, unsigned long long queries, bool is_last)
{
    const int place = 2 * t;
    float share[2];
    wait_for_tile(r, place);
    wait_for_turn(g);
    begin_scores(s.scores, queries, r.tile(place));
    wait_for_tile(r, place - 1);
    begin_values(s.sums, s.weights, r.tile(place - 1));
    if (g + 1 < groups || !is_last) give_turn_to((g + 1) % groups); // nobody comes after the last turn of all
    wait_for_products<1>();
    hold(s.scores);
    release(r.empty(place));
    if (is_masked) mask_tile(s.scores, s.ends, t);
    weigh(s.scores, s.factor, &s.f, share);
    wait_for_products<0>();
    hold(s.sums);
    hold(s.weights);
    release(r.empty(place - 1));
#pragma unroll
    for (int i = 0; i < sums_count; i++)
        s.sums[i] *= share[i / 2 % 2];
    narrow_all(s.scores, s.weights);
}

__device__ void attend(const problem &p, const work &w, ring r, int g)
{
    const unsigned long long queries = describe_along_k(r.base + g * 64 * LINE_BYTES, 0);
    const int row = 64 * g + row_of_sum(threadIdx.x % 128, 0), tiles = w.tiles(p);
    // Below this one all rows of the block see all keys of a tile.
    const index64 whole = w.end_of(p, 0) / keys;
    state s;
    float share[2];
    s.factor = p.scale == 0 ? 1 : (float)(fabs(p.scale) * 1.4426950408889634);
    s.ends[0] = w.end_of(p, row);
    s.ends[1] = w.end_of(p, row + 8);
    s.f = {{-INFINITE, -INFINITE}, {0, 0}};
#pragma unroll
    for (int i = 0; i < sums_count; i++)
        s.sums[i] = 0;
    copy_queries(p, w, r.base, g);
    wait_for_tile(r, 0);
    begin_scores(s.scores, queries, r.tile(0));
    wait_for_products<0>();
    hold(s.scores);
    release(r.empty(0));
    if (whole < 1) mask_tile(s.scores, s.ends, 0);
    weigh(s.scores, s.factor, &s.f, share);
    narrow_all(s.scores, s.weights);
    if (g == groups - 1 && tiles > 1) give_turn_to(0);
    int t = 1;
#pragma unroll 1
    for (; t < tiles && t < whole; t++)
        attend_tile<false>(s, r, g, t, queries, t + 1 == tiles);
#pragma unroll 1
    for (; t < tiles; t++)
        attend_tile<true>(s, r, g, t, queries, t + 1 == tiles);
    const int last = 2 * tiles - 1;
    wait_for_tile(r, last);
    begin_values(s.sums, s.weights, r.tile(last));
    wait_for_products<0>();
    hold(s.sums);
    write_rows(p, w, g, s.sums, s.f);
}

extern "C" __global__ void __launch_bounds__(threads, 1) flash_attention(
    const element *query,
    const element *key,
    const element *value,
    element *out,
    index64 q_len,
    index64 kv_len,
    int batch,
    int heads,
    int kv_heads,
    double softmax_scale)
{
    const int group = heads / kv_heads, row_blocks = (int)((q_len * group + block_m - 1) / block_m), pairs = batch * kv_heads;
    const problem p = {query, key, value, out, q_len, kv_len, heads, kv_heads, group, row_blocks, pairs, softmax_scale};
    const ring r = {(unsigned)__cvta_generic_to_shared(memory)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; i++) {
            begin_barrier(r.full(i), copiers);
            begin_barrier(r.empty(i), 4 * groups);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const work w(p);
    const int g = threadIdx.x / 128;
    if (g == groups) {
#if groups == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#elif groups == 3
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
#endif
        copy_tiles(p, w, r);
    } else {
#if groups == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#elif groups == 3
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
#endif
        attend(p, w, r, g);
    }
}
