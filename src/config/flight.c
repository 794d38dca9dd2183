#include "config/flight.h"

#include "base/assert.h"
#include "os/os.h"

#include <string.h>

enum { LOOK_NS = 2 * 1000 * 1000 }; // contests take seconds

void hone_flights_init(hone_flights *flights)
{
    hone_mutex_init(&flights->mutex);
    hone_mutex_init_long(&flights->measuring);
    flights->first = NULL;
}

void hone_flights_deinit(hone_flights *flights)
{
    hone_mutex_deinit(&flights->measuring);
    hone_mutex_deinit(&flights->mutex);
}

void hone_flights_in_child(hone_flights *flights)
{
    const uint64_t self = hone_thread_number();
    for (hone_flight **link = &flights->first; *link != NULL;)
        if ((*link)->thread == self)
            link = &(*link)->next;
        else
            *link = (*link)->next;
}

static bool same(const hone_flight *a, const hone_flight *b)
{
    for (size_t i = 0; i < sizeof a->parts / sizeof a->parts[0]; i++)
        if (strcmp(a->parts[i], b->parts[i]) != 0) return false;
    return true;
}

static bool is_up(const hone_flights *flights, const hone_flight *wanted)
{
    hone_assert(hone_mutex_is_mine((hone_mutex *)(uintptr_t)&flights->mutex));
    for (const hone_flight *flight = flights->first; flight != NULL; flight = flight->next)
        if (same(flight, wanted)) return true;
    return false;
}

// The mutex is held. Nobody wakes who waits: a condition that threads wait for at a fork is of no use in the child.
static void wait_for_a_landing(hone_flights *flights)
{
    hone_mutex_unlock(&flights->mutex);
    hone_os_sleep_ns(LOOK_NS);
    hone_mutex_lock(&flights->mutex);
}

hone_flight_outcome hone_flight_begin(
    hone_flights *flights, hone_flight *flight, const hone_store_key *key, const volatile int *cancel)
{
    hone_flight_outcome outcome = HONE_FLIGHT_MINE;
    *flight = (hone_flight){NULL, hone_thread_number(), {key->device, key->algorithm, key->version, key->key}};
    hone_mutex_lock(&flights->mutex);
    while (outcome != HONE_FLIGHT_CANCELLED && is_up(flights, flight)) {
        outcome = HONE_FLIGHT_LANDED;
        if (cancel != NULL && *cancel != 0)
            outcome = HONE_FLIGHT_CANCELLED;
        else
            wait_for_a_landing(flights);
    }
    if (outcome == HONE_FLIGHT_MINE) {
        flight->next = flights->first;
        flights->first = flight;
    }
    hone_mutex_unlock(&flights->mutex);
    return outcome;
}

void hone_flight_end(hone_flights *flights, hone_flight *flight)
{
    hone_mutex_lock(&flights->mutex);
    hone_flight **link = &flights->first;
    while (*link != flight) {
        hone_assert(*link != NULL); // it was begun, and not ended
        link = &(*link)->next;
    }
    *link = flight->next;
    hone_mutex_unlock(&flights->mutex);
}

bool hone_measuring_begin(hone_flights *flights, const volatile int *cancel)
{
    while (cancel == NULL || *cancel == 0) {
        if (hone_mutex_try_lock(&flights->measuring)) return true;
        hone_os_sleep_ns(LOOK_NS);
    }
    return false;
}

void hone_measuring_end(hone_flights *flights)
{
    hone_assert(hone_mutex_is_mine(&flights->measuring));
    hone_mutex_unlock(&flights->measuring);
}
