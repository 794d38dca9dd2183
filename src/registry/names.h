// The words of the enums of devices and measurements, beside the public ones of hone/device.h.
#ifndef HONE_REGISTRY_NAMES_H
#define HONE_REGISTRY_NAMES_H

#include "hone/config.h"
#include "hone/describe.h"
#include "hone/device.h"
#include "registry/platform.h"

// hone_platform_parse by these facts: "auto", or the name of a platform. HONE_INVALID_ARGUMENT lists the names there
// are.
hone_status hone_platform_by_name(hone_platform_find *find, const char *name, hone_platform *out, hone_error *err);

// False for a word that no regime has; *out is then as it was. name is not NULL.
bool hone_regime_by_name(const char *name, hone_regime *out);
// The names of the regimes, for messages.
#define HONE_REGIME_NAMES "warm, cold, graph or eager, each with -stable behind it or without"

// Writes the names of the instruction sets in features (HONE_CPU_*), in the order of their bits, with separator
// between them; a bit without a name stands as "bit31". At most size bytes with a NUL; returns the bytes that the whole
// takes without it.
size_t hone_cpu_features_text(uint64_t features, const char *separator, char *out, size_t size);

#endif
