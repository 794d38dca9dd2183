// Built depth first: each state that was met before gives the node that it led to, and nodes with equal edges are one.
//
// It is a multivalued decision diagram (A. Srinivasan, T. Kam, S. Malik and R. K. Brayton, "Algorithms for Discrete
// Function Manipulation", 1990, after R. E. Bryant's binary ones, 1986): reduced, for equal nodes are one, and ordered.
// It is compiled by states, as in D. Bergman, A. A. Cire, W.-J. van Hoeve and J. N. Hooker, "Decision Diagrams for
// Optimization" (2016): two prefixes with the same values of all cells that later constraints read have the same
// choices behind them. Prefixes that no later value can mend are cut by intervals (bounds.c).
//
// A rank is the number of paths before a path, summed along it from the counts in the nodes; its inverse walks down and
// subtracts. Invariant: the edges of a node ascend by position, so ranks are in the order of the levels' values.
//
// Cost: one step a value tried, and a state a prefix that differs; both have limits. Beyond them only bounds are kept:
// what was counted, and what may be left, as if nothing there was refused.
#include "space/diagram.h"

#include "base/assert.h"
#include "space/bounds.h"
#include "space/states.h"

#include "base/error.h"
#include "base/hash.h"

#include <string.h>

static const char where[] = "space.count";

enum { FIRST_SLOTS = 64 };

typedef struct edge {
    uint32_t child;
    uint16_t position;
} edge;

typedef struct builder {
    hone_space_diagram *diagram;
    hone_space_walk walk;
    hone_space_memory memory;
    hone_space_states states;
    hone_space_bounds bounds;
    size_t node_count, edge_count, capacities[3];
    edge *open; // edges of the nodes that are being built
    size_t open_count, open_capacity;
    uint32_t *unique; // open addressing: nodes by their edges
    size_t unique_count;
    uint64_t tries;
    uint64_t below[HONE_MAX_PARAMETERS + 1]; // combinations of values from a level on
    bool stopped;                            // a limit was reached: what is built is counted into low and high
    hone_status status;
    hone_error *err;
} builder;

static void add(uint64_t *sum, uint64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum)) *sum = UINT64_MAX;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

// No room: a limit stops the search, the allocator fails it.
static void out_of_room(builder *b)
{
    if (b->memory.full)
        b->stopped = true;
    else if (b->status == HONE_OK)
        b->status = hone_fail_memory(b->err, where);
}

static bool grow(builder *b, void *array_pointer, size_t *capacity, size_t needed, size_t size)
{
    if (needed >= UINT32_MAX) b->memory.full = true;
    if (needed < UINT32_MAX && hone_space_memory_grow(&b->memory, array_pointer, capacity, needed, size)) return true;
    out_of_room(b);
    return false;
}

// Multiplied by 2^64 over the golden ratio (Knuth, volume 3, 6.4), and the upper half mixed down.
static uint64_t hash_with(uint64_t hash, uint16_t position, uint32_t child)
{
    hash = (hash ^ ((uint64_t)position << 32 | child)) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_of_edges(const edge *edges, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++)
        hash = hash_with(hash, edges[i].position, edges[i].child);
    return hash;
}

static bool has_edges(const hone_space_diagram *diagram, uint32_t id, const edge *edges, size_t count)
{
    const hone_space_node *node = &diagram->nodes[id];
    if (node->edges != count) return false;
    for (size_t i = 0; i < count; i++)
        if (diagram->positions[node->first + i] != edges[i].position ||
            diagram->children[node->first + i] != edges[i].child)
            return false;
    return true;
}

static uint64_t hash_of_node(const hone_space_diagram *diagram, uint32_t id)
{
    const hone_space_node *node = &diagram->nodes[id];
    uint64_t hash = node->edges;
    for (size_t i = node->first; i < node->first + node->edges; i++)
        hash = hash_with(hash, diagram->positions[i], diagram->children[i]);
    return hash;
}

static bool grow_unique(builder *b)
{
    uint32_t *old = b->unique;
    size_t old_count = b->unique_count;
    if (b->node_count < old_count / 4 * 3) return true;
    b->unique = NULL;
    b->unique_count = 0;
    size_t wanted = old_count == 0 ? FIRST_SLOTS : 2 * old_count;
    if (!grow(b, &b->unique, &b->unique_count, wanted, sizeof *old)) {
        b->unique = old;
        b->unique_count = old_count;
        return false;
    }
    for (uint32_t id = HONE_SPACE_END + 1; id < b->node_count; id++) {
        size_t i = hash_of_node(b->diagram, id) & (b->unique_count - 1);
        while (b->unique[i] != 0)
            i = (i + 1) & (b->unique_count - 1);
        b->unique[i] = id;
    }
    hone_free(&b->memory.allocator, old);
    b->memory.used -= old_count * sizeof *old;
    return true;
}

