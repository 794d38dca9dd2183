// Kernels and algorithms in messages: by name, by value, or as a pack's folder.
#include "tune/wire/message.h"

#include "base/error.h"
#include "call/call.h"

#include <stddef.h>
#include <string.h>

enum { PATH_SIZE = 1024 };
enum { BY_NAME, BY_VALUE, BY_PACK }; // how a kernel is sent

static const char where[] = "tune.worker";

// Writes an address with the library or program that it lies in. It is passed as an integer, since functions and data
// differ in type only.
static void put_address(hone_buffer *out, uintptr_t address)
{
    char path[PATH_SIZE];
    bool known = address != 0 && hone_os_object_path((const void *)address, path, sizeof path);
    hone_wire_put_u64(out, address);
    hone_wire_put_text(out, known ? path : NULL);
}

static uintptr_t get_address(hone_wire_reader *reader, bool strict, const char *what, hone_error *err)
{
    char here[PATH_SIZE];
    uintptr_t address = (uintptr_t)hone_wire_get_u64(reader);
    const char *there = hone_wire_get_text(reader);
    if (address == 0 || !strict) return address;
    if (there != NULL && hone_os_object_path((const void *)address, here, sizeof here) && strcmp(here, there) == 0)
        return address;
    if (err->status == HONE_OK)
        hone_fail(
            err, HONE_UNSUPPORTED, where,
            "its %s was not there yet when the isolating process was made (in %s): load the library before the runtime "
            "is "
            "opened with HONE_RUNTIME_ZYGOTE, or tune with HONE_ISOLATION_IN_PROCESS",
            what, there != NULL ? there : "memory of no library");
    return 0;
}

static const hone_kernel_ref *reference_of(const hone_algorithm_entry *entry)
{
    const char *name = entry->algorithm.reference_kernel;
    return name != NULL && entry->algorithm.reference == NULL ? hone_kernel_by_name(entry, name, HONE_PLATFORM_NONE)
                                                              : NULL;
}

bool hone_message_is_told(const hone_algorithm_entry *entry)
{
    const hone_algorithm *algorithm = &entry->algorithm;
    const hone_kernel_ref *reference = reference_of(entry);
    return entry->builtin ||
           (algorithm->reference == NULL && algorithm->model == NULL && algorithm->make_input == NULL &&
            reference != NULL && hone_message_is_content(&reference->kernel));
}

void hone_message_put_algorithm(hone_buffer *out, const hone_algorithm_entry *entry, bool by_value)
{
    const hone_kernel_ref *reference = reference_of(entry);
    if (!entry->builtin) by_value = true;
    hone_wire_put_u8(out, reference != NULL);
    if (reference != NULL) hone_message_put_kernel(out, reference, by_value);
    hone_wire_put_u8(out, entry->builtin);
    hone_wire_put_u8(out, by_value);
    if (!by_value) {
        hone_wire_put_text(out, entry->name);
        hone_wire_put_text(out, entry->version);
        return;
    }
    const hone_algorithm *algorithm = &entry->algorithm;
    hone_wire_put_text(out, algorithm->signature);
    hone_wire_put_text(out, algorithm->independent);
    hone_wire_put(out, &algorithm->tolerance, sizeof algorithm->tolerance);
    hone_wire_put_u32(out, algorithm->special);
    put_address(out, (uintptr_t)algorithm->reference);
    put_address(out, (uintptr_t)algorithm->model);
    put_address(out, (uintptr_t)algorithm->make_input);
    put_address(out, (uintptr_t)algorithm->product);
}

static hone_status algorithm_by_name(
    hone_wire_reader *reader, const hone_kernel_reader *how, hone_algorithm *out, hone_error *err)
{
    const char *name = hone_wire_get_text(reader), *version = hone_wire_get_text(reader);
    hone_status status = hone_wire_check(reader, err);
    if (status != HONE_OK) return status;
    const hone_algorithm_entry *entry =
        name != NULL && how->registry != NULL ? hone_registry_find(how->registry, name, version) : NULL;
    if (entry == NULL)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the worker does not know %s@v%s: library and hone-worker differ in version",
            name != NULL ? name : "?", version != NULL ? version : "?");
    *out = entry->algorithm;
    return HONE_OK;
}

static void algorithm_by_value(hone_wire_reader *reader, bool strict, hone_algorithm *out, hone_error *err)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->signature = hone_wire_get_text(reader);
    out->independent = hone_wire_get_text(reader);
    hone_wire_get(reader, &out->tolerance, sizeof out->tolerance);
    out->special = hone_wire_get_u32(reader);
    out->reference = (hone_run_function *)get_address(reader, strict, "algorithm's reference", err);
    out->model = (void (*)(const hone_call *, hone_cost *))get_address(reader, strict, "algorithm's model", err);
    out->make_input = (bool (*)(const hone_call *, size_t, const hone_tensor *, uint64_t))get_address(
        reader, strict, "algorithm's make_input", err);
    out->product = (bool (*)(const hone_call *, hone_product *))get_address(reader, strict, "algorithm's product", err);
}

