#include "tune/worker/buffers.h"

#include "base/assert.h"
#include "base/error.h"
#include "call/call.h"
#include "call/signature.h"
#include "tune/rule/statistics.h"
#include "tune/worker/bulk.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    GUARD_SIZE = 4096, // before and after each tensor: detects a kernel that is off by a row
    ALIGNMENT = 64
};

static const char where[] = "tune.buffers";

static bool is_result(const hone_buffers *buffers, size_t index)
{
    return hone_signature_parameter(buffers->signature, index)->is_result;
}

// Memory and place ----------------------------------------------------------------------------------------------------

// Start of the span, such that element [0, 0, ...] has exactly the requested alignment (0: 64).
static char *place(char *block, size_t below, uint32_t align)
{
    uintptr_t first = (uintptr_t)block + GUARD_SIZE + below;
    first = (first + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    return block + (first + align - (uintptr_t)block) - below;
}

static hone_status fence(
    const hone_allocator *allocator, const hone_tensor *tensor, uint32_t align, hone_fenced *out, hone_error *err)
{
    int64_t span, below;
    if (hone_tensor_span(tensor, &span, &below) != HONE_OK)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a tensor's strides reach further than memory does");
    size_t size;
    if (__builtin_add_overflow((size_t)span, 2 * GUARD_SIZE + 2 * ALIGNMENT, &size))
        return hone_fail_memory(err, where);
    out->block = hone_alloc_unset(allocator, size);
    if (out->block == NULL) return hone_fail_memory(err, where);
    out->size = size;
    out->span = (size_t)span;
    out->low = place(out->block, (size_t)below, align);
    out->tensor = *tensor;
    out->tensor.device = (hone_device){HONE_DEVICE_CPU, 0};
    if (tensor->strides != NULL) {
        memcpy(out->strides, tensor->strides, (size_t)tensor->ndim * sizeof out->strides[0]);
        out->tensor.strides = out->strides;
    }
    out->tensor.data = out->low + below;
    out->tensor.byte_offset = 0;
    memset(out->block, HONE_GUARD_BYTE, size);
    return HONE_OK;
}

static hone_place on_device(const hone_fenced *fenced, const char *of_host)
{
    return (hone_place){fenced->device_block, fenced->device_skip + (size_t)(of_host - fenced->block)};
}

static hone_place on_host(const hone_fenced *fenced)
{
    return (hone_place){fenced->block, 0};
}

// Makes the same block in the device's memory, if kernels run on a device.
static hone_status mirror_tensor(
    const hone_buffers *buffers, const hone_tensor *tensor, hone_fenced *fenced, hone_error *err)
{
    fenced->placed = fenced->tensor;
    fenced->placed.device = tensor->device;
    if (hone_site_is_host(buffers->site)) return HONE_OK;
    const char *first = fenced->tensor.data;
    hone_status status = hone_site_mirror(
        buffers->site, fenced->block, fenced->size, first, &fenced->device_block, &fenced->device_skip, err);
    if (status != HONE_OK) return status;
    fenced->placed.data = fenced->device_block;
    fenced->placed.byte_offset = on_device(fenced, first).offset;
    return HONE_OK;
}

hone_status hone_buffers_send(const hone_buffers *buffers, const hone_fenced *fenced, hone_error *err)
{
    if (fenced->device_block == NULL) return HONE_OK;
    return hone_site_copy(
        buffers->site, HONE_COPY_IN, on_device(fenced, fenced->block), on_host(fenced), fenced->size, err);
}

hone_status hone_buffers_take(const hone_buffers *buffers, hone_fenced *to, const hone_fenced *from, hone_error *err)
{
    if (from->device_block == NULL) {
        memcpy(to->low, from->low, from->span);
        return HONE_OK;
    }
    return hone_site_copy(
        buffers->site, HONE_COPY_WITHIN, on_device(to, to->low), on_device(from, from->low), from->span, err);
}

hone_status hone_buffers_fetch(const hone_buffers *buffers, size_t set, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < buffers->count; i++) {
        const hone_fenced *fenced = &buffers->sets[set].fenced[i];
        if (fenced->device_block != NULL)
            status = hone_site_copy(
                buffers->site, HONE_COPY_OUT, on_host(fenced), on_device(fenced, fenced->block), fenced->size, err);
    }
    return status;
}

static char *at(const hone_fenced *fenced, int64_t offset)
{
    char *byte = (char *)fenced->tensor.data + offset;
    hone_assert(byte >= fenced->low && byte < fenced->low + fenced->span);
    return byte;
}

hone_status hone_buffers_write(
    const hone_buffers *buffers,
    const hone_fenced *fenced,
    int64_t offset,
    const void *bytes,
    size_t size,
    hone_error *err)
{
    char *to = at(fenced, offset), from[16];
    hone_assert(size <= sizeof from);
    if (fenced->device_block == NULL) {
        memcpy(to, bytes, size);
        return HONE_OK;
    }
    memcpy(from, bytes, size);
    return hone_site_copy(buffers->site, HONE_COPY_IN, on_device(fenced, to), (hone_place){from, 0}, size, err);
}

hone_status hone_buffers_read(
    const hone_buffers *buffers, const hone_fenced *fenced, int64_t offset, void *out, size_t size, hone_error *err)
{
    char *from = at(fenced, offset);
    if (fenced->device_block == NULL) {
        memcpy(out, from, size);
        return HONE_OK;
    }
    return hone_site_copy(buffers->site, HONE_COPY_OUT, (hone_place){out, 0}, on_device(fenced, from), size, err);
}

void hone_fenced_deinit(const hone_allocator *allocator, hone_fenced *fenced)
{
    // Memory that cannot be made writable again is not freed.
    if (hone_os_guard_open(&fenced->guard)) hone_free(allocator, fenced->block);
    hone_free(allocator, fenced->holes);
    memset(fenced, 0, sizeof *fenced);
}

hone_status hone_fenced_like(
    const hone_allocator *allocator, const hone_fenced *model, hone_fenced *out, hone_error *err)
{
    memset(out, 0, sizeof *out);
    hone_status status = fence(allocator, &model->tensor, hone_tensor_align(&model->tensor), out, err);
    if (status == HONE_OK) out->tensor.strides = model->tensor.strides != NULL ? out->strides : NULL;
    return status;
}

// Walking elements ----------------------------------------------------------------------------------------------------

