// What is known of near calls: other shapes, other devices, other versions of an algorithm. Their decisions, and what
// was measured for them, say which configs to take before anybody has measured this call.
//
// For a call: the nearest decisions (traits.h has the distance), of each its best configs with their times over its
// best;
// and all of these configs in the order of their expected slowdown, the mean of the logarithms of their slowdowns over
// the neighbours with weight 1 / (.25 + distance). Regimes are never mixed, and only verified decisions count.
#ifndef HONE_TRANSFER_TRANSFER_H
#define HONE_TRANSFER_TRANSFER_H

#include "base/memory.h"
#include "hone/store.h"

enum { HONE_TRANSFER_NEIGHBOURS = 8, HONE_TRANSFER_CHOICES = 8 };

// Where is looked. Keeps an index of each algorithm's decisions, and reads the stores again when they have changed, as
// far as is known, but for an algorithm of thousands at most a tenth of the time. Any thread.
typedef struct hone_transfer hone_transfer;

typedef struct hone_transfer_question {
    hone_store_key key; // of the call, with its canonical text
    hone_regime regime;
    bool others_only; // what is known of this very call on this device does not count
    uint64_t stamp;   // another number than the last time: the stores may have changed
    // Whether a config may run the call: called without locks. NULL: all may. revision may be NULL.
    bool (*admits)(void *ctx, const char *kernel, const char *config, const char *revision);
    void *admits_ctx;
} hone_transfer_question;

typedef struct hone_transfer_choice {
    const char *kernel, *config, *revision; // config: JSON object
    double relative;                        // its time over the best's of its neighbour, at least 1
} hone_transfer_choice;

typedef struct hone_transfer_neighbour {
    const char *device, *version, *key;
    const char *call;                                    // text; NULL: not known
    double distance;                                     // of the call, and of device and version
    double default_relative;                             // what was taken without tuning, over the best; 0: not known
    double unknown_relative;                             // what a config counts that is not among its choices
    hone_transfer_choice choices[HONE_TRANSFER_CHOICES]; // that may run the call, best first
    size_t count;
} hone_transfer_neighbour;

typedef struct hone_transfer_proposal {
    const char *kernel, *config;
    double relative; // expected, over the best there is
} hone_transfer_proposal;

typedef struct hone_transfer_answer {
    hone_regime regime;
    hone_arena arena;                                             // of all texts
    hone_transfer_neighbour neighbours[HONE_TRANSFER_NEIGHBOURS]; // nearest first; each has a choice
    size_t neighbour_count;
    hone_transfer_proposal *proposals; // best first
    size_t proposal_count;
} hone_transfer_answer;

// most: decisions of an algorithm that are looked at, those of the question's own device first; 0: all.
hone_status hone_transfer_create(const hone_allocator *allocator, size_t most, hone_transfer **out, hone_error *err);
void hone_transfer_destroy(hone_transfer **transfer);
// user, system: either may be NULL. Of a decision that both have the user's counts. *out is deinitialised by the caller
// after HONE_OK; without neighbours it is empty.
// Returns: HONE_OK; HONE_OUT_OF_MEMORY; HONE_CORRUPT (the key has no valid spec); how a store failed, when that left
// nothing.
hone_status hone_transfer_find(
    hone_transfer *transfer,
    hone_store *user,
    hone_store *system,
    const hone_transfer_question *question,
    hone_transfer_answer *out,
    hone_error *err);
void hone_transfer_answer_deinit(hone_transfer_answer *answer);
// Fills the proposals from the neighbours (rank.c).
hone_status hone_transfer_rank(hone_transfer_answer *answer, hone_error *err);

#endif
