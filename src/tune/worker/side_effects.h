// What a candidate does to its process besides computing: settings that it changes, what it leaves running, and what it
// holds more of after every run. A candidate with any such effect is rejected, and the process is not used any more.
#ifndef HONE_TUNE_WORKER_SIDE_EFFECTS_H
#define HONE_TUNE_WORKER_SIDE_EFFECTS_H

#include "hone/config.h"
#include "hone/status.h"
#include "os/os.h"

typedef struct hone_side_effects {
    bool shared; // with a host, whose other threads may do anything: only the calling thread's own state is checked
    bool driven; // by a device's driver, whose threads may run at any time
    bool
        is_known; // kernel of the library: its threads that sleep at its end stay asleep. Set by the caller after begin
    bool lingers; // its threads are watched for longer at its end. Set by the caller after begin
    bool interpreted; // an interpreter runs it, and frees memory at any time. Set by the caller after begin
    hone_os_state before;
    hone_os_thread_mode mode;
    bool is_whole;     // the heap was intact when the candidate began
    uint64_t resident; // bytes, at the start
    uint64_t clock_ns; // process clock when the candidate began; then the system's clock before and after that
    uint64_t true_before_ns, true_after_ns;
    bool looked;
    hone_os_holdings last;
    uint32_t grown[HONE_HELD_COUNT]; // number of intervals in which it held more at the end
    double rates[HONE_HELD_COUNT];   // growth per run in the last interval that was checked again; 0: none yet
    bool uneven[HONE_HELD_COUNT];    // the rates differ by more than those of a leak
    bool slow;                       // growth now and then counts, too (hone_side_effects_suspect_all)
} hone_side_effects;

// Before the first candidate.
void hone_side_effects_init(hone_side_effects *effects, bool shared, bool driven);
// Before each candidate.
void hone_side_effects_begin(hone_side_effects *effects);
// After a candidate is prepared: the libraries that it loaded may have set handlers and environment variables.
void hone_side_effects_prepared(hone_side_effects *effects);
// After its first run: if a library bound the calling thread to processors when it began, that is undone and not
// reported. A thread that is bound again later is reported at the end.
void hone_side_effects_begun(const hone_side_effects *effects);
// Reads what the process holds, between equal pieces of a candidate's work of `runs` runs each, once it is warm.
void hone_side_effects_look(hone_side_effects *effects, uint32_t runs);
// Whether what was seen may be a leak: then the candidate runs on, and is checked again.
bool hone_side_effects_suspects(const hone_side_effects *effects);
// After so many further runs: what has not grown meanwhile is no longer suspected. runs 0: only begins.
void hone_side_effects_look_again(hone_side_effects *effects, uint32_t runs);
// Suspects everything that the process holds, until a further check shows that it has not grown: some runs of thousands
// may leave something behind.
void hone_side_effects_suspect_all(hone_side_effects *effects);
// Drops all suspicions, or those of what grew unevenly: a leak grows equally in each run, while what a library keeps
// for its threads grows less and less, and by chance where threads wait for processors.
void hone_side_effects_acquit(hone_side_effects *effects);
void hone_side_effects_acquit_uneven(hone_side_effects *effects);
// HONE_FAILURE_TRACES with what was changed, or HONE_FAILURE_NONE. Compares the calling thread's state and the
// process's settings.
hone_failure hone_side_effects_compare(const hone_side_effects *effects, hone_error *err);
// After a candidate: compares, waits until its threads sleep, and restores the calling thread's own state.
// HONE_FAILURE_HIDDEN: the process's clock was not the system's. HONE_FAILURE_BOUNDS: the heap is broken.
//   pool  its threads are compared, too; NULL: there is none
hone_failure hone_side_effects_end(hone_side_effects *effects, hone_pool *pool, hone_error *err);
// Whether the process has grown so much that a new one is better, whatever the cause.
bool hone_side_effects_bloated(const hone_side_effects *effects);

#endif
