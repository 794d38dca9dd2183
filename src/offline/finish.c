// What a graph says once it is whole: callers, constants, and the values behind values.
#include "offline/graph.h"

// A counting sort: the edges of an operation in a row, in the order in which they were added.
static void sort_edges(hone_graph *graph)
{
    size_t size = sizeof(hone_graph_edge);
    hone_graph_edge *sorted =
        graph->edge_count > 0 ? hone_alloc_array(&graph->allocator, graph->edge_count, size) : NULL;
    if (sorted == NULL) {
        graph->failed |= graph->edge_count > 0;
        return;
    }
    for (size_t i = 0; i < graph->edge_count; i++)
        graph->ops[graph->edges[i].op].edge_count++;
    uint32_t next = 0;
    for (size_t i = 0; i < graph->op_count; i++) {
        graph->ops[i].first_edge = next;
        next += graph->ops[i].edge_count;
        graph->ops[i].edge_count = 0;
    }
    for (size_t i = 0; i < graph->edge_count; i++) {
        hone_graph_op *op = &graph->ops[graph->edges[i].op];
        sorted[op->first_edge + op->edge_count++] = graph->edges[i];
    }
    hone_free(&graph->allocator, graph->edges);
    graph->edges = sorted;
    graph->edge_capacity = graph->edge_count;
}

static void find_callers(hone_graph *graph)
{
    for (size_t i = graph->edge_count; i-- > 0;)
        graph->bodies[graph->edges[i].body].caller = (uint32_t)i;
}

static bool is_source_of_constants(const hone_graph_op *op)
{
    return op->opcode == OPCODE_CONSTANT || op->opcode == OPCODE_IOTA;
}

// An operation is constant when all that it reads is. Definitions stand before uses; what does not is not constant.
static void find_constants(hone_graph *graph)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        hone_graph_op *op = &graph->ops[i];
        bool constant = op->operand_count > 0;
        for (uint32_t k = 0; constant && k < op->operand_count; k++) {
            uint32_t value = graph->operands[op->first_operand + k];
            uint32_t from = value == HONE_GRAPH_NONE ? value : graph->values[value].op;
            constant = from != HONE_GRAPH_NONE && graph->ops[from].constant;
        }
        op->constant = constant || is_source_of_constants(op);
    }
}

uint32_t hone_graph_home(const hone_graph *graph, uint32_t op)
{
    uint32_t body = graph->ops[op].body;
    for (int depth = 0; depth < 64 && body != HONE_GRAPH_NONE; depth++) {
        uint32_t caller = graph->bodies[body].caller;
        if (caller == HONE_GRAPH_NONE || graph->edges[caller].role != GRAPH_FUSION) break;
        body = graph->ops[graph->edges[caller].op].body;
    }
    return body;
}

static const hone_graph_edge *fusion_around(const hone_graph *graph, uint32_t body)
{
    uint32_t caller = body == HONE_GRAPH_NONE ? body : graph->bodies[body].caller;
    bool fused = caller != HONE_GRAPH_NONE && graph->edges[caller].role == GRAPH_FUSION;
    return fused ? &graph->edges[caller] : NULL;
}

static uint32_t operand(const hone_graph *graph, const hone_graph_op *op, size_t index)
{
    return index < op->operand_count ? graph->operands[op->first_operand + index] : HONE_GRAPH_NONE;
}

// One step through the wall of a fusion, from either side; the value itself where there is none.
static uint32_t step_through(const hone_graph *graph, uint32_t value)
{
    const hone_graph_value *v = &graph->values[value];
    if (v->op == HONE_GRAPH_NONE) return value;
    const hone_graph_op *op = &graph->ops[v->op];
    uint32_t behind = HONE_GRAPH_NONE;
    if (op->opcode == OPCODE_PARAMETER) { // HLO has its parameters as operations
        const hone_graph_edge *fusion = fusion_around(graph, op->body);
        int64_t number = fusion != NULL ? hone_graph_detail_of(graph, v->op)->number : -1;
        if (number >= 0) behind = operand(graph, &graph->ops[fusion->op], (size_t)number);
    } else if (op->edge_count == 1 && graph->edges[op->first_edge].role == GRAPH_FUSION) {
        uint32_t root = graph->bodies[graph->edges[op->first_edge].body].result;
        if (root != HONE_GRAPH_NONE && graph->ops[root].value_count > 0) behind = graph->ops[root].first_value;
    }
    return behind != HONE_GRAPH_NONE ? behind : value;
}

// The element that a get-tuple-element takes out of a tuple that was made in sight.
static uint32_t step_out_of_tuple(const hone_graph *graph, uint32_t value)
{
    uint32_t from = graph->values[value].op;
    if (from == HONE_GRAPH_NONE || graph->ops[from].opcode != OPCODE_GET_TUPLE_ELEMENT) return value;
    uint32_t tuple = operand(graph, &graph->ops[from], 0);
    for (int depth = 0; depth < 8 && tuple != HONE_GRAPH_NONE; depth++)
        tuple = step_through(graph, tuple);
    uint32_t maker = tuple != HONE_GRAPH_NONE ? graph->values[tuple].op : HONE_GRAPH_NONE;
    int64_t number = hone_graph_detail_of(graph, from)->number;
    if (maker == HONE_GRAPH_NONE || number < 0 || graph->ops[maker].opcode != OPCODE_TUPLE) return value;
    uint32_t element = operand(graph, &graph->ops[maker], (size_t)number);
    return element != HONE_GRAPH_NONE ? element : value;
}

uint32_t hone_graph_source(const hone_graph *graph, uint32_t value)
{
    for (int depth = 0; depth < 64; depth++) {
        uint32_t behind = step_through(graph, value);
        if (behind == value) behind = step_out_of_tuple(graph, value);
        if (behind == value) break;
        value = behind;
    }
    return value;
}

static void find_whether_located(hone_graph *graph)
{
    graph->unlocated = graph->op_count > 0;
    for (size_t i = 0; i < graph->op_count && graph->unlocated; i++)
        graph->unlocated = graph->ops[i].place == HONE_GRAPH_NONE;
}

void hone_graph_finish(hone_graph *graph)
{
    graph->failed |= graph->place_names.failed || graph->opcodes.failed;
    if (!graph->failed) sort_edges(graph);
    if (graph->failed) return;
    find_callers(graph);
    find_constants(graph);
    find_whether_located(graph);
    hone_graph_count(graph);
}
