// What stores on PostgreSQL alone can meet: a server that is away or comes back, other tables, hostile rows, many
// machines at once. The server is that of tests/support/with-postgresql.
#include "hone/store.h"

#include "records.h"
#include "store/ops.h"
#include "store/postgresql/store.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char schema[48], url[96];
    hone_store *store;
    hone_pq pq;
    PGconn *conn; // by hand
    hone_error err;
} fixture;

static hone_store *open_one(fixture *f)
{
    hone_store *store = NULL;
    if (hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return store;
}

static int set_up(void **state)
{
    static int opened;
    static const char *const nothing[] = {NULL};
    const hone_allocator allocator = hone_allocator_system();
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || hone_pq_open(&allocator, &f->pq, &f->err) != HONE_OK) return -1;
    snprintf(f->schema, sizeof f->schema, "f%d_%d", (int)getpid(), opened++);
    snprintf(f->url, sizeof f->url, "postgresql://?schema=%s", f->schema);
    f->store = open_one(f);
    f->conn = f->pq.PQconnectdbParams(nothing, nothing, 0);
    return f->pq.PQstatus(f->conn) == CONNECTION_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    const hone_allocator allocator = hone_allocator_system();
    fixture *f = *state;
    hone_store_close(&f->store);
    f->pq.PQfinish(f->conn);
    hone_pq_close(&allocator, &f->pq);
    free(f);
    return 0;
}

// By hand, in the store's schema.
static void by_hand(fixture *f, const char *sql)
{
    char text[1000];
    snprintf(text, sizeof text, "SET search_path TO %s; %s", f->schema, sql);
    PGresult *result = f->pq.PQexec(f->conn, text);
    const int status = f->pq.PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail_msg("%s", f->pq.PQresultErrorMessage(result));
    f->pq.PQclear(result);
}

static bool see(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    snprintf(ctx, 64, "%s", decision->kernel);
    return true;
}

static hone_status get(fixture *f, char kernel[64])
{
    const hone_store_key key = sample_key();
    kernel[0] = '\0';
    return hone_store_get(f->store, HONE_RECORD_DECISION, &key, HONE_WARM, see, kernel, &f->err);
}

static hone_status put(fixture *f, const char *kernel)
{
    hone_store_decision decision = sample_decision();
    decision.kernel = kernel;
    return hone_store_put(f->store, &decision, &f->err);
}

static void end_sessions(fixture *f)
{
    by_hand(
        f,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL");
}

// Away ----------------------------------------------------------------------------------------------------------------

static void a_session_that_the_server_ends_is_made_again(void **state)
{
    fixture *f = *state;
    char kernel[64];
    assert_int_equal(put(f, "first"), HONE_OK);
    end_sessions(f);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_string_equal(kernel, "first");
    end_sessions(f);
    assert_int_equal(put(f, "second"), HONE_OK);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_string_equal(kernel, "second");
}

static void a_server_that_is_away_is_unavailable_until_it_is_back(void **state)
{
    fixture *f = *state;
    char kernel[64], command[300];
    assert_int_equal(put(f, "first"), HONE_OK);
    snprintf(command, sizeof command, "%s stop", getenv("HONE_POSTGRESQL"));
    assert_int_equal(system(command), 0);
    if (get(f, kernel) != HONE_UNAVAILABLE) fail_msg("%s", f->err.message);
    assert_int_equal(put(f, "second"), HONE_UNAVAILABLE);
    hone_store *other = NULL;
    assert_int_equal(hone_store_open(hone_allocator_system(), f->url, &other, &f->err), HONE_UNAVAILABLE);
    snprintf(command, sizeof command, "%s start", getenv("HONE_POSTGRESQL"));
    assert_int_equal(system(command), 0);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_string_equal(kernel, "first");
    assert_int_equal(put(f, "second"), HONE_OK);
}

typedef struct losing {
    fixture *f;
    size_t count;
} losing;

static hone_status lose_and_put(hone_store *store, void *ctx, hone_error *err)
{
    const losing *l = ctx;
    hone_store_decision decisions[2] = {sample_decision(), sample_decision()};
    decisions[0].kernel = decisions[1].kernel = "half";
    hone_status status = store->ops->put_all(store, decisions, 1, NULL, err);
    if (status != HONE_OK) return status;
    end_sessions(l->f);
    decisions[0].regime = HONE_COLD;
    return store->ops->put_all(store, decisions, l->count, NULL, err);
}

static void a_transaction_whose_session_ends_leaves_nothing(void **state)
{
    fixture *f = *state;
    char kernel[64];
    for (size_t count = 1; count <= 2; count++) {
        losing l = {f, count};
        assert_int_equal(put(f, "whole"), HONE_OK);
        assert_int_equal(hone_store_transact(f->store, lose_and_put, &l, &f->err), HONE_UNAVAILABLE);
        assert_int_equal(get(f, kernel), HONE_OK);
        assert_string_equal(kernel, "whole");
    }
}

// A backend that stands still, as on a machine that swaps: the question goes to another one.
static void an_answer_that_does_not_come_is_asked_for_again(void **state)
{
    fixture *f = *state;
    char kernel[64], url[160];
    assert_int_equal(put(f, "first"), HONE_OK);
    hone_store_close(&f->store);
    snprintf(url, sizeof url, "postgresql://?schema=%s&connect_timeout=2", f->schema);
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &f->store, &f->err), HONE_OK);
    assert_int_equal(get(f, kernel), HONE_OK);
    PGresult *result = f->pq.PQexec(
        f->conn, "SELECT max(pid) FROM pg_stat_activity WHERE application_name = 'hone' AND state = 'idle'");
    const int pid = atoi(f->pq.PQgetvalue(result, 0, 0));
    f->pq.PQclear(result);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    hone_status status = get(f, kernel);
    kill(pid, SIGCONT);
    assert_int_equal(status, HONE_OK);
    assert_string_equal(kernel, "first");
}

