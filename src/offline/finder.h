// The search for the labelled calls of a program, in parts: groups and finds (find.c), what a call reads (reads.c), how
// many calls the operations of a group are (calls.c).
#ifndef HONE_OFFLINE_FINDER_H
#define HONE_OFFLINE_FINDER_H

#include "offline/find.h"
#include "offline/reuse.h"

// An operation belongs to a group: the operations of one body under one label that was reached one way.
typedef struct hone_finder_member {
    uint32_t group, op;
} hone_finder_member;

typedef struct hone_finder_group {
    const hone_graph_label *label;
    uint32_t body;
    uint32_t first, count; // in members, once they are sorted
} hone_finder_group;

typedef struct hone_finder {
    const hone_graph *graph;
    hone_finds *out;
    hone_finder_member *members;
    hone_finder_group *groups;
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
    hone_reuse reuse;
    hone_names known; // finds by identity
    hone_buffer identity;
    hone_arena arena;
    bool failed;
} hone_finder;

// How far to look behind the operations of a call for what it really reads.
typedef enum hone_finder_reach {
    REACH_DIRECT,  // what they name
    REACH_LAYOUT,  // behind copies and reshapes that XLA put in
    REACH_UNPLACED // behind everything that XLA made and that belongs to no place of the program
} hone_finder_reach;

// Begins with the operations of a group, which are then the work at hand.
void hone_finder_begin(hone_finder *f, const uint32_t *ops, size_t count);
// Follows all operands of the operations at hand; work grows by what is transparent. Arrays that are read go to *out,
// unless it is NULL:
// constants of the program, or all others.
void hone_finder_follow(hone_finder *f, hone_finder_reach how, bool constants, hone_operands *out);
// The first of the operations that hang together with one, after they were followed.
uint32_t hone_finder_root(hone_finder *f, uint32_t op);

void hone_finder_read_views(hone_finder *f, const uint32_t *ops, size_t count, hone_found *out);
// The constants of a call and of the bodies that it runs, as far as a budget of operations goes; and whether products
// are among them.
void hone_finder_read_literals(hone_finder *f, const uint32_t *ops, size_t count, hone_found *out);
// The types of what it makes, the last ones first: a call ends with its results.
void hone_finder_read_made(const hone_graph *graph, const uint32_t *ops, size_t count, hone_operands *out);
// Bytes of what it reads, and of what a step of the program reads there alone.
void hone_finder_read_bytes(hone_finder *f, const uint32_t *ops, size_t count, hone_found *out);
// Calls within a group, and how many operations the first of them has.
size_t hone_finder_count_calls(
    hone_finder *f, const uint32_t *ops, size_t count, hone_view operation, size_t *out_first);

#endif
