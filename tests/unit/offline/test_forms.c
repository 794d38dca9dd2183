// Binary forms: each says the same of a program's calls as its text does, wrapped or packed as well; and what is
// damaged, of another form or too large is refused with words.
#include "failing_allocator.h"
#include "fixture.h"
#include "guarded.h"
#include "offline/forms/bytecode.h"
#include "offline/forms/forms.h"
#include "os/os.h"

#include <stdlib.h>
#include <zlib.h>

static void read_golden(const char *name, hone_buffer *out)
{
    char path[512];
    hone_error err = {0};
    snprintf(path, sizeof path, "%s/golden/lowered/%s", HONE_TEST_DATA, name);
    hone_buffer_clear(out);
    assert_int_equal(hone_os_read_file(path, 1 << 24, out, &err), HONE_OK);
}

static hone_program *open_golden(fixture *f, const char *name)
{
    hone_buffer bytes;
    hone_buffer_init(&bytes, f->allocator);
    read_golden(name, &bytes);
    hone_program *program = fixture_read_bytes(f, hone_buffer_string(&bytes), bytes.size);
    hone_buffer_deinit(&bytes);
    return program;
}

static const char *or_none(const char *text)
{
    return text != NULL ? text : "(none)";
}

static bool same_operation(const hone_operation *a, const hone_operation *b)
{
    return strcmp(a->algorithm, b->algorithm) == 0 && strcmp(or_none(a->key), or_none(b->key)) == 0 &&
           strcmp(or_none(a->version), or_none(b->version)) == 0 && strcmp(or_none(a->call), or_none(b->call)) == 0 &&
           a->matched == b->matched && a->count == b->count;
}

// The same operations, whatever their order.
static void assert_same(const hone_program *a, const hone_program *b)
{
    assert_int_equal(hone_program_operations(a), hone_program_operations(b));
    for (size_t i = 0; i < hone_program_operations(a); i++) {
        const hone_operation *o = hone_program_operation(a, i);
        size_t k = 0;
        while (k < hone_program_operations(b) && !same_operation(o, hone_program_operation(b, k)))
            k++;
        if (k == hone_program_operations(b))
            fail_msg("%s %s %s is not in both", o->algorithm, or_none(o->key), or_none(o->call));
    }
}

static void assert_agree(fixture *f, const char *name, const char *form, const char *text)
{
    hone_program *a = open_golden(f, name), *b = open_golden(f, text);
    assert_string_equal(hone_program_form(a), form);
    assert_string_equal(hone_program_dialect(a), hone_program_dialect(b));
    assert_true(hone_program_operations(a) > 0);
    assert_same(a, b);
    hone_program_release(&a);
    hone_program_release(&b);
}

static void protos_say_what_hlo_text_says(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    assert_agree(&f, "control.hlo.pb", "HLO proto", "control.hlo.txt");
    assert_agree(&f, "many.hlo.pb", "HLO proto", "many.hlo.txt");
    hone_program *program = open_golden(&f, "one.opt.hlo.pb");
    assert_non_null(strstr(hone_program_note(program), "optimised"));
    assert_int_equal(hone_program_operation(program, 0)->count, -1);
    hone_program_release(&program);
    program = open_golden(&f, "one_json.hlo.pb"); // with its arguments
    assert_int_equal(hone_program_operation(program, 0)->matched, HONE_MATCH_LABEL);
    assert_string_equal(hone_program_operation(program, 0)->key, "2133cfa20c40fe20");
    hone_program_release(&program);
    fixture_close(&f);
}

static void bytecode_says_what_stablehlo_text_says(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    assert_agree(&f, "control.bc", "MLIR bytecode", "control.mlir");
    assert_agree(&f, "many.bc", "MLIR bytecode", "many.mlir");
    assert_agree(&f, "control.portable.bc", "StableHLO portable artifact", "control.mlir");
    assert_agree(&f, "many.portable.bc", "StableHLO portable artifact", "many.mlir");
    assert_agree(&f, "control.export", "jax.export blob", "control.mlir");
    assert_agree(&f, "many.export", "jax.export blob", "many.export.mlir");
    hone_program *program = open_golden(&f, "control_json.bc"); // with its arguments, as HLO text has them too
    assert_int_equal(hone_program_operations(program), 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(hone_program_operation(program, i)->matched, HONE_MATCH_LABEL);
    hone_program_release(&program);
    fixture_close(&f);
}

// A custom call with its call text, a loop and a function with a label, as MLIR writes calls.mlir for readers of
// each version.
static void every_version_of_bytecode_says_the_same(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    for (int version = 0; version <= HONE_BYTECODE_NEWEST; version++) {
        char name[32];
        snprintf(name, sizeof name, "calls.v%d.bc", version);
        hone_program *program = open_golden(&f, name);
        assert_string_equal(hone_program_form(program), "MLIR bytecode");
        assert_int_equal(hone_program_operations(program), 2);
        const hone_operation *call = hone_program_operation(program, 0), *looped = hone_program_operation(program, 1);
        assert_string_equal(call->call, "matmul(f32[8,16], f32[16,4])");
        assert_int_equal(call->matched, HONE_MATCH_LABEL);
        assert_string_equal(call->label, "hone#matmul.v1:0123456789abcdef");
        assert_string_equal(looped->algorithm, "x");
        assert_int_equal(looped->count, 7);
        assert_null(hone_program_note(program));
        hone_program_release(&program);
    }
    fixture_close(&f);
}

// --- statements of the usual shape, which have a reader of their own

static void open_graph(hone_graph *graph, const hone_buffer *text)
{
    hone_graph_init(graph, &text->allocator);
    hone_stablehlo_read((hone_view){text->data, text->size}, graph);
    hone_graph_finish(graph);
    assert_false(graph->failed);
}

static void assert_same_operation(const hone_graph *a, const hone_graph *b, uint32_t op)
{
    const hone_graph_op *x = &a->ops[op], *y = &b->ops[op];
    assert_int_equal(x->opcode, y->opcode);
    assert_int_equal(x->operand_count, y->operand_count);
    for (uint32_t k = 0; k < x->operand_count; k++)
        assert_int_equal(a->operands[x->first_operand + k], b->operands[y->first_operand + k]);
    assert_int_equal(x->value_count, y->value_count);
    for (uint32_t k = 0; k < x->value_count; k++)
        assert_true(hone_view_equal(a->values[x->first_value + k].type, b->values[y->first_value + k].type));
    assert_true(hone_view_equal(hone_graph_detail_of(a, op)->literal, hone_graph_detail_of(b, op)->literal));
    assert_int_equal(x->place, y->place);
    assert_int_equal(x->body, y->body);
}

// A space behind each line leaves all lines to the general reader.
static void both_readers_of_statements_say_the_same(void **state)
{
    (void)state;
    static const char *const names[] = {"many.mlir", "control.mlir", "many.export.mlir"};
    hone_buffer text, spaced;
    hone_buffer_init(&text, hone_allocator_system());
    hone_buffer_init(&spaced, hone_allocator_system());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hone_graph a, b;
        read_golden(names[i], &text);
        hone_buffer_clear(&spaced);
        for (size_t k = 0; k < text.size; k++) {
            if (text.data[k] == '\n') hone_buffer_char(&spaced, ' ');
            hone_buffer_char(&spaced, text.data[k]);
        }
        open_graph(&a, &text);
        open_graph(&b, &spaced);
        assert_true(a.op_count > 100);
        assert_int_equal(a.op_count, b.op_count);
        for (uint32_t op = 0; op < a.op_count; op++)
            assert_same_operation(&a, &b, op);
        hone_graph_deinit(&a);
        hone_graph_deinit(&b);
    }
    hone_buffer_deinit(&text);
    hone_buffer_deinit(&spaced);
}