static hone_job sample_job(void)
{
    const hone_store_key key = sample_key();
    return (hone_job){.key = key, .call = "rms_norm(f32[4,256], f32[256])", .weight = 5, .count = 1};
}

static bool count_job(void *ctx, const hone_job *job)
{
    (void)job;
    ++*(int *)ctx;
    return true;
}

static void a_job_that_was_changed_by_hand_is_set_aside(void **state)
{
    fixture *f = *state;
    const hone_job job = sample_job();
    hone_store_health health;
    size_t added = 0;
    int seen = 0;
    const hone_queue_ops *queue = f->store->ops->queue;
    assert_int_equal(queue->add(f->store, &job, 1, &added, &f->err), HONE_OK);
    assert_int_equal(added, 1);
    by_hand(f, "UPDATE job SET call = 'system(1)'");
    assert_int_equal(
        queue->visit(f->store, job.key.device, HONE_JOB_WAITING, false, 9, count_job, &seen, &f->err), HONE_OK);
    assert_int_equal(seen, 0);
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_int_equal(health.quarantined, 1);
}

static void a_user_who_may_only_select_reads(void **state)
{
    fixture *f = *state;
    char kernel[64], url[160], sql[400];
    uint64_t changes;
    assert_int_equal(put(f, "kept"), HONE_OK);
    hone_store_close(&f->store);
    snprintf(
        sql, sizeof sql,
        "CREATE ROLE only_reads LOGIN; GRANT USAGE ON SCHEMA %s TO only_reads; GRANT SELECT ON ALL TABLES IN SCHEMA %s "
        "TO only_reads",
        f->schema, f->schema);
    by_hand(f, sql);
    snprintf(url, sizeof url, "postgresql://only_reads@/postgres?schema=%s", f->schema);
    if (hone_store_open(hone_allocator_system(), url, &f->store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_int_equal(hone_store_changes(f->store, &changes, &f->err), HONE_OK);
    assert_int_equal(put(f, "other"), HONE_IO);
    assert_non_null(strstr(f->err.message, "permission denied"));
}

static void missing_rights_to_the_tables_are_named(void **state)
{
    fixture *f = *state;
    char url[160];
    hone_store *store = NULL;
    by_hand(f, "CREATE ROLE sees_nothing LOGIN");
    snprintf(url, sizeof url, "postgresql://sees_nothing@/postgres?schema=%s", f->schema);
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, &f->err), HONE_IO);
    assert_non_null(strstr(f->err.message, "permission denied"));
    assert_non_null(strstr(f->err.message, "needs USAGE on the schema and SELECT on its tables"));
}

static void a_refused_login_is_reported_in_the_servers_words(void **state)
{
    fixture *f = *state;
    hone_store *store = NULL;
    assert_int_equal(
        hone_store_open(hone_allocator_system(), "postgresql://nobody@/postgres", &store, &f->err), HONE_UNAVAILABLE);
    assert_non_null(strstr(f->err.message, "nobody"));
}

