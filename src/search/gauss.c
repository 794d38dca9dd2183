// Gaussian process regression with a Matern 5/2 covariance and a length per feature, and the row of greatest expected
// improvement under it.
//
// The fit is algorithm 2.1 of C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006):
// a Cholesky factor of the covariance, whose diagonal is kept inverted, and the log marginal likelihood from it.
// Lengths and noise are improved by trying each one 2.5 times larger and smaller from where the last fit left it, with
// a log-normal prior around the usual values. Expected improvement is that of D. R. Jones, M. Schonlau and W. J. Welch,
// "Efficient Global Optimization of Expensive Black-Box Functions" (1998). Targets are logarithms of times, with mean 0
// and deviation 1.
//
// Cost, with n observations (at most HONE_GAUSS_MOST) and d features: a factorisation n^3/6 + d n^2/2; a row's
// covariances n for each column, from distances that are kept by the column's value; its exact deviation n^2/2, which
// the pruning of hone_gauss_choose saves for most rows.
#include "search/gauss.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

// e^-x for x >= 0, to 1e-6 of it, so that a loop over it can be vectorised. Where lengths are long, covariances are
// much alike, and what single ones are off by counts many times. e^-x is 2^t; 2^whole is made of its bits, and 2^part,
// with part in (-1, 0], is a polynomial: coefficients of a least squares fit of relative error over that range.
static inline float decay(float x)
{
    hone_assert(x >= 0);
    float t = x > 80 ? -115.4f : x * -1.44269504f;
    float whole = (float)(int)(t - 0.9999999f), part = t - whole;
    union {
        int32_t bits;
        float value;
    } power = {((int32_t)whole + 127) * (1 << 23)};
    float rest = 0.2402072f + part * (0.0556571f + part * (0.0091994f + part * 0.0017884f));
    return power.value * (1 + part * (0.6931476f + part * rest));
}

// Matern 5/2 of a squared distance.
static inline float kernel(float squared)
{
    float r = sqrtf(5 * squared);
    return (1 + r + r * r / 3) * decay(r);
}

// Adds to `sum` how far the first `count` observations are from x in one feature.
static void add_distances(const hone_gauss *g, size_t feature, float x, size_t count, float *restrict sum)
{
    float w = g->weights[feature];
    const float *p = g->points[feature];
    for (size_t i = 0; i < count && w != 0; i++)
        sum[i] += w * (p[i] - x) * (p[i] - x);
}

static void covariances(const hone_gauss *g, const float *point, size_t count, float *out)
{
    float sum[HONE_GAUSS_MOST] = {0};
    for (size_t d = 0; d < g->columns; d++)
        add_distances(g, d, point[d], count, sum);
    for (size_t i = 0; i < count; i++)
        out[i] = kernel(sum[i]);
}

