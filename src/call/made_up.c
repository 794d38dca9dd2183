#include "call/made_up.h"

#include "base/memory.h"
#include "call/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// splitmix64.
uint64_t hone_made_up_draw(hone_made_up *m, uint64_t count)
{
    uint64_t z = m->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % count;
}

static hone_dtype_id draw_dtype(hone_made_up *m, const hone_type_variable *variable)
{
    uint32_t allowed = variable->allowed != 0 ? variable->allowed : 1u << HONE_F32;
    hone_dtype_id id;
    do
        id = (hone_dtype_id)hone_made_up_draw(m, HONE_DTYPE_COUNT);
    while ((allowed >> id & 1) == 0);
    return id;
}

void hone_made_up_draw_dtypes(hone_made_up *m)
{
    for (size_t i = 0; i < m->signature->variable_count; i++)
        m->dtypes[i] = draw_dtype(m, &m->signature->variables[i]);
}

// Scalars -------------------------------------------------------------------------------------------------------------

// A text is left as it is: nobody but its kernels knows which others there are. Floats are small, for the scale of a
// softmax is one of them: where it is far above 1 / sqrt(dim), the rounding of logits alone is what is allowed.
static hone_value draw_scalar(hone_made_up *m, const hone_parameter *shown)
{
    static const int64_t integers[] = {1, 2, 7, 33};
    static const double floats[] = {0.01, 0.03, 0.125, 0.25};
    bool leave =
        shown->has_default && ((hone_made_up_draw(m, 2) == 0 && !m->leaves_none) || shown->kind == HONE_KIND_STRING);
    if (leave) return hone_of_none();
    if (shown->kind == HONE_KIND_BOOL)
        return hone_of_bool(m->leaves_none ? shown->default_value.as.i64 == 0 : hone_made_up_draw(m, 2) == 1);
    if (shown->kind == HONE_KIND_INT) return hone_of_int(integers[hone_made_up_draw(m, 4)]);
    return hone_of_float(floats[hone_made_up_draw(m, 4)]);
}

static hone_scalar scalar_of(const hone_parameter *shown, const hone_value *given)
{
    const hone_value *value = given->tag == HONE_VALUE_NONE && shown->has_default ? &shown->default_value : given;
    if (value->tag == HONE_VALUE_BOOL) return hone_scalar_bool(value->as.i64 != 0);
    if (value->tag == HONE_VALUE_INT) return hone_scalar_int(value->as.i64);
    return (hone_scalar){.kind = HONE_SCALAR_NONE};
}

// What shapes read of the scalars.
static void set_slots(hone_made_up *m)
{
    for (size_t i = 0; i < m->signature->slot_count; i++) {
        const hone_call_slot *s = &m->signature->slots[i];
        if (s->kind == SLOT_SCALAR)
            m->slots[i] = scalar_of(&m->signature->parameters[s->parameter].shown, &m->values[s->parameter]);
    }
}

// Also those that choose between shapes.
void hone_made_up_draw_scalars(hone_made_up *m)
{
    const hone_signature *signature = m->signature;
    for (size_t i = 0; i < signature->count; i++)
        if (signature->parameters[i].shown.kind != HONE_KIND_TENSOR)
            m->values[i] = draw_scalar(m, &signature->parameters[i].shown);
    set_slots(m);
}

// Tensors -------------------------------------------------------------------------------------------------------------

static bool evaluate(const hone_made_up *m, const hone_expression *expression, hone_scalar *out)
{
    return hone_expression_evaluate(expression, m->slots, out, NULL) == HONE_OK;
}

// The alternative whose condition holds; NULL when that cannot be told.
static const hone_shape_pattern *choose_shape(const hone_made_up *m, const hone_shape_pattern *s)
{
    hone_scalar truth;
    while (s != NULL && s->condition != NULL) {
        if (!evaluate(m, s->condition, &truth)) return NULL;
        if (hone_scalar_truth(&truth)) return s;
        s = s->otherwise;
    }
    return s;
}

static bool append_dim(const hone_made_up *m, const hone_dim *d, hone_tensor *tensor)
{
    hone_scalar size = m->slots[d->slot];
    if (d->expression != NULL && !evaluate(m, d->expression, &size)) return false;
    if (size.kind != HONE_SCALAR_INT || size.as.i64 < 0 || tensor->ndim == HONE_MAX_RANK) return false;
    tensor->shape[tensor->ndim++] = size.as.i64;
    return true;
}