// Calls visit with the byte offset (from element [0, 0, ...]) of each element, in row-major order.
static void each_element(const hone_tensor *tensor, void (*visit)(void *ctx, int64_t offset, int64_t index), void *ctx)
{
    int64_t strides[HONE_MAX_RANK], at[HONE_MAX_RANK] = {0};
    int64_t count = hone_tensor_elements(tensor), offset = 0, size = tensor->dtype.bits / 8;
    hone_tensor_strides(tensor, strides);
    for (int64_t index = 0; index < count; index++) {
        visit(ctx, offset * size, index);
        for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
            offset += strides[axis];
            if (++at[axis] < tensor->shape[axis]) break;
            offset -= strides[axis] * at[axis];
            at[axis] = 0;
        }
    }
}

typedef struct hole_walk {
    bool *holes; // of element [0, 0, ...]
    size_t size;
} hole_walk;

static void fill_hole(void *ctx, int64_t offset, int64_t index)
{
    (void)index;
    hole_walk *walk = ctx;
    memset(walk->holes + offset, 0, walk->size);
}

static hone_status find_holes(const hone_allocator *allocator, hone_fenced *fenced, hone_error *err)
{
    if (hone_tensor_is_row_major(&fenced->tensor) || fenced->span == 0) return HONE_OK;
    fenced->holes = hone_alloc_unset(allocator, fenced->span);
    if (fenced->holes == NULL) return hone_fail_memory(err, where);
    memset(fenced->holes, 1, fenced->span);
    hole_walk walk = {fenced->holes + ((char *)fenced->tensor.data - fenced->low), fenced->tensor.dtype.bits / 8};
    each_element(&fenced->tensor, fill_hole, &walk);
    return HONE_OK;
}

// Sets ----------------------------------------------------------------------------------------------------------------

static bool is_called(const hone_generator_call *generator, const char *name)
{
    return generator != NULL && strcmp(hone_generator_name(generator->kind), name) == 0;
}

static bool is_ordinary(const hone_generator_call *generator)
{
    return generator == NULL || is_called(generator, "normal") || is_called(generator, "bias");
}

// Whether a value is an input of floats of 16 bits or more.
static bool is_float_input(const hone_buffers *buffers, size_t index)
{
    const uint8_t code = buffers->sets[0].fenced[index].tensor.dtype.code;
    return hone_buffers_is_input(buffers, index) && (code == HONE_CODE_FLOAT || code == HONE_CODE_BFLOAT);
}

static bool may_vary(const hone_buffers *buffers, size_t index)
{
    return is_float_input(buffers, index) && is_ordinary(buffers->signature->parameters[index].generator);
}

// Index of the first array of floats that is made as ordinary numbers around 0: others may be probabilities or decays.
static int find_varied(const hone_buffers *buffers)
{
    if (buffers->algorithm->make_input != NULL) return -1;
    for (size_t i = 0; i < buffers->count; i++)
        if (may_vary(buffers, i)) return (int)i;
    return -1;
}

bool hone_buffers_is_other(const hone_buffers *buffers, size_t index)
{
    return (int)index != buffers->varied && may_vary(buffers, index);
}

bool hone_buffers_has_others(const hone_buffers *buffers)
{
    for (size_t i = 0; i < buffers->count; i++)
        if (hone_buffers_is_other(buffers, i)) return true;
    return false;
}

static hone_status check_tensor(const hone_buffers *buffers, size_t index, const hone_tensor *tensor, hone_error *err)
{
    const hone_parameter *parameter = hone_signature_parameter(buffers->signature, index);
    if (hone_dtype_find(tensor->dtype) == NULL)
        return hone_fail(err, HONE_UNSUPPORTED, where, "%s has a dtype that hone does not know", parameter->name);
    if (tensor->dtype.bits % 8 != 0 && tensor->strides != NULL && !hone_tensor_is_row_major(tensor))
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s packs two elements in a byte and has strides: pass it row-major",
            parameter->name);
    return HONE_OK;
}

static hone_status add_tensor(
    hone_buffers *buffers, hone_buffer_set *set, size_t index, const hone_wire_value *value, hone_error *err)
{
    hone_fenced *fenced = &set->fenced[index];
    hone_status status = check_tensor(buffers, index, &value->tensor, err);
    if (status == HONE_OK) status = fence(&buffers->allocator, &value->tensor, value->align, fenced, err);
    if (status == HONE_OK && is_result(buffers, index)) status = find_holes(&buffers->allocator, fenced, err);
    if (status == HONE_OK) status = mirror_tensor(buffers, &value->tensor, fenced, err);
    if (status != HONE_OK) return status;
    set->values[index] = hone_of_tensor(&fenced->placed);
    return HONE_OK;
}

