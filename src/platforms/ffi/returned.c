#include "platforms/ffi/returned.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

// Tensors of the environment -----------------------------------------------------------------------------------------

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

// In one block: the head, shape and strides, the elements.
typedef struct own_tensor {
    managed head; // first
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
    char padding[64]; // the elements begin at the next multiple of 64
} own_tensor;

static void free_tensor(managed *self)
{
    const hone_allocator system = hone_allocator_system();
    hone_free(&system, self);
}

static int64_t bytes_of(const hone_tensor *tensor)
{
    const int64_t elements = hone_tensor_elements(tensor);
    const int64_t bits = (int64_t)tensor->dtype.bits * tensor->dtype.lanes;
    return elements < 0 || (bits != 0 && elements > (INT64_MAX / 2) / bits) ? -1 : (elements * bits + 7) / 8;
}

static void fill_head(own_tensor *made, const hone_tensor *like)
{
    int64_t stride = 1;
    made->head = (managed){.version = {1, 1}, .deleter = free_tensor, .tensor = *like};
    made->head.tensor.data = (void *)(((uintptr_t)made->padding + 63) / 64 * 64);
    made->head.tensor.byte_offset = 0;
    made->head.tensor.shape = made->shape;
    made->head.tensor.strides = made->strides;
    for (int32_t i = like->ndim - 1; i >= 0; i--) {
        made->shape[i] = like->shape[i];
        made->strides[i] = stride;
        stride *= like->shape[i];
    }
}

static int allocate(
    const hone_tensor *like, managed **out, void *ctx, void (*fail)(void *ctx, const char *kind, const char *message))
{
    const hone_allocator system = hone_allocator_system();
    if (like->device.type != HONE_DEVICE_CPU || like->ndim > HONE_MAX_RANK) {
        fail(ctx, "ValueError", "hone makes tensors on the CPU, of 8 dimensions at most");
        return -1;
    }
    const int64_t bytes = bytes_of(like);
    own_tensor *made = bytes >= 0 ? hone_alloc(&system, sizeof *made + (size_t)bytes) : NULL;
    if (made == NULL) {
        fail(ctx, "MemoryError", "hone has no memory for a tensor");
        return -1;
    }
    fill_head(made, like);
    *out = &made->head;
    return 0;
}

void *hone_ffi_allocator(void)
{
    int (*const function)(const hone_tensor *, managed **, void *, void (*)(void *, const char *, const char *)) =
        allocate;
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

// Results -------------------------------------------------------------------------------------------------------------

static const char *name_of(int32_t type, char *room, size_t size)
{
    static const char *const names[] = {"nothing",  "an integer",        "a bool", "a float", "a pointer", "a dtype",
                                        "a device", "a borrowed tensor", "a text"};
    if (type >= 0 && (size_t)type < sizeof names / sizeof *names) return names[type];
    if (type == HONE_FFI_TENSOR) return "a tensor";
    if (type == HONE_FFI_ARRAY || type == HONE_FFI_LIST) return "a list";
    snprintf(room, size, "an object of type %d", (int)type);
    return room;
}

static hone_status refuse_type(int32_t type, const char *expected, char words[HONE_FFI_WORDS_SIZE])
{
    char room[40];
    snprintf(words, HONE_FFI_WORDS_SIZE, "returns %s, expected %s", name_of(type, room, sizeof room), expected);
    return HONE_KERNEL_FAILED;
}

static bool is_like(const hone_tensor *tensor, const hone_tensor *wanted)
{
    if (tensor->ndim != wanted->ndim || memcmp(&tensor->dtype, &wanted->dtype, sizeof tensor->dtype) != 0) return false;
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] != wanted->shape[i]) return false;
    return true;
}

static void print_tensor(const hone_tensor *tensor, char *out, size_t size)
{
    const hone_dtype_info *info = hone_dtype_find(tensor->dtype);
    size_t used = (size_t)snprintf(out, size, "%s[", info != NULL ? info->name : "?");
    for (int32_t i = 0; i < tensor->ndim && used + 24 < size; i++)
        used += (size_t)snprintf(out + used, size - used, i > 0 ? ",%lld" : "%lld", (long long)tensor->shape[i]);
    snprintf(out + used, size - used, "]");
}

static hone_status copy_result(const hone_value *from, const hone_tensor *to, char words[HONE_FFI_WORDS_SIZE])
{
    char came[80], expected[80];
    if (from->tag != HONE_FFI_TENSOR) return refuse_type(from->tag, "a tensor", words);
    const hone_tensor *tensor = &((const hone_ffi_lent *)from->as.pointer)->as.tensor;
    print_tensor(tensor, came, sizeof came);
    print_tensor(to, expected, sizeof expected);
    if (tensor->device.type != HONE_DEVICE_CPU)
        snprintf(
            words, HONE_FFI_WORDS_SIZE, "returns a tensor on a device of type %d, expected one on the CPU",
            (int)tensor->device.type);
    else if (!is_like(tensor, to))
        snprintf(words, HONE_FFI_WORDS_SIZE, "returns %s, expected %s", came, expected);
    else if (!hone_tensor_is_row_major(tensor))
        snprintf(words, HONE_FFI_WORDS_SIZE, "returns %s with strides, expected a dense one", came);
    else {
        memmove(hone_tensor_data(to), hone_tensor_data(tensor), (size_t)bytes_of(to));
        return HONE_OK;
    }
    return HONE_KERNEL_FAILED;
}

static hone_status take_several(
    const hone_ffi_list *list, const hone_value *args, const hone_value *result, char words[HONE_FFI_WORDS_SIZE])
{
    char expected[40];
    const uint32_t count = list->count - list->passed;
    hone_status status = HONE_OK;
    snprintf(expected, sizeof expected, "a list of %u tensors", (unsigned)count);
    if (result->tag != HONE_FFI_ARRAY && result->tag != HONE_FFI_LIST) return refuse_type(result->tag, expected, words);
    const hone_ffi_sequence *sequence = &((const hone_ffi_lent *)result->as.pointer)->as.sequence;
    if (sequence->size != (int64_t)count) {
        snprintf(
            words, HONE_FFI_WORDS_SIZE, "returns a list of %lld, expected %s", (long long)sequence->size, expected);
        return HONE_KERNEL_FAILED;
    }
    for (uint32_t i = 0; status == HONE_OK && i < count; i++)
        status = copy_result(
            (const hone_value *)sequence->data + i, args[list->arguments[list->passed + i].value].as.tensor, words);
    return status;
}

hone_status hone_ffi_take_results(
    const hone_ffi_list *list,
    const hone_ffi_frame *frame,
    const hone_value *args,
    const hone_value *result,
    char words[HONE_FFI_WORDS_SIZE])
{
    const uint32_t count = list->count - list->passed;
    if (count == 1) return copy_result(result, args[list->arguments[list->passed].value].as.tensor, words);
    if (count > 1) return take_several(list, args, result, words);
    // A function may answer with the result that it was lent.
    const bool is_own = result->tag == HONE_FFI_TENSOR && hone_ffi_frame_has(list, frame, result->as.pointer);
    if (result->tag == HONE_VALUE_NONE || is_own) return HONE_OK;
    return refuse_type(result->tag, "nothing: results that it returns stand behind '->' in arguments", words);
}
