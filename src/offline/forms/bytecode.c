// Walks the operations of MLIR bytecode, of StableHLO or of its versioned twin VHLO: functions become bodies, locations
// places.
//
//     operation: name | what it has (1 byte) | location | [attributes] | [properties] | [results: count, types]
//                | [operands: count, values] | [successors] | [use orders] | [regions: count, whether isolated] | regions
//     region:    blocks and, where there are any, values | block: operations, arguments | operations
//
// Values have no names: they are numbered as they are defined, from the innermost isolated operation on, and a region's
// numbers go with it. So the open regions keep one stack of values, and a number is a place from the top isolated
// frame's base. Frames stand in place of recursion, for a file may nest as deep as it likes.
#include "offline/forms/bytecode.h"

#include "base/assert.h"
#include "offline/forms/forms.h"

enum { DEPTH_MAX = 4096 };

// What an operation's byte says that it has, in the order in which it stands.
enum {
    HAS_ATTRIBUTES = 1,
    HAS_RESULTS = 2,
    HAS_OPERANDS = 4,
    HAS_SUCCESSORS = 8,
    HAS_REGIONS = 16,
    HAS_USE_ORDERS = 32,
    HAS_PROPERTIES = 64
};

// Where the properties of operations have the one attribute that is read of them. Attributes stand in the order of
// their names; 'R' is one that is always there, 'O' one that may be. Before version 5 there are no properties: it stands
// among the operation's attributes.
typedef struct property_row {
    hone_bytecode_dialect dialect;
    const char *opcode, *layout, *name;
} property_row;

static const property_row property_rows[] = {
    {DIALECT_FUNC, "func", "OROOR", "sym_name"},
    {DIALECT_FUNC, "call", "OR", "callee"},
    {DIALECT_STABLEHLO, "composite", "OR", "decomposition"},
    {DIALECT_STABLEHLO, "constant", "R", "value"},
    {DIALECT_STABLEHLO, "compare", "OR", "comparison_direction"},
    {DIALECT_STABLEHLO, "custom_call", "OO", "backend_config"},
    {DIALECT_VHLO, "func", "RRRR", "sym_name"}, // the same of their versioned twins
    {DIALECT_VHLO, "call", "R", "callee"},
    {DIALECT_VHLO, "composite", "RR", "decomposition"},
    {DIALECT_VHLO, "constant", "R", "value"},
    {DIALECT_VHLO, "compare", "RR", "comparison_direction"},
    {DIALECT_VHLO, "custom_call", "RR", "backend_config"},
};

// An operation as far as it was read.
typedef struct operation {
    hone_bytecode_dialect dialect;
    hone_view opcode; // without the dialect and the version: "add"
    uint64_t location, attributes, properties;
    uint64_t regions;
    bool isolated; // its regions see no values from around them
    uint32_t op;   // of the graph; HONE_GRAPH_NONE: none that the graph keeps (a module, a function)
} operation;

// Regions of an operation that are being read.
typedef struct frame {
    operation owner;
    hone_cursor c;        // where they are read from: isolated ones have a section of their own
    uint64_t region;      // of the owner, the one at hand
    uint64_t blocks, ops; // left in the region, in the block
    uint32_t body;        // of the region; HONE_GRAPH_NONE: of a module
    bool open;            // the region has begun
    size_t scope;         // in values: where numbers count from
    size_t base;          // in values: where the region's own begin
    size_t next;          // the value that is defined next
} frame;

typedef struct symbol_use {
    uint32_t op;
    hone_view symbol;
} symbol_use;

typedef struct reader {
    hone_graph *graph;
    hone_bytecode code;
    frame *frames;
    size_t frame_count, frame_capacity;
    uint32_t *values; // of all regions that are open, in a row
    size_t value_count, value_capacity, value_limit;
    hone_view *types; // by number; empty: not written yet
    uint32_t *places; // by location: 1 + the place; 0: not looked into yet
    hone_names functions;
    symbol_use *uses;
    size_t use_count, use_capacity;
} reader;

static frame *top(reader *r)
{
    hone_assert(r->frame_count > 0);
    return &r->frames[r->frame_count - 1];
}