static void tables_of_version_1_are_brought_to_todays(void **state)
{
    fixture *f = *state;
    char kernel[64];
    uint64_t counts[3];
    assert_int_equal(put(f, "kept"), HONE_OK);
    hone_store_close(&f->store);
    by_hand(
        f,
        "DROP TABLE job; DROP FUNCTION hone_tell CASCADE; DELETE FROM hone_schema; INSERT INTO hone_schema VALUES(1)");
    f->store = open_one(f);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_string_equal(kernel, "kept");
    assert_int_equal(f->store->ops->queue->count(f->store, NULL, counts, &f->err), HONE_OK);
    by_hand(f, "DO $$ BEGIN IF (SELECT max(version) FROM hone_schema) <> 2 THEN RAISE 'it was not'; END IF; END $$");
}

// What others wrote ---------------------------------------------------------------------------------------------------

static void tables_of_another_application_are_left_alone(void **state)
{
    fixture *f = *state;
    hone_store *store = NULL;
    by_hand(f, "CREATE SCHEMA IF NOT EXISTS application; CREATE TABLE IF NOT EXISTS application.decision(id int)");
    assert_int_equal(
        hone_store_open(hone_allocator_system(), "postgresql://?schema=application", &store, &f->err),
        HONE_INCOMPATIBLE);
    assert_non_null(strstr(f->err.message, "another application"));
    by_hand(f, "CREATE SCHEMA IF NOT EXISTS shown; CREATE OR REPLACE VIEW shown.decision AS SELECT 1 AS id");
    assert_int_equal(
        hone_store_open(hone_allocator_system(), "postgresql://?schema=shown", &store, &f->err), HONE_INCOMPATIBLE);
    assert_non_null(strstr(f->err.message, "another application"));
    for (int i = 0; i < 2; i++) {
        by_hand(
            f, i == 0 ? "CREATE SCHEMA named; CREATE TABLE named.hone_schema(id int)"
                      : "ALTER TABLE named.hone_schema RENAME id TO version");
        assert_int_equal(
            hone_store_open(hone_allocator_system(), "postgresql://?schema=named", &store, &f->err), HONE_INCOMPATIBLE);
        assert_non_null(strstr(f->err.message, "has a table hone_schema that hone did not make"));
    }
    by_hand(f, "DROP SCHEMA named CASCADE; UPDATE hone_schema SET version = 99");
    assert_int_equal(hone_store_open(hone_allocator_system(), f->url, &store, &f->err), HONE_INCOMPATIBLE);
    assert_non_null(strstr(f->err.message, "version 99"));
}

static void a_row_that_was_changed_by_hand_is_set_aside(void **state)
{
    fixture *f = *state;
    char kernel[64];
    hone_store_health health;
    assert_int_equal(put(f, "true"), HONE_OK);
    by_hand(f, "UPDATE decision SET kernel = 'false'");
    assert_int_equal(get(f, kernel), HONE_NOT_FOUND);
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_int_equal(health.quarantined, 1);
    assert_int_equal(health.records, 0);
    assert_int_equal(put(f, "true"), HONE_OK);
    by_hand(f, "UPDATE decision SET config = '\\x7b007d', regime = 77");
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_int_equal(health.set_aside, 1);
    assert_int_equal(health.quarantined, 2);
}

// Whoever may write to the server can write a checksum, too.
static void names_that_a_terminal_would_obey_are_set_aside(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"\033[2J", "x\nhone: all is well", "\x7f"};
    hone_store_health health;
    char kernel[64];
    for (size_t i = 0; i < 4 * (sizeof names / sizeof *names); i++) {
        const char *name = names[i / 4];
        hone_store_decision decision = sample_decision();
        const char **fields[] = {&decision.kernel, &decision.platform, &decision.source, &decision.revision};
        *fields[i % 4] = name;
        assert_int_equal(f->store->ops->put_all(f->store, &decision, 1, NULL, &f->err), HONE_OK);
        assert_int_equal(get(f, kernel), HONE_NOT_FOUND);
    }
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_int_equal(health.records, 0);
    assert_int_equal(health.quarantined, 4 * (sizeof names / sizeof *names));
}

static void missing_tables_are_reported(void **state)
{
    fixture *f = *state;
    char kernel[64];
    by_hand(f, "DROP TABLE decision");
    assert_int_equal(get(f, kernel), HONE_INCOMPATIBLE);
    assert_non_null(strstr(f->err.message, "relation \"decision\" does not exist: the tables of the schema"));
    assert_null(strstr(f->err.message, "LINE 1"));
}

