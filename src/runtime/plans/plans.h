// Makes plans from decisions, for the table.
#ifndef HONE_RUNTIME_PLANS_PLANS_H
#define HONE_RUNTIME_PLANS_PLANS_H

#include "runtime/links/links.h"
#include "runtime/plans/dispatch.h"

// Decides and prepares, and publishes the plan if possible. *out carries a reference for the caller.
hone_status hone_plan_make(
    const hone_op *op, const hone_value *args, size_t count, hone_plan_entry **out, hone_error *err);

#endif
