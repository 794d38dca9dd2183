// The skeleton of a platform. README.md says how to make a platform from it.
#ifndef HONE_PLATFORMS_NULL_H
#define HONE_PLATFORMS_NULL_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_null_platform;

#endif