static hone_view type_of(reader *r, uint64_t index)
{
    if (index >= r->code.type_count) return hone_view_of("?");
    if (r->types[index].data == NULL) r->types[index] = hone_bytecode_type(&r->code, index, &r->graph->texts);
    r->graph->failed |= r->types[index].data == NULL;
    return r->types[index];
}

// --- places

// An attribute of an operation that may hold a label, by the dictionaries that it may stand in.
static hone_view find_label(const reader *r, const operation *o)
{
    static const char *const within[] = {"mhlo.frontend_attributes", "mhlo.backend_config"};
    static const char *const names[] = {"hone_label", "xla_metadata_payload"};
    for (size_t i = 0; i < 2; i++) {
        uint64_t dictionary = hone_bytecode_member(&r->code, o->attributes, within[i]);
        for (size_t k = 0; k < 2 && dictionary != HONE_GRAPH_NONE; k++) {
            hone_view text = hone_bytecode_text(&r->code, hone_bytecode_member(&r->code, dictionary, names[k]));
            if (text.size > 0) return text;
        }
    }
    return (hone_view){0};
}

static void place_operation(reader *r, const operation *o, hone_view label)
{
    hone_graph *g = r->graph;
    if (o->location >= r->code.attribute_count) return;
    uint32_t *known = &r->places[o->location];
    if (*known == 0) {
        hone_view path = hone_bytecode_path(&r->code, g, o->location);
        *known = 1 + (path.size > 0 ? hone_graph_place_of(g, path, (hone_view){0}) : HONE_GRAPH_NONE);
    }
    uint32_t place = *known - 1;
    hone_view path = place != HONE_GRAPH_NONE ? g->places[place].path : (hone_view){0};
    g->ops[o->op].place = label.size > 0 ? hone_graph_place_of(g, path, label) : place;
}

// --- operations

// "add_v1" without its version.
static hone_view without_version(hone_view name)
{
    size_t size = name.size;
    while (size > 0 && name.data[size - 1] >= '0' && name.data[size - 1] <= '9')
        size--;
    bool versioned = size > 2 && size < name.size && name.data[size - 1] == 'v' && name.data[size - 2] == '_';
    return (hone_view){name.data, versioned ? size - 2 : name.size};
}

static uint64_t own_property(const reader *r, const operation *o)
{
    for (size_t i = 0; i < sizeof property_rows / sizeof property_rows[0]; i++) {
        const property_row *row = &property_rows[i];
        if (row->dialect != o->dialect || !hone_view_is(o->opcode, row->opcode)) continue;
        if (o->properties == HONE_GRAPH_NONE) return hone_bytecode_member(&r->code, o->attributes, row->name);
        return hone_bytecode_property(&r->code, o->properties, row->layout);
    }
    return HONE_GRAPH_NONE;
}

static void use_symbol(reader *r, uint32_t op, hone_view symbol)
{
    hone_graph *g = r->graph;
    if (!hone_grow(&g->allocator, &r->uses, &r->use_capacity, r->use_count + 1, sizeof *r->uses)) {
        g->failed = true;
        return;
    }
    r->uses[r->use_count++] = (symbol_use){op, symbol};
}

// What hone's own custom calls carry: in a configuration, which is a dictionary of attributes or their text.
static void read_own_call(reader *r, const operation *o, uint64_t config, hone_view *label)
{
    uint64_t dictionary = hone_bytecode_member(&r->code, o->attributes, "mhlo.backend_config");
    if (dictionary == HONE_GRAPH_NONE) dictionary = config;
    hone_view text = hone_bytecode_text(&r->code, config);
    hone_view call = hone_bytecode_text(&r->code, hone_bytecode_member(&r->code, dictionary, "hone_call"));
    hone_view own = hone_bytecode_text(&r->code, hone_bytecode_member(&r->code, dictionary, "hone_label"));
    hone_graph_detail *detail = call.size > 0 ? hone_graph_edit_detail(r->graph, o->op) : NULL;
    if (detail != NULL) detail->call = call;
    if (own.size > 0) *label = own;
    call = string_behind(text, "hone_call");
    own = string_behind(text, "hone_label");
    if (call.size > 0) hone_graph_keep_call(r->graph, o->op, call);
    if (own.size > 0) *label = own;
}

