#include "tvm_ffi/values.h"

#include <stdlib.h>
#include <string.h>

// Reading ------------------------------------------------------------------------------------------------------------

// What stands behind an object's header.
static void *content_of(void *object)
{
    return (char *)object + TVM_FFI_HEADER;
}

// A value that is to be moved is a pointer to its object; hone only looks at it.
static hone_value looked_through(const hone_value *argument)
{
    hone_value value = *argument;
    if (value.tag != TVM_FFI_RVALUE) return value;
    void *object;
    int32_t type;
    memcpy(&object, value.as.pointer, sizeof object);
    memcpy(&type, (const char *)object + sizeof(uint64_t), sizeof type);
    value.tag = type;
    value.as.pointer = object;
    return value;
}

const char *hone_tvm_ffi_text(const hone_value *argument, char room[8])
{
    const hone_value value = looked_through(argument);
    if (value.tag == HONE_VALUE_STRING) return value.as.string;
    if (value.tag == TVM_FFI_TEXT) {
        const tvm_ffi_bytes *text = content_of(value.as.pointer);
        return memchr(text->data, '\0', text->size) == NULL ? text->data : NULL;
    }
    if (value.tag != TVM_FFI_SMALL_TEXT) return NULL;
    const size_t size = value.zero < 7 ? value.zero : 7;
    memcpy(room, &value.as, 8);
    room[size] = '\0';
    return strlen(room) == size ? room : NULL;
}

static bool read_value(const hone_value *argument, char room[8], hone_value *out)
{
    const hone_value value = looked_through(argument);
    const char *text = hone_tvm_ffi_text(&value, room);
    if (text != NULL)
        *out = hone_of_string(text);
    else if (value.tag == TVM_FFI_TENSOR)
        *out = hone_of_tensor(content_of(value.as.pointer));
    else if (value.tag >= HONE_VALUE_NONE && value.tag <= HONE_VALUE_STRING)
        *out = value;
    else
        return false;
    out->zero = 0;
    return (value.tag != HONE_VALUE_TENSOR && value.tag != HONE_VALUE_STRING) || value.as.pointer != NULL;
}

// Of what hone does not take.
static const char *name_of_type(int32_t tag)
{
    static const struct {
        int32_t tag;
        const char *name;
    } names[] = {
        {HONE_VALUE_TENSOR, "a pointer to no tensor"},
        {HONE_VALUE_STRING, "a pointer to no text"},
        {TVM_FFI_SMALL_TEXT, "a text with a NUL"},
        {TVM_FFI_TEXT, "a text with a NUL"},
        {66, "bytes"},
        {67, "an error"},
        {68, "a function"},
        {69, "a shape"},
        {71, "an array"},
        {72, "a map"},
        {73, "a module"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].tag == tag) return names[i].name;
    return "an object";
}

// The operation of a name: this thread's last one is remembered, since loops ask for one again and again.
int hone_tvm_ffi_find(const char *name, const hone_op **out)
{
    static _Thread_local char last[HONE_NAME_SIZE + 20];
    static _Thread_local const hone_op *found;
    hone_error err;
    if (found == NULL || strcmp(last, name) != 0) {
        hone_runtime *rt = hone_tvm_ffi_runtime(&err);
        if (rt == NULL || hone_op_get(rt, name, out, &err) != HONE_OK) return hone_tvm_ffi_raise(&err);
        if (strlen(name) >= sizeof last) return 0;
        strcpy(last, name);
        found = *out;
    }
    *out = found;
    return 0;
}

static void find_stream(hone_tvm_ffi_call *call)
{
    size_t i = 0;
    while (i < call->count && call->values[i].tag != HONE_VALUE_TENSOR)
        i++;
    call->executes = NULL;
    if (i == call->count || call->values[i].as.tensor->device.type == HONE_DEVICE_CPU) return;
    const hone_device device = call->values[i].as.tensor->device;
    call->execution = (hone_execution){
        .struct_size = sizeof call->execution, .stream = hone_tvm_ffi_host()->stream(device.type, device.id)};
    call->executes = &call->execution;
}

int hone_tvm_ffi_read_of(
    const hone_op *op, const char *function, const hone_value *arguments, size_t count, hone_tvm_ffi_call *out)
{
    const hone_signature *signature = hone_op_signature(op);
    out->op = op;
    out->count = count;
    out->made_count = 0;
    if (count > HONE_TVM_FFI_VALUES || count > hone_signature_count(signature))
        return hone_tvm_ffi_raise_words(
            "TypeError", "%s: %s has %zu values, and %zu came: %s", function, hone_signature_name(signature),
            hone_signature_count(signature), count, hone_signature_text(signature));
    for (size_t i = 0; i < count; i++)
        if (!read_value(&arguments[i], out->texts[i], &out->values[i]))
            return hone_tvm_ffi_raise_words(
                "TypeError",
                "%s: %s of %s is %s (tvm-ffi's type %d), expected a tensor, a number, a bool, a text or None", function,
                hone_signature_parameter(signature, i)->name, hone_signature_name(signature),
                name_of_type(looked_through(&arguments[i]).tag), (int)arguments[i].tag);
    find_stream(out);
    return 0;
}

int hone_tvm_ffi_read(const char *function, const hone_value *arguments, int32_t count, hone_tvm_ffi_call *out)
{
    char room[8];
    const hone_op *op = NULL;
    const char *name = count > 0 ? hone_tvm_ffi_text(&arguments[0], room) : NULL;
    if (name == NULL)
        return hone_tvm_ffi_raise_words(
            "TypeError", "%s takes the name of an algorithm, then its values: parameters, results, keyword-only ones",
            function);
    if (hone_tvm_ffi_find(name, &op) != 0) return -1;
    return hone_tvm_ffi_read_of(op, function, arguments + 1, (size_t)count - 1, out);
}

