// out = softmax(scale q k^T) v with the tensor cores of compute capability 9.0 (common/wgmma.cuh). Sums are in float;
// weights are rounded to the tensors' dtype. CAUSAL: a query attends to the keys up to its position. The rows of a
// block are the queries that share one key head, ordered by position, then by query head of the group.
//
// A block has 64 rows for each of `groups` warpgroups. One more warpgroup copies tiles of `keys` keys and of `keys`
// values alternately into a ring of `stages` slots: `copiers` warps copy a tile, or, if `copiers` is 0, one thread
// starts the copy engine (TMA). The tensor cores multiply queries by the keys of one tile, and weights by the values of
// the previous tile, at the same time. With `turns` the warpgroups alternate on the tensor cores, so that one computes
// weights while another multiplies (Shah et al., FlashAttention-3, arXiv:2407.08608, sections 3.1 and 3.2).
//
// When there are few rows, as in decoding, the `splits` blocks of a cluster share the keys. Their partial results are
// combined at the end, relative to the largest logit of all (Dao et al., Flash-Decoding, 2023).
enum {
    threads = 128 * groups + 128,
    block_m = 64 * groups,
    chunks = DIM / 8, // 16-byte chunks in a row
    part_bytes = keys * LINE_BYTES, // 64 columns of a tile
    query_part_bytes = block_m * LINE_BYTES,
    query_bytes = block_m * DIM * 2,
    tile_bytes = keys * DIM * 2,
    logits = keys / 2, // per thread
    sums_count = DIM / 2,
    part_floats = 64 * (2 + DIM) // a block's partial result: largest logits, sums of weights, sums of values
};
static_assert(splits == 1 || (groups == 1 && part_floats * 4 <= stages * tile_bytes), "a part lies where the tiles were");

#define INFINITE __int_as_float(0x7f800000)

typedef long long index64;

extern __shared__ __align__(ATOM_BYTES) unsigned char memory[];

__device__ float power(float x)
{
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
    return value;
}

// The tiles of the ring, and two barriers per slot: full and empty.
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

// Named barriers: 1 + g synchronises the 128 threads of warpgroup g; 4 + g gives warpgroup g its turn on the tensor
// cores.
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
    int heads, kv_heads, group, row_blocks, pairs; // pairs: of a batch and a key head
    double scale;
};

// The rows of a block. Rows with the most keys come first. `spread` pairs of batch and key head run at a time, so that
// their keys and values share the last-level cache.
struct work {
    index64 position, batch; // of the first row
    int head, member;        // key head; query head of the first row in its group
    index64 rows;            // rows from the first row on
    int from, tiles;         // this block's first tile, and its number of tiles

    explicit __device__ work(const problem &p)
    {
        const int block = blockIdx.x / splits, rank = blockIdx.x % splits;
        const int most = spread < p.pairs ? spread : p.pairs;
        const int part = block / (most * p.row_blocks), within = block % (most * p.row_blocks);
        const int width = p.pairs - part * most < most ? p.pairs - part * most : most;
        const index64 first = (index64)(p.row_blocks - 1 - within / width) * block_m;
        const int pair = part * most + within % width;
        position = first / p.group;
        member = (int)(first % p.group);
        head = pair % p.kv_heads;
        batch = pair / p.kv_heads;
        rows = p.q_len * p.group - first;
        const int all = (int)((end_of(p, rows < block_m ? (int)rows - 1 : block_m - 1) + keys - 1) / keys);
        const int each = (all + splits - 1) / splits;
        from = rank * each < all ? rank * each : all;
        tiles = each < all - from ? each : all - from;
    }
    __device__ index64 position_of(const problem &p, int row) const
    {
        return position + (member + row) / p.group;
    }
    // The index of the row's first element in query and out.
    __device__ index64 place_of(const problem &p, int row) const
    {
        return ((batch * p.q_len + position_of(p, row)) * p.heads + head * p.group + (member + row) % p.group) * DIM;
    }
    // The end of the range of keys that a row attends to.
    __device__ index64 end_of(const problem &p, int row) const
    {
        return CAUSAL && position_of(p, row) + 1 < p.kv_len ? position_of(p, row) + 1 : p.kv_len;
    }
};

