// How many calls the operations under a label are.
#include "base/hash.h"
#include "offline/finder.h"

#include <stdlib.h>
#include <string.h>

// The function that an operation calls, without the number that tells it from others of its name. 0: it calls none.
static uint64_t callee(const hone_graph *graph, const hone_graph_op *op)
{
    if (op->edge_count != 1 || graph->edges[op->first_edge].role != GRAPH_CALL) return 0;
    hone_view name = graph->bodies[graph->edges[op->first_edge].body].name;
    while (name.size > 0 && strchr("0123456789._", name.data[name.size - 1]) != NULL)
        name.size--;
    return hone_hash_name(name.data, name.size);
}

static uint64_t fingerprint(const hone_graph *graph, uint32_t op)
{
    const hone_graph_op *o = &graph->ops[op];
    uint64_t hash = ((uint64_t)o->opcode << 32 | o->place) * UINT64_C(0x9e3779b97f4a7c15) ^ callee(graph, o);
    if (o->value_count == 0) return hash;
    hone_view type = graph->values[o->first_value].type;
    return hash * 31 + hone_hash_name(type.data, type.size);
}

// The number of times that a sequence repeats its beginning, by the failure function of Knuth, Morris and Pratt.
static size_t repeats(const uint64_t *sequence, size_t *failure, size_t count)
{
    for (size_t i = 1, k = 0; i < count; i++) {
        while (k > 0 && sequence[i] != sequence[k])
            k = failure[k - 1];
        k += sequence[i] == sequence[k];
        failure[i] = k;
    }
    size_t period = count - failure[count - 1];
    return count % period == 0 ? count / period : 1;
}

// Operations of the group that call a function of the operation's own name: the call is left as one.
static size_t count_function_calls(const hone_graph *graph, const uint32_t *ops, size_t count, hone_view operation)
{
    size_t calls = 0;
    for (size_t i = 0; i < count; i++) {
        const hone_graph_op *op = &graph->ops[ops[i]];
        if (op->edge_count != 1 || graph->edges[op->first_edge].role != GRAPH_CALL) continue;
        hone_view name =
            graph->bodies[graph->edges[op->first_edge].body].name; // "flash_attention", "flash_attention_0"
        calls += name.size >= operation.size && memcmp(name.data, operation.data, operation.size) == 0;
    }
    return calls;
}

// Operations that only take values together and apart: HLO has one for each result of a loop.
static bool takes_apart(const hone_graph_op *op)
{
    return op->opcode == OPCODE_TUPLE || op->opcode == OPCODE_GET_TUPLE_ELEMENT;
}

// Where the operation that makes an operand stands among those of the group; HONE_GRAPH_NONE: it is of another.
static uint32_t place_of_maker(const hone_finder *f, const hone_graph_op *op, uint32_t operand)
{
    uint32_t value = f->graph->operands[op->first_operand + operand];
    uint32_t from = value == HONE_GRAPH_NONE ? value : f->graph->values[value].op;
    bool inside = from != HONE_GRAPH_NONE && f->stamp[from] == f->serial;
    return inside ? f->parent[from] : HONE_GRAPH_NONE;
}

// An operation and what its operands are made by: a gradient keeps products of a call that are not its result.
static uint64_t fingerprint_with_operands(
    const hone_finder *f, const uint32_t *ops, const uint64_t *sequence, size_t index)
{
    const hone_graph_op *op = &f->graph->ops[ops[index]];
    uint64_t hash = sequence[index];
    for (uint32_t k = 0; k < op->operand_count; k++) {
        uint32_t maker = place_of_maker(f, op, k);
        hash = hash * 31 + (maker != HONE_GRAPH_NONE ? sequence[maker] : 0);
    }
    return hash;
}

