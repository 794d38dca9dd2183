// A store on PostgreSQL and its queue: gets and puts beside the same prepared statements by hand, claims with 100,000
// calls queued, 50 readers, and a fleet whose contests take as long as recorded ones.
//
//   tests/support/with-postgresql build/bench/bench_fleet [get-put|claims|readers]
//   ... bench_fleet simulate WORKERS CALLS SCALE <SECONDS   (lab/fleet): SECONDS: of contests, a number a line
#include "bench.h"

#include "os/os.h"
#include "queue/queue.h"
#include "store/postgresql/connection.h"
#include "store/postgresql/rows.h"
#include "store/records.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 1000, JOBS = 100000, CLAIMS = 300, READERS = 50, WORKERS = 8, KINDS = 8, BATCH = 500, MOST_TIMES = 4096 };

static const char url[] = "postgresql://?schema=bench_fleet";
static const char *const kinds[KINDS] = {
    "cuda|NVIDIA%20H100,sm_90,sms=132,l2=52428800,smem=232448",
    "cuda|NVIDIA%20H200,sm_90,sms=132,l2=62914560,smem=232448",
    "cuda|NVIDIA%20A100,sm_80,sms=108,l2=41943040,smem=166912",
    "cuda|NVIDIA%20L40S,sm_89,sms=142,l2=100663296,smem=101376",
    "cuda|NVIDIA%20L4,sm_89,sms=58,l2=50331648,smem=101376",
    "cuda|NVIDIA%20B200,sm_100,sms=148,l2=132644864,smem=232448",
    "cuda|NVIDIA%20A10,sm_86,sms=72,l2=6291456,smem=101376",
    "cuda|NVIDIA%20T4,sm_75,sms=40,l2=4194304,smem=65536"};

static void check(hone_status status, const hone_error *err)
{
    if (status == HONE_OK) return;
    fprintf(stderr, "bench_fleet: %s\n", err->message);
    exit(1);
}

static hone_store *open_store(void)
{
    hone_store *store = NULL;
    hone_error err;
    check(hone_store_open(hone_allocator_system(), url, &store, &err), &err);
    return store;
}

static hone_store_decision decision_of(int i, char key[20])
{
    snprintf(key, 20, "%016x", i);
    return (hone_store_decision){
        .key = {kinds[i % KINDS], "rms_norm", "1", key, "{\"x\":{\"shape\":[1024,4096],\"dtype\":\"float32\"}}"},
        .call = "rms_norm(f32[1024,4096], f32[4096])",
        .kernel = "avx512",
        .platform = "native",
        .config = "{\"unroll\":4,\"rows_per_task\":64,\"store\":\"cached\",\"threads\":2}",
        .source = "autotune",
        .revision = "3",
        .verified = true,
        .time_ns = 12345 + i,
        .evidence = "{\"samples\":128,\"rounds\":7,\"low_ns\":12001,\"high_ns\":12999,\"verified\":true}",
        .environment = "{\"hone\":\"0.1.0\",\"compiler\":\"gcc 12\",\"os\":\"Linux\",\"load\":0.5}"};
}

// Gets and puts -------------------------------------------------------------------------------------------------------

typedef struct by_hand {
    hone_pq pq;
    PGconn *conn;
    char ids[KEYS][HONE_SHA256_HEX_SIZE], calls[KEYS][HONE_SHA256_HEX_SIZE];
    uint64_t checksums[KEYS];
    hone_store *store;
    uint64_t next;
} by_hand;

static bool see(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    *(double *)ctx += decision->time_ns;
    return true;
}

static int get_hone(void *ctx, uint64_t count)
{
    by_hand *b = ctx;
    double sum = 0;
    char key[20];
    for (uint64_t i = 0; i < count; i++) {
        const hone_store_decision probe = decision_of((int)(b->next++ % KEYS), key);
        if (hone_store_get(b->store, HONE_RECORD_DECISION, &probe.key, HONE_WARM, see, &sum, NULL) != HONE_OK) return 1;
    }
    return !(sum > 0);
}

// Every column is read; texts are used where the result has them.
static int get_by_hand(void *ctx, uint64_t count)
{
    by_hand *b = ctx;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        const char *id = b->ids[b->next++ % KEYS];
        const int size = HONE_SHA256_HEX_SIZE - 1, format = 1;
        PGresult *result =
            b->pq.PQsendQueryPrepared(b->conn, "get", 1, &id, &size, &format, 1) ? b->pq.PQgetResult(b->conn) : NULL;
        if (result == NULL || b->pq.PQntuples(result) != 1) return 1;
        for (int column = 0; column < 17; column++)
            sum += (uint64_t)b->pq.PQgetlength(result, 0, column) + (unsigned char)*b->pq.PQgetvalue(result, 0, column);
        b->pq.PQclear(result);
        while ((result = b->pq.PQgetResult(b->conn)) != NULL)
            b->pq.PQclear(result);
    }
    return sum == 0;
}

