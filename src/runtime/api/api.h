// Declarations that the functions of the public API share.
#ifndef HONE_RUNTIME_API_API_H
#define HONE_RUNTIME_API_API_H

#include "runtime/plans/plans.h"
#include "tune/tuner.h"

// packs.c: arranges that the first lookup of an algorithm reads the packs of HONE_PACK_PATH; and closes the packs,
// after the registry.
void hone_runtime_await_packs(hone_runtime *rt);
void hone_runtime_close_packs(hone_runtime *rt);
// Call after kernels were registered or replaced: drops plans that were made without them, and what is recorded against
// kernels that are not registered any more.
void hone_runtime_kernels_changed(hone_runtime *rt);
// Waits for the permit for the call and tunes it; if the options allow it, accepts what another thread or process has
// found meanwhile. outlook: written if a contest took place, else unchanged; may be NULL.
hone_status hone_runtime_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err);
// hone_runtime_tune unless there is a verified decision already: then that goes into the result. A call that falls into
// a bucket has its bucket tuned instead.
hone_status hone_runtime_tune_missing(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err);
// Whether hone_runtime_tune_missing would keep the stored answer; *out is that answer's evidence. Returns false when
// there is no answer and it would tune.
bool hone_runtime_is_answered(
    const hone_op *op, const hone_call *call, const hone_tune_options *options, hone_evidence *out);
// Replaces NULL by the defaults, and refuses values that are out of range.
hone_status hone_tune_options_read(
    const hone_runtime *rt, const hone_tune_options *given, hone_tune_options *out, hone_error *err);
// Passes a result to the caller, also that of a cancelled contest if it has entries; otherwise releases it. Returns
// status.
hone_status hone_tune_finish(hone_result *result, hone_status status, hone_result **out_result);

#endif
