#include "config/flight.h"

#include "os/os.h"

#include <string.h>

enum { LOOK_NS = 2 * 1000 * 1000 }; // contests take seconds

void hone_flights_init(hone_flights *flights)
{
    pthread_mutex_init(&flights->mutex, NULL);
    pthread_cond_init(&flights->landed, NULL);
    flights->first = NULL;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&flights->runway, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

void hone_flights_deinit(hone_flights *flights)
{
    pthread_mutex_destroy(&flights->runway);
    pthread_cond_destroy(&flights->landed);
    pthread_mutex_destroy(&flights->mutex);
}

static bool same(const hone_flight *a, const hone_flight *b)
{
    for (size_t i = 0; i < sizeof a->parts / sizeof a->parts[0]; i++)
        if (strcmp(a->parts[i], b->parts[i]) != 0) return false;
    return true;
}

static bool is_up(const hone_flights *flights, const hone_flight *wanted)
{
    for (const hone_flight *flight = flights->first; flight != NULL; flight = flight->next)
        if (same(flight, wanted)) return true;
    return false;
}

// The mutex is held. Whoever may be cancelled looks now and then, since nobody wakes him for it.
static void wait_for_a_landing(hone_flights *flights, const volatile int *cancel)
{
    if (cancel == NULL) {
        pthread_cond_wait(&flights->landed, &flights->mutex);
        return;
    }
    pthread_mutex_unlock(&flights->mutex);
    hone_os_sleep_ns(LOOK_NS);
    pthread_mutex_lock(&flights->mutex);
}

hone_boarding hone_flight_begin(
    hone_flights *flights,
    hone_flight *flight,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key,
    const volatile int *cancel)
{
    hone_boarding boarding = HONE_FLIGHT_MINE;
    *flight = (hone_flight){NULL, {device, algorithm, version, key}};
    pthread_mutex_lock(&flights->mutex);
    while (boarding != HONE_FLIGHT_CANCELLED && is_up(flights, flight)) {
        boarding = HONE_FLIGHT_LANDED;
        if (cancel != NULL && *cancel != 0)
            boarding = HONE_FLIGHT_CANCELLED;
        else
            wait_for_a_landing(flights, cancel);
    }
    if (boarding == HONE_FLIGHT_MINE) {
        flight->next = flights->first;
        flights->first = flight;
    }
    pthread_mutex_unlock(&flights->mutex);
    return boarding;
}

void hone_flight_end(hone_flights *flights, hone_flight *flight)
{
    pthread_mutex_lock(&flights->mutex);
    hone_flight **link = &flights->first;
    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
    pthread_cond_broadcast(&flights->landed);
    pthread_mutex_unlock(&flights->mutex);
}

bool hone_runway_take(hone_flights *flights, const volatile int *cancel)
{
    while (cancel == NULL || *cancel == 0) {
        if (pthread_mutex_trylock(&flights->runway) == 0) return true;
        hone_os_sleep_ns(LOOK_NS);
    }
    return false;
}

void hone_runway_leave(hone_flights *flights)
{
    pthread_mutex_unlock(&flights->runway);
}
