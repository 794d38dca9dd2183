#include "store/postgresql/leases.h"

#include "base/error.h"

#include <stdio.h>

static const char where[] = "store.lease";

typedef struct held_session {
    hone_pg_sessions *sessions;
    const hone_pg_connection *connection;
    PGconn *conn; // NULL: it was lost
} held_session;

// Sessions ------------------------------------------------------------------------------------------------------------

void hone_pg_sessions_init(hone_pg_sessions *sessions)
{
    *sessions = (hone_pg_sessions){.count = 0};
    hone_mutex_init(&sessions->mutex);
}

void hone_pg_sessions_rest(hone_pg_sessions *sessions, const hone_pg_connection *connection)
{
    hone_mutex_lock(&sessions->mutex);
    while (sessions->count > 0)
        connection->pq.PQfinish(sessions->idle[--sessions->count]);
    hone_mutex_unlock(&sessions->mutex);
}

void hone_pg_sessions_deinit(hone_pg_sessions *sessions, const hone_pg_connection *connection)
{
    hone_pg_sessions_rest(sessions, connection);
    hone_mutex_deinit(&sessions->mutex);
}

static PGconn *take_idle(hone_pg_sessions *sessions)
{
    hone_mutex_lock(&sessions->mutex);
    PGconn *conn = sessions->count > 0 ? sessions->idle[--sessions->count] : NULL;
    hone_mutex_unlock(&sessions->mutex);
    return conn;
}

static bool keep_idle(hone_pg_sessions *sessions, PGconn *conn)
{
    hone_mutex_lock(&sessions->mutex);
    const bool kept = sessions->count < HONE_PG_IDLE_SESSIONS;
    if (kept) sessions->idle[sessions->count++] = conn;
    hone_mutex_unlock(&sessions->mutex);
    return kept;
}

// Locks ---------------------------------------------------------------------------------------------------------------

// One statement that answers with a truth. HONE_UNAVAILABLE: the session is gone.
static hone_status ask(const held_session *held, const char *function, uint64_t name, bool *out, hone_error *err)
{
    const hone_pq *pq = &held->connection->pq;
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT %s(%lld)", function, (long long)name);
    PGresult *result = pq->PQsendQuery(held->conn, sql) ? hone_pg_await(held->connection, held->conn) : NULL;
    const bool ok = pq->PQresultStatus(result) == PGRES_TUPLES_OK;
    *out = ok && pq->PQgetvalue(result, 0, 0)[0] == 't';
    pq->PQclear(result);
    if (ok) return HONE_OK;
    if (result == NULL || pq->PQstatus(held->conn) != CONNECTION_OK)
        return hone_fail(err, HONE_UNAVAILABLE, where, "the connection to the store's server was lost");
    return hone_fail(err, HONE_IO, where, "the server of the store gives no locks");
}

static hone_status try_lock(const held_session *held, uint64_t name, bool *out_taken, hone_error *err)
{
    return ask(held, "pg_try_advisory_lock", name, out_taken, err);
}

static hone_status await_lock(
    held_session *held, uint64_t name, const hone_wait *wait, bool *out_waited, hone_error *err)
{
    static const uint64_t look_ns = 20000000;
    const uint64_t start = hone_os_now_ns();
    for (bool taken = false;;) {
        hone_status status = try_lock(held, name, &taken, err);
        if (status != HONE_OK || taken) return status;
        if (wait->seconds > 0 && !*out_waited && wait->say != NULL) wait->say(wait->ctx, 0);
        *out_waited = true;
        if (wait->cancel != NULL && *wait->cancel != 0) return hone_fail(err, HONE_CANCELLED, where, "cancelled");
        if (!((double)(hone_os_now_ns() - start) * 1e-9 < wait->seconds))
            return hone_fail(
                err, HONE_BUSY, where, "another process that uses the store has it for more than %g s", wait->seconds);
        hone_os_sleep_ns(look_ns);
    }
}

static void leave(hone_lease *lease)
{
    held_session *held = lease->holder;
    const hone_pg_connection *connection = held->connection;
    bool left = false;
    if (held->conn != NULL) {
        // A session whose lock is not known to be given back ends, and the lock with it.
        if (ask(held, "pg_advisory_unlock", lease->name, &left, NULL) != HONE_OK || !left ||
            !keep_idle(held->sessions, held->conn))
            connection->pq.PQfinish(held->conn);
    }
    hone_free(&connection->allocator, held);
    *lease = HONE_LEASE_NONE;
}

// A server that began anew has forgotten its locks: who is first has it.
static hone_status keep(hone_lease *lease, hone_error *err)
{
    held_session *held = lease->holder;
    const hone_pq *pq = &held->connection->pq;
    bool taken = true;
    if (held->conn != NULL) {
        PGresult *result = pq->PQsendQuery(held->conn, "SELECT 1") ? hone_pg_await(held->connection, held->conn) : NULL;
        const bool lives = pq->PQresultStatus(result) == PGRES_TUPLES_OK;
        pq->PQclear(result);
        if (lives) return HONE_OK;
        pq->PQfinish(held->conn);
        held->conn = NULL;
    }
    hone_status status = hone_pg_connect(held->connection, &held->conn, where, err);
    if (status == HONE_OK) status = try_lock(held, lease->name, &taken, err);
    if (status == HONE_OK && taken) return HONE_OK;
    if (held->conn != NULL) pq->PQfinish(held->conn);
    held->conn = NULL;
    if (status != HONE_OK) return HONE_UNAVAILABLE;
    return hone_fail(err, HONE_BUSY, where, "the session was lost, and another process has it now");
}

// A session that was idle may have ended meanwhile: then a new one is made.
static hone_status take_with(
    held_session *held, uint64_t name, const hone_wait *wait, bool *out_waited, hone_error *err)
{
    hone_status status = HONE_UNAVAILABLE;
    while (status == HONE_UNAVAILABLE && (held->conn = take_idle(held->sessions)) != NULL) {
        status = await_lock(held, name, wait, out_waited, err);
        if (status == HONE_BUSY && keep_idle(held->sessions, held->conn)) held->conn = NULL;
        if (status != HONE_OK && held->conn != NULL) held->connection->pq.PQfinish(held->conn);
    }
    if (held->conn != NULL || status != HONE_UNAVAILABLE) return status;
    status = hone_pg_connect(held->connection, &held->conn, where, err);
    if (status == HONE_OK) status = await_lock(held, name, wait, out_waited, err);
    if (status == HONE_BUSY && keep_idle(held->sessions, held->conn)) held->conn = NULL;
    if (status != HONE_OK && held->conn != NULL) held->connection->pq.PQfinish(held->conn);
    return status;
}

hone_status hone_pg_lease_take(
    hone_pg_sessions *sessions,
    const hone_pg_connection *connection,
    uint64_t name,
    const hone_wait *wait,
    hone_lease *out,
    hone_error *err)
{
    held_session *held = hone_alloc(&connection->allocator, sizeof *held);
    bool waited = false;
    name ^= connection->space; // a server's locks are of a database, and two schemas of one may have the same calls
    if (held == NULL) return hone_fail_memory(err, where);
    *held = (held_session){.sessions = sessions, .connection = connection};
    hone_status status = take_with(held, name, wait, &waited, err);
    if (status != HONE_OK) {
        hone_free(&connection->allocator, held);
        return status;
    }
    *out = (hone_lease){.leave = leave, .keep = keep, .fd = -1, .name = name, .holder = held, .waited = waited};
    return HONE_OK;
}
