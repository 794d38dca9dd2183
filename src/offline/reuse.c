// Reads are counted from their ends to the beginning: bodies before those that call them, and in a body the last
// operation first, so that what an operation makes has all its reads when those of its operands are added. That is one
// look at each operand. What only lays an array out anew reads nothing by itself: who reads its result does. A loop
// reads what stays in its state once a trip, and of what it takes slices of, each trip another one. Counts end at 2.
//
// What is not of this shape counts as read more often: what passes through a tuple, where loops of HLO have their
// state, and through a branch. Then a call is measured with warm caches, as before.
#include "offline/reuse.h"

#include "offline/operands.h"

#include <string.h>

enum { MANY = 2, BEHIND = 64 };

static const bool lays_out[OPCODE_COUNT] = {
    [OPCODE_BITCAST] = true, [OPCODE_BITCAST_CONVERT] = true,      [OPCODE_COPY] = true,      [OPCODE_RESHAPE] = true,
    [OPCODE_CONVERT] = true, [OPCODE_OPTIMIZATION_BARRIER] = true, [OPCODE_TRANSPOSE] = true,
};
static const bool cuts[OPCODE_COUNT] = {[OPCODE_SLICE] = true, [OPCODE_DYNAMIC_SLICE] = true};

static uint8_t added(int a, int b)
{
    return (uint8_t)(a + b < MANY ? a + b : MANY);
}

static hone_reads reads_of(const hone_reuse *r, uint32_t value)
{
    return value != HONE_GRAPH_NONE ? r->reads[value] : (hone_reads){0, 0};
}

// Two slices are of two parts.
static void add(hone_reuse *r, uint32_t value, hone_reads more)
{
    hone_reads *sum = &r->reads[value];
    sum->whole = added(sum->whole, more.whole);
    if (more.parts > sum->parts) sum->parts = more.parts;
}

static bool is_read(hone_reads reads)
{
    return reads.whole + reads.parts > 0;
}

// Operands -------------------------------------------------------------------------------------------------------------

// StableHLO's parameters are values; HLO's are operations, which may stand in any order.
static uint32_t parameter(const hone_graph *g, uint32_t body, uint32_t index)
{
    const hone_graph_body *b = &g->bodies[body];
    return index < b->parameter_count ? b->first_parameter + index : HONE_GRAPH_NONE;
}

static uint32_t result(const hone_graph_op *op, uint32_t index)
{
    return index < op->value_count ? op->first_value + index : HONE_GRAPH_NONE;
}

// Functions that only give on a part of what they get, which JAX makes of the steps into a scan's arrays. Writes which
// parameter that is, and whether it is a part.
static bool is_view(const hone_graph *g, uint32_t body, uint32_t *out_index, bool *out_cuts)
{
    const uint32_t last = g->bodies[body].result;
    if (g->tuples || last == HONE_GRAPH_NONE || g->ops[last].operand_count != 1) return false;
    uint32_t value = g->operands[g->ops[last].first_operand];
    *out_cuts = false;
    for (int depth = 0; depth < BEHIND && value != HONE_GRAPH_NONE; depth++) {
        const hone_graph_value *v = &g->values[value];
        if (v->op == HONE_GRAPH_NONE) {
            *out_index = v->index;
            return v->body == body;
        }
        const hone_graph_op *op = &g->ops[v->op];
        const bool cut = hone_opcode_is_in(op->opcode, cuts);
        if (!cut && !hone_opcode_is_in(op->opcode, lays_out)) return false;
        *out_cuts |= cut;
        value = op->operand_count > 0 ? g->operands[op->first_operand] : HONE_GRAPH_NONE;
    }
    return false;
}

static hone_reads reads_of_state(const hone_reuse *r, const hone_graph_op *op, uint32_t index)
{
    const hone_graph *g = r->graph;
    const uint32_t number = (uint32_t)(op - g->ops);
    const int64_t trips = hone_graph_detail_of(g, number)->number;
    hone_reads inside = {0, 0};
    for (uint32_t e = 0; e < op->edge_count; e++) {
        const hone_reads more = reads_of(r, parameter(g, g->edges[op->first_edge + e].body, index));
        inside.whole = added(inside.whole, more.whole);
        if (more.parts > inside.parts) inside.parts = more.parts;
    }
    const hone_reads after = reads_of(r, result(op, index));
    // What the body gives on is another array; the first of them is read once.
    if (!hone_graph_state_stays(g, number, index)) return (hone_reads){is_read(inside) || is_read(after), 0};
    if (inside.whole > 0 && trips != 1) inside.whole = MANY;
    inside.whole = added(inside.whole, after.whole);
    if (after.parts > inside.parts) inside.parts = after.parts;
    return inside;
}

