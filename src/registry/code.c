// A kernel's code as the registry keeps it: texts copied, a file read, and its digest for a revision.
#include "registry/tables.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "call/call.h"
#include "os/os.h"
#include "os/plain_file.h"
#include "registry/origin.h"
#include "space/term.h"

#include <string.h>

enum { FILE_LIMIT = 64 << 20 };

static const char where[] = "registry.kernels";

static hone_status refuse(const hone_kernel *kernel, const char *words, hone_error *err)
{
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%.80s: the code of kernel '%s' %s", kernel->algorithm, kernel->name, words);
}

static hone_status check_code(
    const hone_registry *registry, const hone_kernel *kernel, const hone_code *code, hone_error *err)
{
    const hone_platform_facts *platform = registry->platforms(kernel->platform);
    if (code->pack != NULL) return HONE_OK; // was checked when it was read
    int given = (code->source != NULL) + (code->file != NULL) + (code->binary != NULL);
    if (platform == NULL || !platform->takes_code)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%.80s: kernel '%s' has code, which platform %s does not take",
            kernel->algorithm, kernel->name, hone_registry_platform_name(registry, kernel->platform));
    if (given != 1) return refuse(kernel, "needs one of source, file and binary", err);
    if (code->binary != NULL && code->binary_size == 0) return refuse(kernel, "has a binary of no bytes", err);
    if (!platform->is_module && (code->entry == NULL || code->entry[0] == '\0'))
        return refuse(kernel, "does not name its entry", err);
    if (code->arguments == NULL) return refuse(kernel, "does not list its arguments", err);
    if (code->finish == NULL && (code->finish_grid != NULL || code->finish_block != NULL))
        return refuse(
            kernel, "has a launch of finish (finish_grid, finish_block) and does not name that function", err);
    if (code->align > 4096 || (code->align & (code->align - 1)) != 0)
        return refuse(kernel, "asks for an alignment that is not a power of two up to 4096", err);
    if ((code->flags & ~(uint32_t)(HONE_CODE_COOPERATIVE | HONE_CODE_PROGRAMMATIC_LAUNCH)) != 0)
        return refuse(kernel, "has flags that this version of hone does not know", err);
    const char *words = platform->refuses != NULL ? platform->refuses(code) : NULL;
    return words != NULL ? refuse(kernel, words, err) : HONE_OK;
}

// Bytecode of MLIR is recognised by its first bytes.
static bool is_loaded_as_it_is(const char *file, const hone_buffer *bytes)
{
    static const char bytecode[] = "ML\xefR";
    return hone_code_is_binary(file) || (bytes->size >= 4 && memcmp(bytes->data, bytecode, 4) == 0);
}

static hone_status read_file(hone_arena *arena, const hone_kernel *kernel, hone_code *code, hone_error *err)
{
    hone_buffer bytes;
    hone_error why = {.message = ""};
    hone_buffer_init(&bytes, arena->allocator);
    hone_status status = hone_os_read_plain_file(code->file, FILE_LIMIT, &bytes, &why);
    char *copy = status == HONE_OK ? hone_arena_text(arena, hone_buffer_string(&bytes), bytes.size) : NULL;
    size_t size = bytes.size;
    bool as_it_is = is_loaded_as_it_is(code->file, &bytes);
    hone_buffer_deinit(&bytes);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY)
        return hone_fail(err, status, where, "%s: kernel '%s': %s", kernel->algorithm, kernel->name, why.message);
    if (copy == NULL) return hone_fail_memory(err, where);
    if (size == 0) return refuse(kernel, "is an empty file", err);
    if (as_it_is) {
        code->binary = copy;
        code->binary_size = size;
    } else {
        code->source = copy;
    }
    return HONE_OK;
}

static bool copy_bytes(hone_arena *arena, hone_code *code)
{
    // One byte more: PTX is handed over as a string.
    if (code->binary == NULL) return true;
    char *copy = hone_arena_text(arena, code->binary, code->binary_size);
    code->binary = copy;
    return copy != NULL;
}

typedef const char *text_field;

static bool copy_texts(hone_arena *arena, hone_code *code)
{
    text_field *const fields[] = {&code->source,    &code->file,    &code->entry,       &code->arguments,
                                  &code->grid,      &code->block,   &code->cluster,     &code->shared,
                                  &code->constants, &code->options, &code->condition,   &code->target,
                                  &code->scratch,   &code->finish,  &code->finish_grid, &code->finish_block};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (*fields[i] == NULL) continue;
        *fields[i] = hone_arena_text(arena, *fields[i], strlen(*fields[i]));
        if (*fields[i] == NULL) return false;
    }
    return true;
}

