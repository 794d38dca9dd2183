// A context is a linked list that only grows at its new end: deriving copies nothing, and a context that
// somebody captured stays what it was.
#include "config/context.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "hone/describe.h"

#include <string.h>

static const char create_where[] = "overlay.create";
static const char derive_where[] = "context.derive";

_Thread_local hone_thread hone_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

hone_status hone_overlay_new(hone_allocator allocator, hone_overlay **out, hone_error *err)
{
    hone_overlay *overlay = hone_alloc(&allocator, sizeof *overlay);
    if (overlay == NULL) return hone_fail_memory(err, create_where);
    atomic_init(&overlay->references, 1);
    hone_decisions_init(&overlay->decisions, allocator);
    *out = overlay;
    return HONE_OK;
}

static hone_overlay *overlay_retain(hone_overlay *overlay)
{
    if (overlay != NULL) atomic_fetch_add_explicit(&overlay->references, 1, memory_order_relaxed);
    return overlay;
}

void hone_overlay_release(hone_overlay **overlay_pointer)
{
    if (overlay_pointer == NULL) return;
    hone_overlay *overlay = *overlay_pointer;
    *overlay_pointer = NULL;
    if (overlay == NULL || atomic_fetch_sub_explicit(&overlay->references, 1, memory_order_acq_rel) != 1) return;
    hone_allocator allocator = overlay->decisions.allocator;
    hone_decisions_deinit(&overlay->decisions);
    hone_free(&allocator, overlay);
}

size_t hone_overlay_size(const hone_overlay *overlay)
{
    return overlay == NULL ? 0 : overlay->decisions.count;
}

// Numbers are never used twice in a process, so that a plan made under one context cannot answer for another.
static uint64_t next_number(void)
{
    static atomic_uint_fast64_t last;
    return (uint64_t)atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

// What a context says -------------------------------------------------------------------------------------------------

static uint64_t add_text(uint64_t digest, const char *text)
{
    return text == NULL ? digest : hone_hash64_add(digest, text, strlen(text));
}

static uint64_t digest_of_row(const hone_decision_row *row)
{
    const hone_decision *decision = &row->decision;
    const int32_t platform = (int32_t)decision->platform;
    const char *const texts[] = {row->device,   row->spec,        decision->algorithm,  decision->version,
                                 decision->key, decision->kernel, decision->config_json};
    uint64_t digest = hone_hash64_add(0, &platform, sizeof platform);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        digest = add_text(digest, texts[i]);
    return digest;
}

// A sum: the order of rows says nothing, for each has a key of its own.
static uint64_t digest_of_overlay(const hone_overlay *overlay)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < hone_overlay_size(overlay); i++)
        digest += digest_of_row(overlay->decisions.rows[i]);
    return digest;
}

static uint64_t digest_of_override(const hone_context_override *override_)
{
    const int32_t numbers[] = {(int32_t)override_->platform, override_->store};
    uint64_t digest = hone_hash64_add(1, numbers, sizeof numbers);
    digest = add_text(digest, override_->algorithm);
    digest = add_text(digest, override_->version);
    digest = add_text(digest, override_->kernel);
    return add_text(digest, override_->config);
}

// A sum, too.
static uint64_t digest_of_links(const hone_context *context)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < context->link_count; i++) {
        const int32_t source = (int32_t)context->links[i].link.source;
        digest += add_text(hone_hash64_add(5, &source, sizeof source), context->links[i].link.name);
    }
    return digest;
}

// The parent's when nothing is said beside it.
static uint64_t digest_of(const hone_context *context)
{
    uint64_t digest = hone_context_digest(context->parent);
    const int32_t policy = (int32_t)context->policy, keeping = (int32_t)context->keeping;
    if (hone_overlay_size(context->overlay) > 0) {
        const uint64_t overlay = digest_of_overlay(context->overlay);
        digest = hone_hash64_add(digest + 1, &overlay, sizeof overlay);
    }
    if (context->override_.algorithm[0] != '\0') {
        const uint64_t override_ = digest_of_override(&context->override_);
        digest = hone_hash64_add(digest + 2, &override_, sizeof override_);
    }
    if (policy != HONE_POLICY_DEFAULT) digest = hone_hash64_add(digest + 3, &policy, sizeof policy);
    if (keeping != HONE_KEEP_DEFAULT) digest = hone_hash64_add(digest + 4, &keeping, sizeof keeping);
    return context->link_count == 0 ? digest : digest + 5 + digest_of_links(context);
}

hone_status hone_context_new(
    hone_allocator allocator,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_context_override *override_,
    hone_policy policy,
    hone_context **out,
    hone_error *err)
{
    hone_assert(policy >= HONE_POLICY_DEFAULT && policy <= HONE_POLICY_FROZEN);
    hone_context *context = hone_alloc(&allocator, sizeof *context);
    if (context == NULL) return hone_fail_memory(err, derive_where);
    if (override_ != NULL) {
        context->override_ = *override_;
        if (override_->config != NULL) {
            context->override_.config = hone_copy_text(&allocator, override_->config, strlen(override_->config));
            if (context->override_.config == NULL) {
                hone_free(&allocator, context);
                return hone_fail_memory(err, derive_where);
            }
        }
    }
    atomic_init(&context->references, 1);
    context->allocator = allocator;
    context->number = next_number();
    context->parent = hone_context_retain(parent);
    context->overlay = overlay_retain(overlay);
    context->policy = policy;
    context->digest = digest_of(context);
    *out = context;
    return HONE_OK;
}

