// Registering: everything is checked and built beside what readers see, then published with pointer swaps that
// cannot fail. What is refused therefore leaves nothing behind.
//
// Lists are copied, changed and swapped, as in RCU (P. McKenney and J. Slingwine, 1998): a reader walks the array that
// it found, whatever is registered meanwhile. A registration costs as much as its algorithm has kernels, a look-up one
// load. When the old arrays may be freed is life.c's question.
#include "registry/tables.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/structs.h"
#include "base/text.h"
#include "call/call.h"
#include "call/signature.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char in_algorithm[] = "registry.algorithm";
static const char in_kernels[] = "registry.kernels";

static hone_registry_batch *batch_create(const hone_allocator *allocator)
{
    hone_registry_batch *made = hone_alloc(allocator, sizeof *made);
    if (made == NULL) return NULL;
    made->arena.allocator = *allocator;
    atomic_init(&made->references, 1);
    return made;
}

// Algorithms ----------------------------------------------------------------------------------------------------------

// The signature's text after the name: the name's case does not make another algorithm.
static const char *after_name(const hone_signature *signature)
{
    return strchr(hone_signature_text(signature), '(');
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static hone_status refuse_other(
    const hone_algorithm_entry *there, const hone_signature *came, const hone_algorithm *algorithm, hone_error *err)
{
    if (strcmp(after_name(there->signature), after_name(came)) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm,
            "'%s@v%s' is registered already with another signature, '%s'; this one is '%s': give it another version",
            there->name, there->version, hone_signature_text(there->signature), hone_signature_text(came));
    if (there->algorithm.reference != algorithm->reference ||
        !same_text(there->algorithm.reference_kernel, algorithm->reference_kernel))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm,
            "'%s@v%s' is registered already with another reference: give it another version", there->name,
            there->version);
    return HONE_OK;
}

static hone_status read_identity(const hone_signature *signature, hone_registry_name *out, hone_error *err)
{
    const char *name = hone_signature_name(signature);
    const char *version = hone_signature_version(signature);
    if (!hone_registry_name_read(name, out))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm, "the name '%.80s' is too long: at most %d bytes", name,
            HONE_NAME_SIZE - 1);
    if (strlen(version) >= sizeof out->version)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm, "%s: the version '%.80s' is too long: at most %zu bytes", name,
            version, sizeof out->version - 1);
    memcpy(out->version, version, strlen(version) + 1);
    return HONE_OK;
}

static int compare_entries(const hone_algorithm_entry *a, const hone_algorithm_entry *b)
{
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : hone_registry_version_compare(a->version, b->version);
}

// The list with one more, in its place.
static const hone_algorithm_list *list_with(
    hone_registry_batch *owned, const hone_algorithm_list *old, const hone_algorithm_entry *entry)
{
    hone_algorithm_list *list =
        hone_arena_alloc(&owned->arena, sizeof *list + (old->count + 1) * sizeof list->entries[0]);
    if (list == NULL) return NULL;
    size_t place = 0;
    while (place < old->count && compare_entries(old->entries[place], entry) < 0)
        place++;
    for (size_t i = 0; i < place; i++)
        list->entries[i] = old->entries[i];
    list->entries[place] = entry;
    for (size_t i = place; i < old->count; i++)
        list->entries[i + 1] = old->entries[i];
    list->count = old->count + 1;
    hone_assert(place == 0 || compare_entries(list->entries[place - 1], entry) < 0); // sorted, each once
    hone_assert(place == old->count || compare_entries(entry, list->entries[place + 1]) < 0);
    return list;
}

static hone_owned_algorithm *algorithm_create(
    hone_registry *registry,
    hone_registry_batch *owned,
    const hone_registry_name *identity,
    const hone_algorithm *from,
    bool builtin)
{
    hone_owned_algorithm *made = hone_arena_alloc(&owned->arena, sizeof *made);
    if (made == NULL) return NULL;
    hone_algorithm_entry *entry = &made->entry;
    entry->name = hone_arena_text(&owned->arena, identity->name, strlen(identity->name));
    entry->version = hone_arena_text(&owned->arena, identity->version, strlen(identity->version));
    if (entry->name == NULL || entry->version == NULL) return NULL;
    entry->signature = owned->signature;
    entry->algorithm = *from;
    entry->algorithm.signature = hone_signature_text(owned->signature);
    entry->builtin = builtin;
    entry->registry = registry;
    atomic_init(&made->kernels, NULL);
    return made;
}

