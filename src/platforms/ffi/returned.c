#include "platforms/ffi/returned.h"

#include "call/call.h"

#include <stdio.h>
#include <string.h>

// Results -------------------------------------------------------------------------------------------------------------

static const char *name_of(int32_t type, char *room, size_t size)
{
    static const char *const names[] = {"nothing",  "an integer",        "a bool", "a float", "a pointer", "a dtype",
                                        "a device", "a borrowed tensor", "a text"};
    if (type >= 0 && (size_t)type < sizeof names / sizeof *names) return names[type];
    if (type == HONE_FFI_SMALL_TEXT || type == HONE_FFI_TEXT) return "a text";
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

static bool is_on(const hone_tensor *tensor, const hone_ffi_maker *maker)
{
    return tensor->device.type == maker->device.type && tensor->device.id == maker->device.id;
}

static hone_status copy(const hone_ffi_maker *maker, const hone_tensor *from, const hone_tensor *to)
{
    const size_t bytes = (size_t)hone_ffi_bytes(to);
    if (maker->driver != NULL)
        return hone_ffi_gpu_copy(maker->driver, maker->execution, hone_tensor_data(to), hone_tensor_data(from), bytes);
    memmove(hone_tensor_data(to), hone_tensor_data(from), bytes);
    return HONE_OK;
}

static hone_status copy_result(
    const hone_ffi_maker *maker, const hone_value *from, const hone_tensor *to, char words[HONE_FFI_WORDS_SIZE])
{
    char came[80], expected[80];
    if (from->tag != HONE_FFI_TENSOR) return refuse_type(from->tag, "a tensor", words);
    const hone_tensor *tensor = &((const hone_ffi_lent *)from->as.pointer)->as.tensor;
    print_tensor(tensor, came, sizeof came);
    print_tensor(to, expected, sizeof expected);
    if (!is_on(tensor, maker))
        snprintf(
            words, HONE_FFI_WORDS_SIZE, "returns a tensor on device %d:%d (DLPack's numbers), expected one on %d:%d",
            (int)tensor->device.type, (int)tensor->device.id, (int)maker->device.type, (int)maker->device.id);
    else if (!is_like(tensor, to))
        snprintf(words, HONE_FFI_WORDS_SIZE, "returns %s, expected %s", came, expected);
    else if (!hone_tensor_is_row_major(tensor))
        snprintf(words, HONE_FFI_WORDS_SIZE, "returns %s with strides, expected a dense one", came);
    else
        return copy(maker, tensor, to);
    return HONE_KERNEL_FAILED;
}

static hone_status take_several(
    const hone_ffi_list *list,
    const hone_ffi_maker *maker,
    const hone_value *args,
    const hone_value *result,
    char words[HONE_FFI_WORDS_SIZE])
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
            maker, (const hone_value *)sequence->data + i, args[list->arguments[list->passed + i].value].as.tensor,
            words);
    return status;
}

hone_status hone_ffi_take_results(
    const hone_ffi_list *list,
    const hone_ffi_maker *maker,
    const hone_value *args,
    const hone_value *result,
    char words[HONE_FFI_WORDS_SIZE])
{
    const uint32_t count = list->count - list->passed;
    if (count == 1) return copy_result(maker, result, args[list->arguments[list->passed].value].as.tensor, words);
    if (count > 1) return take_several(list, maker, args, result, words);
    // A function may return the result that it was lent.
    const bool is_own = result->tag == HONE_FFI_TENSOR && hone_ffi_frame_has(list, maker->frame, result->as.pointer);
    if (result->tag == HONE_VALUE_NONE || is_own) return HONE_OK;
    return refuse_type(result->tag, "nothing: results that it returns stand behind '->' in arguments", words);
}
