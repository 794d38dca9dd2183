// Words for hone's enums, beside the public ones of hone/device.h, hone/config.h and hone/policy.h. Each *_by_name is
// false for a word that is none of the enum's, and then leaves *out alone. name is not NULL.
#ifndef HONE_REGISTRY_NAMES_H
#define HONE_REGISTRY_NAMES_H

#include "hone/config.h"
#include "hone/device.h"

// "none" is no source: it stands for an answer that nobody gave.
bool hone_source_by_name(const char *name, hone_source *out);
bool hone_failure_by_name(const char *name, hone_failure *out); // "none" is one
const char *hone_regime_name(hone_regime regime);
bool hone_regime_by_name(const char *name, hone_regime *out);

// The platform whose instance a platform's kernels are given: cuda for triton and cute, which launch through its
// driver, xla for pallas, every other one's own.
hone_platform hone_platform_home(hone_platform platform);
// Whether a platform's kernels run on the devices that another one found: those of its home, and for xla, which finds
// none itself, the CPU and the GPUs of cuda.
bool hone_platform_runs_on(hone_platform platform, hone_platform of_device);

// Writes the names of the instruction sets in features (HONE_CPU_*), in the order of their bits, with separator
// between them; a bit without a name stands as "bit31". At most size bytes with a NUL; returns the bytes that the whole
// takes without it.
size_t hone_cpu_features_text(uint64_t features, const char *separator, char *out, size_t size);

#endif
