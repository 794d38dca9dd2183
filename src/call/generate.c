// Data for tuning. Zeros would mislead the tuner where data decides the work (page tables, lengths, masks), so a
// signature says how each input is made. The same seed gives the same bytes on every machine: integers, additions
// and multiplications only, no libm whose last bit differs.
#include "base/error.h"
#include "call/bound.h"

#include <string.h>

static const char where[] = "call.generate";

// Numbers by their place: number i of a stream is splitmix64's i-th (Steele, Lea and Flood, Fast splittable
// pseudorandom number generators, OOPSLA 2014), which needs none before it. So any thread makes any block of a tensor.
typedef struct random_state {
    uint64_t stream, drawn;
} random_state;

static inline uint64_t number_at(uint64_t stream, uint64_t i)
{
    uint64_t z = stream + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t draw(random_state *r)
{
    return number_at(r->stream, r->drawn++);
}

// [0, 1)
static inline double unit_of(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

// Nearly normal(0, 1): the sum of four uniforms. One draw an element, no logarithm; never beyond 3.5.
static inline double normal_of(uint64_t bits)
{
    const uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    return (double)((int32_t)sum - 2 * 65535) * (1.7320508075688772 / 65536.0);
}

// [low, high]; low <= high. The bias of the remainder is below 2^-32 for every range that fits a tensor's index.
static int64_t integer_of(uint64_t bits, int64_t low, int64_t high)
{
    const uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    return (int64_t)((uint64_t)low + (span == 0 ? bits : bits % span));
}

static int64_t draw_integer(random_state *r, int64_t low, int64_t high)
{
    return integer_of(draw(r), low, high);
}

// Reals that are made at once, and the pieces that threads take of them.
enum { BLOCK = 1024, PIECE_BLOCKS = 64 };

// What a generator fills: elements in row-major order, wherever they lie. A complex one is two reals.
typedef struct filling {
    const hone_call *call;
    hone_error *err;
    const char *name;
    const hone_dtype_info *dtype;
    const hone_tensor *tensor;
    int64_t strides[HONE_MAX_RANK];
    int64_t reals, row_length;
    hone_scalar args[HONE_MAX_GENERATOR_ARGS];
    double scale;
    bool is_wide; // as large as results allow, at the ends of what their generator says, or near what it makes
    size_t index;
    random_state random;
    int64_t state, total; // of the row at hand, for generators that remember
    int64_t *order;       // of permutation
    // One of the two: reals [first, first + count), by their places alone; or one after the other.
    void (*block)(const struct filling *f, int64_t first, int64_t count, double *out);
    double (*next)(struct filling *f, int64_t column);
} filling;

static bool is_complex(const hone_dtype_info *dtype)
{
    return dtype->id == HONE_C64 || dtype->id == HONE_C128;
}

static bool is_float(const hone_dtype_info *dtype)
{
    return is_complex(dtype) || (dtype->id >= HONE_F8_E4M3FN && dtype->id <= HONE_F64);
}

static int64_t width_of(const hone_dtype_info *dtype)
{
    return is_complex(dtype) ? 2 : 1;
}

static hone_dtype_id real_of(const hone_dtype_info *dtype)
{
    return dtype->id == HONE_C64 ? HONE_F32 : dtype->id == HONE_C128 ? HONE_F64 : dtype->id;
}

// Where real number `first` of a tensor with strides lies, in reals; index becomes its element's.
static int64_t place_of(const filling *f, int64_t first, int64_t *index)
{
    const int64_t width = width_of(f->dtype);
    int64_t element = first / width, at = 0;
    for (int32_t axis = f->tensor->ndim - 1; axis >= 0; axis--) {
        index[axis] = element % f->tensor->shape[axis];
        element /= f->tensor->shape[axis];
        at += index[axis] * f->strides[axis];
    }
    return at;
}

static int64_t step(const filling *f, int64_t at, int64_t *index)
{
    for (int32_t axis = f->tensor->ndim - 1; axis >= 0; axis--) {
        at += f->strides[axis];
        if (++index[axis] < f->tensor->shape[axis]) return at;
        at -= f->strides[axis] * index[axis];
        index[axis] = 0;
    }
    return at;
}

// What is stored as 16 bits is a float first, wherever it is stored.
static double narrow(hone_dtype_id id, double value)
{
    return id == HONE_F16 || id == HONE_BF16 ? (double)(float)value : value;
}

static void store_apart(const filling *f, int64_t first, int64_t count, const double *reals)
{
    const hone_dtype_id id = real_of(f->dtype);
    const int64_t width = width_of(f->dtype);
    int64_t index[HONE_MAX_RANK];
    int64_t at = place_of(f, first, index);
    for (int64_t i = 0; i < count; i += width, at = step(f, at, index))
        for (int64_t part = 0; part < width; part++)
            hone_element_store(id, hone_tensor_data(f->tensor), at * width + part, narrow(id, reals[i + part]));
}

// Finite floats to the nearest bf16: half of what is cut off is added to the bits.
static inline uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The same to f16, whose subnormal numbers are the last bits of sums with one half.
static inline uint16_t f16_of(float value)
{
    uint32_t bits, small_bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    float small;
    memcpy(&small, &bits, sizeof small);
    small += 0.5f;
    memcpy(&small_bits, &small, sizeof small_bits);
    const uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13;
    const uint32_t code = bits < 0x38800000 ? small_bits - 0x3f000000 : bits < 0x47800000 ? normal : 0x7c00;
    return (uint16_t)(sign | code);
}

// The dtypes of most inputs have loops of their own.
static void store_dense(const filling *f, int64_t first, int64_t count, const double *reals)
{
    const hone_dtype_id id = real_of(f->dtype);
    char *data = hone_tensor_data(f->tensor);
    for (int64_t i = 0; i < count && id == HONE_F32; i++)
        memcpy(data + (first + i) * 4, &(float){(float)reals[i]}, 4);
    for (int64_t i = 0; i < count && id == HONE_BF16; i++)
        memcpy(data + (first + i) * 2, &(uint16_t){bf16_of((float)reals[i])}, 2);
    for (int64_t i = 0; i < count && id == HONE_F16; i++)
        memcpy(data + (first + i) * 2, &(uint16_t){f16_of((float)reals[i])}, 2);
    if (id == HONE_F32 || id == HONE_BF16 || id == HONE_F16) return;
    for (int64_t i = 0; i < count; i++)
        hone_element_store(id, data, first + i, reals[i]);
}

static void make_block(filling *f, int64_t first)
{
    const int64_t rest = f->reals - first, count = rest < BLOCK ? rest : BLOCK;
    double reals[BLOCK];
    if (f->block != NULL)
        f->block(f, first, count, reals);
    else
        for (int64_t i = 0; i < count; i++)
            reals[i] = f->next(f, (first + i) / width_of(f->dtype) % f->row_length);
    for (int64_t i = 0; i < count && f->scale != 1; i++)
        reals[i] *= f->scale;
    if (hone_tensor_is_row_major(f->tensor))
        store_dense(f, first, count, reals);
    else
        store_apart(f, first, count, reals);
}

static void make_piece(void *ctx, int64_t index)
{
    filling *f = ctx;
    const int64_t from = index * PIECE_BLOCKS * BLOCK, to = from + PIECE_BLOCKS * BLOCK;
    for (int64_t first = from; first < to && first < f->reals; first += BLOCK)
        make_block(f, first);
}

static void fill(filling *f, hone_pool *pool)
{
    const int64_t pieces = (f->reals + PIECE_BLOCKS * BLOCK - 1) / (PIECE_BLOCKS * BLOCK);
    // Elements of a view may share a byte across blocks; those that remember come one after the other.
    if (pool != NULL && f->block != NULL && hone_tensor_is_row_major(f->tensor))
        hone_pool_run(pool, pieces, make_piece, f);
    else
        for (int64_t i = 0; i < pieces; i++)
            make_piece(f, i);
}

static hone_status wrong(filling *f, const char *words)
{
    return hone_fail(
        f->err, HONE_INVALID_ARGUMENT, where, "%s: %s of %s: %s", f->call->signature->name, f->name,
        hone_dtype_info_of(f->dtype->id)->name, words);
}

static double number(const hone_scalar *scalar)
{
    return scalar->kind == HONE_SCALAR_FLOAT ? scalar->as.f64 : (double)scalar->as.i64;
}

// Whether an integer argument is one and its value can be stored.
static bool storable(const filling *f, int64_t value)
{
    const int bits = f->dtype->bits < 53 ? f->dtype->bits : 53;
    const bool is_unsigned = f->dtype->dtype.code == HONE_CODE_UINT || f->dtype->dtype.code == HONE_CODE_BOOL;
    if (is_float(f->dtype)) return true;
    if (f->dtype->id == HONE_BOOL) return value == 0 || value == 1;
    return is_unsigned ? value >= 0 && value >> bits == 0 : value >> (bits - 1) == 0 || value >> (bits - 1) == -1;
}

static bool is_integer(const hone_scalar *scalar)
{
    return scalar->kind == HONE_SCALAR_INT || scalar->kind == HONE_SCALAR_BOOL;
}

// ---- the generators: open checks the arguments, next gives elements

static void block_of_integers(const filling *f, int64_t first, int64_t count, double *out)
{
    const int64_t low = f->args[0].as.i64, high = f->args[1].as.i64;
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)integer_of(number_at(f->random.stream, (uint64_t)(first + i)), low, high);
}

// One element in four is the lowest, and one the highest, in each row at other places. Random ones of a large range hardly ever
// are, nor are two of them equal: who takes an index of 0 for padding, or none to come twice, is right for all others.
static void block_of_ends(const filling *f, int64_t first, int64_t count, double *out)
{
    enum { LOWEST, HIGHEST = 2, SORTS = 4 };
    const int64_t shift = (int64_t)(f->random.stream % SORTS);
    block_of_integers(f, first, count, out);
    for (int64_t i = 0; i < count; i++) {
        const int64_t sort = (first + i + (first + i) / f->row_length + shift) % SORTS;
        if (sort == LOWEST) out[i] = (double)f->args[0].as.i64;
        if (sort == HIGHEST) out[i] = (double)f->args[1].as.i64;
    }
}

static void block_of_uniforms(const filling *f, int64_t first, int64_t count, double *out)
{
    const double low = number(&f->args[0]), range = number(&f->args[1]) - low;
    for (int64_t i = 0; i < count; i++)
        out[i] = low + range * unit_of(number_at(f->random.stream, (uint64_t)(first + i)));
}

static hone_status open_uniform(filling *f)
{
    f->block = is_float(f->dtype) ? block_of_uniforms : f->is_wide ? block_of_ends : block_of_integers;
    if (!(number(&f->args[0]) <= number(&f->args[1]))) return wrong(f, "uniform(lo, hi) with lo > hi");
    if (is_float(f->dtype)) return HONE_OK;
    if (!is_integer(&f->args[0]) || !is_integer(&f->args[1]))
        return wrong(f, "uniform needs integers for a tensor of integers");
    const bool fits = storable(f, f->args[0].as.i64) && storable(f, f->args[1].as.i64);
    return fits ? HONE_OK : wrong(f, "uniform reaches beyond what the dtype holds");
}

static void block_of_normals(const filling *f, int64_t first, int64_t count, double *out)
{
    const double mean = number(&f->args[0]), deviation = number(&f->args[1]);
    for (int64_t i = 0; i < count; i++)
        out[i] = mean + deviation * normal_of(number_at(f->random.stream, (uint64_t)(first + i)));
}

static hone_status open_normal(filling *f)
{
    f->block = block_of_normals;
    return number(&f->args[1]) >= 0 ? HONE_OK : wrong(f, "normal(mean, sd) with a negative sd");
}

static double next_permutation(filling *f, int64_t column)
{
    // A permutation of 0..n-1 over the whole tensor, in row-major order; a new one after every n elements.
    (void)column;
    const int64_t n = f->args[0].as.i64, at = f->state++ % n;
    const int64_t other = draw_integer(&f->random, at, n - 1);
    const int64_t picked = f->order[other];
    f->order[other] = f->order[at];
    f->order[at] = picked;
    return (double)picked;
}

static hone_status open_permutation(filling *f)
{
    f->next = next_permutation;
    const int64_t n = is_integer(&f->args[0]) ? f->args[0].as.i64 : 0;
    if (n < 1 || n > INT64_C(1) << 40) return wrong(f, "permutation(n) needs an integer n > 0");
    if (!storable(f, n - 1)) return wrong(f, "permutation reaches beyond what the dtype holds");
    f->order = hone_alloc_array(&f->call->arena.allocator, (size_t)n, sizeof *f->order);
    for (int64_t i = 0; f->order != NULL && i < n; i++)
        f->order[i] = i;
    return f->order != NULL ? HONE_OK : hone_fail_memory(f->err, where);
}

// An uneven share of what is left for this of the parts that are left; the last takes the rest.
static int64_t next_share(filling *f, int64_t parts_left)
{
    if (parts_left <= 1) return f->total - f->state;
    const int64_t left = f->total - f->state, twice = left / parts_left * 2;
    // At the ends of what may be: half of the parts are empty, and one in the second half of a row may have all that is left.
    const int64_t sort = f->is_wide ? draw_integer(&f->random, 0, 3) : 3;
    if (sort < 2) return 0;
    if (sort == 2 && parts_left <= (f->row_length + 1) / 2) return left;
    return draw_integer(&f->random, 0, twice); // never more than what is left: there are two parts or more
}

static double next_segment(filling *f, int64_t column)
{
    if (column == 0) f->state = 0;
    const int64_t share = next_share(f, f->row_length - column);
    f->state += share;
    return (double)share;
}

static double next_offset(filling *f, int64_t column)
{
    if (column == 0)
        f->state = 0;
    else
        f->state += next_share(f, f->row_length - column);
    return (double)f->state;
}

static hone_status open_total(filling *f)
{
    f->total = is_integer(&f->args[0]) ? f->args[0].as.i64 : -1;
    if (f->total < 0) return wrong(f, "the total must be an integer from 0 on");
    return storable(f, f->total) ? HONE_OK : wrong(f, "the total is beyond what the dtype holds");
}

static hone_status open_segments(filling *f)
{
    f->next = next_segment;
    return open_total(f);
}

static hone_status open_offsets(filling *f)
{
    f->next = next_offset;
    return open_total(f);
}

static void block_of_constants(const filling *f, int64_t first, int64_t count, double *out)
{
    (void)first;
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)f->total;
}

