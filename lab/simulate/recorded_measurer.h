// A contest's measurer that answers out of a recorded space: its runs are the samples of the file, one after the other,
// and its clock goes on by what they took.
#ifndef HONE_SIMULATE_RECORDED_MEASURER_H
#define HONE_SIMULATE_RECORDED_MEASURER_H

#include "simulate/recorded.h"
#include "tune/contest/contest.h"

// What was paid for one row of the file.
typedef struct hone_recorded_use {
    bool tried;
    uint32_t taken;      // samples; past the last the first comes again
    uint32_t trial_runs; // of them for its trial
    double trial_ns;     // that its trial cost
    double estimate_ns;  // that the trial came to
} hone_recorded_use;

typedef struct hone_recorded_replay {
    const hone_recorded *recorded; // borrowed
    bool races;                    // runs are paid for one by one; else a config is paid for whole, at its first trial
    double clock_ns;
    hone_recorded_use *uses; // of each row
} hone_recorded_replay;

// Its ctx is a hone_recorded_replay.
extern const hone_measurer hone_recorded_measurer;

hone_status hone_recorded_replay_init(
    hone_recorded_replay *replay,
    const hone_allocator *allocator,
    const hone_recorded *recorded,
    bool races,
    hone_error *err);
void hone_recorded_replay_deinit(hone_recorded_replay *replay, const hone_allocator *allocator);
// NULL: the config was not recorded.
hone_recorded_use *hone_recorded_replay_use(const hone_recorded_replay *replay, const hone_config *config);

#endif
