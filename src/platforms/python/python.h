// Python functions of packs. Needs an interpreter in this process, which was lent (hone/interpreter.h).
#ifndef HONE_PLATFORMS_PYTHON_PYTHON_H
#define HONE_PLATFORMS_PYTHON_PYTHON_H

#include "hone/interpreter.h"
#include "platforms/platform.h"

extern const hone_platform_ops hone_python_platform;

#endif
