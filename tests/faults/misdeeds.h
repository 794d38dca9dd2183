// Kernels that are bad in one way each, beside one that is honest. Every one of the bad is faster than the honest one,
// or says so.
#ifndef HONE_TEST_MISDEEDS_H
#define HONE_TEST_MISDEEDS_H

#include "registry/registry.h"

enum { MISDEED_LIMIT = 64 };

size_t misdeed_count(void);
const char *misdeed_name(size_t index);
// Registers injected(x: f32[n]) -> y: f32[n], y = 2 x, with "honest" and the misdeeds of a list, in its order: 8 times
// an index, plus the variant that its default config is.
hone_status misdeeds_register(
    hone_registry *registry, const uint32_t *list, size_t count, bool builtin, hone_error *err);
// All of them: for a worker.
hone_status misdeeds_register_all(hone_registry *registry, hone_error *err);

#endif
