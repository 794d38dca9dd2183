// What happens when an invocation comes that is there already: the same rule in every store and in the recorder.
#ifndef HONE_STORE_MERGE_H
#define HONE_STORE_MERGE_H

#include "hone/store.h"

// Adds a record to another: counts add up (and stay at their largest), first is the earliest, last the latest.
// Who answered is what the later record says, where it says something. Texts stay borrowed.
void hone_invocation_merge(hone_store_invocation *into, const hone_store_invocation *added);

#endif