// Operations like the last one whose result leaves the call: where repeated work was merged, calls are no longer
// equal sequences, but each still has a result of its own. likes: room for so many.
static size_t count_results(hone_finder *f, const uint32_t *ops, const uint64_t *sequence, size_t count, size_t *likes)
{
    const hone_graph *g = f->graph;
    size_t like_last = 0, used = 0, last = count;
    hone_finder_begin(f, ops, count);
    for (size_t i = 0; i < count; i++) {
        f->parent[ops[i]] = (uint32_t)i; // here: where the operation stands among them
        if (!takes_apart(&g->ops[ops[i]])) last = i;
    }
    if (last == count) return 1;
    const uint64_t print = fingerprint_with_operands(f, ops, sequence, last);
    for (size_t i = 0; i < count; i++) {
        likes[i] = !takes_apart(&g->ops[ops[i]]) && fingerprint_with_operands(f, ops, sequence, i) == print;
        like_last += likes[i];
    }
    for (size_t i = 0; i < count; i++) {
        const hone_graph_op *op = &g->ops[ops[i]];
        for (uint32_t k = 0; !takes_apart(op) && k < op->operand_count; k++) {
            uint32_t maker = place_of_maker(f, op, k);
            if (maker == HONE_GRAPH_NONE) continue;
            used += likes[maker];
            likes[maker] = 0; // counted once
        }
    }
    return like_last > used ? like_last - used : 1;
}

// Operations that do the work of a call. Merging equal work takes masks and broadcasts first, rarely these.
static const bool working_opcodes[OPCODE_COUNT] = {
    [OPCODE_DOT] = true,    [OPCODE_DOT_GENERAL] = true, [OPCODE_CONVOLUTION] = true,
    [OPCODE_REDUCE] = true, [OPCODE_EXPONENTIAL] = true, [OPCODE_DIVIDE] = true,
    [OPCODE_TANH] = true,   [OPCODE_RSQRT] = true,       [OPCODE_WHILE] = true,
    [OPCODE_SORT] = true,   [OPCODE_CUSTOM_CALL] = true, [OPCODE_CUSTOM_CALL_MLIR] = true,
};

static int compare_fingerprints(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b > 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The fingerprints of the operations of a set that are no constants, in front of the others; how many there are.
static size_t gather(
    const hone_graph *graph, const uint32_t *ops, size_t count, const bool set[OPCODE_COUNT], uint64_t *prints)
{
    size_t gathered = 0;
    for (size_t i = 0; i < count; i++)
        if (hone_opcode_is_in(graph->ops[ops[i]].opcode, set) && !graph->ops[ops[i]].constant)
            prints[gathered++] = fingerprint(graph, ops[i]);
    return gathered;
}

// Calls that are equal repeat each piece of work equally often: the largest number that divides how often each of them
// is there. 0: no work is there. prints: room for so many.
static size_t count_by_work(const hone_graph *graph, const uint32_t *ops, size_t count, uint64_t *prints)
{
    size_t calls = 0, working = gather(graph, ops, count, hone_opcode_products, prints);
    if (working == 0) working = gather(graph, ops, count, working_opcodes, prints);
    qsort(prints, working, sizeof *prints, compare_fingerprints);
    for (size_t start = 0, i = 1; i <= working; i++) {
        if (i < working && prints[i] == prints[start]) continue;
        calls = common_divisor(calls, i - start);
        start = i;
    }
    return calls;
}

// Calls within a group, and the operations of the first one.
size_t hone_finder_count_calls(
    hone_finder *f, const uint32_t *ops, size_t count, hone_view operation, size_t *out_first)
{
    *out_first = count;
    const hone_allocator *a = &f->graph->allocator;
    uint64_t *sequence = hone_alloc_array(a, count, sizeof *sequence);
    size_t *failure = hone_alloc_array(a, count, sizeof *failure), calls = 1;
    if (sequence != NULL && failure != NULL) {
        for (size_t i = 0; i < count; i++)
            sequence[i] = fingerprint(f->graph, ops[i]);
        calls = repeats(sequence, failure, count);
        if (calls > 1)
            *out_first = count / calls;
        else
            calls = count_function_calls(f->graph, ops, count, operation);
        if (calls == 0) calls = count_results(f, ops, sequence, count, failure);
        if (calls <= 1) calls = count_by_work(f->graph, ops, count, sequence); // the sequence is not read any more
        if (calls == 0) calls = 1;
    } else {
        f->failed = true;
    }
    hone_free(a, sequence);
    hone_free(a, failure);
    return calls;
}
