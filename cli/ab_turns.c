// The ratio of a pair whose two sides took turns.
//
// What a step takes is the time from one step's end to the next one's, without what its threads waited for a processor. Where
// one thread does the work, that is exact. Where several wait for each other, it is not: while one waits for a processor the
// others sleep, which nobody counts. Beside other work such steps differ by half from one to the next. What all threads had of
// processors differs by a sixth then, and says the same as long as both sides spread their work alike over threads; where they
// do not, it is divided by how many threads' work it was. It says nothing of a step that sleeps or waits for a device, and so
// is taken only where some thread had or wanted a processor all the time, and other work took processors.
#include "ab.h"
#include "pairs.h"

#include <assert.h>
#include <math.h>

static const double busy = 0.05;    // waited, as a share of a step's time: less is no matter
static const double covered = 0.95; // of a step's time
static const double alike = 0.05;   // two sides' spreads over threads, at least told apart
static const double certain = 3;    // standard errors

// The median of f over all turns of both sides.
static double median_of(const ab_turn *const turns[2], size_t count, double (*f)(const ab_turn *turn), double *room)
{
    for (size_t i = 0; i < 2 * count; i++)
        room[i] = f(&turns[i / count][i % count]);
    return cli_median(room, 2 * count);
}

static double share_waited(const ab_turn *turn)
{
    return turn->time_ns > 0 ? turn->waited_ns / turn->time_ns : 0;
}

static double share_covered(const ab_turn *turn)
{
    return turn->time_ns > 0 ? (turn->ran_ns + turn->waited_ns) / turn->time_ns : 0;
}

static double undisturbed(const ab_turn *turn)
{
    return turn->undisturbed_ns;
}

static double ran(const ab_turn *turn)
{
    return turn->ran_ns;
}

// How many threads' work it was.
static double spread(const ab_turn *turn)
{
    return turn->most_ran_ns > 0 ? turn->ran_ns / turn->most_ran_ns : 1;
}

// The median of log(f(b) / f(a)) over the turns. *out_error: its standard error, by the median absolute deviation; NULL: not asked.
static double log_ratio(
    const ab_turn *const turns[2], size_t count, double (*f)(const ab_turn *turn), double *room, double *out_error)
{
    for (size_t i = 0; i < count; i++)
        room[i] = log(fmax(f(&turns[1][i]), 1e-3) / fmax(f(&turns[0][i]), 1e-3));
    const double middle = cli_median(room, count);
    if (out_error == NULL) return middle;
    for (size_t i = 0; i < count; i++)
        room[i] = fabs(room[i] - middle);
    *out_error = 1.2533 * 1.4826 * cli_median(room, count) / sqrt((double)count); // of a median over normal values
    return middle;
}

bool ab_ratio_of_turns(const ab_turn *const turns[2], size_t count, double *room, double out_values[2])
{
    assert(count > 0);
    double error = 0, logarithm = log_ratio(turns, count, undisturbed, room, NULL);
    const bool by_processors =
        median_of(turns, count, share_waited, room) > busy && median_of(turns, count, share_covered, room) >= covered;
    if (by_processors) {
        logarithm = log_ratio(turns, count, ran, room, NULL);
        const double other = log_ratio(turns, count, spread, room, &error);
        if (fabs(other) > fmax(alike, certain * error)) logarithm -= other;
    }
    for (size_t i = 0; i < count; i++)
        room[i] = turns[0][i].undisturbed_ns;
    out_values[0] = cli_median(room, count) * 1e-9;
    out_values[1] = out_values[0] * exp(logarithm);
    return by_processors;
}
