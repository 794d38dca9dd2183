// Words for hone's enums, beside the public ones of hone/device.h, hone/config.h and hone/policy.h. Each *_by_name is false for
// a word that is none of the enum's, and then leaves *out alone. name is not NULL.
#ifndef HONE_REGISTRY_NAMES_H
#define HONE_REGISTRY_NAMES_H

#include "hone/config.h"
#include "hone/device.h"

// "none" is no source: it stands for an answer that nobody gave.
bool hone_source_by_name(const char *name, hone_source *out);
bool hone_failure_by_name(const char *name, hone_failure *out); // "none" is one
const char *hone_regime_name(hone_regime regime);
bool hone_regime_by_name(const char *name, hone_regime *out);

// The platform on whose devices a platform's kernels run: cuda for triton and cute, which launch through its driver; every
// other one's own.
hone_platform hone_platform_home(hone_platform platform);

// Writes the names of the instruction sets in features (HONE_CPU_*), in the order of their bits, with separator
// between them; a bit without a name stands as "bit31". At most size bytes with a NUL; returns the bytes that the whole
// takes without it.
size_t hone_cpu_features_text(uint64_t features, const char *separator, char *out, size_t size);

#endif
