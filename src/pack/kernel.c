// One of "kernels" in pack.json: who it is, then all that is said of it.
#include "pack/reading.h"

#include "base/error.h"
#include "hone/describe.h"
#include "os/os.h"
#include "os/tiles.h"
#include "pack/includes.h"
#include "pack/needed.h"
#include "registry/names.h"

#include <stdlib.h>
#include <string.h>

static const char fields[] =
    "algorithm name platform backend priority signature needs space target align folder files variants "
    "producer description " HONE_PACK_CODE_FIELDS;

enum { NAME_LIMIT = 200, TEXT_LIMIT = 64 << 10 };

// Who it is -----------------------------------------------------------------------------------------------------------

static hone_status need(const hone_pack_reading *r, const char *field, const char *text)
{
    return text != NULL && text[0] != '\0' ? HONE_OK : hone_pack_fail(r, HONE_INVALID_ARGUMENT, field, "is missing");
}

static hone_status read_name(hone_pack_reading *r, const json_t *object, hone_pack_kernel *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    hone_status status = hone_pack_get_text(r, object, "name", NAME_LIMIT, &out->name);
    if (status == HONE_OK) status = need(r, "name", out->name);
    if (status == HONE_OK && (strlen(out->name) >= HONE_NAME_SIZE || strspn(out->name, letters) != strlen(out->name)))
        status = hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "name",
            "'%.80s' is not a valid name of a kernel: 1 to %d letters, digits and _ . + -", out->name,
            HONE_NAME_SIZE - 1);
    if (status != HONE_OK) return status;
    hone_pack_leave(r);
    r->kernel = out->name;
    status = hone_pack_get_text(r, object, "algorithm", NAME_LIMIT, &out->algorithm);
    return status == HONE_OK ? need(r, "algorithm", out->algorithm) : status;
}

static hone_status read_platform(const hone_pack_reading *r, const json_t *object, hone_pack_kernel *out)
{
    const char *platform = NULL, *backend = NULL;
    hone_error why = {.message = ""};
    hone_status status = hone_pack_get_text(r, object, "platform", NAME_LIMIT, &platform);
    if (status == HONE_OK) status = need(r, "platform", platform);
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "backend", NAME_LIMIT, &backend);
    if (status == HONE_OK) status = need(r, "backend", backend);
    if (status != HONE_OK) return status;
    if (hone_platform_by_name(r->platforms->find, platform, &out->platform, &why) != HONE_OK ||
        out->platform >= HONE_PLATFORM_COUNT || out->platform == HONE_PLATFORM_NONE)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "platform", "%s",
            why.message[0] != '\0' ? why.message : "is not a platform that kernels have");
    if (hone_backend_parse(backend, &out->backend, &why) != HONE_OK || out->backend == HONE_BACKEND_NONE)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "backend", "%s",
            why.message[0] != '\0' ? why.message : "is not a backend that kernels are for");
    return HONE_OK;
}

// What is said of it --------------------------------------------------------------------------------------------------

static bool find_feature(const char *name, uint64_t *out)
{
    for (int bit = 0; bit < 64; bit++) {
        char text[64];
        hone_cpu_features_text((uint64_t)1 << bit, "", text, sizeof text);
        if (strcmp(text, name) != 0) continue;
        *out |= (uint64_t)1 << bit;
        return strncmp(text, "bit", 3) != 0;
    }
    return false;
}

static hone_status read_needs(const hone_pack_reading *r, const json_t *object, uint64_t *out)
{
    const json_t *list = NULL, *item;
    size_t i;
    hone_status status = hone_pack_get_array(r, object, "needs", 64, &list);
    if (status != HONE_OK || list == NULL) return status;
    json_array_foreach(list, i, item)
    {
        const char *name = json_is_string(item) ? json_string_value(item) : hone_pack_kind_name(item);
        char known[512];
        if (find_feature(name, out)) continue;
        hone_cpu_features_text(
            HONE_CPU_SSE4_2 | HONE_CPU_AVX | HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C | HONE_CPU_AVX512F |
                HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ | HONE_CPU_AVX512_BF16 |
                HONE_CPU_AVX512_VNNI | HONE_CPU_AMX_BF16 | HONE_CPU_AMX_INT8 | HONE_CPU_NEON,
            ", ", known, sizeof known);
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "needs", "'%.40s' is no instruction set, expected one of %s", name, known);
    }
    return HONE_OK;
}

static hone_status read_objects(const hone_pack_reading *r, const json_t *object, hone_pack_kernel *out)
{
    const json_t *facts = NULL, *producer = NULL;
    hone_status status = hone_pack_get_object(r, object, "facts", &facts);
    if (status == HONE_OK) status = hone_pack_get_object(r, object, "producer", &producer);
    if (status != HONE_OK) return status;
    out->facts = facts != NULL ? hone_pack_dump(r->pack, facts) : "{}";
    if (producer != NULL) out->producer = hone_pack_dump(r->pack, producer);
    return out->facts != NULL && (producer == NULL || out->producer != NULL) ? HONE_OK : hone_pack_fail_memory(r);
}

