// What the hot path needs of an operation, and where it goes when it is not one.
#ifndef HONE_RUNTIME_DISPATCH_H
#define HONE_RUNTIME_DISPATCH_H

#include "hone/plan.h"
#include "runtime/plan_table.h"

struct hone_op {
    uint64_t head;    // the operation's number, in the low 24 bits of the first word
    uint64_t ignored; // bit i: parameter i is a scalar of role "ignore"
    size_t count;     // values of a full call
    hone_plan_table *table;
    const atomic_bool *recording;
    // The rest is for the slow way.
    hone_runtime *rt;
    const hone_algorithm_entry *algorithm;
    hone_op *next;
};

// The slow way of a call: check, decide, prepare, publish, run.
hone_status hone_run_slowly(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err);
// The kernel of a published plan failed with status: puts it aside for this call and runs the next best. entry is
// the table's: the caller is still inside the epoch.
hone_status hone_run_failed(
    const hone_op *op,
    hone_plan_entry *entry,
    const hone_value *args,
    size_t count,
    const hone_execution *execution,
    hone_status status,
    hone_error *err);

#endif
