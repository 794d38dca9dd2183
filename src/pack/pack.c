// A pack from its folder to its kernels.
#include "pack/reading.h"

#include "base/error.h"
#include "base/json_text.h"
#include "os/os.h"
#include "os/plain_file.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, NAME_LIMIT = 200, TEXT_LIMIT = 64 << 10 };

static const char where[] = "pack.open";
static const char root_fields[] = "hone_pack name version description producer algorithms foreign kernels";
static const char algorithm_fields[] = "signature tolerance independent special reference description";

hone_status hone_pack_note(
    hone_kernel_pack *pack, const char *algorithm, const char *kernel, hone_status status, const char *reason)
{
    if (pack->problem_count == pack->problem_capacity) {
        const size_t capacity = pack->problem_capacity > 0 ? 2 * pack->problem_capacity : 8;
        hone_pack_problem *grown = hone_arena_array(&pack->arena, capacity, sizeof *grown);
        if (grown == NULL) return HONE_OUT_OF_MEMORY;
        if (pack->problem_count > 0) memcpy(grown, pack->problems, pack->problem_count * sizeof *grown);
        pack->problems = grown;
        pack->problem_capacity = capacity;
    }
    const char *copy = hone_arena_text(&pack->arena, reason, strlen(reason));
    if (copy == NULL) return HONE_OUT_OF_MEMORY;
    pack->problems[pack->problem_count++] = (hone_pack_problem){
        .algorithm = algorithm != NULL ? algorithm : "",
        .kernel = kernel != NULL ? kernel : "",
        .status = status,
        .reason = copy};
    return HONE_OK;
}

// Algorithms ----------------------------------------------------------------------------------------------------------

static hone_status read_tolerance(hone_pack_reading *r, const json_t *object, hone_tolerance *out)
{
    static const char *const names[] = {"absolute", "relative", "scale"};
    double *const fields[] = {&out->absolute, &out->relative, &out->scale};
    const json_t *tolerance = NULL;
    hone_status status = hone_pack_get_object(r, object, "tolerance", &tolerance);
    if (status != HONE_OK || tolerance == NULL) return status;
    status = hone_pack_check_fields(r, tolerance, "absolute relative scale");
    for (size_t i = 0; status == HONE_OK && i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(tolerance, names[i]);
        if (value == NULL) continue;
        *fields[i] = json_number_value(value);
        if (!json_is_number(value) || !(*fields[i] >= 0) || *fields[i] > 1e300)
            status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "tolerance", "%s is not a number of 0 or more", names[i]);
    }
    return status;
}

// "small infinity nan": HONE_SPECIAL_* by their names.
static hone_status read_special(hone_pack_reading *r, const json_t *object, uint32_t *out)
{
    static const char *const names[] = {"small", "lowest", "minus_infinity", "infinity", "nan", "everywhere"};
    static_assert(HONE_SPECIAL_EVERYWHERE == 1 << (sizeof names / sizeof *names - 1), "a name for each");
    const char *text = NULL;
    hone_status status = hone_pack_get_text(r, object, "special", NAME_LIMIT, &text);
    for (const char *at = text != NULL ? text : ""; status == HONE_OK && *(at += strspn(at, " ")) != '\0';) {
        const hone_view word = {at, strcspn(at, " ")};
        uint32_t bit = 0;
        for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
            if (hone_view_is(word, names[i])) bit = 1u << i;
        if (bit == 0)
            status = hone_pack_fail(
                r, HONE_INVALID_ARGUMENT, "special",
                "names '%.*s': expected words of small, lowest, minus_infinity, infinity, nan, everywhere",
                (int)word.size, word.data);
        *out |= bit;
        at += word.size;
    }
    return status;
}

static hone_status read_algorithm(hone_pack_reading *r, const json_t *object, hone_algorithm *out)
{
    if (!json_is_object(object))
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "", "is %s, expected an object", hone_pack_kind_name(object));
    hone_signature *signature = NULL;
    hone_error why = {.message = ""};
    hone_status status = hone_pack_check_fields(r, object, algorithm_fields);
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "signature", TEXT_LIMIT, &out->signature);
    if (status == HONE_OK && out->signature == NULL)
        status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "signature", "is missing");
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "independent", NAME_LIMIT, &out->independent);
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "reference", NAME_LIMIT, &out->reference_kernel);
    if (status == HONE_OK) status = read_special(r, object, &out->special);
    if (status == HONE_OK) status = read_tolerance(r, object, &out->tolerance);
    if (status != HONE_OK) return status;
    status = hone_signature_parse(r->pack->allocator, out->signature, &signature, &why);
    hone_signature_release(&signature);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    return status == HONE_OK ? HONE_OK : hone_pack_fail(r, HONE_INVALID_ARGUMENT, "signature", "%s", why.message);
}

