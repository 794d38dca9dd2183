#include "calls.h"

#include "call/made_up.h"
#include "platforms/platform.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 16 };
static const double most_operations = 2e7;
// One whole vector of 16 lanes or more and every remainder of it, behind a block of several vectors too; and odd sizes
// that leave the blocks of a kernel's inner loops unfilled.
static const int64_t tails[] = {17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 77, 1001, 4099};
enum { TAIL_COUNT = sizeof tails / sizeof *tails };

// Around the widths of vectors and of blocks: one less, the width, one more.
static const int64_t small_sizes[] = {1, 2, 3, 4, 5, 6, 7, 8};
static const int64_t sizes[] = {1,  2,  3,   7,   15,  16,  17,  31,   32,  33, 63,
                                64, 65, 100, 127, 129, 255, 515, 1000, 128, 256};
// On GPUs alone, where kernels are for rows of these lengths.
enum { GPU_SIZES = 2 };

typedef enum layout {
    DENSE,
    GAP,      // behind each row
    PERMUTED, // its axes in another order
    STEP,     // every other element
    LAYOUT_COUNT
} layout;

typedef struct maker {
    hone_made_up m;
    bool odd_addresses; // aligned to an element and no more
    bool mixed;         // each tensor has a layout of its own
    layout layout;
} maker;

static uint64_t draw(maker *m, uint64_t count)
{
    return hone_made_up_draw(&m->m, count);
}

// Half of them small, so that signatures of many dims stay below MOST_ELEMENTS with one dim that is large; now and then
// none.
static int64_t draw_size(maker *m)
{
    if (draw(m, 40) == 0) return 0;
    if (draw(m, 2) == 0) return small_sizes[draw(m, sizeof small_sizes / sizeof *small_sizes)];
    const size_t count = sizeof sizes / sizeof *sizes - (m->m.device.type == HONE_DEVICE_CUDA ? 0 : GPU_SIZES);
    return sizes[draw(m, count)];
}

static void lay_out(void *ctx, hone_tensor *tensor, size_t index, int64_t *strides);

static maker *maker_create(const hone_algorithm_entry *algorithm, const hone_device_info *device, uint64_t seed)
{
    maker *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->m = (hone_made_up){
        .signature = algorithm->signature,
        .device = device->device,
        .state = seed << 32,
        .most_elements = MOST_ELEMENTS,
        .lay_out = lay_out,
        .ctx = m,
    };
    m->odd_addresses = hone_platform_ops_of(device->platform)->view_align == 0; // else its tensors begin at multiples
    return m;
}

// Tensors -------------------------------------------------------------------------------------------------------------

static void stride(maker *m, hone_tensor *tensor, int64_t *strides)
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

// What is read may be the same for all of an axis of "...": its first one has stride 0 now and then.
static void share(maker *m, hone_tensor *tensor, size_t index, int64_t *strides)
{
    const hone_call_parameter *p = &m->m.signature->parameters[index];
    if (!m->mixed || p->shown.is_result || !p->shape->ellipsis || m->m.leading_count == 0 || draw(m, 3) > 0) return;
    if (tensor->strides == NULL) hone_tensor_strides(tensor, strides);
    strides[0] = 0;
    tensor->strides = strides;
}

static void lay_out(void *ctx, hone_tensor *tensor, size_t index, int64_t *strides)
{
    maker *m = ctx;
    stride(m, tensor, strides);
    share(m, tensor, index, strides);
    tensor->data = address_of(m, index, tensor->dtype.bits);
}

// Texts ---------------------------------------------------------------------------------------------------------------

// What the texts of signatures may be, which only kernels know.
static const struct {
    const char *algorithm, *parameter, *texts[6];
} known_texts[] = {
    {"matmul", "activation", {"relu", "gelu_tanh", "gelu_erf", "silu"}},
    {"gated_linear_unit", "activation", {"none", "silu", "sigmoid", "relu", "gelu", "tanh"}},
};

static void draw_text(maker *m, const char *const texts[6], hone_value *out)
{
    uint64_t count = 0;
    while (count < 6 && texts[count] != NULL)
        count++;
    if (draw(m, 2) == 1) *out = hone_of_string(texts[draw(m, count)]);
}

// Each is left out in half of the calls.
static void draw_texts(maker *m)
{
    const hone_signature *signature = m->m.signature;
    for (size_t i = 0; i < sizeof known_texts / sizeof *known_texts; i++) {
        int index = hone_signature_find(signature, known_texts[i].parameter);
        if (strcmp(hone_signature_name(signature), known_texts[i].algorithm) == 0 && index >= 0)
            draw_text(m, known_texts[i].texts, &m->m.values[index]);
    }
}

// A call --------------------------------------------------------------------------------------------------------------

static bool draw_all(maker *m)
{
    hone_made_up *made_up = &m->m;
    m->odd_addresses = m->odd_addresses && draw(m, 3) == 0;
    m->mixed = draw(m, 4) == 0;
    m->layout = draw(m, 2) == 0 ? DENSE : GAP;
    hone_made_up_draw_dtypes(made_up);
    made_up->leading_count = (int32_t)draw(m, HONE_MADE_UP_LEADING + 1);
    for (int32_t i = 0; i < made_up->leading_count; i++)
        made_up->leading[i] = draw_size(m);
    hone_made_up_draw_scalars(made_up);
    draw_texts(m);
    for (size_t i = 0; i < made_up->signature->slot_count; i++)
        if (made_up->signature->slots[i].kind == SLOT_DIM) made_up->slots[i] = hone_scalar_int(draw_size(m));
    return hone_made_up_make_tensors(made_up);
}

static bool is_worth_it(const hone_algorithm_entry *algorithm, const hone_call *call)
{
    hone_cost cost = {0};
    if (algorithm->algorithm.model != NULL) algorithm->algorithm.model(call, &cost);
    return cost.operations <= most_operations;
}

// NULL: the signature's conditions refuse it, or it is more work than a test is worth.
static hone_call *bind(const hone_algorithm_entry *algorithm, const maker *m)
{
    hone_call *call = NULL;
    hone_status status = hone_call_bind(
        hone_allocator_system(), algorithm->signature, m->m.values, m->m.signature->count, true, &call, NULL);
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
static bool draw_tail(maker *m, size_t dim, int64_t size, size_t dtype, int32_t leading)
{
    hone_made_up *made_up = &m->m;
    const hone_signature *signature = made_up->signature;
    m->layout = DENSE;
    for (size_t i = 0; i < signature->variable_count; i++)
        made_up->dtypes[i] = nth_dtype(&signature->variables[i], dtype);
    made_up->leading_count = leading;
    made_up->leading[0] = 1 + (int64_t)draw(m, 3);
    hone_made_up_draw_scalars(made_up);
    draw_texts(m);
    for (size_t i = 0, at = 0; i < signature->slot_count; i++)
        if (signature->slots[i].kind == SLOT_DIM)
            made_up->slots[i] = hone_scalar_int(at++ == dim ? size : small_sizes[draw(m, 4)]);
    return hone_made_up_make_tensors(made_up);
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
    // Every other two seeds have no leading dim, for kernels that take none.
    hone_call *call =
        m != NULL && draw_tail(m, dim, tails[index % TAIL_COUNT], dtype, seed % 4 < 2) ? bind(algorithm, m) : NULL;
    free(m);
    return call;
}