static int put_hone(void *ctx, uint64_t count)
{
    by_hand *b = ctx;
    char key[20];
    for (uint64_t i = 0; i < count; i++) {
        const hone_store_decision one = decision_of((int)(b->next++ % KEYS), key);
        if (hone_store_put(b->store, &one, NULL) != HONE_OK) return 1;
    }
    return 0;
}

static int put_by_hand(void *ctx, uint64_t count)
{
    by_hand *b = ctx;
    char key[20];
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = b->next++ % KEYS;
        const hone_store_decision one = decision_of((int)at, key);
        hone_pg_values values = {.count = 0};
        hone_row row;
        hone_row_of(&hone_row_decision, &one, &row);
        hone_pg_add_text(&values, b->ids[at]);
        hone_pg_add_text(&values, b->calls[at]);
        hone_pg_add_cells(&values, &row);
        hone_pg_add_integer(&values, (int64_t)b->checksums[at]);
        if (!b->pq.PQsendQueryPrepared(b->conn, "put", values.count, values.texts, values.sizes, values.binary, 1))
            return 1;
        for (PGresult *result; (result = b->pq.PQgetResult(b->conn)) != NULL; b->pq.PQclear(result))
            if (b->pq.PQresultStatus(result) != PGRES_COMMAND_OK) return 1;
    }
    return 0;
}

static void prepare(by_hand *b, const char *name, hone_pg_verb verb)
{
    hone_buffer sql;
    hone_buffer_init(&sql, hone_allocator_system());
    hone_pg_write_sql(HONE_PG_DECISION, verb, &sql);
    if (!b->pq.PQsendPrepare(b->conn, name, hone_buffer_string(&sql), 0, NULL)) exit(1);
    for (PGresult *result; (result = b->pq.PQgetResult(b->conn)) != NULL; b->pq.PQclear(result))
        if (b->pq.PQresultStatus(result) != PGRES_COMMAND_OK) exit(1);
    hone_buffer_deinit(&sql);
}

static void bench_get_put(void)
{
    static by_hand b;
    static const char *const nothing[] = {NULL};
    const hone_allocator allocator = hone_allocator_system();
    hone_error err;
    hone_buffer scratch;
    bench_row row;
    char key[20];
    hone_buffer_init(&scratch, allocator);
    b.store = open_store();
    check(hone_pq_open(&allocator, &b.pq, &err), &err);
    b.conn = b.pq.PQconnectdbParams(nothing, nothing, 0);
    b.pq.PQclear(b.pq.PQexec(b.conn, "SET search_path TO bench_fleet"));
    for (int i = 0; i < KEYS; i++) {
        const hone_store_decision one = decision_of(i, key);
        hone_row cells;
        hone_row_of(&hone_row_decision, &one, &cells);
        hone_pg_id(&cells, hone_row_decision.key_count, &scratch, b.ids[i]);
        hone_pg_call_id(&one.key, &scratch, b.calls[i]);
        b.checksums[i] = hone_row_checksum(&cells);
        check(hone_store_put(b.store, &one, &err), &err);
    }
    prepare(&b, "get", HONE_PG_GET);
    prepare(&b, "put", HONE_PG_PUT);
    if (bench_compare((bench_side){get_hone, &b}, (bench_side){get_by_hand, &b}, 0, 5e7, 41, &row) != 0) exit(1);
    bench_print("get of a store on PostgreSQL", "libpq by hand", &row, "at most 1.3");
    if (bench_compare((bench_side){put_hone, &b}, (bench_side){put_by_hand, &b}, 0, 5e7, 41, &row) != 0) exit(1);
    bench_print("put into a store on PostgreSQL", "libpq by hand", &row, "at most 1.3");
    hone_store_close(&b.store);
    b.pq.PQfinish(b.conn);
    hone_buffer_deinit(&scratch);
}

// Claims --------------------------------------------------------------------------------------------------------------

static void fill(hone_store *store, int count)
{
    static hone_job jobs[BATCH];
    static char keys[BATCH][20];
    hone_error err;
    uint64_t removed;
    check(store->ops->queue->clear(store, NULL, &removed, &err), &err);
    for (int begin = 0; begin < count; begin += BATCH) {
        const int size = count - begin < BATCH ? count - begin : BATCH;
        size_t added;
        for (int i = 0; i < size; i++) {
            const int at = begin + i;
            snprintf(keys[i], sizeof keys[i], "%016x", at);
            // As calls are made: a few make most of the time.
            jobs[i] = (hone_job){
                .key = {kinds[at % KINDS], "rms_norm", "1", keys[i], NULL},
                .call = "rms_norm(f32[1024,4096], f32[4096])",
                .count = 1 + (uint64_t)(1e6 / (1 + at / KINDS)),
                .weight = 1e9 / (1 + at / KINDS)};
        }
        check(hone_queue_add(store, jobs, (size_t)size, &added, &err), &err);
    }
}

