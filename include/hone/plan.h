// Calling an operation, and plans for loops of one shape.
#ifndef HONE_PLAN_H
#define HONE_PLAN_H

#include "hone/kernel.h"
#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runs the operation on args (parameters, then results, then keyword-only): the first call of a kind goes through
// the chain; later ones are a table hit, which allocates nothing, takes no lock, makes no system call and logs nothing.
//   execution  NULL selects this thread with hone's own pool
// Returns: HONE_OK; HONE_INVALID_ARGUMENT with details; HONE_NOT_FOUND (policy fail or frozen);
//          HONE_UNSUPPORTED: the stream is being captured into a graph, and nothing is ready for this call: make it before;
//          HONE_KERNEL_FAILED when every kernel that could run it failed.
HONE_API HONE_MUST_CHECK hone_status
hone_run(const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err);

// Decides and prepares without running, which breaks a graph that is being captured on this thread. plan->run(plan,
// args, execution) is then one indirect call, for arguments of the same kinds, dtypes, shapes, strides and alignment,
// the same scalars (but those of role ignore), and as many as were given here; nothing is checked again.
//   *out_plan  the caller's; hone_plan_release; NULL after a failure
HONE_API HONE_MUST_CHECK hone_status
hone_bind(const hone_op *op, const hone_value *args, size_t count, const hone_plan **out_plan, hone_error *err);
// After a run of a bound plan failed: fills err with the reason that its kernel or platform gave, and returns status.
// On the thread that ran it, before the next run.
HONE_API hone_status hone_plan_failed(const hone_plan *plan, hone_status status, hone_error *err);
// Whether the chain would still answer a plan's call with it. A bound plan keeps its choice until it is released,
// whatever is decided meanwhile, by this process or by another that shares the store (seen within two seconds): then
// this is false, and binding again takes the new choice up. A plain load: cheap enough to ask before every run.
HONE_API bool hone_plan_is_current(const hone_plan *plan);
HONE_API void hone_plan_release(const hone_plan **plan); // sets it to NULL; NULL is fine

#ifdef __cplusplus
}
#endif
#endif
