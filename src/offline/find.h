// The labelled calls of a program: which operations make one up, how often it runs, and what it reads.
#ifndef HONE_OFFLINE_FIND_H
#define HONE_OFFLINE_FIND_H

#include "offline/graph.h"

enum { HONE_TYPES_MAX = 24, HONE_LITERALS_MAX = 32, HONE_VIEWS_MAX = 3, HONE_FINDS_MAX = 20000 };

// The arrays that a call reads, seen one way. Optimised programs have lost where calls begin: then there are several
// ways.
typedef struct hone_operands {
    hone_view types[HONE_TYPES_MAX]; // as written, in the order of first use
    uint32_t count;
    bool exact; // one operand an argument, mostly in the order of arguments: the call is still a call of a function
} hone_operands;

// One labelled call, or several that cannot be told apart.
typedef struct hone_found {
    const hone_graph_label *label;
    int64_t count;   // -1: not known
    uint32_t vmaps;  // around it: each adds a dim to the operands
    bool transposed; // a gradient's backward part
    bool multiplies; // it has products
    hone_operands views[HONE_VIEWS_MAX];
    uint32_t view_count;
    hone_view literals[HONE_LITERALS_MAX]; // scalar constants in it, distinct
    uint32_t literal_count;
    hone_operands made; // types of what its operations make, the results among them
    hone_view call;     // call text in an attribute; empty: none
    hone_view body;     // name of the function or computation that it stands in
    // Bytes of the arrays that it reads, and of those among them that a step reads nowhere else; -1: not shown.
    int64_t read_bytes, once_bytes;
} hone_found;

typedef struct hone_finds {
    hone_found *items; // in the order of the program; more than HONE_FINDS_MAX are left out
    size_t count, capacity;
    bool full;          // some were left out
    int64_t step_bytes; // that the program is given and reads in a step; -1: not known
} hone_finds;

// Returns false when memory is short. The finds' array is freed by the caller with hone_free.
bool hone_find_calls(const hone_graph *graph, hone_finds *out);

#endif
