// Operations are gathered by label, cut into calls, and followed to what they read. All of it is linear but for looks behind
// operations, at callers and into callees, which go so far and no further.
#include "offline/find.h"

#include "base/hash.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

enum { WALK_MAX = 64, BEHIND_MAX = 1024, CALLEES_MAX = 64, CALLEE_OPS = 8000 };

// An operation belongs to a group: the operations of one body under one label that was reached one way.
typedef struct member {
    uint32_t group, op;
} member;

typedef struct group {
    const graph_label *label;
    uint32_t body;
    uint32_t first, count; // in members, once they are sorted
} group;

typedef struct finder {
    const hone_graph *graph;
    hone_finds *out;
    member *members;
    group *groups;
    size_t member_count, member_capacity, group_count, group_capacity;
    uint32_t *body_first, *body_ops; // operations by body
    // of the group at hand, by operation
    uint32_t *stamp;  // = serial: seen
    uint32_t *parent; // union-find
    uint32_t serial;
    uint32_t *work; // operations seen, in order
    size_t work_count, work_capacity;
    size_t work_max;     // transparent operations are looked behind up to here
    uint32_t *group_ops; // the operations of the group
    hone_names known;    // finds by identity
    hone_buffer identity;
    hone_arena arena;
    bool failed;
} finder;

// --- groups

static bool has_same_label(const hone_graph *graph, uint32_t op, const graph_label *label)
{
    uint32_t place = graph->ops[op].place;
    if (place == HONE_GRAPH_NONE) return false;
    const graph_place *p = &graph->places[place];
    for (uint32_t i = 0; i < p->label_count; i++)
        if (hone_view_equal(graph->labels[p->first_label + i].label.text, label->label.text)) return true;
    return false;
}

// True when the body is run by an operation under the same label: its operations are part of that call.
static bool is_inside(const hone_graph *graph, uint32_t body, const graph_label *label)
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

static hone_view group_name(const graph_label *label)
{
    const hone_view *text = &label->label.text;
    return (hone_view){label->prefix.data, (size_t)(text->data + text->size - label->prefix.data)};
}

static bool is_of_group(const finder *f, uint32_t index, uint32_t body, const graph_label *label)
{
    const group *g = &f->groups[index];
    return g->body == body && (g->label == label || hone_view_equal(group_name(g->label), group_name(label)));
}

static uint32_t find_group(finder *f, hone_names *names, uint32_t body, const graph_label *label)
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
    f->groups[f->group_count] = (group){.label = label, .body = body};
    hone_names_put(names, body, group_name(label), (uint32_t)f->group_count);
    return (uint32_t)f->group_count++;
}

static void add_member(finder *f, hone_names *names, uint32_t op, const graph_label *label)
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
    f->members[f->member_count++] = (member){index, op};
}

static void collect_members(finder *f)
{
    const hone_graph *g = f->graph;
    hone_names names;
    hone_names_init(&names, &g->allocator);
    for (uint32_t op = 0; op < g->op_count && !f->failed; op++) {
        if (g->ops[op].place == HONE_GRAPH_NONE) continue;
        const graph_place *place = &g->places[g->ops[op].place];
        for (uint32_t i = 0; i < place->label_count; i++)
            add_member(f, &names, op, &g->labels[place->first_label + i]);
    }
    f->failed |= names.failed;
    hone_names_deinit(&names);
}

// A counting sort by group; within one the order of the program stays.
static void sort_members(finder *f)
{
    const hone_allocator *a = &f->graph->allocator;
    member *sorted = hone_alloc_array(a, f->member_count, sizeof *sorted);
    if (!sorted) {
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
        group *g = &f->groups[f->members[i].group];
        sorted[g->first + g->count++] = f->members[i];
    }
    hone_free(a, f->members);
    f->members = sorted;
}