// A caller may pass other floats than the generator's constant: these lie near it, and none is negative.
static void block_near_constants(const filling *f, int64_t first, int64_t count, double *out)
{
    const double low = f->total > 0 ? (double)f->total * 0.75 : 0, range = 0.5;
    for (int64_t i = 0; i < count; i++)
        out[i] = low + range * unit_of(number_at(f->random.stream, (uint64_t)(first + i)));
}

static hone_status open_constants(filling *f, int64_t value)
{
    f->block = f->is_wide && is_float(f->dtype) ? block_near_constants : block_of_constants;
    f->total = value;
    return HONE_OK;
}

static hone_status open_ones(filling *f)
{
    return open_constants(f, 1);
}

static hone_status open_zeros(filling *f)
{
    return open_constants(f, 0);
}

static hone_status open_as_normal(filling *f)
{
    f->args[0] = hone_scalar_int(0);
    f->args[1] = hone_scalar_int(1);
    return open_normal(f);
}

// What masks among them are is the business of contests, which try both.
static hone_status open_bias(filling *f)
{
    return is_float(f->dtype) ? open_as_normal(f) : wrong(f, "bias() is for a tensor of floats");
}

static const struct {
    const char *name;
    uint32_t args;
    hone_status (*open)(filling *f);
    // What it hardly makes shows who is wrong for it: whole numbers at the ends of what it says, floats that are not one number.
    bool has_ends, is_constant;
} generators[] = {
    {"uniform", 2, open_uniform, true, false},
    {"normal", 2, open_normal, false, false},
    {"permutation", 1, open_permutation, false, false},
    {"segments", 1, open_segments, true, false},
    {"offsets", 1, open_offsets, true, false},
    {"ones", 0, open_ones, false, true},
    {"zeros", 0, open_zeros, false, true},
    {"bias", 0, open_bias, false, false},
};

