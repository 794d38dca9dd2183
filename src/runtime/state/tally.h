// What each call was answered with, and how often: a row for each call and choice, which outlives the plans that were
// made for it. Hits are not counted here but by the threads (counters.h); what is decided is, which is rare.
#ifndef HONE_RUNTIME_STATE_TALLY_H
#define HONE_RUNTIME_STATE_TALLY_H

#include "call/call.h"
#include "config/chain.h"
#include "os/mutex.h"
#include "registry/registry.h"

// Further calls are counted together, in one row without a call.
enum { HONE_TALLY_ROWS = 16384 };

typedef struct hone_tally_row {
    struct hone_tally_row *next;    // in the order in which they came
    struct hone_tally_row *chained; // of one bucket
    uint64_t hash;
    hone_call *call; // retained; NULL: the row of all calls beyond HONE_TALLY_ROWS
    const struct hone_op *op;
    const hone_device_info *device;
    hone_source source;              // HONE_SOURCE_NONE: nothing answered
    char kernel[HONE_NAME_SIZE];     // "": nothing did
    const char *platform;            // static
    char *config;                    // JSON object
    uint64_t hits;                   // of plans that are gone
    uint64_t misses, decided_ns;     // calls that were decided, and how long that took
    struct hone_plan_entry *entries; // that are counted here
} hone_tally_row;

typedef struct hone_tally {
    hone_mutex mutex;
    hone_allocator allocator;
    hone_tally_row **buckets; // NULL before the first row
    hone_tally_row *first, **last;
    hone_tally_row *others;
    size_t count;
} hone_tally;

// What a call was answered with. kernel NULL: nothing answered.
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
// A call was decided, in so many nanoseconds; entry, which may be NULL, is counted with it from now on. Where there is no
// memory for a row nothing is counted.
void hone_tally_note(
    hone_tally *tally, const hone_tally_choice *choice, uint64_t nanoseconds, struct hone_plan_entry *entry);
// The entry is at its end: its runs stay with its row.
void hone_tally_leave(hone_tally *tally, struct hone_plan_entry *entry);
// Hits of a row, those of its plans included. Under the mutex.
uint64_t hone_tally_hits(const hone_tally *tally, const hone_tally_row *row);
// In a child process: what the parent's calls were is the parent's to tell.
void hone_tally_in_child(hone_tally *tally);

#endif