static hone_status add_set(hone_buffers *buffers, const hone_wire_value *values, hone_error *err)
{
    hone_buffer_set *set = &buffers->sets[buffers->set_count++];
    set->values = hone_alloc_array(&buffers->allocator, buffers->count, sizeof *set->values);
    set->fenced = hone_alloc_array(&buffers->allocator, buffers->count, sizeof *set->fenced);
    if (set->values == NULL || set->fenced == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < buffers->count; i++) {
        set->values[i] = values[i].value;
        if (values[i].value.tag != HONE_VALUE_TENSOR) continue;
        hone_status status = add_tensor(buffers, set, i, &values[i], err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

hone_status hone_buffers_create(
    hone_buffers *buffers,
    hone_allocator allocator,
    const hone_signature *signature,
    const hone_algorithm *algorithm,
    const hone_site *site,
    const hone_wire_value *values,
    size_t count,
    hone_error *err)
{
    memset(buffers, 0, sizeof *buffers);
    buffers->site = site;
    buffers->allocator = allocator;
    buffers->signature = signature;
    buffers->algorithm = algorithm;
    buffers->count = count;
    if (count != hone_signature_count(signature))
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%zu values came for a signature of %zu", count,
            hone_signature_count(signature));
    hone_status status = add_set(buffers, values, err);
    buffers->scale = 1;
    if (status == HONE_OK)
        buffers->varied = find_varied(buffers);
    else
        hone_buffers_deinit(buffers);
    return status;
}

void hone_buffers_deinit(hone_buffers *buffers)
{
    for (size_t s = 0; s < buffers->set_count; s++) {
        hone_buffer_set *set = &buffers->sets[s];
        for (size_t i = 0; set->fenced != NULL && i < buffers->count; i++) {
            hone_fenced *fenced = &set->fenced[i];
            hone_site_free(buffers->site, fenced->device_block, fenced->size);
            hone_fenced_deinit(&buffers->allocator, fenced);
        }
        hone_free(&buffers->allocator, set->fenced);
        hone_free(&buffers->allocator, set->values);
    }
    buffers->set_count = 0;
}

// Data ----------------------------------------------------------------------------------------------------------------

void hone_buffers_work_with(hone_buffers *buffers, hone_pool *pool, bool guards)
{
    buffers->pool = pool;
    buffers->guards = guards && hone_site_is_host(buffers->site) && hone_os_guard_begin();
}

hone_status hone_buffers_open_input(hone_fenced *fenced, hone_error *err)
{
    return hone_os_guard_open(&fenced->guard) ? HONE_OK : hone_fail_memory(err, where);
}

// A guard must cover the whole span. The edges of the block around the span are as wide as a page of GUARD_SIZE.
static bool close_guard(const hone_buffers *buffers, hone_fenced *fenced)
{
    if (!buffers->guards || !hone_os_guard_close(&fenced->guard, fenced->block, fenced->size)) return false;
    const hone_os_guard *guard = &fenced->guard;
    if (guard->from <= fenced->low && guard->from + guard->size >= fenced->low + fenced->span) return true;
    (void)hone_os_guard_open(&fenced->guard);
    return false;
}

void hone_buffers_close_input(const hone_buffers *buffers, hone_fenced *fenced)
{
    fenced->checksum = 0;
    if (!close_guard(buffers, fenced)) fenced->checksum = hone_bulk_hash(buffers->pool, fenced->block, fenced->size);
}

hone_status hone_buffers_open_inputs(
    hone_buffers *buffers, bool (*admits)(const hone_buffers *buffers, size_t index), hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++)
        if (admits(buffers, i)) status = hone_buffers_open_input(&buffers->sets[0].fenced[i], err);
    return status;
}

void hone_buffers_close_inputs(hone_buffers *buffers, bool (*admits)(const hone_buffers *buffers, size_t index))
{
    for (size_t i = 0; i < buffers->count; i++)
        if (admits(buffers, i)) hone_buffers_close_input(buffers, &buffers->sets[0].fenced[i]);
}

static hone_status generate_dense(
    const hone_buffers *buffers, const hone_call *call, size_t index, const hone_tensor *tensor, hone_error *err)
{
    const hone_algorithm *algorithm = buffers->algorithm;
    if (algorithm->make_input != NULL && algorithm->make_input(call, index, tensor, buffers->seed)) return HONE_OK;
    if (buffers->widens && hone_has_limits(call, index))
        return hone_generate(call, index, tensor, buffers->seed, 2, buffers->pool, err);
    const bool is_scaled =
        buffers->scales_others ? hone_buffers_is_other(buffers, index) : (int)index == buffers->varied;
    return hone_generate(call, index, tensor, buffers->seed, is_scaled ? buffers->scale : 1, buffers->pool, err);
}

typedef struct scatter_walk {
    const char *from;
    char *to;
    size_t size;
} scatter_walk;

static void scatter(void *ctx, int64_t offset, int64_t index)
{
    scatter_walk *walk = ctx;
    memcpy(walk->to + offset, walk->from + (size_t)index * walk->size, walk->size);
}

// Generators get a dense tensor, whatever the strides are: equal calls with other layouts get equal data.
static hone_status generate_strided(
    const hone_buffers *buffers, const hone_call *call, size_t index, hone_fenced *fenced, hone_error *err)
{
    size_t element = fenced->tensor.dtype.bits / 8, bytes;
    if (__builtin_mul_overflow((size_t)hone_tensor_elements(&fenced->tensor), element, &bytes))
        return hone_fail_memory(err, where);
    char *dense = hone_alloc(&buffers->allocator, bytes);
    if (dense == NULL) return hone_fail_memory(err, where);
    hone_tensor tensor = fenced->tensor;
    tensor.data = dense;
    tensor.strides = NULL;
    hone_status status = generate_dense(buffers, call, index, &tensor, err);
    if (status == HONE_OK) {
        scatter_walk walk = {dense, fenced->tensor.data, element};
        each_element(&fenced->tensor, scatter, &walk);
    }
    hone_free(&buffers->allocator, dense);
    return status;
}

// Bytes between elements become NaN: this detects a kernel that fills up a row with them times zero.
static hone_status fill_input(
    const hone_buffers *buffers, const hone_call *call, size_t index, hone_fenced *fenced, hone_error *err)
{
    hone_status status = hone_buffers_open_input(fenced, err);
    if (status != HONE_OK) return status;
    memset(fenced->block, HONE_GUARD_BYTE, fenced->size);
    bool dense = hone_tensor_is_row_major(&fenced->tensor);
    if (!dense) memset(fenced->low, HONE_POISON_BYTE, fenced->span);
    status = dense ? generate_dense(buffers, call, index, &fenced->tensor, err)
                   : generate_strided(buffers, call, index, fenced, err);
    if (status != HONE_OK) return status;
    hone_buffers_close_input(buffers, fenced);
    return hone_buffers_send(buffers, fenced, err);
}

hone_status hone_buffers_fill_one(hone_buffers *buffers, const hone_call *call, size_t index, hone_error *err)
{
    hone_assert(hone_buffers_is_input(buffers, index));
    return fill_input(buffers, call, index, &buffers->sets[0].fenced[index], err);
}

hone_status hone_buffers_fill(hone_buffers *buffers, const hone_call *call, uint64_t seed, hone_error *err)
{
    buffers->seed = seed;
    hone_buffer_set *set = &buffers->sets[0];
    for (size_t i = 0; i < buffers->count; i++) {
        if (set->fenced[i].block == NULL || is_result(buffers, i)) continue;
        buffers->has_wide = buffers->has_wide || (buffers->algorithm->make_input == NULL && hone_has_limits(call, i));
        hone_status status = fill_input(buffers, call, i, &set->fenced[i], err);
        if (status != HONE_OK) return status;
    }
    return hone_buffers_poison(buffers, 0, err);
}

bool hone_buffers_is_input(const hone_buffers *buffers, size_t index)
{
    return buffers->sets[0].fenced[index].block != NULL && !is_result(buffers, index);
}

bool hone_buffers_is_result(const hone_buffers *buffers, size_t index)
{
    return buffers->sets[0].fenced[index].block != NULL && is_result(buffers, index);
}

uint64_t hone_buffers_checksum(const hone_buffers *buffers, size_t index)
{
    const hone_fenced *fenced = &buffers->sets[0].fenced[index];
    return hone_bulk_hash(buffers->pool, fenced->block, fenced->size);
}

hone_status hone_buffers_set_input(
    const hone_buffers *buffers, size_t index, const char *span, uint64_t checksum, hone_error *err)
{
    hone_fenced *fenced = &buffers->sets[0].fenced[index];
    hone_status status = hone_buffers_open_input(fenced, err);
    if (status != HONE_OK) return status;
    hone_bulk_copy(buffers->pool, fenced->low, span, fenced->span);
    if (checksum != 0)
        fenced->checksum = checksum;
    else
        hone_buffers_close_input(buffers, fenced);
    return hone_buffers_send(buffers, fenced, err);
}

// The dtype of the real numbers that an element begins with; HONE_DTYPE_COUNT: it has none.
static hone_dtype_id real_id(hone_dtype dtype)
{
    const hone_dtype_info *info = hone_dtype_find(dtype);
    switch (dtype.code) {
    case HONE_CODE_INT:
    case HONE_CODE_UINT:
    case HONE_CODE_BOOL:
        return HONE_DTYPE_COUNT;
    case HONE_CODE_COMPLEX:
        return dtype.bits == 64 ? HONE_F32 : HONE_F64;
    default:
        return info != NULL ? info->id : HONE_DTYPE_COUNT;
    }
}

// Changes an input of real numbers in place.
typedef void change_values(const hone_tensor *tensor, hone_dtype_id id, uint64_t *random);

// Whether an input is changed.
typedef bool is_chosen(const hone_buffers *buffers, size_t index);

static hone_status change_inputs(
    const hone_buffers *buffers, is_chosen *is, change_values *change, uint64_t seed, hone_error *err)
{
    hone_status status = HONE_OK;
    uint64_t random = seed;
    for (size_t i = 0; status == HONE_OK && i < buffers->count; i++) {
        hone_fenced *fenced = &buffers->sets[0].fenced[i];
        const hone_dtype_id id = real_id(fenced->tensor.dtype);
        if (!hone_buffers_is_input(buffers, i) || id == HONE_DTYPE_COUNT || !is(buffers, i)) continue;
        status = hone_buffers_open_input(fenced, err);
        if (status != HONE_OK) return status;
        change(&fenced->tensor, id, &random);
        hone_buffers_close_input(buffers, fenced);
        status = hone_buffers_send(buffers, fenced, err);
    }
    return status;
}

// Values that are given to some elements.
typedef struct scattering {
    char *data;
    hone_dtype_id id;
    const double *values;   // [count]
    uint32_t count, one_in; // one element in so many, on average
    uint64_t *random;
    uint32_t gap; // elements before the next
} scattering;

static void scatter_element(void *ctx, int64_t offset, int64_t index)
{
    scattering *s = ctx;
    (void)index;
    if (s->gap-- > 0) return;
    s->gap = hone_random_below(s->random, 2 * s->one_in - 1); // one draw for each gap, not for each element
    hone_element_store(s->id, s->data + offset, 0, s->values[hone_random_below(s->random, s->count)]);
}

static void season(const hone_tensor *tensor, hone_dtype_id id, uint64_t *random)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 0x1p-1074, -0x1p-149, 0x1p-140, 0x1p-24};
    enum { COUNT = sizeof specials / sizeof specials[0], ONE_IN = 37 };
    scattering s = {tensor->data, id, specials, COUNT, ONE_IN, random, hone_random_below(random, ONE_IN)};
    each_element(tensor, scatter_element, &s);
}