const char hone_generator_list[] = "a generator: uniform(lo, hi), normal(mean, sd), permutation(n), segments(total), "
                                   "offsets(total), ones(), zeros() or bias()";

int hone_generator_find(hone_view name, uint32_t *out_args)
{
    for (size_t i = 0; i < sizeof generators / sizeof *generators; i++) {
        if (!hone_view_is(name, generators[i].name)) continue;
        *out_args = generators[i].args;
        return (int)i;
    }
    return -1;
}

const char *hone_generator_name(uint32_t kind)
{
    return generators[kind].name;
}

// ---- choosing and running

// Dtypes of results, as whole numbers may be large for them.
typedef struct result_types {
    bool has_own, has_short, has_long; // the array's own dtype; whole numbers of 32 bits or fewer; 64 bits, floats too
} result_types;

static result_types types_of_results(const hone_call *call, hone_dtype own)
{
    result_types types = {false, false, false};
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_tensor *result = hone_call_tensor(call, i);
        if (result == NULL || !call->signature->parameters[i].shown.is_result) continue;
        const bool is_number = result->dtype.code == HONE_CODE_INT || result->dtype.code == HONE_CODE_UINT;
        types.has_own = types.has_own || memcmp(&result->dtype, &own, sizeof own) == 0;
        types.has_short = types.has_short || (is_number && result->dtype.bits <= 32);
        types.has_long = types.has_long || result->dtype.bits == 64;
    }
    return types;
}

