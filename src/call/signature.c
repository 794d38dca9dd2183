// Signatures after parsing: shared, immutable, counted.
#include "call/signature.h"
#include "call/call.h"

#include <string.h>

hone_signature *hone_signature_retain(hone_signature *signature)
{
    if (signature != NULL) atomic_fetch_add_explicit(&signature->references, 1, memory_order_relaxed);
    return signature;
}

void hone_signature_release(hone_signature **signature)
{
    if (signature == NULL || *signature == NULL) return;
    hone_signature *last = *signature;
    *signature = NULL;
    if (atomic_fetch_sub_explicit(&last->references, 1, memory_order_acq_rel) != 1) return;
    const hone_allocator allocator = last->arena.allocator;
    hone_arena_destroy(&last->arena);
    hone_free(&allocator, last);
}

const char *hone_signature_name(const hone_signature *signature)
{
    return signature != NULL ? signature->name : NULL;
}

const char *hone_signature_version(const hone_signature *signature)
{
    return signature != NULL ? signature->version : NULL;
}

const char *hone_signature_text(const hone_signature *signature)
{
    return signature != NULL ? signature->text : NULL;
}

size_t hone_signature_count(const hone_signature *signature)
{
    return signature != NULL ? signature->count : 0;
}

const hone_parameter *hone_signature_parameter(const hone_signature *signature, size_t index)
{
    return signature != NULL && index < signature->count ? &signature->parameters[index].shown : NULL;
}

int hone_signature_find(const hone_signature *signature, const char *name)
{
    for (size_t i = 0; name != NULL && i < signature->count; i++)
        if (strcmp(signature->parameters[i].shown.name, name) == 0) return (int)i;
    return -1;
}

bool hone_signature_has_buckets(const hone_signature *signature)
{
    return signature->has_buckets;
}

// What the expressions of shapes read.
typedef struct reading {
    const hone_signature *signature;
    size_t parameter;
    bool found;
} reading;

static void note_slot(void *ctx, uint32_t number)
{
    reading *r = ctx;
    const hone_call_slot *slot = &r->signature->slots[number];
    if (slot->kind == SLOT_SCALAR && slot->parameter == r->parameter) r->found = true;
}

static bool is_read_by(const hone_shape_pattern *shape, reading *r)
{
    for (const hone_shape_pattern *s = shape; s != NULL; s = s->otherwise) {
        if (s->condition != NULL) hone_expression_slots(s->condition, note_slot, r);
        for (uint32_t i = 0; i < s->count; i++)
            if (s->dims[i].expression != NULL)
                hone_expression_slots(s->dims[i].expression, note_slot, r);
            else
                note_slot(r, s->dims[i].slot);
    }
    return r->found;
}

bool hone_signature_shapes_read(const hone_signature *signature, size_t index)
{
    reading r = {signature, index, false};
    for (size_t i = 0; i < signature->count; i++)
        if (is_read_by(signature->parameters[i].shape, &r)) return true;
    return false;
}

static bool is_fact(hone_view fact, int64_t index)
{
    return index >= 0 ? hone_view_is(fact, "shape") : hone_view_is(fact, "ndim") || hone_view_is(fact, "size");
}

bool hone_signature_knows(const hone_signature *signature, hone_view name, int64_t index)
{
    const char *dot = memchr(name.data, '.', name.size);
    const hone_view owner = {name.data, dot != NULL ? (size_t)(dot - name.data) : name.size};
    if (dot == NULL && index < 0 && hone_signature_slot(signature, name) >= 0) return true;
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_parameter *shown = hone_signature_parameter(signature, i);
        if (!hone_view_is(owner, shown->name)) continue;
        const bool is_tensor = shown->kind == HONE_KIND_TENSOR;
        if (dot == NULL) return index < 0 && (!is_tensor || shown->nullable);
        return is_tensor && is_fact((hone_view){dot + 1, name.size - owner.size - 1}, index);
    }
    return false;
}