static void put_zeros(const hone_tensor *tensor, hone_dtype_id id, uint64_t *random)
{
    static const double zero[] = {0.0};
    enum { ONE_IN = 7 };
    scattering s = {tensor->data, id, zero, 1, ONE_IN, random, hone_random_below(random, ONE_IN)};
    each_element(tensor, scatter_element, &s);
}

static bool is_any(const hone_buffers *buffers, size_t index)
{
    (void)buffers;
    (void)index;
    return true;
}

static bool is_varied(const hone_buffers *buffers, size_t index)
{
    return (int)index == buffers->varied;
}

static bool is_not_varied(const hone_buffers *buffers, size_t index)
{
    return !is_varied(buffers, index);
}

hone_status hone_buffers_season(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    return change_inputs(buffers, is_any, season, seed, err);
}

hone_status hone_buffers_put_zeros(const hone_buffers *buffers, bool varied, uint64_t seed, hone_error *err)
{
    return change_inputs(buffers, varied ? is_varied : is_not_varied, put_zeros, seed, err);
}

static void change_few(const hone_tensor *tensor, hone_dtype_id id, uint64_t *random)
{
    enum { WIDE_BITS = 32, FEW_WIDE = 1, FEW = 8 }; // a single change of 16 bits is lost in the rounding of a long sum
    const int64_t count = hone_tensor_elements(tensor), size = tensor->dtype.bits / 8;
    const int64_t few = tensor->dtype.bits >= WIDE_BITS ? FEW_WIDE : FEW;
    (void)id;
    if (count < 2) return;
    const int64_t first = (int64_t)(hone_random_next(random) % (uint64_t)count);
    for (int64_t n = 0; n < few && n < count; n++) {
        const int64_t from = (int64_t)(hone_random_next(random) % (uint64_t)count), to = (first + n) % count;
        char *data = tensor->data;
        memmove(data + hone_tensor_offset(tensor, to), data + hone_tensor_offset(tensor, from), (size_t)size);
    }
}

hone_status hone_buffers_change_few(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    return change_inputs(buffers, is_any, change_few, seed, err);
}

// The special elements of a row. A row that is lowest throughout is a row that was masked whole.
typedef struct sprinkling {
    char *data;
    hone_dtype_id id;
    int64_t step; // bytes from element to element of a row
    int64_t count;
    uint64_t random;
    double lowest;
    uint64_t first; // kind of the first row, for rows that are made uneven
} sprinkling;

static void sprinkle_each(sprinkling *s, char *row, const double *values, uint32_t count, uint32_t one_in)
{
    for (int64_t i = 0; i < s->count; i++)
        if (hone_random_below(&s->random, one_in) == 0)
            hone_element_store(s->id, row + i * s->step, 0, values[hone_random_below(&s->random, count)]);
}

// Index of a random element of a row.
static int64_t draw_place(sprinkling *s)
{
    return hone_random_below(&s->random, (uint32_t)(s->count < INT32_MAX ? s->count : INT32_MAX));
}

static void sprinkle_one(sprinkling *s, char *row, double value)
{
    enum { FIRST, LAST, ANY, PLACES };
    const uint32_t place = hone_random_below(&s->random, PLACES);
    const int64_t any = draw_place(s);
    const int64_t at = place == FIRST ? 0 : place == LAST ? s->count - 1 : any;
    hone_element_store(s->id, row + at * s->step, 0, value);
}

// A kind of its own, where zeros have a meaning: a row of zeros only, as padding is, has no largest number and no norm
// to divide by.
enum { KINDS = 5, PADDING = 1 << 6, ONE_ROW_IN = 3 };
static_assert((PADDING & (HONE_SPECIAL_EVERYWHERE | ((1 << KINDS) - 1))) == 0, "the algorithm's kinds are others");

