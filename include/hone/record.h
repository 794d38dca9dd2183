// The invocation registry: what was called on which device, with which descriptor, how often. Never data.
//
// Recording is off unless HONE_RECORD=1 or hone_record_enable; off costs nothing. Bounded: when the table is
// full it is spilled to the store, or without one, new descriptors are counted as dropped.
#ifndef HONE_RECORD_H
#define HONE_RECORD_H

#include "hone/runtime.h"
#include "hone/store.h"
#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

HONE_API void hone_record_enable(hone_runtime *rt, bool on);
// Counts one call of a descriptor, whether or not recording is on.
HONE_API HONE_MUST_CHECK hone_status
hone_record_invocation(hone_runtime *rt, const hone_call *call, uint64_t count, hone_error *err);
// Visits the recorded calls of a device (NULL for all), memory and store added up, heaviest first, until visit returns
// false.
HONE_API HONE_MUST_CHECK hone_status hone_record_scan(
    hone_runtime *rt,
    const char *device,
    bool (*visit)(void *ctx, const hone_store_invocation *invocation),
    void *ctx,
    hone_error *err);
// Whether a recorded call has a verified decision by now, as hone_tune_recorded checks, whatever answered it at the
// time: one of today's environment where its device is here, else one that is stored. May be called inside a visit.
HONE_API bool hone_record_is_decided(hone_runtime *rt, const hone_store_invocation *invocation);
// Removes them, in memory and store.
HONE_API HONE_MUST_CHECK hone_status hone_record_clear(hone_runtime *rt, const char *device, hone_error *err);
// Writes what is in memory to the store. Also done at close.
HONE_API HONE_MUST_CHECK hone_status hone_record_flush(hone_runtime *rt, hone_error *err);
// Reads a record document (formats.md), hone's own or ejkernel's words (op, key, spec). Sound entries are taken
// also when others are not: then the status is HONE_CORRUPT with the first one's fault. *out_count (may be NULL)
// is how many were taken, in every case.
HONE_API HONE_MUST_CHECK hone_status
hone_record_import(hone_runtime *rt, const char *json, size_t size, size_t *out_count, hone_error *err);

// Tunes every recorded call of this device without a verified decision, heaviest first; then, heaviest first, those
// whose contest left open which is the fastest (hone_evidence.undecided): each goes on with the samples of that contest,
// for twice the seconds that it was allowed, at least `seconds` and at most eight times as many, until it is decided or
// left open at the most. Not with fresh, keep_existing, platform or kernel. One that fails is in the result with its
// reason and does not end the others.
HONE_API HONE_MUST_CHECK hone_status
hone_tune_recorded(hone_runtime *rt, const hone_tune_options *options, hone_result **out_result, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
