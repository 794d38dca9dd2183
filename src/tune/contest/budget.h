// What may still be spent, and on which kernel.
#ifndef HONE_TUNE_CONTEST_BUDGET_H
#define HONE_TUNE_CONTEST_BUDGET_H

#include "tune/contest/trial.h"

// Of a contest's seconds, that looking at its winner may take at most where a smaller call can have the rest.
static const double hone_confirm_share = 0.1;

// What this contest has spent. The race writes it.
typedef struct hone_spending {
    uint32_t measured;   // candidates
    double measuring_ns; // that took
    double sampling_ns;  // of that, beside preparing and verifying
    double least_ns;     // that one of them took
    uint32_t steps;      // of the searches
    double since_gain;   // candidates; those of kernels that are far behind count less
    double gain_ns;      // best time at the last gain
} hone_spending;

// What the budget is judged by: read only, but for the field's searches.
typedef struct hone_budget {
    const hone_question *question;
    const hone_trials *trials; // for its clock
    const hone_field *field;
    const hone_standings *standings;
    const hone_spending *spending;
} hone_budget;

bool hone_budget_has_evaluations(const hone_budget *budget);
bool hone_budget_has_time(const hone_budget *budget);
// Evaluations, time and patience are left, and a step more is worth what it costs.
bool hone_budget_goes_on(const hone_budget *budget);
// The kernel whose next step is worth most; *out -1: there is nobody left. HONE_OUT_OF_MEMORY.
hone_status hone_budget_choose(const hone_budget *budget, int64_t *out, hone_error *err);
// What looking at the best as at a winner will take, which is kept for it from the race and from the rounds of the finals.
double hone_budget_confirm_ns(const hone_budget *budget);
// How long the default of the index-th kernel may take to be ready: what others before it left of theirs is added.
double hone_budget_first_seconds(const hone_budget *budget, size_t index);
// What a config more of this kernel takes, preparing counted in; 0: not known.
double hone_budget_cost_ns(const hone_contestant *contestant);
// Whether the kernel's best is so much slower than the best of all that few configs would make that good.
bool hone_budget_is_far_behind(const hone_budget *budget, const hone_contestant *contestant);
// What the next step is expected to take off the best time, relative.
double hone_budget_expected_gain(const hone_budget *budget);

#endif