static bool copy_links(hone_context *context, const hone_link *links, size_t count)
{
    context->links = hone_alloc_array(&context->allocator, count, sizeof *context->links);
    if (context->links == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        hone_link *to = &context->links[i].link;
        *to = links[i];
        context->links[i].under = context->parent;
        to->release = NULL; // until all is there
        to->name = NULL;
        context->link_count++;
        if (to->find == NULL) continue;
        to->name = hone_copy_text(&context->allocator, links[i].name, strlen(links[i].name));
        if (to->name == NULL) return false;
    }
    for (size_t i = 0; i < count; i++)
        context->links[i].link.release = links[i].release;
    return true;
}

hone_status hone_context_new_chain(
    hone_allocator allocator,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err)
{
    hone_context *context = NULL;
    hone_status status = hone_context_new(allocator, parent, NULL, NULL, HONE_POLICY_DEFAULT, &context, err);
    if (status != HONE_OK) return status;
    context->keeping = keeping;
    if (count > 0 && !copy_links(context, links, count)) {
        hone_context_release(&context);
        return hone_fail_memory(err, derive_where);
    }
    context->digest = digest_of(context);
    *out = context;
    return HONE_OK;
}

static void release_links(hone_context *context)
{
    for (size_t i = 0; i < context->link_count; i++) {
        const hone_link *link = &context->links[i].link;
        if (link->release != NULL) link->release(link->ctx);
        hone_free(&context->allocator, (char *)(uintptr_t)link->name);
    }
    hone_free(&context->allocator, context->links);
}

hone_context *hone_context_retain(hone_context *context)
{
    if (context != NULL) atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

void hone_context_release(hone_context **context_pointer)
{
    if (context_pointer == NULL) return;
    hone_context *context = *context_pointer;
    *context_pointer = NULL;
    while (context != NULL && atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) == 1) {
        hone_context *parent = context->parent;
        hone_allocator allocator = context->allocator;
        hone_overlay_release(&context->overlay);
        release_links(context);
        hone_free(&allocator, context->override_.config);
        hone_free(&allocator, context);
        context = parent;
    }
}

uint64_t hone_context_number(const hone_context *context)
{
    return context == NULL ? 0 : context->number;
}

uint64_t hone_context_digest(const hone_context *context)
{
    return context == NULL ? 0 : context->digest;
}

hone_context *hone_context_enter(hone_context *context)
{
    hone_thread *self = &hone_thread_self;
    hone_context *previous = self->context;
    uint64_t number = hone_context_number(context);
    self->context = context;
    self->context_number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    return previous;
}

hone_context *hone_context_current(void)
{
    return hone_thread_self.context;
}

hone_policy hone_context_policy(const hone_context *context, hone_policy fallback)
{
    for (; context != NULL; context = context->parent)
        if (context->policy != HONE_POLICY_DEFAULT) return context->policy;
    return fallback;
}

bool hone_context_stores(const hone_context *context)
{
    for (; context != NULL; context = context->parent)
        if (context->keeping != HONE_KEEP_DEFAULT) return context->keeping == HONE_KEEP_STORED;
    return true;
}

static const hone_context_link *link_of(const hone_context *context, hone_source source)
{
    for (size_t i = 0; i < context->link_count; i++)
        if (context->links[i].link.source == source) return &context->links[i];
    return NULL;
}

const hone_context_link *hone_context_find_link(const hone_context *context, hone_source source)
{
    const hone_context_link *found = NULL;
    for (; context != NULL && found == NULL; context = context->parent)
        found = link_of(context, source);
    return found;
}

static bool answers(const hone_context_override *override_, const char *algorithm, const char *version)
{
    if (strcmp(override_->algorithm, algorithm) != 0) return false;
    return override_->version[0] == '\0' || strcmp(override_->version, version) == 0;
}

const hone_context_override *hone_context_find_override(
    const hone_context *context, const char *algorithm, const char *version)
{
    for (; context != NULL && link_of(context, HONE_SOURCE_OVERRIDE) == NULL; context = context->parent)
        if (answers(&context->override_, algorithm, version)) return &context->override_;
    return NULL;
}

const hone_decision_row *hone_context_find(
    const hone_context *context,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key,
    const char *spec)
{
    for (; context != NULL && link_of(context, HONE_SOURCE_OVERLAY) == NULL; context = context->parent) {
        if (context->overlay == NULL) continue;
        const hone_decision_row *row =
            hone_decisions_get(&context->overlay->decisions, device, algorithm, version, key, spec);
        if (row != NULL) return row;
    }
    return NULL;
}