// Statement by statement: types of all elements, and what a constant of each is. The text's operand is a name, the
// bytecode's is not: literals are compared where both have one.
static void bytecode_has_the_types_and_constants_of_its_text(void **state)
{
    (void)state;
    static const char *const names[] = {"types.bc", "types.portable.bc"};
    hone_buffer text, bytes;
    hone_buffer_init(&text, hone_allocator_system());
    hone_buffer_init(&bytes, hone_allocator_system());
    read_golden("types.mlir", &text);
    for (size_t i = 0; i < 2; i++) {
        hone_graph a, b;
        open_graph(&a, &text);
        read_golden(names[i], &bytes);
        hone_graph_init(&b, &bytes.allocator);
        hone_bytecode_read((hone_view){bytes.data, bytes.size}, &b);
        hone_graph_finish(&b);
        assert_int_equal(a.op_count, b.op_count);
        size_t literals = 0;
        for (uint32_t op = 0; op < a.op_count; op++) {
            const hone_graph_op *x = &a.ops[op], *y = &b.ops[op];
            const hone_view said = hone_graph_detail_of(&a, op)->literal, read = hone_graph_detail_of(&b, op)->literal;
            assert_int_equal(x->value_count, y->value_count);
            for (uint32_t k = 0; k < x->value_count; k++) {
                const hone_view t = a.values[x->first_value + k].type, u = b.values[y->first_value + k].type;
                if (!hone_view_equal(t, u))
                    fail_msg("%s: %.*s was read as %.*s", names[i], (int)t.size, t.data, (int)u.size, u.data);
            }
            if (said.size == 0) continue;
            literals++;
            assert_true(read.size > 0);
            assert_true(strtod(said.data, NULL) == strtod(read.data, NULL));
        }
        assert_int_equal(literals, 5);
        hone_graph_deinit(&a);
        hone_graph_deinit(&b);
    }
    hone_buffer_deinit(&text);
    hone_buffer_deinit(&bytes);
}

// --- messages

static void add_varint(hone_buffer *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        hone_buffer_char(out, (char)(value & 127) | (char)128);
    hone_buffer_char(out, (char)value);
}

static void add_bytes(hone_buffer *out, unsigned field, const void *bytes, size_t size)
{
    add_varint(out, field << 3 | 2);
    add_varint(out, size);
    hone_buffer_append(out, bytes, size);
}

static void add_text(hone_buffer *out, unsigned field, const char *text)
{
    add_bytes(out, field, text, strlen(text));
}

static void add_number(hone_buffer *out, unsigned field, uint64_t value)
{
    add_varint(out, field << 3);
    add_varint(out, value);
}

// Takes `inside` into `out` as a field, and empties it.
static void add_message(hone_buffer *out, unsigned field, hone_buffer *inside)
{
    add_bytes(out, field, hone_buffer_string(inside), inside->size);
    hone_buffer_clear(inside);
}

static void a_proto_is_read_in_its_wrapping(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_buffer bytes, outer;
    hone_buffer_init(&bytes, f.allocator);
    hone_buffer_init(&outer, f.allocator);
    hone_program *bare = open_golden(&f, "control.hlo.pb");
    read_golden("control.hlo.pb", &bytes);
    for (int depth = 1; depth <= 4; depth++) { // HloProto, HloSnapshot around it, and one more, but not two
        add_message(&outer, 1, &bytes);
        hone_buffer_append(&bytes, outer.data, outer.size);
        hone_buffer_clear(&outer);
        hone_program *wrapped = NULL;
        hone_error err = {0};
        hone_status status = hone_offline_read(&f.environment, "x", bytes.data, bytes.size, &wrapped, &err);
        assert_int_equal(status, depth <= 3 ? HONE_OK : HONE_CORRUPT);
        if (status == HONE_OK) assert_same(bare, wrapped);
        hone_program_release(&wrapped);
    }
    hone_program_release(&bare);
    hone_buffer_deinit(&bytes);
    hone_buffer_deinit(&outer);
    fixture_close(&f);
}

