// The gradients of rms_norm, add_rms_norm and layer_norm (norm_vjp.h has the formulas), in float.
//
// A block processes rows_per_block rows at a time and loops over many rows. A thread has the same packs of `vector`
// elements in every row, so that the column sums stay in registers for up to BLOCK rows. They are then added to the
// part of scratch memory that these rows share. That part is in float, or in double (WIDE_SUMS) when a part covers more
// than BLOCK rows. A block adds its parts to the first of them, and the kernel `columns` adds those in order, so that
// the sums are the same in every run. When registers do not hold a row (keep = 0), each pass reads it again, and its
// terms of the column sums go to scratch memory at once.
//
// One pass computes the sums of a row. It subtracts the first element, the pivot, from all elements, so that a common
// offset costs no precision. Some rows are computed in double, after the others, because float would lose too much
// precision: short rows, rows that leave the range of floats, rows whose pivot is far from the other elements, and rows
// where more than three quarters of the squares of g cancel because g lies along h (kernels/norm_vjp/body.h has the
// same limit).
typedef pack_of<element, vector> pack;

#if defined(hone_weight_f32)
typedef float weight_element;
#elif defined(hone_weight_f16)
typedef f16 weight_element;
#else
typedef bf16 weight_element;
#endif
#if defined(hone_d_weight_f32)
typedef float column_element;
#elif defined(hone_d_weight_f16)
typedef f16 column_element;
#else
typedef bf16 column_element;
#endif
#if WIDE_SUMS
typedef double sum_element;
#else
typedef float sum_element;
#endif
typedef pack_of<weight_element, vector> weight_pack;
typedef pack_of<sum_element, vector> sum_pack;

enum { SHORT_ROW = 16, BLOCK = 64, COLUMN_LANES = 32, COLUMN_STEPS = 16 };
enum { vectors = 1 + HAS_BIAS }; // of column sums: one for the weight, one for the bias
enum { lanes_of_row = threads_per_row < 32 ? threads_per_row : 32, warps_of_row = threads_per_row / lanes_of_row };
enum { held_packs = keep > 0 ? keep : 1 };
enum { SQUARES, PRODUCTS, GRADIENT_SQUARES, RESTS, GRADIENTS, CENTRED_SUMS };
enum { SUMS = SUBTRACT_MEAN ? CENTRED_SUMS : RESTS };

// LEAST_SQUARE: below it, squares of elements may have underflowed in float. LEAST_LEFT: the least share of the squares
// of g that must remain after the subtractions. MOST_PIVOT: the largest ratio of the squared distance between pivot and
// mean to the variance.
#define LEAST_SQUARE 0x1p-80f
#define MOST_SQUARE  3.402823466e+38f
#define LEAST_LEFT   0.25f
#define MOST_PIVOT   16

// Adds over the threads of a row. Either a warp holds one or several rows, or the row has all warps of the block. Calls
// alternate between two arrays, so that a warp that is ahead writes to one while another warp still reads the other.
template <class T, int count> __device__ void add_over_row(T (&sums)[count], int *turn)
{
#pragma unroll
    for (int i = 0; i < count; i++)
#pragma unroll
        for (int step = lanes_of_row / 2; step > 0; step /= 2)
            sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], step);
    if (warps_of_row == 1) return;
    __shared__ T parts[2][count][warps_of_row];
    T(*own)[warps_of_row] = parts[(*turn)++ % 2];
    const int lane = threadIdx.x % 32;
    if (lane == 0)
#pragma unroll
        for (int i = 0; i < count; i++)
            own[i][threadIdx.x / 32] = sums[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < count; i++) {
        sums[i] = lane < warps_of_row ? own[i][lane] : 0;
#pragma unroll
        for (int step = warps_of_row / 2; step > 0; step /= 2)
            sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], step);
        if (warps_of_row < 32) sums[i] = __shfl_sync(0xffffffffu, sums[i], 0);
    }
}

