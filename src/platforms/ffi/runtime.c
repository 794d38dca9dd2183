#include "platforms/ffi/runtime.h"

#include "base/error.h"
#include "base/text.h"
#include "platforms/native/kernel.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "ffi.runtime", prefix[] = "__tvm_ffi_";

static const hone_package_library wanted = {
    "HONE_TVM_FFI", "libtvm_ffi.so", "apache-tvm-ffi", (const char *const[]){"tvm_ffi/lib", NULL}};

enum { PATH_SIZE = 1024 };

// Opening -------------------------------------------------------------------------------------------------------------

static hone_status find(hone_library *library, const char *name, void *out, hone_error *err)
{
    void *symbol = hone_library_symbol(library, name);
    if (symbol == NULL)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%s has no function %s: hone knows version 0.1 of %s", wanted.file, name,
            wanted.package);
    memcpy(out, &symbol, sizeof symbol);
    return HONE_OK;
}

// The only function that is the same in every version.
static hone_status check_version(hone_library *library, hone_error *err)
{
    void (*get_version)(uint32_t out[3]);
    uint32_t version[3] = {0};
    void *symbol = hone_library_symbol(library, "TVMFFIGetVersion");
    if (symbol == NULL) return HONE_OK;
    memcpy(&get_version, &symbol, sizeof symbol);
    get_version(version);
    if (version[0] == 0 && version[1] == 1) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "%s is version %u.%u.%u: hone knows version 0.1 of %s", wanted.file,
        (unsigned)version[0], (unsigned)version[1], (unsigned)version[2], wanted.package);
}

// The process may have loaded the library already, for a host that uses tvm-ffi. Libraries that ask the loader get that
// one, and hone must use it too, since it holds the streams and allocators.
static hone_status open_library(const hone_allocator *allocator, const char *who, hone_library **out, hone_error *err)
{
    char loaded[PATH_SIZE];
    if (!hone_library_loaded(wanted.file, loaded, sizeof loaded))
        return hone_package_library_open(allocator, &wanted, who, out, err);
    return hone_library_open_quietly(allocator, (const char *const[]){loaded, NULL}, out, err);
}

hone_status hone_ffi_runtime_open(
    const hone_allocator *allocator, const char *who, hone_ffi_runtime *out, hone_error *err)
{
    hone_error unused;
    *out = (hone_ffi_runtime){.library = NULL};
    hone_status status = open_library(allocator, who, &out->library, err);
    if (status == HONE_OK) status = check_version(out->library, err);
    if (status == HONE_OK) status = find(out->library, "TVMFFIErrorMoveFromRaised", &out->take_error, err);
    if (status == HONE_OK) status = find(out->library, "TVMFFIObjectDecRef", &out->drop, err);
    if (status == HONE_OK) status = find(out->library, "TVMFFIEnvSetStream", &out->set_stream, err);
    if (status == HONE_OK) {
        (void)find(out->library, "TVMFFIEnvGetStream", &out->get_stream, &unused);
        (void)find(out->library, "TVMFFIEnvSetDLPackManagedTensorAllocator", &out->set_allocator, &unused);
    } else {
        hone_ffi_runtime_close(allocator, out);
    }
    return status;
}

void hone_ffi_runtime_close(const hone_allocator *allocator, hone_ffi_runtime *runtime)
{
    if (runtime->library != NULL) hone_library_close(allocator, &runtime->library);
}

// Errors --------------------------------------------------------------------------------------------------------------

typedef struct text {
    const char *data;
    size_t size;
} text;

// TVMFFIObject, then the fields of TVMFFIErrorCell that are read here.
typedef struct error_object {
    uint64_t references;
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
    text kind, message, backtrace;
} error_object;
_Static_assert(offsetof(error_object, kind) == 24, "the object's header has 24 bytes");

enum { ERROR_TYPE = 67 };

static int at_most(size_t size, size_t most)
{
    return (int)(size < most ? size : most);
}