// A module of one computation: a parameter of f32[2,64,24], and a custom call of it whose fields the caller has
// written.
static void write_module(fixture *f, hone_buffer *call, hone_buffer *out)
{
    static const char shape[] = "\x10\x0b\x1a\x03\x02\x40\x18", operand = 1;
    hone_buffer instruction, computation;
    hone_buffer_init(&instruction, f->allocator);
    hone_buffer_init(&computation, f->allocator);
    add_text(&computation, 1, "main.3");
    add_text(&instruction, 2, "parameter");
    add_bytes(&instruction, 3, shape, sizeof shape - 1);
    add_number(&instruction, 35, 1);
    add_message(&computation, 2, &instruction);
    add_text(call, 2, "custom-call");
    add_bytes(call, 3, "\x10\x0b\x1a\x02\x02\x18", 6);
    add_number(call, 35, 2);
    add_bytes(call, 36, &operand, 1);
    add_message(&computation, 2, call);
    add_number(&computation, 5, 7);
    add_number(&computation, 6, 2);
    add_text(out, 1, "jit_f");
    add_message(out, 3, &computation);
    add_number(out, 6, 7);
    hone_buffer_deinit(&instruction);
    hone_buffer_deinit(&computation);
}

static void labels_stand_in_payloads_and_attributes_too(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char label[] = "hone#mean_pooling.v1:0123456789abcdef";
    for (int way = 0; way < 4; way++) {
        hone_buffer call, inside, module;
        hone_buffer_init(&call, f.allocator);
        hone_buffer_init(&inside, f.allocator);
        hone_buffer_init(&module, f.allocator);
        if (way == 0) { // a payload in the metadata
            add_text(&module, 1, label);
            add_message(&inside, 20, &module);
            add_message(&call, 7, &inside);
        } else if (way == 1) { // the number of one that the module keeps
            add_number(&module, 2, 1);
            add_message(&inside, 20, &module);
            add_message(&call, 7, &inside);
        } else if (way == 2) { // a frontend attribute
            add_text(&module, 1, "hone_label");
            add_text(&module, 2, label);
            add_message(&inside, 1, &module);
            add_message(&call, 68, &inside);
        } else { // an attribute of the custom call, beside its call text
            add_text(
                &call, 43,
                "{hone_call = \"mean_pooling(f32[2,64,24], chunk_size=16)\", hone_label = "
                "\"hone#mean_pooling.v1:0123456789abcdef\"}");
        }
        write_module(&f, &call, &module);
        add_text(&module, 22, "another");
        add_number(&module, 22, 9); // no text: it has no place among them
        add_text(&module, 22, label);
        hone_program *program = fixture_read_bytes(&f, module.data, module.size);
        assert_int_equal(hone_program_operations(program), 1);
        const hone_operation *o = hone_program_operation(program, 0);
        assert_string_equal(o->label, label);
        assert_int_equal(o->count, 1);
        if (way == 3) assert_string_equal(o->call, "mean_pooling(f32[2,64,24], chunk_size=16)");
        hone_program_release(&program);
        hone_buffer_deinit(&call);
        hone_buffer_deinit(&inside);
        hone_buffer_deinit(&module);
    }
    fixture_close(&f);
}

// --- numbers of repeated fields, and what a loop names

enum { BODY = 11, CONDITION = 12, MAIN = 13 }; // computations, by number

typedef struct proto {
    hone_buffer module, computation, instruction, inside;
} proto;

static void open_proto(proto *p, fixture *f)
{
    hone_buffer *const all[] = {&p->module, &p->computation, &p->instruction, &p->inside};
    for (size_t i = 0; i < 4; i++)
        hone_buffer_init(all[i], f->allocator);
    add_text(&p->module, 1, "jit_f");
}

static void close_proto(proto *p)
{
    hone_buffer *const all[] = {&p->module, &p->computation, &p->instruction, &p->inside};
    for (size_t i = 0; i < 4; i++)
        hone_buffer_deinit(all[i]);
}

// An instruction of f32[dim], or of f32[] for 0, to which the caller may have added fields already.
static void add_instruction(proto *p, const char *opcode, unsigned id, char dim)
{
    const char shape[] = {0x10, 0x0b, 0x1a, 0x01, dim};
    add_text(&p->instruction, 2, opcode);
    add_bytes(&p->instruction, 3, shape, dim > 0 ? 5 : 2);
    add_number(&p->instruction, 35, id);
    add_message(&p->computation, 2, &p->instruction);
}

static void add_path(proto *p, const char *path)
{
    add_text(&p->inside, 2, path);
    add_message(&p->instruction, 7, &p->inside);
}

static void add_computation(proto *p, unsigned number, unsigned root)
{
    add_number(&p->computation, 5, number);
    add_number(&p->computation, 6, root);
    add_message(&p->module, 3, &p->computation);
}

// The label of a path that a computation of the loop has.
static void add_labelled(proto *p, unsigned number, const char *label)
{
    add_text(&p->computation, 1, label);
    add_instruction(p, "parameter", 1, 4);
    add_path(p, label);
    add_number(&p->instruction, 36, 1);
    add_instruction(p, "negate", 2, 4);
    add_computation(p, number, 2);
}

static const hone_operation *operation_of(const hone_program *program, const char *algorithm)
{
    for (size_t i = 0; i < hone_program_operations(program); i++)
        if (strcmp(hone_program_operation(program, i)->algorithm, algorithm) == 0)
            return hone_program_operation(program, i);
    fail_msg("no %s", algorithm);
    return NULL;
}

