// Where the hot path goes when a call is not a hit.
#ifndef HONE_RUNTIME_PLANS_DISPATCH_H
#define HONE_RUNTIME_PLANS_DISPATCH_H

#include "runtime/state/operation.h"

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
