// Depth first, a parameter at a time, each followed by its program. Nearly all of the time of counting and
// enumerating is spent in run_program, so integers are computed here and everything else is asked of scalar.c.
#include "space/bound.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

static const char where[] = "space.enumerate";

hone_status hone_space_walk_init(
    hone_space_walk *walk, const hone_bound_space *bound, const hone_space_plan *plan, int component, hone_error *err)
{
    *walk = (hone_space_walk){.bound = bound, .plan = plan, .budget = UINT64_MAX};
    walk->point.config.count = (uint32_t)bound->space->parameter_count;
    for (size_t i = 0; i < bound->space->parameter_count; i++)
        if (component == HONE_ALL_COMPONENTS || bound->component_of[plan->order[i]] == component)
            walk->order[walk->depth++] = plan->order[i];
    walk->cells = hone_alloc_array(&bound->allocator, plan->cell_count, sizeof *walk->cells);
    if (walk->cells == NULL) return hone_fail_memory(err, where);
    if (plan->cell_count > 0) memcpy(walk->cells, plan->cells, plan->cell_count * sizeof *walk->cells);
    return HONE_OK;
}

void hone_space_walk_deinit(hone_space_walk *walk)
{
    hone_free(&walk->bound->allocator, walk->cells);
    walk->cells = NULL;
}

static inline bool is_integer(const hone_scalar *scalar)
{
    return scalar->kind == HONE_SCALAR_INT || scalar->kind == HONE_SCALAR_BOOL;
}

static inline void set_bool(hone_scalar *to, bool value)
{
    to->kind = HONE_SCALAR_BOOL;
    to->as.i64 = value;
}

static inline void set_int(hone_scalar *to, int64_t value)
{
    to->kind = HONE_SCALAR_INT;
    to->as.i64 = value;
}

// True when it was done here: the operations that constraints are made of, on integers that raise no question.
static inline bool apply_integers(uint32_t operation, int64_t a, int64_t b, hone_scalar *to)
{
    int64_t value;
    switch (operation) {
    case HONE_OPERATION_ADD:
        if (__builtin_add_overflow(a, b, &value)) return false;
        set_int(to, value);
        return true;
    case HONE_OPERATION_SUBTRACT:
        if (__builtin_sub_overflow(a, b, &value)) return false;
        set_int(to, value);
        return true;
    case HONE_OPERATION_MULTIPLY:
        if (__builtin_mul_overflow(a, b, &value)) return false;
        set_int(to, value);
        return true;
    case HONE_OPERATION_MODULO:
        if (a < 0 || b <= 0 || a > UINT32_MAX || b > UINT32_MAX) return false;
        set_int(to, (uint32_t)a % (uint32_t)b); // half the time of a division of 64 bits
        return true;
    case HONE_OPERATION_AND:
        set_bool(to, a != 0 && b != 0);
        return true;
    case HONE_OPERATION_OR:
        set_bool(to, a != 0 || b != 0);
        return true;
    case HONE_OPERATION_EQUAL:
        set_bool(to, a == b);
        return true;
    case HONE_OPERATION_NOT_EQUAL:
        set_bool(to, a != b);
        return true;
    case HONE_OPERATION_LESS:
        set_bool(to, a < b);
        return true;
    case HONE_OPERATION_LESS_EQUAL:
        set_bool(to, a <= b);
        return true;
    case HONE_OPERATION_GREATER:
        set_bool(to, a > b);
        return true;
    case HONE_OPERATION_GREATER_EQUAL:
        set_bool(to, a >= b);
        return true;
    default:
        return false;
    }
}

static hone_verdict judge(uint32_t step, const hone_scalar *cell)
{
    if (cell->kind == HONE_SCALAR_ERROR) return step == HONE_STEP_CHECK ? HONE_FAILED : HONE_ACCEPTED;
    return hone_scalar_truth(cell) ? HONE_ACCEPTED : HONE_REFUSED;
}

static hone_verdict run_program(hone_space_walk *walk, const hone_space_program *program)
{
    hone_scalar *cells = walk->cells;
    const hone_space_step *end = program->steps + program->count;
    for (const hone_space_step *step = program->steps; step < end; step++) {
        const hone_scalar *a = &cells[step->a], *b = &cells[step->b];
        if (step->operation >= HONE_STEP_CHECK) {
            if (a->kind == HONE_SCALAR_BOOL && a->as.i64 != 0) continue;
            hone_verdict verdict = judge(step->operation, a);
            if (verdict == HONE_ACCEPTED) continue;
            walk->stopped_at = step;
            return verdict;
        }
        bool done =
            is_integer(a) && is_integer(b) && apply_integers(step->operation, a->as.i64, b->as.i64, &cells[step->to]);
        if (!done) hone_scalar_apply((hone_operation)step->operation, a, b, &cells[step->to]);
    }
    return HONE_ACCEPTED;
}

hone_verdict hone_space_walk_set(hone_space_walk *walk, size_t parameter, uint32_t position)
{
    const hone_space_parameter *p = &walk->bound->space->parameters[parameter];
    hone_assert(parameter < walk->bound->space->parameter_count && position < p->count);
    walk->point.positions[parameter] = (uint16_t)position;
    walk->cells[parameter] = p->values[position].scalar;
    walk->point.config.values[parameter] = p->integers ? p->values[position].scalar.as.i64 : (int64_t)position;
    return run_program(walk, &walk->plan->programs[parameter]);
}

hone_status hone_space_walk_failure(const hone_space_walk *walk, uint32_t which, hone_error *err)
{
    char config[400];
    const hone_space *space = walk->bound->space;
    size_t length = hone_space_config_text(space, &walk->point.config, which, config, sizeof config);
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "'where %.400s' cannot be evaluated for %s%s: %s",
        hone_expression_source(space->constraints[walk->stopped_at->to]).data, config,
        length < sizeof config ? "" : "...", hone_scalar_problem(&walk->cells[walk->stopped_at->a]));
}

static uint32_t set_until(const hone_space_walk *walk, size_t depth)
{
    uint32_t set = 0;
    for (size_t i = 0; i <= depth; i++)
        set |= 1u << walk->order[i];
    return set;
}

hone_status hone_space_walk_run(
    hone_space_walk *walk, bool (*visit)(void *ctx, const hone_space_walk *walk), void *ctx, hone_error *err)
{
    uint32_t next[HONE_MAX_PARAMETERS] = {0}; // position to try, by depth
    size_t depth = 0;
    if (walk->plan->refused) return HONE_OK;
    if (walk->depth == 0) {
        visit(ctx, walk);
        return HONE_OK;
    }
    for (;;) {
        size_t parameter = walk->order[depth];
        if (next[depth] == walk->bound->space->parameters[parameter].count) {
            if (depth == 0) return HONE_OK;
            depth--;
            continue;
        }
        if (walk->budget == 0) return HONE_OK;
        walk->budget--;
        hone_verdict verdict = hone_space_walk_set(walk, parameter, next[depth]++);
        if (verdict == HONE_FAILED) return hone_space_walk_failure(walk, set_until(walk, depth), err);
        if (verdict == HONE_REFUSED) continue;
        if (depth + 1 < walk->depth)
            next[++depth] = 0;
        else if (!visit(ctx, walk))
            return HONE_OK;
    }
}
