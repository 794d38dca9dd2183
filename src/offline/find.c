// Operations are gathered by label, cut into calls, and followed to what they read. All of it is linear but for looks
// behind operations, at callers and into callees, which go so far and no further.
//
// A group is what stands under one label in one body. A whole label has the key of its call: a group is one call, made
// as often as its body runs. A label that was cut has no key, and several calls may stand under it: there the
// operations that values connect are one call, which union-find tells (R. Tarjan, 1975). Equal finds are added up.
#include "offline/finder.h"

#include <stdlib.h>
#include <string.h>

enum { WALK_MAX = 64 };

// --- groups

static bool has_same_label(const hone_graph *graph, uint32_t op, const hone_graph_label *label)
{
    uint32_t place = graph->ops[op].place;
    if (place == HONE_GRAPH_NONE) return false;
    const hone_graph_place *p = &graph->places[place];
    for (uint32_t i = 0; i < p->label_count; i++)
        if (hone_view_equal(graph->labels[p->first_label + i].label.text, label->label.text)) return true;
    return false;
}

// True when the body is run by an operation under the same label: its operations are part of that call.
static bool is_inside(const hone_graph *graph, uint32_t body, const hone_graph_label *label)
{
    for (int depth = 0; depth < WALK_MAX && body != HONE_GRAPH_NONE; depth++) {
        uint32_t caller = graph->bodies[body].caller;
        if (caller == HONE_GRAPH_NONE) break;
        uint32_t op = graph->edges[caller].op;
        if (has_same_label(graph, op, label)) return true;
        body = graph->ops[op].body;
    }
    return false;
}

static hone_view group_name(const hone_graph_label *label)
{
    const hone_view *text = &label->label.text;
    return (hone_view){label->prefix.data, (size_t)(text->data + text->size - label->prefix.data)};
}

static bool is_of_group(const hone_finder *f, uint32_t index, uint32_t body, const hone_graph_label *label)
{
    const hone_finder_group *g = &f->groups[index];
    return g->body == body && (g->label == label || hone_view_equal(group_name(g->label), group_name(label)));
}

static uint32_t find_group(hone_finder *f, hone_names *names, uint32_t body, const hone_graph_label *label)
{
    uint32_t latest = f->member_count > 0 ? f->members[f->member_count - 1].group : HONE_GRAPH_NONE;
    if (latest != HONE_GRAPH_NONE && is_of_group(f, latest, body, label)) return latest; // as most of the time
    uint32_t found = hone_names_get(names, body, group_name(label));
    if (found != HONE_GRAPH_NONE) return found;
    const hone_allocator *a = &f->graph->allocator;
    if (!hone_grow(a, &f->groups, &f->group_capacity, f->group_count + 1, sizeof *f->groups)) {
        f->failed = true;
        return HONE_GRAPH_NONE;
    }
    f->groups[f->group_count] = (hone_finder_group){.label = label, .body = body};
    hone_names_put(names, body, group_name(label), (uint32_t)f->group_count);
    return (uint32_t)f->group_count++;
}

static void add_member(hone_finder *f, hone_names *names, uint32_t op, const hone_graph_label *label)
{
    uint32_t home = hone_graph_home(f->graph, op);
    uint32_t caller = f->graph->bodies[home].caller;
    if (caller != HONE_GRAPH_NONE && f->graph->edges[caller].role == GRAPH_APPLIED) return; // a reduction's combiner
    if (is_inside(f->graph, home, label)) return;
    uint32_t index = find_group(f, names, home, label);
    bool again = f->member_count > 0 && f->members[f->member_count - 1].op == op &&
                 f->members[f->member_count - 1].group == index; // merged operations name one path twice
    if (index == HONE_GRAPH_NONE || again) return;
    const hone_allocator *a = &f->graph->allocator;
    if (!hone_grow(a, &f->members, &f->member_capacity, f->member_count + 1, sizeof *f->members)) {
        f->failed = true;
        return;
    }
    f->members[f->member_count++] = (hone_finder_member){index, op};
}

static void collect_members(hone_finder *f)
{
    const hone_graph *g = f->graph;
    hone_names names;
    hone_names_init(&names, &g->allocator);
    for (uint32_t op = 0; op < g->op_count && !f->failed; op++) {
        if (g->ops[op].place == HONE_GRAPH_NONE) continue;
        const hone_graph_place *place = &g->places[g->ops[op].place];
        for (uint32_t i = 0; i < place->label_count; i++)
            add_member(f, &names, op, &g->labels[place->first_label + i]);
    }
    f->failed |= names.failed;
    hone_names_deinit(&names);
}

