// The reader of StableHLO text, in parts: statements and regions (stablehlo.c), statements of the usual shape
// (stablehlo_plain.c), the rest of any other (stablehlo_rest.c), its results (stablehlo_results.c), and where it comes
// from (stablehlo_places.c).
#ifndef HONE_OFFLINE_FORMS_STABLEHLO_H
#define HONE_OFFLINE_FORMS_STABLEHLO_H

#include "offline/cursor.h"
#include "offline/graph.h"

// A statement that is being read, or whose regions are. Views into the text.
typedef struct hone_stablehlo_statement {
    uint32_t op;         // HONE_GRAPH_NONE: none that the graph keeps (a module)
    hone_view results;   // "%0:2, %1"
    hone_view types;     // behind the last " : "
    const char *arrow;   // behind the first "->" of the types that stands in no bracket; NULL: there is none
    hone_view location;  // inside of loc( )
    hone_view attribute; // that may hold labels too
    hone_view states;    // of a loop: "%iterArg = %c, ..."
    const char
        *given; // where the parameters of its next region begin: "%arg0: tensor<2xf32>, ..."; NULL: there are none
    uint32_t region_count;
} hone_stablehlo_statement;

typedef struct hone_stablehlo_frame {
    hone_stablehlo_statement owner;
    uint32_t body;                 // HONE_GRAPH_NONE: of a module
    hone_stablehlo_statement last; // newest statement of the body, whose regions may follow on lines of their own
} hone_stablehlo_frame;

typedef struct hone_stablehlo_use {
    uint32_t op;
    hone_view symbol;
} hone_stablehlo_use;

// An attribute of an operation that may hold labels; few have one.
typedef struct hone_stablehlo_attribute {
    uint32_t op;
    hone_view text;
} hone_stablehlo_attribute;

// Where operations come from. Locations are numbered as they are met; most are met again and again, often one right
// after another.
typedef struct hone_stablehlo_places {
    hone_names aliases;          // expressions by text
    hone_names numbered, others; // locations: "#loc4" by its number, others by text
    hone_view *expressions;      // of aliases: "loc4" stands for "jit(f)/add"(#loc3)
    hone_view *locations;
    uint32_t *of_op; // 1 + the number of an operation's location; 0: it has none
    hone_stablehlo_attribute *attributes;
    size_t expression_count, expression_capacity, location_count, location_capacity, op_capacity;
    size_t attribute_count, attribute_capacity;
    bool missing; // an alias is used and not defined: the text was cut after its functions
} hone_stablehlo_places;

typedef struct hone_stablehlo_reader {
    hone_graph *graph;
    hone_cursor c;
    const char *start;          // of the text
    hone_names numbered, named; // values of the function at hand: "%4" by its number, "%cst_4" by its name
    hone_names functions;
    hone_stablehlo_frame *frames;
    size_t frame_count, frame_capacity;
    hone_stablehlo_use *uses;
    size_t use_count, use_capacity;
    hone_stablehlo_places places;
    bool fragment; // statements stand outside of any function
} hone_stablehlo_reader;

typedef enum hone_stablehlo_stop { STOP_LINE, STOP_REGION, STOP_END } hone_stablehlo_stop;

// Reads the rest of a statement, up to its end or to the brace of a region.
hone_stablehlo_stop hone_stablehlo_rest(hone_stablehlo_reader *r, hone_stablehlo_statement *s);
// Reads the statement at the cursor when it is of the shape that nearly all have. False: it is not, and nothing was
// read.
bool hone_stablehlo_read_plain(hone_stablehlo_reader *r);
// The body that a statement stands in.
uint32_t hone_stablehlo_body(hone_stablehlo_reader *r);

// The first value under a name is that of an operation's first result; others of it stand behind.
void hone_stablehlo_put_value(hone_stablehlo_reader *r, hone_view name, uint32_t value);
uint32_t hone_stablehlo_find_value(const hone_stablehlo_reader *r, hone_view name, uint32_t number);

// "%0#1" at the cursor: "0", and the number 1.
hone_view hone_stablehlo_take_value(hone_cursor *c, uint32_t *out_number);
hone_view hone_stablehlo_take_symbol(hone_cursor *c);
// The type at the cursor: up to a comma, a bracket that closes, an attribute or a location, at its own depth.
hone_view hone_stablehlo_take_type(hone_cursor *c);
hone_view hone_stablehlo_without_parentheses(hone_view types);
// Gives an operation its results, once, under their names.
void hone_stablehlo_finish_results(hone_stablehlo_reader *r, const hone_stablehlo_statement *s);

void hone_stablehlo_places_init(hone_stablehlo_places *places, const hone_allocator *allocator);
void hone_stablehlo_places_deinit(hone_stablehlo_places *places, const hone_allocator *allocator);
// Reads "#loc4 = loc("jit(f)/add"(#loc3))" from its '#' on, a whole line.
void hone_stablehlo_read_alias(hone_stablehlo_reader *r);
// Remembers where a statement's operation comes from.
void hone_stablehlo_keep_place(hone_stablehlo_reader *r, const hone_stablehlo_statement *s);
// The same of an operation that comes from an alias, "#loc4", and its number.
void hone_stablehlo_keep_location(hone_stablehlo_reader *r, uint32_t op, hone_view location, uint32_t number);
// Once all is read: aliases stand at the text's end.
void hone_stablehlo_place_operations(hone_stablehlo_reader *r);

#endif
