// Stops a thread in a run whose duration is not known yet, with os.h's holds: the thread sets a timer for itself. To be
// used between hone_os_hold_begin and hone_os_hold_end.
#ifndef HONE_OS_HOLD_H
#define HONE_OS_HOLD_H

#include "os/os.h"

// From now on the calling thread, which ends soon, can neither block the signal of holds nor change its action, so that
// a run that blocks all signals can be held too. False if the system does not support this.
bool hone_os_hold_insist(void);

typedef struct hone_os_alarm {
    void *timer; // the system's
    bool is_set;
} hone_os_alarm;

// The calling thread, which can be held, stops once after_ns have passed, until it is released, or for most_ns. False
// if the system has no timer.
bool hone_os_alarm_set(hone_os_alarm *alarm, uint64_t after_ns, uint64_t most_ns);
// The thread has passed the place where it was to stop.
void hone_os_alarm_end(hone_os_alarm *alarm);
// Called by another thread: waits until the thread has stopped. False if it has passed that place, or if patience_ns
// have passed.
bool hone_os_alarm_await(uint64_t patience_ns);

#endif