static void keep_literal(reader *r, uint32_t op, hone_view literal)
{
    hone_graph_detail *detail = literal.data != NULL ? hone_graph_edit_detail(r->graph, op) : NULL;
    if (detail != NULL) detail->literal = literal;
    r->graph->failed |= literal.size > 0 && literal.data == NULL;
}

static void read_details(reader *r, const operation *o)
{
    hone_graph *g = r->graph;
    uint32_t opcode = g->ops[o->op].opcode;
    uint64_t property = own_property(r, o);
    hone_view label = find_label(r, o);
    if (opcode == OPCODE_CONSTANT) keep_literal(r, o->op, hone_bytecode_number(&r->code, property, &g->texts));
    if (opcode == OPCODE_COMPARE) keep_literal(r, o->op, hone_bytecode_direction(&r->code, property));
    if (opcode == OPCODE_CUSTOM_CALL_MLIR) read_own_call(r, o, property, &label);
    if (opcode == OPCODE_CALL || opcode == OPCODE_COMPOSITE)
        use_symbol(r, o->op, hone_bytecode_text(&r->code, property));
    place_operation(r, o, label);
}

// The value of a number within the region at hand; HONE_GRAPH_NONE: a number that nothing defines.
static uint32_t value_of(reader *r, uint64_t number)
{
    const frame *f = top(r);
    return number < r->value_count - f->scope ? r->values[f->scope + number] : HONE_GRAPH_NONE;
}

static void define(reader *r, uint32_t value)
{
    frame *f = top(r);
    if (f->next < r->value_count) r->values[f->next++] = value;
}

static bool read_results(reader *r, hone_cursor *c, uint32_t op, uint64_t *out_count)
{
    uint64_t type;
    if (!hone_bytecode_varint(c, out_count)) return false;
    for (uint64_t i = 0; i < *out_count; i++) {
        if (!hone_bytecode_varint(c, &type)) return false;
        define(r, op != HONE_GRAPH_NONE ? hone_graph_add_value(r->graph, op, type_of(r, type)) : HONE_GRAPH_NONE);
    }
    return true;
}

static bool read_operands(reader *r, hone_cursor *c, uint32_t op)
{
    uint64_t count, number;
    if (!hone_bytecode_varint(c, &count)) return false;
    for (; count > 0; count--) {
        if (!hone_bytecode_varint(c, &number)) return false;
        if (op != HONE_GRAPH_NONE) hone_graph_add_operand(r->graph, value_of(r, number));
    }
    return true;
}

static bool skip_numbers(hone_cursor *c, uint64_t count)
{
    uint64_t ignored;
    while (count > 0 && hone_bytecode_varint(c, &ignored))
        count--;
    return count == 0;
}

// In which order values are used, which says nothing here.
static bool skip_use_orders(hone_cursor *c, uint64_t values)
{
    uint64_t entries = 1, index, count;
    bool pairs;
    if (values > 1 && !hone_bytecode_varint(c, &entries)) return false;
    for (; entries > 0; entries--) {
        if (values > 1 && !hone_bytecode_varint(c, &index)) return false;
        if (!hone_bytecode_flagged(c, &count, &pairs) || !skip_numbers(c, count)) return false;
    }
    return true;
}

// Results come before operands, but the operands of an operation are those of values that were there before it.
static bool read_values(reader *r, hone_cursor *c, unsigned mask, uint32_t op)
{
    uint64_t results = 0, successors = 0;
    if ((mask & HAS_RESULTS) && !read_results(r, c, op, &results)) return false;
    if ((mask & HAS_OPERANDS) && !read_operands(r, c, op)) return false;
    if ((mask & HAS_SUCCESSORS) && (!hone_bytecode_varint(c, &successors) || !skip_numbers(c, successors)))
        return false;
    return !(mask & HAS_USE_ORDERS) || skip_use_orders(c, results);
}

static bool is_kept(reader *r, const operation *o)
{
    bool function = hone_view_is(o->opcode, "func") && (o->dialect == DIALECT_FUNC || o->dialect == DIALECT_VHLO);
    return top(r)->body != HONE_GRAPH_NONE && !function;
}