// Numbers of operands and of computations stand together, or each with its tag and other fields between them.
static void repeated_numbers_of_a_proto_may_stand_apart(void **state)
{
    (void)state;
    static const char together[] = {3, 1, 2}, first_two[] = {3, 1};
    for (int way = 0; way < 4; way++) {
        fixture f;
        proto p;
        fixture_open(&f);
        open_proto(&p, &f);
        add_text(&p.computation, 1, "main");
        for (unsigned i = 1; i <= 3; i++) {
            add_number(&p.instruction, 9, i - 1);
            add_instruction(&p, "parameter", i, (char)(4 * i));
        }
        for (int i = 0; way == 0 && i < 3; i++)
            add_number(&p.instruction, 36, (uint64_t)together[i]);
        if (way == 1) add_bytes(&p.instruction, 36, together, 3);
        if (way == 2) add_bytes(&p.instruction, 36, first_two, 2);
        if (way == 3) add_number(&p.instruction, 36, 3);
        add_path(&p, "jit(f)/ejkernel_ops#x");
        if (way == 2) add_number(&p.instruction, 36, 2);
        if (way == 3) add_number(&p.instruction, 36, 1);
        if (way == 3) add_text(&p.instruction, 44, "another");
        if (way == 3) add_bytes(&p.instruction, 36, together + 2, 1);
        add_instruction(&p, "custom-call", 4, 4);
        add_computation(&p, MAIN, 4);
        add_number(&p.module, 6, MAIN);
        hone_graph graph;
        hone_graph_init(&graph, &f.allocator);
        hone_hlo_proto_read((hone_view){p.module.data, p.module.size}, &graph);
        hone_graph_finish(&graph);
        assert_false(graph.cut || graph.failed);
        assert_int_equal(graph.op_count, 4);
        assert_int_equal(graph.ops[3].operand_count, 3);
        static const char *const types[] = {"f32[12]", "f32[4]", "f32[8]"};
        for (uint32_t i = 0; i < 3; i++) {
            hone_view type = graph.values[graph.operands[graph.ops[3].first_operand + i]].type;
            assert_true(type.size >= strlen(types[i]) && memcmp(type.data, types[i], strlen(types[i])) == 0);
        }
        hone_graph_deinit(&graph);
        close_proto(&p);
        fixture_close(&f);
    }
}

// A loop names its body first, then its condition; XLA says the trips in its configuration, or nobody does.
static void a_loop_of_a_proto_names_its_body_and_its_condition(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        fixture f;
        proto p;
        fixture_open(&f);
        open_proto(&p, &f);
        add_labelled(&p, BODY, "ejkernel_ops#in_body");
        add_labelled(&p, CONDITION, "ejkernel_ops#in_condition");
        add_text(&p.computation, 1, "main");
        add_instruction(&p, "parameter", 1, 4);
        add_number(&p.instruction, 36, 1);
        add_number(&p.instruction, 38, BODY);
        add_number(&p.instruction, 38, CONDITION);
        if (known) add_text(&p.instruction, 43, "{\"known_trip_count\":{\"n\":\"8\"}}");
        add_instruction(&p, "while", 2, 4);
        add_computation(&p, MAIN, 2);
        add_number(&p.module, 6, MAIN);
        hone_program *program = fixture_read_bytes(&f, p.module.data, p.module.size);
        assert_int_equal(hone_program_operations(program), 2);
        assert_int_equal(operation_of(program, "in_body")->count, known ? 8 : -1);
        hone_program_release(&program);
        hone_graph graph;
        hone_graph_init(&graph, &f.allocator);
        hone_hlo_proto_read((hone_view){p.module.data, p.module.size}, &graph);
        hone_graph_finish(&graph);
        assert_int_equal(graph.edge_count, 2);
        for (size_t i = 0; i < 2; i++) {
            bool body = hone_view_is(graph.bodies[graph.edges[i].body].name, "ejkernel_ops#in_body");
            assert_int_equal(graph.edges[i].role, body ? GRAPH_LOOP : GRAPH_CONDITION);
        }
        hone_graph_deinit(&graph);
        close_proto(&p);
        fixture_close(&f);
    }
}

// Fields with numbers that hone does not know, small and large, are passed over; so is a name that is not a string.
static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    fixture f;
    proto p;
    fixture_open(&f);
    open_proto(&p, &f);
    add_text(&p.computation, 1, "main");
    add_instruction(&p, "parameter", 1, 4);
    add_path(&p, "jit(f)/ejkernel_ops#x");
    add_text(&p.instruction, 2, "sine");
    for (unsigned field = 1; field < 200; field++) {
        bool read = field == 2 || field == 3 || field == 7 || field == 35 || field == 36 || field == 38;
        if (!read) add_text(&p.instruction, field, "\x01");
    }
    add_number(&p.instruction, 36, 1);
    add_instruction(&p, "sine", 2, 4);
    add_number(&p.computation, 1, 5);
    add_number(&p.computation, 2, 5);
    add_number(&p.computation, 300, 5);
    add_computation(&p, MAIN, 2);
    add_number(&p.module, 6, MAIN);
    add_number(&p.module, 22, 5);
    add_number(&p.module, 3, 5);
    hone_program *program = fixture_read_bytes(&f, p.module.data, p.module.size);
    assert_int_equal(hone_program_operations(program), 1);
    assert_int_equal(operation_of(program, "x")->count, 1);
    hone_program_release(&program);
    close_proto(&p);
    fixture_close(&f);
}

// --- programs that do not say where they come from, and labels of others

