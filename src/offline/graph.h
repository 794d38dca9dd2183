// A lowered program as every form is read into it: bodies (functions, computations, regions) of operations,
// values between them, and where each operation came from. Views point into the program's bytes, or into texts that the
// graph owns.
#ifndef HONE_OFFLINE_GRAPH_H
#define HONE_OFFLINE_GRAPH_H

#include "base/memory.h"
#include "offline/label.h"
#include "offline/names.h"
#include "offline/opcode.h"

#define HONE_GRAPH_NONE HONE_NAMES_NONE // no operation, value, body or place

// What an operation does with a body.
typedef enum hone_graph_role {
    GRAPH_CALL,      // runs it once
    GRAPH_FUSION,    // runs it once; the body's operations count as standing where the fusion stands
    GRAPH_CONDITION, // of a loop
    GRAPH_LOOP,      // runs it once a trip
    GRAPH_BRANCH,    // runs it or another
    GRAPH_APPLIED    // to elements: a reduction's combiner
} hone_graph_role;

typedef struct hone_graph_edge {
    uint32_t op, body;
    hone_graph_role role;
} hone_graph_edge;

typedef struct hone_graph_value {
    hone_view type; // as written: "tensor<2x3xf32>", "f32[2,3]{1,0}"
    uint32_t op;    // that makes it; HONE_GRAPH_NONE: a body's parameter
    uint32_t body;  // that it is a parameter of
    uint32_t index; // among the operation's results or the body's parameters
} hone_graph_value;

// What few operations have.
typedef struct hone_graph_detail {
    hone_view literal; // of a constant; how a comparison compares
    hone_view call;    // call text in an attribute of a custom call of hone's, without escapes; empty: none
    int64_t number;    // of a parameter or a tuple's element; a loop's known trips; -1: not known
} hone_graph_detail;

typedef struct hone_graph_op {
    uint32_t opcode; // of graph_opcode, or a larger number; equal for equal names
    uint32_t body, place;
    uint32_t detail;                       // in details; HONE_GRAPH_NONE: none
    uint32_t first_operand, operand_count; // in operands
    uint32_t first_value, value_count;     // in values
    uint32_t first_edge, edge_count;       // in edges, once the graph is finished
    bool constant;                         // depends on no parameter
} hone_graph_op;

typedef struct hone_graph_body {
    hone_view name;
    uint32_t first_parameter, parameter_count; // in values
    uint32_t result;                           // the operation that ends it; HONE_GRAPH_NONE: none was read
    uint32_t caller;                           // the first edge to it
    int64_t times;                             // a run of the program runs it so often; -1: the text does not say
    int64_t forward;                           // of these, outside of gradients' backward parts
    uint32_t vmaps;                            // around the calls that lead to it
} hone_graph_body;

// A place that operations came from: the path of scopes, and the labels in it.
typedef struct hone_graph_place {
    hone_view path;
    uint32_t first_label, label_count; // in labels
} hone_graph_place;

// What the scopes of a path say of what stands under them. The paths within a function begin anew: how it was called
// goes on where they say nothing.
typedef struct hone_graph_scopes {
    uint32_t vmaps;                                           // each adds a dim to the operands
    enum { SCOPES_GO_ON, SCOPES_BACKWARD, SCOPES_AGAIN } way; // into a gradient's backward part, or out of it again
} hone_graph_scopes;

// One label of a place and how it was reached.
typedef struct hone_graph_label {
    hone_label label;
    hone_view prefix; // of the path, up to the label
    hone_graph_scopes scopes;
} hone_graph_label;

