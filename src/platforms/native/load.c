// Kernels of packs on the CPU: prepares plans, and runs them.
#include "platforms/native/native.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "native.load";

typedef struct native_loaded {
    hone_native_code code;              // of a source
    const hone_pack_function *function; // of a library; NULL: code is used
    void *state;                        // the state that its prepare returned
    uint32_t count;
    hone_argument arguments[HONE_MAX_ARGUMENTS];
} native_loaded;

// Libraries -----------------------------------------------------------------------------------------------------------

static hone_status check_table(const hone_pack_library *table, const hone_pack_file *file, hone_error *err)
{
    if (table == NULL)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%.200s has no table for ABI %d: it needs a later hone", file->name,
            HONE_PACK_ABI);
    if (table->struct_size < sizeof *table || table->abi == 0 || table->abi > HONE_PACK_ABI)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%.200s answers with ABI %u and a table of %zu bytes, expected ABI %d and %zu", file->name,
            (unsigned)table->abi, table->struct_size, HONE_PACK_ABI, sizeof *table);
    if (table->count == 0 || table->functions == NULL)
        return hone_fail(err, HONE_CORRUPT, where, "%.200s has no functions in its table", file->name);
    if (table->functions->struct_size < sizeof *table->functions)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%.200s has functions of %zu bytes in its table, expected %zu", file->name,
            table->functions->struct_size, sizeof *table->functions);
    return HONE_OK;
}

static hone_status find_in_table(
    const hone_pack_library *table,
    const hone_pack_file *file,
    const char *entry,
    const hone_pack_function **out,
    hone_error *err)
{
    const char *at = (const char *)table->functions;
    for (uint32_t i = 0; i < table->count; i++, at += table->functions->struct_size) {
        const hone_pack_function *function = (const hone_pack_function *)(const void *)at;
        if (function->name == NULL || strcmp(function->name, entry) != 0) continue;
        *out = function;
        return function->run != NULL
                   ? HONE_OK
                   : hone_fail(err, HONE_CORRUPT, where, "%.200s: %s has no run function", file->name, entry);
    }
    return hone_fail(
        err, HONE_NOT_FOUND, where, "%.200s has no function '%.60s' in its table of %u", file->name, entry,
        (unsigned)table->count);
}

hone_status hone_native_open_library(const hone_pack_file *file, hone_library **out, hone_error *err)
{
    const char *const names[] = {file->path, NULL};
    const hone_allocator allocator = hone_allocator_system();
    hone_buffer bytes;
    hone_buffer_init(&bytes, allocator);
    hone_status status = hone_pack_read_file(file, &bytes, err);
    hone_buffer_deinit(&bytes);
    if (status == HONE_OK) status = hone_library_open(&allocator, names, out, err);
    const char *taken = status == HONE_OK ? hone_library_taken(*out) : NULL;
    if (taken == NULL) return status;
    (void)hone_fail(
        err, HONE_UNSUPPORTED, where,
        "%.160s calls its function %.80s, and this process has another one of that name, which would run in its place: "
        "make it static, or link the library with -Wl,-Bsymbolic",
        file->name, taken);
    hone_library_close(&allocator, out);
    return HONE_UNSUPPORTED;
}

static hone_status ask_library(
    hone_library *library,
    const hone_pack_file *file,
    const char *entry,
    const hone_pack_function **out,
    hone_error *err)
{
    void *symbol = hone_library_symbol(library, "hone_pack_query");
    hone_pack_query_function *query;
    if (symbol == NULL)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "%.200s does not export hone_pack_query (hone/pack.h)", file->name);
    memcpy(&query, &symbol, sizeof query);
    const hone_pack_library *table = query(HONE_PACK_ABI);
    hone_status status = check_table(table, file, err);
    return status == HONE_OK ? find_in_table(table, file, entry, out, err) : status;
}

hone_status hone_native_find_function(
    const hone_pack_file *file, const char *entry, const hone_pack_function **out, hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    hone_library *library = NULL;
    hone_status status = hone_native_open_library(file, &library, err);
    if (status != HONE_OK) return status;
    status = ask_library(library, file, entry, out, err);
    hone_library_close(&allocator, &library); // the code stays mapped
    return status;
}

