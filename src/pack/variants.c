// The code of a kernel of a pack: its own, and that of each variant.
#include "pack/reading.h"

#include "base/error.h"
#include "space/space.h"
#include "space/term.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char variant_fields[] = "config " HONE_PACK_CODE_FIELDS;

typedef struct code_field {
    const char *name;
    size_t offset;
    const char *between; // of an array's items
    size_t terms;        // the most expressions; 0: it is no list of expressions
} code_field;

static const code_field code_fields[] = {
    {"entry", offsetof(hone_code, entry), " ", 0},      {"arguments", offsetof(hone_code, arguments), ", ", 0},
    {"grid", offsetof(hone_code, grid), ", ", 3},       {"block", offsetof(hone_code, block), ", ", 3},
    {"cluster", offsetof(hone_code, cluster), ", ", 3}, {"shared", offsetof(hone_code, shared), ", ", 1},
    {"scratch", offsetof(hone_code, scratch), ", ", 1}, {"constants", offsetof(hone_code, constants), ", ", 0},
    {"options", offsetof(hone_code, options), " ", 0},  {"condition", offsetof(hone_code, condition), " and ", 1},
};

static hone_status read_flags(const hone_pack_reading *r, const json_t *object, uint32_t *out)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"cooperative", HONE_CODE_COOPERATIVE}, {"programmatic_launch", HONE_CODE_PROGRAMMATIC_LAUNCH}};
    const json_t *list = NULL, *item;
    size_t i;
    hone_status status = hone_pack_get_array(r, object, "flags", 8, &list);
    if (status != HONE_OK || list == NULL) return status;
    *out = 0;
    json_array_foreach(list, i, item)
    {
        const char *name = json_is_string(item) ? json_string_value(item) : hone_pack_kind_name(item);
        size_t at = 0;
        while (at < sizeof flags / sizeof *flags && strcmp(flags[at].name, name) != 0)
            at++;
        if (at == sizeof flags / sizeof *flags)
            return hone_pack_fail(
                r, HONE_INVALID_ARGUMENT, "flags", "'%.60s' is no flag, expected cooperative or programmatic_launch",
                name);
        *out |= flags[at].flag;
    }
    return HONE_OK;
}

hone_status hone_pack_read_code(const hone_pack_reading *r, const json_t *object, hone_code *out)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < sizeof code_fields / sizeof *code_fields; i++) {
        const code_field *field = &code_fields[i];
        const char **text = (const char **)(void *)((char *)out + field->offset);
        status = hone_pack_get_joined(r, object, field->name, field->between, text);
        if (status == HONE_OK && field->terms > 0) status = hone_pack_check_terms(r, field->name, *text, field->terms);
    }
    return status == HONE_OK ? read_flags(r, object, &out->flags) : status;
}

// The parts of a variant that are no fields of a hone_code. A file that is left out is the kernel's.
static hone_status read_rest(
    const hone_pack_reading *r,
    const json_t *object,
    const hone_pack_kernel *details,
    hone_pack_files *list,
    size_t *index,
    bool *has_file,
    const char **out_facts)
{
    size_t own = 0;
    bool given = false;
    const json_t *facts = NULL;
    hone_status status = hone_pack_get_file(r, object, list, &own, &given);
    if (status == HONE_OK && given) {
        *index = own;
        *has_file = true;
    }
    if (status == HONE_OK) status = hone_pack_get_object(r, object, "facts", &facts);
    if (status != HONE_OK) return status;
    *out_facts = facts != NULL ? hone_pack_dump(r->pack, facts) : details->facts;
    return *out_facts != NULL ? HONE_OK : hone_pack_fail_memory(r);
}

static hone_status read_config(
    const hone_pack_reading *r, const json_t *object, const hone_space *space, hone_config *out)
{
    const json_t *config = NULL;
    hone_error why = {.message = ""};
    hone_status status = hone_pack_get_object(r, object, "config", &config);
    if (status != HONE_OK) return status;
    if (config == NULL) return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "config", "is missing, expected an object");
    char *text = json_dumps(config, JSON_COMPACT);
    if (text == NULL) return hone_pack_fail_memory(r);
    status = hone_config_from_json(space, text, strlen(text), out, &why);
    free(text);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    return status == HONE_OK ? HONE_OK : hone_pack_fail(r, HONE_INVALID_ARGUMENT, "config", "%s", why.message);
}

// A variant as it is read: its file by number, because the array of files moves while it grows.
typedef struct pending {
    size_t file;
    bool has_file;
} pending;

