// From expressions, each with registers of its own, to cells that all constraints share.
//
// Method: value numbering (J. Cocke and J. T. Schwartz, "Programming Languages and Their Compilers", 1970) with loop
// invariants moved out. A step whose operation and operands are in the table already is the cell that is there; a step
// of constants alone is computed now. A cell's level is that of the last parameter, in the plan's order, that it
// depends on: it is computed when that parameter is set, so what inner parameters do not change is computed once for
// all of them. A constraint is checked at its own level; a part of an `and` that is known earlier refuses there
// already.
#include "space/bound.h"

#include "base/error.h"
#include "base/hash.h"

#include <string.h>

static const char where[] = "space.bind";

enum { CONSTANT = -1 };            // the level of a cell that no parameter changes
enum { CONSTANT_OPERATION = 256 }; // plus its kind: in place of a constant's operation; its a and b are its bits

typedef struct cell {
    hone_scalar value;  // of a constant
    int level;          // the last parameter that it depends on
    uint32_t operation; // that computes it; LITERAL for parameters
    uint32_t a, b;
} cell;

typedef struct leveled_step {
    hone_space_step step;
    int level;
} leveled_step;

typedef struct lowering {
    const hone_bound_space *bound;
    hone_space_plan *plan;
    int levels[HONE_MAX_PARAMETERS]; // of the parameters
    cell *cells;
    size_t cell_count, cell_capacity;
    leveled_step *steps;
    size_t step_count, step_capacity;
    uint32_t *table; // open addressing, cell + 1, of what is there already
    size_t table_mask;
    uint32_t registers[HONE_EXPRESSION_REGISTERS]; // cells
    size_t constraint;                             // being lowered
    hone_status status;
    hone_error *err;
} lowering;

static bool failed(const lowering *l)
{
    return l->status != HONE_OK;
}

static void out_of_memory(lowering *l)
{
    if (!failed(l)) l->status = hone_fail_memory(l->err, where);
}

static uint32_t add_cell(lowering *l, cell added)
{
    if (failed(l)) return 0;
    if (!hone_grow(&l->bound->allocator, &l->cells, &l->cell_capacity, l->cell_count + 1, sizeof added)) {
        out_of_memory(l);
        return 0;
    }
    l->cells[l->cell_count] = added;
    return (uint32_t)l->cell_count++;
}

static void add_step(lowering *l, uint32_t operation, uint32_t to, uint32_t a, uint32_t b, int level)
{
    if (failed(l)) return;
    if (!hone_grow(&l->bound->allocator, &l->steps, &l->step_capacity, l->step_count + 1, sizeof *l->steps)) {
        out_of_memory(l);
        return;
    }
    l->steps[l->step_count++] = (leveled_step){{operation, to, a, b}, level};
}

// Where the cell of this computation is, or belongs.
static uint32_t *find_cell(lowering *l, uint32_t operation, uint32_t a, uint32_t b)
{
    const uint32_t key[] = {operation, a, b};
    for (size_t i = hone_hash64(key, sizeof key) & l->table_mask;; i = (i + 1) & l->table_mask) {
        if (l->table[i] == 0) return &l->table[i];
        const cell *found = &l->cells[l->table[i] - 1];
        if (found->operation == operation && found->a == a && found->b == b) return &l->table[i];
    }
}

// Equal numbers share a cell, so that what is computed from them can. Texts need none of that.
static uint32_t add_constant(lowering *l, hone_scalar value)
{
    uint32_t halves[2] = {0};
    cell constant = {.value = value, .level = CONSTANT, .operation = CONSTANT_OPERATION + (uint32_t)value.kind};
    if (failed(l)) return 0;
    if (value.kind == HONE_SCALAR_TEXT) return add_cell(l, constant);
    if (value.kind != HONE_SCALAR_NONE) memcpy(halves, &value.as, sizeof halves);
    constant.a = halves[0];
    constant.b = halves[1];
    uint32_t *entry = find_cell(l, constant.operation, constant.a, constant.b);
    if (*entry != 0) return *entry - 1;
    uint32_t to = add_cell(l, constant);
    if (!failed(l)) *entry = to + 1;
    return to;
}