static void functions_are_known_by_their_names_where_nothing_else_is(void **state)
{
    (void)state;
    static const char *const forms[] = {
        // StableHLO without locations; a call of a function of the user's own counts as none
        "module @m {\n"
        "  func.func public @main(%arg0: tensor<2x64x24xf32>) -> tensor<2x24xf32> {\n"
        "    %0 = call @mine(%arg0) : (tensor<2x64x24xf32>) -> tensor<2x24xf32>\n"
        "    %1 = call @mean_pooling_0(%arg0) : (tensor<2x64x24xf32>) -> tensor<2x24xf32>\n"
        "    return %1 : tensor<2x24xf32>\n"
        "  }\n"
        "  func.func private @mine(%arg0: tensor<2x64x24xf32>) -> tensor<2x24xf32> {\n"
        "    %0 = call @mean_pooling_0(%arg0) : (tensor<2x64x24xf32>) -> tensor<2x24xf32>\n"
        "    return %0 : tensor<2x24xf32>\n"
        "  }\n"
        "  func.func private @mean_pooling_0(%arg0: tensor<2x64x24xf32>) -> tensor<2x24xf32> {\n"
        "    %0 = stablehlo.custom_call @x(%arg0) : (tensor<2x64x24xf32>) -> tensor<2x24xf32>\n"
        "    return %0 : tensor<2x24xf32>\n"
        "  }\n"
        "}\n",
        "HloModule jit_f\n\n"
        "mean_pooling_0.2 {\n"
        "  p = f32[2,64,24]{2,1,0} parameter(0)\n"
        "  ROOT c = f32[2,24]{1,0} custom-call(p), custom_call_target=\"x\"\n"
        "}\n\n"
        "ENTRY main.5 {\n"
        "  q = f32[2,64,24]{2,1,0} parameter(0)\n"
        "  a = f32[2,24]{1,0} call(q), to_apply=mean_pooling_0.2\n"
        "  ROOT b = f32[2,24]{1,0} call(q), to_apply=mean_pooling_0.2\n"
        "}\n"};
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < 2; i++) {
        hone_program *program = fixture_read(&f, forms[i]);
        assert_int_equal(hone_program_operations(program), 1);
        const hone_operation *o = hone_program_operation(program, 0);
        assert_string_equal(o->call, "mean_pooling(f32[2,64,24])");
        assert_int_equal(o->matched, HONE_MATCH_OPERANDS); // a guess: it is tuned only when asked
        assert_int_equal(o->count, 2);
        assert_null(o->key);
        assert_non_null(strstr(hone_program_note(program), "debug_info=True"));
        hone_program_release(&program);
    }
    fixture_close(&f);
}

// The numbers that JAX and XLA put behind a function's name do not belong to it; other letters do.
static void a_functions_name_may_have_numbers_behind_it(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool known;
    } cases[] = {
        {"mean_pooling", true},
        {"mean_pooling_0", true},
        {"mean_pooling_12", true},
        {"mean_pooling.4", true},
        {"mean_pooling_0.4", true},
        {"mean_poolings", false},
        {"mean_pooling0", false},
        {"mean_pooling_", false},
        {"mean_pooling__", false},
        {"mean_pooling_x", false},
        {"mean_pooling_0_x", false},
        {"mean_pooling_0_1_2", false},
        {"mean_poolin", false},
        {"_0", false},
        {"0", false},
        {"a_mean_pooling", false},
        {"rwkv4", true},
        {"rwkv4_1", true},
        {"rwkv", false},
        {"rwkv41", false},
    };
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "HloModule jit_f\n\n"
            "%s {\n"
            "  p = f32[2,64,24]{2,1,0} parameter(0)\n"
            "  ROOT c = f32[2,24]{1,0} custom-call(p), custom_call_target=\"x\"\n"
            "}\n\n"
            "ENTRY main.5 {\n"
            "  q = f32[2,64,24]{2,1,0} parameter(0)\n"
            "  ROOT a = f32[2,24]{1,0} call(q), to_apply=%s\n"
            "}\n",
            cases[i].name, cases[i].name);
        hone_program *program = fixture_read(&f, text);
        if (hone_program_operations(program) != cases[i].known) fail_msg("%s", cases[i].name);
        hone_program_release(&program);
    }
    fixture_close(&f);
}

// A label that a text begins with stands at no place, and one that a quote begins stands at one where it says so.
static void what_stands_before_a_text_is_not_read(void **state)
{
    (void)state;
    static const struct {
        const char *before; // of the label
        bool is_place;
    } cases[] = {
        {"", false},          {"x", false},         {"\"", false},
        {"loc(\"", true},     {"oc(\"", false},     {"loc(\"jit(f)/", true},
        {"[\"", true},        {"\n", false},        {"loc(\"\n", false},
        {"// loc(\"", false}, {"/* loc(\"", false}, {"/**/loc(\"", true},
        {"loc(\\\"", false},  {"\\\"", false},      {"metadata_payload=\"", true},
    };
    static const char label[] = "ejkernel_ops#x@v0:0123456789abcdef\")";
    guarded room = guarded_open(256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        int before = (int)strlen(cases[i].before);
        snprintf(text, sizeof text, "%s%s", cases[i].before, label);
        const char *first = guarded_at_start(&room, text, strlen(text));
        if (hone_form_names_place((hone_view){first, strlen(text)}, first + before) != cases[i].is_place)
            fail_msg("%s", text);
        const char *last = guarded_at_end(&room, text, strlen(text));
        assert_int_equal(hone_form_names_place((hone_view){last, strlen(text)}, last + before), cases[i].is_place);
    }
    guarded_close(&room);
}

static void a_function_with_a_name_longer_than_any_algorithms_is_none(void **state)
{
    (void)state;
    enum { LONG = 4000 };
    static char name[LONG + 1];
    fixture f;
    hone_buffer text;
    memset(name, 'f', LONG);
    fixture_open(&f);
    hone_buffer_init(&text, f.allocator);
    hone_buffer_format(
        &text,
        "module @m {\n"
        "  func.func public @main(%%arg0: tensor<2x24xf32>) -> tensor<2x24xf32> {\n"
        "    %%0 = call @%s(%%arg0) : (tensor<2x24xf32>) -> tensor<2x24xf32>\n"
        "    return %%0 : tensor<2x24xf32>\n"
        "  }\n"
        "  func.func private @%s(%%arg0: tensor<2x24xf32>) -> tensor<2x24xf32> {\n"
        "    %%0 = stablehlo.custom_call @x(%%arg0) : (tensor<2x24xf32>) -> tensor<2x24xf32>\n"
        "    return %%0 : tensor<2x24xf32>\n"
        "  }\n"
        "}\n",
        name, name);
    hone_program *program = fixture_read(&f, hone_buffer_string(&text));
    assert_int_equal(hone_program_operations(program), 0);
    hone_program_release(&program);
    hone_buffer_deinit(&text);
    fixture_close(&f);
}

