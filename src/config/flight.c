#include "config/flight.h"

#include <string.h>

void hone_flights_init(hone_flights *flights)
{
    pthread_mutex_init(&flights->mutex, NULL);
    pthread_cond_init(&flights->landed, NULL);
    flights->first = NULL;
}

void hone_flights_deinit(hone_flights *flights)
{
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

bool hone_flight_begin(
    hone_flights *flights,
    hone_flight *flight,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key)
{
    *flight = (hone_flight){NULL, {device, algorithm, version, key}};
    pthread_mutex_lock(&flights->mutex);
    bool waited = false;
    while (is_up(flights, flight)) {
        waited = true;
        pthread_cond_wait(&flights->landed, &flights->mutex);
    }
    if (!waited) {
        flight->next = flights->first;
        flights->first = flight;
    }
    pthread_mutex_unlock(&flights->mutex);
    return !waited;
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

bool hone_flight_is_up(
    hone_flights *flights, const char *device, const char *algorithm, const char *version, const char *key)
{
    hone_flight wanted = {NULL, {device, algorithm, version, key}};
    pthread_mutex_lock(&flights->mutex);
    bool up = is_up(flights, &wanted);
    pthread_mutex_unlock(&flights->mutex);
    return up;
}