// A call of hone's that takes one of a stack, which its last operand names: nobody else has a number among its arrays.
static bool takes_of_stack(const hone_graph *g, const hone_graph_op *op)
{
    const bool is_call = op->opcode == OPCODE_CUSTOM_CALL || op->opcode == OPCODE_CUSTOM_CALL_MLIR;
    if (!is_call || op->detail == HONE_GRAPH_NONE || op->operand_count < 2) return false;
    const uint32_t last = g->operands[op->first_operand + op->operand_count - 1];
    if (g->details[op->detail].call.size == 0 || last == HONE_GRAPH_NONE) return false;
    const hone_view type = g->values[last].type;
    return hone_view_is(type, "tensor<i32>") || hone_view_is(type, "s32[]");
}

// What an operation reads of its k-th operand.
static hone_reads reads_of_operand(const hone_reuse *r, const hone_graph_op *op, uint32_t k)
{
    const hone_graph *g = r->graph;
    const hone_reads once = {1, 0}, made = reads_of(r, result(op, 0));
    if (hone_opcode_is_in(op->opcode, lays_out)) return made;
    if (hone_opcode_is_in(op->opcode, cuts) && k == 0) return (hone_reads){0, added(made.whole, made.parts)};
    if (takes_of_stack(g, op)) return (hone_reads){0, 1};
    if (op->opcode == OPCODE_GATHER && k == 0) return (hone_reads){0, 0}; // a few rows of a table
    if (op->opcode == OPCODE_TUPLE || op->opcode == OPCODE_GET_TUPLE_ELEMENT) return (hone_reads){MANY, 0};
    if (op->opcode == OPCODE_WHILE) return g->tuples ? (hone_reads){MANY, 0} : reads_of_state(r, op, k);
    if (op->edge_count == 0) return once;
    const hone_graph_edge *edge = &g->edges[op->first_edge];
    if (edge->role == GRAPH_BRANCH) return (hone_reads){MANY, 0};
    if (op->edge_count != 1 || edge->role == GRAPH_APPLIED) return once;
    uint32_t index;
    bool part;
    if (edge->role == GRAPH_CALL && is_view(g, edge->body, &index, &part) && index == k)
        return part ? (hone_reads){0, added(made.whole, made.parts)} : made;
    const uint32_t own = parameter(g, edge->body, k);
    return own != HONE_GRAPH_NONE ? reads_of(r, own) : once;
}

static uint32_t body_of(const hone_graph *g, uint32_t value)
{
    const hone_graph_value *v = &g->values[value];
    return v->op != HONE_GRAPH_NONE ? g->ops[v->op].body : v->body;
}

// What ends the body of a loop gives each state on; one that stays is not read by that.
static bool only_gives_on(const hone_graph *g, const hone_graph_op *op, uint32_t k)
{
    const uint32_t caller = g->bodies[op->body].caller;
    return op->opcode == OPCODE_RETURN && caller != HONE_GRAPH_NONE && g->edges[caller].role == GRAPH_LOOP &&
           !g->tuples && hone_graph_state_stays(g, g->edges[caller].op, k);
}

static void count_operands(hone_reuse *r, const hone_graph_op *op)
{
    const hone_graph *g = r->graph;
    for (uint32_t k = 0; k < op->operand_count; k++) {
        const uint32_t value = g->operands[op->first_operand + k];
        if (value == HONE_GRAPH_NONE || only_gives_on(g, op, k)) continue;
        hone_reads more = reads_of_operand(r, op, k);
        // A region that reads what stands around it may be run again and again.
        if (body_of(g, value) != op->body && is_read(more)) more.whole = MANY;
        add(r, value, more);
    }
}

// Bodies ---------------------------------------------------------------------------------------------------------------