static void sprinkle_row(sprinkling *s, char *row, uint32_t kind)
{
    static const double small[] = {0.0, -0.0, 0x1p-1074, -0x1p-149, 0x1p-140, -0x1p-130, 0x1p-24};
    static const double masked[] = {-INFINITY};
    static const double zero[] = {0.0};
    if (kind == HONE_SPECIAL_SMALL) sprinkle_each(s, row, small, sizeof small / sizeof small[0], 3);
    if (kind == PADDING) sprinkle_each(s, row, zero, 1, 1);
    if (kind == HONE_SPECIAL_MINUS_INFINITY) sprinkle_each(s, row, masked, 1, 4);
    if (kind == HONE_SPECIAL_LOWEST) sprinkle_each(s, row, &s->lowest, 1, 1);
    if (kind == HONE_SPECIAL_INFINITY) sprinkle_one(s, row, INFINITY);
    if (kind == HONE_SPECIAL_NAN) sprinkle_one(s, row, NAN);
}

static double lowest_of(hone_dtype_id id)
{
    return id == HONE_F16 ? -65504 : id == HONE_F64 ? -0x1.fffffffffffffp1023 : -0x1.fep127;
}

typedef struct row_chooser {
    sprinkling *sprinkling;
    uint32_t kinds[KINDS + 1], count; // those that the operation defines
    uint32_t one_in, chosen;          // the row with this number among so many
    uint32_t next;                    // index of the next kind
} row_chooser;

static row_chooser choose_rows(sprinkling *s, uint32_t defined, int64_t rows, uint32_t first)
{
    row_chooser chooser = {.sprinkling = s, .one_in = rows < ONE_ROW_IN ? 1 : ONE_ROW_IN, .next = first};
    for (uint32_t i = 0; i < KINDS; i++)
        if ((defined & 1u << i) != 0) chooser.kinds[chooser.count++] = 1u << i;
    if ((defined & HONE_SPECIAL_SMALL) != 0) chooser.kinds[chooser.count++] = PADDING;
    return chooser;
}

static void choose_row(void *ctx, int64_t offset, int64_t index)
{
    row_chooser *chooser = ctx;
    sprinkling *s = chooser->sprinkling;
    const uint32_t number = (uint32_t)(index % chooser->one_in);
    if (number == 0) chooser->chosen = hone_random_below(&s->random, chooser->one_in);
    if (chooser->count == 0 || number != chooser->chosen) return;
    sprinkle_row(s, s->data + offset, chooser->kinds[chooser->next++ % chooser->count]);
}

uint32_t hone_buffers_special_kinds(uint32_t defined)
{
    const bool has_padding = (defined & HONE_SPECIAL_SMALL) != 0;
    return (uint32_t)__builtin_popcount(defined & ((1u << KINDS) - 1)) + has_padding;
}

// An array without its last axis, along which a row lies. strides: memory for its strides.
static hone_tensor rows_of(const hone_tensor *tensor, int64_t strides[HONE_MAX_RANK], sprinkling *out)
{
    hone_tensor rows = *tensor;
    const int32_t last = rows.ndim - 1;
    hone_tensor_strides(tensor, strides);
    out->data = rows.data;
    out->step = 0;
    out->count = 1;
    if (last < 0) return rows;
    out->count = rows.shape[last];
    out->step = strides[last] * (rows.dtype.bits / 8);
    rows.ndim = last;
    rows.strides = strides;
    return rows;
}

int64_t hone_buffers_special_rows(const hone_buffers *buffers, size_t index)
{
    int64_t strides[HONE_MAX_RANK];
    sprinkling unused;
    const hone_tensor rows = rows_of(&buffers->sets[0].fenced[index].tensor, strides, &unused);
    const int64_t count = hone_tensor_elements(&rows);
    return count < ONE_ROW_IN ? count : count / ONE_ROW_IN;
}

hone_status hone_buffers_sprinkle(
    const hone_buffers *buffers, size_t index, uint32_t defined, uint64_t seed, hone_error *err)
{
    hone_assert(hone_buffers_is_input(buffers, index));
    hone_fenced *fenced = &buffers->sets[0].fenced[index];
    const hone_dtype_id id = hone_dtype_find(fenced->tensor.dtype)->id;
    int64_t strides[HONE_MAX_RANK];
    sprinkling s = {.id = id, .random = seed, .lowest = lowest_of(id)};
    const hone_tensor rows = rows_of(&fenced->tensor, strides, &s);
    row_chooser chooser =
        choose_rows(&s, defined, hone_tensor_elements(&rows), buffers->first_special + (uint32_t)index);
    hone_status status = s.count > 0 ? hone_buffers_open_input(fenced, err) : HONE_OK;
    if (status != HONE_OK || s.count == 0) return status;
    each_element(&rows, choose_row, &chooser);
    hone_buffers_close_input(buffers, fenced);
    return hone_buffers_send(buffers, fenced, err);
}

// Rows unlike each other ----------------------------------------------------------------------------------------------

enum { ROW_WITH_OUTLIER, ROW_BELOW, ROW_LARGE, ROW_KINDS = 4 }; // the last one is left as it is

// Outliers are close enough that what lies behind the end of a narrow range counts. A large one hides the rest of its
// row from a softmax, so a row has one of them. Negative ones hide nothing, and an error in one shows only where its
// factor is not small, so a row has several of each.
static void put_outlier(void *ctx, int64_t offset, int64_t index)
{
    static const double outliers[] = {9, 11, 13, 30};
    const uint32_t sizes = sizeof outliers / sizeof outliers[0];
    const int64_t room_for_one = 16, most = 8; // elements of a row per outlier; most outliers of a size in a row
    sprinkling *s = ctx;
    if (((uint64_t)index + s->first) % 2 != 0 && index > 0) return; // a single row has them, too
    const int64_t room = s->count / (room_for_one * (int64_t)sizes), each = room < most ? room : most;
    for (size_t i = 0; i < sizes; i++)
        for (int64_t repeat = 0; repeat < each; repeat++)
            hone_element_store(s->id, s->data + offset + draw_place(s) * s->step, 0, -outliers[i]);
    const size_t drawn = hone_random_below(&s->random, 2 * sizes);
    sprinkle_one(s, s->data + offset, drawn < sizes ? outliers[drawn] : -outliers[drawn - sizes]);
}

