// What the functions that programs call share.
#ifndef HONE_RUNTIME_API_API_H
#define HONE_RUNTIME_API_API_H

#include "runtime/plans/plans.h"
#include "tune/tuner.h"

// packs.c: has the packs of HONE_PACK_PATH read by the first look-up of an algorithm; and closes them, after the
// registry.
void hone_runtime_await_packs(hone_runtime *rt);
void hone_runtime_close_packs(hone_runtime *rt);
// After kernels were registered or replaced: plans that did not know them go, and what was known against those that are
// not registered any more.
void hone_runtime_kernels_changed(hone_runtime *rt);
// Waits for the permit on the call and tunes; what another thread or process has found meanwhile is taken where the
// options allow it.
// outlook: written when a contest took place, else left as it was; NULL: not asked.
hone_status hone_runtime_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err);
// hone_runtime_tune unless a verified decision is there already: then only the result gets it. Buckets are tuned in place of
// the calls that fall into them.
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
// Replaces NULL by the defaults; refuses what is out of range.
hone_status hone_tune_options_read(
    const hone_runtime *rt, const hone_tune_options *given, hone_tune_options *out, hone_error *err);
// Hands a result over, also that of a cancelled contest when it holds something; else releases it. Returns status.
hone_status hone_tune_finish(hone_result *result, hone_status status, hone_result **out_result);

#endif