typedef struct order {
    uint32_t *waiting;      // edges out of a body to bodies that are not yet counted
    uint32_t *first, *next; // edges to a body, as lists
    uint32_t *queue;
    uint32_t *begin, *ops; // operations by body, in order
} order;

static void link_edges(const hone_graph *g, order *o)
{
    for (size_t i = 0; i < g->body_count; i++)
        o->first[i] = HONE_GRAPH_NONE;
    for (size_t i = 0; i < g->edge_count; i++) {
        const uint32_t from = g->ops[g->edges[i].op].body, to = g->edges[i].body;
        if (from == HONE_GRAPH_NONE) continue;
        o->waiting[from]++;
        o->next[i] = o->first[to];
        o->first[to] = (uint32_t)i;
    }
}

static void sort_operations(const hone_graph *g, order *o)
{
    for (size_t i = 0; i < g->op_count; i++)
        if (g->ops[i].body != HONE_GRAPH_NONE) o->begin[g->ops[i].body + 1]++;
    for (size_t i = 0; i < g->body_count; i++)
        o->begin[i + 1] += o->begin[i];
    for (size_t i = 0; i < g->op_count; i++)
        if (g->ops[i].body != HONE_GRAPH_NONE) o->ops[o->begin[g->ops[i].body]++] = (uint32_t)i;
    for (size_t i = g->body_count; i > 0; i--) // each has come to the beginning of the next
        o->begin[i] = o->begin[i - 1];
    o->begin[0] = 0;
}

static void count_bodies(hone_reuse *r, order *o)
{
    const hone_graph *g = r->graph;
    size_t head = 0, tail = 0;
    for (uint32_t i = 0; i < g->body_count; i++)
        if (o->waiting[i] == 0) o->queue[tail++] = i;
    while (head < tail) {
        const uint32_t body = o->queue[head++];
        for (uint32_t i = o->begin[body + 1]; i > o->begin[body]; i--)
            count_operands(r, &g->ops[o->ops[i - 1]]);
        for (uint32_t e = o->first[body]; e != HONE_GRAPH_NONE; e = o->next[e]) {
            const uint32_t from = g->ops[g->edges[e].op].body;
            if (--o->waiting[from] == 0) o->queue[tail++] = from;
        }
    }
}

static bool count(hone_reuse *r)
{
    const hone_graph *g = r->graph;
    const hone_allocator *a = &g->allocator;
    const size_t bodies = g->body_count, size = sizeof(uint32_t);
    order o = {
        hone_alloc_array(a, bodies, size),        hone_alloc_array(a, bodies, size),
        hone_alloc_array(a, g->edge_count, size), hone_alloc_array(a, bodies, size),
        hone_alloc_array(a, bodies + 1, size),    hone_alloc_array(a, g->op_count, size),
    };
    uint32_t *const blocks[] = {o.waiting, o.first, o.next, o.queue, o.begin, o.ops};
    bool there = true;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        there = there && blocks[i] != NULL;
    if (there) {
        link_edges(g, &o);
        sort_operations(g, &o);
        count_bodies(r, &o);
    }
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        hone_free(a, blocks[i]);
    return there;
}

// The entry ------------------------------------------------------------------------------------------------------------

int64_t hone_reuse_bytes(hone_view type)
{
    hone_array array;
    int64_t bits;
    if (!hone_array_read(type, &array)) return 0;
    bits = (int64_t)array.dtype.bits * array.dtype.lanes;
    for (int32_t i = 0; i < array.ndim; i++)
        if (__builtin_mul_overflow(bits, array.dims[i], &bits)) return INT64_MAX / 16;
    return bits / 8 + (bits % 8 != 0);
}

static bool is_given(const hone_graph *g, uint32_t value, uint32_t body)
{
    const hone_graph_value *v = &g->values[value];
    if (v->op == HONE_GRAPH_NONE) return v->body == body;
    return g->ops[v->op].opcode == OPCODE_PARAMETER && g->ops[v->op].body == body;
}

static int64_t bytes_given(const hone_reuse *r, uint32_t body)
{
    const hone_graph *g = r->graph;
    int64_t sum = 0;
    for (uint32_t i = 0; i < g->value_count; i++)
        if (is_given(g, i, body) && is_read(r->reads[i]) &&
            __builtin_add_overflow(sum, hone_reuse_bytes(g->values[i].type), &sum))
            return INT64_MAX;
    return sum;
}