static bool commutes(hone_operation operation)
{
    return operation == HONE_OPERATION_ADD || operation == HONE_OPERATION_MULTIPLY ||
           operation == HONE_OPERATION_EQUAL || operation == HONE_OPERATION_NOT_EQUAL;
}

// A computation whose result no parameter changes: both operands constant, or the left one decides alone.
static bool fold(const lowering *l, hone_operation operation, uint32_t a, uint32_t b, hone_scalar *out)
{
    const cell *left = &l->cells[a], *right = &l->cells[b];
    bool is_and = operation == HONE_OPERATION_AND, is_or = operation == HONE_OPERATION_OR;
    if (left->level != CONSTANT) return false;
    bool decided =
        (is_and || is_or) && (left->value.kind == HONE_SCALAR_ERROR || hone_scalar_truth(&left->value) == is_or);
    if (!decided && right->level != CONSTANT) return false;
    hone_scalar_apply(operation, &left->value, decided ? &left->value : &right->value, out);
    return true;
}

static uint32_t compute(lowering *l, hone_operation operation, uint32_t a, uint32_t b)
{
    hone_scalar folded;
    if (failed(l)) return 0;
    if (fold(l, operation, a, b, &folded)) return add_constant(l, folded);
    if (commutes(operation) && a > b) {
        uint32_t swapped = a;
        a = b;
        b = swapped;
    }
    uint32_t *entry = find_cell(l, operation, a, b);
    if (*entry != 0) return *entry - 1;
    int level = l->cells[a].level > l->cells[b].level ? l->cells[a].level : l->cells[b].level;
    uint32_t to = add_cell(l, (cell){.level = level, .operation = operation, .a = a, .b = b});
    add_step(l, operation, to, a, b, level);
    if (!failed(l)) *entry = to + 1;
    return to;
}

static uint32_t lower_slot(lowering *l, uint32_t slot)
{
    const hone_space_name *name = &l->bound->space->names[slot];
    return name->kind == HONE_NAME_PARAMETER ? (uint32_t)name->index : add_constant(l, l->bound->names[slot]);
}

static uint32_t lower_step(lowering *l, const hone_expression_step *step)
{
    switch (step->operation) {
    case HONE_OPERATION_LITERAL:
        return add_constant(l, step->literal);
    case HONE_OPERATION_SLOT:
        return lower_slot(l, step->slot);
    case HONE_OPERATION_COPY:
        return l->registers[step->a];
    default:
        return compute(l, step->operation, l->registers[step->a], l->registers[step->b]);
    }
}

// A constant part refuses every config at once; one that is known before the whole gets a filter.
static void add_filter(lowering *l, uint32_t part, int whole_level)
{
    const cell *c = &l->cells[part];
    if (c->level == CONSTANT) {
        if (c->value.kind == HONE_SCALAR_ERROR || hone_scalar_truth(&c->value) || l->plan->refused) return;
        l->plan->refused = true;
        l->plan->refused_by = l->constraint;
    } else if (c->level < whole_level) {
        add_step(l, HONE_STEP_FILTER, (uint32_t)l->constraint, part, part, c->level);
    }
}

// The parts that `and` joins. The left side nests as long as the text is, the right side only with parentheses.
static void add_filters(lowering *l, uint32_t part, int whole_level)
{
    while (!failed(l) && l->cells[part].operation == HONE_OPERATION_AND) {
        add_filter(l, part, whole_level);
        add_filters(l, l->cells[part].b, whole_level);
        part = l->cells[part].a;
    }
    if (!failed(l)) add_filter(l, part, whole_level);
}