// Everything that makes another program or another launch of it.
static const char *digest(hone_arena *arena, const hone_code *code)
{
    const char *const texts[] = {code->source,  code->entry,  code->arguments, code->grid,    code->block,
                                 code->cluster, code->shared, code->constants, code->options, code->condition};
    char key[HONE_KEY_SIZE];
    hone_buffer all;
    hone_buffer_init(&all, arena->allocator);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hone_buffer_text(&all, texts[i] != NULL ? texts[i] : "");
        hone_buffer_char(&all, '\0');
    }
    if (code->binary != NULL) hone_buffer_append(&all, code->binary, code->binary_size);
    hone_buffer_format(&all, "%u %u", (unsigned)code->align, (unsigned)code->flags);
    if (code->scratch != NULL) hone_buffer_text(&all, code->scratch);
    if (code->finish != NULL)
        hone_buffer_format(
            &all, " %s %s %s", code->finish, code->finish_grid != NULL ? code->finish_grid : "",
            code->finish_block != NULL ? code->finish_block : "");
    hone_hash_key(hone_buffer_string(&all), all.size, key);
    const char *kept = all.failed ? NULL : hone_arena_text(arena, key, strlen(key));
    hone_buffer_deinit(&all);
    return kept;
}

hone_status hone_registry_copy_code(
    const hone_registry *registry, hone_arena *arena, hone_kernel *kernel, hone_error *err)
{
    if (kernel->code == NULL) return HONE_OK;
    hone_code *code = hone_arena_alloc(arena, sizeof *code);
    if (code == NULL) return hone_fail_memory(err, where);
    hone_status status =
        hone_struct_copy(code, sizeof *code, kernel->code, kernel->code->struct_size, "hone_code", where, err);
    if (status == HONE_OK) status = check_code(registry, kernel, code, err);
    if (status != HONE_OK) return status;
    if (!copy_texts(arena, code) || !copy_bytes(arena, code)) return hone_fail_memory(err, where);
    // The files of a pack are read when a plan is prepared.
    if (code->file != NULL && code->pack == NULL) status = read_file(arena, kernel, code, err);
    if (status != HONE_OK) return status;
    kernel->code = code;
    if (kernel->revision == NULL) kernel->revision = digest(arena, code);
    return kernel->revision != NULL ? HONE_OK : hone_fail_memory(err, where);
}

// Calls ---------------------------------------------------------------------------------------------------------------

static hone_status check_target(
    const hone_registry *registry, const hone_code *code, const hone_device_info *device, hone_error *err)
{
    const hone_platform_facts *platform = registry->platforms(device->platform);
    if (code->target == NULL || platform == NULL || platform->check_target == NULL) return HONE_OK;
    return platform->check_target(code, device, err);
}

// Functions of Python get arrays that know their strides.
static bool takes_strides(const hone_kernel_ref *ref)
{
    const hone_platform_facts *facts = ref->registry->platforms(ref->kernel.platform);
    return facts != NULL && facts->is_interpreted;
}

static hone_status check_tensor(
    const hone_kernel_ref *ref,
    const hone_parameter *parameter,
    const hone_tensor *tensor,
    uint32_t align,
    hone_error *err)
{
    const hone_code *code = ref->kernel.code;
    if (!hone_tensor_is_row_major(tensor) && !takes_strides(ref))
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s has strides; the kernel takes row-major tensors", parameter->name);
    // Data of an unknown place counts as ordinary; align 0 is ordinary: 16 bytes or more.
    if (align != 0 && align < code->align)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s is aligned to %u bytes, the kernel asks for %u", parameter->name,
            (unsigned)align, (unsigned)code->align);
    return HONE_OK;
}

static hone_status check_condition(
    hone_allocator allocator,
    const hone_code *code,
    const hone_call *call,
    const hone_device_info *device,
    hone_error *err)
{
    const hone_term_scope scope = {.call = call, .device = device};
    hone_scalar holds;
    if (code->condition == NULL) return HONE_OK;
    hone_error why = {.message = ""};
    hone_status status = hone_term_of(allocator, code->condition, &scope, &holds, &why);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status != HONE_OK)
        return hone_fail(err, HONE_UNSUPPORTED, where, "condition '%.80s': %s", code->condition, why.message);
    if (hone_scalar_truth(&holds)) return HONE_OK;
    return hone_fail(err, HONE_UNSUPPORTED, where, "asks for %s", code->condition);
}

hone_status hone_registry_check_code(
    const hone_kernel_ref *ref, const hone_call *call, const hone_device_info *device, hone_error *err)
{
    const hone_code *code = ref->kernel.code;
    hone_status status = HONE_OK;
    if (code == NULL) return HONE_OK;
    if (code->pack != NULL && code->pack->refusal != NULL)
        return hone_fail(err, code->pack->status, where, "%s", code->pack->refusal);
    if (device != NULL) status = check_target(ref->registry, code, device, err);
    if (call == NULL || status != HONE_OK) return status;
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; status == HONE_OK && i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL)
            status = check_tensor(ref, hone_signature_parameter(signature, i), tensor, hone_call_align(call, i), err);
    }
    return status == HONE_OK ? check_condition(ref->registry->allocator, code, call, device, err) : status;
}