static bool is_main(hone_view name)
{
    return name.size >= 4 && memcmp(name.data, "main", 4) == 0;
}

// A program may have functions that nothing calls beside the one that is run: that is called main, else it is the one
// that reads the most.
static void find_entry(hone_reuse *r)
{
    enum { FEW = 16 };
    const hone_graph *g = r->graph;
    size_t looked_at = 0;
    r->entry = HONE_GRAPH_NONE;
    for (uint32_t i = 0; i < g->body_count && looked_at < FEW; i++) {
        if (g->bodies[i].caller != HONE_GRAPH_NONE) continue;
        const int64_t bytes = bytes_given(r, i);
        const bool named = is_main(g->bodies[i].name);
        looked_at++;
        if (!named && r->entry != HONE_GRAPH_NONE && bytes <= r->step_bytes) continue;
        r->entry = i;
        r->step_bytes = bytes;
        if (named) return;
    }
}

bool hone_reuse_init(hone_reuse *reuse, const hone_graph *graph)
{
    *reuse = (hone_reuse){.graph = graph, .entry = HONE_GRAPH_NONE};
    reuse->reads = hone_alloc_array(&graph->allocator, graph->value_count, sizeof *reuse->reads);
    if (reuse->reads == NULL || !count(reuse)) return false;
    find_entry(reuse);
    return true;
}

void hone_reuse_deinit(hone_reuse *reuse)
{
    hone_free(&reuse->graph->allocator, reuse->reads);
    reuse->reads = NULL;
}

// Where a value comes from -----------------------------------------------------------------------------------------------

static uint32_t operand(const hone_graph *g, uint32_t op, uint32_t index)
{
    const hone_graph_op *o = &g->ops[op];
    return index < o->operand_count ? g->operands[o->first_operand + index] : HONE_GRAPH_NONE;
}

// What the caller of its body gave for a parameter. HONE_GRAPH_NONE: what a loop has made of it, or nobody did.
static uint32_t given_by_caller(const hone_graph *g, uint32_t body, uint32_t index)
{
    const uint32_t caller = g->bodies[body].caller;
    if (caller == HONE_GRAPH_NONE) return HONE_GRAPH_NONE;
    const hone_graph_edge *edge = &g->edges[caller];
    if (edge->role == GRAPH_CALL || edge->role == GRAPH_FUSION) return operand(g, edge->op, index);
    if (edge->role != GRAPH_LOOP || g->tuples || !hone_graph_state_stays(g, edge->op, index)) return HONE_GRAPH_NONE;
    return operand(g, edge->op, index);
}

static uint32_t behind(const hone_graph *g, uint32_t value)
{
    const hone_graph_value *v = &g->values[value];
    if (v->op == HONE_GRAPH_NONE) return given_by_caller(g, v->body, v->index);
    const hone_graph_op *op = &g->ops[v->op];
    if (op->opcode == OPCODE_PARAMETER) {
        const int64_t number = hone_graph_detail_of(g, v->op)->number;
        return number >= 0 ? given_by_caller(g, op->body, (uint32_t)number) : HONE_GRAPH_NONE;
    }
    uint32_t index;
    bool part;
    if (op->edge_count == 1 && g->edges[op->first_edge].role == GRAPH_CALL)
        return is_view(g, g->edges[op->first_edge].body, &index, &part) ? operand(g, v->op, index) : HONE_GRAPH_NONE;
    const bool same = hone_opcode_is_in(op->opcode, lays_out) || hone_opcode_is_in(op->opcode, cuts);
    return same ? operand(g, v->op, 0) : HONE_GRAPH_NONE;
}

bool hone_reuse_is_once(const hone_reuse *reuse, uint32_t value)
{
    const hone_graph *g = reuse->graph;
    for (int depth = 0; depth < BEHIND && value != HONE_GRAPH_NONE; depth++) {
        value = hone_graph_source(g, value);
        if (is_given(g, value, reuse->entry)) return reuse->reads[value].whole + reuse->reads[value].parts == 1;
        value = behind(g, value);
    }
    return false;
}