static bool make_shape(const hone_made_up *m, const hone_shape_pattern *s, hone_tensor *tensor)
{
    if (s == NULL) return false;
    if (s->ellipsis) {
        memcpy(tensor->shape, m->leading, sizeof m->leading);
        tensor->ndim = m->leading_count;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (!append_dim(m, &s->dims[i], tensor)) return false;
    return hone_tensor_elements(tensor) <= m->most_elements;
}

static bool draws_optional(hone_made_up *m, size_t i)
{
    if (m->like != NULL && i + 1 == m->turned) return m->like->values[i].tag != HONE_VALUE_TENSOR;
    return m->like != NULL ? m->like->values[i].tag == HONE_VALUE_TENSOR : hone_made_up_draw(m, 2) == 1;
}

static bool make_tensor(hone_made_up *m, size_t i)
{
    const hone_call_parameter *p = &m->signature->parameters[i];
    hone_tensor *tensor = &m->tensors[i];
    if (p->shown.nullable && !draws_optional(m, i)) return true; // it is left out
    hone_dtype_id id = p->dtype != NULL ? p->dtype->id : m->dtypes[p->variable];
    *tensor = (hone_tensor){.device = m->device, .dtype = hone_dtype_of(id), .shape = m->shapes[i]};
    if (!make_shape(m, choose_shape(m, p->shape), tensor)) return false;
    if (m->lay_out != NULL) m->lay_out(m->ctx, tensor, i, m->strides[i]);
    m->values[i] = hone_of_tensor(tensor);
    return true;
}

bool hone_made_up_make_tensors(hone_made_up *m)
{
    for (size_t i = 0; i < m->signature->count; i++)
        if (m->signature->parameters[i].shape != NULL && !make_tensor(m, i)) return false;
    return true;
}

// A call --------------------------------------------------------------------------------------------------------------

// Kernels that take whole blocks only find some here, too: all sizes of a call are multiples of one number.
static int64_t draw_size(hone_made_up *m, int64_t unit)
{
    static const int64_t odd[] = {1, 2, 3, 5, 7, 9, 13, 17, 31, 33, 37};
    if (unit > 1) return unit * (1 + (int64_t)hone_made_up_draw(m, 3));
    return odd[hone_made_up_draw(m, sizeof odd / sizeof *odd)];
}

static void take_dtypes(hone_made_up *m, const hone_call *like)
{
    for (size_t i = 0; i < m->signature->variable_count; i++) {
        char name[64];
        const hone_view view = m->signature->variables[i].name;
        snprintf(name, sizeof name, "%.*s", (int)view.size, view.data);
        const hone_dtype_info *info = hone_call_dtype(like, name);
        m->dtypes[i] = info != NULL ? info->id : draw_dtype(m, &m->signature->variables[i]);
    }
}

static bool draw_all(hone_made_up *m, const hone_call *like)
{
    static const int64_t units[] = {1, 1, 1, 1, 8, 16, 64, 128};
    const int64_t unit = units[hone_made_up_draw(m, sizeof units / sizeof *units)];
    take_dtypes(m, like);
    m->leading_count = (int32_t)hone_made_up_draw(m, HONE_MADE_UP_LEADING);
    for (int32_t i = 0; i < m->leading_count; i++)
        m->leading[i] = 1 + (int64_t)hone_made_up_draw(m, 3);
    hone_made_up_draw_scalars(m);
    for (size_t i = 0; i < m->signature->slot_count; i++)
        if (m->signature->slots[i].kind == SLOT_DIM) m->slots[i] = hone_scalar_int(draw_size(m, unit));
    return hone_made_up_make_tensors(m);
}

hone_status hone_made_up_call(hone_allocator allocator, const hone_call *like, uint64_t seed, hone_call **out)
{
    enum { MOST_ELEMENTS = 1 << 14 };
    const hone_signature *signature = hone_call_signature(like);
    *out = NULL;
    hone_made_up *m = hone_alloc(&allocator, sizeof *m);
    if (m == NULL) return HONE_OUT_OF_MEMORY;
    m->signature = signature;
    m->device = hone_call_device(like);
    m->state = seed << 32;
    m->leaves_none = seed % 2 == 0;
    m->most_elements = MOST_ELEMENTS;
    hone_status status = HONE_OK;
    if (draw_all(m, like))
        status = hone_call_bind(
            allocator, (hone_signature *)(uintptr_t)signature, m->values, signature->count, true, out, NULL);
    hone_free(&allocator, m);
    return status == HONE_OUT_OF_MEMORY ? status : HONE_OK;
}

// A smaller call ------------------------------------------------------------------------------------------------------

// The dims of a call: what "..." stands for, and then the signature's. Fixed: it must stay as it is.
typedef struct shrinking {
    hone_made_up *m;
    bool fixed[HONE_MAX_RANK + HONE_MAX_SLOTS];
} shrinking;

static int64_t *dim_of(hone_made_up *m, size_t index)
{
    if (index < (size_t)m->leading_count) return &m->leading[index];
    return &m->slots[index - (size_t)m->leading_count].as.i64;
}

static bool is_dim(const hone_made_up *m, size_t index)
{
    const size_t leading = (size_t)m->leading_count;
    return index < leading || m->signature->slots[index - leading].kind == SLOT_DIM;
}

// -1 if no dim may be halved.
static int largest_dim(shrinking *s)
{
    int largest = -1;
    const size_t count = (size_t)s->m->leading_count + s->m->signature->slot_count;
    for (size_t i = 0; i < count; i++)
        if (!s->fixed[i] && is_dim(s->m, i) && *dim_of(s->m, i) > 1 &&
            (largest < 0 || *dim_of(s->m, i) > *dim_of(s->m, (size_t)largest)))
            largest = (int)i;
    return largest;
}

static int64_t bytes_of(const hone_call *call)
{
    int64_t sum = 0;
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL) sum += hone_tensor_elements(tensor) * tensor->dtype.bits / 8;
    }
    return sum;
}