static uint32_t add_node(builder *b, const edge *edges, size_t count, uint64_t paths)
{
    hone_space_diagram *d = b->diagram;
    size_t end = b->edge_count + count;
    for (size_t i = 1; i < count; i++)
        hone_assert(edges[i - 1].position < edges[i].position);
    if (!grow(b, &d->nodes, &b->capacities[0], b->node_count + 1, sizeof *d->nodes) ||
        !grow(b, &d->positions, &b->capacities[1], end, sizeof *d->positions) ||
        !grow(b, &d->children, &b->capacities[2], end, sizeof *d->children))
        return hone_space_nothing;
    d->nodes[b->node_count] = (hone_space_node){paths, (uint32_t)b->edge_count, (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        d->positions[b->edge_count + i] = edges[i].position;
        d->children[b->edge_count + i] = edges[i].child;
    }
    b->edge_count = end;
    return (uint32_t)b->node_count++;
}

// The node with these edges.
static uint32_t intern(builder *b, const edge *edges, size_t count, uint64_t paths)
{
    if (!grow_unique(b)) return hone_space_nothing;
    size_t i = hash_of_edges(edges, count) & (b->unique_count - 1);
    while (b->unique[i] != 0 && !has_edges(b->diagram, b->unique[i], edges, count))
        i = (i + 1) & (b->unique_count - 1);
    if (b->unique[i] != 0) return b->unique[i];
    uint32_t id = add_node(b, edges, count, paths);
    if (id != hone_space_nothing) b->unique[i] = id;
    return id;
}

static uint32_t build(builder *b, size_t level);

// The node of the choices behind a level, for the state that the walk is in. Nothing, too, when building stopped there.
static uint32_t build_behind(builder *b, size_t level)
{
    bool is_new;
    hone_space_state state;
    if (level + 1 == b->walk.depth) return HONE_SPACE_END;
    if (hone_space_bounds_refuse(&b->bounds, &b->walk, level)) return hone_space_nothing;
    if (!b->states.merges[level]) return build(b, level + 1);
    if (!hone_space_states_enter(&b->states, &b->walk, level, &state, &is_new)) {
        out_of_room(b);
        add(&b->diagram->high, b->below[level + 1]);
        return hone_space_nothing;
    }
    if (!is_new) return state.node;
    uint32_t node = build(b, level + 1);
    hone_space_states_set(&b->states, &state, node);
    return node;
}

static bool goes_on(const builder *b)
{
    return !b->stopped && b->status == HONE_OK;
}

static void push_edge(builder *b, uint32_t position, uint32_t child)
{
    if (!grow(b, &b->open, &b->open_capacity, b->open_count + 1, sizeof *b->open)) return;
    b->open[b->open_count++] = (edge){child, (uint16_t)position};
}

static void try_value(builder *b, size_t level, uint32_t position, uint64_t *paths)
{
    size_t parameter = b->walk.order[level];
    uint32_t all = level + 1 == HONE_MAX_PARAMETERS ? UINT32_MAX : (1u << (level + 1)) - 1;
    uint32_t set = 0;
    hone_verdict verdict = hone_space_walk_set(&b->walk, parameter, position);
    if (verdict == HONE_FAILED) {
        for (; all != 0; all &= all - 1)
            set |= 1u << b->walk.order[__builtin_ctz(all)];
        b->status = hone_space_walk_failure(&b->walk, set, b->err);
    }
    if (verdict != HONE_ACCEPTED) return;
    uint32_t child = build_behind(b, level);
    if (child == hone_space_nothing) return;
    add(paths, b->diagram->nodes[child].count);
    push_edge(b, position, child);
}

// The node of the choices from a level on. Nests as deep as there are parameters.
static uint32_t build(builder *b, size_t level)
{
    size_t first = b->open_count, values = b->walk.bound->space->parameters[b->walk.order[level]].count;
    uint64_t paths = 0;
    uint32_t i = 0, node = hone_space_nothing;
    for (; i < values && goes_on(b); i++) {
        b->stopped = b->tries == 0;
        if (b->stopped) break;
        b->tries--;
        try_value(b, level, i, &paths);
    }
    if (goes_on(b) && b->open_count > first) node = intern(b, b->open + first, b->open_count - first, paths);
    b->open_count = first;
    if (b->stopped) {
        add(&b->diagram->low, paths);
        add(&b->diagram->high, paths);
        add(&b->diagram->high, product(values - i, b->below[level + 1]));
        node = hone_space_nothing;
    }
    return node;
}

static void build_all(builder *b)
{
    hone_space_diagram *d = b->diagram;
    d->depth = b->walk.depth;
    memcpy(d->order, b->walk.order, sizeof d->order);
    b->below[d->depth] = 1;
    for (size_t i = d->depth; i-- > 0;)
        b->below[i] = product(b->below[i + 1], b->walk.bound->space->parameters[d->order[i]].count);
    if (add_node(b, NULL, 0, 1) == HONE_SPACE_END) d->root = build(b, 0);
    d->complete = goes_on(b);
    if (!d->complete || d->root == hone_space_nothing) return;
    d->low = d->high = d->nodes[d->root].count;
}

// What is too large is of no further use; what is not keeps the memory that it needs.
static void trim(builder *b)
{
    hone_space_diagram *d = b->diagram;
    const size_t bytes[] = {
        b->node_count * sizeof *d->nodes, b->edge_count * sizeof *d->positions, b->edge_count * sizeof *d->children};
    void *blocks[] = {d->nodes, d->positions, d->children};
    for (size_t i = 0; i < 3 && d->complete; i++) {
        void *smaller = hone_resize(&d->allocator, blocks[i], bytes[i]);
        if (smaller != NULL) blocks[i] = smaller;
    }
    d->nodes = blocks[0];
    d->positions = blocks[1];
    d->children = blocks[2];
    if (!d->complete) hone_space_diagram_deinit(d);
}

hone_status hone_space_diagram_init(
    hone_space_diagram *diagram,
    const hone_bound_space *bound,
    const hone_space_plan *plan,
    size_t component,
    const hone_space_limits *limits,
    hone_error *err)
{
    builder b = {.diagram = diagram, .err = err, .tries = limits->tries};
    *diagram = (hone_space_diagram){.allocator = bound->allocator};
    b.memory = (hone_space_memory){.allocator = bound->allocator, .limit = limits->bytes};
    b.status = hone_space_walk_init(&b.walk, bound, plan, (int)component, err);
    if (b.status == HONE_OK && hone_space_states_init(&b.states, &b.memory, &b.walk) &&
        hone_space_bounds_init(&b.bounds, &b.walk)) {
        build_all(&b);
        trim(&b);
    } else if (b.status == HONE_OK) {
        b.status = hone_fail_memory(err, where);
    }
    b.states.memory = &b.memory;
    hone_space_states_deinit(&b.states);
    b.bounds.allocator = bound->allocator;
    hone_space_bounds_deinit(&b.bounds);
    hone_free(&b.memory.allocator, b.open);
    hone_free(&b.memory.allocator, b.unique);
    hone_space_walk_deinit(&b.walk);
    return b.status;
}

void hone_space_diagram_deinit(hone_space_diagram *diagram)
{
    hone_free(&diagram->allocator, diagram->nodes);
    hone_free(&diagram->allocator, diagram->positions);
    hone_free(&diagram->allocator, diagram->children);
    diagram->nodes = NULL;
    diagram->positions = NULL;
    diagram->children = NULL;
}

void hone_space_diagram_at(const hone_space_diagram *diagram, uint64_t rank, uint16_t *positions)
{
    hone_assert(diagram->complete && rank < diagram->low);
    const hone_space_node *node = &diagram->nodes[diagram->root];
    for (size_t level = 0; level < diagram->depth; level++) {
        uint32_t i = node->first;
        for (; rank >= diagram->nodes[diagram->children[i]].count; i++)
            rank -= diagram->nodes[diagram->children[i]].count;
        positions[diagram->order[level]] = diagram->positions[i];
        node = &diagram->nodes[diagram->children[i]];
    }
}

bool hone_space_diagram_rank(const hone_space_diagram *diagram, const uint16_t *positions, uint64_t *out_rank)
{
    uint64_t rank = 0;
    hone_assert(diagram->complete);
    if (diagram->root == hone_space_nothing) return false;
    const hone_space_node *node = &diagram->nodes[diagram->root];
    for (size_t level = 0; level < diagram->depth; level++) {
        uint16_t wanted = positions[diagram->order[level]];
        uint32_t i = node->first, end = node->first + node->edges;
        for (; i < end && diagram->positions[i] < wanted; i++)
            rank += diagram->nodes[diagram->children[i]].count;
        if (i == end || diagram->positions[i] != wanted) return false;
        node = &diagram->nodes[diagram->children[i]];
    }
    *out_rank = rank;
    return true;
}