// Plans ---------------------------------------------------------------------------------------------------------------

static hone_status prepare_function(
    native_loaded *loaded, const hone_plan *plan, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_status status = hone_native_find_function(variant->file, variant->code.entry, &loaded->function, err);
    if (status != HONE_OK || loaded->function->prepare == NULL) return status;
    return loaded->function->prepare(plan, &loaded->state, out_scratch_bytes, err);
}

static hone_status prepare_source(
    native_loaded *loaded, const hone_plan *plan, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    hone_status status = hone_launch_arguments(&allocator, plan, NULL, loaded->arguments, &loaded->count, err);
    if (status == HONE_OK)
        status = hone_launch_scratch(&allocator, plan, loaded->arguments, loaded->count, out_scratch_bytes, NULL, err);
    if (status != HONE_OK) return status;
    return hone_native_compile(plan, loaded->arguments, loaded->count, &loaded->code, err);
}

hone_status hone_native_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    const hone_allocator allocator = hone_allocator_system();
    (void)instance;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code == NULL)
        return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
    const hone_pack_variant *variant = hone_pack_variant_of(kernel->code->pack, plan->config);
    native_loaded *loaded = hone_alloc(&allocator, sizeof *loaded);
    if (loaded == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_native_is_library(variant->file) ? prepare_function(loaded, plan, out_scratch_bytes, err)
                                                               : prepare_source(loaded, plan, out_scratch_bytes, err);
    if (status == HONE_OK)
        *out_state = loaded;
    else
        hone_free(&allocator, loaded);
    return status;
}

void hone_native_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    const hone_allocator allocator = hone_allocator_system();
    native_loaded *loaded = state;
    (void)instance;
    if (kernel->code == NULL) {
        if (kernel->release != NULL) kernel->release(kernel, state);
        return;
    }
    if (loaded->function != NULL && loaded->function->release != NULL && loaded->state != NULL)
        loaded->function->release(kernel, loaded->state);
    if (loaded->code.library != NULL) hone_library_close(&allocator, &loaded->code.library);
    hone_free(&allocator, loaded);
}

// Runs ----------------------------------------------------------------------------------------------------------------

static hone_status run_function(
    const native_loaded *loaded, const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_plan own = *plan;
    own.state = loaded->state;
    return loaded->function->run(&own, args, execution);
}

static hone_status call(const native_loaded *loaded, const hone_value *args, void *scratch)
{
    uint64_t bits[HONE_MAX_ARGUMENTS];
    void *addresses[HONE_MAX_ARGUMENTS];
    for (uint32_t i = 0; i < loaded->count; i++) {
        const hone_argument *argument = &loaded->arguments[i];
        bits[i] = argument->as.bits;
        addresses[i] = &bits[i];
        if (argument->kind == HONE_ARGUMENT_TENSOR)
            addresses[i] = hone_tensor_data(args[argument->value].as.tensor);
        else if (argument->kind == HONE_ARGUMENT_SCRATCH)
            addresses[i] = scratch;
        else if (argument->kind == HONE_ARGUMENT_SCALAR)
            bits[i] = hone_argument_bits(argument->type, &args[argument->value]);
        else if (argument->type == HONE_ARGUMENT_POINTER)
            addresses[i] = NULL; // an omitted tensor
    }
    const int code = loaded->code.entry(addresses);
    return code == 0 ? HONE_OK : code == HONE_UNSUPPORTED ? HONE_UNSUPPORTED : HONE_KERNEL_FAILED;
}

hone_status hone_native_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const native_loaded *loaded = plan->state;
    if (loaded->function != NULL) return run_function(loaded, plan, args, execution);
    return call(loaded, args, execution != NULL ? execution->scratch : NULL);
}

// Only the library knows what its function does with a config, so that has no digest.
uint64_t hone_native_digest(const hone_plan *plan)
{
    const native_loaded *loaded = plan->state;
    const hone_launch called = {.flags = 0};
    if (loaded->function != NULL) return 0;
    const uint64_t code = hone_hash64_add(loaded->code.digest, &plan->scratch_bytes, sizeof plan->scratch_bytes);
    return hone_launch_digest(code, &called, loaded->arguments, loaded->count);
}