// Rows that share a warp take the same branch: the condition holds for all of them if it holds for one.
__device__ bool for_row(bool condition)
{
    return threads_per_row < 32 ? __any_sync(0xffffffffu, condition) : condition;
}

struct row {
    const pack *x, *d_y, *d_sum;
    pack *d_x;
    const weight_pack *weight; // nullptr: 1
    float offset;
    int count, dim; // number of packs in this row, 0 if there is no row; number of elements
};

// each() calls body(at, slot, pack of x, pack of d_y) for this thread's packs of a row.
struct in_memory {
    row of;

    template <class Body> __device__ void each(Body body) const
    {
        for (int at = threadIdx.x; at < of.count; at += threads_per_row)
            body(at, 0, of.x[at], of.d_y[at]);
    }
};

struct in_registers {
    row of;
    pack x[held_packs], d_y[held_packs];

    __device__ void load(const row &own)
    {
        of = own;
#pragma unroll
        for (int slot = 0; slot < held_packs; slot++) {
            const int at = threadIdx.x + slot * threads_per_row;
            if (at < of.count) {
                x[slot] = of.x[at];
                d_y[slot] = of.d_y[at];
            }
        }
    }

    template <class Body> __device__ void each(Body body) const
    {
#pragma unroll
        for (int slot = 0; slot < held_packs; slot++) {
            const int at = threadIdx.x + slot * threads_per_row;
            if (at < of.count) body(at, slot, x[slot], d_y[slot]);
        }
    }
};

// g: d_y times the weight, which is the gradient of the normalised row.
template <class T> __device__ void weigh(const row &of, int at, const pack &d_y, T (&g)[vector])
{
    weight_pack weights;
    if (of.weight != nullptr) weights = of.weight[at];
#pragma unroll
    for (int i = 0; i < vector; i++)
        g[i] = of.weight != nullptr ? (T)widen(d_y.at[i]) * ((T)widen(weights.at[i]) + (T)of.offset) : widen(d_y.at[i]);
}

// The values that a row needs besides its elements: h = (x - pivot - rest) factor, d_x = (g - gradient - h along)
// factor.
template <class T> struct factors {
    T pivot, rest, factor, gradient, along;
};

// Returns false if float is not precise enough for this row.
template <class T, class Row> __device__ bool measure(const Row &own, double eps, int *turn, factors<T> *out)
{
    T sums[SUMS] = {};
    const T pivot = SUBTRACT_MEAN && own.of.count > 0 ? widen(own.of.x[0].at[0]) : 0;
    own.each([&](int at, int, const pack &x, const pack &d_y) {
        T g[vector];
        weigh(own.of, at, d_y, g);
#pragma unroll
        for (int i = 0; i < vector; i++) {
            const T away = (T)widen(x.at[i]) - pivot;
            sums[SQUARES] += away * away;
            sums[PRODUCTS] += g[i] * away;
            sums[GRADIENT_SQUARES] += g[i] * g[i];
#if SUBTRACT_MEAN
            sums[RESTS] += away;
            sums[GRADIENTS] += g[i];
#endif
        }
    });
    add_over_row(sums, turn);
    T rest = 0, gradient = 0;
#if SUBTRACT_MEAN
    rest = sums[RESTS] / own.of.dim;
    gradient = sums[GRADIENTS] / own.of.dim;
#endif
    const T spread = sums[SQUARES] / own.of.dim - rest * rest, square = spread + (T)eps, factor = 1 / sqrt(square);
    // `gradient - gradient` gives NaN when the mean of g is infinite, because differences from that mean then are not
    // finite.
    const T products = sums[PRODUCTS] / own.of.dim - gradient * rest + (gradient - gradient);
    const T along = products * factor, all = sums[GRADIENT_SQUARES] / own.of.dim;
    *out = factors<T>{pivot, rest, factor, gradient, along};
    const T left = all - gradient * gradient - along * along * (1 + (T)eps * factor * factor);
    return square >= LEAST_SQUARE && square <= MOST_SQUARE && rest * rest <= MOST_PIVOT * spread &&
           left >= LEAST_LEFT * all;
}

