// Internals of audits: stored choices, each with its measurement.
#ifndef HONE_RUNTIME_API_AUDIT_H
#define HONE_RUNTIME_API_AUDIT_H

#include "runtime/api/api.h"

// One stored choice.
typedef struct hone_audit_item {
    hone_audited audited; // its call is the item's
    hone_decision decision;
    const hone_device_info *device;
    char *call; // call text; NULL: not known
    char *spec; // canonical text; NULL: not known
} hone_audit_item;

struct hone_audit {
    hone_allocator allocator;
    double threshold;
    hone_audit_item *items;
    size_t count, capacity;
};

// Whether a measured choice passes: it runs, is correct, and is not certainly slower than another choice by more than
// the threshold, nor than it was itself in an environment that has changed since. Certainly means that the lower end of
// the interval exceeds it.
bool hone_audit_passes(const hone_audited *audited, double threshold);

#endif
