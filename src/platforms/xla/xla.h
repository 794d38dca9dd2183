// The xla platform: StableHLO, compiled and run by a PJRT plugin, on the CPU and on the GPUs of cuda. pallas is the
// same for kernels that were exported from JAX.
#ifndef HONE_PLATFORMS_XLA_XLA_H
#define HONE_PLATFORMS_XLA_XLA_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_xla_platform, hone_pallas_platform;

// pack.c: hone_platform_ops.check
hone_status hone_xla_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);

#endif