static void a_read_only_store_reads_and_refuses_writes(void **state)
{
    fixture *f = *state;
    char kernel[64];
    assert_int_equal(put(f, "kept"), HONE_OK);
    hone_store_close(&f->store);
    const hone_store_options options = {.struct_size = sizeof options, .read_only = true};
    assert_int_equal(hone_store_open_with(&options, f->url, &f->store, &f->err), HONE_OK);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_int_equal(put(f, "other"), HONE_IO);
    by_hand(f, "UPDATE decision SET kernel = 'false'");
    assert_int_equal(get(f, kernel), HONE_NOT_FOUND);
    by_hand(f, "DO $$ BEGIN IF (SELECT count(*) FROM decision) <> 1 THEN RAISE 'it was moved'; END IF; END $$");
}

static void urls_with_a_password_or_without_sense_are_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *url, *words;
    } cases[] = {
        {"postgresql://hone:secret@host/db", "~/.pgpass"},     {"postgresql://host/db?password=secret", "~/.pgpass"},
        {"postgresql://host/db?nonsense=1", "nonsense"},       {"postgresql://host/db?schema=", "schema="},
        {"postgresql://host/db?schema=a%20b", "schema=a%20b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_store *store = NULL;
        assert_int_equal(
            hone_store_open(hone_allocator_system(), cases[i].url, &store, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, cases[i].words));
        assert_null(strstr(f->err.message, "secret"));
    }
}

// Batches -------------------------------------------------------------------------------------------------------------

enum { BATCH = 450, TWICE = 7 }; // TWICE: stands two times in a batch

typedef struct batch {
    char keys[BATCH + 1][20];
    hone_store_decision decisions[BATCH + 1];
} batch;

static batch *make_batch(const char *kernel)
{
    batch *b = calloc(1, sizeof *b);
    assert_non_null(b);
    for (int i = 0; i <= BATCH; i++) {
        snprintf(b->keys[i], sizeof b->keys[i], "%016x", i < BATCH ? BATCH - i : TWICE);
        b->decisions[i] = sample_decision();
        b->decisions[i].key.key = b->keys[i];
        b->decisions[i].kernel = kernel;
    }
    return b;
}

static int sent, waits;
static int (*send_really)(PGconn *, const char *, int, const char *const *, const int *, const int *, int);
static int (*sync_really)(PGconn *);

static int count_sent(
    PGconn *conn,
    const char *name,
    int count,
    const char *const *values,
    const int *sizes,
    const int *formats,
    int format)
{
    sent++;
    return send_really(conn, name, count, values, sizes, formats, format);
}

static int count_waits(PGconn *conn)
{
    waits++;
    return sync_really(conn);
}

static void note_outcome(void *ctx, size_t index, hone_merge_outcome outcome, const char *reason)
{
    (void)index;
    (void)reason;
    ((int *)ctx)[outcome]++;
}

static void many_go_to_the_server_at_once(void **state)
{
    fixture *f = *state;
    hone_pq *pq = &hone_pg_connection_of(f->store)->pq;
    batch *b = make_batch("one"), *better = make_batch("two");
    hone_store_stat stat;
    int outcomes[3] = {0};
    send_really = pq->PQsendQueryPrepared;
    sync_really = pq->PQpipelineSync;
    pq->PQsendQueryPrepared = count_sent;
    pq->PQpipelineSync = count_waits;
    sent = waits = 0;
    assert_int_equal(hone_store_put_all(f->store, b->decisions, BATCH + 1, &f->err), HONE_OK);
    assert_int_equal(sent, BATCH + 1);
    assert_int_equal(waits, 3);
    // A batch of merges looks for what is stored, and ends where a key comes again.
    sent = waits = 0;
    for (int i = 0; i <= BATCH; i++)
        better->decisions[i].evidence = "{\"samples\":90}";
    assert_int_equal(
        hone_store_merge(f->store, better->decisions, BATCH + 1, note_outcome, outcomes, &f->err), HONE_OK);
    assert_int_equal(outcomes[HONE_MERGE_TAKEN], BATCH);
    assert_int_equal(outcomes[HONE_MERGE_EQUAL], 1);
    assert_int_equal(waits, 4);
    assert_int_equal(sent, BATCH + 4);
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.decisions, BATCH);
    by_hand(
        f, "DO $$ BEGIN IF (SELECT count(*) FROM decision WHERE kernel = 'two') <> 450 THEN RAISE 'not all'; END IF; "
           "END $$");
    free(b);
    free(better);
}

