// What applications do without, and authors of platforms, bindings, chains, tuners and tools need.
#ifndef HONE_ADMIN_H
#define HONE_ADMIN_H

// What things are made of, and what decides: the parts of signatures and calls, spaces, the registry, chains and tuners of one's own.
#include "hone/chain.h"
#include "hone/describe.h"
#include "hone/lookup.h"
#include "hone/space.h"
#include "hone/tuner.h"

// Looking after stores, packs, programs and many processes: moving decisions, pinning and auditing them, reading lowered programs,
// records of calls, counters, comparing ranks, lending an interpreter; measuring and checking calls, queues that machines share, what
// may be wrong with a machine.
#include "hone/agree.h"
#include "hone/audit.h"
#include "hone/doctor.h"
#include "hone/inputs.h"
#include "hone/interchange.h"
#include "hone/interpreter.h"
#include "hone/lock.h"
#include "hone/measure.h"
#include "hone/offline.h"
#include "hone/pack.h"
#include "hone/queue.h"
#include "hone/record.h"
#include "hone/result.h"
#include "hone/stats.h"
#include "hone/stored.h"

#endif
