// The one table of failures. A new kind is a value of hone_failure and a row here.
#include "registry/failure_kinds.h"

#include "base/assert.h"
#include "hone/describe.h"

#include <assert.h>
#include <string.h>

// A wrong answer is a property of the code, a crash often one, a time-out mostly one of that hour's machine, and what
// could not be prepared may lack no more than a package.
static const hone_failure_kind kinds[] = {
    [HONE_FAILURE_NONE] = {.name = "none"},
    [HONE_FAILURE_UNSUPPORTED] = {"unsupported", .days = 180},
    [HONE_FAILURE_PREPARE] = {"prepare", .days = 7},
    [HONE_FAILURE_RUN] = {"run", .days = 30, .is_harm = true},
    [HONE_FAILURE_WRONG] = {"wrong", .days = 180, .retry = HONE_RETRY_IF_QUICK, .is_wrong = true, .is_harm = true},
    [HONE_FAILURE_BOUNDS] = {"bounds", .days = 180, .retry = HONE_RETRY_ALWAYS, .is_wrong = true, .is_harm = true},
    [HONE_FAILURE_CRASH] = {"crash", .days = 30, .retry = HONE_RETRY_ALWAYS, .is_harm = true, .is_lost = true},
    [HONE_FAILURE_TIMEOUT] =
        {"timeout", .days = 1, .retry = HONE_RETRY_AFTER_SHORT_LIMIT, .is_harm = true, .is_lost = true},
    [HONE_FAILURE_TRACES] = {"traces", .days = 30, .retry = HONE_RETRY_ALWAYS, .is_harm = true},
    [HONE_FAILURE_UNSTABLE] = {"unstable", .days = 180},
    [HONE_FAILURE_REPLAYED] = {"replayed", .days = 180, .retry = HONE_RETRY_ALWAYS, .is_wrong = true, .is_harm = true},
    [HONE_FAILURE_STALE] = {"stale", .days = 180, .retry = HONE_RETRY_ALWAYS, .is_wrong = true, .is_harm = true},
    [HONE_FAILURE_IMPOSSIBLE] = {"impossible", .days = 30, .retry = HONE_RETRY_ALWAYS, .is_harm = true},
    [HONE_FAILURE_HIDDEN] = {"hidden", .days = 180, .retry = HONE_RETRY_ALWAYS, .is_wrong = true, .is_harm = true},
    [HONE_FAILURE_UNALIGNED] = {"unaligned", .days = 180, .is_harm = true},
    [HONE_FAILURE_RACY] = {"racy", .days = 180, .is_wrong = true, .is_harm = true},
    [HONE_FAILURE_PARTIAL] = {"partial", .days = 180, .retry = HONE_RETRY_IF_QUICK, .is_wrong = true, .is_harm = true},
};
static_assert(sizeof kinds / sizeof kinds[0] == HONE_FAILURE_COUNT, "every kind of failure has a row");

static const hone_failure_kind no_kind = {.name = "unknown failure"};

const hone_failure_kind *hone_failure_kind_of(hone_failure failure)
{
    const bool is_kind = (int)failure >= 0 && failure < HONE_FAILURE_COUNT;
    hone_assert(!is_kind || kinds[failure].name != NULL);
    return is_kind ? &kinds[failure] : &no_kind;
}

const char *hone_failure_name(hone_failure failure)
{
    return hone_failure_kind_of(failure)->name;
}

bool hone_failure_by_name(const char *name, hone_failure *out)
{
    for (int i = HONE_FAILURE_NONE; i < HONE_FAILURE_COUNT; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        *out = (hone_failure)i;
        return true;
    }
    return false;
}
