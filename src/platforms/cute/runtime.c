// Finds the two libraries and the functions of tvm-ffi's C interface (tvm/ffi/c_api.h, version 0.1).
#include "platforms/cute/runtime.h"

#include "base/error.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "cute.runtime";

enum { PATH_SIZE = 1024 };

typedef struct wanted_library {
    const char *variable, *file, *package;
    const char *const *below; // where it lies in a folder of Python's packages; NULL-ended
} wanted_library;

static const wanted_library ffi = {
    "HONE_TVM_FFI", "libtvm_ffi.so", "apache-tvm-ffi", (const char *const[]){"tvm_ffi/lib", NULL}};
static const wanted_library dsl = {
    "HONE_CUTE_DSL_RUNTIME", "libcute_dsl_runtime.so", "nvidia-cutlass-dsl",
    (const char *const[]){
        "nvidia_cutlass_dsl/cu13/lib", "nvidia_cutlass_dsl/cu12/lib", "nvidia_cutlass_dsl/lib", NULL}};

// Opening -------------------------------------------------------------------------------------------------------------

typedef struct finding {
    const wanted_library *wanted;
    char found[PATH_SIZE];
} finding;

static bool look(void *ctx, const char *packages)
{
    finding *f = ctx;
    for (const char *const *below = f->wanted->below; *below != NULL; below++) {
        char path[PATH_SIZE];
        int size = snprintf(path, sizeof path, "%s/%s/%s", packages, *below, f->wanted->file);
        if (size <= 0 || (size_t)size >= sizeof path || !hone_os_is_file(path)) continue;
        memcpy(f->found, path, (size_t)size + 1);
        return false;
    }
    return true;
}

static hone_status open_one(
    const hone_allocator *allocator, const wanted_library *wanted, hone_library **out, hone_error *err)
{
    finding f = {.wanted = wanted};
    hone_error why = {.message = ""};
    const char *named = hone_os_variable(wanted->variable);
    bool is_named = named != NULL && named[0] != '\0';
    if (!is_named) hone_python_packages(look, &f);
    const char *names[] = {is_named ? named : wanted->file, f.found[0] != '\0' ? f.found : NULL, NULL};
    hone_status status = hone_library_open(allocator, names, out, &why);
    if (status != HONE_UNAVAILABLE)
        return status == HONE_OK ? status : hone_fail(err, status, where, "%s", why.message);
    return hone_fail(
        err, status, where, "exports of the CuTe DSL need %s: install PyPI's %s, or name the file in %s (%.80s)",
        wanted->file, wanted->package, wanted->variable, why.message);
}

static hone_status find_function(hone_library *library, const char *name, void *out, hone_error *err)
{
    void *symbol = hone_library_symbol(library, name);
    if (symbol == NULL)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%s has no function %s: hone knows version 0.1 of apache-tvm-ffi", ffi.file,
            name);
    memcpy(out, &symbol, sizeof symbol);
    return HONE_OK;
}

hone_status hone_cute_runtime_open(const hone_allocator *allocator, hone_cute_runtime *out, hone_error *err)
{
    *out = (hone_cute_runtime){.ffi = NULL};
    hone_status status = open_one(allocator, &ffi, &out->ffi, err);
    if (status == HONE_OK) status = open_one(allocator, &dsl, &out->dsl, err);
    if (status == HONE_OK) status = find_function(out->ffi, "TVMFFIErrorMoveFromRaised", &out->take_error, err);
    if (status == HONE_OK) status = find_function(out->ffi, "TVMFFIObjectDecRef", &out->drop, err);
    if (status == HONE_OK) status = find_function(out->ffi, "TVMFFIEnvSetStream", &out->set_stream, err);
    if (status != HONE_OK) hone_cute_runtime_close(allocator, out);
    return status;
}

void hone_cute_runtime_close(const hone_allocator *allocator, hone_cute_runtime *runtime)
{
    if (runtime->ffi != NULL) hone_library_close(allocator, &runtime->ffi);
    if (runtime->dsl != NULL) hone_library_close(allocator, &runtime->dsl);
}

// Errors --------------------------------------------------------------------------------------------------------------

// TVMFFIObject, then TVMFFIErrorCell, as far as they are read here.
typedef struct error_object {
    uint64_t references;
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
    struct {
        const char *data;
        size_t size;
    } kind, message;
} error_object;
_Static_assert(offsetof(error_object, kind) == 24, "the object's header has 24 bytes");

enum { ERROR_TYPE = 67 };

void hone_cute_runtime_words(const hone_cute_runtime *runtime, char *out, size_t size)
{
    void *object = NULL;
    snprintf(out, size, "failed without a word");
    runtime->take_error(&object);
    if (object == NULL) return;
    const error_object *error = object;
    if (error->type == ERROR_TYPE)
        snprintf(
            out, size, "%.*s: %.*s", error->kind.size < 40 ? (int)error->kind.size : 40, error->kind.data,
            error->message.size < size ? (int)error->message.size : (int)size, error->message.data);
    (void)runtime->drop(object);
}
