// Stored failures: a config that failed is not tried again while the failure applies.
#ifndef HONE_TUNE_CONTEST_FAILURES_H
#define HONE_TUNE_CONTEST_FAILURES_H

#include "hone/device.h"
#include "hone/kernel.h"
#include "hone/store.h"

// Whether a stored failure of this kernel keeps its config from being tried. It must be of the kernel's revision, of
// today's environment as far as that counts, and not older than its kind allows. Else out_why (may be NULL) has the
// reason. A failure without a time keeps no config from being tried: it was forgotten, or the contest ended before the
// kernel was ready.
bool hone_failure_stands(
    const hone_store_measurement *measurement,
    const hone_kernel *kernel,
    const hone_device_info *device,
    double now_utc,
    char *out_why,
    size_t size);
// The time, UTC, from which the config is tried again; "" when the failure has no time.
void hone_failure_until(const hone_store_measurement *measurement, char out[24]);

#endif