// Writes d_x, and calls add(at, slot, i, d_y, h) for each element i of a pack, so that the caller adds it to the column
// sums.
template <class T, class Row, class Add> __device__ void put(const Row &own, const factors<T> &f, Add add)
{
    own.each([&](int at, int slot, const pack &x, const pack &d_y) {
        T g[vector];
        pack out;
        weigh(own.of, at, d_y, g);
#if HAS_SUM
        const pack given = own.of.d_sum[at];
#endif
#pragma unroll
        for (int i = 0; i < vector; i++) {
            const T h = ((T)widen(x.at[i]) - f.pivot - f.rest) * f.factor;
            T value = (g[i] - f.gradient - h * f.along) * f.factor;
#if HAS_SUM
            value += widen(given.at[i]);
#endif
            narrow((float)value, &out.at[i]);
            add(at, slot, i, (T)widen(d_y.at[i]), h);
        }
        own.of.d_x[at] = out;
    });
}

// Column sums over some rows.
struct columns_of_rows {
    float sums[vectors][held_packs][vector];
    sum_element *part; // [vectors][dim]
    bool is_first;     // `part` is not written yet
    int rows;          // rows whose sums are not in `part` yet
};

__device__ void flush(columns_of_rows *own, int count)
{
    sum_pack *to = reinterpret_cast<sum_pack *>(own->part);
#pragma unroll
    for (int which = 0; which < vectors; which++, to += count)
#pragma unroll
        for (int slot = 0; slot < held_packs; slot++)
            for (int at = threadIdx.x + slot * threads_per_row; at<count; at += keep> 0 ? count : threads_per_row) {
                sum_pack made = {};
                if (!own->is_first) made = to[at];
#pragma unroll
                for (int i = 0; i < vector; i++) {
                    made.at[i] += own->sums[which][slot][i];
                    own->sums[which][slot][i] = 0;
                }
                to[at] = made;
            }
    own->is_first = false;
    own->rows = 0;
}

// Adds each element to its column sums in scratch memory directly.
template <class T> __device__ void put_in_memory(const in_memory &own, const factors<T> &f, sum_element *part)
{
    put(own, f, [&](int at, int, int i, T d_y, T h) {
        sum_element *to = part + at * vector + i;
        to[0] += (sum_element)(d_y * h);
#if HAS_BIAS
        to[own.of.dim] += (sum_element)d_y;
#endif
    });
}

// Returns false, with nothing written, if float is not precise enough for this row.
__device__ bool differentiate(const in_registers &own, double eps, columns_of_rows *sums, int *turn)
{
    factors<float> f;
    const bool fits = measure(own, eps, turn, &f);
    if (!fits) return false;
    put(own, f, [&](int, int slot, int i, float d_y, float h) {
        sums->sums[0][slot][i] += d_y * h;
#if HAS_BIAS
        sums->sums[1][slot][i] += d_y;
#endif
    });
    return true;
}