// A counting sort by group; within one the order of the program stays.
static void sort_members(hone_finder *f)
{
    const hone_allocator *a = &f->graph->allocator;
    hone_finder_member *sorted = hone_alloc_array(a, f->member_count, sizeof *sorted);
    if (sorted == NULL) {
        f->failed = true;
        return;
    }
    for (size_t i = 0; i < f->member_count; i++)
        f->groups[f->members[i].group].count++;
    uint32_t next = 0;
    for (size_t i = 0; i < f->group_count; i++) {
        f->groups[i].first = next;
        next += f->groups[i].count;
        f->groups[i].count = 0;
    }
    for (size_t i = 0; i < f->member_count; i++) {
        hone_finder_group *g = &f->groups[f->members[i].group];
        sorted[g->first + g->count++] = f->members[i];
    }
    hone_free(a, f->members);
    f->members = sorted;
}

static bool index_bodies(hone_finder *f)
{
    const hone_graph *g = f->graph;
    f->body_first = hone_alloc_array(&g->allocator, g->body_count + 1, sizeof *f->body_first);
    f->body_ops = hone_alloc_array(&g->allocator, g->op_count, sizeof *f->body_ops);
    if (f->body_first == NULL || f->body_ops == NULL) return false;
    for (size_t i = 0; i < g->op_count; i++)
        f->body_first[g->ops[i].body + 1]++;
    for (size_t i = 0; i < g->body_count; i++)
        f->body_first[i + 1] += f->body_first[i];
    for (uint32_t i = (uint32_t)g->op_count; i-- > 0;)
        f->body_ops[--f->body_first[g->ops[i].body + 1]] = i;
    for (size_t i = 0; i < g->body_count; i++) // each entry now stands one place too far to the right
        f->body_first[i] = f->body_first[i + 1];
    f->body_first[g->body_count] = (uint32_t)g->op_count;
    return true;
}

// --- finds

static int64_t times(int64_t calls, int64_t body_times)
{
    int64_t product;
    return body_times < 0 || __builtin_mul_overflow(calls, body_times, &product) ? -1 : product;
}

// What tells two finds apart: the label and what is read under it. (The same call may show itself better at one place
// than at another.)
static void write_identity(const hone_found *found, hone_buffer *out)
{
    const hone_label *label = &found->label->label;
    hone_buffer_append(out, label->text.data, label->text.size);
    hone_buffer_format(out, "\n%d %d %u", found->transposed, found->multiplies, found->vmaps);
    for (uint32_t v = 0; v < found->view_count; v++) {
        hone_buffer_char(out, '\n');
        for (uint32_t i = 0; i < found->views[v].count; i++)
            hone_buffer_append(out, found->views[v].types[i].data, found->views[v].types[i].size);
    }
}

