// All of hone. A first look: docs/README is one page; examples/ has programs under 60 lines.
#ifndef HONE_HONE_H
#define HONE_HONE_H

#include "hone/agree.h"
#include "hone/allocator.h"
#include "hone/code.h"
#include "hone/config.h"
#include "hone/device.h"
#include "hone/interchange.h"
#include "hone/interpreter.h"
#include "hone/kernel.h"
#include "hone/lock.h"
#include "hone/offline.h"
#include "hone/overlay.h"
#include "hone/own_cache.h"
#include "hone/pack.h"
#include "hone/plan.h"
#include "hone/policy.h"
#include "hone/record.h"
#include "hone/registry.h"
#include "hone/runtime.h"
#include "hone/select.h"
#include "hone/signature.h"
#include "hone/space.h"
#include "hone/stats.h"
#include "hone/status.h"
#include "hone/store.h"
#include "hone/tensor.h"
#include "hone/tune.h"
#include "hone/value.h"

#endif
