// Single flight: of the threads that need the same thing made, one makes it and the others wait.
#ifndef HONE_CONFIG_FLIGHT_H
#define HONE_CONFIG_FLIGHT_H

#include "base/memory.h"

#include <pthread.h>

typedef struct hone_flights {
    pthread_mutex_t mutex;
    pthread_cond_t landed;
    struct hone_flight *first; // one a key in the air; lives on the stack of the thread that flies it
} hone_flights;

// One flight. The caller's, on its stack, from begin to end.
typedef struct hone_flight {
    struct hone_flight *next;
    const char *parts[4]; // device, algorithm, version, key; borrowed
} hone_flight;

void hone_flights_init(hone_flights *flights);
void hone_flights_deinit(hone_flights *flights);
// True: the caller flies, and must end it. False: somebody else flew the same and has landed meanwhile; look again.
bool hone_flight_begin(
    hone_flights *flights,
    hone_flight *flight,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key);
void hone_flight_end(hone_flights *flights, hone_flight *flight);
// True when somebody flies this key now.
bool hone_flight_is_up(
    hone_flights *flights, const char *device, const char *algorithm, const char *version, const char *key);

#endif