// False: "..." stands for more dims than are made up.
static bool take_all(hone_made_up *m, const hone_call *like)
{
    take_dtypes(m, like);
    memcpy(m->slots, like->slots, m->signature->slot_count * sizeof m->slots[0]);
    for (size_t i = 0; i < m->signature->count; i++) {
        const hone_shape_pattern *shape = choose_shape(m, m->signature->parameters[i].shape);
        const hone_tensor *tensor = hone_call_tensor(like, i);
        if (m->signature->parameters[i].shape == NULL) m->values[i] = like->values[i];
        if (shape == NULL || tensor == NULL || !shape->ellipsis) continue;
        m->leading_count = tensor->ndim - (int32_t)shape->count;
        if (m->leading_count > HONE_MADE_UP_LEADING) return false;
        memcpy(m->leading, tensor->shape, (size_t)m->leading_count * sizeof m->leading[0]);
    }
    return true;
}

static hone_status build(hone_made_up *m, hone_allocator allocator, hone_call **out)
{
    const hone_call_source source = {
        .values = m->values, .count = m->signature->count, .aligns = m->like->aligns, .describe = true};
    *out = NULL;
    if (!hone_made_up_make_tensors(m)) return HONE_OK;
    hone_status status = hone_call_build(allocator, (hone_signature *)(uintptr_t)m->signature, &source, out, NULL);
    return status == HONE_OUT_OF_MEMORY ? status : HONE_OK;
}

// Gives one dim another size; *out is the call that comes of it, where one does, and else stays. HONE_OUT_OF_MEMORY.
static hone_status resize(
    shrinking *s,
    int index,
    int64_t size,
    int64_t most_bytes,
    hone_allocator allocator,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    hone_call *call = NULL;
    int64_t *dim = dim_of(s->m, (size_t)index), before = *dim;
    *dim = size;
    hone_status status = build(s->m, allocator, &call);
    if (call != NULL && bytes_of(call) <= most_bytes && takes(ctx, call)) {
        hone_call_release(out);
        *out = call;
        return status;
    }
    hone_call_release(&call);
    *dim = before;
    s->fixed[index] = true;
    return status;
}

static hone_status halve(
    shrinking *s,
    int index,
    hone_allocator allocator,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    const int64_t half = (*dim_of(s->m, (size_t)index) + 1) / 2;
    return resize(s, index, half, INT64_MAX, allocator, takes, ctx, out);
}

