#include "tvm_ffi/host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tvm_ffi_host host;
static bool is_found;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(hone_runtime *) runtime;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// tvm-ffi ------------------------------------------------------------------------------------------------------------

// A program that links tvm-ffi statically has its functions itself.
static void find_host(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        {"TVMFFIErrorSetRaisedFromCStr", offsetof(tvm_ffi_host, raise)},
        {"TVMFFIObjectDecRef", offsetof(tvm_ffi_host, drop)},
        {"TVMFFIStringFromByteArray", offsetof(tvm_ffi_host, make_text)},
        {"TVMFFIFunctionCreate", offsetof(tvm_ffi_host, make_function)},
        {"TVMFFITensorFromDLPackVersioned", offsetof(tvm_ffi_host, make_tensor)},
        {"TVMFFIFunctionGetGlobal", offsetof(tvm_ffi_host, get_global)},
        {"TVMFFIFunctionCall", offsetof(tvm_ffi_host, call)},
        {"TVMFFIEnvGetStream", offsetof(tvm_ffi_host, stream)},
        {"TVMFFIEnvTensorAlloc", offsetof(tvm_ffi_host, allocate)},
        {"TVMFFIEnvGetDLPackManagedTensorAllocator", offsetof(tvm_ffi_host, allocator)},
    };
    void *library = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
    is_found = true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library != NULL ? library : RTLD_DEFAULT, functions[i].name);
        memcpy((char *)&host + functions[i].offset, &symbol, sizeof symbol);
        is_found = is_found && symbol != NULL;
    }
}

const tvm_ffi_host *hone_tvm_ffi_host(void)
{
    (void)pthread_once(&once, find_host);
    return is_found ? &host : NULL;
}

// The runtime --------------------------------------------------------------------------------------------------------

static void write_record(void)
{
    (void)!hone_record_flush(atomic_load(&runtime), NULL);
}

hone_runtime *hone_tvm_ffi_runtime(hone_error *err)
{
    hone_runtime *rt = atomic_load_explicit(&runtime, memory_order_acquire);
    if (rt != NULL) return rt;
    pthread_mutex_lock(&mutex);
    rt = atomic_load_explicit(&runtime, memory_order_acquire);
    if (rt == NULL && hone_runtime_open(NULL, &rt, err) == HONE_OK) {
        atomic_store_explicit(&runtime, rt, memory_order_release);
        (void)!atexit(write_record);
    }
    pthread_mutex_unlock(&mutex);
    return rt;
}

// Errors -------------------------------------------------------------------------------------------------------------

// Kinds are names: those that Python's tvm_ffi makes exceptions of, where one fits.
static const char *kind_of(hone_status status)
{
    static const char *const kinds[] = {
        [HONE_INVALID_ARGUMENT] = "ValueError",
        [HONE_OUT_OF_MEMORY] = "MemoryError",
        [HONE_NOT_FOUND] = "KeyError",
        [HONE_UNSUPPORTED] = "NotImplementedError",
        [HONE_UNAVAILABLE] = "RuntimeError",
        [HONE_INCOMPATIBLE] = "RuntimeError",
        [HONE_CORRUPT] = "RuntimeError",
        [HONE_BUSY] = "TimeoutError",
        [HONE_IO] = "OSError",
        [HONE_CANCELLED] = "RuntimeError",
        [HONE_KERNEL_FAILED] = "RuntimeError",
    };
    const bool is_known = (size_t)status < sizeof kinds / sizeof *kinds && kinds[status] != NULL;
    return is_known ? kinds[status] : "RuntimeError";
}

int hone_tvm_ffi_raise(const hone_error *err)
{
    return hone_tvm_ffi_raise_words(kind_of(err->status), "%s", err->message);
}

int hone_tvm_ffi_raise_words(const char *kind, const char *format, ...)
{
    static const char name[] = "hone: ";
    char message[sizeof(hone_error) + sizeof name];
    va_list arguments;
    memcpy(message, name, sizeof name);
    va_start(arguments, format);
    (void)vsnprintf(message + sizeof name - 1, sizeof message - sizeof name, format, arguments);
    va_end(arguments);
    const tvm_ffi_host *found = hone_tvm_ffi_host();
    if (found != NULL) found->raise(kind, message);
    return -1;
}
