// The skeleton of a platform. docs/write-a-platform.md makes one from an empty folder.
#ifndef HONE_PLATFORMS_NULL_H
#define HONE_PLATFORMS_NULL_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_null_platform;

#endif