hone_status hone_message_get_algorithm(
    hone_wire_reader *reader,
    const hone_kernel_reader *how,
    hone_algorithm *out,
    bool *out_known,
    hone_kernel *out_reference,
    hone_error *err)
{
    hone_error local = {0};
    if (err == NULL) err = &local;
    err->status = HONE_OK;
    memset(out_reference, 0, sizeof *out_reference);
    if (hone_wire_get_u8(reader) != 0) {
        hone_status status = hone_message_get_kernel(reader, how, out_reference, err);
        if (status != HONE_OK) return hone_fail_prefix(err, status, "the reference");
    }
    *out_known = hone_wire_get_u8(reader) != 0;
    if (hone_wire_get_u8(reader) == 0) return algorithm_by_name(reader, how, out, err);
    algorithm_by_value(reader, how->strict, out, err);
    hone_status status = err->status;
    return reader->failed ? hone_wire_check(reader, err) : status;
}

bool hone_message_is_content(const hone_kernel *kernel)
{
    if (kernel->code == NULL) return false;
    if (kernel->code->pack != NULL) return true;
    return kernel->user == NULL && kernel->supports == NULL && kernel->heuristic == NULL &&
           kernel->candidates == NULL && kernel->prepare == NULL && kernel->release == NULL && kernel->run == NULL &&
           kernel->digest == NULL;
}

const char *hone_message_loose_part(const hone_kernel *kernel)
{
    char path[PATH_SIZE];
    const struct {
        uintptr_t address;
        const char *what;
    } parts[] = {
        {(uintptr_t)kernel->user, "user pointer"},        {(uintptr_t)kernel->supports, "supports function"},
        {(uintptr_t)kernel->prepare, "prepare function"}, {(uintptr_t)kernel->release, "release function"},
        {(uintptr_t)kernel->run, "run function"},         {(uintptr_t)kernel->digest, "digest function"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].address != 0 && !hone_os_object_path((const void *)parts[i].address, path, sizeof path))
            return parts[i].what;
    return NULL;
}

// The texts of a hone_code, in the same order for both ends. A file was read when the kernel was registered.
static const size_t code_texts[] = {
    offsetof(hone_code, source),    offsetof(hone_code, entry),       offsetof(hone_code, arguments),
    offsetof(hone_code, grid),      offsetof(hone_code, block),       offsetof(hone_code, cluster),
    offsetof(hone_code, shared),    offsetof(hone_code, constants),   offsetof(hone_code, options),
    offsetof(hone_code, condition), offsetof(hone_code, target),      offsetof(hone_code, scratch),
    offsetof(hone_code, finish),    offsetof(hone_code, finish_grid), offsetof(hone_code, finish_block)};
enum { CODE_TEXTS = sizeof code_texts / sizeof *code_texts };

static void put_code(hone_buffer *out, const hone_code *code)
{
    hone_wire_put_u8(out, code != NULL);
    if (code == NULL) return;
    for (size_t i = 0; i < CODE_TEXTS; i++)
        hone_wire_put_text(out, *(const char *const *)(const void *)((const char *)code + code_texts[i]));
    hone_wire_put_u32(out, code->align);
    hone_wire_put_u32(out, code->flags);
    hone_wire_put_u64(out, code->binary_size);
    hone_wire_put(out, code->binary, code->binary_size);
}

static const hone_code *get_code(hone_wire_reader *reader)
{
    if (hone_wire_get_u8(reader) == 0) return NULL;
    hone_code *code = hone_arena_alloc(reader->arena, sizeof *code);
    if (code == NULL) {
        reader->failed = reader->out_of_memory = true;
        return NULL;
    }
    code->struct_size = sizeof *code;
    for (size_t i = 0; i < CODE_TEXTS; i++)
        *(const char **)(void *)((char *)code + code_texts[i]) = hone_wire_get_text(reader);
    code->align = hone_wire_get_u32(reader);
    code->flags = hone_wire_get_u32(reader);
    code->binary_size = hone_wire_get_u64(reader);
    if (code->binary_size == 0) return code;
    // The size of the message limits the allocation.
    char *bytes = code->binary_size < reader->size ? hone_arena_alloc(reader->arena, code->binary_size + 1) : NULL;
    if (bytes == NULL) {
        reader->failed = true;
        return NULL;
    }
    hone_wire_get(reader, bytes, code->binary_size);
    code->binary = bytes;
    return code;
}