static hone_status halve_each(
    shrinking *s, hone_allocator allocator, bool (*takes)(void *ctx, const hone_call *call), void *ctx, hone_call **out)
{
    hone_status status = HONE_OK;
    const size_t count = (size_t)s->m->leading_count + s->m->signature->slot_count;
    for (size_t i = 0; i < count && status == HONE_OK; i++)
        if (is_dim(s->m, i) && *dim_of(s->m, i) > 1) status = halve(s, (int)i, allocator, takes, ctx, out);
    return status;
}

static hone_made_up *make_as(hone_allocator allocator, const hone_call *like)
{
    hone_made_up *m = hone_alloc(&allocator, sizeof *m);
    if (m == NULL) return NULL;
    m->signature = like->signature;
    m->device = hone_call_device(like);
    m->like = like;
    m->most_elements = INT64_MAX;
    return m;
}

static hone_status shrink(
    hone_allocator allocator,
    const hone_call *like,
    bool each,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    *out = NULL;
    hone_made_up *m = make_as(allocator, like);
    if (m == NULL) return HONE_OUT_OF_MEMORY;
    shrinking s = {.m = m};
    const bool whole = take_all(m, like);
    hone_status status = whole && each ? halve_each(&s, allocator, takes, ctx, out) : HONE_OK;
    int largest = whole ? largest_dim(&s) : -1;
    while (largest >= 0 && status == HONE_OK && (*out == NULL || bytes_of(*out) > most_bytes)) {
        status = halve(&s, largest, allocator, takes, ctx, out);
        largest = largest_dim(&s);
    }
    if (*out != NULL && (status != HONE_OK || bytes_of(*out) > most_bytes)) hone_call_release(out);
    hone_free(&allocator, m);
    return status;
}

hone_status hone_made_up_smaller(
    hone_allocator allocator,
    const hone_call *like,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    return shrink(allocator, like, false, most_bytes, takes, ctx, out);
}

hone_status hone_made_up_half(
    hone_allocator allocator,
    const hone_call *like,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    return shrink(allocator, like, true, most_bytes, takes, ctx, out);
}

// Whether a dim is as large in the other call.
static bool is_same_dim(hone_made_up *m, hone_made_up *other, size_t index)
{
    return other == NULL || (other->leading_count == m->leading_count && *dim_of(other, index) == *dim_of(m, index));
}

static hone_status double_each(
    hone_made_up *m,
    hone_made_up *other,
    hone_allocator allocator,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    shrinking s = {.m = m};
    hone_status status = HONE_OK;
    const size_t count = (size_t)m->leading_count + m->signature->slot_count;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        if (!is_dim(m, i) || *dim_of(m, i) < 2 || *dim_of(m, i) > most_bytes || !is_same_dim(m, other, i)) continue;
        status = resize(&s, (int)i, 2 * *dim_of(m, i), most_bytes, allocator, takes, ctx, out);
    }
    return status;
}

hone_status hone_made_up_double(
    hone_allocator allocator,
    const hone_call *like,
    const hone_call *other,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    *out = NULL;
    hone_made_up *m = make_as(allocator, like), *same = other != NULL ? make_as(allocator, other) : NULL;
    hone_status status = m == NULL || (other != NULL && same == NULL) ? HONE_OUT_OF_MEMORY : HONE_OK;
    if (status == HONE_OK && take_all(m, like) && (same == NULL || take_all(same, other)))
        status = double_each(m, same, allocator, most_bytes, takes, ctx, out);
    if (status != HONE_OK) hone_call_release(out);
    hone_free(&allocator, m);
    hone_free(&allocator, same);
    return status;
}

// A sibling -----------------------------------------------------------------------------------------------------------

// Builds the call as m has it now, and lets go of it where it is not the one that is looked for.
static hone_status look_at(
    hone_made_up *m,
    hone_allocator allocator,
    uint32_t *left,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    set_slots(m);
    const hone_status status = build(m, allocator, out);
    if (*out == NULL) return status;
    const bool is_one = takes(ctx, *out);
    if (is_one && *left == 0) return HONE_OK;
    if (is_one) (*left)--;
    hone_call_release(out);
    return HONE_OK;
}

