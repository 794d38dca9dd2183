// Leases as advisory locks: each has a session of its own, which the server ends when the process dies. Sessions that
// hold nothing are kept for the next lease, so that one costs a round trip.
#ifndef HONE_STORE_POSTGRESQL_LEASES_H
#define HONE_STORE_POSTGRESQL_LEASES_H

#include "os/mutex.h"
#include "store/common/lease.h"
#include "store/postgresql/connection.h"

enum { HONE_PG_IDLE_SESSIONS = 4 };

typedef struct hone_pg_sessions {
    hone_mutex mutex;
    PGconn *idle[HONE_PG_IDLE_SESSIONS];
    size_t count;
} hone_pg_sessions;

void hone_pg_sessions_init(hone_pg_sessions *sessions);
// Ends those that hold nothing.
void hone_pg_sessions_rest(hone_pg_sessions *sessions, const hone_pg_connection *connection);
void hone_pg_sessions_deinit(hone_pg_sessions *sessions, const hone_pg_connection *connection);
// As hone_store_ops.lease. The lease borrows both.
hone_status hone_pg_lease_take(
    hone_pg_sessions *sessions,
    const hone_pg_connection *connection,
    uint64_t name,
    const hone_wait *wait,
    hone_lease *out,
    hone_error *err);

#endif
