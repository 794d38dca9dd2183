// The remaining budget of a contest, and the kernel that it is spent on next.
#ifndef HONE_TUNE_CONTEST_BUDGET_H
#define HONE_TUNE_CONTEST_BUDGET_H

#include "tune/contest/trial.h"

// The largest share of a contest's seconds for verifying its winner, if a smaller call can be verified instead.
static const double hone_confirm_share = 0.1;

// What this contest has spent. The race writes it.
typedef struct hone_spending {
    uint32_t measured;   // number of candidates
    double measuring_ns; // for these candidates
    double sampling_ns;  // the part of measuring_ns without preparing and verifying
    double least_ns;     // the least time that a candidate took
    uint32_t steps;      // number of steps of the searches
    double since_gain;   // candidates since the last gain; those of kernels that are far behind count less
    double gain_ns;      // best time at the last gain
} hone_spending;

// The state that the budget is computed from: read only, but for the field's searches.
typedef struct hone_budget {
    const hone_question *question;
    const hone_trials *trials; // its clock is read
    const hone_field *field;
    const hone_standings *standings;
    const hone_spending *spending;
} hone_budget;

bool hone_budget_has_evaluations(const hone_budget *budget);
bool hone_budget_has_time(const hone_budget *budget);
// Whether evaluations, time and patience are left, and one more step is worth its cost.
bool hone_budget_goes_on(const hone_budget *budget);
// Chooses the kernel whose next step is worth most; *out -1: no kernel is left. HONE_OUT_OF_MEMORY.
hone_status hone_budget_choose(const hone_budget *budget, int64_t *out, hone_error *err);
// The ns that verifying the best as a winner will take. They are reserved from the race and from the rounds of the
// finals.
double hone_budget_confirm_ns(const hone_budget *budget);
// How many seconds the default of the index-th kernel may take to be ready. Time that defaults before it did not use is
// added.
double hone_budget_first_seconds(const hone_budget *budget, size_t index);
// The ns that one more config of this kernel takes, including preparing; 0: not known.
double hone_budget_cost_ns(const hone_contestant *contestant);
// Whether the kernel's best is so much slower than the best of all that few configs cannot make up for it.
bool hone_budget_is_far_behind(const hone_budget *budget, const hone_contestant *contestant);
// By how much the next step is expected to improve the best time, relative.
double hone_budget_expected_gain(const hone_budget *budget);

#endif
