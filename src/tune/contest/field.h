// The kernels that compete: one contestant for each kernel of the algorithm, and the state of its search.
#ifndef HONE_TUNE_CONTEST_FIELD_H
#define HONE_TUNE_CONTEST_FIELD_H

#include "search/search.h"
#include "space/space.h"
#include "tune/contest/question.h"
#include "tune/wire/message.h"

typedef struct hone_known hone_known;

// A kernel of the algorithm.
typedef struct hone_contestant {
    const hone_kernel_ref *ref;
    hone_bound_space *space; // NULL: it does not compete
    hone_config default_config;
    bool has_default;
    bool yields;                // it comes after others where a call was never tuned
    bool is_late;               // its default, and with it its search, waits for those of the others (race.c)
    const hone_config *configs; // its only configs, borrowed; NULL: the space, or the kernel's own list
    size_t config_count;
    const hone_search_prior *priors; // configs of similar calls; borrowed until the search begins
    size_t prior_count;
    uint64_t size;                            // number of configs that its search may propose
    hone_search *search;                      // NULL: there is nothing to search but the default
    bool exhausted;                           // the search has ended
    double prepare_ns;                        // the longest time that preparing a config took
    bool prepares_alone;                      // preparing several at once failed
    hone_config prepared[HONE_MOST_PREPARED]; // proposed by the search, and prepared before they are tried
    uint32_t prepared_count, prepared_next;
    uint32_t tried, passed;
    uint32_t measured;    // configs, of the tried, measured by this contest
    double measuring_ns;  // time of these measurements, including preparing
    double preparing_ns;  // the part of it for preparing
    double ahead_ns;      // time per config of the last ones that were prepared together; 0: none were
    uint32_t lost_in_row; // crashes and time-outs since the last trial with an answer
    bool put_aside;
    bool is_unready;    // it was begun, and was not ready when its time was over
    bool is_refused;    // the worker cannot run it at all: it does not compete
    double best_ns;     // rank_ns of its best candidate; 0: it has none
    uint32_t family;    // index of the first of the kernels that differ from it in instruction set alone (family.h)
    double followed_ns; // rank_ns of the last config that it tried because it was the best of its family; 0: none
    char *environment;  // of its measurements; NULL: not read yet
} hone_contestant;

// Whether its search may have another config.
static inline bool hone_contestant_is_left(const hone_contestant *contestant)
{
    return contestant->search != NULL && !contestant->put_aside && !contestant->exhausted && !contestant->is_late;
}

// Whether its next config is prepared.
static inline bool hone_contestant_is_prepared(const hone_contestant *contestant)
{
    return contestant->prepared_next < contestant->prepared_count;
}

typedef struct hone_field {
    hone_contestant *contestants; // in the registry's order
    size_t count;
    hone_contest_kernel *rows; // of the contest's result, one for each contestant; borrowed
    hone_search_prior *priors; // of all contestants
    bool exhaustive;           // there are evaluations for every config of every contestant
    uint32_t planned;          // number of candidates
} hone_field;

// Collects every kernel of the algorithm. A kernel that does not compete has the reason in its row. Allocates the rows
// of `out`. Returns HONE_OK also when no kernel competes; HONE_OUT_OF_MEMORY.
hone_status hone_field_collect(hone_field *field, const hone_question *question, hone_contest *out, hone_error *err);
void hone_field_deinit(hone_field *field, const hone_allocator *allocator);
// Whether at least one kernel competes.
bool hone_field_has_anybody(const hone_field *field);
// The contestant with whose default the others are compared: the first that competes, does not yield and is not from a
// pack, because a kernel of a pack answers only where it was verified; else the first that yields; else the first of a
// pack. NULL: no kernel competes.
const hone_contestant *hone_field_default(const hone_field *field);
// Takes a kernel out of the contest, with the reason in its row.
void hone_field_exclude(hone_field *field, size_t kernel, const char *reason);
// Logs a warning that a kernel of the program takes no part, once for each registered kernel. Otherwise a program would
// never learn why its kernel is not chosen.
void hone_field_warn_left_out(
    const hone_field *field, const hone_question *question, size_t kernel, const char *reason);
// Counts a failure in the kernel's row, with its reason.
void hone_field_note_failure(hone_field *field, uint32_t kernel, hone_failure failure, const char *reason);
// Gives each kernel the configs that the stores have for similar calls (priors.c).
hone_status hone_field_find_priors(hone_field *field, const hone_question *question, hone_error *err);
// Begins the searches. Called when it is known which kernels compete and what was measured before.
hone_status hone_field_begin_searches(
    hone_field *field, const hone_question *question, const hone_known *known, hone_error *err);
// Reports to a kernel's search how long a config took.
void hone_contestant_tell(
    const hone_contestant *contestant, const hone_config *config, double time_ns, hone_failure failure);

#endif
