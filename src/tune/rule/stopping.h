// How long a candidate is measured: a pure rule, the same for a kernel that runs and for one that was recorded.
//
// One run is thrown away. Then samples are taken until their least, with as much taken off as noise can have put on it,
// is still above the best, or until there are enough. Samples that other work on the machine disturbed do not say that
// a candidate is slow, unless it is many times as slow.
#ifndef HONE_TUNE_RULE_STOPPING_H
#define HONE_TUNE_RULE_STOPPING_H

#include "tune/wire/message.h"

// How much samples of one candidate differ: their standard deviation, relative, over the candidates measured so far.
typedef struct hone_noise {
    double sum;
    uint32_t count;
} hone_noise;

// Whether it has a sample that nothing disturbed.
bool hone_trial_was_left_alone(const hone_trial *trial);
// Whether the device was left alone in none of them. A neighbour that stays there slows all candidates alike.
bool hone_trial_shared_its_device(const hone_trial *trial);
// Times of its kept samples that count, at most HONE_KEPT_SAMPLES. Returns how many.
uint32_t hone_trial_times(const hone_trial *trial, double *out_times);
// Says in a trial's times what its kept samples say; at least one is kept.
void hone_trial_weigh(hone_trial *trial);
// Takes note of a candidate that has several samples.
void hone_noise_add(hone_noise *noise, const hone_trial *trial);
// 0: too little is known.
double hone_noise_level(const hone_noise *noise);

// A run this long is warm after its first, is hardly disturbed by what disturbs short ones, and costs a contest dearly.
static const double hone_long_run_ns = 250e6;
// A sample of a shorter run is the middle one of a burst; longer runs warm themselves.
static const double hone_short_run_ns = 1e6;

typedef enum hone_stopping_verdict {
    HONE_STOPPING_GOES_ON,
    HONE_STOPPING_BEATEN,
    HONE_STOPPING_ENOUGH
} hone_stopping_verdict;

// How many pairs of runs have to say that a candidate does less where nothing has changed, and none the contrary, before it is
// taken for one that does not work in every run.
//   run_ns  what a run takes where everything has changed
uint32_t hone_stopping_guilty_pairs(double run_ns);

// After the run that is thrown away.
hone_stopping_verdict hone_stopping_judge_warm(const hone_stopping *stopping, const hone_sample *warm);
// After `count` samples, the runs of which took spent_ns together.
//   is_long  a run takes so long that it is warm after its first and hardly disturbed
hone_stopping_verdict hone_stopping_judge(
    const hone_stopping *stopping, const hone_sample *samples, uint32_t count, double spent_ns, bool is_long);

// Who measures one candidate. Each returns HONE_FAILURE_NONE, or how it failed with words in err.
typedef struct hone_sampler {
    void *ctx;
    // The run that is thrown away.
    hone_failure (*warm)(void *ctx, hone_sample *out, hone_error *err);
    // *out_spent_ns: what all runs of the sample took, those counted in that were disturbed and taken again.
    hone_failure (*sample)(void *ctx, hone_sample *out, double *out_spent_ns, hone_error *err);
    uint64_t (*now_ns)(void *ctx);
} hone_sampler;

// Measures one candidate by the rule.
hone_failure hone_stopping_run(
    const hone_stopping *stopping, const hone_sampler *sampler, hone_trial *out, hone_error *err);

// Who measures finalists in rounds: one sample of the finalist `index`.
typedef struct hone_round_sampler {
    void *ctx;
    hone_failure (*sample)(void *ctx, uint32_t index, hone_sample *out, hone_error *err);
    uint64_t (*now_ns)(void *ctx);
} hone_round_sampler;

// What is measured in rounds.
typedef struct hone_rounds {
    uint32_t count; // finalists
    uint32_t rounds;
    uint64_t seed;                       // of the order in each round
    double limit_ns;                     // after which no further round begins
    uint32_t retakes[HONE_MAX_TOGETHER]; // how often a disturbed sample of each may be taken again
} hone_rounds;

// Rounds in random order.
hone_failure hone_rounds_run(
    const hone_round_sampler *who, const hone_rounds *asked, hone_rounds_answer *out, hone_error *err);

#endif
