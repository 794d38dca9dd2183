// What pairs of measurements say of a ratio, at any time that somebody looks.
#ifndef HONE_CLI_PAIRS_H
#define HONE_CLI_PAIRS_H

#include <stddef.h>

// All zero: no pair yet.
typedef struct cli_pairs {
    double *logs;   // of each pair: the logarithm of its ratio
    double *scales; // of each pair: how far the ratios before it lay apart
    size_t count, capacity;
} cli_pairs;

typedef struct cli_ratio {
    double middle, low, high; // low 0, high infinity: nothing is known
} cli_ratio;

// Adds a pair: ratio > 0 and finite.
void cli_pairs_add(cli_pairs *pairs, double ratio);
// The ratio with its 95 % interval, which may be asked for after every pair: in 19 of 20 series the true ratio lies in
// all of the intervals of a series, however long it is and whenever it is stopped.
cli_ratio cli_pairs_ratio(const cli_pairs *pairs);
void cli_pairs_clear(cli_pairs *pairs);

// The middle one of count > 0 values, or between the middle two; sorts them.
double cli_median(double *values, size_t count);

#endif
