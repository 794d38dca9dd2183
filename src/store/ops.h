// What a store implements. The public functions (hone/store.h) check arguments once and dispatch; one
// conformance suite runs against every kind.
#ifndef HONE_STORE_OPS_H
#define HONE_STORE_OPS_H

#include "hone/store.h"

// Begun by the helper who owns this folder: one function a verb of hone/store.h.

#endif