static hone_status read_algorithms(hone_pack_reading *r, const json_t *root)
{
    const json_t *list = NULL, *item;
    size_t i;
    hone_kernel_pack *pack = r->pack;
    hone_status status = hone_pack_get_array(r, root, "algorithms", HONE_PACK_ALGORITHMS, &list);
    if (status != HONE_OK || list == NULL) return status;
    pack->algorithms = hone_arena_array(&pack->arena, json_array_size(list), sizeof *pack->algorithms);
    if (pack->algorithms == NULL) return hone_pack_fail_memory(r);
    json_array_foreach(list, i, item)
    {
        hone_algorithm *one = &pack->algorithms[pack->algorithm_count];
        hone_algorithm_init(one);
        hone_pack_enter(r, "algorithms", i);
        status = read_algorithm(r, item, one);
        if (status == HONE_OK) pack->algorithm_count++;
        if (status == HONE_OUT_OF_MEMORY) return status;
        if (status != HONE_OK && hone_pack_note(pack, NULL, NULL, status, r->err->message) != HONE_OK)
            return hone_pack_fail_memory(r);
    }
    hone_pack_leave(r);
    return HONE_OK;
}

// Rows that hone cannot read end the pack: without them its kernels would be found by nobody.
static hone_status read_foreign(hone_pack_reading *r, const json_t *root)
{
    const json_t *list = NULL;
    hone_foreign *rows = NULL;
    hone_error why = {.message = ""};
    hone_status status = hone_pack_get_array(r, root, "foreign", HONE_PACK_FOREIGN, &list);
    if (status != HONE_OK || list == NULL) return status;
    r->pack->foreign = hone_pack_dump(r->pack, list);
    if (r->pack->foreign == NULL) return hone_pack_fail_memory(r);
    status = hone_foreign_read(&r->pack->allocator, r->pack->foreign, strlen(r->pack->foreign), &rows, &why);
    hone_foreign_release(&rows);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    return status == HONE_OK ? HONE_OK : hone_pack_fail(r, HONE_INVALID_ARGUMENT, "foreign", "%s", why.message);
}

// Kernels -------------------------------------------------------------------------------------------------------------

static bool is_twice(const hone_kernel_pack *pack, const hone_pack_kernel *last)
{
    for (size_t i = 0; i < pack->count; i++) {
        const hone_pack_kernel *other = &pack->details[i];
        if (other->platform == last->platform && other->backend == last->backend &&
            strcmp(other->name, last->name) == 0 && strcmp(other->algorithm, last->algorithm) == 0)
            return true;
    }
    return false;
}

static void release_space(hone_pack_kernel *details)
{
    hone_space *space = (hone_space *)(uintptr_t)details->space;
    hone_space_release(&space);
    details->space = NULL;
}

static hone_status read_kernels(hone_pack_reading *r, const json_t *root)
{
    const json_t *list = NULL, *item;
    size_t i;
    hone_kernel_pack *pack = r->pack;
    hone_status status = hone_pack_get_array(r, root, "kernels", HONE_PACK_KERNELS, &list);
    const bool empty = list == NULL || json_array_size(list) == 0;
    if (status == HONE_OK && empty && pack->foreign == NULL)
        status = hone_pack_fail(r, HONE_CORRUPT, "kernels", "is missing or empty: a pack has at least one");
    if (status != HONE_OK || empty) return status;
    pack->kernels = hone_arena_array(&pack->arena, json_array_size(list), sizeof *pack->kernels);
    pack->details = hone_arena_array(&pack->arena, json_array_size(list), sizeof *pack->details);
    if (pack->kernels == NULL || pack->details == NULL) return hone_pack_fail_memory(r);
    json_array_foreach(list, i, item)
    {
        hone_pack_kernel *details = &pack->details[pack->count];
        hone_kernel_init(&pack->kernels[pack->count]);
        memset(details, 0, sizeof *details);
        r->kernel = NULL;
        hone_pack_enter(r, "kernels", i);
        status = hone_pack_read_kernel(r, item, &pack->kernels[pack->count], details);
        if (status == HONE_OK && is_twice(pack, details))
            status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "name", "is that of another kernel of this pack");
        if (status == HONE_OK)
            pack->count++;
        else
            release_space(details);
        if (status == HONE_OUT_OF_MEMORY) return status;
        if (status != HONE_OK &&
            hone_pack_note(pack, details->algorithm, details->name, status, r->err->message) != HONE_OK)
            return hone_pack_fail_memory(r);
    }
    r->kernel = NULL;
    hone_pack_leave(r);
    return HONE_OK;
}

