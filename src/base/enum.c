#include "base/enum.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

const char *hone_enum_word(const hone_enum *words, int number)
{
    hone_assert(words->first >= 0 && words->first < words->count);
    return number >= 0 && number < words->count ? words->words[number] : words->unknown;
}

int hone_enum_find(const hone_enum *words, const char *word)
{
    for (int i = words->first; word != NULL && i < words->count; i++)
        if (strcmp(words->words[i], word) == 0) return i;
    return -1;
}

hone_status hone_enum_refuse(const hone_enum *words, const char *where, const char *word, hone_error *err)
{
    char known[256] = "";
    size_t used = 0;
    for (int i = words->first; i < words->count && used < sizeof known; i++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > words->first ? ", " : "", words->words[i]);
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "'%s' is not one of: %s (exact, lower case)", word == NULL ? "" : word,
        known);
}