// Of the kernel's text, else of its variants' configs.
static hone_status read_space(
    const hone_pack_reading *r, const json_t *object, hone_kernel *kernel, hone_pack_kernel *details)
{
    hone_error why = {.message = ""};
    const json_t *variants = json_object_get(object, "variants");
    hone_space *space = NULL;
    hone_status status = hone_pack_get_joined(r, object, "space", "\n", &kernel->space);
    if (status == HONE_OK && kernel->space == NULL && json_is_array(variants) && json_array_size(variants) > 0)
        status = json_array_size(variants) > HONE_PACK_VARIANTS
                     ? hone_pack_fail(
                           r, HONE_INVALID_ARGUMENT, "variants", "has %zu items, expected at most %d",
                           json_array_size(variants), HONE_PACK_VARIANTS)
                     : hone_pack_space_of(r, variants, &kernel->space);
    if (status == HONE_OK && json_is_array(variants) && json_array_size(variants) == 0)
        status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "variants", "is empty: leave it out");
    if (status != HONE_OK) return status;
    status = hone_space_parse(r->pack->allocator, kernel->space, &space, &why);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    if (status != HONE_OK) return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "space", "%s", why.message);
    details->space = space;
    return HONE_OK;
}

// Files beside the code: headers of a source, what a loader reads besides.
static hone_status read_files(hone_pack_reading *r, const json_t *object, hone_pack_files *list)
{
    const json_t *array = NULL, *item;
    size_t i, index;
    bool given;
    hone_status status = hone_pack_get_array(r, object, "files", HONE_PACK_FILES, &array);
    if (status != HONE_OK || array == NULL) return status;
    json_array_foreach(array, i, item)
    {
        hone_pack_enter(r, "files", i);
        if (!json_is_object(item))
            return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "", "is %s, expected an object", hone_pack_kind_name(item));
        status = hone_pack_check_fields(r, item, "file sha256");
        if (status == HONE_OK) status = hone_pack_get_file(r, item, list, &index, &given);
        if (status == HONE_OK && !given) status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "file", "is missing");
        if (status != HONE_OK) return status;
    }
    hone_pack_leave(r);
    return HONE_OK;
}

// The digest of all that is said of the kernel, digests of its files among it, but for what changes no result.
static hone_status read_revision(const hone_pack_reading *r, const json_t *object, hone_kernel *kernel)
{
    static const char *const without[] = {"priority", "producer", "description"};
    char key[HONE_KEY_SIZE];
    json_t *copy = json_copy((json_t *)(uintptr_t)object);
    if (copy == NULL) return hone_pack_fail_memory(r);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        json_object_del(copy, without[i]);
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(copy);
    if (text == NULL) return hone_pack_fail_memory(r);
    hone_hash_key(text, strlen(text), key);
    free(text);
    kernel->revision = hone_arena_text(&r->pack->arena, key, strlen(key));
    return kernel->revision != NULL ? HONE_OK : hone_pack_fail_memory(r);
}

static bool is_source(const char *name)
{
    static const char *const ends[] = {".c", ".h", ".cu", ".cuh", ".cl", ".cc", ".cpp", ".hpp", ".inc"};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && i < sizeof ends / sizeof *ends; i++)
        if (strcmp(end, ends[i]) == 0) return true;
    return false;
}

// What a source includes from the pack's own folder, and what a library needs of it, listed or not.
static hone_status read_company(const hone_pack_reading *r, const hone_pack_file *file, hone_buffer *out)
{
    char folder[4096];
    hone_error why = {.message = ""};
    hone_buffer text;
    hone_buffer_init(&text, out->allocator);
    hone_status status = hone_pack_read_file(file, &text, &why);
    if (status == HONE_OK && hone_os_folder_of(file->path, folder, sizeof folder)) {
        if (is_source(file->name))
            hone_includes_digest_within(hone_buffer_string(&text), folder, r->pack->folder, out);
        else
            hone_needed_digest_within(&text, folder, r->pack->folder, out);
    }
    hone_buffer_deinit(&text);
    if (status == HONE_OUT_OF_MEMORY || out->failed) return hone_pack_fail_memory(r);
    return status == HONE_OK ? HONE_OK : hone_pack_fail(r, status, "file", "%s", why.message);
}

// A kernel whose header changes, or a library that its own needs, is another kernel.
static hone_status add_company_to_revision(
    const hone_pack_reading *r, hone_kernel *kernel, const hone_pack_kernel *details)
{
    char key[HONE_KEY_SIZE];
    hone_buffer all;
    hone_buffer_init(&all, r->pack->allocator);
    hone_buffer_format(&all, "%s\n", kernel->revision);
    const size_t bare = all.size;
    // The text of the kernel has no digest of what was chosen in a folder.
    for (size_t i = 0; details->chosen != NULL && i < details->file_count; i++)
        hone_buffer_format(&all, "%s\n", details->files[i].sha256);
    hone_status status = all.failed ? hone_pack_fail_memory(r) : HONE_OK;
    for (size_t i = 0; i < details->file_count && status == HONE_OK; i++)
        status = read_company(r, &details->files[i], &all);
    if (status == HONE_OK && all.size > bare) {
        hone_hash_key(hone_buffer_string(&all), all.size, key);
        kernel->revision = hone_arena_text(&r->pack->arena, key, strlen(key));
        if (kernel->revision == NULL) status = hone_pack_fail_memory(r);
    }
    hone_buffer_deinit(&all);
    return status;
}

