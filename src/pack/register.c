// A pack's algorithms and kernels in a registry, each alone: one that is refused keeps none of the others out.
#include "pack/reading.h"

#include "base/assert.h"
#include "base/error.h"
#include "call/call.h"

#include <string.h>

// The algorithm that has this signature already, whoever registered it; NULL: it is new. A kernel's reference is taken
// from whoever came first.
static const hone_algorithm_entry *same_algorithm(
    const hone_kernel_pack *pack, hone_registry *registry, const hone_algorithm *algorithm)
{
    hone_signature *signature = NULL;
    if (hone_signature_parse(pack->allocator, algorithm->signature, &signature, NULL) != HONE_OK) return NULL;
    const hone_algorithm_entry *there =
        hone_registry_find(registry, hone_signature_name(signature), hone_signature_version(signature));
    const bool same =
        there != NULL && strcmp(hone_signature_text(there->signature), hone_signature_text(signature)) == 0;
    hone_signature_release(&signature);
    return same ? there : NULL;
}

static hone_status refuse_kernel(
    hone_kernel_pack *pack, hone_pack_kernel *details, hone_status status, const hone_error *why)
{
    hone_buffer words;
    hone_buffer_init(&words, pack->allocator);
    hone_buffer_format(&words, "pack %s: kernel %s: %s", pack->name, details->name, why->message);
    details->refusal = words.failed ? NULL : hone_arena_text(&pack->arena, hone_buffer_string(&words), words.size);
    details->status = status;
    hone_buffer_deinit(&words);
    return details->refusal != NULL ? HONE_OK : HONE_OUT_OF_MEMORY;
}

hone_status hone_pack_refuse(hone_kernel_pack *pack, size_t index, const hone_error *why)
{
    hone_assert(index < pack->count && why->status != HONE_OK);
    hone_assert(pack->details[index].refusal == NULL); // the first reason stays
    return refuse_kernel(pack, &pack->details[index], why->status, why);
}

static hone_status add_algorithms(hone_kernel_pack *pack, hone_registry *registry)
{
    for (size_t i = 0; i < pack->algorithm_count; i++) {
        hone_error why = {.message = ""};
        const hone_algorithm *algorithm = &pack->algorithms[i];
        if (same_algorithm(pack, registry, algorithm) != NULL) continue;
        hone_status status = hone_registry_add_algorithm(registry, algorithm, false, &why);
        if (status == HONE_OUT_OF_MEMORY) return status;
        if (status != HONE_OK && hone_pack_note(pack, algorithm->signature, NULL, status, why.message) != HONE_OK)
            return HONE_OUT_OF_MEMORY;
    }
    return HONE_OK;
}

// The signature that calls of a kernel's algorithm have: the registry's, else the pack's own. *out NULL: there is none.
// The caller releases it.
static hone_status find_signature(
    const hone_kernel_pack *pack, hone_registry *registry, const char *algorithm, hone_signature **out)
{
    const hone_algorithm_entry *there = hone_registry_find(registry, algorithm, NULL);
    *out = there != NULL ? hone_signature_retain(there->signature) : NULL;
    for (size_t i = 0; i < pack->algorithm_count && *out == NULL; i++) {
        const char *text = pack->algorithms[i].signature;
        if (hone_pack_is_algorithm(algorithm, text) &&
            hone_signature_parse(pack->allocator, text, out, NULL) == HONE_OUT_OF_MEMORY)
            return HONE_OUT_OF_MEMORY;
    }
    return HONE_OK;
}

static hone_status check_variants(
    const hone_pack_kernel *details, const hone_signature *signature, hone_pack_fitter *fitter, hone_error *err)
{
    for (size_t i = 0; i < details->variant_count; i++) {
        hone_status status = fitter(details, &details->variants[i], signature, err);
        if (status == HONE_OK) continue;
        return details->is_listed && status != HONE_OUT_OF_MEMORY ? hone_fail_prefix(err, status, "variants[%zu]", i)
                                                                  : status;
    }
    return HONE_OK;
}