static bool has_dim(const hone_shape_pattern *shape, const hone_dim *dim)
{
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->dims[i].expression == NULL && shape->dims[i].slot == dim->slot) return true;
    return false;
}

static bool is_plain(const hone_shape_pattern *shape)
{
    return shape->condition == NULL && shape->otherwise == NULL;
}

// Whether all other tensors have no dims but the array's own, and 1: then its numbers are no indices, for there is nothing else
// that they could count.
static bool counts_nothing(const hone_call *call, size_t index)
{
    const hone_call_parameter *parameters = call->signature->parameters;
    const hone_shape_pattern *own = parameters[index].shape;
    if (!is_plain(own)) return false;
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        const hone_shape_pattern *shape = parameters[i].shape;
        if (tensor == NULL || i == index) continue;
        if (!is_plain(shape) || (shape->ellipsis && !own->ellipsis)) return false;
        const int32_t leading = tensor->ndim - (int32_t)shape->count;
        for (uint32_t d = 0; d < shape->count; d++)
            if (tensor->shape[leading + (int32_t)d] != 1 &&
                (shape->dims[d].expression != NULL || !has_dim(own, &shape->dims[d])))
                return false;
    }
    return true;
}

// Of unsigned ones, which may be indices unless they count nothing; of 8 bits also where a result has their own type, as those of
// pictures have.
static bool unsigned_range(const hone_call *call, size_t index, hone_dtype dtype, int64_t *out_low, int64_t *out_high)
{
    const int most_bits = 52; // that generators make
    const result_types types = types_of_results(call, dtype);
    const bool has_room = types.has_own || !types.has_short;
    if (!(dtype.bits == 8 && types.has_own) && !counts_nothing(call, index)) return false;
    if ((dtype.bits == 16 || dtype.bits == 32) && !has_room) return false;
    if (dtype.bits == 64 && !types.has_own) return false;
    *out_low = 0;
    *out_high = (INT64_C(1) << (dtype.bits < most_bits ? dtype.bits : most_bits)) - 1;
    return dtype.bits >= 8;
}