// False: nothing of it is changed.
static bool change_scalar(const hone_parameter *shown, hone_value *value)
{
    if (shown->kind == HONE_KIND_BOOL && (value->tag == HONE_VALUE_BOOL || shown->has_default)) {
        *value = hone_of_bool(scalar_of(shown, value).as.i64 == 0);
        return true;
    }
    const bool is_none = value->tag == HONE_VALUE_NONE;
    if (!shown->nullable || (shown->kind == HONE_KIND_STRING && is_none)) return false; // nobody knows the texts
    if (shown->kind != HONE_KIND_INT && shown->kind != HONE_KIND_FLOAT && shown->kind != HONE_KIND_STRING) return false;
    *value = !is_none ? hone_of_none() : shown->kind == HONE_KIND_INT ? hone_of_int(3) : hone_of_float(0.75);
    return true;
}

// Rows of inputs that lie apart, as far as keeps them aligned. A call says nothing of how its results lie.
static void lie_apart(void *ctx, hone_tensor *tensor, size_t index, int64_t *strides)
{
    const hone_signature *signature = ctx;
    const int64_t gap = 16;
    int64_t stride = 1;
    if (tensor->ndim < 2 || signature->parameters[index].shown.is_result) return;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        stride *= tensor->shape[axis] + (axis == tensor->ndim - 1 ? gap : 0);
    }
    tensor->strides = strides;
}

// Whether an array has rows that may lie apart.
static bool has_rows(const hone_call *like)
{
    for (size_t i = 0; i < like->signature->count; i++) {
        const hone_tensor *tensor = hone_call_tensor(like, i);
        if (tensor != NULL && tensor->ndim > 1 && !like->signature->parameters[i].shown.is_result) return true;
    }
    return false;
}

static hone_status find_sibling(
    hone_made_up *m,
    hone_allocator allocator,
    uint32_t left,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < m->signature->count && status == HONE_OK && *out == NULL; i++) {
        const hone_value before = m->values[i];
        if (!change_scalar(&m->signature->parameters[i].shown, &m->values[i])) continue;
        status = look_at(m, allocator, &left, takes, ctx, out);
        m->values[i] = before;
    }
    for (size_t i = 0; i < m->signature->count && status == HONE_OK && *out == NULL; i++) {
        const hone_parameter *shown = &m->signature->parameters[i].shown;
        if (m->signature->parameters[i].shape == NULL || !shown->nullable) continue;
        m->values[i] = hone_of_none();
        m->turned = i + 1;
        status = look_at(m, allocator, &left, takes, ctx, out);
        m->values[i] = hone_of_none(); // until it is made again
        m->turned = 0;
    }
    m->lay_out = lie_apart;
    m->ctx = (void *)(uintptr_t)m->signature;
    if (status == HONE_OK && *out == NULL && has_rows(m->like)) status = look_at(m, allocator, &left, takes, ctx, out);
    m->lay_out = NULL;
    for (size_t i = 0; i < m->signature->variable_count && status == HONE_OK && *out == NULL; i++) {
        const hone_dtype_id before = m->dtypes[i];
        for (uint32_t id = 0; id < HONE_DTYPE_COUNT && status == HONE_OK && *out == NULL; id++) {
            if (id == (uint32_t)before || (m->signature->variables[i].allowed >> id & 1) == 0) continue;
            m->dtypes[i] = (hone_dtype_id)id;
            status = look_at(m, allocator, &left, takes, ctx, out);
        }
        m->dtypes[i] = before;
    }
    return status;
}

hone_status hone_made_up_sibling(
    hone_allocator allocator,
    const hone_call *like,
    uint32_t number,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    *out = NULL;
    hone_made_up *m = make_as(allocator, like);
    if (m == NULL) return HONE_OUT_OF_MEMORY;
    const hone_status status = take_all(m, like) ? find_sibling(m, allocator, number, takes, ctx, out) : HONE_OK;
    hone_free(&allocator, m);
    return status;
}

// A rearranged call ------------------------------------------------------------------------------------------------------

enum { SWAPPED, SECOND_DOUBLED, FIRST_DOUBLED, ARRANGEMENTS };