void hone_message_put_kernel(hone_buffer *out, const hone_kernel_ref *ref, bool by_value)
{
    const hone_kernel *kernel = &ref->kernel;
    const hone_pack_kernel *pack = kernel->code != NULL ? kernel->code->pack : NULL;
    if (!ref->builtin && hone_message_is_content(kernel)) by_value = true;
    hone_wire_put_u8(out, pack != NULL ? BY_PACK : by_value ? BY_VALUE : BY_NAME);
    hone_wire_put_text(out, ref->algorithm->name);
    hone_wire_put_text(out, ref->algorithm->version);
    hone_wire_put_text(out, kernel->name);
    hone_wire_put_u32(out, (uint32_t)kernel->platform);
    hone_wire_put_u32(out, (uint32_t)kernel->backend);
    hone_wire_put_text(out, kernel->revision);
    if (pack != NULL) hone_wire_put_text(out, pack->folder);
    if (pack != NULL || !by_value) return;
    hone_wire_put_text(out, kernel->algorithm);
    hone_wire_put_text(out, kernel->signature);
    hone_wire_put_text(out, kernel->space);
    hone_wire_put_u64(out, kernel->needs);
    hone_wire_put_i64(out, kernel->priority);
    put_address(out, (uintptr_t)kernel->user);
    put_address(out, (uintptr_t)kernel->supports);
    put_address(out, (uintptr_t)kernel->prepare);
    put_address(out, (uintptr_t)kernel->release);
    put_address(out, (uintptr_t)kernel->run);
    put_address(out, (uintptr_t)kernel->digest);
    put_code(out, kernel->code);
}

static hone_status find_kernel(
    const hone_kernel_reader *how, const char *algorithm, const char *version, hone_kernel *wanted, hone_error *err)
{
    size_t count = 0;
    const hone_algorithm_entry *entry =
        algorithm != NULL && how->registry != NULL ? hone_registry_find(how->registry, algorithm, version) : NULL;
    const hone_kernel_ref *const *kernels = entry != NULL ? hone_registry_list(entry, &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        const hone_kernel *kernel = &kernels[i]->kernel;
        if (kernel->platform != wanted->platform || kernel->backend != wanted->backend ||
            strcmp(kernel->name, wanted->name) != 0)
            continue;
        if (!hone_same_revision(kernel->revision, wanted->revision))
            return hone_fail(
                err, HONE_INCOMPATIBLE, where, "the worker has revision %s of kernel %s, the library %s",
                kernel->revision != NULL ? kernel->revision : "1", wanted->name,
                wanted->revision != NULL ? wanted->revision : "1");
        *wanted = *kernel;
        return HONE_OK;
    }
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "the worker does not know kernel %s: library and hone-worker differ in version",
        wanted->name);
}

static hone_status kernel_of_pack(
    const hone_kernel_reader *how, const char *folder, const char *algorithm, hone_kernel *wanted, hone_error *err)
{
    const hone_kernel *found = NULL;
    if (how->packs == NULL || folder == NULL || algorithm == NULL || wanted->revision == NULL)
        return hone_fail(err, HONE_IO, where, "a kernel of a pack came without its pack");
    hone_status status = hone_pack_shelf_find(
        how->packs, folder, algorithm, wanted->name, wanted->platform, wanted->revision, &found, err);
    if (status != HONE_OK) return status;
    *wanted = *found;
    // The tuner has called supports already, and sends only configs that are to be tried.
    wanted->supports = NULL;
    return HONE_OK;
}

static void kernel_by_value(hone_wire_reader *reader, bool strict, hone_kernel *out, hone_error *err)
{
    out->struct_size = sizeof *out;
    out->algorithm = hone_wire_get_text(reader);
    out->signature = hone_wire_get_text(reader);
    out->space = hone_wire_get_text(reader);
    out->needs = hone_wire_get_u64(reader);
    out->priority = hone_wire_get_i64(reader);
    out->user = (void *)get_address(reader, strict, "user pointer", err);
    out->supports = (bool (*)(const hone_kernel *, const hone_call *, hone_error *))get_address(
        reader, strict, "supports function", err);
    out->prepare = (hone_status(*)(const hone_plan *, void **, size_t *, hone_error *))get_address(
        reader, strict, "prepare function", err);
    out->release = (void (*)(const hone_kernel *, void *))get_address(reader, strict, "release function", err);
    out->run = (hone_run_function *)get_address(reader, strict, "run function", err);
    out->digest = (uint64_t(*)(const hone_plan *))get_address(reader, strict, "digest function", err);
    out->code = get_code(reader);
}

hone_status hone_message_get_kernel(
    hone_wire_reader *reader, const hone_kernel_reader *how, hone_kernel *out, hone_error *err)
{
    hone_error local = {0};
    if (err == NULL) err = &local;
    err->status = HONE_OK;
    memset(out, 0, sizeof *out);
    const uint8_t by = hone_wire_get_u8(reader);
    const char *algorithm = hone_wire_get_text(reader), *version = hone_wire_get_text(reader);
    out->name = hone_wire_get_text(reader);
    out->platform = (hone_platform)hone_wire_get_u32(reader);
    out->backend = (hone_backend)hone_wire_get_u32(reader);
    out->revision = hone_wire_get_text(reader);
    const char *folder = by == BY_PACK ? hone_wire_get_text(reader) : NULL;
    if (by == BY_VALUE) kernel_by_value(reader, how->strict, out, err);
    hone_status status = err->status;
    if (reader->failed) return hone_wire_check(reader, err);
    if (out->name == NULL) return hone_fail(err, HONE_IO, where, "a kernel came without a name");
    if (by == BY_PACK) return kernel_of_pack(how, folder, algorithm, out, err);
    return by == BY_VALUE ? status : find_kernel(how, algorithm, version, out, err);
}
