// Records how each call was answered, and how often: a row for each call and choice, which outlives the plans that were
// made for it. The threads count hits (counters.h); here only decisions are counted, which are rare.
#ifndef HONE_RUNTIME_STATE_TALLY_H
#define HONE_RUNTIME_STATE_TALLY_H

#include "call/call.h"
#include "config/chain.h"
#include "os/mutex.h"
#include "registry/registry.h"

// Calls beyond this are counted together, in one row without a call.
enum { HONE_TALLY_ROWS = 16384 };

typedef struct hone_tally_row {
    struct hone_tally_row *next;    // in the order of creation
    struct hone_tally_row *chained; // in the same bucket
    uint64_t hash;
    hone_call *call; // retained; NULL: the row of all calls beyond HONE_TALLY_ROWS
    const struct hone_op *op;
    const hone_device_info *device;
    hone_source source;              // HONE_SOURCE_NONE if nothing answered
    char kernel[HONE_NAME_SIZE];     // "" if nothing answered
    const char *platform;            // static
    char *config;                    // JSON object
    uint64_t hits;                   // of plans that no longer exist
    uint64_t misses, decided_ns;     // misses: calls that were decided; decided_ns: the time that took
    struct hone_plan_entry *entries; // whose runs are counted in this row
} hone_tally_row;

typedef struct hone_tally {
    hone_mutex mutex;
    hone_allocator allocator;
    hone_tally_row **buckets; // NULL before the first row
    hone_tally_row *first, **last;
    hone_tally_row *others;
    size_t count;
} hone_tally;

// How a call was answered. kernel is NULL if nothing answered.
typedef struct hone_tally_choice {
    hone_call *call;
    const struct hone_op *op;
    const hone_device_info *device;
    hone_source source;
    const hone_kernel_ref *kernel;
    const char *config;
} hone_tally_choice;

void hone_tally_init(hone_tally *tally, hone_allocator allocator);
void hone_tally_deinit(hone_tally *tally); // after its entries are gone
// Counts a call that was decided, and how long that took; the runs of entry, which may be NULL, are counted in the same
// row from now on. If there is no memory for a row, nothing is counted.
void hone_tally_note(
    hone_tally *tally, const hone_tally_choice *choice, uint64_t nanoseconds, struct hone_plan_entry *entry);
// The entry ends: its runs are added to its row.
void hone_tally_leave(hone_tally *tally, struct hone_plan_entry *entry);
// Hits of a row, including those of its live plans. Under the mutex.
uint64_t hone_tally_hits(const hone_tally *tally, const hone_tally_row *row);
// In a child process: drops the counts of the parent's calls, since the parent reports them.
void hone_tally_in_child(hone_tally *tally);

#endif