static bool read_operation(reader *r, hone_cursor *c, operation *out)
{
    uint64_t name;
    *out = (operation){.attributes = HONE_GRAPH_NONE, .properties = HONE_GRAPH_NONE, .op = HONE_GRAPH_NONE};
    if (!hone_bytecode_varint(c, &name) || name >= r->code.name_count || c->at == c->end) return false;
    unsigned mask = (unsigned char)*c->at++;
    out->dialect = r->code.name_dialects[name];
    out->opcode = without_version(r->code.names[name]);
    if (!hone_bytecode_varint(c, &out->location)) return false;
    if ((mask & HAS_ATTRIBUTES) && !hone_bytecode_varint(c, &out->attributes)) return false;
    if ((mask & HAS_PROPERTIES) && !hone_bytecode_varint(c, &out->properties)) return false;
    if (is_kept(r, out)) out->op = hone_graph_add_op(r->graph, top(r)->body, out->opcode);
    if (!read_values(r, c, mask, out->op)) return false;
    if ((mask & HAS_REGIONS) && !hone_bytecode_flagged(c, &out->regions, &out->isolated)) return false;
    if (out->op == HONE_GRAPH_NONE) return !r->graph->failed;
    if (r->graph->ops[out->op].opcode == OPCODE_RETURN) r->graph->bodies[top(r)->body].result = out->op;
    read_details(r, out);
    return !r->graph->failed;
}

// --- regions

static bool push_frame(reader *r, const operation *owner, hone_cursor c, bool isolated)
{
    hone_graph *g = r->graph;
    if (r->frame_count == DEPTH_MAX) return false; // deeper than any program
    if (!hone_grow(&g->allocator, &r->frames, &r->frame_capacity, r->frame_count + 1, sizeof *r->frames)) {
        g->failed = true;
        return false;
    }
    size_t scope = isolated || r->frame_count == 0 ? r->value_count : top(r)->scope;
    r->frames[r->frame_count++] = (frame){.owner = *owner, .c = c, .body = HONE_GRAPH_NONE, .scope = scope};
    return true;
}

// The regions of an operation; isolated ones are a section of their own since version 2.
static bool open_regions(reader *r, const operation *o, hone_cursor *c)
{
    uint64_t number;
    hone_view section;
    bool clipped, apart = o->isolated && r->code.version >= 2;
    if (apart && (!hone_bytecode_find_section(c, &number, &section, &clipped) || number != SECTION_IR)) return false;
    return push_frame(r, o, apart ? cursor_of(section) : *c, o->isolated);
}

// The body of a region: a function's by its name, another operation's by what that does with it.
static uint32_t body_of(reader *r, const frame *f)
{
    hone_graph *g = r->graph;
    const operation *o = &f->owner;
    if (o->op == HONE_GRAPH_NONE && !hone_view_is(o->opcode, "func")) return HONE_GRAPH_NONE;
    hone_view symbol = o->op == HONE_GRAPH_NONE ? hone_bytecode_text(&r->code, own_property(r, o)) : (hone_view){0};
    uint32_t body = hone_graph_add_body(g, symbol);
    if (o->op != HONE_GRAPH_NONE)
        hone_graph_add_edge(g, o->op, body, hone_stablehlo_role(g->ops[o->op].opcode, (uint32_t)f->region));
    else if (symbol.size > 0)
        hone_names_put(&r->functions, 0, symbol, body);
    return body;
}

// So many values more, which the region will define. Each takes a byte of the file at least.
static bool add_values(reader *r, uint64_t count)
{
    const hone_allocator *a = &r->graph->allocator;
    if (count > r->value_limit - r->value_count) return false;
    size_t needed = r->value_count + (size_t)count;
    if (!hone_grow(a, &r->values, &r->value_capacity, needed, sizeof *r->values)) {
        r->graph->failed = true;
        return false;
    }
    for (; r->value_count < needed; r->value_count++)
        r->values[r->value_count] = HONE_GRAPH_NONE;
    return true;
}

// Arguments have a place each, since version 4 only when it is known.
static bool read_arguments(reader *r, frame *f, uint64_t *out_count)
{
    uint64_t type, location;
    bool located = true;
    if (!hone_bytecode_varint(&f->c, out_count)) return false;
    for (uint64_t i = 0; i < *out_count; i++) {
        bool sound =
            r->code.version < 4 ? hone_bytecode_varint(&f->c, &type) : hone_bytecode_flagged(&f->c, &type, &located);
        if (!sound || (located && !hone_bytecode_varint(&f->c, &location))) return false;
        define(r, hone_graph_add_parameter(r->graph, f->body, type_of(r, type)));
    }
    return true;
}

