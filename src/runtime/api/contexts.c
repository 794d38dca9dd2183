// Contexts and overlays of a program: entries are checked against the registry when they are made.
#include "runtime/api/entry.h"

#include "base/error.h"
#include "base/structs.h"
#include "runtime/links/links.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "context.derive";

static void rest_on(hone_runtime *rt, const hone_entry_ground *ground, hone_decision *decision)
{
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, decision->algorithm, decision->version);
    const hone_kernel_ref *kernel = algorithm == NULL ? NULL : hone_decision_kernel(algorithm, decision);
    const bool same = kernel != NULL && (ground->revision[0] == '\0' || kernel->kernel.revision == NULL ||
                                         strcmp(kernel->kernel.revision, ground->revision) == 0);
    hone_registry_leave(&reader);
    if (!same) return;
    decision->verified = ground->decision->verified;
    decision->evidence = ground->decision->evidence;
}

hone_status hone_entry_overlay(
    hone_runtime *rt,
    const hone_entry *entries,
    const hone_entry_ground *grounds,
    size_t count,
    hone_overlay **out,
    hone_error *err)
{
    *out = NULL;
    hone_overlay *overlay = NULL;
    hone_status status = hone_overlay_new(rt->allocator, &overlay, err);
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        hone_decision decision;
        status = hone_entry_decision(rt, &entries[i], HONE_SOURCE_OVERLAY, &decision, err);
        if (status == HONE_OK && grounds != NULL) rest_on(rt, &grounds[i], &decision);
        if (status == HONE_OK)
            status = hone_decisions_put(&overlay->decisions, entries[i].device, entries[i].spec, &decision, err);
    }
    if (status == HONE_OK)
        *out = overlay;
    else if (overlay != NULL)
        hone_overlay_release(&overlay);
    return status;
}

static hone_status overlay_create_known(
    hone_runtime *rt, const hone_entry *entries, size_t count, hone_overlay **out, hone_error *err)
{
    if (rt == NULL || out == NULL || (entries == NULL && count > 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "overlay.create", "the runtime, the entries and out must not be NULL");
    return hone_entry_overlay(rt, entries, NULL, count, out, err);
}

hone_status hone_overlay_create_sized(
    hone_runtime *rt, const hone_entry *entries, size_t count, size_t size, hone_overlay **out, hone_error *err)
{
    hone_structs taken;
    hone_status status =
        hone_structs_take(&taken, entries, count, size, sizeof *entries, "hone_entry", "overlay.create", err);
    if (status == HONE_OK) status = overlay_create_known(rt, taken.items, count, out, err);
    hone_structs_drop(&taken);
    return status;
}

// An override that names a version applies to that version alone.
static hone_status check_override(
    hone_runtime *rt, const hone_override *override_, hone_context_override *out, hone_error *err)
{
    if (override_->algorithm == NULL || override_->kernel == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "an override needs an algorithm and a kernel");
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, override_->algorithm, NULL);
    if (algorithm == NULL) return hone_registry_fail_unknown(rt->registry, override_->algorithm, err);
    const hone_kernel_ref *kernel =
        hone_entry_kernel(algorithm, override_->kernel, override_->platform, override_->config);
    if (kernel == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, where, "%s has no kernel %s (hone list %s shows them)", algorithm->name,
            override_->kernel, algorithm->name);
    hone_config config;
    hone_status status = hone_entry_read_config(kernel, override_->config, &config, err);
    if (status != HONE_OK)
        return hone_fail_prefix(err, status, "the override's config for kernel %s", override_->kernel);
    *out = (hone_context_override){
        .platform = override_->platform, .config = (char *)(uintptr_t)override_->config, .store = override_->store};
    snprintf(out->algorithm, sizeof out->algorithm, "%s", algorithm->name);
    snprintf(out->kernel, sizeof out->kernel, "%s", override_->kernel);
    if (strstr(override_->algorithm, "@v") != NULL)
        snprintf(out->version, sizeof out->version, "%s", algorithm->version);
    return HONE_OK;
}

static hone_status context_derive_known(
    hone_runtime *rt,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_override *override_,
    hone_policy policy,
    hone_context **out,
    hone_error *err)
{
    if (rt == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and out must not be NULL");
    *out = NULL;
    if (policy < HONE_POLICY_DEFAULT || policy > HONE_POLICY_FROZEN)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the policy is %d, expected HONE_POLICY_TUNE, _HEURISTIC, _FAIL or _FROZEN", (int)policy);
    if (override_ == NULL) return hone_context_new(rt->allocator, parent, overlay, NULL, policy, out, err);
    hone_context_override checked;
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    hone_status status = check_override(rt, override_, &checked, err);
    hone_registry_leave(&reader);
    return status == HONE_OK ? hone_context_new(rt->allocator, parent, overlay, &checked, policy, out, err) : status;
}

hone_status hone_context_derive_sized(
    hone_runtime *rt,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_override *override_,
    size_t size,
    hone_policy policy,
    hone_context **out,
    hone_error *err)
{
    hone_structs taken;
    hone_status status = hone_structs_take(&taken, override_, 1, size, sizeof *override_, "hone_override", where, err);
    if (status == HONE_OK) status = context_derive_known(rt, parent, overlay, taken.items, policy, out, err);
    hone_structs_drop(&taken);
    return status;
}

static hone_status check_links(const hone_link *links, size_t count, hone_error *err)
{
    unsigned seen = 0;
    for (size_t i = 0; i < count; i++) {
        const int source = (int)links[i].source;
        if (source <= HONE_SOURCE_NONE || source >= HONE_SOURCE_COUNT)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where,
                "links[%zu].source is %d, which is not a link: HONE_SOURCE_OVERRIDE to HONE_SOURCE_HEURISTIC are", i,
                source);
        if ((seen & 1u << source) != 0)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "the link %s is changed twice", hone_source_name(links[i].source));
        if (links[i].find != NULL && (links[i].name == NULL || links[i].name[0] == '\0'))
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "the function for the link %s has no name: set links[%zu].name",
                hone_source_name(links[i].source), i);
        seen |= 1u << source;
    }
    return HONE_OK;
}

static hone_status context_derive_chain_known(
    hone_runtime *rt,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err)
{
    if (rt == NULL || out == NULL || (links == NULL && count > 0))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime, the links and out must not be NULL");
    *out = NULL;
    if ((int)keeping < HONE_KEEP_DEFAULT || keeping > HONE_KEEP_IN_MEMORY)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "keeping is %d, expected HONE_KEEP_DEFAULT, _STORED or _IN_MEMORY",
            (int)keeping);
    hone_status status = check_links(links, count, err);
    return status == HONE_OK ? hone_context_new_chain(rt->allocator, parent, links, count, keeping, out, err) : status;
}

hone_status hone_context_derive_chain_sized(
    hone_runtime *rt,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    size_t size,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err)
{
    hone_structs taken;
    hone_status status = hone_structs_take(&taken, links, count, size, sizeof *links, "hone_link", where, err);
    if (status == HONE_OK) status = context_derive_chain_known(rt, parent, taken.items, count, keeping, out, err);
    hone_structs_drop(&taken);
    return status;
}