#define TOKAMAX_ARGUMENTS                                                                                              \
    "{\\22is_causal\\22:true,\\22k\\22:\\22bf16[1,128,8,32]\\22,\\22logits_scale\\22:0.125,\\22mask\\22:null,"         \
    "\\22q\\22:"                                                                                                       \
    "\\22bf16[1,128,8,32]\\22,\\22v\\22:\\22bf16[1,128,8,32]\\22}"
#define TOKAMAX_CLASS "tokamax._src.ops.attention.base.DotProductAttention"
#define TOKAMAX_OP                                                                                                     \
    "{\\22op\\22:{\\22__type\\22:\\22" TOKAMAX_CLASS "\\22,\\22config\\22:{}},\\22arguments\\22:" TOKAMAX_ARGUMENTS "}"

static void labels_of_tokamax_bring_their_arguments(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "loc(\"jit(f)/tokamax:" TOKAMAX_CLASS "(" TOKAMAX_ARGUMENTS ")/dot\")",
        "loc(\"vmap(head)/tokamax:" TOKAMAX_OP "/dot\")",
        "{mhlo.frontend_attributes = {xla_metadata_payload = \"tokamax:" TOKAMAX_OP "\"}} loc(\"jit(f)/dot\")",
    };
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < 3; i++) {
        hone_buffer text;
        hone_buffer_init(&text, f.allocator);
        const char *attributes = pieces[i][0] == '{' ? pieces[i] : "", *location = pieces[i][0] == '{' ? "" : pieces[i];
        size_t brace = strlen(attributes) > 0 ? (size_t)(strstr(attributes, "}} ") - attributes) + 2 : 0;
        hone_buffer_format(
            &text,
            "module @m {\n  func.func public @main(%%arg0: tensor<1x128x8x32xbf16>) -> tensor<1x128x8x32xbf16> {\n    "
            "%%0 "
            "= stablehlo.sine %%arg0 %.*s : tensor<1x128x8x32xbf16> %s%s\n    return %%0 : tensor<1x128x8x32xbf16>\n  "
            "}\n}\n",
            (int)brace, attributes, attributes + brace, location);
        hone_program *program = fixture_read(&f, hone_buffer_string(&text));
        assert_int_equal(hone_program_operations(program), 1);
        const hone_operation *o = hone_program_operation(program, 0);
        assert_string_equal(o->algorithm, "DotProductAttention");
        assert_int_equal(o->matched, HONE_MATCH_LABEL);
        assert_string_equal(
            o->call, "flash_attention(bf16[1,128,8,32], bf16[1,128,8,32], bf16[1,128,8,32], softmax_scale=0.125, "
                     "causal=true)");
        assert_true(o->tunable);
        hone_program_release(&program);
        hone_buffer_deinit(&text);
    }
    fixture_close(&f);
}

// One that is causal and nothing else leaves flash_attention what it is.
static void a_mask_of_tokamax_is_read_part_by_part(void **state)
{
    (void)state;
    static const struct {
        const char *mask, *call;
    } cases[] = {
        {"{\\22__type\\22:\\22Mask\\22,\\22is_causal\\22:true,\\22bool_mask\\22:null}",
         "flash_attention(f32[1,8,2,4], f32[1,8,2,4], f32[1,8,2,4], causal=true)"},
        {"{\\22__type\\22:\\22Mask\\22,\\22is_causal\\22:true,\\22bool_mask\\22:\\22bool[8,8]\\22}",
         "dot_product_attention(f32[1,8,2,4], f32[1,8,2,4], f32[1,8,2,4], mask=bool[1,1,8,8], causal=true)"},
        {"{\\22__type\\22:\\22Mask\\22,\\22is_causal\\22:false}",
         "flash_attention(f32[1,8,2,4], f32[1,8,2,4], f32[1,8,2,4])"},
        {"{\\22is_causal\\22:false,\\22k_start\\22:\\22i32[8]\\22}", NULL},
    };
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_buffer text;
        hone_buffer_init(&text, f.allocator);
        hone_buffer_format(
            &text,
            "module @m {\n  func.func public @main(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n    "
            "%%0 = stablehlo.sine %%arg0 : tensor<4xf32> loc(\"jit(f)/tokamax:" TOKAMAX_CLASS
            "({\\22k\\22:\\22f32[1,8,2,4]\\22,\\22mask\\22:%s,\\22q\\22:\\22f32[1,8,2,4]\\22,"
            "\\22v\\22:\\22f32[1,8,2,4]\\22})/dot\")\n    return %%0 : tensor<4xf32>\n  }\n}\n",
            cases[i].mask);
        hone_program *program = fixture_read(&f, hone_buffer_string(&text));
        assert_int_equal(hone_program_operations(program), 1);
        const hone_operation *o = hone_program_operation(program, 0);
        if (cases[i].call != NULL)
            assert_string_equal(o->call != NULL ? o->call : o->reason, cases[i].call);
        else
            assert_string_equal(
                o->reason, "mask.k_start is \"i32[8]\", which hone's dot_product_attention cannot hold");
        hone_program_release(&program);
        hone_buffer_deinit(&text);
    }
    fixture_close(&f);
}