static hone_status check_kernel(
    hone_kernel_pack *pack, hone_registry *registry, hone_pack_kernel *details, hone_pack_fitter *fitter)
{
    hone_signature *signature = NULL;
    hone_error why = {.message = ""};
    if (details->refusal != NULL) return HONE_OK;
    hone_status status = find_signature(pack, registry, details->algorithm, &signature);
    if (status != HONE_OK) return status;
    if (signature == NULL) {
        status = hone_registry_fail_unknown(registry, details->algorithm, &why);
        return refuse_kernel(pack, details, status, &why);
    }
    if (fitter != NULL) status = check_variants(details, signature, fitter, &why);
    hone_signature_release(&signature);
    if (status == HONE_OK || status == HONE_OUT_OF_MEMORY) return status;
    return refuse_kernel(pack, details, status, &why);
}

static hone_status check_kernels(hone_kernel_pack *pack, hone_registry *registry, hone_pack_fitter *fitter)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < pack->count; i++)
        status = check_kernel(pack, registry, &pack->details[i], fitter);
    return status;
}

// What a row takes an operation as: the algorithm, and parameters that it has.
static hone_status check_take(hone_kernel_pack *pack, hone_registry *registry, const hone_foreign_row *row, size_t take)
{
    const char *name = hone_foreign_algorithm(row, take), *argument;
    const json_t *target, *arguments = json_object_get(json_array_get(row->takes, take), "arguments");
    hone_error why = {.message = ""};
    hone_signature *signature = NULL;
    hone_status status = find_signature(pack, registry, name, &signature);
    if (status != HONE_OK) return status;
    if (signature == NULL) (void)hone_registry_fail_unknown(registry, name, &why);
    json_object_foreach((json_t *)(uintptr_t)arguments, argument, target)
    {
        const char *ours = json_string_value(target);
        if (signature == NULL || (ours != NULL && hone_signature_find(signature, ours) >= 0)) continue;
        (void)hone_fail(
            &why, HONE_INVALID_ARGUMENT, "pack.check", "its argument %.60s goes to '%.60s', which %.60s does not have",
            argument, ours != NULL ? ours : "", name);
    }
    hone_signature_release(&signature);
    if (why.status == HONE_OK) return HONE_OK;
    (void)hone_fail_prefix(&why, why.status, "foreign operation %.60s", row->operation);
    const char *kept = hone_arena_text(&pack->arena, name, strlen(name));
    return kept == NULL ? HONE_OUT_OF_MEMORY : hone_pack_note(pack, kept, NULL, why.status, why.message);
}

static hone_status check_rows(hone_kernel_pack *pack, hone_registry *registry)
{
    hone_foreign *foreign = NULL;
    if (pack->foreign == NULL) return HONE_OK;
    hone_status status = hone_foreign_read(&pack->allocator, pack->foreign, strlen(pack->foreign), &foreign, NULL);
    for (size_t i = 0; status == HONE_OK && i < foreign->count; i++)
        for (size_t j = 0; status == HONE_OK && j < hone_foreign_take_count(&foreign->rows[i]); j++)
            status = check_take(pack, registry, &foreign->rows[i], j);
    hone_foreign_release(&foreign);
    return status;
}

hone_status hone_pack_try(hone_kernel_pack *pack, hone_registry *registry, hone_pack_fitter *fitter, hone_error *err)
{
    hone_status status = check_kernels(pack, registry, fitter);
    if (status == HONE_OK) status = check_rows(pack, registry);
    return status == HONE_OK ? HONE_OK : hone_fail_memory(err, "pack.check");
}

hone_status hone_pack_register(
    hone_kernel_pack *pack, hone_registry *registry, hone_pack_fitter *fitter, hone_error *err)
{
    hone_status status = add_algorithms(pack, registry);
    if (status == HONE_OK && pack->foreign != NULL)
        status = hone_registry_add_foreign(registry, pack->foreign, strlen(pack->foreign), NULL);
    if (status == HONE_OK) status = check_kernels(pack, registry, fitter);
    for (size_t i = 0; status == HONE_OK && i < pack->count; i++) {
        hone_error why = {.message = ""};
        hone_status one = hone_registry_add_kernels(registry, &pack->kernels[i], 1, false, false, &why);
        if (one == HONE_OUT_OF_MEMORY)
            status = one;
        else if (one != HONE_OK && pack->details[i].refusal == NULL)
            status = refuse_kernel(pack, &pack->details[i], one, &why);
    }
    return status == HONE_OK ? HONE_OK : hone_fail_memory(err, "pack.register");
}
