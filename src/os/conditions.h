// What moves times from outside: frequency, other work, who else has the processors. Read to be told and recorded;
// nothing of it is required, and what a system does not say is not known.
#ifndef HONE_OS_CONDITIONS_H
#define HONE_OS_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hone_os_switch { HONE_OS_UNKNOWN = 0, HONE_OS_ON, HONE_OS_OFF } hone_os_switch;

typedef struct hone_os_conditions {
    char governor[32];                          // of the first processor; "": not known
    int64_t least_khz, most_khz, processor_khz; // limits that are set, and what the processor could; 0: not known
    hone_os_switch turbo, smt;
    int32_t online, allowed; // processors; fewer allowed than online: this process is pinned. 0: not known
    int64_t throttled;       // times that heat or power slowed a core, since the start; -1: not known
    double load;             // of the last minute; negative: not known
    // Of all processors since the start, in the system's ticks; stolen: that the host kept from this machine. Negative:
    // not known.
    double ticks, stolen_ticks;
} hone_os_conditions;

// What came from outside between two readings.
typedef struct hone_os_disturbance {
    int64_t throttled; // times that heat or power slowed a core; -1: not known
    double stolen;     // share of the time that the host kept from this machine; negative: not known
} hone_os_disturbance;

// root: "" on a machine; a folder with such files in tests. Allocates nothing.
void hone_os_conditions_read(const char *root, hone_os_conditions *out);
// Only ticks and stolen_ticks, which takes a tenth of the time; the rest is zero.
void hone_os_conditions_read_stolen(const char *root, hone_os_conditions *out);
// before all zero: since the start. What counters that went back would say (a processor was taken away) is not known.
hone_os_disturbance hone_os_disturbance_between(const hone_os_conditions *before, const hone_os_conditions *after);

#endif