static int by_number(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void bench_claims(void)
{
    static double times[CLAIMS];
    hone_store *store = open_store();
    hone_error err;
    hone_queue queue;
    fill(store, JOBS);
    check(hone_queue_init(&queue, store, kinds, 1, &err), &err);
    for (int i = 0; i < CLAIMS; i++) {
        hone_job_claim claim;
        const uint64_t start = bench_now_ns();
        check(hone_queue_claim(&queue, &claim, &err), &err);
        times[i] = (double)(bench_now_ns() - start);
        check(hone_job_claim_end(&claim, HONE_JOB_DONE, 0, NULL, &err), &err);
    }
    qsort(times, CLAIMS, sizeof *times, by_number);
    double low, high;
    bench_interval(times, CLAIMS, &low, &high);
    bench_print_absolute(
        "a claim with 100,000 calls queued", "5 ms", times[CLAIMS / 2], 5e6, low, high, "at most 5 ms");
    printf("{\"name\":\"the slowest of a hundred claims\",\"hone_ns\":%.0f}\n", times[CLAIMS * 99 / 100]);
    hone_store_close(&store);
}

// Readers -------------------------------------------------------------------------------------------------------------

typedef struct reader {
    pthread_t thread;
    uint64_t until_ns, gets;
    double slowest_ns;
} reader;

static void *read_on(void *ctx)
{
    reader *r = ctx;
    hone_store *store = open_store();
    char key[20];
    double sum = 0;
    for (uint64_t now = bench_now_ns(); now < r->until_ns; r->gets++) {
        const hone_store_decision probe = decision_of((int)(r->gets * 7 % KEYS), key);
        hone_error err;
        check(hone_store_get(store, HONE_RECORD_DECISION, &probe.key, HONE_WARM, see, &sum, &err), &err);
        const uint64_t then = bench_now_ns();
        if ((double)(then - now) > r->slowest_ns) r->slowest_ns = (double)(then - now);
        now = then;
    }
    hone_store_close(&store);
    return NULL;
}

typedef struct claimer {
    pthread_t thread;
    uint64_t until_ns, claims;
    const char *kind;
} claimer;

// A worker whose contests take 10 ms, and which stores what it decides.
static void *claim_on(void *ctx)
{
    claimer *w = ctx;
    hone_store *store = open_store();
    hone_queue queue;
    hone_error err;
    char key[20];
    check(hone_queue_init(&queue, store, &w->kind, 1, &err), &err);
    for (; bench_now_ns() < w->until_ns; w->claims++) {
        hone_job_claim claim;
        check(hone_queue_claim(&queue, &claim, &err), &err);
        hone_os_sleep_ns(10000000);
        const hone_store_decision one = decision_of((int)(w->claims % KEYS), key);
        check(hone_store_put(store, &one, &err), &err);
        check(hone_job_claim_end(&claim, HONE_JOB_DONE, 0, NULL, &err), &err);
    }
    hone_store_close(&store);
    return NULL;
}

static void bench_readers(int workers)
{
    static reader readers[READERS];
    static claimer claimers[WORKERS];
    uint64_t claims = 0;
    hone_store *store = open_store();
    char key[20];
    uint64_t gets = 0;
    double slowest = 0;
    const double seconds = 5;
    for (int i = 0; i < KEYS; i++) {
        hone_error err;
        const hone_store_decision one = decision_of(i, key);
        check(hone_store_put(store, &one, &err), &err);
    }
    if (workers > 0) fill(store, JOBS);
    for (int i = 0; i < workers; i++) {
        claimers[i] = (claimer){.until_ns = bench_now_ns() + (uint64_t)(seconds * 1e9), .kind = kinds[i % KINDS]};
        pthread_create(&claimers[i].thread, NULL, claim_on, &claimers[i]);
    }
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){.gets = 0};
        readers[i].until_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
        pthread_create(&readers[i].thread, NULL, read_on, &readers[i]);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        gets += readers[i].gets;
        if (readers[i].slowest_ns > slowest) slowest = readers[i].slowest_ns;
    }
    for (int i = 0; i < workers; i++) {
        pthread_join(claimers[i].thread, NULL);
        claims += claimers[i].claims;
    }
    printf(
        "{\"name\":\"50 readers, %d "
        "workers\",\"gets_per_second\":%.0f,\"slowest_ms\":%.1f,\"calls_per_second\":%.0f}\n",
        workers, (double)gets / seconds, slowest / 1e6, (double)claims / seconds);
    hone_store_close(&store);
}

