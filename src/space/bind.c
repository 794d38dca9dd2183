// Filling in what a call and a device say.
#include "space/ranking.h"

#include "base/error.h"
#include "hone/describe.h"
#include "space/term.h"

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
            bound->space, name, "is not a parameter of the space, and there is no call that could have it", err);
    int index = hone_signature_find(hone_call_signature(call), name->text);
    if (index >= 0) return from_value(bound, name, &hone_call_values(call)[index], out, err);
    if (hone_term_size(call, hone_view_of(name->text), out)) return HONE_OK;
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

static void find_neighbours(hone_bound_space *bound)
{
    const hone_space *space = bound->space;
    for (size_t i = 0; i < space->constraint_count; i++) {
        scope s = {space, 0};
        hone_expression_slots(space->constraints[i], add_slot, &s);
        for (size_t j = 0; j < space->parameter_count; j++)
            if ((s.parameters >> j & 1) != 0) bound->neighbours[j] |= s.parameters;
    }
}

// The parameters that can be reached from one, over any number of constraints.
static uint32_t reach(const hone_bound_space *bound, size_t parameter)
{
    uint32_t reached = 1u << parameter;
    for (uint32_t left = reached; left != 0;) {
        size_t next = (size_t)__builtin_ctz(left);
        left = (left & (left - 1)) | (bound->neighbours[next] & ~reached);
        reached |= bound->neighbours[next];
    }
    return reached;
}

// Components are numbered by their first parameters.
static void find_components(hone_bound_space *bound)
{
    uint32_t known = 0;
    find_neighbours(bound);
    for (size_t i = 0; i < bound->space->parameter_count; i++) {
        if ((known >> i & 1) != 0) continue;
        uint32_t reached = reach(bound, i);
        for (uint32_t left = reached; left != 0; left &= left - 1)
            bound->component_of[__builtin_ctz(left)] = (uint8_t)bound->component_count;
        known |= reached;
        bound->component_count++;
    }
}

static hone_status fill(hone_bound_space *bound, const hone_call *call, const hone_device_info *device, hone_error *err)
{
    uint8_t order[HONE_MAX_PARAMETERS];
    for (size_t i = 0; i < bound->space->parameter_count; i++)
        order[i] = (uint8_t)i;
    bound->names = hone_arena_array(&bound->arena, bound->space->name_count, sizeof *bound->names);
    if (bound->names == NULL) return hone_fail_memory(err, where);
    hone_status status = fill_names(bound, call, device, bound->names, err);
    if (status == HONE_OK) status = hone_space_plan_init(&bound->plan, bound, order, err);
    if (status == HONE_OK) find_components(bound);
    return status;
}

hone_status hone_space_bind(
    const hone_space *space,
    const hone_call *call,
    const hone_device_info *device,
    hone_bound_space **out,
    hone_error *err)
{
    if (space == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the space or out is NULL");
    }
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
    hone_space_ranking_release(atomic_load_explicit(&dying->ranking, memory_order_acquire));
    hone_space_plan_deinit(&dying->plan);
    hone_arena_destroy(&dying->arena);
    hone_space_release(&dying->space);
    hone_free(&allocator, dying);
}
