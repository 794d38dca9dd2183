// How candidates fail: a row for each kind of hone_failure. All that depends on the kind is read here.
#ifndef HONE_REGISTRY_FAILURE_KINDS_H
#define HONE_REGISTRY_FAILURE_KINDS_H

#include "hone/config.h"

// Whether a failure is tried again in a new process: what was in this one before may have brought it about.
typedef enum hone_failure_retry {
    HONE_RETRY_NEVER,
    HONE_RETRY_ALWAYS,
    HONE_RETRY_AFTER_SHORT_LIMIT, // where the time limit was short
    HONE_RETRY_IF_QUICK,          // where a new process is opened quickly
} hone_failure_retry;

typedef struct hone_failure_kind {
    const char *name; // "wrong"
    double days;      // that a stored one is believed; docs/tune.md has the same numbers
    hone_failure_retry retry;
    bool is_wrong; // the code computes or writes what it must not: it counts for every call of its revision
    bool is_harm;  // it shows when the kernel runs: a choice with this config is not served
    bool is_lost;  // its process is gone with it
} hone_failure_kind;

// Of HONE_FAILURE_NONE and of a number that is not a failure: a row of which nothing is true.
const hone_failure_kind *hone_failure_kind_of(hone_failure failure);
// False for a word that no kind has; *out is then as it was. "none" is one. name is not NULL.
bool hone_failure_by_name(const char *name, hone_failure *out);

#endif