// Of two dims, whose product stays. False: there is no such arrangement.
static bool rearrange(hone_made_up *m, int arrangement, size_t first, size_t second)
{
    int64_t *a = dim_of(m, first), *b = dim_of(m, second);
    if (*a < 1 || *b < 1) return false;
    if (arrangement == SWAPPED) {
        const int64_t before = *a;
        *a = *b;
        *b = before;
        return *a != *b;
    }
    int64_t *halved = arrangement == SECOND_DOUBLED ? a : b, *doubled = arrangement == SECOND_DOUBLED ? b : a;
    if (*halved % 2 != 0 || *doubled > INT64_MAX / 2 || *halved == 2 * *doubled) return false; // that is to swap them
    *halved /= 2;
    *doubled *= 2;
    return true;
}

typedef struct rearranging {
    hone_made_up *m;
    hone_allocator allocator;
    uint32_t left;
    bool (*takes)(void *ctx, const hone_call *call);
    void *ctx;
} rearranging;

static hone_status try_arrangement(
    rearranging *r, int arrangement, size_t first, size_t second, int64_t most_bytes, hone_call **out)
{
    int64_t *a = dim_of(r->m, first), *b = dim_of(r->m, second);
    const int64_t before[2] = {*a, *b};
    hone_status status = HONE_OK;
    if (rearrange(r->m, arrangement, first, second)) status = build(r->m, r->allocator, out);
    *a = before[0];
    *b = before[1];
    if (*out == NULL) return status;
    const bool is_one = bytes_of(*out) <= most_bytes && r->takes(r->ctx, *out);
    if (is_one && r->left == 0) return status;
    if (is_one) r->left--;
    hone_call_release(out);
    return status;
}

// One of each pair of dims before the next one of any.
static hone_status find_arrangement(rearranging *r, int64_t most_bytes, hone_call **out)
{
    const size_t count = (size_t)r->m->leading_count + r->m->signature->slot_count;
    hone_status status = HONE_OK;
    for (int arrangement = SWAPPED; arrangement < ARRANGEMENTS; arrangement++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = i + 1; j < count && is_dim(r->m, i); j++) {
                if (!is_dim(r->m, j)) continue;
                status = try_arrangement(r, arrangement, i, j, most_bytes, out);
                if (status != HONE_OK || *out != NULL) return status;
            }
    return status;
}

hone_status hone_made_up_rearranged(
    hone_allocator allocator,
    const hone_call *like,
    uint32_t number,
    int64_t most_bytes,
    bool (*takes)(void *ctx, const hone_call *call),
    void *ctx,
    hone_call **out)
{
    *out = NULL;
    hone_made_up *m = make_as(allocator, like);
    if (m == NULL) return HONE_OUT_OF_MEMORY;
    rearranging r = {m, allocator, number, takes, ctx};
    const hone_status status = take_all(m, like) ? find_arrangement(&r, most_bytes, out) : HONE_OK;
    hone_free(&allocator, m);
    return status;
}

// A call with other scalars ---------------------------------------------------------------------------------------------

// What is next to nothing (an eps) keeps others from being zero, and has no sign that anybody asks for.
static bool has_sign(const hone_value *value)
{
    const double next_to_nothing = 1e-3;
    return value->tag == HONE_VALUE_FLOAT && fabs(value->as.f64) >= next_to_nothing;
}

bool hone_change_scalars(const hone_signature *signature, hone_scalar_change change, hone_value *values)
{
    bool changed = false;
    for (size_t i = 0; i < signature->count; i++) {
        hone_value *value = &values[i];
        const hone_role role = hone_signature_parameter(signature, i)->role;
        const bool is_meant = (change != HONE_CHANGE_IGNORED || role == HONE_ROLE_IGNORE) &&
                              (change != HONE_CHANGE_SIGNS || (role == HONE_ROLE_ANY && has_sign(value)));
        const bool is_float =
            is_meant && value->tag == HONE_VALUE_FLOAT && isfinite(value->as.f64) && change != HONE_CHANGE_SWITCHES;
        const bool is_switch =
            is_meant && value->tag == HONE_VALUE_BOOL && change != HONE_CHANGE_FLOATS && change != HONE_CHANGE_SIGNS;
        if (is_float)
            *value = hone_of_float(change == HONE_CHANGE_SIGNS ? -value->as.f64 : hone_other_float(value->as.f64));
        else if (is_switch && !hone_signature_shapes_read(signature, i)) // it says how arrays lie: transpose_b
            *value = hone_of_bool(value->as.i64 == 0);
        else
            continue;
        changed = true;
    }
    return changed;
}