// "saxpy" of "saxpy@v2": what follows is compared when the registry has both.
bool hone_pack_is_algorithm(const char *written, const char *signature)
{
    signature += strspn(signature, " \t\n");
    const size_t size = strcspn(signature, "@( \t\n");
    return strncmp(written, signature, size) == 0 && (written[size] == '\0' || written[size] == '@');
}

static hone_status refuse_reference(hone_pack_reading *r, hone_pack_kernel *details, const char *words)
{
    r->kernel = details->name;
    details->status = hone_pack_fail(r, HONE_INVALID_ARGUMENT, "", "is the reference of its algorithm, and %s", words);
    details->refusal = hone_arena_text(&r->pack->arena, r->err->message, strlen(r->err->message));
    r->kernel = NULL;
    return details->refusal != NULL ? HONE_OK : hone_pack_fail_memory(r);
}

// A reference is a function that runs on the CPU.
static const char *host_name(hone_platform_find *find)
{
    hone_platform host = HONE_PLATFORM_NONE + 1;
    while (!find(host)->is_host)
        host++;
    return find(host)->name;
}

static hone_status mark_reference(hone_pack_reading *r, size_t kernel)
{
    hone_pack_kernel *details = &r->pack->details[kernel];
    r->pack->kernels[kernel].is_reference = true;
    if (details->refusal != NULL) return HONE_OK;
    const hone_platform_facts *facts = r->platforms->find(details->platform);
    const bool is_module = facts->is_module && r->pack->kernels[kernel].backend == HONE_CPU;
    if (!facts->is_host && !facts->is_interpreted && !is_module) {
        char words[120];
        snprintf(
            words, sizeof words, "is not of platform %s, and no module for backend cpu", host_name(r->platforms->find));
        return refuse_reference(r, details, words);
    }
    if (hone_space_parameters(details->space) > 0)
        return refuse_reference(r, details, "has parameters to tune: leave space and variants out");
    return HONE_OK;
}

// The kernel that an algorithm names for its reference is marked as one; it runs on the CPU, and has nothing to choose.
static hone_status mark_references(hone_pack_reading *r)
{
    const hone_kernel_pack *pack = r->pack;
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < pack->algorithm_count; i++) {
        const hone_algorithm *algorithm = &pack->algorithms[i];
        bool found = algorithm->reference_kernel == NULL;
        for (size_t j = 0; status == HONE_OK && algorithm->reference_kernel != NULL && j < pack->count; j++) {
            if (strcmp(pack->details[j].name, algorithm->reference_kernel) != 0 ||
                !hone_pack_is_algorithm(pack->details[j].algorithm, algorithm->signature))
                continue;
            found = true;
            status = mark_reference(r, j);
        }
        if (status == HONE_OK && !found)
            status = hone_pack_fail(
                r, HONE_CORRUPT, "reference", "no kernel of %.60s is called '%.60s' in this pack", algorithm->signature,
                algorithm->reference_kernel);
    }
    return status;
}

// The document --------------------------------------------------------------------------------------------------------

static hone_status read_document(hone_pack_reading *r, const char *text, size_t size, json_t **out)
{
    hone_view value;
    hone_error why = {.message = ""};
    json_error_t error;
    hone_status status = hone_json_text_check((hone_view){text, size}, HONE_JSON_STRICT, &value, &why);
    if (status != HONE_OK) return hone_pack_fail(r, HONE_CORRUPT, "", "pack.json: %s", why.message);
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (*out != NULL && json_is_object(*out)) return HONE_OK;
    if (*out == NULL && json_error_code(&error) == json_error_out_of_memory) return hone_pack_fail_memory(r);
    return hone_pack_fail(
        r, HONE_CORRUPT, "", "pack.json: %s%s", *out != NULL ? "is " : "",
        *out != NULL ? hone_pack_kind_name(*out) : error.text);
}