// Copying -------------------------------------------------------------------------------------------------------------

// The threads that copy a tile together are a team. team_rows: the rows that a team copies at once.
enum { team_threads = 32 * (copiers > 0 ? copiers : 4), teams = 128 / team_threads, team_rows = team_threads / chunks };
static_assert(stages % teams == 0, "a place of the ring has one team, which has seen it empty each time before");
// The copies of a team that may be pending when it begins the next tile: with `ahead`, all its other slots of the ring.
enum { behind = ahead ? stages / teams - 1 : 0 };
// A single team could deadlock: it would wait for an empty slot while the warps that empty it wait for its pending
// copies.
static_assert(behind == 0 || teams > 1, "who copies ahead is one of several");

// Copies 16 bytes, or writes zeros if is_there is false.
__device__ void copy_chunk(unsigned to, const element *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0) : "memory");
}

// Copies `keys` rows of a head, of which the first `count` exist. Each thread copies one chunk of every team_rows-th
// row; `from` is its chunk in the first.
__device__ void copy_tile(unsigned to, const element *from, index64 step, int count)
{
    const int thread = threadIdx.x % team_threads, chunk = thread % chunks;
    to += chunk / 8 * part_bytes;
#pragma unroll 8
    for (int row = thread / chunks; row < keys; row += team_rows) {
        copy_chunk(to + place_along_k(row, chunk % 8), from, row < count); // missing rows are not read
        from += team_rows * step;
    }
}

// Publishes a copied tile. The fence here makes it visible to the tensor cores, so that the multiplying warps need
// none.
__device__ void show_tile(ring r, int place)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    release(r.full(place));
}

#if copiers == 0
// Starts the copy of a tile by the copy engine, which swizzles as place_along_k does and writes 0 for missing rows.
__device__ void begin_tile(unsigned to, const tensor_map *map, int head, int row, int batch, unsigned barrier)
{
#pragma unroll
    for (int part = 0; part < DIM / 64; part++)
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
                to + part * part_bytes),
            "l"(map), "r"(barrier), "r"(part * 64), "r"(head), "r"(row), "r"(batch)
            : "memory");
}

// Copies all tiles by one thread: tiles of keys have even numbers, tiles of values odd ones.
__device__ void copy_tiles(const tensor_map *key, const tensor_map *value, const work &w, ring r)
{
    if (threadIdx.x % 128 != 0) return;
#pragma unroll 1
    for (int place = 0; place < 2 * w.tiles; place++) {
        const unsigned full = r.full(place);
        if (place >= stages) wait_for(r.empty(place), (place / stages - 1) & 1);
        arrive_before(full, tile_bytes);
        begin_tile(r.tile(place), place % 2 == 0 ? key : value, w.head, (w.from + place / 2) * keys, (int)w.batch, full);
    }
}
#else
// Copies all tiles: tiles of keys have even numbers, tiles of values odd ones. The teams alternate.
__device__ void copy_tiles(const problem &p, const work &w, ring r)
{
    const int thread = threadIdx.x % team_threads;
    const index64 step = (index64)p.kv_heads * DIM;
    const index64 first = (w.batch * p.kv_len * p.kv_heads + w.head) * DIM + thread / chunks * step + thread % chunks * 8;
    int place = threadIdx.x % 128 / team_threads, shown = place;
#pragma unroll 1
    for (; place < 2 * w.tiles; place += teams) {
        const index64 begin = (index64)(w.from + place / 2) * keys, left = p.kv_len - begin;
        if (place >= stages) wait_for(r.empty(place), (place / stages - 1) & 1);
        copy_tile(r.tile(place), (place % 2 == 0 ? p.key : p.value) + first + begin * step, step, left < keys ? (int)left : keys);
        asm volatile("cp.async.commit_group;\n\tcp.async.wait_group %0;" ::"n"((int)behind) : "memory");
        if (place - shown < behind * teams) continue;
        show_tile(r, shown);
        shown += teams;
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    for (; shown < place; shown += teams)
        show_tile(r, shown);
}
#endif

// Copies the 64 queries of a warpgroup. The factor of the logits must be positive: a negative scale negates the
// queries, and a scale of 0 sets them to 0.
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
                // 0 times NaN or infinity is NaN.
                at[j] = p.scale < 0 ? at[j] ^ 0x8000 : (at[j] & exponent) == exponent ? exponent | 1 : 0;
        }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    wait_for_group(g);
}

