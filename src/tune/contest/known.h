// What the stores know of the call from earlier contests, and what this contest adds. Each measurement is written at
// once, so that an interrupted contest continues where it stopped.
#ifndef HONE_TUNE_CONTEST_KNOWN_H
#define HONE_TUNE_CONTEST_KNOWN_H

#include "tune/contest/field.h"
#include "tune/contest/standings.h"

// A measurement of an earlier contest.
typedef struct hone_resumed {
    uint32_t kernel; // index of its contestant
    hone_config config;
    hone_trial trial;  // its digest is that of the measured code; 0: not known
    char measured[24]; // UTC; "" if not known
    bool entered;      // this contest has taken it over
} hone_resumed;

// The store's answer when the contest begins. Only a candidate that is certainly faster replaces it.
typedef struct hone_incumbent {
    bool is_there;
    uint32_t kernel;
    hone_config config;
    double time_ns; // as it was measured in that contest
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
// options.keep_existing: fills `out` from the store if it has a verified decision whose kernel can run. False: there is
// none, and the contest takes place.
bool hone_known_keeps(const hone_question *question, const hone_field *field, hone_decision *out);
const hone_resumed *hone_known_find(const hone_known *known, uint32_t kernel, const hone_config *config);
// Writes one measurement at once. If that fails, a warning is logged and the contest goes on.
void hone_known_store(
    hone_known *known, const hone_question *question, hone_field *field, const hone_candidate *candidate);
// Writes that a kernel's default was begun and was not ready when its time was over. The record is reported and kept,
// but it never keeps the config from being tried. Not written under options.fresh, where it would replace an earlier
// measurement.
void hone_known_store_unready(
    hone_known *known, const hone_question *question, hone_field *field, const hone_candidate *candidate);

#endif
