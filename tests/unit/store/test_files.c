// What only a store in a file can do: outlive the process, be shared, be damaged, be somebody else's.
#include "hone/store.h"

#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

typedef struct fixture {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE];
    char url[TEMPORARY_PATH_SIZE + 16];
    hone_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    snprintf(f->path, sizeof f->path, "%s/store.db", f->folder.path);
    snprintf(f->url, sizeof f->url, "sqlite:%s", f->path);
    return unsetenv("HONE_STORE_SYNC");
}

static int tear_down(void **state)
{
    fixture *f = *state;
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

static hone_store *open_store(fixture *f)
{
    hone_store *store = NULL;
    if (hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return store;
}

static void assert_ok(fixture *f, hone_status status)
{
    if (status != HONE_OK) fail_msg("%s: %s", hone_status_name(status), f->err.message);
}

static hone_status try_open(fixture *f, const char *url)
{
    hone_store *store = NULL;
    hone_status status = hone_store_open(hone_allocator_system(), url, &store, &f->err);
    assert_true((status == HONE_OK) == (store != NULL));
    hone_store_close(&store);
    return status;
}

static void make_store(fixture *f)
{
    hone_store *store = open_store(f);
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    put.key.key = "1111111111111111";
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    hone_store_close(&store);
}

// Runs SQL behind hone's back.
static void run_sql(fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t read_file(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t got = fread(bytes, 1, size, file);
    fclose(file);
    return got;
}

// Opens and expects a refusal that leaves every byte of the file as it was.
static void assert_refused_and_left(fixture *f, hone_status expected, const char *words)
{
    enum { LIMIT = 1 << 20 };
    char *before = malloc(LIMIT), *after = malloc(LIMIT);
    assert_true(before != NULL && after != NULL);
    size_t size = read_file(f->path, before, LIMIT);
    assert_int_equal(try_open(f, f->url), expected);
    assert_non_null(strstr(f->err.message, f->path));
    assert_non_null(strstr(f->err.message, words));
    assert_int_equal(read_file(f->path, after, LIMIT), size);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static bool ignore_decision(void *ctx, const hone_store_record *record)
{
    (void)ctx;
    (void)record;
    return true;
}

static bool count_decision(void *ctx, const hone_store_record *record)
{
    (void)record;
    ++*(size_t *)ctx;
    return true;
}

static size_t count_decisions(hone_store *store)
{
    size_t count = 0;
    assert_int_equal(hone_store_scan(store, HONE_RECORD_DECISION, NULL, count_decision, &count, NULL), HONE_OK);
    return count;
}

// URLs ----------------------------------------------------------------------------------------------------------------

static void urls_that_cannot_be_opened_are_refused_by_name(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *url;
        hone_status status;
        const char *words;
    } cases[] = {
        {"json:", HONE_INVALID_ARGUMENT, "no path"},
        {"postgres://host/db", HONE_INVALID_ARGUMENT, "postgresql://USER@HOST/DATABASE"},
        {"/tmp/store.db", HONE_INVALID_ARGUMENT, "sqlite:PATH"},
        {"", HONE_INVALID_ARGUMENT, "sqlite:PATH"},
        {"sqlite:", HONE_INVALID_ARGUMENT, "no path"},
        {"memory:x", HONE_INVALID_ARGUMENT, "alone"},
        {NULL, HONE_INVALID_ARGUMENT, "url is NULL"},
        {"sqlite:/tmp/a\nb", HONE_INVALID_ARGUMENT, "control character as byte 13"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(try_open(f, cases[i].url), cases[i].status);
        assert_non_null(strstr(f->err.message, cases[i].words));
    }
}

static void urls_and_paths_are_bounded(void **state)
{
    fixture *f = *state;
    char url[5000];
    memset(url, 'x', sizeof url);
    memcpy(url, "sqlite:", 7);
    url[sizeof url - 1] = '\0';
    assert_int_equal(try_open(f, url), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "too long"));
    url[600] = '\0';
    assert_int_equal(try_open(f, url), HONE_IO);
    assert_non_null(strstr(f->err.message, "too long"));
}

static void a_store_says_where_it_is(void **state)
{
    fixture *f = *state;
    hone_store *store = open_store(f);
    assert_string_equal(hone_store_url(store), f->url);
    hone_store_close(&store);
    assert_null(store);
    hone_store_close(&store);
}

static void a_path_is_a_path_whatever_it_looks_like(void **state)
{
    fixture *f = *state;
    char old[TEMPORARY_PATH_SIZE];
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(f->folder.path), 0);
    assert_int_equal(try_open(f, "sqlite::memory:"), HONE_OK);
    assert_int_equal(access(":memory:", F_OK), 0);
    assert_int_equal(try_open(f, "sqlite:file:x?mode=memory"), HONE_OK);
    assert_int_equal(access("file:x?mode=memory", F_OK), 0);
    assert_int_equal(chdir(old), 0);
}

static void folders_are_made(void **state)
{
    fixture *f = *state;
    snprintf(f->url, sizeof f->url, "sqlite:%s/a/b/c.db", f->folder.path);
    assert_int_equal(try_open(f, f->url), HONE_OK);
}

static void folders_pipes_and_devices_are_no_stores(void **state)
{
    fixture *f = *state;
    char pipe[TEMPORARY_PATH_SIZE];
    snprintf(pipe, sizeof pipe, "%s/pipe", f->folder.path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    const char *const paths[] = {f->folder.path, pipe, "/dev/null", "/dev/zero"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(f->url, sizeof f->url, "sqlite:%s", paths[i]);
        assert_int_equal(try_open(f, f->url), HONE_IO);
        assert_non_null(strstr(f->err.message, paths[i]));
        assert_true(f->err.system_code != 0);
    }
}

static void the_sync_level_is_normal_or_full(void **state)
{
    fixture *f = *state;
    assert_int_equal(setenv("HONE_STORE_SYNC", "full", 1), 0);
    assert_int_equal(try_open(f, f->url), HONE_OK);
    assert_int_equal(setenv("HONE_STORE_SYNC", "sometimes", 1), 0);
    assert_int_equal(try_open(f, f->url), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "sometimes"));
    unsetenv("HONE_STORE_SYNC");
}

// Files ---------------------------------------------------------------------------------------------------------------

static void a_second_open_finds_what_the_first_put(void **state)
{
    fixture *f = *state;
    make_store(f);
    hone_store *store = open_store(f);
    assert_int_equal(count_decisions(store), 2);
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
    assert_true(stat.bytes >= 4096);
    hone_store_close(&store);
}

static void a_newer_schema_is_refused_and_left(void **state)
{
    fixture *f = *state;
    make_store(f);
    run_sql(f, "PRAGMA user_version=6; PRAGMA journal_mode=DELETE;");
    assert_refused_and_left(f, HONE_INCOMPATIBLE, "schema is 6");
}

static void another_database_is_refused_and_left(void **state)
{
    fixture *f = *state;
    run_sql(f, "CREATE TABLE theirs(x); PRAGMA user_version=1;");
    assert_refused_and_left(f, HONE_INCOMPATIBLE, "something else");
}

static void an_empty_file_becomes_a_store(void **state)
{
    fixture *f = *state;
    write_file(f->path, "", 0);
    make_store(f);
}

// Schemas -------------------------------------------------------------------------------------------------------------

static void copy_golden(fixture *f, const char *name)
{
    enum { LIMIT = 1 << 20 };
    char path[TEMPORARY_PATH_SIZE];
    char *bytes = malloc(LIMIT);
    assert_non_null(bytes);
    snprintf(path, sizeof path, "%s/golden/store/%s", HONE_TEST_DATA, name);
    write_file(f->path, bytes, read_file(path, bytes, LIMIT));
    free(bytes);
}

typedef struct golden {
    hone_store_decision warm, cold;
    int found;
} golden;

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool compare_golden(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *found = record->decision;
    golden *expected = ctx;
    const hone_store_decision *want = expected->found++ == 0 ? &expected->warm : &expected->cold;
    assert_true(same(found->key.key, want->key.key) && same(found->key.spec, want->key.spec));
    assert_true(same(found->call, want->call) && same(found->config, want->config));
    assert_true(same(found->evidence, want->evidence) && same(found->environment, want->environment));
    assert_true(found->regime == want->regime && found->verified == want->verified);
    assert_true(found->time_ns == want->time_ns);
    return true;
}

// What stands in every golden file.
static void assert_golden(fixture *f, uint32_t schema, uint64_t foreigns)
{
    hone_store *store = open_store(f);
    golden expected = {.warm = sample_decision(), .cold = sample_decision()};
    expected.cold.key.key = "1111111111111111";
    expected.cold.regime = HONE_COLD;
    expected.cold.time_ns = 2620;
    expected.cold.verified = false;
    expected.cold.key.spec = expected.cold.call = expected.cold.evidence = expected.cold.environment = NULL;
    assert_int_equal(hone_store_scan(store, HONE_RECORD_DECISION, NULL, compare_golden, &expected, &f->err), HONE_OK);
    assert_int_equal(expected.found, 2);
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.schema, schema);
    assert_true(stat.measurements == 1 && stat.failures == 1 && stat.invocations == 1 && stat.aliases == 1);
    assert_int_equal(stat.foreigns, foreigns);
    hone_store_close(&store);
}

// A measurement and a failure of which it is known when and with what they were measured.
static bool count_known(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    assert_true(same(measurement->environment, "{\"hone\":\"0.1.0\"}"));
    assert_true(same(measurement->measured, "2026-11-20T12:34:56Z"));
    ++*(uint32_t *)ctx;
    return true;
}

// What was measured before schema 3.
static bool count_unknown(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    assert_true(measurement->environment == NULL && measurement->measured == NULL);
    ++*(uint32_t *)ctx;
    return true;
}

// And its samples, which came with schema 5; a failure has none.
static bool count_sampled(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    const bool passed = measurement->failure == HONE_FAILURE_NONE;
    assert_true(same(measurement->samples_ns, passed ? "[99.5,101,100]" : NULL));
    return count_known(ctx, record);
}

static uint32_t count_measured(fixture *f, bool (*visit)(void *ctx, const hone_store_record *record))
{
    hone_store *store = open_store(f);
    const hone_store_key key = sample_key();
    uint32_t count = 0;
    if (hone_store_scan(store, HONE_RECORD_MEASUREMENT, &key, visit, &count, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    hone_store_close(&store);
    return count;
}

static void every_older_schema_is_migrated_with_all_that_it_holds(void **state)
{
    fixture *f = *state;
    copy_golden(f, "schema_1.db");
    assert_golden(f, 5, 0);
    hone_store *store = open_store(f);
    hone_store_foreign foreign = sample_foreign();
    assert_int_equal(hone_store_put_foreign(store, &foreign, 1, &f->err), HONE_OK);
    hone_store_close(&store);
    assert_golden(f, 5, 1);
    copy_golden(f, "schema_2.db");
    assert_golden(f, 5, 1);
    assert_int_equal(count_measured(f, count_unknown), 2);
    copy_golden(f, "schema_3.db");
    assert_golden(f, 5, 1);
    assert_int_equal(count_measured(f, count_known), 2);
    copy_golden(f, "schema_4.db");
    assert_golden(f, 5, 1);
    assert_int_equal(count_measured(f, count_known), 2);
}

static void a_damaged_decision_is_set_aside_by_a_migration(void **state)
{
    fixture *f = *state;
    copy_golden(f, "schema_3.db");
    run_sql(f, "UPDATE decision SET time_ns = time_ns + 1 WHERE regime = 1");
    hone_store *store = open_store(f);
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
    assert_true(stat.decisions == 1 && stat.quarantined == 1);
    hone_store_close(&store);
}

static void a_file_of_this_schema_reads_as_it_was_written(void **state)
{
    fixture *f = *state;
    copy_golden(f, "schema_5.db");
    assert_golden(f, 5, 1);
    assert_int_equal(count_measured(f, count_sampled), 2);
}

static void a_migration_that_fails_leaves_the_older_schema(void **state)
{
    fixture *f = *state;
    copy_golden(f, "schema_1.db");
    run_sql(f, "CREATE TABLE quarantine(x)");
    assert_int_equal(try_open(f, f->url), HONE_IO);
    run_sql(f, "DROP TABLE quarantine; CREATE TABLE foreign_config(x); DROP TABLE foreign_config");
    assert_golden(f, 5, 0);
}

static void assert_read_as_it_is(
    fixture *f,
    const char *file,
    uint32_t schema,
    uint64_t foreigns,
    bool (*visit)(void *ctx, const hone_store_record *record))
{
    (void)remove(f->path);
    copy_golden(f, file);
    assert_int_equal(chmod(f->folder.path, 0777), 0);
    assert_int_equal(chmod(f->path, 0444), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
        assert_golden(f, schema, foreigns);
        assert_int_equal(count_measured(f, visit), 2);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void an_older_store_that_cannot_be_written_is_read(void **state)
{
    fixture *f = *state;
    assert_read_as_it_is(f, "schema_1.db", 1, 0, count_unknown);
    assert_read_as_it_is(f, "schema_3.db", 3, 1, count_known);
    assert_read_as_it_is(f, "schema_4.db", 4, 1, count_known);
}

// Damage --------------------------------------------------------------------------------------------------------------

// What a store told and what stands in its quarantine.
typedef struct notices {
    size_t told, quarantined;
    char message[1024], record[1024], reason[128], kind[64];
} notices;

static void take_notice(void *ctx, int level, const char *message)
{
    notices *n = ctx;
    assert_int_equal(level, 1);
    n->told++;
    snprintf(n->message, sizeof n->message, "%s", message);
}

static hone_store *open_told(fixture *f, notices *n)
{
    hone_store *store = NULL;
    const hone_store_options options = {.struct_size = sizeof options, .log = take_notice, .log_ctx = n};
    if (hone_store_open_with(&options, f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return store;
}

static bool note_quarantined(void *ctx, const hone_store_record *record)
{
    const hone_store_quarantined *quarantined = record->quarantined;
    notices *n = ctx;
    n->quarantined++;
    snprintf(n->kind, sizeof n->kind, "%s", quarantined->kind);
    snprintf(n->record, sizeof n->record, "%s", quarantined->record);
    snprintf(n->reason, sizeof n->reason, "%s", quarantined->reason);
    assert_true(quarantined->found > 1e9);
    return true;
}

static void look_at_quarantine(fixture *f, hone_store *store, notices *n)
{
    n->quarantined = 0;
    assert_ok(f, hone_store_scan(store, HONE_RECORD_QUARANTINED, NULL, note_quarantined, n, &f->err));
}

static void a_damaged_decision_is_set_aside_reported_once_and_a_miss(void **state)
{
    fixture *f = *state;
    notices n = {0};
    make_store(f);
    run_sql(f, "UPDATE decision SET kernel = 'openblas' WHERE key = '0123456789abcdef'");
    hone_store *store = open_told(f, &n);
    hone_store_key key = sample_key();
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, ignore_decision, NULL, &f->err),
            HONE_NOT_FOUND);
    assert_int_equal(n.told, 1);
    assert_non_null(strstr(n.message, f->path));
    assert_non_null(strstr(n.message, "decision record"));
    assert_non_null(strstr(n.message, "checksum"));
    look_at_quarantine(f, store, &n);
    assert_int_equal(n.quarantined, 1);
    assert_string_equal(n.kind, "decision");
    assert_string_equal(n.reason, "does not match its checksum");
    assert_non_null(strstr(n.record, "\"kernel\":\"openblas\",\"platform\":\"native\""));
    assert_int_equal(count_decisions(store), 1);
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    assert_int_equal(count_decisions(store), 2);
    assert_int_equal(hone_store_clear_quarantine(store, &f->err), HONE_OK);
    look_at_quarantine(f, store, &n);
    assert_int_equal(n.quarantined, 0);
    hone_store_close(&store);
}

static void every_column_is_under_the_checksum(void **state)
{
    fixture *f = *state;
    static const char *const changes[] = {
        "device = device || 'x'", "regime = 1 - regime", "spec = NULL",     "call = upper(call)",
        "platform = 'cuda'",      "config = '{}'",       "source = NULL",   "revision = '2'",
        "verified = 0",           "time_ns = 1",         "evidence = '{}'", "environment = ''",
        "checksum = checksum+1",  "kernel = x'00ff'",    "key = x'c328'",   "device = CAST(x'c328' AS TEXT)",
        "checksum = 'text'",      "time_ns = 'many'",    "regime = 77",     "verified = 9e99"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char sql[200];
        notices n = {0};
        make_store(f);
        snprintf(sql, sizeof sql, "UPDATE decision SET %s WHERE key = '0123456789abcdef'", changes[i]);
        run_sql(f, sql);
        hone_store *store = open_told(f, &n);
        assert_int_equal(count_decisions(store), 1);
        assert_int_equal(count_decisions(store), 1);
        look_at_quarantine(f, store, &n);
        assert_int_equal(n.told, 1);
        assert_int_equal(n.quarantined, 1);
        hone_store_close(&store);
        assert_int_equal(remove(f->path), 0);
    }
}

// One record of each kind.
static void fill_store(fixture *f)
{
    hone_store *store = open_store(f);
    hone_store_decision decision = sample_decision();
    hone_store_measurement measurement = sample_measurement();
    hone_store_invocation invocation = sample_invocation();
    hone_store_alias alias = sample_alias();
    hone_store_foreign foreign = sample_foreign();
    assert_int_equal(hone_store_put(store, &decision, &f->err), HONE_OK);
    assert_int_equal(hone_store_put_measurement(store, &decision.key, &measurement, &f->err), HONE_OK);
    measurement.kernel = "avx2";
    measurement.failure = HONE_FAILURE_CRASH;
    assert_int_equal(hone_store_put_measurement(store, &decision.key, &measurement, &f->err), HONE_OK);
    assert_ok(f, hone_store_add_invocations(store, &invocation, 1, &f->err));
    assert_int_equal(hone_store_put_alias(store, &alias, &f->err), HONE_OK);
    assert_int_equal(hone_store_put_foreign(store, &foreign, 1, &f->err), HONE_OK);
    hone_store_close(&store);
}

static void verify_sets_all_kinds_of_damaged_records_aside(void **state)
{
    fixture *f = *state;
    notices n = {0};
    hone_store_health health;
    fill_store(f);
    hone_store *store = open_told(f, &n);
    assert_ok(f, hone_store_verify(store, &health, &f->err));
    assert_true(health.records == 6 && health.set_aside == 0 && health.quarantined == 0);
    hone_store_close(&store);
    run_sql(
        f, "UPDATE decision SET time_ns = 1; UPDATE measurement SET time_ns = 1; UPDATE failure SET reason = 'x';"
           "UPDATE invocation SET count = 1000000; UPDATE alias SET key = 'x'; UPDATE foreign_config SET text = '2'");
    store = open_told(f, &n);
    assert_ok(f, hone_store_verify(store, &health, &f->err));
    assert_true(health.records == 0 && health.set_aside == 6 && health.quarantined == 6);
    assert_int_equal(n.told, 6);
    assert_ok(f, hone_store_verify(store, &health, &f->err));
    assert_true(health.records == 0 && health.set_aside == 0 && health.quarantined == 6);
    hone_store_close(&store);
    run_sql(f, "UPDATE quarantine SET reason = 'x' WHERE kind = 'alias'");
    store = open_told(f, &n);
    assert_ok(f, hone_store_verify(store, &health, &f->err));
    assert_true(health.set_aside == 1 && health.quarantined == 5);
    hone_store_close(&store);
}

static void putting_a_record_sets_the_damaged_one_aside(void **state)
{
    fixture *f = *state;
    notices n = {0};
    fill_store(f);
    run_sql(f, "UPDATE decision SET time_ns = 1; UPDATE invocation SET count = 1000000");
    hone_store *store = open_told(f, &n);
    hone_store_invocation invocation = sample_invocation();
    hone_store_decision decision = sample_decision();
    assert_ok(f, hone_store_add_invocations(store, &invocation, 1, &f->err));
    assert_ok(f, hone_store_merge(store, &decision, 1, NULL, NULL, &f->err));
    hone_store_health health;
    assert_ok(f, hone_store_verify(store, &health, &f->err));
    assert_true(health.records == 6 && health.set_aside == 0 && health.quarantined == 2);
    hone_store_close(&store);
}

static void the_quarantine_is_bounded(void **state)
{
    fixture *f = *state;
    notices n = {0};
    make_store(f);
    run_sql(
        f, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
           " INSERT INTO alias SELECT 's', 'o', i, NULL, NULL, 'a', '1', 'k', NULL, 0 FROM n");
    hone_store *store = open_told(f, &n);
    hone_store_health health;
    assert_ok(f, hone_store_verify(store, &health, &f->err));
    assert_true(health.records == 2 && health.set_aside == 1200 && health.quarantined == 1000);
    hone_store_close(&store);
}

static void damage_that_cannot_be_set_aside_is_skipped_and_reported_once(void **state)
{
    fixture *f = *state;
    notices n = {0};
    make_store(f);
    run_sql(f, "UPDATE decision SET kernel = 'x' WHERE key = '0123456789abcdef'");
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(f->path, &other), SQLITE_OK);
    hone_store *store = open_told(f, &n);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(count_decisions(store), 1);
    assert_int_equal(n.told, 1);
    assert_non_null(strstr(n.message, "passed over"));
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(count_decisions(store), 1);
    look_at_quarantine(f, store, &n);
    assert_int_equal(n.quarantined, 1);
    hone_store_close(&store);
}

// Other processes -----------------------------------------------------------------------------------------------------

enum { PROCESSES = 8, PUTS = 50 };

// One of several programs that share a store; its exit status counts the puts that failed.
static int put_many(const char *url, int number)
{
    hone_store *store = NULL;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) {
        fprintf(stderr, "%s\n", err.message);
        return PUTS;
    }
    int failures = 0;
    for (int i = 0; i < PUTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%08x%08x", (unsigned)number, (unsigned)i);
        hone_store_decision put = sample_decision();
        put.key.key = key;
        failures += hone_store_put(store, &put, &err) != HONE_OK;
    }
    hone_store_close(&store);
    return failures;
}

static void eight_processes_open_one_new_store_and_all_their_puts_survive(void **state)
{
    fixture *f = *state;
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) _exit(put_many(f->url, i));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int how = 0;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    hone_store *store = open_store(f);
    assert_int_equal(count_decisions(store), PROCESSES * PUTS);
    hone_store_close(&store);
}

static void a_put_while_another_process_writes_for_long_is_busy_with_words(void **state)
{
    fixture *f = *state;
    make_store(f);
    hone_store *store = open_store(f);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(f->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    hone_store_decision put = sample_decision();
    hone_store_key key = sample_key();
    assert_int_equal(
        hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, ignore_decision, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_BUSY);
    assert_non_null(strstr(f->err.message, f->path));
    assert_non_null(strstr(f->err.message, "put"));
    assert_non_null(strstr(f->err.message, "locked"));
    assert_int_equal(f->err.system_code, SQLITE_BUSY);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    hone_store_close(&store);
}

// In a process of its own, as nobody in particular: root may write anything.
static int read_without_writing(fixture *f)
{
    if (geteuid() == 0 && setuid(65534) != 0) return 1;
    hone_store *keeper = NULL, *store = NULL;
    hone_store_decision put = sample_decision();
    int wrong = 0;
    // keeper keeps the -shm file, without which WAL needs a writable folder.
    wrong += hone_store_open(hone_allocator_system(), f->url, &keeper, &f->err) != HONE_OK;
    wrong += hone_store_put(keeper, &put, &f->err) != HONE_OK;
    wrong += chmod(f->path, 0400) != 0;
    wrong += hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK;
    wrong +=
        hone_store_get(store, HONE_RECORD_DECISION, &put.key, HONE_WARM, ignore_decision, NULL, &f->err) != HONE_OK;
    wrong += hone_store_put(store, &put, &f->err) != HONE_IO;
    wrong += strstr(f->err.message, "make the file and its folder writable") == NULL;
    hone_store_close(&store);
    hone_store_close(&keeper);
    return wrong;
}

static void a_store_that_cannot_be_written_still_answers(void **state)
{
    fixture *f = *state;
    assert_int_equal(chmod(f->folder.path, 0777), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(read_without_writing(f));
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

// The system ends a process whose file grows beyond the limit, unless that signal is held.
static void a_file_beyond_its_limit_is_a_put_that_fails(void **state)
{
    static const char *const kinds[] = {"sqlite:%s/limited.db", "json:%s/limited"};
    fixture *f = *state;
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        hone_store *store = NULL;
        sigset_t pending;
        snprintf(f->url, sizeof f->url, kinds[i], f->folder.path);
        low = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        hone_status status = hone_store_open(hone_allocator_system(), f->url, &store, &f->err);
        const hone_store_decision put = sample_decision();
        if (status == HONE_OK) status = hone_store_put(store, &put, &f->err);
        hone_store_close(&store);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, HONE_IO);
        assert_non_null(strstr(f->err.message, "File too large"));
        assert_int_equal(sigpending(&pending), 0);
        assert_int_equal(sigismember(&pending, SIGXFSZ), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(urls_that_cannot_be_opened_are_refused_by_name),
        FILE_TEST(urls_and_paths_are_bounded),
        FILE_TEST(a_store_says_where_it_is),
        FILE_TEST(a_path_is_a_path_whatever_it_looks_like),
        FILE_TEST(folders_are_made),
        FILE_TEST(folders_pipes_and_devices_are_no_stores),
        FILE_TEST(the_sync_level_is_normal_or_full),
        FILE_TEST(a_second_open_finds_what_the_first_put),
        FILE_TEST(a_newer_schema_is_refused_and_left),
        FILE_TEST(another_database_is_refused_and_left),
        FILE_TEST(an_empty_file_becomes_a_store),
        FILE_TEST(every_older_schema_is_migrated_with_all_that_it_holds),
        FILE_TEST(a_damaged_decision_is_set_aside_by_a_migration),
        FILE_TEST(a_file_of_this_schema_reads_as_it_was_written),
        FILE_TEST(a_migration_that_fails_leaves_the_older_schema),
        FILE_TEST(an_older_store_that_cannot_be_written_is_read),
        FILE_TEST(a_damaged_decision_is_set_aside_reported_once_and_a_miss),
        FILE_TEST(every_column_is_under_the_checksum),
        FILE_TEST(verify_sets_all_kinds_of_damaged_records_aside),
        FILE_TEST(putting_a_record_sets_the_damaged_one_aside),
        FILE_TEST(the_quarantine_is_bounded),
        FILE_TEST(damage_that_cannot_be_set_aside_is_skipped_and_reported_once),
        FILE_TEST(eight_processes_open_one_new_store_and_all_their_puts_survive),
        FILE_TEST(a_put_while_another_process_writes_for_long_is_busy_with_words),
        FILE_TEST(a_store_that_cannot_be_written_still_answers),
        FILE_TEST(a_file_beyond_its_limit_is_a_put_that_fails),
    };
    return cmocka_run_group_tests_name("store files", tests, NULL, NULL);
}
