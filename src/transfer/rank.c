// All configs of the neighbours, in the order of their expected slowdown: the mean of the logarithms of what it was at
// each neighbour, weighted by the inverse of its distance (D. Shepard, "A Two-Dimensional Interpolation Function for
// Irregularly-Spaced Data", 1968). The floor keeps the nearest from deciding alone, and a distance of 0 from dividing
// by nothing; it was chosen by hand, and is that of search/priors.c. At most 64 configs are compared in pairs.
#include "transfer/transfer.h"

#include "base/assert.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double weight_floor = 0.25;
static const char where[] = "transfer.rank";

static double log_slowdown(const hone_transfer_neighbour *neighbour, const hone_transfer_choice *of)
{
    for (size_t i = 0; i < neighbour->count; i++)
        if (strcmp(neighbour->choices[i].config, of->config) == 0 &&
            strcmp(neighbour->choices[i].kernel, of->kernel) == 0)
            return log(neighbour->choices[i].relative);
    return log(neighbour->unknown_relative);
}

static double expected(const hone_transfer_answer *answer, const hone_transfer_choice *of)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < answer->neighbour_count; i++) {
        hone_assert(answer->neighbours[i].distance >= 0);
        double weight = 1 / (weight_floor + answer->neighbours[i].distance);
        sum += weight * log_slowdown(&answer->neighbours[i], of);
        weights += weight;
    }
    return exp(sum / weights);
}

static bool is_proposed(const hone_transfer_answer *answer, const hone_transfer_choice *of)
{
    for (size_t i = 0; i < answer->proposal_count; i++)
        if (strcmp(answer->proposals[i].config, of->config) == 0 &&
            strcmp(answer->proposals[i].kernel, of->kernel) == 0)
            return true;
    return false;
}

// Of equals the nearer neighbour's stays before.
static void insert(hone_transfer_answer *answer, const hone_transfer_choice *of, double relative)
{
    size_t at = answer->proposal_count++;
    for (; at > 0 && answer->proposals[at - 1].relative > relative; at--)
        answer->proposals[at] = answer->proposals[at - 1];
    answer->proposals[at] = (hone_transfer_proposal){of->kernel, of->config, relative};
}

hone_status hone_transfer_rank(hone_transfer_answer *answer, hone_error *err)
{
    size_t most = answer->neighbour_count * HONE_TRANSFER_CHOICES;
    answer->proposal_count = 0;
    if (most == 0) return HONE_OK;
    answer->proposals = hone_arena_array(&answer->arena, most, sizeof *answer->proposals);
    if (answer->proposals == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < answer->neighbour_count; i++)
        for (size_t j = 0; j < answer->neighbours[i].count; j++) {
            const hone_transfer_choice *choice = &answer->neighbours[i].choices[j];
            if (!is_proposed(answer, choice)) insert(answer, choice, expected(answer, choice));
        }
    return HONE_OK;
}
