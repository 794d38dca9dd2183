// What was hit: how often each call was made, what answered it, and how long that took to decide; and which stored
// decisions are never used, and which used calls have none.
//
// Counting is always on and costs a hit nothing that can be measured (docs/decisions/counters.md). Runs of bound plans
// are counted only under HONE_STATS or hone_record_enable: plan->run is the kernel's own function else.
#ifndef HONE_STATS_H
#define HONE_STATS_H

#include "hone/runtime.h"
#include "hone/select.h"
#include "hone/store.h"

#ifdef __cplusplus
extern "C" {
#endif

// Calls with a row of their own; further ones are counted together.
enum { HONE_STATS_ROWS = 16384 };

// A call and one choice that answered it. A call that got another choice meanwhile has two rows.
typedef struct hone_stats_row {
    hone_store_key key; // the call's own; key.algorithm is NULL in the row of all calls beyond HONE_STATS_ROWS
    const char *call;   // call text; NULL as key.algorithm, or where it is not known
    hone_source source; // the link that answered; HONE_SOURCE_NONE if none did, or it is not known
    const char *kernel, *platform; // ""
    const char *config;            // JSON object; "" where nothing answered
    uint64_t hits;                 // runs that found a plan
    uint64_t misses;               // runs and hone_bind that had to decide
    double decided_seconds;        // that deciding took, including preparing and tuning
} hone_stats_row;

// Visits the rows of a runtime in the order in which they came, until visit returns false. Counts are exact for threads
// that are in no call; a call that is under way is counted or not. They only grow, and begin at 0 in a child
// of fork.
//   visit  texts of a row are the runtime's, until it is closed; may call hone
// Threads: any, also while others run calls.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_stats(hone_runtime *rt, bool (*visit)(void *ctx, const hone_stats_row *row), void *ctx, hone_error *err);

typedef enum hone_stats_format {
    HONE_STATS_LINE,      // one line for people: what HONE_STATS=1 writes at the end
    HONE_STATS_JSON,      // a document on one line (docs/formats.md), which `hone stats FILE` reads
    HONE_STATS_PROMETHEUS // Prometheus' text, by algorithm, link and kernel
} hone_stats_format;

HONE_API HONE_MUST_CHECK hone_status hone_stats_print_sized(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    size_t size,
    hone_stats_format format,
    hone_sink *sink,
    void *ctx,
    hone_error *err);
// The same as text.
//   rows  NULL selects the runtime's own
// Returns: HONE_OK; HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_MUST_CHECK static inline hone_status hone_stats_print(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    hone_stats_format format,
    hone_sink *sink,
    void *ctx,
    hone_error *err)
{
    return hone_stats_print_sized(rt, rows, count, sizeof *rows, format, sink, ctx, err);
}

// Writes what HONE_STATS asks for, if that is not written yet; hone_runtime_close does it at the latest. A host whose
// runtimes are kept open by plans calls it at its end.
HONE_API void hone_stats_finish(hone_runtime *rt);

// A difference between the calls that were made and the decisions that are stored.
typedef struct hone_stats_finding {
    bool is_stored;     // stored and never asked for; false: asked for and never stored
    hone_store_key key; // spec may be NULL
    const char *call;   // may be NULL
    const char *kernel; // the stored choice; else what answered last, "" nothing
    hone_source source; // that answered last; HONE_SOURCE_NONE of what is stored
    uint64_t calls;     // hits and misses that were guessed or not answered
    // Of the first HONE_STATS_NEAREST that were asked for: the key of the nearest stored call of the algorithm, and lines
    // "x.shape[0]: 2048, stored 1024" of what differs. NULL if there is no such call.
    const char *nearest, *differs;
} hone_stats_finding;

enum { HONE_STATS_NEAREST = 100 };

HONE_API HONE_MUST_CHECK hone_status hone_stats_compare_sized(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    size_t size,
    bool (*visit)(void *ctx, const hone_stats_finding *finding),
    void *ctx,
    hone_error *err);
// Compares rows with the runtime's store: visits what was asked for, was answered by a guess or by nothing, and is not
// stored, most calls first; then the choices of the user's store that no row asked for, in the order of the store. A call is asked for under every
// key that its answer may stand under, its bucket's among them. What is stored for a device that no row is of is left out.
//   rows   NULL selects the runtime's own
//   visit  texts of a finding are good until it returns; may call hone
// Returns: HONE_OK; HONE_UNAVAILABLE (no store is open; the message says why); HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY; what
// hone_store_scan answers.
HONE_MUST_CHECK static inline hone_status hone_stats_compare(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    bool (*visit)(void *ctx, const hone_stats_finding *finding),
    void *ctx,
    hone_error *err)
{
    return hone_stats_compare_sized(rt, rows, count, sizeof *rows, visit, ctx, err);
}

#ifdef __cplusplus
}
#endif
#endif