// The numbers that an array of integers may have whose generator nobody has said, so that no sum or product of two of them leaves
// a result's type, but of one as wide as they are; false: only small ones.
static bool wide_range(const hone_call *call, size_t index, int64_t *out_low, int64_t *out_high)
{
    const hone_tensor *tensor = hone_call_tensor(call, index);
    const hone_dtype dtype = tensor != NULL ? tensor->dtype : (hone_dtype){0};
    if (tensor == NULL || dtype.lanes != 1) return false;
    if (dtype.code == HONE_CODE_UINT) return unsigned_range(call, index, dtype, out_low, out_high);
    if (dtype.code != HONE_CODE_INT || dtype.bits < 8) return false;
    const result_types types = types_of_results(call, dtype);
    const bool is_alone = types.has_own && counts_nothing(call, index);
    if (dtype.bits == 32 && !is_alone && (types.has_short || !types.has_long)) return false;
    if (dtype.bits == 64 && (types.has_short || !types.has_long)) return false;
    *out_high = dtype.bits == 8                                             ? INT8_MAX
                : dtype.bits == 16 && types.has_short && !types.has_own     ? (1 << 11) - 1
                : dtype.bits == 16 || (dtype.bits == 32 && types.has_short) ? INT16_MAX
                : dtype.bits == 32                                          ? (1 << 24) - 1
                                                                            : (INT64_C(1) << 34) - 1;
    // Mostly above 0 where they are as wide as that: sums of numbers around 0 stay small.
    *out_low = dtype.bits >= 32 ? -(*out_high + 1) / 4 : -*out_high - 1;
    return true;
}

