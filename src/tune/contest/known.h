// What the stores know of the call from earlier contests, and what this one adds: an interrupted contest goes on where
// it stopped, since each measurement is written at once.
#ifndef HONE_TUNE_CONTEST_KNOWN_H
#define HONE_TUNE_CONTEST_KNOWN_H

#include "tune/contest/field.h"
#include "tune/contest/standings.h"

// A measurement of an earlier contest.
typedef struct hone_resumed {
    uint32_t kernel; // index of its contestant
    hone_config config;
    hone_trial trial;  // its digest is that of the code that was measured; 0: not known
    char measured[24]; // UTC; "": not known
    bool entered;      // it takes part in this contest
} hone_resumed;

// What the store answers with when the contest begins: only a candidate that is certainly faster takes its place.
typedef struct hone_incumbent {
    bool is_there;
    uint32_t kernel;
    hone_config config;
    double time_ns; // as it was measured then
} hone_incumbent;

struct hone_known {
    hone_resumed *resumed;
    size_t count, capacity;
    hone_incumbent incumbent;
    bool any_environment; // measurements of another environment are read too
    bool store_warned;
};

// Reads the measurements that apply today. Under options.fresh it forgets the call's failures instead.
hone_status hone_known_load(hone_known *known, const hone_question *question, hone_field *field, hone_error *err);
// Fills known->incumbent from the store.
void hone_known_find_incumbent(hone_known *known, const hone_question *question, const hone_field *field);
// options.keep_existing: fills `out` from the store when a verified decision of a kernel that can run stands there.
// False:
// there is none, and the contest takes place.
bool hone_known_keeps(const hone_question *question, const hone_field *field, hone_decision *out);
const hone_resumed *hone_known_find(const hone_known *known, uint32_t kernel, const hone_config *config);
// Writes one measurement at once. A write that fails is a warning, not an end.
void hone_known_store(
    hone_known *known, const hone_question *question, hone_field *field, const hone_candidate *candidate);
// The same of a kernel's default that was begun and not ready when its time was over: it is told and kept, and keeps the config
// from being tried nowhere. Not under options.fresh: it would take the place of what was measured before.
void hone_known_store_unready(
    hone_known *known, const hone_question *question, hone_field *field, const hone_candidate *candidate);

#endif
