// Reads HloModuleProto, what XLA writes before and after optimisation: computations of instructions that name each
// other by number.
// The numbers of the fields are those of xla/service/hlo.proto and xla/xla_data.proto.
#include "offline/forms/hlo_proto.h"

#include "offline/forms/forms.h"
#include "offline/forms/wire.h"

enum { WRAPPINGS_MAX = 3 };

enum { MODULE_COMPUTATION = 3, MODULE_ENTRY = 6, MODULE_SCHEDULE = 7, MODULE_PAYLOAD = 22 };
enum { COMPUTATION_NAME = 1, COMPUTATION_INSTRUCTION = 2, COMPUTATION_ID = 5, COMPUTATION_ROOT = 6 };
enum { INSTRUCTION_OPERAND = 36, INSTRUCTION_CALLED = 38 };
enum { METADATA_OP_NAME = 2, METADATA_PAYLOAD = 20, PAYLOAD_VALUE = 1, PAYLOAD_ID = 2 };
enum { MAP_ENTRY = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

// A computation that an instruction names by its number; they may stand in any order.
typedef struct reference {
    uint32_t op;
    uint64_t number;
    hone_graph_role role;
} reference;

// What is written of messages.
typedef enum text_kind { TEXT_TYPE, TEXT_LITERAL } text_kind;

typedef struct reader {
    hone_graph *graph;
    hone_names values; // of the computation at hand, by number
    hone_names computations;
    hone_names messages; // texts by the message, within its kind
    hone_view *texts;
    size_t text_count, text_capacity;
    hone_view *payloads; // that instructions name by their place
    size_t payload_count, payload_capacity;
    reference *references;
    size_t reference_count, reference_capacity;
} reader;

static bool keep_view(reader *r, hone_view **array, size_t *count, size_t *capacity, hone_view view)
{
    bool room = hone_grow(&r->graph->allocator, array, capacity, *count + 1, sizeof **array);
    if (room) (*array)[(*count)++] = view;
    r->graph->failed |= !room;
    return room;
}

// --- pieces of an instruction

// The fields of an instruction that are read, but for the repeated ones.
typedef enum part {
    PART_NONE,
    PART_OPCODE,
    PART_SHAPE,
    PART_METADATA,
    PART_LITERAL,
    PART_NUMBER, // of a parameter or of a tuple's element
    PART_ID,
    PART_CONFIG,
    PART_DIRECTION,
    PART_ATTRIBUTES,
    PART_COUNT
} part;

static const uint8_t part_of_field[] = {
    [2] = PART_OPCODE,  [3] = PART_SHAPE, [7] = PART_METADATA, [8] = PART_LITERAL,    [9] = PART_NUMBER,
    [13] = PART_NUMBER, [35] = PART_ID,   [43] = PART_CONFIG,  [63] = PART_DIRECTION, [68] = PART_ATTRIBUTES,
};

// Numbers of a repeated field, packed or each with its tag.
typedef struct numbers {
    hone_cursor packed; // of the field at hand
    hone_cursor fields; // behind it
    uint64_t field;
    size_t left; // fields of that number behind it
} numbers;

// Takes another field of the number, which ends at the cursor.
static void add_numbers(numbers *n, const hone_wire_field *field, hone_cursor behind)
{
    if (n->field == 0)
        *n = (numbers){.packed = cursor_of(field->bytes), .fields = behind, .field = field->number};
    else
        n->left++;
}

static bool next_number(numbers *n, uint64_t *out)
{
    for (; n->packed.at == n->packed.end && n->left > 0; n->left--) {
        hone_wire_field field = {0};
        while (field.number != n->field && wire_next(&n->fields, &field))
            ;
        n->packed = cursor_of(field.bytes);
    }
    return wire_varint(&n->packed, out);
}

typedef struct instruction {
    hone_view parts[PART_COUNT];
    uint64_t number, id;
    numbers operands, called;
} instruction;

// What HLO text has in place of a message; equal messages of a kind are written once.
static hone_view text_of(reader *r, text_kind kind, hone_view message)
{
    static hone_view (*const write[])(hone_arena * arena, hone_view message) = {
        [TEXT_TYPE] = hone_hlo_proto_type, [TEXT_LITERAL] = hone_hlo_proto_literal};
    uint32_t known = hone_names_get(&r->messages, kind, message);
    if (known != HONE_GRAPH_NONE) return r->texts[known];
    hone_view text = write[kind](&r->graph->texts, message);
    r->graph->failed |= text.data == NULL;
    if (r->graph->failed || !keep_view(r, &r->texts, &r->text_count, &r->text_capacity, text)) return (hone_view){0};
    hone_names_put(&r->messages, kind, message, (uint32_t)r->text_count - 1);
    return text;
}

// The first field of that number and of bytes; empty: there is none.
static hone_view find_bytes(hone_view message, uint64_t number)
{
    hone_cursor c = cursor_of(message);
    hone_wire_field field;
    while (wire_next(&c, &field))
        if (field.number == number && field.type == WIRE_BYTES) return field.bytes;
    return (hone_view){0};
}

static hone_view read_payload(const reader *r, hone_view payload)
{
    hone_cursor c = cursor_of(payload);
    hone_wire_field field;
    hone_view value = {0};
    while (wire_next(&c, &field)) {
        if (field.number == PAYLOAD_VALUE && field.type == WIRE_BYTES) value = field.bytes;
        bool interned = field.number == PAYLOAD_ID && field.type == WIRE_VARINT && field.integer < r->payload_count;
        if (interned) value = r->payloads[field.integer];
    }
    return value;
}

// The values of the frontend attributes that hone looks at; others may be many.
static void read_frontend(reader *r, uint32_t op, hone_view attributes, hone_view *out_label)
{
    hone_cursor c = cursor_of(attributes);
    hone_wire_field field;
    while (wire_next(&c, &field)) {
        if (field.number != MAP_ENTRY || field.type != WIRE_BYTES) continue;
        hone_view key = find_bytes(field.bytes, ENTRY_KEY), value = find_bytes(field.bytes, ENTRY_VALUE);
        hone_graph_detail *detail = hone_view_is(key, "hone_call") ? hone_graph_edit_detail(r->graph, op) : NULL;
        if (detail != NULL) detail->call = value;
        if (hone_view_is(key, "hone_label") || hone_view_is(key, "xla_metadata_payload")) *out_label = value;
    }
}

static void read_place(reader *r, uint32_t op, const instruction *in)
{
    hone_view metadata = in->parts[PART_METADATA], path = {0}, label = {0};
    hone_cursor c = cursor_of(metadata);
    hone_wire_field field;
    while (wire_next(&c, &field)) {
        if (field.number == METADATA_OP_NAME && field.type == WIRE_BYTES) path = field.bytes;
        if (field.number == METADATA_PAYLOAD && field.type == WIRE_BYTES) label = read_payload(r, field.bytes);
    }
    hone_view config = in->parts[PART_CONFIG];
    hone_view call = string_behind(config, "hone_call"), own = string_behind(config, "hone_label");
    if (call.size > 0) hone_graph_keep_call(r->graph, op, call);
    if (own.size > 0) label = own;
    read_frontend(r, op, in->parts[PART_ATTRIBUTES], &label);
    if (path.size + label.size > 0) r->graph->ops[op].place = hone_graph_place_of(r->graph, path, label);
}

static void refer(reader *r, uint32_t op, uint64_t number, hone_graph_role role)
{
    hone_graph *g = r->graph;
    if (!hone_grow(&g->allocator, &r->references, &r->reference_capacity, r->reference_count + 1, sizeof(reference))) {
        g->failed = true;
        return;
    }
    r->references[r->reference_count++] = (reference){op, number, role};
}

// What an instruction does with the computation of that place among those that it names.
static hone_graph_role role_of(const reader *r, uint32_t opcode, size_t index)
{
    if (opcode == OPCODE_WHILE) return index == 0 ? GRAPH_LOOP : GRAPH_CONDITION;
    if (opcode == OPCODE_CONDITIONAL) return GRAPH_BRANCH;
    if (opcode == OPCODE_CALL) return r->graph->optimised ? GRAPH_FUSION : GRAPH_CALL;
    return opcode == OPCODE_FUSION || opcode == OPCODE_ASYNC_START ? GRAPH_FUSION : GRAPH_APPLIED;
}

static void read_operands(reader *r, instruction *in)
{
    uint64_t number;
    while (next_number(&in->operands, &number))
        hone_graph_add_operand(r->graph, hone_names_get_number(&r->values, number));
}

static void read_called(reader *r, uint32_t op, instruction *in)
{
    uint32_t opcode = r->graph->ops[op].opcode;
    uint64_t number;
    for (size_t i = 0; next_number(&in->called, &number); i++)
        refer(r, op, number, role_of(r, opcode, i));
}

// What says more of an operation than its operands do.
static void read_details(reader *r, uint32_t op, const instruction *in)
{
    uint32_t opcode = r->graph->ops[op].opcode;
    hone_view literal = in->parts[PART_LITERAL], direction = in->parts[PART_DIRECTION];
    bool numbered = opcode == OPCODE_PARAMETER || opcode == OPCODE_GET_TUPLE_ELEMENT, loop = opcode == OPCODE_WHILE;
    if (!numbered && !loop && literal.size == 0 && direction.size == 0) return;
    hone_graph_detail *detail = hone_graph_edit_detail(r->graph, op);
    if (detail == NULL) return;
    if (numbered) detail->number = (int64_t)in->number;
    if (loop) detail->number = hone_hlo_trip_count(in->parts[PART_CONFIG]);
    if (literal.size > 0) detail->literal = text_of(r, TEXT_LITERAL, literal);
    if (direction.size > 0) detail->literal = direction;
}

// --- messages

// Takes the message apart. False for one that is damaged or was cut: what is left of it may say something else.
static bool split_instruction(hone_view message, instruction *out)
{
    *out = (instruction){0};
    hone_cursor c = cursor_of(message);
    while (c.at < c.end) {
        hone_wire_field field;
        if (!wire_next(&c, &field) || field.clipped) return false;
        if (field.number == INSTRUCTION_OPERAND) add_numbers(&out->operands, &field, c);
        if (field.number == INSTRUCTION_CALLED) add_numbers(&out->called, &field, c);
        part p = field.number < sizeof part_of_field ? (part)part_of_field[field.number] : PART_NONE;
        out->parts[p] = field.bytes;
        if (p == PART_NUMBER) out->number = field.integer;
        if (p == PART_ID) out->id = field.integer;
    }
    return out->parts[PART_OPCODE].size > 0;
}

static bool read_instruction(reader *r, uint32_t body, hone_view message)
{
    instruction in;
    hone_graph *g = r->graph;
    if (!split_instruction(message, &in)) return false;
    uint32_t op = hone_graph_add_op(g, body, in.parts[PART_OPCODE]);
    if (op == HONE_GRAPH_NONE) return false;
    read_operands(r, &in);
    read_called(r, op, &in);
    read_details(r, op, &in);
    read_place(r, op, &in);
    hone_view type = text_of(r, TEXT_TYPE, in.parts[PART_SHAPE]);
    uint32_t value = hone_graph_add_value(g, op, type);
    hone_names_put_number(&r->values, in.id, value);
    return !g->failed;
}

static bool read_computation(reader *r, const hone_wire_field *message)
{
    hone_graph *g = r->graph;
    uint32_t body = hone_graph_add_body(g, (hone_view){0});
    hone_names_clear(&r->values);
    hone_cursor c = cursor_of(message->bytes);
    hone_wire_field field, root = {0};
    bool sound = body != HONE_GRAPH_NONE;
    while (sound && wire_next(&c, &field)) {
        bool bytes = field.type == WIRE_BYTES;
        if (field.number == COMPUTATION_NAME && bytes) g->bodies[body].name = field.bytes;
        if (field.number == COMPUTATION_INSTRUCTION && bytes)
            sound = !field.clipped && read_instruction(r, body, field.bytes);
        if (field.number == COMPUTATION_ID) hone_names_put_number(&r->computations, field.integer, body);
        if (field.number == COMPUTATION_ROOT) root = field;
    }
    uint32_t result = root.number > 0 ? hone_names_get_number(&r->values, root.integer) : HONE_GRAPH_NONE;
    if (result != HONE_GRAPH_NONE) g->bodies[body].result = g->values[result].op;
    return sound && !message->clipped && c.at == c.end;
}

// What must be known before the first instruction is read.
static void look_ahead(reader *r, hone_view module)
{
    hone_cursor c = cursor_of(module);
    hone_wire_field field;
    while (wire_next(&c, &field)) {
        bool bytes = field.type == WIRE_BYTES && !field.clipped;
        if (field.number == MODULE_SCHEDULE) r->graph->optimised = true;
        if (field.number == MODULE_PAYLOAD && bytes)
            keep_view(r, &r->payloads, &r->payload_count, &r->payload_capacity, field.bytes);
    }
}

static void read_module(reader *r, hone_view module)
{
    hone_graph *g = r->graph;
    hone_cursor c = cursor_of(module);
    hone_wire_field field;
    look_ahead(r, module);
    uint32_t entry = HONE_GRAPH_NONE;
    while (!g->failed && wire_next(&c, &field)) {
        bool computation = field.number == MODULE_COMPUTATION && field.type == WIRE_BYTES;
        if (field.clipped) g->cut = true;
        if (computation && !read_computation(r, &field)) g->cut = true;
        if (field.number == MODULE_ENTRY) entry = hone_names_get_number(&r->computations, field.integer);
    }
    // XLA writes the entry's number behind the computations: without it, the module ended between two fields.
    g->cut |= c.at < c.end || entry == HONE_GRAPH_NONE;
}

static void resolve_references(reader *r)
{
    for (size_t i = 0; i < r->reference_count; i++) {
        const reference *ref = &r->references[i];
        hone_graph_add_edge(r->graph, ref->op, hone_names_get_number(&r->computations, ref->number), ref->role);
    }
}

void hone_hlo_proto_read(hone_view bytes, hone_graph *graph)
{
    reader r = {.graph = graph};
    graph->tuples = true;
    graph->bare = true;
    hone_view module = hone_hlo_proto_module(bytes);
    hone_names *const names[] = {&r.values, &r.computations, &r.messages};
    for (size_t i = 0; i < 3; i++)
        hone_names_init(names[i], &graph->allocator);
    read_module(&r, module);
    for (size_t i = 0; i < 3; i++)
        graph->failed |= names[i]->failed;
    resolve_references(&r);
    for (size_t i = 0; i < 3; i++)
        hone_names_deinit(names[i]);
    hone_free(&graph->allocator, r.texts);
    hone_free(&graph->allocator, r.payloads);
    hone_free(&graph->allocator, r.references);
}

// --- wrappings

static bool is_computation(hone_view message)
{
    hone_cursor c = cursor_of(message);
    hone_wire_field field;
    while (wire_next(&c, &field)) {
        if (field.number == COMPUTATION_NAME && field.type == WIRE_BYTES) continue;
        if (field.number != COMPUTATION_INSTRUCTION || field.type != WIRE_BYTES) return false;
        instruction in;
        return field.clipped || split_instruction(field.bytes, &in);
    }
    return false;
}

static bool is_module(hone_view message)
{
    hone_cursor c = cursor_of(message);
    hone_wire_field field;
    while (wire_next(&c, &field))
        if (field.number == MODULE_COMPUTATION && field.type == WIRE_BYTES) return is_computation(field.bytes);
    return false;
}

hone_view hone_hlo_proto_module(hone_view bytes)
{
    // HloProto, HloSnapshot, HloModuleProtoWithConfig have what they wrap in their first field. The innermost is taken:
    // other fields of a wrapping may look like computations.
    hone_view module = {0};
    for (int depth = 0; depth <= WRAPPINGS_MAX; depth++) {
        if (is_module(bytes)) module = bytes;
        bytes = find_bytes(bytes, 1);
    }
    return module;
}
