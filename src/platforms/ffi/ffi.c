#include "platforms/ffi/ffi.h"
#include "platforms/ffi/instance.h"

#include "base/error.h"
#include "base/memory.h"
#include "platforms/ffi/lent.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "ffi.platform", who[] = "kernels of ffi", describes[] = "__tvm_ffi__metadata_";

static void ffi_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    if (gone->driver != NULL) hone_ffi_driver_close(&gone->driver);
    hone_ffi_runtime_close(&gone->allocator, &gone->runtime);
    hone_mutex_deinit(&gone->mutex);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static hone_status ffi_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    instance->log = log;
    instance->driver = NULL;
    hone_mutex_init_long(&instance->mutex);
    hone_status status = hone_ffi_runtime_open(allocator, who, &instance->runtime, err);
    if (status == HONE_OK)
        *out = instance;
    else
        ffi_close(&instance);
    return status;
}

static const hone_device_info *ffi_devices(hone_platform_instance *instance, size_t *out_count)
{
    (void)instance;
    *out_count = 0;
    return NULL;
}

static hone_status ffi_visits(hone_platform_instance *instance, const hone_device_info *device, hone_error *err)
{
    hone_ffi_driver *driver = NULL;
    return device->backend == HONE_CPU ? HONE_OK : hone_ffi_need_driver(instance, &driver, err);
}

static hone_status ffi_try_file(const hone_pack_file *file, const char *entry, hone_error *err)
{
    const hone_allocator system = hone_allocator_system();
    hone_ffi_runtime runtime;
    hone_library *library = NULL;
    hone_ffi_function *function = NULL;
    hone_status status = hone_ffi_runtime_open(&system, who, &runtime, err);
    if (status != HONE_OK) return status;
    status = hone_ffi_open_library(file, &library, err);
    if (status == HONE_OK) status = hone_ffi_find_function(library, file, entry, &function, err);
    if (library != NULL) hone_library_close(&system, &library);
    hone_ffi_runtime_close(&system, &runtime);
    return status;
}

// A text of tvm-ffi.
static void append_text(const hone_value *value, hone_buffer *out)
{
    enum { HEADER = 24 };
    const struct {
        const char *data;
        size_t size;
    } *text = (const void *)((const char *)value->as.pointer + HEADER);
    if (value->tag == HONE_FFI_TEXT)
        hone_buffer_append(out, text->data, text->size);
    else if (value->tag == HONE_FFI_SMALL_TEXT)
        hone_buffer_append(out, &value->as, value->zero < 8 ? value->zero : 7);
}

static hone_status ask_function(
    const hone_ffi_runtime *runtime, hone_ffi_function *function, hone_buffer *out, hone_error *err)
{
    hone_value result = hone_of_none();
    char words[256];
    if (function(NULL, NULL, 0, &result) != 0) {
        hone_ffi_runtime_words(runtime, words, sizeof words);
        return hone_fail(err, HONE_KERNEL_FAILED, where, "%s", words);
    }
    append_text(&result, out);
    if (result.tag >= HONE_FFI_FIRST_OBJECT) (void)runtime->drop(result.as.pointer);
    return HONE_OK;
}

static hone_status ffi_tell_function(const char *path, const char *entry, hone_buffer *out, hone_error *err)
{
    const hone_allocator system = hone_allocator_system();
    char symbol[sizeof describes + HONE_FFI_ENTRY_SIZE];
    hone_ffi_function *function;
    hone_ffi_runtime runtime;
    hone_library *library = NULL;
    snprintf(symbol, sizeof symbol, "%s%.*s", describes, HONE_FFI_ENTRY_SIZE - 1, entry);
    hone_status status = hone_ffi_runtime_open(&system, who, &runtime, err);
    if (status != HONE_OK) return status;
    status = hone_library_open_file(&system, path, &library, err);
    void *found = status == HONE_OK ? hone_library_symbol(library, symbol) : NULL;
    if (status == HONE_OK && found == NULL) status = hone_fail(err, HONE_NOT_FOUND, where, "no %s", symbol);
    if (status == HONE_OK) {
        memcpy(&function, &found, sizeof found);
        status = ask_function(&runtime, function, out, err);
    }
    if (library != NULL) hone_library_close(&system, &library);
    hone_ffi_runtime_close(&system, &runtime);
    return status;
}

static void ffi_describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    hone_buffer_text(out, "libraries for tvm-ffi: ");
    hone_package_describe("apache-tvm-ffi", out);
}

const hone_platform_ops hone_ffi_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_FFI,
         .name = "ffi",
         .hosts = {HONE_NATIVE, HONE_CUDA},
         .chooses_variants = true,
         .ranks = {{55, HONE_GPU}, {75, HONE_CPU}}},
    .open = ffi_open,
    .close = ffi_close,
    .devices = ffi_devices,
    .prepare = hone_ffi_prepare,
    .release = hone_ffi_release,
    .run = hone_ffi_run,
    .visits = ffi_visits,
    .starts_runs = true,
    .describe = ffi_describe,
    .check = hone_ffi_check_pack,
    .wakes = true,
    .digest = hone_ffi_digest,
    .try_file = ffi_try_file,
    .exports = "__tvm_ffi_",
    .describes = describes,
    .tell_function = ffi_tell_function,
    .launch = &hone_ffi_launch,
};
