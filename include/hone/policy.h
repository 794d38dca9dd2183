// What the chain may do on a miss, and contexts: overlays, overrides and a policy for a stretch of code.
#ifndef HONE_POLICY_H
#define HONE_POLICY_H

#include "hone/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_policy {
    HONE_POLICY_DEFAULT = 0,   // of the enclosing context, else the runtime's
    HONE_POLICY_TUNE = 1,      // tune; wait for a thread or process that already tunes the same call
    HONE_POLICY_HEURISTIC = 2, // take the heuristic, note the miss for later, never wait
    HONE_POLICY_FAIL = 3,      // HONE_NOT_FOUND
    HONE_POLICY_FROZEN = 4     // an override, else the lock file, nothing else
} hone_policy;

#ifdef __cplusplus
}
#endif
#endif
