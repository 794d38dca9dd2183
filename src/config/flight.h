// Single flight: of the threads that need the same thing made, one makes it and the others wait. And one measures: what
// measures the machine does so alone, whatever its key.
#ifndef HONE_CONFIG_FLIGHT_H
#define HONE_CONFIG_FLIGHT_H

#include "base/memory.h"
#include "hone/store.h"
#include "os/mutex.h"

typedef struct hone_flights {
    hone_mutex mutex;
    struct hone_flight *first; // one a key in the air; lives on the stack of the thread that flies it
    hone_mutex measuring;      // a flight may start another from within
} hone_flights;

// One flight. The caller's, on its stack, from begin to end.
typedef struct hone_flight {
    struct hone_flight *next;
    uint64_t thread;      // that flies it
    const char *parts[4]; // device, algorithm, version, key; borrowed
} hone_flight;

void hone_flights_init(hone_flights *flights);
void hone_flights_deinit(hone_flights *flights);
// In a child process: the flights of threads that it has not got are nobody's.
void hone_flights_in_child(hone_flights *flights);
typedef enum hone_flight_outcome {
    HONE_FLIGHT_MINE,     // the caller flies, and must end it
    HONE_FLIGHT_LANDED,   // somebody else flew the same and has landed meanwhile: look again
    HONE_FLIGHT_CANCELLED // *cancel (may be NULL) was not 0 before that
} hone_flight_outcome;

hone_flight_outcome hone_flight_begin(
    hone_flights *flights,
    hone_flight *flight,
    const hone_store_key *key, // its spec does not count; its texts are borrowed until the end
    const volatile int *cancel);
void hone_flight_end(hone_flights *flights, hone_flight *flight);
// Waits until no other thread measures, and keeps others from it. False: *cancel (may be NULL) was not 0 before that.
// A thread that measures may begin again, and ends as often.
bool hone_measuring_begin(hone_flights *flights, const volatile int *cancel);
void hone_measuring_end(hone_flights *flights);

#endif
