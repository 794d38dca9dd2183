// Interval arithmetic (R. E. Moore, "Interval Analysis", 1966) over the steps of a plan, on integers: an interval holds
// every value that the step can have, so a constraint whose interval is [0, 0] is false whatever follows. What may
// overflow, divide by zero or be no number is unknown, and refuses nothing: the errors are the constraints' to report.
//
// What depends only on values that are not set is worked out once a
// level; what mixes them with values that are set is a short program that runs for every prefix.
#include "space/bounds.h"

#include <string.h>

// Bounds save time: a space with so many constraints goes without.
enum { CELLS_MAX = 16384 };

typedef hone_space_interval interval;

static const interval unknown = {1, 0}, either = {0, 1};

static bool is_known(interval i)
{
    return i.low <= i.high;
}

static interval of_bool(bool is_true, bool is_false)
{
    if (is_true) return (interval){1, 1};
    return is_false ? (interval){0, 0} : either;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static interval product(interval a, interval b)
{
    int64_t p[4];
    if (__builtin_mul_overflow(a.low, b.low, &p[0]) || __builtin_mul_overflow(a.low, b.high, &p[1]) ||
        __builtin_mul_overflow(a.high, b.low, &p[2]) || __builtin_mul_overflow(a.high, b.high, &p[3]))
        return unknown;
    return (interval){
        least(least(p[0], p[1]), least(p[2], p[3])), greatest(greatest(p[0], p[1]), greatest(p[2], p[3]))};
}

// Of a dividend that is not negative by a positive divisor: the rest is left to the constraints.
static interval quotient(interval a, interval b, bool up)
{
    if (a.low < 0 || b.low <= 0) return unknown;
    return (interval){a.low / b.high + (up && a.low % b.high != 0), a.high / b.low + (up && a.high % b.low != 0)};
}

static interval remainder_of(interval a, interval b)
{
    if (a.low < 0 || b.low <= 0) return unknown;
    if (a.high < b.low) return a;
    return (interval){0, least(a.high, b.high - 1)};
}

static interval compared(uint32_t operation, interval a, interval b)
{
    switch (operation) {
    case HONE_OPERATION_EQUAL:
        return of_bool(a.low == a.high && b.low == b.high && a.low == b.low, a.high < b.low || b.high < a.low);
    case HONE_OPERATION_NOT_EQUAL:
        return of_bool(a.high < b.low || b.high < a.low, a.low == a.high && b.low == b.high && a.low == b.low);
    case HONE_OPERATION_LESS:
        return of_bool(a.high < b.low, a.low >= b.high);
    case HONE_OPERATION_LESS_EQUAL:
        return of_bool(a.high <= b.low, a.low > b.high);
    case HONE_OPERATION_GREATER:
        return of_bool(a.low > b.high, a.high <= b.low);
    default:
        return of_bool(a.low >= b.high, a.high < b.low);
    }
}

static interval truth(interval a)
{
    return of_bool(a.low > 0 || a.high < 0, a.low == 0 && a.high == 0);
}

static interval inverse(interval a)
{
    interval is_true = truth(a);
    return (interval){1 - is_true.high, 1 - is_true.low};
}

// An error on the left is the result; one on the right is only looked at when the left side leaves it open.
static interval joined(uint32_t operation, interval a, interval b)
{
    bool is_or = operation == HONE_OPERATION_OR;
    if (!is_known(a)) return unknown;
    interval left = truth(a), right = is_known(b) ? truth(b) : unknown;
    if (left.low == left.high && (left.low != 0) == is_or) return left;
    if (!is_known(right)) return unknown;
    if (is_or) return (interval){left.low | right.low, left.high | right.high};
    return (interval){left.low & right.low, left.high & right.high};
}

static interval sum(interval a, interval b)
{
    interval s;
    bool overflow = __builtin_add_overflow(a.low, b.low, &s.low) || __builtin_add_overflow(a.high, b.high, &s.high);
    return overflow ? unknown : s;
}

static interval difference(interval a, interval b)
{
    interval d;
    bool overflow = __builtin_sub_overflow(a.low, b.high, &d.low) || __builtin_sub_overflow(a.high, b.low, &d.high);
    return overflow ? unknown : d;
}

static interval magnitude(interval a)
{
    if (a.low >= 0) return a;
    interval negative = difference((interval){0, 0}, a);
    if (a.high <= 0 || !is_known(negative)) return negative;
    return (interval){0, greatest(negative.high, a.high)};
}

static interval apply(uint32_t operation, interval a, interval b)
{
    if (operation == HONE_OPERATION_AND || operation == HONE_OPERATION_OR) return joined(operation, a, b);
    if (!is_known(a) || !is_known(b)) return unknown;
    if (operation >= HONE_OPERATION_EQUAL && operation <= HONE_OPERATION_GREATER_EQUAL)
        return compared(operation, a, b);
    switch (operation) {
    case HONE_OPERATION_COPY:
    case HONE_OPERATION_PLUS:
        return a;
    case HONE_OPERATION_NOT:
        return inverse(a);
    case HONE_OPERATION_NEGATE:
        return difference((interval){0, 0}, a);
    case HONE_OPERATION_ABS:
        return magnitude(a);
    case HONE_OPERATION_ADD:
        return sum(a, b);
    case HONE_OPERATION_SUBTRACT:
        return difference(a, b);
    case HONE_OPERATION_MULTIPLY:
        return product(a, b);
    case HONE_OPERATION_DIVIDE:
    case HONE_OPERATION_FLOOR_DIVIDE:
        return quotient(a, b, false);
    case HONE_OPERATION_CEILDIV:
        return quotient(a, b, true);
    case HONE_OPERATION_MODULO:
        return remainder_of(a, b);
    case HONE_OPERATION_MIN:
        return (interval){least(a.low, b.low), least(a.high, b.high)};
    case HONE_OPERATION_MAX:
        return (interval){greatest(a.low, b.low), greatest(a.high, b.high)};
    default:
        return unknown;
    }
}

static interval of_value(const hone_scalar *value)
{
    bool is_integer = value->kind == HONE_SCALAR_INT || value->kind == HONE_SCALAR_BOOL;
    return is_integer ? (interval){value->as.i64, value->as.i64} : unknown;
}

static interval of_parameter(const hone_space_parameter *parameter)
{
    interval all = of_value(&parameter->values[0].scalar);
    for (size_t i = 1; i < parameter->count; i++) {
        interval one = of_value(&parameter->values[i].scalar);
        if (!is_known(one) || !is_known(all)) return unknown;
        all = (interval){least(all.low, one.low), greatest(all.high, one.high)};
    }
    return all;
}

// Of each cell, seen from one level.
enum { SET, STATIC, MIXED };

typedef struct maker {
    hone_space_bounds *bounds;
    const hone_space_walk *walk;
    size_t level, step_count, step_capacity;
    uint8_t *kinds;
    bool *needed;
} maker;

static void begin_level(maker *m, interval *cells)
{
    const hone_space_walk *walk = m->walk;
    memset(m->kinds, SET, m->bounds->cell_count);
    memset(m->needed, 0, m->bounds->cell_count);
    for (size_t i = m->level + 1; i < walk->depth; i++) {
        m->kinds[walk->order[i]] = STATIC;
        cells[walk->order[i]] = of_parameter(&walk->bound->space->parameters[walk->order[i]]);
    }
}

static bool add_step(maker *m, const hone_space_step *step)
{
    hone_space_bounds *b = m->bounds;
    hone_space_bounds_step added = {step->operation, step->to, step->a, step->b, false, false};
    added.a_is_set = m->kinds[step->a] == SET;
    added.b_is_set = m->kinds[step->b] == SET;
    if (!hone_grow(&b->allocator, &b->steps, &m->step_capacity, m->step_count + 1, sizeof added)) return false;
    b->steps[m->step_count++] = added;
    return true;
}

// Constants are set as well; a step between them and values that are not set is worked out at once.
static bool take_step(maker *m, const hone_space_step *step, interval *cells)
{
    uint8_t a = m->kinds[step->a], b = m->kinds[step->b];
    const hone_space_plan *plan = m->walk->plan;
    bool is_constant_a = a == SET && plan->cells[step->a].kind != HONE_SCALAR_NONE;
    bool is_constant_b = b == SET && plan->cells[step->b].kind != HONE_SCALAR_NONE;
    bool is_check = step->operation >= HONE_STEP_CHECK;
    if (is_check) return a != MIXED || add_step(m, step);
    if ((a == STATIC || is_constant_a) && (b == STATIC || is_constant_b)) {
        interval left = a == STATIC ? cells[step->a] : of_value(&plan->cells[step->a]);
        interval right = b == STATIC ? cells[step->b] : of_value(&plan->cells[step->b]);
        cells[step->to] = apply(step->operation, left, right);
        m->kinds[step->to] = STATIC;
        return true;
    }
    m->kinds[step->to] = MIXED;
    return add_step(m, step);
}

// Only what leads to a check is kept.
static void drop_needless(maker *m, size_t first)
{
    hone_space_bounds_step *steps = m->bounds->steps;
    size_t kept = m->step_count;
    for (size_t i = m->step_count; i-- > first;) {
        if (steps[i].operation < HONE_STEP_CHECK && !m->needed[steps[i].to]) continue;
        m->needed[steps[i].a] = m->needed[steps[i].b] = true;
        steps[--kept] = steps[i];
    }
    memmove(steps + first, steps + kept, (m->step_count - kept) * sizeof *steps);
    m->step_count = first + m->step_count - kept;
}

static bool make_level(maker *m)
{
    const hone_space_walk *walk = m->walk;
    interval *cells = m->bounds->cells + m->level * m->bounds->cell_count;
    size_t first = m->step_count;
    m->bounds->steps_from[m->level] = first;
    begin_level(m, cells);
    for (size_t i = m->level + 1; i < walk->depth; i++) {
        const hone_space_program *program = &walk->plan->programs[walk->order[i]];
        for (size_t j = 0; j < program->count; j++)
            if (!take_step(m, &program->steps[j], cells)) return false;
    }
    if (m->step_count > first) drop_needless(m, first);
    m->bounds->steps_from[m->level + 1] = m->step_count;
    return true;
}

bool hone_space_bounds_init(hone_space_bounds *bounds, const hone_space_walk *walk)
{
    const hone_allocator *allocator = &walk->bound->allocator;
    size_t count = walk->plan->cell_count;
    *bounds = (hone_space_bounds){.allocator = *allocator, .cell_count = count};
    if (walk->depth < 2 || count * walk->depth > CELLS_MAX) return true;
    bounds->cells = hone_alloc_array(allocator, count * walk->depth, sizeof *bounds->cells);
    uint8_t *bytes = hone_alloc_array(allocator, count, 2);
    maker m = {.bounds = bounds, .walk = walk, .kinds = bytes};
    bool made = bounds->cells != NULL && bytes != NULL;
    if (made) m.needed = (bool *)(bytes + count);
    for (m.level = 0; made && m.level + 1 < walk->depth; m.level++)
        made = make_level(&m);
    hone_free(allocator, bytes);
    return made;
}

void hone_space_bounds_deinit(hone_space_bounds *bounds)
{
    hone_free(&bounds->allocator, bounds->cells);
    hone_free(&bounds->allocator, bounds->steps);
    bounds->cells = NULL;
    bounds->steps = NULL;
}

bool hone_space_bounds_refuse(hone_space_bounds *bounds, const hone_space_walk *walk, size_t level)
{
    if (bounds->steps == NULL) return false;
    interval *cells = bounds->cells + level * bounds->cell_count;
    const hone_space_bounds_step *step = bounds->steps + bounds->steps_from[level];
    const hone_space_bounds_step *end = bounds->steps + bounds->steps_from[level + 1];
    for (; step < end; step++) {
        interval a = step->a_is_set ? of_value(&walk->cells[step->a]) : cells[step->a];
        if (step->operation >= HONE_STEP_CHECK) {
            if (a.low == 0 && a.high == 0) return true;
            continue;
        }
        interval b = step->b_is_set ? of_value(&walk->cells[step->b]) : cells[step->b];
        cells[step->to] = apply(step->operation, a, b);
    }
    return false;
}
