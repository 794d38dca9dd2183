// An operation. The fields that the hot path needs come first.
#ifndef HONE_RUNTIME_STATE_OPERATION_H
#define HONE_RUNTIME_STATE_OPERATION_H

#include "hone/plan.h"
#include "runtime/state/plan_table.h"

struct hone_op {
    uint64_t head;    // the operation's number, in the low 24 bits of the first word
    uint64_t ignored; // bit i: parameter i is a scalar of role "ignore"
    size_t count;     // values of a full call
    hone_plan_table *table;
    // The rest is for the slow path.
    hone_runtime *rt;
    const hone_algorithm_entry *algorithm;
    hone_op *next;
};

#endif
