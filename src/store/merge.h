// What happens when an invocation comes that is stored already. The same rule for every kind of store.
#ifndef HONE_STORE_MERGE_H
#define HONE_STORE_MERGE_H

#include "hone/store.h"

// Adds the later record to the earlier one: counts add up (and stay at their largest), first is the earliest,
// last the latest; words of the later one win where it has some. Texts stay borrowed.
void hone_invocation_merge(hone_store_invocation *into, const hone_store_invocation *added);

#endif
