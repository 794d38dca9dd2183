// libhone_xla.so: hone inside XLA, as the custom call hone_call.
//
// An operation of a program is a custom call with target hone_call (typed FFI). Its operands are the algorithm's
// tensors in order, its results the algorithm's results, and its attributes
//   hone_algorithm  string, "rms_norm"          hone_version  string, "1"; may be left out: the newest
//   hone_context    s64, hone_context_digest of what the program was traced under; 0 or left out: none
//   hone_given      s64, bit i: the i-th tensor parameter is there; left out: all are
//   hone_sliced     s64, bit i: the i-th operand is a stack of what the call takes, along a first dim of its own; which of
//                   them, says one more operand, an s32 of rank 0, as a dynamic_slice does. On the CPU alone, and nothing
//                   is copied
//   hone_label, hone_call                       strings for whoever reads the program: label, call text
//   and one scalar or string for each scalar parameter that is not its default.
// The handler runs the operation like hone_run: a table hit allocates nothing and takes no lock. Whatever the policy
// says, it never tunes: what nothing has decided gets the heuristic and is noted for `hone tune --recorded`.
#ifndef HONE_XLA_FFI_XLA_FFI_H
#define HONE_XLA_FFI_XLA_FFI_H

#include "hone/hone.h"
#include "xla_ffi/ffi.h"

// The handlers, for the platforms "cpu" and "CUDA": both for the stages instantiate and execute.
HONE_API xla_ffi_handler hone_xla_call_cpu, hone_xla_call_cuda;

// The runtime of the calls that are seen from now on, and of their contexts. It must stay open for as long as XLA may
// call. Without it, a runtime with the environment's settings is opened at the first call.
HONE_API void hone_xla_use(hone_runtime *rt);

// Makes a context known by its digest (kept, for ever). Calls that name a digest which is not known run under none.
// Returns: HONE_OK; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_xla_add_context(hone_context *context, hone_error *err);

// Decides and prepares a described call under a context (NULL: none) as the handler will, so that its first execution
// is a hit.
// Returns: as hone_bind.
HONE_API HONE_MUST_CHECK hone_status
hone_xla_prepare(const hone_op *op, const hone_call *call, hone_context *context, hone_error *err);

#endif