static hone_status read_variant(
    const hone_pack_reading *r,
    const json_t *object,
    const hone_pack_kernel *details,
    const hone_code *code,
    hone_pack_files *list,
    hone_pack_variant *out,
    pending *file)
{
    if (!json_is_object(object))
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "", "is %s, expected an object", hone_pack_kind_name(object));
    out->code = *code;
    hone_status status = hone_pack_check_fields(r, object, variant_fields);
    if (status == HONE_OK) status = read_config(r, object, details->space, &out->config);
    if (status == HONE_OK) status = hone_pack_read_code(r, object, &out->code);
    if (status == HONE_OK) status = read_rest(r, object, details, list, &file->file, &file->has_file, &out->facts);
    return status;
}

static hone_status check_distinct(const hone_pack_reading *r, const hone_pack_variant *variants, size_t last)
{
    for (size_t i = 0; i < last; i++)
        if (hone_config_equal(&variants[last].config, &variants[i].config))
            return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "config", "is that of variants[%zu], too", i);
    return HONE_OK;
}

static void set_files(hone_pack_variant *variants, size_t count, const pending *files, const hone_pack_files *list)
{
    for (size_t i = 0; i < count; i++) {
        if (!files[i].has_file) continue;
        variants[i].file = &list->files[files[i].file];
        variants[i].code.file = variants[i].file->path;
    }
}

static hone_status read_list(
    hone_pack_reading *r,
    const json_t *array,
    const hone_pack_kernel *details,
    const hone_code *code,
    hone_pack_files *list,
    hone_pack_variant *variants,
    pending *files)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < details->variant_count; i++) {
        hone_pack_enter(r, "variants", i);
        files[i] = files[details->variant_count]; // the kernel's own
        status = read_variant(r, json_array_get(array, i), details, code, list, &variants[i], &files[i]);
        if (status == HONE_OK) status = check_distinct(r, variants, i);
    }
    hone_pack_leave(r);
    return status;
}

hone_status hone_pack_read_variants(
    hone_pack_reading *r, const json_t *object, hone_pack_kernel *details, const hone_code *code, hone_pack_files *list)
{
    const json_t *array = NULL;
    hone_status status = hone_pack_get_array(r, object, "variants", HONE_PACK_VARIANTS, &array);
    if (status != HONE_OK) return status;
    const size_t count = array != NULL ? json_array_size(array) : 1;
    hone_pack_variant *variants = hone_arena_array(&r->pack->arena, count, sizeof *variants);
    pending *files = hone_arena_array(&r->pack->arena, count + 1, sizeof *files);
    if (variants == NULL || files == NULL) return hone_pack_fail_memory(r);
    status = hone_pack_get_variant_file(r, object, details, list, &files[count].file, &files[count].has_file);
    if (status == HONE_OK && !files[count].has_file)
        status = hone_pack_get_file(r, object, list, &files[count].file, &files[count].has_file);
    if (status != HONE_OK) return status;
    details->variant_count = count;
    details->is_listed = array != NULL;
    if (array != NULL) {
        status = read_list(r, array, details, code, list, variants, files);
    } else {
        variants[0] = (hone_pack_variant){.code = *code, .facts = details->facts};
        files[0] = files[1];
    }
    set_files(variants, count, files, list);
    details->variants = variants;
    return status;
}

// Calls ---------------------------------------------------------------------------------------------------------------

// Whether the variant's own condition, which may read its config, holds for a call.
static bool takes(const hone_pack_kernel *kernel, const hone_pack_variant *variant, const hone_call *call)
{
    const hone_term_scope scope = {.space = kernel->space, .config = variant->config.values, .call = call};
    hone_scalar holds;
    if (variant->code.condition == NULL) return true;
    return hone_term_of(hone_allocator_system(), variant->code.condition, &scope, &holds, NULL) == HONE_OK &&
           hone_scalar_truth(&holds);
}

bool hone_pack_list_variant(const hone_kernel *kernel, const hone_call *call, size_t index, hone_config *out)
{
    const hone_pack_kernel *details = kernel->code->pack;
    for (size_t i = 0; i < details->variant_count; i++) {
        if (!takes(details, &details->variants[i], call) || index-- > 0) continue;
        *out = details->variants[i].config;
        return true;
    }
    return false;
}

bool hone_pack_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_pack_kernel *details = kernel->code->pack;
    hone_config config;
    if (hone_pack_list_variant(kernel, call, 0, &config)) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, "pack.supports", "none of its %zu variants takes the call: %.120s",
        details->variant_count, details->variants[0].code.condition);
    return false;
}