static void make_uneven(void *ctx, int64_t offset, int64_t index)
{
    const double far = 100, large = 0x1p5; // an exponential of 100 overflows
    sprinkling *s = ctx;
    char *row = s->data + offset;
    const int64_t kind = (index + (int64_t)s->first) % ROW_KINDS;
    if (kind == ROW_WITH_OUTLIER) sprinkle_one(s, row, far);
    if (kind != ROW_BELOW && kind != ROW_LARGE) return;
    for (int64_t i = 0; i < s->count; i++) {
        const double value = hone_element_load(s->id, row + i * s->step, 0);
        hone_element_store(s->id, row + i * s->step, 0, kind == ROW_BELOW ? value - far : value * large);
    }
}

// Numbers that differ from their mean only by rounding are divided by an eps. So a sum of such numbers must have no
// error of its own: these are powers of two, whose products with 1/n round as 1/n does.
static void level_row(void *ctx, int64_t offset, int64_t index)
{
    static const double ordinary[] = {0.5, -0.25, 1, -2, 4, -1}, large[] = {16, -32, 32, -16};
    sprinkling *s = ctx;
    const int64_t kind = (index + (int64_t)s->first) % ROW_KINDS;
    const size_t drawn = hone_random_below(&s->random, sizeof ordinary / sizeof ordinary[0]);
    if (kind == ROW_KINDS - 1) return;
    const double number = kind == ROW_LARGE ? large[drawn % (sizeof large / sizeof large[0])] : ordinary[drawn];
    for (int64_t i = 0; i < s->count; i++)
        hone_element_store(s->id, s->data + offset + i * s->step, 0, number);
}

// A first kind such that neither the first nor the last row, which lie at the ends of the array, is left as it is.
static uint64_t first_kind(uint64_t seed, int64_t rows)
{
    uint64_t first = seed % ROW_KINDS;
    while (rows > 0 && (first == ROW_KINDS - 1 || (first + (uint64_t)rows - 1) % ROW_KINDS == ROW_KINDS - 1))
        first = (first + 1) % ROW_KINDS;
    return first;
}

static hone_status change_rows(
    const hone_buffers *buffers,
    void (*change)(void *ctx, int64_t offset, int64_t index),
    uint64_t seed,
    hone_error *err)
{
    hone_assert(buffers->varied >= 0);
    hone_fenced *fenced = &buffers->sets[0].fenced[buffers->varied];
    int64_t strides[HONE_MAX_RANK];
    sprinkling s = {.id = hone_dtype_find(fenced->tensor.dtype)->id, .random = seed};
    const hone_tensor rows = rows_of(&fenced->tensor, strides, &s);
    s.first = first_kind(seed, hone_tensor_elements(&rows));
    const hone_status status = s.count > 0 ? hone_buffers_open_input(fenced, err) : HONE_OK;
    if (status != HONE_OK || s.count == 0) return status;
    each_element(&rows, change, &s);
    hone_buffers_close_input(buffers, fenced);
    return hone_buffers_send(buffers, fenced, err);
}

hone_status hone_buffers_make_uneven(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    return change_rows(buffers, make_uneven, seed, err);
}

hone_status hone_buffers_level_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    return change_rows(buffers, level_row, seed, err);
}

hone_status hone_buffers_put_outliers(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    return change_rows(buffers, put_outlier, seed, err);
}

// Rows that begin and end alike ---------------------------------------------------------------------------------------

typedef struct guise {
    sprinkling rows;
    int64_t elements;  // at a row's beginning, and at its end
    uint64_t previous; // offset in bytes of the row that was visited last
} guise;

// Of four rows one is left as it is, one begins and ends as the row before it, one with zeros, with another zero in its
// middle, and one with ones. A single row, as weights have, has zeros or ones.
static void disguise_row(void *ctx, int64_t offset, int64_t index)
{
    enum { AS_IT_IS, AS_BEFORE, WITH_ZEROS, WITH_ONES, SORTS };
    guise *g = ctx;
    sprinkling *s = &g->rows;
    char *row = s->data + offset;
    const char *before = s->data + g->previous;
    const uint64_t sort = ((uint64_t)index + s->first) % SORTS;
    for (int64_t n = 0; n < 2 * g->elements && sort != AS_IT_IS; n++) {
        const int64_t at = (n < g->elements ? n : s->count - 1 - (n - g->elements)) * s->step;
        const double value = sort == WITH_ONES                  ? 1
                             : sort == WITH_ZEROS || index == 0 ? 0
                                                                : hone_element_load(s->id, before + at, 0);
        hone_element_store(s->id, row + at, 0, value);
    }
    if (sort == WITH_ZEROS) hone_element_store(s->id, row + s->count / 2 * s->step, 0, 0);
    g->previous = (uint64_t)offset;
}

// Whether numbers lie on both sides of 0 and reach 1. Other arrays, in which 0 may not occur, stay as they are.
static bool has_zero_and_one(const hone_tensor *tensor, hone_dtype_id id)
{
    enum { ENOUGH = 256 };
    const double nearly_one = 0.75;
    const int64_t elements = hone_tensor_elements(tensor);
    double least = 0, most = 0;
    for (int64_t i = 0; i < elements && i < ENOUGH; i++) {
        const double value = hone_element_load(id, (const char *)tensor->data + hone_tensor_offset(tensor, i), 0);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    return least < 0 && most > nearly_one;
}

hone_status hone_buffers_disguise_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    enum { MOST = 4, SHARE = 4, SORTS_OF_ONE = 2 }; // elements: at most MOST, and one of SHARE in a row
    hone_status status = HONE_OK;
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++) {
        hone_fenced *fenced = &buffers->sets[0].fenced[i];
        int64_t strides[HONE_MAX_RANK];
        if (buffers->algorithm->make_input != NULL || !is_float_input(buffers, i)) continue;
        guise g = {.rows = {.id = hone_dtype_find(fenced->tensor.dtype)->id}};
        const hone_tensor rows = rows_of(&fenced->tensor, strides, &g.rows);
        g.elements = g.rows.count / SHARE < MOST ? g.rows.count / SHARE : MOST;
        // Two tables that are read together, such as cosines and sines, must not become alike.
        g.rows.first = seed + HONE_MAX_VALUES - i;
        if (hone_tensor_elements(&rows) == 1) g.rows.first = SORTS_OF_ONE + g.rows.first % SORTS_OF_ONE;
        if (g.elements == 0 || !has_zero_and_one(&fenced->tensor, g.rows.id)) continue;
        status = hone_buffers_open_input(fenced, err);
        if (status != HONE_OK) continue;
        each_element(&rows, disguise_row, &g);
        hone_buffers_close_input(buffers, fenced);
        status = hone_buffers_send(buffers, fenced, err);
    }
    return status;
}