static hone_status read_numbers(const hone_pack_reading *r, const json_t *object, hone_kernel *kernel, hone_code *code)
{
    int64_t priority = 0, align = 0;
    hone_status status = hone_pack_get_integer(r, object, "priority", INT64_MIN, INT64_MAX, &priority);
    if (status == HONE_OK) status = hone_pack_get_integer(r, object, "align", 1, 4096, &align);
    if (status == HONE_OK && (align & (align - 1)) != 0)
        status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "align", "is %d, expected a power of two", (int)align);
    kernel->priority = priority;
    code->align = (uint32_t)align;
    return status;
}

// The platform's word on each variant.
static hone_status ask_judge(hone_pack_reading *r, const hone_pack_kernel *details)
{
    for (size_t i = 0; r->platforms->judge != NULL && i < details->variant_count; i++) {
        hone_error why = {.message = ""};
        if (details->is_listed) hone_pack_enter(r, "variants", i);
        hone_status status = r->platforms->judge(details, &details->variants[i], &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
        if (status != HONE_OK)
            return hone_pack_fail(r, status, "", "%s", why.message[0] != '\0' ? why.message : hone_status_name(status));
    }
    hone_pack_leave(r);
    return HONE_OK;
}

static hone_status read_body(
    hone_pack_reading *r, const json_t *object, hone_kernel *kernel, hone_pack_kernel *details, hone_code *code)
{
    hone_pack_files list = {.files = NULL};
    hone_status status = hone_pack_check_fields(r, object, fields);
    if (status == HONE_OK) status = read_numbers(r, object, kernel, code);
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "signature", TEXT_LIMIT, &kernel->signature);
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "target", NAME_LIMIT, &code->target);
    if (status == HONE_OK) status = read_needs(r, object, &kernel->needs);
    if (status == HONE_OK) status = read_objects(r, object, details);
    if (status == HONE_OK) status = read_space(r, object, kernel, details);
    if (status == HONE_OK) status = hone_pack_read_code(r, object, code);
    if (status == HONE_OK) status = read_files(r, object, &list);
    if (status == HONE_OK) status = hone_pack_read_variants(r, object, details, code, &list);
    details->files = list.files;
    details->file_count = list.count;
    if (status == HONE_OK) status = add_company_to_revision(r, kernel, details);
    return status == HONE_OK ? ask_judge(r, details) : status;
}

// -------------------------------------------------------------------------------------------------------------------

// It stands in the registry by its name, so that whoever looks for it finds out why it does not run.
static hone_status keep_refusal(
    const hone_pack_reading *r, hone_kernel *kernel, hone_pack_kernel *details, hone_status status)
{
    details->status = status;
    details->refusal = hone_arena_text(&r->pack->arena, r->err->message, strlen(r->err->message));
    kernel->space = kernel->signature = NULL;
    kernel->candidates = NULL;
    kernel->supports = NULL;
    return details->refusal != NULL ? HONE_OK : hone_pack_fail_memory(r);
}

hone_status hone_pack_read_kernel(
    hone_pack_reading *r, const json_t *object, hone_kernel *kernel, hone_pack_kernel *details)
{
    details->pack = r->pack->name;
    details->folder = r->pack->folder;
    details->facts = "{}";
    if (!json_is_object(object))
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "", "is %s, expected an object", hone_pack_kind_name(object));
    hone_code *code = hone_arena_alloc(&r->pack->arena, sizeof *code);
    if (code == NULL) return hone_pack_fail_memory(r);
    hone_status status = read_name(r, object, details);
    if (status == HONE_OK) status = read_platform(r, object, details);
    if (status == HONE_OK) status = read_revision(r, object, kernel);
    if (status != HONE_OK) return status;
    *code = (hone_code){HONE_CODE, .pack = details};
    kernel->struct_size = sizeof *kernel;
    kernel->algorithm = details->algorithm;
    kernel->name = details->name;
    kernel->platform = details->platform;
    kernel->backend = details->backend;
    kernel->code = code;
    status = read_body(r, object, kernel, details, code);
    if (status == HONE_OUT_OF_MEMORY) return status;
    if (status != HONE_OK) return keep_refusal(r, kernel, details, status);
    if (details->is_listed) {
        kernel->candidates = hone_pack_list_variant;
        kernel->supports = hone_pack_supports;
    }
    if (details->variants[0].file != NULL && !details->is_listed) code->file = details->variants[0].file->path;
    return HONE_OK;
}
