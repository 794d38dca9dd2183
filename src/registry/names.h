// The words of the enums of devices and measurements, beside the public ones of hone/device.h.
#ifndef HONE_REGISTRY_NAMES_H
#define HONE_REGISTRY_NAMES_H

#include "hone/config.h"
#include "hone/device.h"

const char *hone_regime_name(hone_regime regime);
// False for a word that no regime has; *out is then as it was. name is not NULL.
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
