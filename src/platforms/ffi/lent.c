#include "platforms/ffi/lent.h"

#include "base/memory.h"
#include "call/call.h"
#include "platforms/ffi/runtime.h"

#include <string.h>

_Static_assert(sizeof(hone_ffi_object) == 24, "a header of tvm-ffi");
_Static_assert(offsetof(hone_ffi_lent, as) == 24, "what an object holds stands behind its header");

static const uint64_t one = (uint64_t)1 << 32 | 1; // one reference of each kind: hone's own

// Frames that a function may still access.
static _Atomic(hone_ffi_frame *) given_up;

// The deleter of a lent object. hone holds the last reference, so this runs only if a function releases a reference
// that it does not own; the count shows it.
static void keep(void *self, int flags)
{
    (void)self;
    (void)flags;
}

static hone_value lend(hone_ffi_lent *lent, int32_t type)
{
    atomic_init(&lent->object.references, one);
    lent->object.type = type;
    lent->object.deleter = keep;
    hone_value value = hone_of_pointer(lent);
    value.tag = type;
    return value;
}

// Making --------------------------------------------------------------------------------------------------------------

static hone_value make_tensor(const hone_ffi_list *list, const hone_tensor *like, hone_ffi_lent *lent)
{
    int64_t stride = 1;
    lent->as.tensor = (hone_tensor){
        .device = list->device,
        .ndim = like->ndim,
        .dtype = like->dtype,
        .shape = lent->shape,
        .strides = lent->strides};
    for (int32_t i = like->ndim - 1; i >= 0; i--) {
        lent->shape[i] = like->shape[i];
        lent->strides[i] = stride;
        stride *= like->shape[i];
    }
    return lend(lent, HONE_FFI_TENSOR);
}

// Makes the tensor in the call's shape, or in the shape that the pack gives.
static hone_value make_given(const hone_ffi_list *list, const hone_argument *argument, hone_ffi_lent *lent)
{
    hone_tensor like = *hone_call_tensor(list->call, argument->value);
    if (argument->type == HONE_ARGUMENT_INTEGERS) {
        like.ndim = (int32_t)(argument->size / sizeof(int64_t));
        like.shape = (int64_t *)(void *)((char *)list->objects.data + argument->as.bits);
    }
    return make_tensor(list, &like, lent);
}

static hone_value make_scratch(const hone_ffi_list *list, hone_ffi_lent *lent)
{
    int64_t bytes = (int64_t)list->scratch_bytes;
    const hone_tensor like = hone_tensor_of(NULL, HONE_U8, 1, &bytes);
    return make_tensor(list, &like, lent);
}

static bool make_integers(const hone_ffi_list *list, const hone_argument *argument, hone_ffi_frame *frame, uint32_t at)
{
    const hone_allocator system = hone_allocator_system();
    hone_ffi_lent *lent = &frame->lent[at];
    const uint32_t count = argument->size / (uint32_t)sizeof(int64_t);
    lent->items = hone_alloc(&system, (count + 1) * sizeof *lent->items);
    if (lent->items == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t number;
        memcpy(&number, (const char *)list->objects.data + argument->as.bits + i * sizeof number, sizeof number);
        lent->items[i] = hone_of_int(number);
    }
    lent->as.sequence = (hone_ffi_sequence){.data = lent->items, .size = count, .capacity = count};
    frame->values[at] = lend(lent, HONE_FFI_ARRAY);
    return true;
}

static bool make_argument(const hone_ffi_list *list, hone_ffi_frame *frame, uint32_t i)
{
    const hone_argument *argument = &list->arguments[i];
    hone_value *value = &frame->values[i];
    if (argument->kind == HONE_ARGUMENT_TENSOR)
        *value = make_given(list, argument, &frame->lent[i]);
    else if (argument->kind == HONE_ARGUMENT_SCRATCH)
        *value = make_scratch(list, &frame->lent[i]);
    else if (argument->type == HONE_ARGUMENT_TEXT)
        *value = hone_of_string((const char *)list->objects.data + argument->as.bits);
    else if (argument->type == HONE_ARGUMENT_INTEGERS)
        return make_integers(list, argument, frame, i);
    else if (argument->kind == HONE_ARGUMENT_BITS)
        *value = hone_ffi_number(argument->type, argument->as.bits);
    return true;
}

