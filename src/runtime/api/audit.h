// Audits from the inside: stored choices, each with what was measured of it now.
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

// Whether a choice that was looked at stays: it runs and is right, and is not surely slower than another by more than
// the threshold, nor than it was itself in an environment that has changed since. Surely: the interval's lower end says
// so.
bool hone_audit_passes(const hone_audited *audited, double threshold);

#endif