// libpq of before PostgreSQL 14.
static void many_are_put_without_pipelines_too(void **state)
{
    fixture *f = *state;
    batch *b = make_batch("one");
    hone_store_stat stat;
    hone_pg_connection_of(f->store)->pq.PQenterPipelineMode = NULL;
    assert_int_equal(hone_store_merge(f->store, b->decisions, BATCH + 1, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_store_put_all(f->store, b->decisions, BATCH + 1, &f->err), HONE_OK);
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.decisions, BATCH);
    free(b);
}

static void a_batch_of_which_one_is_refused_leaves_nothing(void **state)
{
    fixture *f = *state;
    batch *b = make_batch("one");
    hone_store_stat stat;
    by_hand(f, "ALTER TABLE decision ADD CONSTRAINT no_bad CHECK (kernel <> 'bad')");
    b->decisions[300].kernel = "bad";
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            i == 0 ? hone_store_put_all(f->store, b->decisions, BATCH, &f->err)
                   : hone_store_merge(f->store, b->decisions, BATCH, NULL, NULL, &f->err),
            HONE_IO);
        assert_non_null(strstr(f->err.message, "no_bad"));
        assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
        assert_int_equal(stat.decisions, 0);
    }
    free(b);
}

static void damaged_rows_in_the_way_of_a_batch_are_set_aside(void **state)
{
    fixture *f = *state;
    batch *b = make_batch("one");
    hone_store_health health;
    assert_int_equal(hone_store_put_all(f->store, b->decisions, BATCH, &f->err), HONE_OK);
    by_hand(f, "UPDATE decision SET kernel = 'false' WHERE id IN (SELECT id FROM decision ORDER BY key LIMIT 9)");
    assert_int_equal(hone_store_merge(f->store, b->decisions, BATCH, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_int_equal(health.records, BATCH);
    assert_int_equal(health.quarantined, 9);
    free(b);
}

static bool count_measured(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    ((int *)ctx)[measurement->failure != HONE_FAILURE_NONE]++;
    return true;
}

static void a_config_was_measured_or_it_failed(void **state)
{
    fixture *f = *state;
    const hone_store_key key = sample_key();
    hone_store_measurement one = sample_measurement();
    for (int i = 0; i < 4; i++) {
        int counts[2] = {0};
        one.failure = i % 2 != 0 ? HONE_FAILURE_WRONG : HONE_FAILURE_NONE;
        one.time_ns = i % 2 != 0 ? 0 : 100;
        one.reason = i % 2 != 0 ? "wrong" : NULL;
        assert_int_equal(hone_store_put_measurement(f->store, &key, &one, &f->err), HONE_OK);
        assert_int_equal(
            hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, count_measured, counts, &f->err), HONE_OK);
        assert_int_equal(counts[i % 2], 1);
        assert_int_equal(counts[1 - i % 2], 0);
    }
}

// Many at once --------------------------------------------------------------------------------------------------------

enum { WRITERS = 8, EACH = 40 };

static void *count_calls(void *ctx)
{
    fixture *f = ctx;
    hone_store *store = open_one(f);
    hone_error err;
    for (int i = 0; i < EACH; i++) {
        hone_store_invocation calls[2] = {
            {.key = sample_key(), .count = 1, .first = 5, .last = 5},
            {.key = sample_key(), .count = 1, .first = 5, .last = 5}};
        // In another order by half of them, so that they wait for each other.
        calls[i % 2].key.key = "ffffffffffffffff";
        assert_int_equal(hone_store_add_invocations(store, calls, 2, &err), HONE_OK);
    }
    hone_store_close(&store);
    return NULL;
}

static bool add_up(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    *(uint64_t *)ctx += invocation->count;
    return true;
}

static void counts_of_many_writers_add_up(void **state)
{
    fixture *f = *state;
    pthread_t threads[WRITERS];
    uint64_t sum = 0;
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_calls, f), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_INVOCATION, NULL, add_up, &sum, &f->err), HONE_OK);
    assert_int_equal(sum, 2 * WRITERS * EACH);
}

