// All headers of hone, in three tiers. docs/README.md lists the documentation; examples/ has short programs.
//
// Where a declaration does not say what NULL means, NULL is not a valid argument: a function that returns a status returns
// HONE_INVALID_ARGUMENT, and any other does nothing and returns NULL, 0 or false. The same holds for an index that is too
// large.
#ifndef HONE_HONE_H
#define HONE_HONE_H

// 1. What an application needs: a runtime, operations, calls and plans, kernels of its own, tuning, contexts.
// `scripts/check exports` counts its functions.
#include "hone/allocator.h"
#include "hone/args.h"
#include "hone/code.h"
#include "hone/config.h"
#include "hone/device.h"
#include "hone/kernel.h"
#include "hone/overlay.h"
#include "hone/plan.h"
#include "hone/policy.h"
#include "hone/registry.h"
#include "hone/runtime.h"
#include "hone/select.h"
#include "hone/signature.h"
#include "hone/status.h"
#include "hone/tensor.h"
#include "hone/tune.h"
#include "hone/value.h"

// 2. What outlives the process: records, and values of a program's own.
#include "hone/own_cache.h"
#include "hone/store.h"

// 3. For authors of platforms, bindings, chains, tuners and tools.
#include "hone/admin.h"

#endif
