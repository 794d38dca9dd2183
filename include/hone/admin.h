// What applications do without and tools need: moving decisions, pinning them, reading lowered programs, packs, records of calls,
// counters, comparing ranks, lending an interpreter.
#ifndef HONE_ADMIN_H
#define HONE_ADMIN_H

#include "hone/agree.h"
#include "hone/interchange.h"
#include "hone/interpreter.h"
#include "hone/lock.h"
#include "hone/offline.h"
#include "hone/pack.h"
#include "hone/record.h"
#include "hone/stats.h"

#endif