static void what_of_tokamax_hone_cannot_say_is_listed(void **state)
{
    (void)state;
    static const char text[] =
        "HloModule jit_f\n\nENTRY main.5 {\n"
        "  q = f32[113,32,128]{2,1,0} parameter(0)\n"
        "  a = f32[113,32,128]{2,1,0} sine(q), "
        "metadata={op_name=\"tokamax:{\\\"op\\\":{\\\"__type\\\":\\\"tokamax._src.ops."
        "convolution.base.Convolution\\\"},\\\"arguments\\\":{\\\"x\\\":\\\"f32[113,32,128]\\\"}}/sin\"}\n"
        "  ROOT b = f32[113,32,128]{2,1,0} sine(a), metadata={op_name=\"jit(f)/sin\" "
        "metadata_payload=\"tokamax:{\\\"op\\\":{\\\"__type\\\":\\\"tokamax.DotProductAttention\\\"},\\\"arguments\\\":"
        "{\\\"paging_info"
        "\\\":\\\"f32[1,8]\\\"}}\"}\n}\n";
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(&f, text);
    assert_int_equal(hone_program_operations(program), 2);
    const hone_operation *unit = hone_program_operation(program, 0), *biased = hone_program_operation(program, 1);
    assert_string_equal(unit->algorithm, "Convolution");
    assert_string_equal(unit->reason, "hone has no algorithm named 'Convolution'");
    assert_false(biased->tunable);
    assert_string_equal(biased->reason, "paging_info is \"f32[1,8]\", which hone's dot_product_attention cannot hold");
    hone_program_release(&program);
    fixture_close(&f);
}

static void labels_in_comments_and_other_strings_do_not_count(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(
        &f, "module @m {\n"
            "  // ejkernel_ops#mean_pooling@v0:0123456789abcdef \"loc(ejkernel_ops#mean_pooling@v0:0123456789abcdef\n"
            "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "    %0 = stablehlo.custom_call @x(%arg0) {note = \"ejkernel_ops#mean_pooling@v0:0123456789abcdef\"} : "
            "(tensor<4xf32>) -> tensor<4xf32> loc(\"jit(f)/x\")\n"
            "    return %0 : tensor<4xf32>\n  }\n}\n");
    assert_int_equal(hone_program_operations(program), 0);
    hone_program_release(&program);
    fixture_close(&f);
}

// --- gzip

static void compress_bytes(hone_buffer *bytes)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&stream, (uLong)bytes->size);
    unsigned char *packed = malloc(room);
    assert_non_null(packed);
    stream.next_in = (unsigned char *)bytes->data;
    stream.avail_in = (unsigned)bytes->size;
    stream.next_out = packed;
    stream.avail_out = (unsigned)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    hone_buffer_clear(bytes);
    hone_buffer_append(bytes, packed, room - stream.avail_out);
    deflateEnd(&stream);
    free(packed);
}

static void gzip_of_any_form_is_unpacked(void **state)
{
    (void)state;
    static const char *const names[] = {
        "control.mlir", "control.hlo.txt", "control.hlo.pb", "control.bc", "control.export"};
    fixture f;
    fixture_open(&f);
    hone_buffer bytes;
    hone_buffer_init(&bytes, f.allocator);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hone_program *bare = open_golden(&f, names[i]);
        read_golden(names[i], &bytes);
        for (int depth = 0; depth < 2; depth++) {
            compress_bytes(&bytes);
            hone_program *packed = fixture_read_bytes(&f, bytes.data, bytes.size);
            assert_same(bare, packed);
            hone_program_release(&packed);
        }
        hone_program_release(&bare);
    }
    read_golden("control.mlir", &bytes);
    compress_bytes(&bytes);
    hone_program *cut = fixture_read_bytes(&f, bytes.data, bytes.size - 12);
    assert_non_null(strstr(hone_program_note(cut), "cut short"));
    hone_program_release(&cut);
    hone_buffer_deinit(&bytes);
    fixture_close(&f);
}

// --- damage

static void refuse(fixture *f, const void *bytes, size_t size, hone_status status, const char *words)
{
    hone_error err = {0};
    hone_program *program = NULL;
    assert_int_equal(hone_offline_read(&f->environment, "x", bytes, size, &program, &err), status);
    assert_null(program);
    if (strstr(err.message, words) == NULL) fail_msg("'%s' does not say '%s'", err.message, words);
}

static void files_that_are_not_programs_are_refused_by_name(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    refuse(&f, "\x28\xb5\x2f\xfd....", 8, HONE_UNSUPPORTED, "zstd");
    refuse(
        &f,
        "\x7f"
        "ELF\0\0\0\0",
        8, HONE_UNSUPPORTED, "a compiled program");
    refuse(&f, "\x0a\x02hi\x10\x01\0\0", 8, HONE_CORRUPT, "not one of the forms");
    refuse(&f, "\x1f\x8b\x08\0\0\0\0\0\0\3", 10, HONE_CORRUPT, "not one of the forms");
    refuse(&f, "", 0, HONE_CORRUPT, "not one of the forms");
    refuse(&f, "Dear reader,\nthis is a letter.\n", 31, HONE_CORRUPT, "not one of the forms");
    refuse(&f, "HloModule nothing more", 22, HONE_CORRUPT, "nothing in it");
    refuse(&f, "ML\xefR\x0fMLIR24\0", 12, HONE_UNSUPPORTED, "MLIR bytecode of version 7; versions up to 6 are read");
    refuse(&f, "ML\xefR\x0dStableHLO_v2.1.0\0", 22, HONE_UNSUPPORTED, "portable artifact of StableHLO_v2.1.0");
    refuse(&f, "ML\xefR\x0dStableHLO_v1.0.0\0", 22, HONE_CORRUPT, "nothing in it");
    hone_buffer bytes;
    hone_buffer_init(&bytes, f.allocator);
    hone_buffer_text(&bytes, "module {}");
    for (int depth = 0; depth < 5; depth++)
        compress_bytes(&bytes);
    refuse(&f, bytes.data, bytes.size, HONE_CORRUPT, "compressed more than 4 times");
    hone_buffer_deinit(&bytes);
    fixture_close(&f);
}

