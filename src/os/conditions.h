// External influences on measured times: clock frequency, other work, other users of the processors. They are read only
// to be reported and recorded; none is required, and what the system does not report is unknown.
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
    int64_t throttled;       // times that a core was slowed because of heat or power, since the start; -1: not known
    double load;             // of the last minute; negative: not known
    // Of all processors since the start, in the system's ticks; stolen_ticks: time that the host kept from this
    // machine. Negative: not known.
    double ticks, stolen_ticks;
} hone_os_conditions;

// The external influences between two readings.
typedef struct hone_os_disturbance {
    int64_t throttled; // times that a core was slowed because of heat or power; -1: not known
    double stolen;     // share of the time that the host kept from this machine; negative: not known
} hone_os_disturbance;

// root: "" on a machine; in tests, a folder with such files. Allocates nothing.
void hone_os_conditions_read(const char *root, hone_os_conditions *out);
// Only ticks and stolen_ticks, which takes a tenth of the time; the rest is zero.
void hone_os_conditions_read_stolen(const char *root, hone_os_conditions *out);
// before all zero: since the start. A counter that decreased (a processor was removed) is not known.
hone_os_disturbance hone_os_disturbance_between(const hone_os_conditions *before, const hone_os_conditions *after);

#endif