int hone_tvm_ffi_describe(const hone_tvm_ffi_call *call, hone_call **out)
{
    hone_error err;
    const hone_status status = hone_call_bind(
        hone_allocator_system(), hone_op_signature(call->op), call->values, call->count, true, out, &err);
    return status == HONE_OK ? 0 : hone_tvm_ffi_raise(&err);
}

// Results that were left out -----------------------------------------------------------------------------------------

// DLManagedTensorVersioned of DLPack 1, with shape and elements in one block.
typedef struct tvm_ffi_managed {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct tvm_ffi_managed *self);
    uint64_t flags;
    hone_tensor tensor;
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
} managed;

static void free_managed(managed *self)
{
    free(self->tensor.data);
    free(self);
}

static int raise_memory(void)
{
    return hone_tvm_ffi_raise_words("MemoryError", "no memory for a result");
}

// On the host where the environment has no allocator.
static int make_on_host(const hone_tensor *like, void **out)
{
    managed *made = calloc(1, sizeof *made);
    const size_t bytes = ((size_t)hone_tensor_elements(like) * like->dtype.bits * like->dtype.lanes + 7) / 8;
    void *data = made != NULL ? aligned_alloc(64, (bytes + 64) / 64 * 64) : NULL;
    int64_t stride = 1;
    if (data == NULL) {
        free(made);
        return raise_memory();
    }
    *made = (managed){.version = {1, 0}, .deleter = free_managed, .tensor = *like};
    made->tensor.data = data;
    made->tensor.shape = made->shape;
    made->tensor.strides = made->strides;
    for (int32_t i = like->ndim - 1; i >= 0; i--) {
        made->shape[i] = like->shape[i];
        made->strides[i] = stride;
        stride *= like->shape[i];
    }
    if (hone_tvm_ffi_host()->make_tensor(made, 0, 0, out) == 0) return 0;
    free_managed(made);
    return -1;
}

static int make_result(const hone_tensor *described, void **out)
{
    const tvm_ffi_host *host = hone_tvm_ffi_host();
    hone_tensor like = *described;
    like.data = NULL;
    like.byte_offset = 0;
    if (host->allocator() == NULL && like.device.type == HONE_DEVICE_CPU) return make_on_host(&like, out);
    return host->allocate(&like, out); // which raises what is missing
}

static bool is_left_out(const hone_tvm_ffi_call *call, size_t i)
{
    return hone_signature_parameter(hone_op_signature(call->op), i)->is_result &&
           (i >= call->count || call->values[i].tag == HONE_VALUE_NONE);
}

// The signature's results, whose last may stand behind what was given.
static int make_all(hone_tvm_ffi_call *call, const hone_call *described, size_t end)
{
    while (call->count < end)
        call->values[call->count++] = hone_of_none();
    for (size_t i = 0; i < end; i++) {
        call->made[i] = NULL;
        if (!is_left_out(call, i)) continue;
        if (make_result(hone_call_tensor(described, i), &call->made[i]) != 0) return -1;
        call->made_count++;
        call->values[i] = hone_of_tensor(content_of(call->made[i]));
    }
    return 0;
}

int hone_tvm_ffi_make_results(hone_tvm_ffi_call *call)
{
    const hone_signature *signature = hone_op_signature(call->op);
    size_t end = 0;
    bool is_missing = false;
    hone_call *described = NULL;
    for (size_t i = 0; i < hone_signature_count(signature) && i < HONE_TVM_FFI_VALUES; i++) {
        if (hone_signature_parameter(signature, i)->is_result) end = i + 1;
        is_missing = is_missing || is_left_out(call, i);
    }
    if (!is_missing) return 0;
    if (hone_tvm_ffi_describe(call, &described) != 0) return -1;
    if (end < call->count) end = call->count;
    const int failed = make_all(call, described, end);
    hone_call_release(&described);
    if (failed != 0) hone_tvm_ffi_drop_results(call);
    return failed;
}

void hone_tvm_ffi_drop_results(hone_tvm_ffi_call *call)
{
    for (size_t i = 0; call->made_count > 0 && i < call->count; i++) {
        if (call->made[i] == NULL) continue;
        (void)hone_tvm_ffi_host()->drop(call->made[i]);
        call->made_count--;
    }
}

static hone_value of_object(void *object)
{
    hone_value value = hone_of_pointer(object);
    value.tag = TVM_FFI_TENSOR;
    return value;
}

static int return_array(const hone_value *items, size_t count, hone_value *result)
{
    static const tvm_ffi_bytes name = {"ffi.Array", 9};
    const tvm_ffi_host *host = hone_tvm_ffi_host();
    void *make = NULL;
    if (host->get_global(&name, &make) != 0 || make == NULL)
        return hone_tvm_ffi_raise_words("RuntimeError", "tvm-ffi has no function ffi.Array");
    const int failed = host->call(make, items, (int32_t)count, result);
    (void)host->drop(make);
    return failed;
}

int hone_tvm_ffi_return_results(hone_tvm_ffi_call *call, hone_value *result)
{
    hone_value items[HONE_TVM_FFI_VALUES];
    size_t count = 0;
    if (call->made_count == 0) return 0;
    for (size_t i = 0; i < call->count; i++)
        if (call->made[i] != NULL) items[count++] = of_object(call->made[i]);
    if (count > 1) {
        const int failed = return_array(items, count, result);
        hone_tvm_ffi_drop_results(call);
        return failed;
    }
    *result = items[0];
    return 0;
}
