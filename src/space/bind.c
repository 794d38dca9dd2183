// Filling in what a call and a device say.
#include "space/bound.h"

#include "base/error.h"

#include <string.h>

static const char where[] = "space.bind";

static hone_status no_such_name(
    const hone_space *space, const hone_space_name *name, const char *reason, hone_error *err)
{
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "'where %.400s': '%.100s' %s",
        hone_expression_source(space->constraints[name->constraint]).data, name->text, reason);
}

// The call may go away before the bound space does.
static hone_status keep_text(hone_bound_space *bound, const char *text, hone_scalar *out, hone_error *err)
{
    size_t size = strlen(text);
    const char *copy = hone_arena_text(&bound->arena, text, size);
    if (copy == NULL) return hone_fail_memory(err, where);
    *out = hone_scalar_text((hone_view){copy, size});
    return HONE_OK;
}

static hone_status from_value(
    hone_bound_space *bound, const hone_space_name *name, const hone_value *value, hone_scalar *out, hone_error *err)
{
    switch (value->tag) {
    case HONE_VALUE_NONE:
        *out = (hone_scalar){.kind = HONE_SCALAR_NONE};
        return HONE_OK;
    case HONE_VALUE_BOOL:
        *out = hone_scalar_bool(value->as.i64 != 0);
        return HONE_OK;
    case HONE_VALUE_INT:
        *out = hone_scalar_int(value->as.i64);
        return HONE_OK;
    case HONE_VALUE_FLOAT:
        *out = hone_scalar_float(value->as.f64);
        return HONE_OK;
    case HONE_VALUE_STRING:
        return keep_text(bound, value->as.string, out, err);
    default:
        return no_such_name(
            bound->space, name, "is a tensor; its dims are read as x.shape[0], their number as x.ndim", err);
    }
}

static hone_status from_call(
    hone_bound_space *bound, const hone_space_name *name, const hone_call *call, hone_scalar *out, hone_error *err)
{
    int64_t dim;
    if (call == NULL)
        return no_such_name(
            bound->space, name, "is no parameter of the space, and there is no call that could have it", err);
    int index = hone_signature_find(hone_call_signature(call), name->text);
    if (index >= 0) return from_value(bound, name, &hone_call_values(call)[index], out, err);
    if (hone_call_dim(call, name->text, &dim) != HONE_OK)
        return no_such_name(
            bound->space, name, "is neither a parameter of the space nor a dim or scalar of the call", err);
    *out = hone_scalar_int(dim);
    return HONE_OK;
}

static hone_status from_device(
    hone_bound_space *bound,
    const hone_space_name *name,
    const hone_device_info *device,
    hone_scalar *out,
    hone_error *err)
{
    if (device == NULL) return no_such_name(bound->space, name, "needs a device, and there is none", err);
    *out = hone_scalar_int(hone_space_device_limits[name->index].read(device));
    return HONE_OK;
}

static hone_status fill_names(
    hone_bound_space *bound, const hone_call *call, const hone_device_info *device, hone_scalar *out, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < bound->space->name_count; i++) {
        const hone_space_name *name = &bound->space->names[i];
        if (name->kind == HONE_NAME_CALL)
            status = from_call(bound, name, call, &out[i], err);
        else if (name->kind == HONE_NAME_DEVICE)
            status = from_device(bound, name, device, &out[i], err);
    }
    return status;
}

typedef struct scope {
    const hone_space *space;
    uint32_t parameters; // bits
} scope;

static void add_slot(void *ctx, uint32_t slot)
{
    scope *s = ctx;
    const hone_space_name *name = &s->space->names[slot];
    if (name->kind == HONE_NAME_PARAMETER) s->parameters |= 1u << name->index;
}

// For each parameter those that some constraint reads together with it.
static void find_neighbours(const hone_space *space, uint32_t *neighbours)
{
    for (size_t i = 0; i < space->constraint_count; i++) {
        scope s = {space, 0};
        hone_expression_slots(space->constraints[i], add_slot, &s);
        for (size_t j = 0; j < space->parameter_count; j++)
            if ((s.parameters >> j & 1) != 0) neighbours[j] |= s.parameters;
    }
}

// The pseudo-tree of constraint networks (Freuder and Quinn 1985), for the order of the text: from the last parameter
// to the first, each hangs below its last earlier neighbour, which inherits its other earlier ones.
static void find_tree(hone_bound_space *bound)
{
    uint32_t neighbours[HONE_MAX_PARAMETERS] = {0};
    size_t count = bound->space->parameter_count;
    find_neighbours(bound->space, neighbours);
    for (size_t i = count; i-- > 0;) {
        uint32_t earlier = neighbours[i] & ((1u << i) - 1);
        bound->parent_of[i] = (int8_t)(earlier == 0 ? -1 : 31 - __builtin_clz(earlier));
        if (earlier != 0) neighbours[bound->parent_of[i]] |= earlier;
    }
    for (size_t i = 0; i < count; i++) {
        int parent = bound->parent_of[i];
        bound->component_of[i] = parent < 0 ? (uint8_t)bound->component_count++ : bound->component_of[parent];
    }
}

static hone_status fill(hone_bound_space *bound, const hone_call *call, const hone_device_info *device, hone_error *err)
{
    hone_scalar *names = hone_alloc_array(&bound->allocator, bound->space->name_count, sizeof *names);
    if (names == NULL) return hone_fail_memory(err, where);
    hone_status status = fill_names(bound, call, device, names, err);
    if (status == HONE_OK) status = hone_space_lower(bound, names, err);
    if (status == HONE_OK) find_tree(bound);
    hone_free(&bound->allocator, names);
    return status;
}

hone_status hone_space_bind(
    const hone_space *space,
    const hone_call *call,
    const hone_device_info *device,
    hone_bound_space **out,
    hone_error *err)
{
    hone_allocator allocator = space->allocator;
    *out = NULL;
    hone_bound_space *bound = hone_alloc(&allocator, sizeof *bound);
    if (bound == NULL) return hone_fail_memory(err, where);
    bound->allocator = allocator;
    bound->arena.allocator = allocator;
    // Counting references changes nothing that a reader of the space sees.
    bound->space = hone_space_retain((hone_space *)(uintptr_t)space);
    hone_status status = fill(bound, call, device, err);
    if (status == HONE_OK)
        *out = bound;
    else
        hone_bound_space_release(&bound);
    return status;
}

void hone_bound_space_release(hone_bound_space **space)
{
    if (space == NULL || *space == NULL) return;
    hone_bound_space *dying = *space;
    *space = NULL;
    hone_allocator allocator = dying->allocator;
    hone_arena_destroy(&dying->arena);
    hone_space_release(&dying->space);
    hone_free(&allocator, dying);
}
