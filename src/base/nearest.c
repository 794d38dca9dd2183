// "Did you mean": the name that is nearest to a misspelt one.
#include "hone/lookup.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Letters that are wrong, missing, too many, or two that changed places (optimal string alignment).
static size_t slips_between(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t rows[3][LONGEST + 1];
    const size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

const char *hone_names_nearest(const char *given, const char *const *names, size_t count)
{
    if (given == NULL || names == NULL) return NULL;
    const size_t size = strlen(given), allowed = (size + 2) / 3;
    const char *nearest = NULL;
    size_t fewest = allowed + 1;
    for (size_t i = 0; i < count; i++) {
        // A name whose first words were given, cuda of cuda_simt, is as good as one with the most slips.
        const bool begins = size > 2 && strncmp(names[i], given, size) == 0 && names[i][size] == '_';
        const size_t slips = begins ? allowed : slips_between(given, names[i]);
        if (slips >= fewest) continue;
        fewest = slips;
        nearest = names[i];
    }
    return nearest;
}
