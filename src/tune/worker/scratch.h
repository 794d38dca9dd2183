// Scratch memory of one candidate, between guard bytes: the host's, and on a device what its runs take there.
//
// Between runs it is nobody's, so a verified run finds it full of a pattern: who counts on zeros, or on what the run
// before it left, is wrong there as it will be wrong in a program.
#ifndef HONE_TUNE_WORKER_SCRATCH_H
#define HONE_TUNE_WORKER_SCRATCH_H

#include "hone/kernel.h"
#include "os/os.h"
#include "tune/worker/site.h"

#include <stdatomic.h>

enum { HONE_SCRATCH_ALIGN = 64 }; // bytes: what a run may count on

// Zeroed: there is none.
typedef struct hone_guarded_scratch {
    hone_allocator allocator;
    const hone_site *site;
    char *block, *data; // of the host; NULL: it asks for none
    size_t size;
    uint32_t places; // lines at which it may begin: 1, or those that it roams
    // Of the device: what a run takes, there from the first run that took some. NULL: no run did.
    void *memory; // guard, bytes, guard
    void *inner;  // what a run gets: an address, or the handle of a view
    size_t taken_size;
    atomic_bool taken; // a run has it
} hone_guarded_scratch;

// size bytes of the host, and on a site with memory of its own what gives the runs theirs: both go into `execution`.
// The site stays where it is. Deinitialised in any case.
hone_status hone_guarded_scratch_init(
    hone_guarded_scratch *scratch,
    const hone_allocator *allocator,
    const hone_site *site,
    size_t size,
    hone_execution *execution,
    hone_error *err);
void hone_guarded_scratch_deinit(hone_guarded_scratch *scratch);
// Before a run that is verified.
hone_status hone_guarded_scratch_poison(const hone_guarded_scratch *scratch, hone_pool *pool, hone_error *err);
// For a duel: the host's is exchanged for room in which it goes from page to page. Which of its lines share a set of a cache with
// those of the arrays is decided by the page that the system has put it on, and a run of 10 us takes 15 on some pages: no
// choice is to be the faster one by its page. After HONE_OUT_OF_MEMORY it stays where it is.
hone_status hone_guarded_scratch_roam(hone_guarded_scratch *scratch, hone_execution *execution, hone_error *err);
// Before a sample: one that roams goes to another place, drawn at random. HONE_FAILURE_NONE; HONE_FAILURE_BOUNDS where the
// guards were written.
hone_failure hone_guarded_scratch_move(hone_guarded_scratch *scratch, hone_execution *execution, hone_error *err);
// After a run that was given other scratch: whether the host's is as hone_guarded_scratch_poison left it.
bool hone_guarded_scratch_is_untouched(const hone_guarded_scratch *scratch);
// HONE_FAILURE_NONE when the guards are as they were; else HONE_FAILURE_BOUNDS with what was written.
hone_failure hone_guarded_scratch_check(const hone_guarded_scratch *scratch, hone_error *err);

#endif