typedef struct hone_graph {
    hone_allocator allocator;
    const char *end;  // of the program's text
    hone_arena texts; // what the program does not hold as text: types of binary forms, call texts
    hone_names
        place_names; // places by path (scope 0), by attribute (scope: 1 + the path's place), by operation (the largest scope)
    hone_names opcodes; // numbers of operations by their names, without their dialect
    hone_graph_op *ops;
    hone_graph_detail *details;
    hone_graph_value *values;
    hone_graph_body *bodies;
    hone_graph_edge *edges;
    hone_graph_place *places;
    hone_graph_label *labels;
    uint32_t *operands; // values; HONE_GRAPH_NONE: a name that nothing defines
    size_t op_count, detail_count, value_count, body_count, edge_count, place_count, label_count, operand_count;
    size_t op_capacity, detail_capacity, value_capacity, body_capacity, edge_capacity, place_capacity, label_capacity,
        operand_capacity;
    hone_view *loose; // names of places that operations may have been merged out of (binary forms)
    size_t loose_count, loose_capacity;
    bool failed;    // an allocation did
    bool cut;       // the text ends in the middle
    bool bare;      // a binary form: strings stand without quotes and escapes
    bool unlocated; // no operation says where it came from
    bool optimised; // labels may be stale, operations merged
    bool tuples;    // loops and branches take one tuple (HLO)
} hone_graph;

void hone_graph_init(hone_graph *graph, const hone_allocator *allocator);
void hone_graph_deinit(hone_graph *graph);

// Building. Each returns the index of what was added; after a failed allocation HONE_GRAPH_NONE, and failed is set.
uint32_t hone_graph_add_body(hone_graph *graph, hone_view name);
uint32_t hone_graph_add_parameter(hone_graph *graph, uint32_t body, hone_view type); // parameters of one body in a row
uint32_t hone_graph_add_op(hone_graph *graph, uint32_t body, hone_view opcode);
// The detail of an operation, which is made when there is none. NULL: memory was short.
hone_graph_detail *hone_graph_edit_detail(hone_graph *graph, uint32_t op);
void hone_graph_add_operand(hone_graph *graph, uint32_t value);                // of the newest operation
uint32_t hone_graph_add_value(hone_graph *graph, uint32_t op, hone_view type); // results of one operation in a row
void hone_graph_add_edge(hone_graph *graph, uint32_t op, uint32_t body, hone_graph_role role);
// The place of a path and of an attribute that holds labels too (empty: none), with the labels of both read; the same
// for equal ones.
uint32_t hone_graph_place_of(hone_graph *graph, hone_view path, hone_view attribute);
// The place of calls that are known by the name of what they call alone: as if their label had been cut.
uint32_t hone_graph_place_named(hone_graph *graph, hone_view operation);
// Gives calls of functions whose name is known to the caller a place, where they have none. After hone_graph_finish.
void hone_graph_place_calls(hone_graph *graph, bool (*is_known)(void *ctx, hone_view name), void *ctx);
hone_graph_scopes hone_graph_scopes_of(hone_view path);
// A walk over the labels of a string of the program.
hone_label_walk hone_graph_labels(const hone_graph *graph, hone_view string);
bool hone_graph_has_label(const hone_graph *graph, hone_view string);
// Remembers a name whose labels count as seen although no operation stands there.
void hone_graph_add_loose(hone_graph *graph, hone_view name);
// Keeps the call text that stands escaped in a string of the program.
void hone_graph_keep_call(hone_graph *graph, uint32_t op, hone_view string);
// Sorts the edges, finds callers, constants, trip counts and how often each body runs.
void hone_graph_finish(hone_graph *graph);
// Part of it: loops' trips, and how often each body runs.
void hone_graph_count(hone_graph *graph);

// Whether each trip of a loop of StableHLO gives a state on as it came.
bool hone_graph_state_stays(const hone_graph *graph, uint32_t loop_op, uint32_t index);

// What the detail of an operation says; the same where it has none. For finished graphs and for readers.
const hone_graph_detail *hone_graph_detail_of(const hone_graph *graph, uint32_t op);
// The value behind a value: through fusions' walls and through a tuple that was just made.
uint32_t hone_graph_source(const hone_graph *graph, uint32_t value);
// The body that an operation counts as standing in: its own, or the one around all fusions.
uint32_t hone_graph_home(const hone_graph *graph, uint32_t op);

#endif
