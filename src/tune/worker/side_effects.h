// What a candidate does to its process besides computing: settings that it changes, what it leaves running, what it
// holds more of after every run. Where there is any of it the candidate is rejected, and the process is not used any
// more.
#ifndef HONE_TUNE_WORKER_SIDE_EFFECTS_H
#define HONE_TUNE_WORKER_SIDE_EFFECTS_H

#include "hone/config.h"
#include "hone/status.h"
#include "os/os.h"

typedef struct hone_side_effects {
    bool shared; // with a host, whose other threads do as they please: only what is this thread's own is looked at
    bool driven; // by a device's driver, whose threads come to rest when it likes
    bool
        is_known; // the candidate is one of the library's own: who sleeps at its end sleeps on. The caller sets it after begin
    bool lingers;     // its end looks longer at what its threads do. The caller sets it after begin
    bool interpreted; // the candidate is: its interpreter frees memory when it likes. The caller sets it after begin
    hone_os_state before;
    hone_os_thread_mode mode;
    bool is_whole;     // the heap, as the candidate began
    uint64_t resident; // bytes, at the start
    uint64_t clock_ns; // when the candidate began, by the process's clock, and by the system's before and after that
    uint64_t true_before_ns, true_after_ns;
    bool looked;
    hone_os_holdings last;
    uint32_t grown[HONE_HELD_COUNT]; // intervals in which it held more at the end
    double rates[HONE_HELD_COUNT];   // by how much a run, in the last interval that it was looked at again; 0: not yet
    bool uneven[HONE_HELD_COUNT];    // these differ by more than a leak's
    bool slow;                       // what grows now and then counts, too (hone_side_effects_suspect_all)
} hone_side_effects;

// Before the first candidate.
void hone_side_effects_init(hone_side_effects *effects, bool shared, bool driven);
// Before each candidate.
void hone_side_effects_begin(hone_side_effects *effects);
// When a candidate is prepared: the libraries that it loaded may have set handlers and variables of the environment.
void hone_side_effects_prepared(hone_side_effects *effects);
// After its first run: what a library has bound the calling thread to as it began is put back, and not told. Who binds it
// again later is told at the end.
void hone_side_effects_begun(const hone_side_effects *effects);
// Between equal pieces of a candidate's work, `runs` runs each, once it is warm.
void hone_side_effects_look(hone_side_effects *effects, uint32_t runs);
// What was seen may be a leak: the candidate runs on, and is looked at again.
bool hone_side_effects_suspects(const hone_side_effects *effects);
// After so many further runs: what has not grown all the while is suspected no more. runs 0 only begins.
void hone_side_effects_look_again(hone_side_effects *effects, uint32_t runs);
// All of what it holds is suspected, until it is looked at again and has not grown: some runs of thousands may leave something
// behind.
void hone_side_effects_suspect_all(hone_side_effects *effects);
// Nothing is suspected any more, or nothing that grew unevenly: a leak grows by as much in each run, what a library keeps for its
// threads by less and less, and by chance where these wait for processors.
void hone_side_effects_acquit(hone_side_effects *effects);
void hone_side_effects_acquit_uneven(hone_side_effects *effects);
// HONE_FAILURE_TRACES with what was changed, or HONE_FAILURE_NONE. Of the calling thread, or of a setting of all.
hone_failure hone_side_effects_compare(const hone_side_effects *effects, hone_error *err);
// After a candidate: compares, waits for its threads to rest, and restores what is this thread's own.
// HONE_FAILURE_HIDDEN: the process's clock was not the system's. HONE_FAILURE_BOUNDS: the heap is broken.
//   pool  its threads are compared too; NULL: none
hone_failure hone_side_effects_end(hone_side_effects *effects, hone_pool *pool, hone_error *err);
// The process has grown so much that a new one is better, whoever's fault it is.
bool hone_side_effects_bloated(const hone_side_effects *effects);

#endif