// A backtrace has a line for each function, beginning with the one that threw: '  File "x.cc", line 7, in f'. Adds as
// many as fit.
static void add_backtrace(const text *backtrace, char *out, size_t size)
{
    enum { FUNCTIONS = 8, FUNCTION_SIZE = 120, LEAST_ROOM = 16 };
    const char *at = backtrace->data, *end = at + backtrace->size;
    size_t used = strlen(out);
    int said = 0;
    for (; said < FUNCTIONS && used + LEAST_ROOM < size; said++) {
        while (at < end && (*at == ' ' || *at == '\n'))
            at++;
        if (at == end) break;
        const char *line = memchr(at, '\n', (size_t)(end - at)), *stop = line != NULL ? line : end;
        snprintf(
            out + used, size - used, "%s%.*s", said == 0 ? " (" : "; from ",
            at_most((size_t)(stop - at), FUNCTION_SIZE), at);
        used += strlen(out + used);
        at = stop;
    }
    if (said > 0) snprintf(out + used, size - used, ")");
}

// Replaces control characters, which a terminal obeys, and line ends: a message is one line.
static void blank_controls(char *words)
{
    const size_t size = strlen(words);
    for (size_t i = hone_text_control(words, size); i < size; i += hone_text_control(words + i, size - i))
        words[i] = ' ';
}

void hone_ffi_runtime_words(const hone_ffi_runtime *runtime, char *out, size_t size)
{
    void *object = NULL;
    snprintf(out, size, "failed without a word");
    runtime->take_error(&object);
    if (object == NULL) return;
    const error_object *error = object;
    if (error->type == ERROR_TYPE && error->kind.size + error->message.size > 0) {
        snprintf(
            out, size, "%.*s: %.*s", at_most(error->kind.size, 40), error->kind.data,
            at_most(error->message.size, size), error->message.data);
        if (error->backtrace.data != NULL) add_backtrace(&error->backtrace, out, size);
        blank_controls(out);
    }
    (void)runtime->drop(object);
}

// Functions -----------------------------------------------------------------------------------------------------------

hone_status hone_ffi_check_entry(const hone_code *code, hone_error *err)
{
    if (code->entry == NULL || code->entry[0] == '\0')
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "entry: is missing: the exported function's name");
    if (strlen(code->entry) < HONE_FFI_ENTRY_SIZE) return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "entry: is longer than %d", HONE_FFI_ENTRY_SIZE - 1);
}

hone_status hone_ffi_open_library(const hone_pack_file *file, hone_library **out, hone_error *err)
{
    char loaded[PATH_SIZE];
    hone_pack_file same = *file;
    if (hone_library_loaded_copy(file->path, loaded, sizeof loaded)) same.path = loaded;
    return hone_native_open_library(&same, out, err);
}

hone_status hone_ffi_find_function(
    hone_library *library, const hone_pack_file *file, const char *entry, hone_ffi_function **out, hone_error *err)
{
    char symbol[sizeof prefix + HONE_FFI_ENTRY_SIZE];
    snprintf(symbol, sizeof symbol, "%s%s", prefix, entry);
    void *found = hone_library_symbol(library, symbol);
    if (found == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, where,
            "%.120s has no function %.120s: was it exported for tvm-ffi, and under that name?", file->name, symbol);
    memcpy(out, &found, sizeof found);
    return HONE_OK;
}

hone_value hone_ffi_number(hone_argument_type type, uint64_t bits)
{
    hone_argument scalar = {.as.bits = bits};
    switch (type) {
    case HONE_ARGUMENT_F32:
        return hone_of_float((double)scalar.as.f32);
    case HONE_ARGUMENT_F64:
        return hone_of_float(scalar.as.f64);
    case HONE_ARGUMENT_I8:
        return hone_of_int((int8_t)bits);
    case HONE_ARGUMENT_I16:
        return hone_of_int((int16_t)bits);
    case HONE_ARGUMENT_I32:
        return hone_of_int(scalar.as.i32);
    case HONE_ARGUMENT_U8:
        return hone_of_int((uint8_t)bits);
    case HONE_ARGUMENT_U16:
        return hone_of_int((uint16_t)bits);
    case HONE_ARGUMENT_U32:
        return hone_of_int((uint32_t)bits);
    case HONE_ARGUMENT_BOOL:
        return hone_of_bool(bits != 0);
    case HONE_ARGUMENT_POINTER:
        return bits == 0 ? hone_of_none() : hone_of_pointer((void *)(uintptr_t)bits);
    default:
        return hone_of_int((int64_t)bits);
    }
}