// Multiplying ----------------------------------------------------------------------------------------------------------

// Starts the products of the warpgroup's rows with the keys of a tile.
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

// Starts to add a tile's weighted values.
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

// The running maximum and sum of a thread's two rows.
struct found {
    float most[2], sum[2];
};

// Sets logits to minus infinity from key `ends` on, counted from the first key of the tile.
__device__ void mask(float (&scores)[logits], const int ends[2])
{
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < logits; i++)
        if (i / 4 * 8 + i % 2 >= ends[i / 2 % 2] - column) scores[i] = -INFINITE;
}

// Turns logits into weights relative to the largest logit so far. out_share: the factor that rescales the previous
// results.
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
        out_share[row] = power(fmaf(f->most[row], factor, -base)); // 0 before the first key, when nothing is summed yet
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

// Writes the warpgroup's rows through the shared memory of its queries.
__device__ void write_rows(const problem &p, const work &w, int g, const float (&sums)[sums_count], const found &f)
{
    const int thread = threadIdx.x % 128, lane = threadIdx.x % 32, first = 64 * g + thread / 32 * 16;
    wait_for_group(g); // all its warps have finished the products that read the queries
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

// Writes the warpgroup's partial result over the shared memory of the tiles.
__device__ void write_part(const float (&sums)[sums_count], const found &f)
{
    float *to = reinterpret_cast<float *>(memory + query_bytes);
    const int lane = threadIdx.x % 32, first = threadIdx.x % 128 / 32 * 16;
    wait_for_group(0); // all its warps have finished the products that read the last tile
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + lane / 4 + 8 * half;
        float sum = f.sum[half];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (lane % 4 == 0) to[row] = f.most[half];
        if (lane % 4 == 0) to[64 + row] = sum;
#pragma unroll
        for (int i = 2 * half; i < sums_count; i += 4) {
            float *at = to + 128 + row * DIM + i / 4 * 8 + lane % 4 * 2;
            at[0] = sums[i];
            at[1] = sums[i + 1];
        }
    }
}

#if splits > 1
__device__ float read_part(int rank, int index)
{
    return __uint_as_float(read_from(rank, (unsigned)__cvta_generic_to_shared(memory) + query_bytes + index * 4));
}

// Combines the partial results. The threads of the cluster share the rows' pairs of columns.
__device__ void join(const problem &p, const work &w, float factor)
{
    const int rank = blockIdx.x % splits, rows = w.rows < 64 ? (int)w.rows : 64;
    for (int i = rank * threads + threadIdx.x; i < rows * (DIM / 2); i += splits * threads) {
        const int row = i / (DIM / 2), column = i % (DIM / 2) * 2;
        float most = -INFINITE, sum = 0, low = 0, high = 0;
#pragma unroll
        for (int part = 0; part < splits; part++)
            most = fmaxf(most, read_part(part, row));
#pragma unroll
        for (int part = 0; part < splits; part++) {
            const float own = read_part(part, row), own_sum = read_part(part, 64 + row);
            // A part without a key adds nothing, unless its sum is NaN.
            const float share = own == -INFINITE ? 0 : power((own - most) * factor);
            sum += own == -INFINITE ? own_sum : own_sum * share;
            low += read_part(part, 128 + row * DIM + column) * share;
            high += read_part(part, 128 + row * DIM + column + 1) * share;
        }
        *reinterpret_cast<unsigned *>(p.out + w.place_of(p, row) + column) = narrow(low / sum, high / sum);
    }
}
#endif

// The state of a thread.
struct state {
    float scores[logits], sums[sums_count], factor;
    unsigned weights[logits / 2];
    found f;
    index64 ends[2];
};