// A fleet -------------------------------------------------------------------------------------------------------------

typedef struct fleet {
    const double *seconds; // of contests
    size_t count;
    double scale;
    uint64_t start_ns;
} fleet;

typedef struct worker {
    pthread_t thread;
    const fleet *fleet;
    const char *kind;
    uint64_t calls;
    double claiming_ns, working_ns, longest_wait_ns, slowest_claim_ns;
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    const fleet *f = w->fleet;
    hone_store *store = open_store();
    hone_queue queue;
    hone_error err;
    check(hone_queue_init(&queue, store, &w->kind, 1, &err), &err);
    for (;;) {
        hone_job_claim claim;
        const uint64_t start = bench_now_ns();
        const hone_status status = hone_queue_claim(&queue, &claim, &err);
        if (status == HONE_NOT_FOUND) break;
        check(status, &err);
        const uint64_t claimed = bench_now_ns();
        const uint64_t number = strtoull(claim.job.key.key, NULL, 16);
        char key[20];
        hone_store_decision one = decision_of((int)number, key);
        hone_os_sleep_ns((uint64_t)(f->seconds[number / KINDS % f->count] / f->scale * 1e9));
        check(hone_store_put(store, &one, &err), &err);
        check(hone_job_claim_end(&claim, HONE_JOB_DONE, 0, NULL, &err), &err);
        w->calls++;
        w->claiming_ns += (double)(claimed - start);
        w->working_ns += (double)(bench_now_ns() - claimed);
        if ((double)(claimed - start) > w->slowest_claim_ns) w->slowest_claim_ns = (double)(claimed - start);
        if ((double)(claimed - f->start_ns) > w->longest_wait_ns) w->longest_wait_ns = (double)(claimed - f->start_ns);
    }
    hone_store_close(&store);
    return NULL;
}

static int simulate(int workers, int calls, double scale)
{
    static double seconds[MOST_TIMES];
    fleet f = {.seconds = seconds, .scale = scale};
    while (f.count < MOST_TIMES && scanf("%lf", &seconds[f.count]) == 1)
        f.count++;
    worker *all = calloc((size_t)workers, sizeof *all);
    if (all == NULL || f.count == 0) return 1;
    hone_store *store = open_store();
    fill(store, calls);
    f.start_ns = bench_now_ns();
    for (int i = 0; i < workers; i++) {
        all[i] = (worker){.fleet = &f, .kind = kinds[i % KINDS]};
        pthread_create(&all[i].thread, NULL, work, &all[i]);
    }
    worker sum = {.calls = 0};
    for (int i = 0; i < workers; i++) {
        pthread_join(all[i].thread, NULL);
        sum.calls += all[i].calls;
        sum.claiming_ns += all[i].claiming_ns;
        sum.working_ns += all[i].working_ns;
        if (all[i].longest_wait_ns > sum.longest_wait_ns) sum.longest_wait_ns = all[i].longest_wait_ns;
        if (all[i].slowest_claim_ns > sum.slowest_claim_ns) sum.slowest_claim_ns = all[i].slowest_claim_ns;
    }
    const double took = (double)(bench_now_ns() - f.start_ns) * 1e-9;
    double contests = 0;
    for (int i = 0; i < calls; i++)
        contests += seconds[(size_t)(i / KINDS) % f.count];
    printf(
        "{\"workers\":%d,\"calls\":%llu,\"scale\":%g,\"seconds\":%.1f,\"calls_per_second\":%.0f,\"contest_seconds\":%."
        "0f,"
        "\"ideal_seconds\":%.1f,\"claim_ms\":%.2f,\"slowest_claim_ms\":%.1f,\"longest_wait_seconds\":%.1f}\n",
        workers, (unsigned long long)sum.calls, scale, took, (double)sum.calls / took, contests,
        contests / scale / workers, sum.claiming_ns / (double)sum.calls / 1e6, sum.slowest_claim_ns / 1e6,
        sum.longest_wait_ns * 1e-9);
    hone_store_close(&store);
    free(all);
    return sum.calls == (uint64_t)calls ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (getenv("PGHOST") == NULL) {
        fprintf(stderr, "bench_fleet: run it under tests/support/with-postgresql\n");
        return 77;
    }
    if (strcmp(what, "simulate") == 0) return argc == 5 ? simulate(atoi(argv[2]), atoi(argv[3]), atof(argv[4])) : 2;
    if (what[0] == '\0' || strcmp(what, "get-put") == 0) bench_get_put();
    if (what[0] == '\0' || strcmp(what, "claims") == 0) bench_claims();
    if (what[0] == '\0' || strcmp(what, "readers") == 0) {
        bench_readers(0);
        bench_readers(WORKERS);
    }
    return 0;
}