// Rows of one value ---------------------------------------------------------------------------------------------------

// Whether each element of an array may become 0, if 0 is among the generated values, or one of the ends of what the
// signature says, although the meaning of the array is unknown.
static bool is_choice(const hone_buffers *buffers, size_t index)
{
    const hone_fenced *fenced = &buffers->sets[0].fenced[index];
    const hone_generator_call *generator = buffers->signature->parameters[index].generator;
    const hone_dtype dtype = fenced->tensor.dtype;
    const bool is_whole = dtype.code == HONE_CODE_INT || dtype.code == HONE_CODE_UINT || dtype.code == HONE_CODE_BOOL;
    if (!hone_buffers_is_input(buffers, index) || !is_whole || dtype.bits < 8) return false;
    return generator == NULL || is_called(generator, "uniform");
}

// Whether an array has numbers that are added to others: the lowest of the dtype marks those that must not count.
static bool is_bias(const hone_buffers *buffers, size_t index)
{
    return is_float_input(buffers, index) && is_called(buffers->signature->parameters[index].generator, "bias");
}

bool hone_buffers_has_choices(const hone_buffers *buffers)
{
    for (size_t i = 0; i < buffers->count && buffers->algorithm->make_input == NULL; i++)
        if (is_choice(buffers, i) || is_bias(buffers, i)) return true;
    return false;
}

typedef struct evening {
    sprinkling rows;
    size_t size; // bytes of an element
    bool has_zero;
    bool has_wide; // wide numbers may be put in: signed arrays, which have numbers below 0, are no indices
} evening;

// Puts zeros before a place, or from there on: an outer block of a mask leaves out everything that it covers.
static void pad_row(evening *e, char *row, bool is_behind)
{
    const int64_t count = e->rows.count,
                  at = hone_random_below(&e->rows.random, (uint32_t)(count < INT32_MAX ? count : INT32_MAX));
    for (int64_t i = is_behind ? at : 0; i < (is_behind ? count : at); i++)
        memset(row + i * e->rows.step, 0, e->size);
}

// Turns numbers other than 0 into 256: in integers wider than a byte the lowest byte is then 0, and a mask keeps its
// meaning.
static void widen_row(evening *e, char *row)
{
    static const uint16_t wide = 256;
    const char zero[sizeof(int64_t)] = {0};
    for (int64_t i = 0; i < e->rows.count; i++) {
        char *element = row + i * e->rows.step;
        if (memcmp(element, zero, e->size) == 0) continue;
        memset(element, 0, e->size);
        memcpy(element, &wide, sizeof wide);
    }
}

// Of six rows, on average, two become their first element throughout, or one of them zero if zeros are generated; two
// are padded; and one gets wide numbers.
static void even_row(void *ctx, int64_t offset, int64_t index)
{
    enum { ZERO, FIRST, PADDED, PADDED_BEHIND, WIDE, KINDS_OF_ROWS = 6 };
    evening *e = ctx;
    char *row = e->rows.data + offset;
    const uint32_t drawn = hone_random_below(&e->rows.random, KINDS_OF_ROWS);
    (void)index;
    if ((drawn == PADDED || drawn == PADDED_BEHIND) && e->has_zero) pad_row(e, row, drawn == PADDED_BEHIND);
    if (drawn == WIDE && e->has_wide) widen_row(e, row);
    if (drawn != ZERO && drawn != FIRST) return;
    if (drawn == ZERO && e->has_zero) memset(row, 0, e->size);
    for (int64_t i = 1; i < e->rows.count; i++)
        memcpy(row + i * e->rows.step, row, e->size);
}

// Of six rows, on average, one is masked whole, one before a place, one from a place on, and one here and there. In f16
// none is masked whole: the numbers that -65504 is added to still count there, and a kernel that adds in floats keeps
// few of their bits.
static void mask_row(void *ctx, int64_t offset, int64_t index)
{
    enum { WHOLE, BEFORE, BEHIND, SOME, KINDS_OF_ROWS = 6, ONE_IN = 4 };
    sprinkling *s = ctx;
    char *row = s->data + offset;
    const uint32_t drawn = hone_random_below(&s->random, KINDS_OF_ROWS);
    (void)index;
    if (drawn == SOME) sprinkle_each(s, row, &s->lowest, 1, ONE_IN);
    if (drawn != WHOLE && drawn != BEFORE && drawn != BEHIND) return;
    const int64_t at = drawn == WHOLE && s->id != HONE_F16 ? s->count : draw_place(s);
    for (int64_t i = drawn == BEHIND ? at : 0; i < (drawn == BEHIND ? s->count : at); i++)
        hone_element_store(s->id, row + i * s->step, 0, s->lowest);
}

hone_status hone_buffers_even_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++) {
        hone_fenced *fenced = &buffers->sets[0].fenced[i];
        int64_t strides[HONE_MAX_RANK];
        const bool is_added = is_bias(buffers, i);
        if (!is_added && !is_choice(buffers, i)) continue;
        const hone_dtype_id id = hone_dtype_find(fenced->tensor.dtype)->id;
        evening e = {
            .rows = {.random = seed + i, .id = id, .lowest = lowest_of(id)},
            .size = fenced->tensor.dtype.bits / 8,
            .has_zero = buffers->signature->parameters[i].generator == NULL};
        e.has_wide = e.has_zero && fenced->tensor.dtype.code == HONE_CODE_INT && e.size > 1;
        const hone_tensor rows = rows_of(&fenced->tensor, strides, &e.rows);
        status = hone_buffers_open_input(fenced, err);
        if (status != HONE_OK || e.rows.count == 0) continue;
        if (is_added)
            each_element(&rows, mask_row, &e.rows);
        else
            each_element(&rows, even_row, &e);
        hone_buffers_close_input(buffers, fenced);
        status = hone_buffers_send(buffers, fenced, err);
    }
    return status;
}

// Copies spans and not blocks: alignment may place a copy elsewhere in its block.
static hone_status copy_inputs(hone_buffers *buffers, size_t set, hone_error *err)
{
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *from = &buffers->sets[0].fenced[i];
        hone_fenced *to = &buffers->sets[set].fenced[i];
        if (from->block == NULL || is_result(buffers, i)) continue;
        hone_status status = hone_buffers_open_input(to, err);
        if (status != HONE_OK) return status;
        memset(to->block, HONE_GUARD_BYTE, to->size);
        memcpy(to->low, from->low, from->span);
        hone_buffers_close_input(buffers, to);
        status = hone_buffers_send(buffers, to, err);
        if (status != HONE_OK) return status;
    }
    return hone_buffers_poison(buffers, set, err);
}