static bool index_bodies(finder *f)
{
    const hone_graph *g = f->graph;
    f->body_first = hone_alloc_array(&g->allocator, g->body_count + 1, sizeof *f->body_first);
    f->body_ops = hone_alloc_array(&g->allocator, g->op_count, sizeof *f->body_ops);
    if (!f->body_first || !f->body_ops) return false;
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

// --- what a call reads

// How far to look behind the operations of a call for what it really reads.
typedef enum reach {
    REACH_DIRECT,  // what they name
    REACH_LAYOUT,  // behind copies and reshapes that XLA put in
    REACH_UNPLACED // behind everything that XLA made and that belongs to no place of the program
} reach;

// What XLA puts in to change how an array lies in memory.
static const bool layout_opcodes[OPCODE_COUNT] = {
    [OPCODE_BITCAST] = true,    [OPCODE_BITCAST_CONVERT] = true, [OPCODE_COPY] = true,
    [OPCODE_COPY_START] = true, [OPCODE_COPY_DONE] = true,       [OPCODE_RESHAPE] = true,
    [OPCODE_TRANSPOSE] = true,  [OPCODE_CONVERT] = true,         [OPCODE_OPTIMIZATION_BARRIER] = true,
};
static const bool opaque_opcodes[OPCODE_COUNT] = {
    [OPCODE_PARAMETER] = true,
    [OPCODE_GET_TUPLE_ELEMENT] = true,
    [OPCODE_WHILE] = true,
    [OPCODE_CONDITIONAL] = true,
    [OPCODE_CALL] = true,
    [OPCODE_CUSTOM_CALL] = true,
    [OPCODE_INFEED] = true,
    [OPCODE_RNG] = true,
    [OPCODE_RNG_BIT_GENERATOR] = true,
};

// A place of the program is a path of scopes; a lone word is a parameter's name that XLA spread to copies of it.
static bool has_place(const hone_graph *graph, const graph_op *op)
{
    hone_view path = op->place != HONE_GRAPH_NONE ? graph->places[op->place].path : (hone_view){0};
    return path.size > 0 && memchr(path.data, '/', path.size) != NULL;
}

static bool is_transparent(const hone_graph *graph, uint32_t op, reach how)
{
    const graph_op *o = &graph->ops[op];
    if (o->opcode == OPCODE_TUPLE) return true;
    if (how == REACH_DIRECT || has_place(graph, o)) return false;
    if (hone_opcode_is_in(o->opcode, layout_opcodes)) return true;
    return how == REACH_UNPLACED && o->place == HONE_GRAPH_NONE && !hone_opcode_is_in(o->opcode, opaque_opcodes);
}

static uint32_t root_of(finder *f, uint32_t op)
{
    while (f->parent[op] != op) {
        f->parent[op] = f->parent[f->parent[op]];
        op = f->parent[op];
    }
    return op;
}

static void join(finder *f, uint32_t a, uint32_t b)
{
    uint32_t ra = root_of(f, a), rb = root_of(f, b);
    if (ra != rb) f->parent[ra > rb ? ra : rb] = ra > rb ? rb : ra;
}

static void see(finder *f, uint32_t op)
{
    if (f->stamp[op] == f->serial) return;
    if (!hone_grow(&f->graph->allocator, &f->work, &f->work_capacity, f->work_count + 1, sizeof *f->work)) {
        f->failed = true;
        return;
    }
    f->stamp[op] = f->serial;
    f->parent[op] = op;
    f->work[f->work_count++] = op;
}

static void add_type(const hone_graph *graph, uint32_t value, hone_operands *out)
{
    if (out->count == HONE_TYPES_MAX) return;
    hone_view type = graph->values[value].type;
    for (uint32_t i = 0; i < out->count; i++)
        if (out->types[i].size == type.size &&
            (out->types[i].data == type.data || hone_view_equal(out->types[i], type)))
            return;
    out->types[out->count++] = type;
}

// Takes an operand of an operation of the call: part of it, transparent, or one of the arrays that the call reads.
static void read_operand(finder *f, uint32_t reader, uint32_t value, reach how, bool constants, hone_operands *out)
{
    const hone_graph *g = f->graph;
    if (value == HONE_GRAPH_NONE) return;
    value = hone_graph_source(g, value);
    uint32_t op = g->values[value].op;
    bool constant = op != HONE_GRAPH_NONE && g->ops[op].constant;
    bool inside = op != HONE_GRAPH_NONE && f->stamp[op] == f->serial;
    bool more = !inside && op != HONE_GRAPH_NONE && !constant && f->work_count < f->work_max;
    if (more && is_transparent(g, op, how)) {
        see(f, op);
        inside = !f->failed;
    }
    if (inside)
        join(f, reader, op);
    else if (out && constant == constants)
        add_type(g, value, out);
}

// Follows all operands of the operations at hand; work grows by what is transparent.
static void follow(finder *f, reach how, bool constants, hone_operands *out)
{
    const hone_graph *g = f->graph;
    for (size_t i = 0; i < f->work_count && !f->failed; i++) {
        uint32_t reader = f->work[i];
        const graph_op *op = &g->ops[reader];
        for (uint32_t k = 0; k < op->operand_count; k++)
            read_operand(f, reader, g->operands[op->first_operand + k], how, constants, out);
    }
}

static void begin(finder *f, const uint32_t *ops, size_t count)
{
    f->serial++;
    f->work_count = 0;
    for (size_t i = 0; i < count; i++)
        see(f, ops[i]);
    f->work_max = f->work_count + BEHIND_MAX;
}

// A call that still is a call of a function names its arguments one by one.
static bool read_exact(const hone_graph *graph, const uint32_t *ops, size_t count, hone_operands *out)
{
    uint32_t call = HONE_GRAPH_NONE;
    for (size_t i = 0; i < count; i++) {
        const graph_op *op = &graph->ops[ops[i]];
        if (op->constant) continue;
        bool calls =
            op->opcode == OPCODE_CALL || op->opcode == OPCODE_CUSTOM_CALL || op->opcode == OPCODE_CUSTOM_CALL_MLIR;
        if (call != HONE_GRAPH_NONE || !calls) return false;
        call = ops[i];
    }
    if (call == HONE_GRAPH_NONE) return false;
    const graph_op *op = &graph->ops[call];
    *out = (hone_operands){.exact = true};
    for (uint32_t k = 0; k < op->operand_count && k < HONE_TYPES_MAX; k++) {
        uint32_t value = graph->operands[op->first_operand + k];
        if (value != HONE_GRAPH_NONE) out->types[out->count++] = graph->values[value].type;
    }
    return out->count > 0;
}

static void read_views(finder *f, const uint32_t *ops, size_t count, hone_found *out)
{
    static const reach before[] = {REACH_DIRECT, REACH_LAYOUT}, after[] = {REACH_UNPLACED, REACH_LAYOUT, REACH_DIRECT};
    const hone_graph *g = f->graph;
    const reach *ways = g->optimised ? after : before;
    size_t way_count = g->optimised ? 3 : g->tuples ? 2 : 1;
    if (read_exact(g, ops, count, &out->views[0])) out->view_count = 1;
    for (size_t i = 0; i < way_count && out->view_count < HONE_VIEWS_MAX; i++) {
        hone_operands *view = &out->views[out->view_count];
        *view = (hone_operands){0};
        begin(f, ops, count);
        follow(f, ways[i], false, view);
        out->view_count += view->count > 0;
    }
    if (out->view_count > 0) return;
    out->views[0] = (hone_operands){0};
    begin(f, ops, count); // all that it reads are constants of the program
    follow(f, ways[0], true, &out->views[0]);
    out->view_count = out->views[0].count > 0;
}

static void add_literal(hone_found *out, hone_view literal)
{
    double value;
    if (out->literal_count == HONE_LITERALS_MAX) return;
    for (uint32_t i = 0; i < out->literal_count; i++)
        if (hone_view_equal(out->literals[i], literal)) return;
    if (!hone_number_parse(literal.data, literal.size, &value)) return;
    out->literals[out->literal_count++] = literal;
}

static void read_literals_of(const hone_graph *graph, uint32_t op, hone_found *out)
{
    const graph_op *o = &graph->ops[op];
    if (o->opcode == OPCODE_CONSTANT) add_literal(out, hone_graph_detail_of(graph, op)->literal);
    for (uint32_t k = 0; k < o->operand_count; k++) {
        uint32_t value = graph->operands[o->first_operand + k];
        uint32_t from = value == HONE_GRAPH_NONE ? value : graph->values[value].op;
        if (from != HONE_GRAPH_NONE && graph->ops[from].opcode == OPCODE_CONSTANT)
            add_literal(out, hone_graph_detail_of(graph, from)->literal);
    }
}

// The constants of a call and of the bodies that it runs, as far as a budget of operations goes.
static void read_literals(finder *f, const uint32_t *ops, size_t count, hone_found *out)
{
    const hone_graph *g = f->graph;
    uint32_t bodies[CALLEES_MAX];
    size_t body_count = 0, budget = CALLEE_OPS;
    for (size_t i = 0, next = 0; budget > 0; budget--) {
        while (i == count && next < body_count) { // into the next body
            uint32_t body = bodies[next++];
            ops = f->body_ops + f->body_first[body];
            count = f->body_first[body + 1] - f->body_first[body];
            i = 0;
        }
        if (i == count) break;
        const graph_op *op = &g->ops[ops[i]];
        read_literals_of(g, ops[i++], out);
        for (uint32_t e = 0; e < op->edge_count && body_count < CALLEES_MAX; e++)
            bodies[body_count++] = g->edges[op->first_edge + e].body;
    }
}

// The last ones first: a call ends with its results.
static void read_made(const hone_graph *graph, const uint32_t *ops, size_t count, hone_operands *out)
{
    for (size_t i = count; i-- > 0;) {
        const graph_op *op = &graph->ops[ops[i]];
        for (uint32_t k = 0; k < op->value_count; k++)
            add_type(graph, op->first_value + k, out);
    }
}

// --- how often

static uint64_t fingerprint(const hone_graph *graph, uint32_t op)
{
    const graph_op *o = &graph->ops[op];
    uint64_t hash = ((uint64_t)o->opcode << 32 | o->place) * UINT64_C(0x9e3779b97f4a7c15);
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
        const graph_op *op = &graph->ops[ops[i]];
        if (op->edge_count != 1 || graph->edges[op->first_edge].role != GRAPH_CALL) continue;
        hone_view name =
            graph->bodies[graph->edges[op->first_edge].body].name; // "flash_attention", "flash_attention_0"
        calls += name.size >= operation.size && memcmp(name.data, operation.data, operation.size) == 0;
    }
    return calls;
}