// Under the mutex. *out_kept says whether the batch belongs to the registry now.
static hone_status add_algorithm(
    hone_registry *registry,
    hone_registry_batch *owned,
    const hone_algorithm *from,
    bool builtin,
    bool *out_kept,
    hone_error *err)
{
    hone_assert(hone_mutex_is_mine(&registry->mutex));
    hone_registry_name identity;
    hone_status status = read_identity(owned->signature, &identity, err);
    if (status != HONE_OK) return status;
    status = hone_registry_load_held(registry, identity.name, err);
    if (status != HONE_OK) return status;
    const hone_algorithm_entry *there = hone_registry_find_now(registry, &identity);
    if (there != NULL) return refuse_other(there, owned->signature, from, err);
    hone_owned_algorithm *made = algorithm_create(registry, owned, &identity, from, builtin);
    if (made == NULL) return hone_fail_memory(err, in_algorithm);
    const hone_algorithm_list *old = atomic_load_explicit(&registry->algorithms, memory_order_relaxed);
    const hone_algorithm_list *list = list_with(owned, old, &made->entry);
    if (list == NULL) return hone_fail_memory(err, in_algorithm);
    atomic_store_explicit(&registry->algorithms, list, memory_order_release);
    hone_registry_keep(registry, owned);
    *out_kept = true;
    return HONE_OK;
}

bool hone_tolerance_is_valid(const hone_tolerance *tolerance)
{
    const double parts[] = {tolerance->absolute, tolerance->relative, tolerance->scale};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(parts[i] >= 0) || isinf(parts[i])) return false;
    return true;
}

static bool has_leading(const hone_signature *signature)
{
    for (uint32_t i = 0; i < signature->count; i++)
        for (const hone_shape_pattern *of = signature->parameters[i].shape; of != NULL; of = of->otherwise)
            if (of->ellipsis) return true;
    return false;
}

// "m", "batch heads:kv_heads", "...": each a dim of the signature.
static hone_status check_independent(const hone_signature *signature, const char *independent, hone_error *err)
{
    for (const char *at = independent != NULL ? independent : ""; *(at += strspn(at, " ,:")) != '\0';) {
        const hone_view name = {at, strcspn(at, " ,:")};
        const bool is_there =
            hone_view_is(name, "...") ? has_leading(signature) : hone_signature_slot(signature, name) >= 0;
        if (!is_there)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, in_algorithm,
                "independent of %s names '%.*s', which is not a dim of its signature: name dims, \"m\", those that "
                "are split alike with ':', \"heads:kv_heads\", or \"...\"",
                hone_signature_name(signature), (int)name.size, name.data);
        at += name.size;
    }
    return HONE_OK;
}

static hone_status check_algorithm(const hone_signature *signature, const hone_algorithm *algorithm, hone_error *err)
{
    const uint32_t known = 2 * (uint32_t)HONE_SPECIAL_EVERYWHERE - 1;
    const char *name = hone_signature_name(signature);
    if (!hone_tolerance_is_valid(&algorithm->tolerance))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm,
            "tolerance of %s is absolute %g, relative %g, scale %g: expected numbers of 0 or more", name,
            algorithm->tolerance.absolute, algorithm->tolerance.relative, algorithm->tolerance.scale);
    if ((algorithm->special & ~known) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm,
            "special of %s is 0x%x: expected HONE_SPECIAL_* bits, 0x%x at most", name, (unsigned)algorithm->special,
            (unsigned)known);
    return check_independent(signature, algorithm->independent, err);
}

