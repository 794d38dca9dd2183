// The functions that the hot path calls when a call is not a hit.
#ifndef HONE_RUNTIME_PLANS_DISPATCH_H
#define HONE_RUNTIME_PLANS_DISPATCH_H

#include "runtime/state/operation.h"

// The slow path of a call: check, decide, prepare, publish, run.
hone_status hone_run_slowly(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err);
// Handles the failure of a published plan's kernel with this status: disables the kernel for this call and runs the
// next best. entry belongs to the table: the caller is still inside the epoch.
hone_status hone_run_failed(
    const hone_op *op,
    hone_plan_entry *entry,
    const hone_value *args,
    size_t count,
    const hone_execution *execution,
    hone_status status,
    hone_error *err);

#endif