// Operations like the last one whose result leaves the call: where repeated work was merged, calls are no longer
// equal sequences, but each still has a result of its own.
static size_t count_results(finder *f, const uint32_t *ops, const uint64_t *sequence, size_t count)
{
    const hone_graph *g = f->graph;
    begin(f, ops, count);
    size_t like_last = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        f->parent[ops[i]] = (uint32_t)i; // here: where the operation stands among them
    for (size_t i = 0; i < count; i++) {
        like_last += sequence[i] == sequence[count - 1];
        const graph_op *op = &g->ops[ops[i]];
        for (uint32_t k = 0; k < op->operand_count; k++) {
            uint32_t value = g->operands[op->first_operand + k];
            uint32_t from = value == HONE_GRAPH_NONE ? value : g->values[value].op;
            if (from == HONE_GRAPH_NONE || f->stamp[from] != f->serial || f->parent[from] == HONE_GRAPH_NONE) continue;
            used += sequence[f->parent[from]] == sequence[count - 1];
            f->parent[from] = HONE_GRAPH_NONE; // counted once
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

// Calls that are equal repeat each piece of work equally often: the largest number that divides how often each of them is
// there. 0: no work is there. The fingerprints of the operations are read, and what is in their room is lost.
static size_t count_by_work(const hone_graph *graph, const uint32_t *ops, size_t count, uint64_t *prints)
{
    size_t working = 0, calls = 0;
    for (size_t i = 0; i < count; i++) {
        bool works = hone_opcode_is_in(graph->ops[ops[i]].opcode, working_opcodes);
        if (works && !graph->ops[ops[i]].constant) prints[working++] = prints[i];
    }
    qsort(prints, working, sizeof *prints, compare_fingerprints);
    for (size_t start = 0, i = 1; i <= working; i++) {
        if (i < working && prints[i] == prints[start]) continue;
        calls = common_divisor(calls, i - start);
        start = i;
    }
    return calls;
}

// Calls within a group, and the operations of the first one.
static size_t count_calls(finder *f, const uint32_t *ops, size_t count, hone_view operation, size_t *out_first)
{
    *out_first = count;
    const hone_allocator *a = &f->graph->allocator;
    uint64_t *sequence = hone_alloc_array(a, count, sizeof *sequence);
    size_t *failure = hone_alloc_array(a, count, sizeof *failure), calls = 1;
    if (sequence && failure) {
        for (size_t i = 0; i < count; i++)
            sequence[i] = fingerprint(f->graph, ops[i]);
        calls = repeats(sequence, failure, count);
        if (calls > 1)
            *out_first = count / calls;
        else
            calls = count_function_calls(f->graph, ops, count, operation);
        if (calls == 0) calls = count_results(f, ops, sequence, count);
        if (calls <= 1) calls = count_by_work(f->graph, ops, count, sequence); // the sequence is not read any more
        if (calls == 0) calls = 1;
    } else {
        f->failed = true;
    }
    hone_free(a, sequence);
    hone_free(a, failure);
    return calls;
}

static int64_t times(int64_t calls, int64_t body_times)
{
    int64_t product;
    return body_times < 0 || __builtin_mul_overflow(calls, body_times, &product) ? -1 : product;
}

// --- finds

// What tells two finds apart: the label and what is read under it. (The same call may show itself better at one place
// than at another.)
static void write_identity(const hone_found *found, hone_buffer *out)
{
    const hone_label *label = &found->label->label;
    hone_buffer_append(out, label->text.data, label->text.size);
    hone_buffer_format(out, "\n%d %u", found->label->transposed, found->label->vmaps);
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

static void keep_find(finder *f, const hone_found *found)
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
    bool room = name.data && hone_grow(a, &f->out->items, &f->out->capacity, f->out->count + 1, sizeof *found);
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

static void add_find(finder *f, const group *g, const uint32_t *ops, size_t count)
{
    hone_found found = {.label = g->label};
    size_t first = count,
           calls = f->graph->optimised ? 1 : count_calls(f, ops, count, g->label->label.operation, &first);
    // After optimisation calls are merged, cloned and taken apart: there is nothing left to count.
    found.count = f->graph->optimised ? -1 : times((int64_t)calls, f->graph->bodies[g->body].times);
    read_views(f, ops, first, &found);
    read_literals(f, ops, first, &found);
    read_made(f->graph, ops, first, &found.made);
    for (size_t i = 0; i < first; i++)
        add_call(f->graph, ops[i], &found);
    if (!f->failed) keep_find(f, &found);
}

static int compare_parts(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

// A label without its key stands for different calls: what hangs together is one. The operations of a part stand in
// a row once they are sorted by the root of their part.
static void split_by_flow(finder *f, const group *g, member *parts, uint32_t *ops)
{
    begin(f, ops, g->count);
    follow(f, f->graph->optimised ? REACH_UNPLACED : REACH_LAYOUT, false, NULL);
    if (f->failed) return;
    for (size_t i = 0; i < g->count; i++)
        parts[i] = (member){root_of(f, ops[i]), ops[i]};
    qsort(parts, g->count, sizeof *parts, compare_parts);
    for (size_t i = 0; i < g->count; i++)
        ops[i] = parts[i].op;
    for (size_t start = 0, i = 1; i <= g->count && !f->failed; i++) {
        if (i < g->count && parts[i].group == parts[start].group) continue;
        add_find(f, g, ops + start, i - start);
        start = i;
    }
}

static void find_in_group(finder *f, const group *g)
{
    uint32_t *ops = f->group_ops;
    member *members = f->members + g->first; // also the room for the parts: read before it is written
    for (size_t i = 0; i < g->count; i++)
        ops[i] = members[i].op;
    if (g->label->label.kind == HONE_LABEL_CUT)
        split_by_flow(f, g, members, ops);
    else
        add_find(f, g, ops, g->count);
}

static bool is_forward_of(const hone_found *a, const hone_found *b)
{
    return !a->label->transposed && hone_view_equal(a->label->label.operation, b->label->label.operation);
}

// Without a key, a gradient's backward part cannot be told from a call; where the program has calls of the operation,
// it is taken for part of them.
static void drop_backward_parts(hone_finds *finds)
{
    size_t kept = 0;
    for (size_t i = 0; i < finds->count; i++) {
        const hone_found *found = &finds->items[i];
        bool backward = found->label->transposed && found->label->label.kind == HONE_LABEL_CUT, forward = false;
        for (size_t k = 0; backward && !forward && k < finds->count && k < 256; k++)
            forward = k != i && is_forward_of(&finds->items[k], found);
        if (!forward) finds->items[kept++] = *found;
    }
    finds->count = kept;
}

static bool prepare(finder *f)
{
    const hone_allocator *a = &f->graph->allocator;
    size_t ops = f->graph->op_count;
    f->stamp = hone_alloc_array(a, ops, sizeof *f->stamp);
    f->parent = hone_alloc_array(a, ops, sizeof *f->parent);
    f->group_ops = hone_alloc_array(a, ops, sizeof *f->group_ops);
    return f->stamp && f->parent && f->group_ops && index_bodies(f);
}

static void release(finder *f)
{
    const hone_allocator *a = &f->graph->allocator;
    void *const blocks[] = {f->members, f->groups, f->body_first, f->body_ops,
                            f->stamp,   f->parent, f->work,       f->group_ops};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        hone_free(a, blocks[i]);
    hone_names_deinit(&f->known);
    hone_buffer_deinit(&f->identity);
    hone_arena_destroy(&f->arena);
}

bool hone_find_calls(const hone_graph *graph, hone_finds *out)
{
    *out = (hone_finds){0};
    finder f = {.graph = graph, .out = out, .arena = {.allocator = graph->allocator}};
    hone_names_init(&f.known, &graph->allocator);
    hone_buffer_init(&f.identity, graph->allocator);
    f.failed = !prepare(&f);
    if (!f.failed) collect_members(&f);
    if (!f.failed) sort_members(&f);
    for (size_t i = 0; i < f.group_count && !f.failed; i++)
        find_in_group(&f, &f.groups[i]);
    if (!f.failed) drop_backward_parts(out);
    bool done = !f.failed && !f.known.failed;
    release(&f);
    return done;
}
