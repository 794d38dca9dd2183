// The platform's check of a kernel of a pack: a hone_pack_judge.
#ifndef HONE_PLATFORMS_CUTE_PACK_H
#define HONE_PLATFORMS_CUTE_PACK_H

#include "registry/origin.h"

hone_status hone_cute_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);

#endif