static bool open_block(reader *r, frame *f)
{
    bool arguments;
    uint64_t count = 0;
    if (!hone_bytecode_flagged(&f->c, &f->ops, &arguments)) return false;
    f->blocks--;
    if (!arguments) return true;
    if (!read_arguments(r, f, &count)) return false;
    if (r->code.version < 3) return true;
    if (f->c.at == f->c.end) return false;
    return *f->c.at++ == 0 || skip_use_orders(&f->c, count);
}

static bool open_region(reader *r, frame *f)
{
    uint64_t values = 0;
    f->base = f->next = r->value_count;
    f->open = true;
    if (!hone_bytecode_varint(&f->c, &f->blocks)) return false;
    if (f->blocks == 0) return true;
    if (!hone_bytecode_varint(&f->c, &values) || !add_values(r, values)) return false;
    f->body = body_of(r, f);
    return !r->graph->failed && open_block(r, f);
}

static void close_region(reader *r, frame *f)
{
    r->value_count = f->base;
    f->open = false;
    f->region++;
}

// Behind its regions the operation's owner goes on where they end, unless they had a section of their own.
static void pop_frame(reader *r)
{
    frame done = *top(r);
    r->frame_count--;
    if (r->frame_count > 0 && !(done.owner.isolated && r->code.version >= 2)) top(r)->c = done.c;
}

// One step: an operation, a block, a region. False: the bytes are damaged here.
static bool step(reader *r)
{
    frame *f = top(r);
    operation o;
    if (!f->open) {
        if (f->region < f->owner.regions) return open_region(r, f);
        pop_frame(r);
        return true;
    }
    if (f->ops == 0 && f->blocks > 0) return open_block(r, f);
    if (f->ops == 0) {
        close_region(r, f);
        return true;
    }
    f->ops--;
    hone_cursor c = f->c;
    if (!read_operation(r, &c, &o)) return false;
    bool opened = o.regions == 0 || open_regions(r, &o, &c);
    r->frames[r->frame_count - 1 - (o.regions > 0 && opened)].c = c;
    return opened;
}

// The section begins with the block that holds the module, without a region's head.
static void read_ir(reader *r)
{
    hone_graph *g = r->graph;
    operation none = {.op = HONE_GRAPH_NONE, .regions = 1};
    hone_cursor c = cursor_of(r->code.sections[SECTION_IR]);
    r->value_limit = (size_t)(c.end - c.at);
    bool sound = c.at < c.end && push_frame(r, &none, c, true);
    if (sound) {
        top(r)->open = true;
        top(r)->blocks = 1;
        sound = open_block(r, top(r));
    }
    while (sound && r->frame_count > 0)
        sound = step(r);
    g->cut |= !sound;
}

static void call_functions(reader *r)
{
    for (size_t i = 0; i < r->use_count; i++) {
        uint32_t body = hone_names_get(&r->functions, 0, r->uses[i].symbol);
        hone_graph_add_edge(r->graph, r->uses[i].op, body, GRAPH_CALL);
    }
}

void hone_bytecode_read(hone_view bytes, hone_graph *graph)
{
    reader r = {.graph = graph};
    const hone_allocator *a = &graph->allocator;
    graph->bare = true;
    hone_names_init(&r.functions, a);
    hone_bytecode_open(a, bytes, &r.code);
    graph->cut |= r.code.cut;
    r.types = hone_alloc_array(a, r.code.type_count + 1, sizeof *r.types);
    r.places = hone_alloc_array(a, r.code.attribute_count + 1, sizeof *r.places);
    graph->failed |= r.code.failed || r.types == NULL || r.places == NULL;
    if (!graph->failed) read_ir(&r);
    if (!graph->failed) call_functions(&r);
    if (!graph->failed) hone_bytecode_keep_loose(&r.code, graph);
    graph->failed |= r.functions.failed;
    hone_names_deinit(&r.functions);
    hone_bytecode_close(&r.code);
    hone_free(a, r.types);
    hone_free(a, r.places);
    hone_free(a, r.values);
    hone_free(a, r.frames);
    hone_free(a, r.uses);
}
