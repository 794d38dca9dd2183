// Data for tuning. Zeros would mislead the tuner where data decides the work (page tables, lengths, masks), so a
// signature says how each input is made. The same seed gives the same bytes on every machine: integers, additions
// and multiplications only, no libm whose last bit differs.
#include "base/error.h"
#include "call/bound.h"

#include <string.h>

static const char where[] = "call.generate";

// xoshiro256**, seeded by splitmix64 (Blackman and Vigna, public domain algorithms).
typedef struct random_state {
    uint64_t s[4];
} random_state;

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t draw(random_state *r)
{
    const uint64_t result = rotate(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotate(r->s[3], 45);
    return result;
}

// [0, 1)
static double draw_unit(random_state *r)
{
    return (double)(draw(r) >> 11) * 0x1p-53;
}

// Nearly normal(0, 1): the sum of four uniforms. One draw an element, no logarithm; never beyond 3.5.
static double draw_normal(random_state *r)
{
    const uint64_t bits = draw(r);
    const uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    return ((double)sum - 2.0 * 65535.0) * (1.7320508075688772 / 65536.0);
}

// [low, high]; low <= high. The bias of the remainder is below 2^-32 for every range that fits a tensor's index.
static int64_t draw_integer(random_state *r, int64_t low, int64_t high)
{
    const uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    return (int64_t)((uint64_t)low + (span == 0 ? draw(r) : draw(r) % span));
}

// What a generator fills: elements in row-major order, wherever they lie.
typedef struct filling {
    const hone_call *call;
    hone_error *err;
    const char *name;
    const hone_dtype_info *dtype;
    const hone_tensor *tensor;
    int64_t strides[HONE_MAX_RANK];
    int64_t rows, row_length;
    hone_scalar args[HONE_MAX_GENERATOR_ARGS];
    random_state random;
    int64_t state, total; // of the row at hand, for generators that remember
    int64_t *order;       // of permutation
    double (*next)(struct filling *f, int64_t row, int64_t column);
} filling;

static bool is_complex(const hone_dtype_info *dtype)
{
    return dtype->id == HONE_C64 || dtype->id == HONE_C128;
}

static bool is_float(const hone_dtype_info *dtype)
{
    return is_complex(dtype) || (dtype->id >= HONE_F8_E4M3FN && dtype->id <= HONE_F64);
}

static void store_element(filling *f, int64_t at, int64_t row, int64_t column)
{
    void *data = hone_tensor_data(f->tensor);
    if (!is_complex(f->dtype)) {
        hone_element_store(f->dtype->id, data, at, f->next(f, row, column));
        return;
    }
    const hone_dtype_id part = f->dtype->id == HONE_C64 ? HONE_F32 : HONE_F64;
    hone_element_store(part, data, 2 * at, f->next(f, row, column));
    hone_element_store(part, data, 2 * at + 1, f->next(f, row, column));
}

static void fill(filling *f)
{
    int64_t index[HONE_MAX_RANK] = {0};
    const int32_t outer = f->tensor->ndim > 0 ? f->tensor->ndim - 1 : 0;
    const int64_t step = f->tensor->ndim > 0 ? f->strides[outer] : 0;
    for (int64_t row = 0; row < f->rows; row++) {
        int64_t at = 0;
        for (int32_t i = 0; i < outer; i++)
            at += index[i] * f->strides[i];
        for (int64_t column = 0; column < f->row_length; column++, at += step)
            store_element(f, at, row, column);
        for (int32_t i = outer - 1; i >= 0 && ++index[i] == f->tensor->shape[i]; i--)
            index[i] = 0;
    }
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

static double next_uniform(filling *f, int64_t row, int64_t column)
{
    (void)row;
    (void)column;
    if (!is_float(f->dtype)) return (double)draw_integer(&f->random, f->args[0].as.i64, f->args[1].as.i64);
    const double low = number(&f->args[0]), high = number(&f->args[1]);
    return low + (high - low) * draw_unit(&f->random);
}

static hone_status open_uniform(filling *f)
{
    f->next = next_uniform;
    if (!(number(&f->args[0]) <= number(&f->args[1]))) return wrong(f, "uniform(lo, hi) with lo > hi");
    if (is_float(f->dtype)) return HONE_OK;
    if (!is_integer(&f->args[0]) || !is_integer(&f->args[1]))
        return wrong(f, "uniform needs integers for a tensor of integers");
    const bool fits = storable(f, f->args[0].as.i64) && storable(f, f->args[1].as.i64);
    return fits ? HONE_OK : wrong(f, "uniform reaches beyond what the dtype holds");
}

static double next_normal(filling *f, int64_t row, int64_t column)
{
    (void)row;
    (void)column;
    return number(&f->args[0]) + number(&f->args[1]) * draw_normal(&f->random);
}

static hone_status open_normal(filling *f)
{
    f->next = next_normal;
    return number(&f->args[1]) >= 0 ? HONE_OK : wrong(f, "normal(mean, sd) with a negative sd");
}

static double next_permutation(filling *f, int64_t row, int64_t column)
{
    // A permutation of 0..n-1 over the whole tensor, in row-major order; a new one after every n elements.
    (void)row;
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
    return draw_integer(&f->random, 0, twice); // never more than what is left: there are two parts or more
}

static double next_segment(filling *f, int64_t row, int64_t column)
{
    (void)row;
    if (column == 0) f->state = 0;
    const int64_t share = next_share(f, f->row_length - column);
    f->state += share;
    return (double)share;
}

static double next_offset(filling *f, int64_t row, int64_t column)
{
    (void)row;
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

static double next_constant(filling *f, int64_t row, int64_t column)
{
    (void)row;
    (void)column;
    return (double)f->total;
}

static hone_status open_ones(filling *f)
{
    f->next = next_constant;
    f->total = 1;
    return HONE_OK;
}

static hone_status open_zeros(filling *f)
{
    f->next = next_constant;
    return HONE_OK;
}

static const struct {
    const char *name;
    uint32_t args;
    hone_status (*open)(filling *f);
} generators[] = {
    {"uniform", 2, open_uniform},   {"normal", 2, open_normal},   {"permutation", 1, open_permutation},
    {"segments", 1, open_segments}, {"offsets", 1, open_offsets}, {"ones", 0, open_ones},
    {"zeros", 0, open_zeros},
};

const char hone_generator_list[] = "a generator: uniform(lo, hi), normal(mean, sd), permutation(n), segments(total), "
                                   "offsets(total), ones() or zeros()";

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

static hone_status open_default(filling *f)
{
    if (is_float(f->dtype)) {
        f->args[0] = hone_scalar_int(0);
        f->args[1] = hone_scalar_int(1);
        return open_normal(f);
    }
    const bool is_signed = f->dtype->dtype.code == HONE_CODE_INT;
    f->args[0] = hone_scalar_int(is_signed ? -8 : 0);
    f->args[1] = hone_scalar_int(f->dtype->id == HONE_BOOL ? 1 : is_signed ? 7 : 15);
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
    const hone_call *call, size_t index, const hone_tensor *tensor, uint64_t seed, hone_error *err)
{
    if (hone_call_tensor(call, index) == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: value %zu is no tensor", call->signature->name, index);
    const hone_call_parameter *p = &call->signature->parameters[index];
    filling f = {.call = call, .err = err, .name = p->shown.name, .tensor = tensor};
    f.dtype = hone_dtype_find(tensor->dtype);
    const int64_t elements = f.dtype == NULL ? -1 : hone_tensor_elements(tensor);
    if (elements < 0 || tensor->ndim > HONE_MAX_RANK)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s: no sound tensor for %s", call->signature->name, f.name);
    if (elements == 0) return HONE_OK;
    f.row_length = tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 1;
    f.rows = elements / f.row_length;
    hone_tensor_strides(tensor, f.strides);
    uint64_t state = seed ^ (index + 1) * UINT64_C(0xd1342543de82ef95);
    for (int i = 0; i < 4; i++)
        f.random.s[i] = splitmix(&state);
    hone_status status = open_generator(&f, p->generator);
    if (status == HONE_OK) fill(&f);
    hone_free(&call->arena.allocator, f.order);
    return status;
}