static void *merge_better_ones(void *ctx)
{
    fixture *f = ctx;
    hone_store *store = open_one(f);
    hone_error err;
    for (int i = 0; i < EACH; i++) {
        char evidence[64];
        hone_store_decision decision = sample_decision();
        decision.verified = true;
        snprintf(evidence, sizeof evidence, "{\"samples\":%d}", 1 << (i % 12));
        decision.evidence = evidence;
        decision.kernel = i % 12 == 11 ? "most" : "fewer";
        hone_status status = hone_store_merge(store, &decision, 1, NULL, NULL, &err);
        if (status != HONE_OK) fail_msg("%s", err.message);
    }
    hone_store_close(&store);
    return NULL;
}

static void the_better_of_many_writers_stays(void **state)
{
    fixture *f = *state;
    pthread_t threads[WRITERS];
    char kernel[64];
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, merge_better_ones, f), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(get(f, kernel), HONE_OK);
    assert_string_equal(kernel, "most");
}

static void *open_and_close(void *ctx)
{
    hone_store *store = open_one(ctx);
    hone_store_close(&store);
    return NULL;
}

static void many_that_come_first_make_the_tables_once(void **state)
{
    fixture *f = *state;
    pthread_t threads[WRITERS];
    snprintf(f->url, sizeof f->url, "postgresql://?schema=%s_new", f->schema);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, f), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

static void the_lease_of_a_process_that_dies_is_given_back(void **state)
{
    fixture *f = *state;
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        hone_lease lease;
        hone_error err;
        hone_store *store = NULL;
        const hone_wait wait = {.seconds = 60};
        const bool ok = hone_store_open(hone_allocator_system(), f->url, &store, &err) == HONE_OK &&
                        hone_store_lease(store, 7, &wait, &lease, &err) == HONE_OK;
        (void)!write(ready[1], &byte, ok ? 1 : 0);
        pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    hone_lease lease;
    const hone_wait none = {.seconds = 0.1}, patient = {.seconds = 60};
    assert_int_equal(hone_store_lease(f->store, 7, &none, &lease, &f->err), HONE_BUSY);
    assert_int_equal(hone_store_lease(f->store, 8, &none, &lease, &f->err), HONE_OK);
    hone_lease_leave(&lease);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(hone_store_lease(f->store, 7, &patient, &lease, &f->err), HONE_OK);
    hone_lease_leave(&lease);
    close(ready[0]);
    close(ready[1]);
}

static void schemas_of_one_database_have_leases_of_their_own(void **state)
{
    fixture *f = *state;
    const hone_wait none = {.seconds = 0};
    const uint64_t name = UINT64_MAX;
    hone_lease here, there;
    char url[112];
    snprintf(url, sizeof url, "%s_beside", f->url);
    hone_store *beside = NULL;
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &beside, &f->err), HONE_OK);
    assert_int_equal(hone_store_lease(f->store, name, &none, &here, &f->err), HONE_OK);
    assert_int_equal(hone_store_lease(f->store, name, &none, &there, &f->err), HONE_BUSY);
    assert_int_equal(hone_store_lease(beside, name, &none, &there, &f->err), HONE_OK);
    hone_lease_leave(&here);
    hone_lease_leave(&there);
    hone_store_close(&beside);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_session_that_the_server_ends_is_made_again),
        TEST(a_transaction_whose_session_ends_leaves_nothing),
        TEST(tables_of_another_application_are_left_alone),
        TEST(a_row_that_was_changed_by_hand_is_set_aside),
        TEST(names_that_a_terminal_would_obey_are_set_aside),
        TEST(missing_tables_are_reported),
        TEST(an_answer_that_does_not_come_is_asked_for_again),
        TEST(tables_of_version_1_are_brought_to_todays),
        TEST(a_job_that_was_changed_by_hand_is_set_aside),
        TEST(a_user_who_may_only_select_reads),
        TEST(missing_rights_to_the_tables_are_named),
        TEST(a_refused_login_is_reported_in_the_servers_words),
        TEST(a_read_only_store_reads_and_refuses_writes),
        TEST(urls_with_a_password_or_without_sense_are_refused),
        TEST(many_go_to_the_server_at_once),
        TEST(many_are_put_without_pipelines_too),
        TEST(a_batch_of_which_one_is_refused_leaves_nothing),
        TEST(damaged_rows_in_the_way_of_a_batch_are_set_aside),
        TEST(a_config_was_measured_or_it_failed),
        TEST(counts_of_many_writers_add_up),
        TEST(the_better_of_many_writers_stays),
        TEST(many_that_come_first_make_the_tables_once),
        TEST(the_lease_of_a_process_that_dies_is_given_back),
        TEST(schemas_of_one_database_have_leases_of_their_own),
        TEST(a_server_that_is_away_is_unavailable_until_it_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
