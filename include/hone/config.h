// Configs: one value for each parameter of a kernel's space.
#ifndef HONE_CONFIG_H
#define HONE_CONFIG_H

#include "hone/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HONE_MAX_PARAMETERS = 32, HONE_NAME_SIZE = 64 };

// The values stand in the order in which the space declares its parameters. A parameter whose values are
// all integers holds the integer itself; any other (names, strings, floats, booleans) holds the index of
// the value in its list. Holds no heap memory.
typedef struct hone_config {
    uint32_t count;
    int64_t values[HONE_MAX_PARAMETERS];
} hone_config;

// What the time of a run is: warm, on the device with the data in the caches; cold, with the data flushed out of them;
// graph, of one of several runs in a graph that is captured once and replayed; eager, by the host's clock, of one run
// with its launch and the wait for its end. A stable regime: only candidates whose results are bit-equal to the
// default's could win (hone_tune_options.stable). Each regime has a decision of its own.
typedef enum hone_regime {
    HONE_WARM = 0,
    HONE_COLD = 1,
    HONE_WARM_STABLE = 2,
    HONE_COLD_STABLE = 3,
    HONE_GRAPH = 4,
    HONE_EAGER = 5,
    HONE_GRAPH_STABLE = 6,
    HONE_EAGER_STABLE = 7,
    HONE_REGIME_COUNT
} hone_regime;

// Who answered a call, in the order in which the chain asks.
typedef enum hone_source {
    HONE_SOURCE_NONE = 0,
    HONE_SOURCE_OVERRIDE,
    HONE_SOURCE_OVERLAY,
    HONE_SOURCE_LOCK,
    HONE_SOURCE_MEMORY,
    HONE_SOURCE_STORE,
    HONE_SOURCE_TRANSFER,
    HONE_SOURCE_AUTOTUNE,
    HONE_SOURCE_HEURISTIC,
    HONE_SOURCE_COUNT
} hone_source;

// "override", "overlay", ... ; "none" for HONE_SOURCE_NONE. Static.
HONE_API const char *hone_source_name(hone_source source);

// Why candidates were rejected in a contest.
typedef enum hone_failure {
    HONE_FAILURE_NONE = 0,
    HONE_FAILURE_UNSUPPORTED, // the kernel refused the call
    HONE_FAILURE_PREPARE,     // compile, load or prepare failed
    HONE_FAILURE_RUN,         // the kernel returned a failure
    HONE_FAILURE_WRONG,       // an output differs from the reference by more than the tolerance
    HONE_FAILURE_BOUNDS,      // bytes outside its outputs, or inputs, were written
    HONE_FAILURE_CRASH,       // the worker died of a signal or exited
    HONE_FAILURE_TIMEOUT,     // the time limit passed
    HONE_FAILURE_TRACES,      // it changed its process, or left something in it: a handler, a thread, a child, memory
    HONE_FAILURE_UNSTABLE,    // an output is not bit-identical to the default's, where that was asked for
    HONE_FAILURE_REPLAYED,    // it caches results: known inputs take far less time than new ones
    HONE_FAILURE_STALE,       // a timed run left old contents in an output
    HONE_FAILURE_IMPOSSIBLE,  // its time is below what moving its bytes or doing its operations takes on the device
    HONE_FAILURE_HIDDEN,      // it went on working after it returned, or tampered with the clock
    HONE_FAILURE_UNALIGNED,   // it fails on arrays that are aligned no better than its call allows
    HONE_FAILURE_RACY,        // it is right alone and wrong in two threads at once
    HONE_FAILURE_PARTIAL,     // some of an output was never written
    HONE_FAILURE_COUNT
} hone_failure;

enum { HONE_FAILURE_ROOM = 32 }; // size of arrays with an element for each hone_failure, with room for later versions

// What a decision rests on. Zero means not known. Times are nanoseconds of one run.
typedef struct hone_evidence {
    double time_ns, low_ns, high_ns; // median and its 95 % interval
    uint32_t samples, rounds;
    hone_regime regime;
    char runner_up[HONE_NAME_SIZE];        // kernel of the second best; "": there was none
    double ratio, ratio_low, ratio_high;   // runner-up's time over the winner's, with its 95 % interval
    double default_time_ns;                // of the heuristic's or default config
    char verified_against[HONE_NAME_SIZE]; // "reference"; "" means unverified
    char verified_by[64];        // how the results were compared: "whole", "Freivalds' check + 36 of 4096 parts"
    double tolerance, max_error; // error allowed and seen, in units of the tolerance rule
    // The shortest time that a run can take, by what it must read, write and compute and what the device can do at best: a
    // faster candidate is rejected as impossible. 0 if it is not known. And what this rests on, as text.
    double floor_ns;
    char floor[120];
    uint32_t measured;                    // candidates that were timed
    uint32_t rejected[HONE_FAILURE_ROOM]; // rejected candidates, by kind
    double seconds;                       // that the contest took
    double allowed_seconds;               // that it was allowed
    // Of them: preparing (processes, inputs, the reference, kernels), verifying, runs that were measured or warmed up, and
    // the rest: waiting until threads rest, pauses, deciding what is next. 0 if it is not known.
    double prepare_seconds, verify_seconds, run_seconds, wait_seconds;
    double load;        // load average at the start
    uint32_t throttled; // times that heat or power slowed a core during the contest
    double stolen;      // share of the contest's time that the host took from this machine
    double disturbed;   // share of the contest's samples that other work on the machine disturbed
    // Why the contest left open which is the fastest, and what would settle it ("7 of 9 kernels were never tried, 38 % of
    // the samples were disturbed; try --seconds 30"); "" when it did not.
    char undecided[200];
    uint64_t seed;
    bool isolated; // candidates ran in a worker process
    char hone_version[16];
    char started[24]; // UTC, "2026-11-20T12:34:56Z"
    char who[64];     // "user@host"; "" unless that was asked for (HONE_RUNTIME_PROVENANCE)
    // Of an answer that was taken from similar calls (HONE_SOURCE_TRANSFER): by what share it is expected to be slower
    // than the best there is, and which calls those are.
    double predicted_regret;
    char neighbours[400];
    char tuner[64];           // the caller's tuner, if it proposed the configs (hone_tune_options.tuner); "": hone's
    uint32_t default_samples; // that default_time_ns rests on; 0 if it is not known
} hone_evidence;

#ifdef __cplusplus
}
#endif
#endif
