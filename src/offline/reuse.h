// What a step of a program reads once: arrays that it is given, its weights for one, which nothing has brought into a
// cache since the step before.
#ifndef HONE_OFFLINE_REUSE_H
#define HONE_OFFLINE_REUSE_H

#include "offline/graph.h"

// How often a run of its body reads a value: 0, 1 or more (2).
typedef struct hone_reads {
    uint8_t whole; // all of it
    uint8_t parts; // one part of it and then another: a loop over the layers whose weights lie in one array
} hone_reads;

typedef struct hone_reuse {
    const hone_graph *graph;
    hone_reads *reads;  // by value
    uint32_t entry;     // the body that nothing calls and the most is given to; HONE_GRAPH_NONE: there is none
    int64_t step_bytes; // of what the entry is given and reads, each array counted once
} hone_reuse;

// The graph is finished, and outlives it. False: memory is short.
bool hone_reuse_init(hone_reuse *reuse, const hone_graph *graph);
void hone_reuse_deinit(hone_reuse *reuse);
// Whether a value is an array that the entry is given, or a part of one, and a step reads it nowhere else.
bool hone_reuse_is_once(const hone_reuse *reuse, uint32_t value);
// Bytes of an array of this type; 0 if it is not an array, or of a dtype that hone does not have.
int64_t hone_reuse_bytes(hone_view type);

#endif