static void add_check(lowering *l, uint32_t root)
{
    const cell *c = &l->cells[root];
    if (c->level == CONSTANT && c->value.kind == HONE_SCALAR_ERROR) {
        l->status = hone_fail(
            l->err, HONE_INVALID_ARGUMENT, where, "'where %s' cannot be evaluated: %s",
            hone_expression_source(l->bound->space->constraints[l->constraint]).data, hone_scalar_problem(&c->value));
        return;
    }
    int level = c->level;
    add_filters(l, root, level);
    if (level != CONSTANT) add_step(l, HONE_STEP_CHECK, (uint32_t)l->constraint, root, root, level);
}

static void lower_constraint(lowering *l, size_t index)
{
    size_t count;
    const hone_expression_step *steps = hone_expression_steps(l->bound->space->constraints[index], &count);
    l->constraint = index;
    for (size_t i = 0; i < count && !failed(l); i++)
        l->registers[steps[i].to] = lower_step(l, &steps[i]);
    if (!failed(l)) add_check(l, l->registers[0]);
}

// A table of at least twice the entries that can come.
static void make_table(lowering *l)
{
    size_t entries = 0, count, size = 16;
    for (size_t i = 0; i < l->bound->space->constraint_count; i++) {
        hone_expression_steps(l->bound->space->constraints[i], &count);
        entries += count;
    }
    while (size < 2 * entries)
        size *= 2;
    l->table = hone_alloc_array(&l->bound->allocator, size, sizeof *l->table);
    l->table_mask = size - 1;
    if (l->table == NULL) out_of_memory(l);
}

static void add_parameters(lowering *l)
{
    for (size_t i = 0; i < l->bound->space->parameter_count; i++)
        add_cell(l, (cell){.level = l->levels[i], .operation = HONE_OPERATION_LITERAL});
}

// The steps in order, sorted into a program a parameter.
static void settle_programs(lowering *l)
{
    hone_space_plan *plan = l->plan;
    hone_space_step *steps = hone_arena_array(&plan->arena, l->step_count, sizeof *steps);
    if (steps == NULL) {
        out_of_memory(l);
        return;
    }
    for (size_t i = 0; i < l->step_count; i++)
        plan->programs[plan->order[l->steps[i].level]].count++;
    for (size_t i = 0; i < l->bound->space->parameter_count; i++) {
        plan->programs[i].steps = steps;
        steps += plan->programs[i].count;
        plan->programs[i].count = 0;
    }
    for (size_t i = 0; i < l->step_count; i++) {
        hone_space_program *program = &plan->programs[plan->order[l->steps[i].level]];
        program->steps[program->count++] = l->steps[i].step;
    }
}

static void settle_cells(lowering *l)
{
    hone_space_plan *plan = l->plan;
    plan->cell_count = l->cell_count;
    plan->cells = hone_arena_array(&plan->arena, l->cell_count, sizeof *plan->cells);
    if (plan->cells == NULL) {
        out_of_memory(l);
        return;
    }
    for (size_t i = 0; i < l->cell_count; i++)
        plan->cells[i] = l->cells[i].value;
}

static void lower(lowering *l)
{
    const hone_space *space = l->bound->space;
    for (size_t i = 0; i < space->parameter_count; i++)
        l->levels[l->plan->order[i]] = (int)i;
    make_table(l);
    add_parameters(l);
    for (size_t i = 0; i < space->constraint_count && !failed(l); i++)
        lower_constraint(l, i);
    if (!failed(l)) settle_programs(l);
    if (!failed(l)) settle_cells(l);
}

hone_status hone_space_plan_init(
    hone_space_plan *plan, const hone_bound_space *bound, const uint8_t *order, hone_error *err)
{
    lowering l = {.bound = bound, .plan = plan, .err = err};
    *plan = (hone_space_plan){.arena = {.allocator = bound->allocator}};
    for (size_t i = 0; i < bound->space->parameter_count; i++)
        plan->order[i] = order[i];
    lower(&l);
    hone_free(&bound->allocator, l.table);
    hone_free(&bound->allocator, l.steps);
    hone_free(&bound->allocator, l.cells);
    return l.status;
}

void hone_space_plan_deinit(hone_space_plan *plan)
{
    hone_arena_destroy(&plan->arena);
}