static float dot(const float *a, const float *b, size_t n)
{
    float s[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            s[j] += a[i + j] * b[i + j];
    float sum = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

// Factors the covariance and solves; returns the log likelihood up to a constant.
static double solve(hone_gauss *g)
{
    double likelihood = 0;
    float half[HONE_GAUSS_MOST];
    for (size_t i = 0; i < g->count; i++) {
        float point[HONE_FEATURES_MOST], row[HONE_GAUSS_MOST];
        for (size_t d = 0; d < g->columns; d++)
            point[d] = g->points[d][i];
        covariances(g, point, i, row);
        float *f = g->factor[i];
        for (size_t j = 0; j < i; j++)
            f[j] = (row[j] - dot(f, g->factor[j], j)) * g->factor[j][j];
        float rest = 1 + g->noise - dot(f, f, i);
        // Rounding can take equal observations below zero: the factor stays real, the point adds next to nothing.
        if (rest < 1e-5f) rest = 1e-5f;
        f[i] = 1 / sqrtf(rest);
        half[i] = (g->targets[i] - dot(f, half, i)) * f[i];
        likelihood -= 0.5 * half[i] * half[i] + 0.5 * log(rest);
    }
    for (size_t i = g->count; i-- > 0;) {
        float sum = half[i];
        for (size_t j = i + 1; j < g->count; j++)
            sum -= g->factor[j][i] * g->solution[j];
        g->solution[i] = sum * g->factor[i][i];
    }
    return likelihood;
}

// Over most of its range a column matters smoothly, and so does a product; that a number is a power of two matters
// less, mostly. Lengths longer than these are found soon enough, and shorter ones make the process forget what it was
// told.
static double usual_weight(const hone_gauss *g, size_t column)
{
    return column < g->own || column >= g->single ? 0.5 : 0.25;
}

// Lengths that are very short or long are unlikely before anything is seen.
static double prior(const hone_gauss *g)
{
    double sum = 0;
    for (size_t d = 0; d < g->columns; d++) {
        double x = log(g->weights[d] / usual_weight(g, d));
        sum -= x * x / (2 * 2.0 * 2.0);
    }
    double n = log(g->noise / 0.01);
    return sum - n * n / (2 * 1.5 * 1.5);
}

static double try_value(hone_gauss *g, float *value, float other, double best)
{
    float before = *value;
    *value = other;
    double likelihood = solve(g) + prior(g);
    if (likelihood > best) return likelihood;
    *value = before;
    return best;
}

static void improve(hone_gauss *g)
{
    double best = solve(g) + prior(g);
    for (size_t d = 0; d <= g->columns; d++) {
        float *value = d < g->columns ? &g->weights[d] : &g->noise;
        float low = d < g->columns ? 0.01f : 1e-4f, high = d < g->columns ? 400 : 0.5f;
        float before = *value;
        if (before * 2.5f < high) best = try_value(g, value, before * 2.5f, best);
        if (*value == before && before / 2.5f > low) best = try_value(g, value, before / 2.5f, best);
    }
}

void hone_gauss_fit(
    hone_gauss *g, const hone_features *features, const uint32_t *rows, const float *targets, size_t count, bool search)
{
    double sum = 0, squares = 0;
    hone_assert(count > 0 && count <= HONE_GAUSS_MOST && features->count <= HONE_FEATURES_MOST);
    if (g->columns == 0) {
        g->columns = features->count;
        g->own = features->columns;
        g->single = features->single;
        g->noise = 0.01f;
        for (size_t d = 0; d < g->columns; d++)
            g->weights[d] = (float)usual_weight(g, d);
    }
    g->count = count;
    for (size_t i = 0; i < count; i++) {
        sum += targets[i];
        squares += (double)targets[i] * targets[i];
        for (size_t d = 0; d < g->columns; d++)
            g->points[d][i] = features->values[d][rows[i]];
    }
    g->mean = sum / (double)count;
    g->scale = sqrt(fmax(squares / (double)count - g->mean * g->mean, 1e-12));
    for (size_t i = 0; i < count; i++)
        g->targets[i] = (float)((targets[i] - g->mean) / g->scale);
    if (search) improve(g);
    solve(g);
}

// Choosing ------------------------------------------------------------------------------------------------------------

// Expected improvement over `target` of a guess.
static double improvement(double target, double mean, double deviation)
{
    hone_assert(deviation > 0);
    double z = (target - mean) / deviation;
    if (z < -7) return 0; // below what a double tells from zero beside the others
    return deviation * (z * 0.5 * erfc(-z * 0.70710678118654752) + 0.39894228040143268 * exp(-0.5 * z * z));
}

static size_t parts_count(const hone_gauss *g)
{
    return g->own + g->columns - g->single;
}

static void forget_parts(hone_gauss *g)
{
    for (size_t p = 0; p < parts_count(g); p++)
        for (size_t i = 0; i < HONE_GAUSS_SLOTS; i++)
            g->parts_of[p][i] = -1;
}

// What is kept under this key; *out_new: nothing was, and it is all zero.
static float *find_part(hone_gauss *g, size_t p, size_t slot, int64_t key, bool *out_new)
{
    float *part = g->parts[p][slot];
    *out_new = g->parts_of[p][slot] != key;
    g->parts_of[p][slot] = key;
    if (*out_new) memset(part, 0, sizeof g->parts[p][slot]);
    return part;
}

static const float *part_of_column(hone_gauss *g, const hone_features *features, size_t column, uint16_t position)
{
    bool is_new;
    float *part = find_part(g, column, position % HONE_GAUSS_SLOTS, position, &is_new);
    for (size_t d = 0; d < g->single && is_new; d++)
        if (features->of_column[d] == column) add_distances(g, d, features->of_position[d][position], g->count, part);
    return part;
}

// The slots of a product go by both positions: those of few values each do not take turns.
static const float *part_of_product(
    hone_gauss *g, const hone_features *features, size_t p, uint32_t row, const uint16_t *positions)
{
    bool is_new;
    size_t feature = g->single + p - g->own;
    uint32_t one = positions[features->of_column[feature]], other = positions[features->of_other[feature]];
    size_t slot = (one * 5 + other) % HONE_GAUSS_SLOTS;
    float *part = find_part(g, p, slot, (int64_t)one << 16 | other, &is_new);
    if (is_new) add_distances(g, feature, features->values[feature][row], g->count, part);
    return part;
}

static void covariances_of(
    hone_gauss *g, const hone_features *features, const hone_config_table *table, uint32_t row, float *restrict out)
{
    const uint16_t *positions = hone_config_table_row(table, row);
    size_t count = (g->count + 7) / 8 * 8;
    memset(out, 0, count * sizeof *out);
    for (size_t p = 0; p < parts_count(g); p++) {
        const float *part =
            p < g->own ? part_of_column(g, features, p, positions[p]) : part_of_product(g, features, p, row, positions);
        for (size_t i = 0; i < count; i++)
            out[i] += part[i];
    }
    for (size_t i = 0; i < count; i++)
        out[i] = kernel(out[i]);
}

// An upper bound of deviation_of: what is left of the variance after the nearest observation alone. More observations
// can only lower it.
static float deviation_bound(const hone_gauss *g, const float *k)
{
    float most = 0;
    for (size_t i = 0; i < g->count; i++)
        most = k[i] > most ? k[i] : most;
    return sqrtf(fmaxf(1 - most * most / (1 + g->noise), 1e-6f));
}

static float deviation_of(const hone_gauss *g, const float *k)
{
    float half[HONE_GAUSS_MOST], left = 1;
    for (size_t i = 0; i < g->count; i++) {
        half[i] = (k[i] - dot(g->factor[i], half, i)) * g->factor[i][i];
        left -= half[i] * half[i];
    }
    return sqrtf(fmaxf(left, 1e-6f));
}

// In two passes. The first gives each row an upper bound of its improvement: the mean is exact, the deviation is its
// upper bound, and improvement grows with the deviation. The second works out the exact improvement where the bound is
// above the best exact one so far, beginning with the row of the greatest bound: the others cannot win and are passed
// over, so that the answer is that of the full computation.
double hone_gauss_choose(
    hone_gauss *g,
    const hone_features *features,
    const hone_config_table *table,
    const uint32_t *rows,
    size_t count,
    double target,
    float *scratch,
    uint32_t *out_row)
{
    float k[HONE_GAUSS_MOST];
    double goal = (target - g->mean) / g->scale, most = -1, best = -1;
    size_t first = 0;
    hone_assert(count > 0 && g->count > 0);
    forget_parts(g);
    for (size_t i = 0; i < count; i++) {
        covariances_of(g, features, table, rows[i], k);
        scratch[i] = (float)improvement(goal, dot(k, g->solution, g->count), deviation_bound(g, k));
        if (scratch[i] > most) {
            most = scratch[i];
            first = i;
        }
    }
    for (size_t j = 0; j < count; j++) {
        size_t i = j == 0 ? first : j == first ? 0 : j;
        if (scratch[i] <= best) continue;
        covariances_of(g, features, table, rows[i], k);
        double expected = improvement(goal, dot(k, g->solution, g->count), deviation_of(g, k));
        hone_assert(expected <= 1.02 * scratch[i] + 1e-3); // the bound was one, up to single precision
        if (expected > best) {
            best = expected;
            *out_row = rows[i];
        }
    }
    return best * g->scale;
}
