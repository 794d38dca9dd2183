// Scratch memory of one candidate, between guard bytes: on the host, and on a device what its runs request there.
//
// Its contents are undefined between runs, so it is filled with a pattern before a verified run: a kernel that relies
// on zeros, or on what the run before left, is wrong there as it would be in a program.
#ifndef HONE_TUNE_WORKER_SCRATCH_H
#define HONE_TUNE_WORKER_SCRATCH_H

#include "hone/kernel.h"
#include "os/os.h"
#include "tune/worker/site.h"

#include <stdatomic.h>

enum { HONE_SCRATCH_ALIGN = 64 }; // bytes: the alignment that a run may rely on

// Zeroed: there is no scratch memory.
typedef struct hone_guarded_scratch {
    hone_allocator allocator;
    const hone_site *site;
    char *block, *data; // on the host; NULL: the candidate requests none
    size_t size;
    uint32_t places; // cache lines at which it may begin: 1, or those that it roams
    // On the device: what a run requested, from the first such run on. NULL: no run did.
    void *memory; // guard, bytes, guard
    void *inner;  // what a run gets: an address, or the handle of a view
    size_t taken_size;
    atomic_bool taken; // a run uses it
} hone_guarded_scratch;

// Allocates `size` bytes on the host, and for a site with memory of its own provides what gives the runs theirs: both
// are put into `execution`. The site must not move. hone_guarded_scratch_deinit must be called in any case.
hone_status hone_guarded_scratch_init(
    hone_guarded_scratch *scratch,
    const hone_allocator *allocator,
    const hone_site *site,
    size_t size,
    hone_execution *execution,
    hone_error *err);
void hone_guarded_scratch_deinit(hone_guarded_scratch *scratch);
// Fills it with the pattern, before a verified run.
hone_status hone_guarded_scratch_poison(const hone_guarded_scratch *scratch, hone_pool *pool, hone_error *err);
// For a duel, on the host: exchanges it for memory in which it moves from page to page. The page that the system chose
// decides which of its cache lines share a set of a cache with those of the arrays, and a run of 10 us takes 15 us on
// some pages: no candidate must be faster because of its page. After HONE_OUT_OF_MEMORY it stays where it is.
hone_status hone_guarded_scratch_roam(hone_guarded_scratch *scratch, hone_execution *execution, hone_error *err);
// Before a sample: moves one that roams to a random place. HONE_FAILURE_NONE, or HONE_FAILURE_BOUNDS if the guards were
// written.
hone_failure hone_guarded_scratch_move(hone_guarded_scratch *scratch, hone_execution *execution, hone_error *err);
// After a run with other scratch memory: whether the host's is as hone_guarded_scratch_poison left it.
bool hone_guarded_scratch_is_untouched(const hone_guarded_scratch *scratch);
// HONE_FAILURE_NONE if the guards are intact; else HONE_FAILURE_BOUNDS with what was written.
hone_failure hone_guarded_scratch_check(const hone_guarded_scratch *scratch, hone_error *err);

#endif