hone_status hone_registry_put_algorithm(
    hone_registry *registry, const hone_algorithm *algorithm, bool builtin, hone_error *err)
{
    hone_algorithm copy;
    hone_status status =
        hone_struct_copy(&copy, sizeof copy, algorithm, algorithm->struct_size, "hone_algorithm", in_algorithm, err);
    if (status != HONE_OK) return status;
    if (copy.signature == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_algorithm,
            "signature is NULL: write it as \"name(x: f32[n]) -> y: f32[n]\"");
    hone_registry_batch *owned = batch_create(&registry->allocator);
    if (owned == NULL) return hone_fail_memory(err, in_algorithm);
    bool kept = false;
    status = hone_signature_parse(registry->allocator, copy.signature, &owned->signature, err);
    if (status == HONE_OK) status = check_algorithm(owned->signature, &copy, err);
    if (status == HONE_OK) status = add_algorithm(registry, owned, &copy, builtin, &kept, err);
    if (!kept) hone_registry_batch_destroy(owned, &registry->allocator);
    return status;
}

hone_status hone_registry_add_algorithm(
    hone_registry *registry, const hone_algorithm *algorithm, bool builtin, hone_error *err)
{
    if (algorithm == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, in_algorithm, "algorithm is NULL");
    hone_mutex_lock(&registry->mutex);
    hone_status status = hone_registry_put_algorithm(registry, algorithm, builtin, err);
    hone_mutex_unlock(&registry->mutex);
    return status;
}

// Kernels -------------------------------------------------------------------------------------------------------------

static bool is_kernel_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    size_t size = strnlen(name, HONE_NAME_SIZE);
    return size > 0 && size < HONE_NAME_SIZE && strspn(name, letters) == size;
}

static hone_status check_kernel(const hone_kernel *kernel, hone_error *err)
{
    if (kernel->algorithm == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, in_kernels, "a kernel without an algorithm's name");
    if (kernel->name == NULL || !is_kernel_name(kernel->name))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels,
            "%.80s: '%.80s' is not a valid name of a kernel: 1 to %d letters, digits and _ . + -", kernel->algorithm,
            kernel->name == NULL ? "" : kernel->name, HONE_NAME_SIZE - 1);
    if (kernel->platform <= HONE_PLATFORM_NONE || kernel->platform >= HONE_PLATFORM_COUNT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels,
            "%.80s: kernel '%s' has no platform (%d): expected one of hone_platform in hone/device.h",
            kernel->algorithm, kernel->name, (int)kernel->platform);
    if ((unsigned)kernel->backend - HONE_GPU >= HONE_BACKEND_COUNT - HONE_GPU)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels,
            "%.80s: kernel '%s' has no backend (%d): set HONE_CPU, HONE_ANY or another", kernel->algorithm,
            kernel->name, (int)kernel->backend);
    if (kernel->run == NULL && kernel->code == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels, "%.80s: kernel '%s' has neither a run function nor code",
            kernel->algorithm, kernel->name);
    const size_t size = kernel->revision != NULL ? strlen(kernel->revision) : 0;
    if (size > 0 && hone_text_control(kernel->revision, size) < size) // it stands in tables and files
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels,
            "%.80s: the revision of kernel '%s' has control characters: expected a word like \"2\" or a digest",
            kernel->algorithm, kernel->name);
    return HONE_OK;
}

// A copy of text in *field; NULL stays NULL.
static bool copy_text(hone_registry_batch *owned, const char **field)
{
    if (*field == NULL) return true;
    *field = hone_arena_text(&owned->arena, *field, strlen(*field));
    return *field != NULL;
}

static hone_status copy_texts(hone_registry_batch *owned, hone_kernel_ref *ref, hone_error *err)
{
    hone_kernel *kernel = &ref->kernel;
    if (kernel->revision == NULL) kernel->revision = "1";
    kernel->algorithm = ref->algorithm->name;
    if (!copy_text(owned, &kernel->name) || !copy_text(owned, &kernel->signature) ||
        !copy_text(owned, &kernel->space) || !copy_text(owned, &kernel->revision) ||
        !copy_text(owned, &kernel->library))
        return hone_fail_memory(err, in_kernels);
    return HONE_OK;
}