static bool has_limits(const hone_call *call, size_t index)
{
    const hone_tensor *tensor = hone_call_tensor(call, index);
    const hone_dtype_info *dtype = tensor != NULL ? hone_dtype_find(tensor->dtype) : NULL;
    const uint32_t kind = call->signature->parameters[index].generator->kind;
    if (dtype == NULL || dtype->id == HONE_BOOL) return false;
    return is_float(dtype) ? generators[kind].is_constant : generators[kind].has_ends;
}

bool hone_has_limits(const hone_call *call, size_t index)
{
    int64_t low, high;
    if (call->signature->parameters[index].generator != NULL) return has_limits(call, index);
    return wide_range(call, index, &low, &high);
}

static hone_status open_default(filling *f)
{
    if (is_float(f->dtype)) return open_as_normal(f);
    const bool is_signed = f->dtype->dtype.code == HONE_CODE_INT;
    f->args[0] = hone_scalar_int(is_signed ? -8 : 0);
    f->args[1] = hone_scalar_int(f->dtype->id == HONE_BOOL ? 1 : is_signed ? 7 : 15);
    int64_t low, high;
    if (f->is_wide && wide_range(f->call, f->index, &low, &high)) {
        f->args[0] = hone_scalar_int(low);
        f->args[1] = hone_scalar_int(high);
    }
    return open_uniform(f);
}

static hone_status open_generator(filling *f, const hone_generator_call *generator)
{
    if (generator == NULL) return open_default(f);
    for (uint32_t i = 0; i < generator->count; i++) {
        if (!hone_call_knows(f->call, generator->args[i]))
            return wrong(f, "its generator reads a dim that no given tensor has");
        hone_status status = hone_expression_evaluate(generator->args[i], f->call->slots, &f->args[i], f->err);
        if (status != HONE_OK) return hone_fail_prefix(f->err, status, "%s: %s", f->call->signature->name, f->name);
        if (!is_integer(&f->args[i]) && f->args[i].kind != HONE_SCALAR_FLOAT)
            return wrong(f, "its generator needs numbers");
    }
    return generators[generator->kind].open(f);
}

hone_status hone_generate(
    const hone_call *call,
    size_t index,
    const hone_tensor *tensor,
    uint64_t seed,
    double scale,
    hone_pool *pool,
    hone_error *err)
{
    if (hone_call_tensor(call, index) == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s: value %zu is not a tensor", call->signature->name, index);
    const hone_call_parameter *p = &call->signature->parameters[index];
    filling f = {.call = call, .err = err, .name = p->shown.name, .tensor = tensor};
    f.dtype = hone_dtype_find(tensor->dtype);
    const int64_t elements = f.dtype == NULL ? -1 : hone_tensor_elements(tensor);
    if (elements < 0 || tensor->ndim > HONE_MAX_RANK)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s: no sound tensor for %s", call->signature->name, f.name);
    if (elements == 0) return HONE_OK;
    f.row_length = tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 1;
    f.reals = elements * width_of(f.dtype);
    f.is_wide = scale > 1 && (!is_float(f.dtype) || (p->generator != NULL && has_limits(call, index)));
    f.scale = is_float(f.dtype) && !f.is_wide ? scale : 1;
    f.index = index;
    hone_tensor_strides(tensor, f.strides);
    f.random.stream = number_at(seed ^ (index + 1) * UINT64_C(0xd1342543de82ef95), 0);
    hone_status status = open_generator(&f, p->generator);
    if (status == HONE_OK) fill(&f, pool);
    hone_free(&call->arena.allocator, f.order);
    return status;
}
