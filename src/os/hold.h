// A thread that is to stand still in a run that nobody has seen before, as os.h's holds: it asks for that itself, for a
// time that has passed. Between hone_os_hold_begin and hone_os_hold_end.
#ifndef HONE_OS_HOLD_H
#define HONE_OS_HOLD_H

#include "os/os.h"

typedef struct hone_os_alarm {
    void *timer; // of the system's
    bool is_set;
} hone_os_alarm;

// The calling thread, which can be held, stands still once after_ns have passed, until it is released, or for most_ns.
// False: the system has no timer.
bool hone_os_alarm_set(hone_os_alarm *alarm, uint64_t after_ns, uint64_t most_ns);
// It is past the place where it was to stand still.
void hone_os_alarm_end(hone_os_alarm *alarm);
// Another thread's: waits until it stands still. False: it is past that place, or patience_ns have passed.
bool hone_os_alarm_await(uint64_t patience_ns);

#endif