static hone_status read_space(const hone_registry *registry, hone_kernel_ref *ref, hone_error *err)
{
    hone_status status = hone_space_parse(registry->allocator, ref->kernel.space, &ref->space, err);
    if (status != HONE_OK)
        return hone_fail_prefix(err, status, "%s: space of kernel '%s'", ref->kernel.algorithm, ref->kernel.name);
    return HONE_OK;
}

// The kernel's own signature against the algorithm's: which parameters it does not take, and none that nobody could
// give.
static hone_status compare_own(hone_kernel_ref *ref, hone_error *err)
{
    const hone_signature *whole = ref->algorithm->signature;
    for (size_t i = 0; i < hone_signature_count(whole); i++) {
        const hone_parameter *parameter = hone_signature_parameter(whole, i);
        if (hone_signature_find(ref->signature, parameter->name) >= 0) continue;
        if (parameter->is_result)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, in_kernels, "%s: kernel '%s' does not give the result '%s'",
                ref->kernel.algorithm, ref->kernel.name, parameter->name);
        if (!hone_is_tuning_parameter(parameter->name)) ref->unsupported |= (uint64_t)1 << i;
    }
    for (size_t i = 0; i < hone_signature_count(ref->signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(ref->signature, i);
        if (hone_signature_find(whole, parameter->name) < 0 && !parameter->has_default && !parameter->nullable)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, in_kernels,
                "%s: kernel '%s' asks for '%s', which the algorithm does not have: give it a default",
                ref->kernel.algorithm, ref->kernel.name, parameter->name);
    }
    return HONE_OK;
}

static hone_status read_signature(const hone_registry *registry, hone_kernel_ref *ref, hone_error *err)
{
    const hone_algorithm_entry *entry = ref->algorithm;
    if (ref->kernel.signature == NULL) {
        ref->signature = hone_signature_retain(entry->signature);
        return HONE_OK;
    }
    hone_status status = hone_signature_parse(registry->allocator, ref->kernel.signature, &ref->signature, err);
    if (status != HONE_OK)
        return hone_fail_prefix(err, status, "%s: signature of kernel '%s'", entry->name, ref->kernel.name);
    hone_registry_name own;
    const char *version = hone_signature_version(ref->signature); // "1" also when none was written
    if (!hone_registry_name_read(hone_signature_name(ref->signature), &own) || strcmp(own.name, entry->name) != 0 ||
        (strcmp(version, "1") != 0 && strcmp(version, entry->version) != 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels, "%s: the signature of kernel '%s' is of '%s@v%s'", entry->name,
            ref->kernel.name, hone_signature_name(ref->signature), version);
    return compare_own(ref, err);
}

static hone_status build_ref(
    hone_registry *registry,
    hone_registry_batch *owned,
    const void *from,
    bool builtin,
    hone_kernel_ref *ref,
    hone_error *err)
{
    hone_kernel *kernel = &ref->kernel;
    hone_status status =
        hone_struct_copy(kernel, sizeof *kernel, from, *(const size_t *)from, "hone_kernel", in_kernels, err);
    if (status == HONE_OK) status = check_kernel(kernel, err);
    if (status != HONE_OK) return status;
    hone_registry_name name;
    if (hone_registry_name_read(kernel->algorithm, &name)) ref->algorithm = hone_registry_find_now(registry, &name);
    if (ref->algorithm == NULL) {
        hone_error unknown;
        (void)hone_registry_load_held(registry, NULL, NULL);
        hone_registry_fail_unknown_now(registry, kernel->algorithm, &unknown);
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, in_kernels, "kernel '%s': %s; register the algorithm first", kernel->name,
            unknown.message);
    }
    ref->registry = registry;
    ref->batch = owned;
    ref->owner = registry->owner;
    ref->builtin = builtin;
    status = hone_registry_copy_code(registry, &owned->arena, kernel, err);
    if (status == HONE_OK) status = copy_texts(owned, ref, err);
    if (status == HONE_OK) status = read_space(registry, ref, err);
    if (status == HONE_OK) status = read_signature(registry, ref, err);
    return status;
}

static bool same_identity(const hone_kernel_ref *a, const hone_kernel_ref *b)
{
    return a->algorithm == b->algorithm && a->kernel.platform == b->kernel.platform &&
           a->kernel.backend == b->kernel.backend && strcmp(a->kernel.name, b->kernel.name) == 0;
}