size_t hone_buffers_bytes(const hone_buffers *buffers)
{
    size_t bytes = 0;
    for (size_t i = 0; i < buffers->count; i++)
        bytes += buffers->sets[0].fenced[i].span;
    return bytes;
}

hone_status hone_buffers_rotate(hone_buffers *buffers, const hone_wire_value *values, size_t bytes, hone_error *err)
{
    size_t one = hone_buffers_bytes(buffers), wanted = one > 0 ? bytes / one + 1 : 1;
    if (wanted < 2) wanted = 2;
    if (wanted > HONE_MAX_SETS) wanted = HONE_MAX_SETS;
    while (buffers->set_count < wanted) {
        hone_status status = add_set(buffers, values, err);
        if (status == HONE_OK) status = copy_inputs(buffers, buffers->set_count - 1, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

hone_status hone_buffers_restore(hone_buffers *buffers, const hone_call *call, hone_error *err)
{
    hone_status status = hone_buffers_fill(buffers, call, buffers->seed, err);
    for (size_t set = 1; status == HONE_OK && set < buffers->set_count; set++)
        status = copy_inputs(buffers, set, err);
    return status;
}

// If there are bytes between elements, results keep the pattern, which shows writes there.
static unsigned char byte_of_results(const hone_buffers *buffers, const hone_fenced *fenced)
{
    return buffers->clears && fenced->holes == NULL ? 0 : HONE_POISON_BYTE;
}

static hone_status poison_device(const hone_buffers *buffers, const hone_fenced *fenced, hone_error *err)
{
    if (fenced->device_block == NULL) return HONE_OK;
    hone_status status =
        hone_site_fill(buffers->site, on_device(fenced, fenced->block), HONE_GUARD_BYTE, fenced->size, err);
    if (status != HONE_OK) return status;
    const unsigned char byte = byte_of_results(buffers, fenced);
    return hone_site_fill(buffers->site, on_device(fenced, fenced->low), byte, fenced->span, err);
}

hone_status hone_buffers_poison(hone_buffers *buffers, size_t set, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < buffers->count; i++) {
        hone_fenced *fenced = &buffers->sets[set].fenced[i];
        if (fenced->block == NULL || !is_result(buffers, i)) continue;
        const char *end = fenced->low + fenced->span;
        memset(fenced->block, HONE_GUARD_BYTE, (size_t)(fenced->low - fenced->block));
        const unsigned char byte = byte_of_results(buffers, fenced);
        hone_bulk_fill(buffers->pool, fenced->low, byte, fenced->span);
        memset(fenced->low + fenced->span, HONE_GUARD_BYTE, (size_t)(fenced->block + fenced->size - end));
        status = poison_device(buffers, fenced, err);
    }
    return status;
}

// Checks --------------------------------------------------------------------------------------------------------------

// The first byte in [from, to) that is not `byte`; NULL: none. If all bytes are, they equal themselves, moved by one.
static const char *first_other(const char *from, const char *to, unsigned char byte)
{
    if (from < to && (unsigned char)*from == byte && memcmp(from, from + 1, (size_t)(to - from) - 1) == 0) return NULL;
    for (; from < to; from++)
        if ((unsigned char)*from != byte) return from;
    return NULL;
}

static hone_status fail_guard(
    const hone_parameter *parameter, const hone_fenced *fenced, const char *touched, hone_error *err)
{
    bool before = touched < fenced->low;
    int64_t distance = before ? fenced->low - touched : touched - (fenced->low + fenced->span) + 1;
    return hone_fail(
        err, HONE_KERNEL_FAILED, where, "wrote %lld byte%s %s %s", (long long)distance, distance == 1 ? "" : "s",
        before ? "before the start of" : "past the end of", parameter->name);
}

// The first byte around a span that has changed; NULL: none.
static const char *touched_fence(const hone_fenced *fenced)
{
    const char *touched = first_other(fenced->block, fenced->low, HONE_GUARD_BYTE);
    if (touched != NULL) return touched;
    return first_other(fenced->low + fenced->span, fenced->block + fenced->size, HONE_GUARD_BYTE);
}

static hone_status check_result(const hone_parameter *parameter, const hone_fenced *fenced, hone_error *err)
{
    const char *touched = touched_fence(fenced);
    if (touched != NULL) return fail_guard(parameter, fenced, touched, err);
    for (size_t i = 0; fenced->holes != NULL && i < fenced->span; i++)
        if (fenced->holes[i] && (unsigned char)fenced->low[i] != HONE_POISON_BYTE)
            return hone_fail(
                err, HONE_KERNEL_FAILED, where, "wrote between the elements of %s, at byte %zu", parameter->name, i);
    return HONE_OK;
}

// A guard also detects what was written and put back, but not all writes to the fence, since it is open while hone
// itself writes.
static bool is_intact(const hone_buffers *buffers, const hone_fenced *fenced)
{
    if (fenced->guard.size > 0) return !hone_os_guard_was_written(&fenced->guard) && touched_fence(fenced) == NULL;
    return hone_bulk_hash(buffers->pool, fenced->block, fenced->size) == fenced->checksum;
}

static hone_status check_input(
    const hone_buffers *buffers, const hone_parameter *parameter, const hone_fenced *fenced, hone_error *err)
{
    if (is_intact(buffers, fenced)) return HONE_OK;
    const char *touched = touched_fence(fenced);
    if (touched != NULL) return fail_guard(parameter, fenced, touched, err);
    return hone_fail(err, HONE_KERNEL_FAILED, where, "wrote into %s, an input", parameter->name);
}

hone_status hone_buffers_check(const hone_buffers *buffers, size_t set, hone_error *err)
{
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_parameter *parameter = hone_signature_parameter(buffers->signature, i);
        const hone_fenced *fenced = &buffers->sets[set].fenced[i];
        if (fenced->block == NULL) continue;
        hone_status status =
            is_result(buffers, i) ? check_result(parameter, fenced, err) : check_input(buffers, parameter, fenced, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

bool hone_low_bits(hone_dtype dtype, uint64_t *out_low, uint64_t *out_exponent)
{
    const bool is_brain = dtype.code == HONE_CODE_BFLOAT && dtype.bits == 16;
    if (dtype.code != HONE_CODE_FLOAT && !is_brain) return false;
    *out_low = dtype.bits == 16 ? 0x3 : dtype.bits == 32 ? 0xff : 0xffff;
    *out_exponent = is_brain           ? 0x7f80
                    : dtype.bits == 16 ? 0x7c00
                    : dtype.bits == 32 ? 0x7f800000
                                       : UINT64_C(0x7ff0000000000000);
    return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
}
