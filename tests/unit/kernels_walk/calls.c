#include "calls.h"

#include "call/signature.h"
#include "platforms/platform.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 16, MOST_LEADING = 3 };
static const double most_operations = 2e7;
// One whole vector of 16 lanes or more and every remainder of it, behind a block of several vectors too; and odd sizes
// that leave the blocks of a kernel's inner loops unfilled.
static const int64_t tails[] = {17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 77, 1001, 4099};
enum { TAIL_COUNT = sizeof tails / sizeof *tails };

// Around the widths of vectors and of blocks: one less, the width, one more.
static const int64_t small_sizes[] = {1, 2, 3, 4, 5, 6, 7, 8};
static const int64_t sizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 255, 515, 1000};

typedef enum layout {
    DENSE,
    GAP,      // behind each row
    PERMUTED, // its axes in another order
    STEP,     // every other element
    LAYOUT_COUNT
} layout;

typedef struct maker {
    uint64_t state;
    const hone_signature *signature;
    hone_device device;
    hone_scalar slots[HONE_MAX_SLOTS];
    hone_dtype_id dtypes[HONE_MAX_VARIABLES];
    int64_t leading[MOST_LEADING];
    int32_t leading_count;
    bool odd_addresses; // aligned to an element and no more
    bool mixed;         // each tensor has a layout of its own
    layout layout;
    hone_value values[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
} maker;

// splitmix64, of which seeds that are neighbours give unrelated numbers.
static uint64_t draw(maker *m, uint64_t count)
{
    uint64_t z = m->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % count;
}

// Half of them small, so that signatures of many dims stay below MOST_ELEMENTS with one dim that is large; now and then
// none.
static int64_t draw_size(maker *m)
{
    if (draw(m, 40) == 0) return 0;
    if (draw(m, 2) == 0) return small_sizes[draw(m, sizeof small_sizes / sizeof *small_sizes)];
    return sizes[draw(m, sizeof sizes / sizeof *sizes)];
}

static hone_dtype_id draw_dtype(maker *m, const hone_type_variable *variable)
{
    uint32_t allowed = variable->allowed != 0 ? variable->allowed : 1u << HONE_F32;
    hone_dtype_id id;
    do
        id = (hone_dtype_id)draw(m, HONE_DTYPE_COUNT);
    while ((allowed >> id & 1) == 0);
    return id;
}

// Scalars -------------------------------------------------------------------------------------------------------------

// Half of them are left at their default. A text is: nobody but its kernels knows which others there are. Floats are
// small, for the scale of a softmax is one of them: where it is far above 1 / sqrt(dim), the rounding of logits alone
// is what is allowed.
static hone_value draw_scalar(maker *m, const hone_parameter *shown)
{
    static const int64_t integers[] = {1, 2, 7, 33};
    static const double floats[] = {0.01, 0.03, 0.125, 0.25};
    bool leave = shown->has_default && (draw(m, 2) == 0 || shown->kind == HONE_KIND_STRING);
    if (leave) return hone_of_none();
    if (shown->kind == HONE_KIND_BOOL) return hone_of_bool(draw(m, 2) == 1);
    if (shown->kind == HONE_KIND_INT) return hone_of_int(integers[draw(m, 4)]);
    return hone_of_float(floats[draw(m, 4)]);
}

static hone_scalar scalar_of(const hone_parameter *shown, const hone_value *given)
{
    const hone_value *value = given->tag == HONE_VALUE_NONE && shown->has_default ? &shown->default_value : given;
    if (value->tag == HONE_VALUE_BOOL) return hone_scalar_bool(value->as.i64 != 0);
    if (value->tag == HONE_VALUE_INT) return hone_scalar_int(value->as.i64);
    return (hone_scalar){.kind = HONE_SCALAR_NONE};
}

// What shapes are made of: dims at random, and the scalars that choose between shapes.
static void draw_slots(maker *m)
{
    const hone_signature *signature = m->signature;
    for (size_t i = 0; i < signature->count; i++)
        if (signature->parameters[i].shown.kind != HONE_KIND_TENSOR)
            m->values[i] = draw_scalar(m, &signature->parameters[i].shown);
    for (size_t i = 0; i < signature->slot_count; i++) {
        const hone_call_slot *s = &signature->slots[i];
        if (s->kind == SLOT_DIM) m->slots[i] = hone_scalar_int(draw_size(m));
        if (s->kind == SLOT_SCALAR)
            m->slots[i] = scalar_of(&signature->parameters[s->parameter].shown, &m->values[s->parameter]);
    }
}

// Tensors -------------------------------------------------------------------------------------------------------------

static bool evaluate(const maker *m, const hone_expression *expression, hone_scalar *out)
{
    return hone_expression_evaluate(expression, m->slots, out, NULL) == HONE_OK;
}

// The alternative whose condition holds; NULL when that cannot be told.
static const hone_shape_pattern *choose_shape(const maker *m, const hone_shape_pattern *s)
{
    hone_scalar truth;
    while (s != NULL && s->condition != NULL) {
        if (!evaluate(m, s->condition, &truth)) return NULL;
        if (hone_scalar_truth(&truth)) return s;
        s = s->otherwise;
    }
    return s;
}

static bool append_dim(const maker *m, const hone_dim *d, hone_tensor *tensor)
{
    hone_scalar size = m->slots[d->slot];
    if (d->expression != NULL && !evaluate(m, d->expression, &size)) return false;
    if (size.kind != HONE_SCALAR_INT || size.as.i64 < 0 || tensor->ndim == HONE_MAX_RANK) return false;
    tensor->shape[tensor->ndim++] = size.as.i64;
    return true;
}

static bool make_shape(const maker *m, const hone_shape_pattern *s, hone_tensor *tensor)
{
    if (s == NULL) return false;
    if (s->ellipsis) {
        memcpy(tensor->shape, m->leading, sizeof m->leading);
        tensor->ndim = m->leading_count;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (!append_dim(m, &s->dims[i], tensor)) return false;
    return hone_tensor_elements(tensor) <= MOST_ELEMENTS;
}

static void lay_out(maker *m, hone_tensor *tensor, int64_t *strides)
{
    layout way = m->mixed ? (layout)draw(m, LAYOUT_COUNT) : m->layout;
    int32_t order[HONE_MAX_RANK], ndim = tensor->ndim;
    if (way == DENSE || ndim == 0) return;
    for (int32_t i = 0; i < ndim; i++)
        order[i] = i;
    for (int32_t i = ndim - 1; way == PERMUTED && i > 0; i--) {
        int32_t other = (int32_t)draw(m, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    int64_t stride = way == STEP ? 2 : 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= tensor->shape[order[i]];
        if (way == GAP && i == ndim - 1) stride += 1 + (int64_t)draw(m, 5);
    }
    tensor->strides = strides;
}

// Nothing lies at the address: it says how the memory that a test takes is to be aligned.
static void *address_of(const maker *m, size_t i, int64_t bits)
{
    uintptr_t address = (uintptr_t)(i + 1) << 32;
    return (void *)(m->odd_addresses ? address + (uintptr_t)(bits / 8) : address);
}

static bool make_tensor(maker *m, size_t i)
{
    const hone_call_parameter *p = &m->signature->parameters[i];
    hone_tensor *tensor = &m->tensors[i];
    if (p->shown.nullable && draw(m, 2) == 0) return true; // its value is none
    hone_dtype_id id = p->dtype != NULL ? p->dtype->id : m->dtypes[p->variable];
    *tensor = (hone_tensor){.device = m->device, .dtype = hone_dtype_of(id), .shape = m->shapes[i]};
    if (!make_shape(m, choose_shape(m, p->shape), tensor)) return false;
    lay_out(m, tensor, m->strides[i]);
    tensor->data = address_of(m, i, hone_dtype_info_of(id)->bits);
    m->values[i] = hone_of_tensor(tensor);
    return true;
}

// A call --------------------------------------------------------------------------------------------------------------

static bool draw_all(maker *m)
{
    const hone_signature *signature = m->signature;
    m->odd_addresses = m->odd_addresses && draw(m, 3) == 0;
    m->mixed = draw(m, 4) == 0;
    m->layout = draw(m, 2) == 0 ? DENSE : GAP;
    for (size_t i = 0; i < signature->variable_count; i++)
        m->dtypes[i] = draw_dtype(m, &signature->variables[i]);
    m->leading_count = (int32_t)draw(m, MOST_LEADING + 1);
    for (int32_t i = 0; i < m->leading_count; i++)
        m->leading[i] = draw_size(m);
    draw_slots(m);
    for (size_t i = 0; i < signature->count; i++)
        if (signature->parameters[i].shape != NULL && !make_tensor(m, i)) return false;
    return true;
}

static bool is_worth_it(const hone_algorithm_entry *algorithm, const hone_call *call)
{
    hone_cost cost = {0};
    if (algorithm->algorithm.model != NULL) algorithm->algorithm.model(call, &cost);
    return cost.operations <= most_operations;
}

static maker *maker_create(const hone_algorithm_entry *algorithm, const hone_device_info *device, uint64_t seed)
{
    maker *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->state = seed << 32;
    m->signature = algorithm->signature;
    m->device = device->device;
    m->odd_addresses = hone_platform_ops_of(device->platform)->view_align == 0; // else its tensors begin at multiples
    return m;
}

// NULL: the signature's conditions refuse it, or it is more work than a test is worth.
static hone_call *bind(const hone_algorithm_entry *algorithm, const maker *m)
{
    hone_call *call = NULL;
    hone_status status = hone_call_bind(
        hone_allocator_system(), algorithm->signature, m->values, m->signature->count, true, &call, NULL);
    if (status == HONE_OK && !is_worth_it(algorithm, call)) hone_call_release(&call);
    return call;
}

hone_call *call_make(const hone_algorithm_entry *algorithm, const hone_device_info *device, uint64_t seed)
{
    maker *m = maker_create(algorithm, device, seed);
    hone_call *call = m != NULL && draw_all(m) ? bind(algorithm, m) : NULL;
    free(m);
    return call;
}

// Tails ---------------------------------------------------------------------------------------------------------------

static size_t count_dims(const hone_signature *signature)
{
    size_t count = 0;
    for (size_t i = 0; i < signature->slot_count; i++)
        count += signature->slots[i].kind == SLOT_DIM;
    return count;
}

// The most dtypes that one of the type variables may be.
static size_t count_dtypes(const hone_signature *signature)
{
    size_t most = 1;
    for (size_t i = 0; i < signature->variable_count; i++) {
        size_t allowed = (size_t)__builtin_popcount(signature->variables[i].allowed);
        most = allowed > most ? allowed : most;
    }
    return most;
}

static hone_dtype_id nth_dtype(const hone_type_variable *variable, size_t n)
{
    uint32_t allowed = variable->allowed != 0 ? variable->allowed : 1u << HONE_F32;
    for (n %= (size_t)__builtin_popcount(allowed); n > 0; n--)
        allowed &= allowed - 1;
    return (hone_dtype_id)__builtin_ctz(allowed);
}

// All but one dim are small, so that the one may be large.
static bool draw_tail(maker *m, size_t dim, int64_t size, size_t dtype)
{
    const hone_signature *signature = m->signature;
    m->layout = DENSE;
    for (size_t i = 0; i < signature->variable_count; i++)
        m->dtypes[i] = nth_dtype(&signature->variables[i], dtype);
    m->leading_count = 1;
    m->leading[0] = 1 + (int64_t)draw(m, 3);
    draw_slots(m);
    for (size_t i = 0, at = 0; i < signature->slot_count; i++)
        if (signature->slots[i].kind == SLOT_DIM)
            m->slots[i] = hone_scalar_int(at++ == dim ? size : small_sizes[draw(m, 4)]);
    for (size_t i = 0; i < signature->count; i++)
        if (signature->parameters[i].shape != NULL && !make_tensor(m, i)) return false;
    return true;
}

size_t call_count_tails(const hone_algorithm_entry *algorithm)
{
    return count_dims(algorithm->signature) * count_dtypes(algorithm->signature) * TAIL_COUNT;
}

hone_call *call_make_tail(
    const hone_algorithm_entry *algorithm, const hone_device_info *device, size_t index, uint64_t seed)
{
    size_t dtypes = count_dtypes(algorithm->signature);
    size_t dim = index / (TAIL_COUNT * dtypes), dtype = index / TAIL_COUNT % dtypes;
    maker *m = maker_create(algorithm, device, seed + 1);
    hone_call *call = m != NULL && draw_tail(m, dim, tails[index % TAIL_COUNT], dtype) ? bind(algorithm, m) : NULL;
    free(m);
    return call;
}
