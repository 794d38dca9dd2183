// Words for hone's enums, beside the public ones of hone/device.h, hone/config.h and hone/policy.h.
#ifndef HONE_REGISTRY_NAMES_H
#define HONE_REGISTRY_NAMES_H

#include "hone/device.h"

// Writes the names of the instruction sets in features (HONE_CPU_*), in the order of their bits, with separator
// between them; a bit without a name stands as "bit31". At most size bytes with a NUL; returns the bytes that the whole
// takes without it.
size_t hone_cpu_features_text(uint64_t features, const char *separator, char *out, size_t size);

#endif
