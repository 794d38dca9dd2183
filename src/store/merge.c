// Merging invocations.
#include "store/merge.h"

void hone_invocation_merge(hone_store_invocation *into, const hone_store_invocation *added)
{
    bool is_later = added->last >= into->last;
    uint64_t sum;
    into->count = __builtin_add_overflow(into->count, added->count, &sum) ? UINT64_MAX : sum;
    if (added->first < into->first) into->first = added->first;
    if (is_later) into->last = added->last;
    if (into->call == NULL) into->call = added->call;
    if (added->kernel != NULL && (is_later || into->kernel == NULL)) into->kernel = added->kernel;
    if (added->decided != NULL && (is_later || into->decided == NULL)) into->decided = added->decided;
}
