// Decides how long a candidate is measured. The rule depends only on its inputs, so it is the same for a kernel that
// runs and for a recorded one.
//
// One run is discarded. Then samples are taken until their least time, less what noise can have added to it, is still
// above the best, or until there are enough. Samples that other work on the machine disturbed do not show that a
// candidate is slow, unless it is many times as slow.
#ifndef HONE_TUNE_RULE_STOPPING_H
#define HONE_TUNE_RULE_STOPPING_H

#include "tune/wire/message.h"

// The spread of a candidate's samples: their relative standard deviation, averaged over the candidates measured so far.
typedef struct hone_noise {
    double sum;
    uint32_t count;
} hone_noise;

// Whether the trial has a sample that nothing disturbed.
bool hone_trial_was_left_alone(const hone_trial *trial);
// Whether the device was disturbed during every sample. A process that uses the device all the time slows all
// candidates alike.
bool hone_trial_shared_its_device(const hone_trial *trial);
// The times of its kept samples that count, at most HONE_KEPT_SAMPLES. Returns how many.
uint32_t hone_trial_times(const hone_trial *trial, double *out_times);
// Computes a trial's times from its kept samples; at least one is kept.
void hone_trial_weigh(hone_trial *trial);
// Adds the spread of a candidate that has several samples.
void hone_noise_add(hone_noise *noise, const hone_trial *trial);
// The relative standard deviation of samples; 0: not known yet.
double hone_noise_level(const hone_noise *noise);

// A run of this length is warm after its first run, is hardly disturbed by what disturbs short ones, and takes a large
// part of a contest.
static const double hone_long_run_ns = 250e6;
// A sample of a shorter run is the middle run of a burst; longer runs warm up by themselves.
static const double hone_short_run_ns = 1e6;

typedef enum hone_stopping_verdict {
    HONE_STOPPING_GOES_ON,
    HONE_STOPPING_BEATEN,
    HONE_STOPPING_ENOUGH
} hone_stopping_verdict;

// How many pairs of runs must show that a candidate does less work where nothing has changed, and none the contrary,
// before it is rejected as one that does not work in every run.
//   run_ns  duration of a run where everything has changed
uint32_t hone_stopping_guilty_pairs(double run_ns);

// The verdict after the discarded run.
hone_stopping_verdict hone_stopping_judge_warm(const hone_stopping *stopping, const hone_sample *warm);
// The verdict after `count` samples, whose runs took spent_ns together.
//   is_long  a run takes so long that it is warm after its first run and hardly disturbed
hone_stopping_verdict hone_stopping_judge(
    const hone_stopping *stopping, const hone_sample *samples, uint32_t count, double spent_ns, bool is_long);

// The functions that measure one candidate. Each returns HONE_FAILURE_NONE, or the failure with a message in err.
typedef struct hone_sampler {
    void *ctx;
    // The discarded run.
    hone_failure (*warm)(void *ctx, hone_sample *out, hone_error *err);
    // *out_spent_ns: duration of all runs of the sample, including those that were disturbed and taken again.
    hone_failure (*sample)(void *ctx, hone_sample *out, double *out_spent_ns, hone_error *err);
    uint64_t (*now_ns)(void *ctx);
} hone_sampler;

// Measures one candidate by the rule.
hone_failure hone_stopping_run(
    const hone_stopping *stopping, const hone_sampler *sampler, hone_trial *out, hone_error *err);

// The functions that measure finalists in rounds: one sample of the finalist `index`.
typedef struct hone_round_sampler {
    void *ctx;
    hone_failure (*sample)(void *ctx, uint32_t index, hone_sample *out, hone_error *err);
    uint64_t (*now_ns)(void *ctx);
} hone_round_sampler;

// The parameters of a block of rounds.
typedef struct hone_rounds {
    uint32_t count; // finalists
    uint32_t rounds;
    uint64_t seed;                       // for the order in each round
    double limit_ns;                     // no further round begins after this
    uint32_t retakes[HONE_MAX_TOGETHER]; // how often a disturbed sample of each may be taken again
} hone_rounds;

// Measures rounds in random order.
hone_failure hone_rounds_run(
    const hone_round_sampler *who, const hone_rounds *asked, hone_rounds_answer *out, hone_error *err);

#endif
