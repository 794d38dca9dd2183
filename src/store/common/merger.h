// A merge under way: applies the rule to records as they are stored, and keeps the loser in the winner's evidence.
#ifndef HONE_STORE_COMMON_MERGER_H
#define HONE_STORE_COMMON_MERGER_H

#include "base/buffer.h"
#include "store/common/merge.h"

typedef struct hone_merger {
    hone_buffer evidence;       // of the winner
    hone_store_decision winner; // what resolve gave last
    hone_merge_reason *reasons; // one for each decision
    size_t count;
} hone_merger;

// HONE_OUT_OF_MEMORY leaves nothing to deinit.
hone_status hone_merger_init(hone_merger *merger, const hone_allocator *allocator, size_t count, hone_error *err);
void hone_merger_deinit(hone_merger *merger);
// What to store for decision number index, given what is stored under its key and regime (NULL: nothing).
//   out  NULL: what is stored stays as it is; else valid until the next call, and as long as both arguments
hone_status hone_merger_resolve(
    hone_merger *merger,
    size_t index,
    const hone_store_decision *stored,
    const hone_store_decision *coming,
    const hone_store_decision **out,
    hone_error *err);

#endif