static void destroy(const hone_ffi_list *list, hone_ffi_frame *frame)
{
    const hone_allocator system = hone_allocator_system();
    for (uint32_t i = 0; i < list->passed; i++)
        hone_free(&system, frame->lent[i].items);
    hone_free(&system, frame);
}

static void push(_Atomic(hone_ffi_frame *) *head, hone_ffi_frame *frame)
{
    frame->next = atomic_load(head);
    while (!atomic_compare_exchange_weak(head, &frame->next, frame))
        ;
}

static hone_ffi_frame *make_frame(hone_ffi_list *list)
{
    const hone_allocator system = hone_allocator_system();
    const size_t size = sizeof(hone_ffi_frame) + list->passed * sizeof(hone_ffi_lent);
    hone_ffi_frame *frame = hone_alloc(&system, size);
    if (frame == NULL) return NULL;
    memset(frame, 0, size);
    atomic_init(&frame->busy, true);
    for (uint32_t i = 0; i < list->passed; i++) {
        if (make_argument(list, frame, i)) continue;
        destroy(list, frame);
        return NULL;
    }
    push(&list->frames, frame);
    return frame;
}

// A call --------------------------------------------------------------------------------------------------------------

hone_ffi_frame *hone_ffi_frame_take(hone_ffi_list *list)
{
    hone_ffi_frame *frame = atomic_load_explicit(&list->frames, memory_order_acquire);
    while (frame != NULL && atomic_exchange_explicit(&frame->busy, true, memory_order_acquire))
        frame = frame->next;
    return frame != NULL ? frame : make_frame(list);
}

void hone_ffi_frame_fill(const hone_ffi_list *list, hone_ffi_frame *frame, const hone_value *args, void *scratch)
{
    for (uint32_t i = 0; i < list->passed; i++) {
        const hone_argument *argument = &list->arguments[i];
        if (argument->kind == HONE_ARGUMENT_TENSOR)
            frame->lent[i].as.tensor.data = hone_tensor_data(args[argument->value].as.tensor);
        else if (argument->kind == HONE_ARGUMENT_SCRATCH)
            frame->lent[i].as.tensor.data = scratch;
        else if (argument->kind == HONE_ARGUMENT_SCALAR)
            frame->values[i] =
                hone_ffi_number(argument->type, hone_argument_bits(argument->type, &args[argument->value]));
    }
}

// The first object whose reference count a function has changed; list->passed if there is none.
static uint32_t find_changed(const hone_ffi_list *list, const hone_ffi_frame *frame)
{
    uint32_t i = 0;
    while (i < list->passed && (frame->lent[i].object.type == 0 ||
                                atomic_load_explicit(&frame->lent[i].object.references, memory_order_acquire) == one))
        i++;
    return i;
}

bool hone_ffi_frame_give_back(const hone_ffi_list *list, hone_ffi_frame *frame, uint32_t *out_argument)
{
    *out_argument = find_changed(list, frame);
    const bool has_made = atomic_load_explicit(&frame->made, memory_order_acquire) != 0;
    if (*out_argument < list->passed || has_made) return false; // it stays marked as busy
    atomic_store_explicit(&frame->busy, false, memory_order_release);
    return true;
}

bool hone_ffi_frame_has(const hone_ffi_list *list, const hone_ffi_frame *frame, const void *object)
{
    for (uint32_t i = 0; i < list->passed; i++)
        if (frame->lent[i].object.type != 0 && object == &frame->lent[i]) return true;
    return false;
}

void hone_ffi_list_deinit(hone_ffi_list *list)
{
    hone_ffi_frame *frame = atomic_load(&list->frames), *next;
    for (; frame != NULL; frame = next) {
        next = frame->next;
        if (atomic_load(&frame->busy))
            push(&given_up, frame);
        else
            destroy(list, frame);
    }
    hone_buffer_deinit(&list->objects);
}