static int64_t add_counts(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

static void keep_find(hone_finder *f, const hone_found *found)
{
    const hone_allocator *a = &f->graph->allocator;
    hone_buffer_clear(&f->identity);
    write_identity(found, &f->identity);
    hone_view name = {hone_buffer_string(&f->identity), f->identity.size};
    uint32_t known = hone_names_get(&f->known, 0, name);
    if (known != HONE_GRAPH_NONE) {
        f->out->items[known].count = add_counts(f->out->items[known].count, found->count);
        return;
    }
    name.data = hone_arena_text(&f->arena, name.data, name.size);
    bool room = name.data != NULL && hone_grow(a, &f->out->items, &f->out->capacity, f->out->count + 1, sizeof *found);
    f->failed |= !room || f->identity.failed;
    f->out->full |= f->out->count == HONE_FINDS_MAX;
    if (!room || f->out->full) return;
    hone_names_put(&f->known, 0, name, (uint32_t)f->out->count);
    f->out->items[f->out->count++] = *found;
}

static void add_call(const hone_graph *graph, uint32_t op, hone_found *out)
{
    hone_view call = hone_graph_detail_of(graph, op)->call;
    if (call.size > 0) out->call = call;
}

// How often a call runs, and what the scopes around it say: those of its own path, and where it says nothing, of its
// callers'. A function that forward and backward parts share is called by the former.
static void read_scopes(const hone_finder_group *g, const hone_graph_body *body, int64_t calls, hone_found *out)
{
    const hone_graph_scopes *scopes = &g->label->scopes;
    const bool goes_on = scopes->way == SCOPES_GO_ON;
    out->vmaps = scopes->vmaps + body->vmaps;
    out->transposed = scopes->way == SCOPES_BACKWARD || (goes_on && body->forward == 0 && body->times != 0);
    out->count = times(calls, goes_on && !out->transposed ? body->forward : body->times);
}

static void add_find(hone_finder *f, const hone_finder_group *g, const uint32_t *ops, size_t count)
{
    hone_found found = {.label = g->label, .body = f->graph->bodies[g->body].name};
    size_t first = count,
           calls = f->graph->optimised ? 1 : hone_finder_count_calls(f, ops, count, g->label->label.operation, &first);
    read_scopes(g, &f->graph->bodies[g->body], (int64_t)calls, &found);
    // After optimisation calls are merged, cloned and taken apart: there is nothing left to count.
    if (f->graph->optimised) found.count = -1;
    hone_finder_read_views(f, ops, first, &found);
    hone_finder_read_literals(f, ops, first, &found);
    hone_finder_read_made(f->graph, ops, first, &found.made);
    hone_finder_read_bytes(f, ops, first, &found);
    for (size_t i = 0; i < first; i++)
        add_call(f->graph, ops[i], &found);
    if (!f->failed) keep_find(f, &found);
}

static int compare_parts(const void *a, const void *b)
{
    const hone_finder_member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

// Operations that a call has for what it is about. A part without any is no call, but what one begins with.
static const bool heavy_opcodes[OPCODE_COUNT] = {
    [OPCODE_DOT] = true,    [OPCODE_DOT_GENERAL] = true,   [OPCODE_CONVOLUTION] = true,      [OPCODE_REDUCE] = true,
    [OPCODE_WHILE] = true,  [OPCODE_SORT] = true,          [OPCODE_CUSTOM_CALL] = true,      [OPCODE_CALL] = true,
    [OPCODE_FUSION] = true, [OPCODE_REDUCE_WINDOW] = true, [OPCODE_CUSTOM_CALL_MLIR] = true, [OPCODE_SCATTER] = true,
};

static bool is_heavy(const hone_finder *f, const hone_finder_member *parts, size_t start, size_t end)
{
    for (size_t i = start; i < end; i++)
        if (hone_opcode_is_in(f->graph->ops[parts[i].op].opcode, heavy_opcodes)) return true;
    return false;
}

// The operation of the group that an operand comes from, behind a few operations that stand elsewhere: XLA gives those
// that it makes of one the place of another call. HONE_GRAPH_NONE: none.
static uint32_t behind_others(const hone_finder *f, uint32_t value)
{
    enum { HOPS = 3 };
    const hone_graph *g = f->graph;
    for (int hop = 0; hop <= HOPS && value != HONE_GRAPH_NONE; hop++) {
        value = hone_graph_source(g, value);
        const uint32_t op = g->values[value].op;
        if (op == HONE_GRAPH_NONE || f->stamp[op] == f->serial) return hop > 0 ? op : HONE_GRAPH_NONE;
        value = g->ops[op].operand_count == 1 ? g->operands[g->ops[op].first_operand] : HONE_GRAPH_NONE;
    }
    return HONE_GRAPH_NONE;
}

// Whether a part feeds another one of the group: then it is no call of its own.
static bool feeds_another(hone_finder *f, const hone_finder_member *parts, size_t count, uint32_t root)
{
    const hone_graph *g = f->graph;
    for (size_t i = 0; i < count; i++) {
        const hone_graph_op *op = &g->ops[parts[i].op];
        for (uint32_t k = 0; parts[i].group != root && k < op->operand_count; k++) {
            const uint32_t from = behind_others(f, g->operands[op->first_operand + k]);
            if (from != HONE_GRAPH_NONE && hone_finder_root(f, from) == root) return true;
        }
    }
    return false;
}

// Parts that are but the beginning of another one get no root. Before a walk begins that would stamp anew.
static void mark_beginnings(hone_finder *f, hone_finder_member *parts, size_t count)
{
    for (size_t start = 0, i = 1; !f->graph->optimised && i <= count; i++) {
        if (i < count && parts[i].group == parts[start].group) continue;
        const bool whole = start == 0 && i == count;
        if (!whole && !is_heavy(f, parts, start, i) && feeds_another(f, parts, count, parts[start].group))
            for (size_t k = start; k < i; k++)
                parts[k].group = HONE_GRAPH_NONE;
        start = i;
    }
}

// A label without its key stands for different calls: what hangs together is one. The operations of a part stand in
// a row once they are sorted by the root of their part.
static void split_by_flow(hone_finder *f, const hone_finder_group *g, hone_finder_member *parts, uint32_t *ops)
{
    hone_finder_begin(f, ops, g->count);
    hone_finder_follow(f, f->graph->optimised ? REACH_UNPLACED : REACH_LAYOUT, false, NULL);
    if (f->failed) return;
    for (size_t i = 0; i < g->count; i++)
        parts[i] = (hone_finder_member){hone_finder_root(f, ops[i]), ops[i]};
    qsort(parts, g->count, sizeof *parts, compare_parts);
    for (size_t i = 0; i < g->count; i++)
        ops[i] = parts[i].op;
    mark_beginnings(f, parts, g->count);
    for (size_t start = 0, i = 1; i <= g->count && !f->failed; i++) {
        if (i < g->count && parts[i].group == parts[start].group) continue;
        if (parts[start].group != HONE_GRAPH_NONE) add_find(f, g, ops + start, i - start);
        start = i;
    }
}

static void find_in_group(hone_finder *f, const hone_finder_group *g)
{
    uint32_t *ops = f->group_ops;
    hone_finder_member *members = f->members + g->first; // also the room for the parts: read before it is written
    for (size_t i = 0; i < g->count; i++)
        ops[i] = members[i].op;
    if (g->label->label.kind == HONE_LABEL_CUT)
        split_by_flow(f, g, members, ops);
    else
        add_find(f, g, ops, g->count);
}

static bool is_forward_of(const hone_found *a, const hone_found *b)
{
    return !a->transposed && hone_view_equal(a->label->label.operation, b->label->label.operation);
}

// Without a key, a gradient's backward part cannot be told from a call; where the program has calls of the operation,
// it is taken for part of them.
static void drop_backward_parts(hone_finds *finds)
{
    size_t kept = 0;
    for (size_t i = 0; i < finds->count; i++) {
        const hone_found *found = &finds->items[i];
        bool backward = found->transposed && found->label->label.kind == HONE_LABEL_CUT, forward = false;
        for (size_t k = 0; backward && !forward && k < finds->count && k < 256; k++)
            forward = k != i && is_forward_of(&finds->items[k], found);
        if (!forward) finds->items[kept++] = *found;
    }
    finds->count = kept;
}

static bool prepare(hone_finder *f)
{
    const hone_allocator *a = &f->graph->allocator;
    size_t ops = f->graph->op_count;
    f->stamp = hone_alloc_array(a, ops, sizeof *f->stamp);
    f->parent = hone_alloc_array(a, ops, sizeof *f->parent);
    f->group_ops = hone_alloc_array(a, ops, sizeof *f->group_ops);
    return f->stamp != NULL && f->parent != NULL && f->group_ops != NULL && index_bodies(f);
}

static void release(hone_finder *f)
{
    const hone_allocator *a = &f->graph->allocator;
    void *const blocks[] = {f->members, f->groups, f->body_first, f->body_ops,
                            f->stamp,   f->parent, f->work,       f->group_ops};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        hone_free(a, blocks[i]);
    hone_reuse_deinit(&f->reuse);
    hone_names_deinit(&f->known);
    hone_buffer_deinit(&f->identity);
    hone_arena_destroy(&f->arena);
}

bool hone_find_calls(const hone_graph *graph, hone_finds *out)
{
    *out = (hone_finds){0};
    hone_finder f = {.graph = graph, .out = out, .arena = {.allocator = graph->allocator}};
    hone_names_init(&f.known, &graph->allocator);
    hone_buffer_init(&f.identity, graph->allocator);
    f.failed = !prepare(&f);
    if (!f.failed) collect_members(&f);
    f.failed |= !hone_reuse_init(&f.reuse, graph);
    out->step_bytes = f.reuse.entry != HONE_GRAPH_NONE ? f.reuse.step_bytes : -1;
    if (!f.failed) sort_members(&f);
    for (size_t i = 0; i < f.group_count && !f.failed; i++)
        find_in_group(&f, &f.groups[i]);
    if (!f.failed) drop_backward_parts(out);
    bool done = !f.failed && !f.known.failed;
    release(&f);
    return done;
}
