// A thread that is to stand still in a run that nobody has seen before, as os.h's holds: it asks for that itself, for a
// time that has passed. Between hone_os_hold_begin and hone_os_hold_end.
#ifndef HONE_OS_HOLD_H
#define HONE_OS_HOLD_H

#include "os/os.h"

// The calling thread, which ends soon, can block the signal of holds no more, nor change what comes of it: a run that blocks all
// signals is held as others are. False: the system has no way to do so.
bool hone_os_hold_insist(void);

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
