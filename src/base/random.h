// Random numbers for choices that must come out the same for the same seed.
#ifndef HONE_BASE_RANDOM_H
#define HONE_BASE_RANDOM_H

#include <stdint.h>

// A small generator of random numbers with a state of its own (splitmix64), so that equal seeds give equal contests.
uint64_t hone_random_next(uint64_t *state);
// Uniform in [0, bound), bound > 0.
uint32_t hone_random_below(uint64_t *state, uint32_t bound);
// Uniform in (0, 1].
double hone_random_unit(uint64_t *state);
// Puts the numbers 0 to count - 1 into out in random order.
void hone_random_order(uint64_t *state, uint32_t count, uint32_t *out);

#endif