// One entry for rms_norm (no d_sum, no d_bias), add_rms_norm (no d_bias) and layer_norm (no d_sum). Absent arguments
// are null.
extern "C" __global__ void __launch_bounds__(threads_per_row *rows_per_block, blocks_per_sm) rows(
    const element *x,
    const weight_element *weight,
    const element *d_y,
    const element *d_sum,
    element *d_x,
    column_element *,
    column_element *,
    sum_element *scratch,
    long long count,
    int dim,
    int,
    double eps,
    double weight_offset)
{
    const long long first = (long long)blockIdx.x * rows_per_block, step = (long long)gridDim.x * rows_per_block;
    const auto row_at = [&](long long base) {
        const long long i = base + threadIdx.y;
        row of;
        of.x = reinterpret_cast<const pack *>(x + i * dim);
        of.d_y = reinterpret_cast<const pack *>(d_y + i * dim);
        of.d_sum = reinterpret_cast<const pack *>(d_sum + i * dim);
        of.d_x = reinterpret_cast<pack *>(d_x + i * dim);
        of.weight = reinterpret_cast<const weight_pack *>(weight);
        of.offset = (float)weight_offset;
        of.count = i < count ? dim / vector : 0;
        of.dim = dim;
        return of;
    };
    columns_of_rows sums = {};
    int turn = 0;
    bool are_left = dim < SHORT_ROW;
    sums.part = scratch + (first + threadIdx.y) * vectors * dim;
    sums.is_first = true;
    if (keep == 0) flush(&sums, dim / vector);
#if keep > 0
#    if ahead
    in_registers next;
    next.load(row_at(first));
#    endif
    for (long long base = first; base < count && dim >= SHORT_ROW; base += step) {
#    if ahead
        const in_registers own = next;
        next.load(row_at(base + step));
#    else
        in_registers own;
        own.load(row_at(base));
#    endif
        if (!differentiate(own, eps, &sums, &turn)) are_left = true;
        if (++sums.rows == BLOCK) flush(&sums, dim / vector);
    }
    if (sums.rows > 0 || sums.is_first) flush(&sums, dim / vector);
#else
    for (long long base = first; base < count && dim >= SHORT_ROW; base += step) {
        const in_memory own = {row_at(base)};
        factors<float> f;
        if (measure(own, eps, &turn, &f))
            put_in_memory(own, f, sums.part);
        else
            are_left = true;
    }
#endif
    // A separate loop after the other rows, so that their loop does not need its registers.
    are_left = for_row(are_left);
    for (long long base = first; base < count && are_left; base += step) {
        factors<float> f;
        factors<double> wide;
        in_memory own = {row_at(base)};
        if (dim >= SHORT_ROW && measure(own, eps, &turn, &f)) own.of.count = 0;
        if (!for_row(own.of.count > 0)) continue;
        (void)measure(own, eps, &turn, &wide);
        put_in_memory(own, wide, sums.part);
    }
#if rows_per_block > 1
    // Each thread adds different columns.
    __syncthreads();
    for (int at = threadIdx.y * threads_per_row + threadIdx.x; at < vectors * dim;
         at += threads_per_row * rows_per_block) {
        sum_element *to = scratch + first * vectors * dim + at;
        sum_element sum = to[0];
        for (int other = 1; other < rows_per_block; other++)
            sum += to[(long long)other * vectors * dim];
        to[0] = sum;
    }
#endif
}

// Adds the parts of COLUMN_LANES columns. COLUMN_STEPS threads share the parts of a column. A block's sum is in the
// first of its rows_per_block parts.
extern "C" __global__ void __launch_bounds__(COLUMN_LANES *COLUMN_STEPS) columns(
    const element *,
    const weight_element *,
    const element *,
    const element *,
    element *,
    column_element *d_weight,
    column_element *d_bias,
    const sum_element *scratch,
    long long,
    int dim,
    int blocks,
    double,
    double)
{
    __shared__ double sums[2][COLUMN_STEPS][COLUMN_LANES];
    const int column = blockIdx.x * COLUMN_LANES + threadIdx.x;
    const long long step = (long long)rows_per_block * vectors * dim;
    double weight = 0, bias = 0;
    if (column < dim) {
#pragma unroll 4
        for (int block = threadIdx.y; block < blocks; block += COLUMN_STEPS) {
            weight += scratch[block * step + column];
#if HAS_BIAS
            bias += scratch[block * step + dim + column];
#endif
        }
    }
    sums[0][threadIdx.y][threadIdx.x] = weight;
    sums[1][threadIdx.y][threadIdx.x] = bias;
    __syncthreads();
    if (threadIdx.y != 0 || column >= dim) return;
    for (int other = 1; other < COLUMN_STEPS; other++) {
        weight += sums[0][other][threadIdx.x];
        bias += sums[1][other][threadIdx.x];
    }
    narrow((float)weight, &d_weight[column]);
#if HAS_BIAS
    narrow((float)bias, &d_bias[column]);
#endif
}