static hone_status read_head(hone_pack_reading *r, const json_t *root)
{
    const json_t *format = json_object_get(root, "hone_pack"), *producer = NULL;
    const char *name = NULL, *version = NULL;
    if (!json_is_integer(format))
        return hone_pack_fail(
            r, HONE_CORRUPT, "hone_pack", "is missing or is not a number; write \"hone_pack\": %d first in pack.json",
            HONE_PACK_FORMAT);
    if (json_integer_value(format) != HONE_PACK_FORMAT)
        return hone_pack_fail(
            r, HONE_INCOMPATIBLE, "hone_pack", "is %lld, this version of hone reads %d",
            (long long)json_integer_value(format), HONE_PACK_FORMAT);
    hone_status status = hone_pack_get_text(r, root, "name", NAME_LIMIT, &name);
    if (status == HONE_OK && name != NULL && name[0] != '\0') r->pack->name = name;
    if (status == HONE_OK) status = hone_pack_check_fields(r, root, root_fields);
    if (status == HONE_OK) status = hone_pack_get_text(r, root, "version", NAME_LIMIT, &version);
    return status == HONE_OK ? hone_pack_get_object(r, root, "producer", &producer) : status;
}

static hone_status read_all(hone_pack_reading *r, const char *text, size_t size)
{
    json_t *root = NULL;
    hone_status status = read_document(r, text, size, &root);
    if (status == HONE_OK) status = read_head(r, root);
    if (status == HONE_OK) status = read_algorithms(r, root);
    if (status == HONE_OK) status = read_foreign(r, root);
    if (status == HONE_OK) status = read_kernels(r, root);
    if (status == HONE_OK) status = mark_references(r);
    json_decref(root);
    // What is wrong with the head is wrong with the document.
    return status == HONE_INVALID_ARGUMENT ? HONE_CORRUPT : status;
}

static hone_kernel_pack *create(const hone_allocator *allocator, const char *folder)
{
    hone_kernel_pack *pack = hone_alloc(allocator, sizeof *pack);
    if (pack == NULL) return NULL;
    const char *slash = strrchr(folder, '/');
    pack->allocator = pack->arena.allocator = *allocator;
    pack->folder = hone_arena_text(&pack->arena, folder, strlen(folder));
    pack->name = slash != NULL && slash[1] != '\0' ? slash + 1 : folder;
    pack->name = hone_arena_text(&pack->arena, pack->name, strlen(pack->name));
    if (pack->folder == NULL || pack->name == NULL) hone_pack_close(&pack);
    return pack;
}

hone_status hone_pack_parse(
    const hone_allocator *allocator,
    const char *folder,
    const char *text,
    size_t size,
    const hone_pack_platforms *platforms,
    hone_kernel_pack **out,
    hone_error *err)
{
    hone_error local = {.message = ""};
    *out = NULL;
    hone_kernel_pack *pack = create(allocator, folder);
    if (pack == NULL) return hone_fail_memory(err, where);
    hone_pack_reading r = {.pack = pack, .platforms = platforms, .err = &local};
    hone_hash_sha256(text, size, pack->digest);
    hone_status status = read_all(&r, text, size);
    if (status == HONE_OK) {
        *out = pack;
        return HONE_OK;
    }
    hone_pack_close(&pack);
    return hone_fail(err, status, where, "%s", local.message);
}

hone_status hone_pack_open(
    const hone_allocator *allocator,
    const char *folder,
    const hone_pack_platforms *platforms,
    hone_kernel_pack **out,
    hone_error *err)
{
    char real[PATH_SIZE], path[PATH_SIZE + 16];
    hone_buffer text;
    *out = NULL;
    if (!hone_os_real_path(folder, real, sizeof real) || !hone_os_is_folder(real))
        return hone_fail(err, HONE_NOT_FOUND, where, "%.400s: there is no such folder", folder);
    snprintf(path, sizeof path, "%s/pack.json", real);
    if (!hone_os_is_file(path))
        return hone_fail(err, HONE_NOT_FOUND, where, "%.400s: there is no pack.json in this folder", folder);
    if (!hone_os_is_plain_file(path))
        return hone_fail(err, HONE_CORRUPT, where, "%.400s: pack.json is a link, expected a plain file", folder);
    hone_buffer_init(&text, *allocator);
    hone_status status = hone_os_read_plain_file(path, HONE_PACK_JSON_LIMIT, &text, err);
    if (status == HONE_INVALID_ARGUMENT)
        status = hone_fail(
            err, HONE_CORRUPT, where, "%.400s: pack.json is too large: it has more than %d bytes", folder,
            HONE_PACK_JSON_LIMIT);
    if (status == HONE_OK)
        status = hone_pack_parse(allocator, real, hone_buffer_string(&text), text.size, platforms, out, err);
    hone_buffer_deinit(&text);
    return status;
}

void hone_pack_close(hone_kernel_pack **pack)
{
    hone_kernel_pack *gone = *pack;
    if (gone == NULL) return;
    *pack = NULL;
    for (size_t i = 0; i < gone->count; i++)
        release_space(&gone->details[i]);
    hone_arena_destroy(&gone->arena);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}