// Processes the keys of tile t and the values of the previous tile.
template <bool is_masked> __device__ void attend_tile(state &s, ring r, int g, int t, unsigned long long queries, bool is_last)
{
    const int place = 2 * t;
    float share[2];
    wait_for_tile(r, place);
    wait_for_turn(g);
    begin_scores(s.scores, queries, r.tile(place));
    wait_for_tile(r, place - 1);
    begin_values(s.sums, s.weights, r.tile(place - 1));
    if (g + 1 < groups || !is_last) give_turn_to((g + 1) % groups); // no turn follows the last one
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

// Converts a logit from the tensor cores into an exponent of 2.
__device__ float factor_of(const problem &p)
{
    const float least = 1.17549435e-38f, factor = (float)(fabs(p.scale) * 1.4426950408889634);
    return p.scale == 0 ? 1 : factor < least ? least : factor; // 0 times infinity would give NaN
}

// Processes the block's tiles. There must be at least one.
__device__ void attend_tiles(state &s, const problem &p, const work &w, ring r, int g)
{
    const unsigned long long queries = describe_along_k(r.base + g * 64 * LINE_BYTES, 0);
    // The first tile that needs a mask: in earlier tiles all rows of the block attend to all keys.
    const int whole = (int)(w.end_of(p, 0) / keys) - w.from;
    float share[2];
    wait_for_tile(r, 0);
    begin_scores(s.scores, queries, r.tile(0));
    wait_for_products<0>();
    hold(s.scores);
    release(r.empty(0));
    if (whole < 1) mask_tile(s.scores, s.ends, 0);
    weigh(s.scores, s.factor, &s.f, share);
    narrow_all(s.scores, s.weights);
    if (g == groups - 1 && w.tiles > 1) give_turn_to(0);
    int t = 1;
#pragma unroll 1
    for (; t < w.tiles && t < whole; t++)
        attend_tile<false>(s, r, g, t, queries, t + 1 == w.tiles);
#pragma unroll 1
    for (; t < w.tiles; t++)
        attend_tile<true>(s, r, g, t, queries, t + 1 == w.tiles);
    const int last = 2 * w.tiles - 1;
    wait_for_tile(r, last);
    begin_values(s.sums, s.weights, r.tile(last));
    wait_for_products<0>();
    hold(s.sums);
}

__device__ void attend(const problem &p, const work &w, ring r, int g)
{
    const int row = 64 * g + row_of_sum(threadIdx.x % 128, 0);
    const index64 before = (index64)w.from * keys;
    state s;
    s.factor = factor_of(p);
    s.ends[0] = w.end_of(p, row) - before;
    s.ends[1] = w.end_of(p, row + 8) - before;
    s.f = {{-INFINITE, -INFINITE}, {0, 0}};
#pragma unroll
    for (int i = 0; i < sums_count; i++)
        s.sums[i] = 0;
    copy_queries(p, w, r.base, g);
    if (splits == 1 || w.tiles > 0) attend_tiles(s, p, w, r, g);
#if splits > 1
    write_part(s.sums, s.f);
#else
    write_rows(p, w, g, s.sums, s.f);
#endif
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
    double softmax_scale,
    const __grid_constant__ tensor_map key_map,
    const __grid_constant__ tensor_map value_map)
{
    const int group = heads / kv_heads, row_blocks = (int)((q_len * group + block_m - 1) / block_m), pairs = batch * kv_heads;
    const problem p = {query, key, value, out, q_len, kv_len, heads, kv_heads, group, row_blocks, pairs, softmax_scale};
    const ring r = {(unsigned)__cvta_generic_to_shared(memory)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; i++) {
            begin_barrier(r.full(i), copiers > 0 ? copiers : 1);
            begin_barrier(r.empty(i), 4 * groups);
        }
    }
    show_barriers();
    const work w(p);
    const int g = threadIdx.x / 128;
    if (g == groups) {
#if groups == 2 && copiers == 0
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
#elif groups == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#elif groups == 3
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
#endif
#if copiers == 0
        copy_tiles(&key_map, &value_map, w, r);
#else
        copy_tiles(p, w, r);
#endif
    } else {
#if groups == 2 && copiers == 0
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
#elif groups == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#elif groups == 3
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
#endif
        attend(p, w, r, g);
    }
#if splits > 1
    wait_for_cluster();
    join(p, w, factor_of(p));
    wait_for_cluster(); // keep this block's shared memory until the other blocks have read it
#endif
}