static void binary_forms_cut_anywhere_are_read_as_far_as_they_go(void **state)
{
    (void)state;
    static const char *const names[] = {
        "control.hlo.pb", "one.opt.hlo.pb", "control.bc", "control.portable.bc", "control.export"};
    fixture f;
    fixture_open(&f);
    hone_buffer bytes;
    hone_buffer_init(&bytes, f.allocator);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        read_golden(names[i], &bytes);
        for (size_t size = bytes.size - 1; size > 0; size = size * 15 / 16) {
            char *copy = malloc(size); // exactly so large: a reader that goes over the end is seen
            assert_non_null(copy);
            memcpy(copy, bytes.data, size);
            hone_error err = {0};
            hone_program *program = NULL;
            hone_status status = hone_offline_read(&f.environment, "cut", copy, size, &program, &err);
            assert_true(status == HONE_OK || status == HONE_CORRUPT);
            bool padding = size + 8 > bytes.size; // behind the last field there may be some
            if (status == HONE_OK && !padding) assert_non_null(hone_program_note(program));
            hone_program_release(&program);
            free(copy);
        }
    }
    hone_buffer_deinit(&bytes);
    fixture_close(&f);
}

// Whichever one allocation fails, the program is read whole or not at all.
static void any_one_allocation_may_fail_in_every_form(void **state)
{
    (void)state;
    static const char *const names[] = {"calls.mlir", "calls.v0.bc", "calls.v6.bc", "types.mlir", "types.portable.bc"};
    fixture f;
    fixture_open(&f);
    hone_buffer bytes;
    hone_buffer_init(&bytes, f.allocator);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hone_program *whole = open_golden(&f, names[i]);
        read_golden(names[i], &bytes);
        compress_bytes(&bytes);
        bool enough = false;
        for (long long left = 0; !enough; left++) {
            failing_allocator failing;
            hone_offline_environment environment = f.environment;
            environment.allocator = failing_allocator_of(&failing, left);
            failing.once = true;
            hone_error err = {0};
            hone_program *program = NULL;
            hone_status status = hone_offline_read(&environment, "m", bytes.data, bytes.size, &program, &err);
            enough = atomic_load(&failing.left) >= 0;
            assert_true(status == HONE_OK || (status == HONE_OUT_OF_MEMORY && !enough));
            if (status == HONE_OK) assert_same(whole, program);
            hone_program_release(&program);
            assert_int_equal(atomic_load(&failing.live), 0);
            assert_true(left < 100000);
        }
        hone_program_release(&whole);
    }
    hone_buffer_deinit(&bytes);
    fixture_close(&f);
}

static void every_allocation_may_fail_in_binary_forms(void **state)
{
    (void)state;
    static const char *const names[] = {"one.bc", "one.opt.hlo.pb"};
    fixture f;
    fixture_open(&f);
    hone_buffer bytes;
    hone_buffer_init(&bytes, f.allocator);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        read_golden(names[i], &bytes);
        compress_bytes(&bytes);
        hone_status status = HONE_OUT_OF_MEMORY;
        // One after another at first, where the readers allocate; then in growing steps, where arguments are tried.
        for (long long left = 0; status != HONE_OK; left += left < 400 ? 1 : left / 10) {
            failing_allocator failing;
            hone_offline_environment environment = f.environment;
            environment.allocator = failing_allocator_of(&failing, left);
            hone_error err = {0};
            hone_program *program = NULL;
            status = hone_offline_read(&environment, "m", bytes.data, bytes.size, &program, &err);
            if (status != HONE_OK) assert_int_equal(status, HONE_OUT_OF_MEMORY);
            hone_program_release(&program);
            assert_int_equal(atomic_load(&failing.live), 0);
            assert_true(left < 10000000);
        }
    }
    hone_buffer_deinit(&bytes);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protos_say_what_hlo_text_says),
        cmocka_unit_test(bytecode_says_what_stablehlo_text_says),
        cmocka_unit_test(every_version_of_bytecode_says_the_same),
        cmocka_unit_test(both_readers_of_statements_say_the_same),
        cmocka_unit_test(bytecode_has_the_types_and_constants_of_its_text),
        cmocka_unit_test(a_proto_is_read_in_its_wrapping),
        cmocka_unit_test(labels_stand_in_payloads_and_attributes_too),
        cmocka_unit_test(repeated_numbers_of_a_proto_may_stand_apart),
        cmocka_unit_test(a_loop_of_a_proto_names_its_body_and_its_condition),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(functions_are_known_by_their_names_where_nothing_else_is),
        cmocka_unit_test(a_functions_name_may_have_numbers_behind_it),
        cmocka_unit_test(what_stands_before_a_text_is_not_read),
        cmocka_unit_test(a_function_with_a_name_longer_than_any_algorithms_is_none),
        cmocka_unit_test(labels_of_tokamax_bring_their_arguments),
        cmocka_unit_test(a_mask_of_tokamax_is_read_part_by_part),
        cmocka_unit_test(what_of_tokamax_hone_cannot_say_is_listed),
        cmocka_unit_test(labels_in_comments_and_other_strings_do_not_count),
        cmocka_unit_test(gzip_of_any_form_is_unpacked),
        cmocka_unit_test(any_one_allocation_may_fail_in_every_form),
        cmocka_unit_test(every_allocation_may_fail_in_binary_forms),
        cmocka_unit_test(files_that_are_not_programs_are_refused_by_name),
        cmocka_unit_test(binary_forms_cut_anywhere_are_read_as_far_as_they_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
