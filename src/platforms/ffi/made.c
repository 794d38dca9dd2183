#include "platforms/ffi/made.h"

#include "base/memory.h"
#include "call/call.h"

#include <stdio.h>
#include <string.h>

// DLManagedTensorVersioned of DLPack 1.
typedef struct managed {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct managed *self);
    uint64_t flags;
    hone_tensor tensor;
} managed;

// In one block: the head, shape and strides, then the elements, if they are in the host's memory.
typedef struct own_tensor {
    managed head; // first
    hone_ffi_frame *frame;
    bool on_gpu;
    hone_ffi_gpu_memory memory;
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
    char padding[64]; // the elements begin at the next multiple of 64
} own_tensor;

typedef void complain(void *ctx, const char *kind, const char *message);

static _Thread_local const hone_ffi_maker *current;

const hone_ffi_maker *hone_ffi_make_for(const hone_ffi_maker *maker)
{
    const hone_ffi_maker *before = current;
    current = maker;
    return before;
}

int64_t hone_ffi_bytes(const hone_tensor *tensor)
{
    const int64_t elements = hone_tensor_elements(tensor);
    const int64_t bits = (int64_t)tensor->dtype.bits * tensor->dtype.lanes;
    return elements < 0 || (bits != 0 && elements > (INT64_MAX / 2) / bits) ? -1 : (elements * bits + 7) / 8;
}

// GPU memory is freed in stream order while the call runs. After the call there is no stream: the tensor was kept, so
// the call has failed, and its memory is not freed.
static void free_tensor(managed *self)
{
    const hone_allocator system = hone_allocator_system();
    own_tensor *own = (own_tensor *)(void *)self;
    if (own->on_gpu && current != NULL && current->frame == own->frame)
        hone_ffi_gpu_give_back(current->driver, current->execution, &own->memory);
    atomic_fetch_sub_explicit(&own->frame->made, 1, memory_order_release);
    hone_free(&system, own);
}

static void fill_head(own_tensor *made, const hone_tensor *like, void *data)
{
    int64_t stride = 1;
    made->frame = current->frame;
    made->head = (managed){.version = {1, 1}, .deleter = free_tensor, .tensor = *like};
    made->head.tensor.data = data;
    made->head.tensor.byte_offset = 0;
    made->head.tensor.shape = made->shape;
    made->head.tensor.strides = made->strides;
    for (int32_t i = like->ndim - 1; i >= 0; i--) {
        made->shape[i] = like->shape[i];
        made->strides[i] = stride;
        stride *= like->shape[i];
    }
}

static own_tensor *make_on_host(int64_t bytes, void **out_data)
{
    const hone_allocator system = hone_allocator_system();
    own_tensor *made = hone_alloc(&system, sizeof *made + (size_t)bytes);
    if (made == NULL) return NULL;
    made->on_gpu = false;
    *out_data = (void *)(((uintptr_t)made->padding + 63) / 64 * 64);
    return made;
}

static own_tensor *make_on_gpu(int64_t bytes, void **out_data)
{
    const hone_allocator system = hone_allocator_system();
    own_tensor *made = hone_alloc(&system, sizeof *made);
    if (made == NULL) return NULL;
    made->on_gpu = true;
    const size_t size = bytes > 0 ? (size_t)bytes : 1;
    *out_data = hone_ffi_gpu_take(current->driver, current->execution, size, &made->memory);
    if (*out_data == NULL) hone_free(&system, made);
    return *out_data != NULL ? made : NULL;
}

// The tensor; NULL after reporting an error.
static own_tensor *make(const hone_tensor *like, void *ctx, complain *fail)
{
    void *data = NULL;
    const bool on_host = like->device.type == HONE_DEVICE_CPU;
    const bool is_known = current != NULL && like->ndim >= 0 && like->ndim <= HONE_MAX_RANK &&
                          (on_host || (current->driver != NULL && like->device.type == current->device.type &&
                                       like->device.id == current->device.id));
    if (!is_known) {
        char message[160];
        snprintf(
            message, sizeof message,
            "hone makes tensors on the host and on the call's device, of %d dimensions at most: asked for %d on device "
            "%d:%d",
            HONE_MAX_RANK, (int)like->ndim, (int)like->device.type, (int)like->device.id);
        fail(ctx, "ValueError", message);
        return NULL;
    }
    const int64_t bytes = hone_ffi_bytes(like);
    own_tensor *made = bytes < 0 ? NULL : on_host ? make_on_host(bytes, &data) : make_on_gpu(bytes, &data);
    if (made == NULL) {
        fail(ctx, "MemoryError", "hone has no memory for a tensor");
        return NULL;
    }
    fill_head(made, like, data);
    atomic_fetch_add_explicit(&made->frame->made, 1, memory_order_relaxed);
    return made;
}

static int allocate(const hone_tensor *like, managed **out, void *ctx, complain *fail)
{
    own_tensor *made = make(like, ctx, fail);
    if (made != NULL) *out = &made->head;
    return made != NULL ? 0 : -1;
}

void *hone_ffi_allocator(void)
{
    int (*const function)(const hone_tensor *, managed **, void *, complain *) = allocate;
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}