static hone_status refuse_duplicate(const hone_kernel_ref *ref, const char *also, hone_error *err)
{
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, in_kernels, "%s: kernel '%s' for %s/%s is %s: give it another name%s",
        ref->kernel.algorithm, ref->kernel.name, hone_registry_platform_name(ref->registry, ref->kernel.platform),
        hone_backend_name(ref->kernel.backend), also, also[0] == 'r' ? ", or replace it" : "");
}

// Looks for duplicates of each new kernel; one that may be replaced hands its place in the order over.
static hone_status settle_duplicates(const hone_registry_batch *owned, bool replace, hone_error *err)
{
    for (size_t i = 0; i < owned->count; i++) {
        hone_kernel_ref *ref = &owned->refs[i];
        for (size_t j = 0; j < i; j++)
            if (same_identity(ref, &owned->refs[j])) return refuse_duplicate(ref, "twice in this list", err);
        const hone_kernel_list *old = hone_registry_kernels_now(ref->algorithm);
        for (size_t j = 0; j < old->count; j++) {
            if (!same_identity(ref, old->refs[j])) continue;
            if (!replace) return refuse_duplicate(ref, "registered already", err);
            ref->order = old->refs[j]->order;
        }
    }
    return HONE_OK;
}

// Falling priority, then the order of registration, which no two share.
static int compare_refs(const void *a, const void *b)
{
    const hone_kernel_ref *left = *(const hone_kernel_ref *const *)a;
    const hone_kernel_ref *right = *(const hone_kernel_ref *const *)b;
    if (left->kernel.priority != right->kernel.priority) return left->kernel.priority > right->kernel.priority ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

static bool is_replaced(const hone_registry_batch *owned, const hone_kernel_ref *old)
{
    for (size_t i = 0; i < owned->count; i++)
        if (owned->refs[i].order == old->order) return true;
    return false;
}

// The algorithm's next list: what stays of the old one, and the batch's.
static const hone_kernel_list *next_list(hone_registry_batch *owned, const hone_algorithm_entry *entry)
{
    const hone_kernel_list *old = hone_registry_kernels_now(entry);
    hone_kernel_list *list =
        hone_arena_alloc(&owned->arena, sizeof *list + (old->count + owned->count) * sizeof list->refs[0]);
    if (list == NULL) return NULL;
    for (size_t i = 0; i < old->count; i++)
        if (!is_replaced(owned, old->refs[i])) list->refs[list->count++] = old->refs[i];
    for (size_t i = 0; i < owned->count; i++)
        if (owned->refs[i].algorithm == entry) list->refs[list->count++] = &owned->refs[i];
    qsort(list->refs, list->count, sizeof list->refs[0], compare_refs);
    return list;
}

static bool seen_before(const hone_registry_batch *owned, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (owned->refs[i].algorithm == owned->refs[index].algorithm) return true;
    return false;
}

// Lets go of what a list had that the next one has not.
static void retire_replaced(hone_registry *registry, const hone_registry_batch *owned, const hone_kernel_list *old)
{
    for (size_t i = 0; i < old->count; i++)
        if (is_replaced(owned, old->refs[i]) && --old->refs[i]->batch->registered == 0)
            hone_registry_retire(registry, old->refs[i]->batch);
}

// Makes every list first, then swaps them all in. The old ones may be freed as soon as their last kernel is.
static bool publish(hone_registry *registry, hone_registry_batch *owned)
{
    hone_assert(hone_mutex_is_mine(&registry->mutex) && owned->count > 0);
    const hone_kernel_list **lists = hone_arena_array(&owned->arena, owned->count, sizeof *lists);
    const hone_kernel_list **old = hone_arena_array(&owned->arena, owned->count, sizeof *old);
    if (lists == NULL || old == NULL) return false;
    for (size_t i = 0; i < owned->count; i++)
        if (!seen_before(owned, i) && (lists[i] = next_list(owned, owned->refs[i].algorithm)) == NULL) return false;
    for (size_t i = 0; i < owned->count; i++)
        if (lists[i] != NULL)
            old[i] = atomic_exchange_explicit(
                &((hone_owned_algorithm *)owned->refs[i].algorithm)->kernels, lists[i], memory_order_acq_rel);
    owned->registered = owned->count;
    hone_registry_keep(registry, owned);
    hone_registry_reader reader; // of the old lists
    hone_registry_enter(registry, &reader);
    for (size_t i = 0; i < owned->count; i++)
        if (old[i] != NULL) retire_replaced(registry, owned, old[i]);
    hone_registry_leave(&reader);
    return true;
}

// The array's step is its first struct_size, so all have to have the same.
static hone_status check_sizes(const hone_kernel *kernels, size_t count, hone_error *err)
{
    hone_kernel first;
    hone_status status =
        hone_struct_copy(&first, sizeof first, kernels, kernels->struct_size, "hone_kernel", in_kernels, err);
    const char *from = (const char *)kernels;
    for (size_t i = 0; i < count && status == HONE_OK; i++, from += kernels->struct_size)
        if (*(const size_t *)from != kernels->struct_size)
            status = hone_fail(
                err, HONE_INVALID_ARGUMENT, in_kernels,
                "struct_size of kernel %zu is %zu, of the first %zu: begin each with HONE_KERNEL", i,
                *(const size_t *)from, kernels->struct_size);
    return status;
}

// Deferred algorithms come in first: their kernels stand before these in the order.
static hone_status load_algorithms(hone_registry *registry, const hone_kernel *kernels, size_t count, hone_error *err)
{
    const char *from = (const char *)kernels;
    if (kernels->struct_size < offsetof(hone_kernel, name)) return HONE_OK; // says no name; refused later
    for (size_t i = 0; i < count; i++, from += kernels->struct_size) {
        const char *name = ((const hone_kernel *)(const void *)from)->algorithm;
        hone_registry_name read;
        if (name == NULL || !hone_registry_name_read(name, &read)) continue;
        hone_status status = hone_registry_load_held(registry, read.name, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static hone_status build_refs(
    hone_registry *registry,
    hone_registry_batch *owned,
    const hone_kernel *kernels,
    size_t count,
    bool builtin,
    hone_error *err)
{
    owned->refs = hone_arena_array(&owned->arena, count, sizeof *owned->refs);
    if (owned->refs == NULL) return hone_fail_memory(err, in_kernels);
    owned->count = count;
    const char *from = (const char *)kernels;
    for (size_t i = 0; i < count; i++, from += kernels->struct_size) {
        owned->refs[i].order = registry->next_order + (uint32_t)i;
        hone_status status = build_ref(registry, owned, from, builtin, &owned->refs[i], err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

hone_status hone_registry_put_kernels(
    hone_registry *registry, const hone_kernel *kernels, size_t count, bool replace, bool builtin, hone_error *err)
{
    hone_assert(hone_mutex_is_mine(&registry->mutex));
    if (count == 0) return HONE_OK;
    hone_status status = check_sizes(kernels, count, err);
    if (status == HONE_OK) status = load_algorithms(registry, kernels, count, err);
    if (status != HONE_OK) return status;
    hone_registry_batch *owned = batch_create(&registry->allocator);
    if (owned == NULL) return hone_fail_memory(err, in_kernels);
    status = build_refs(registry, owned, kernels, count, builtin, err);
    if (status == HONE_OK) status = settle_duplicates(owned, replace, err);
    if (status == HONE_OK && !publish(registry, owned)) status = hone_fail_memory(err, in_kernels);
    if (status != HONE_OK) {
        hone_registry_batch_destroy(owned, &registry->allocator);
        return status;
    }
    registry->next_order += (uint32_t)count;
    return HONE_OK;
}

hone_status hone_registry_add_kernels(
    hone_registry *registry, const hone_kernel *kernels, size_t count, bool replace, bool builtin, hone_error *err)
{
    if (count > 0 && kernels == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, in_kernels, "kernels is NULL");
    hone_mutex_lock(&registry->mutex);
    hone_status status = hone_registry_put_kernels(registry, kernels, count, replace, builtin, err);
    hone_mutex_unlock(&registry->mutex);
    return status;
}
