// A store of many pages of which one is damaged: what does not stand on it is there afterwards, and nothing else is.
#include "hone/store.h"

#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, DECISIONS = 600, CALLS = 120, INVOCATIONS = 150, ALIASES = 80, FOREIGNS = 40, REMOVED = 200 };

typedef struct fixture {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE], url[TEMPORARY_PATH_SIZE];
    unsigned char *file, *wiped; // with what was deleted still on free pages, and as hone leaves it
    size_t size;
    char log[4000];
    hone_error err;
} fixture;

// No record's key is a part of another's. 'd': decisions, 'z': those that were removed, and so on.
static void key_of(char kind, int number, char out[20])
{
    snprintf(out, 20, "%02x%013xe", (unsigned)kind, (unsigned)number * 2654435u);
}

// What is removed stands together, so that its pages are free afterwards.
static hone_store_key key_with(char kind, const char *text)
{
    hone_store_key key = sample_key();
    key.key = text;
    if (kind == 'z') key.device = "a device that is gone";
    return key;
}

static hone_store *open_store(fixture *f)
{
    hone_store *store = NULL;
    if (hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return store;
}

static void put_decisions(fixture *f, hone_store *store, char kind, int count)
{
    for (int i = 0; i < count; i++) {
        char key[20];
        key_of(kind, i, key);
        hone_store_decision put = sample_decision();
        put.key = key_with(kind, key);
        put.time_ns = i;
        assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    }
}

// Leaves pages that are free, with the records still on them.
static void remove_decisions(fixture *f, hone_store *store)
{
    for (int i = 0; i < REMOVED; i++) {
        char key[20];
        key_of('z', i, key);
        const hone_store_key gone = key_with('z', key);
        assert_int_equal(hone_store_remove(store, &gone, &f->err), HONE_OK);
    }
}

static void put_measurements(fixture *f, hone_store *store)
{
    for (int i = 0; i < CALLS; i++) {
        char text[20];
        key_of('m', i, text);
        hone_store_key key = sample_key();
        key.key = text;
        hone_store_measurement put = sample_measurement();
        put.time_ns = i + 0.5;
        put.samples_ns = "[0.5,1.5]";
        assert_int_equal(hone_store_put_measurement(store, &key, &put, &f->err), HONE_OK);
        put.kernel = "broken";
        put.failure = HONE_FAILURE_CRASH;
        put.environment = "{\"os\":\"linux\"}";
        assert_int_equal(hone_store_put_measurement(store, &key, &put, &f->err), HONE_OK);
    }
}

static void put_others(fixture *f, hone_store *store)
{
    char key[20];
    for (int i = 0; i < INVOCATIONS; i++) {
        hone_store_invocation put = sample_invocation();
        key_of('i', i, key);
        put.key.key = key;
        assert_int_equal(hone_store_add_invocations(store, &put, 1, &f->err), HONE_OK);
    }
    for (int i = 0; i < ALIASES; i++) {
        hone_store_alias put = sample_alias();
        key_of('a', i, key);
        put.foreign_key = key;
        assert_int_equal(hone_store_put_alias(store, &put, &f->err), HONE_OK);
    }
    for (int i = 0; i < FOREIGNS; i++) {
        hone_store_foreign put = sample_foreign();
        key_of('f', i, key);
        put.foreign_key = key;
        assert_int_equal(hone_store_put_foreign(store, &put, 1, &f->err), HONE_OK);
    }
}

static unsigned char *read_file(const fixture *f, size_t *out_size)
{
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    fseek(stream, 0, SEEK_END);
    *out_size = (size_t)ftell(stream);
    unsigned char *bytes = malloc(*out_size);
    rewind(stream);
    assert_int_equal(fread(bytes, 1, *out_size, stream), *out_size);
    fclose(stream);
    return bytes;
}

static size_t number_at(const fixture *f, size_t offset)
{
    const unsigned char *at = f->file + offset;
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

// The first page of the list of free pages, counted from 0.
static size_t trunk_of(const fixture *f)
{
    assert_true(number_at(f, 32) > 1);
    return number_at(f, 32) - 1;
}

// Free pages still hold what was deleted, unless SQLite was built to wipe them, as Debian's is.
static void unwipe(fixture *f, const unsigned char *before)
{
    const size_t trunk = trunk_of(f) * PAGE, count = number_at(f, trunk + 4);
    assert_true(count > 1);
    for (size_t i = 0; i < count; i++) {
        const size_t page = (number_at(f, trunk + 8 + i * 4) - 1) * PAGE;
        memcpy(f->file + page, before + page, PAGE);
    }
}

static void write_at(const fixture *f, size_t offset, const void *bytes, size_t size)
{
    FILE *stream = fopen(f->path, "r+b");
    assert_non_null(stream);
    fseek(stream, (long)offset, SEEK_SET);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    fclose(stream);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    const temporary_folder folder = f->folder;
    snprintf(f->path, sizeof f->path, "%s/store.db", folder.path);
    snprintf(f->url, sizeof f->url, "sqlite:%s/store.db", folder.path);
    hone_store *store = open_store(f);
    put_decisions(f, store, 'd', DECISIONS);
    put_measurements(f, store);
    put_others(f, store);
    put_decisions(f, store, 'z', REMOVED);
    hone_store_close(&store);
    unsigned char *before = read_file(f, &f->size);
    store = open_store(f);
    remove_decisions(f, store);
    hone_store_close(&store);
    f->file = read_file(f, &f->size);
    f->wiped = read_file(f, &f->size);
    unwipe(f, before);
    free(before);
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    temporary_folder_remove(&f->folder);
    free(f->file);
    free(f->wiped);
    free(f);
    return 0;
}

// Begins a run with the file as it was, and nothing beside it.
static void restore(fixture *f)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < 4; i++) {
        char path[TEMPORARY_PATH_SIZE + 8];
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        unlink(path);
    }
    FILE *stream = fopen(f->path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(f->file, 1, f->size, stream), f->size);
    fclose(stream);
}

static bool stands_on(const fixture *f, size_t page, const char *key)
{
    return memmem(f->file + page * PAGE, PAGE, key, strlen(key)) != NULL;
}

// What is asked for is served as it was put, or is missing, which only what stood on the damaged page may be.
static void check_status(const fixture *f, size_t page, const char *key, hone_status status, bool is_right)
{
    if (status == HONE_OK && is_right) return;
    if (status == HONE_NOT_FOUND && stands_on(f, page, key)) return;
    fail_msg("page %zu: '%s' is %s: %s", page + 1, key, hone_status_name(status), f->err.message);
}

static bool check_time(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    double *time = ctx;
    *time = strcmp(decision->config, sample_decision().config) == 0 ? decision->time_ns : -1;
    return true;
}

static void check_decisions(fixture *f, hone_store *store, size_t page)
{
    for (int i = 0; i < DECISIONS + REMOVED; i++) {
        char text[20];
        double time = -1;
        const char kind = i < DECISIONS ? 'd' : 'z';
        key_of(kind, i < DECISIONS ? i : i - DECISIONS, text);
        const hone_store_key key = key_with(kind, text);
        hone_status status = hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, check_time, &time, &f->err);
        if (i < DECISIONS)
            check_status(f, page, text, status, time >= i && time <= i);
        else
            assert_int_equal(status, HONE_NOT_FOUND); // what was removed does not come back
    }
}

static bool count_measurement(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    int *count = ctx;
    const bool passed = measurement->failure == HONE_FAILURE_NONE;
    *count += passed ? 1 : 100;
    assert_true(passed == (measurement->samples_ns != NULL));
    return true;
}

static void check_measurements(fixture *f, hone_store *store)
{
    int lost = 0;
    for (int i = 0; i < CALLS; i++) {
        char text[20];
        int count = 0;
        key_of('m', i, text);
        hone_store_key key = sample_key();
        key.key = text;
        assert_int_equal(
            hone_store_scan(store, HONE_RECORD_MEASUREMENT, &key, count_measurement, &count, &f->err), HONE_OK);
        assert_true(count == 0 || count == 1 || count == 100 || count == 101);
        lost += count != 101;
    }
    // They do not name their key: a page has no more of them than this. A call stands on two pages.
    assert_true(lost <= PAGE / 50);
}

static void ignore_alias(void *ctx, const hone_store_alias *alias)
{
    (void)ctx;
    (void)alias;
}

static bool mark(void *ctx, const char *key, char kind, int count)
{
    bool *seen = ctx;
    for (int i = 0; i < count; i++) {
        char text[20];
        key_of(kind, i, text);
        if (strcmp(text, key) == 0) seen[i] = true;
    }
    return true;
}

static bool mark_invocation(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    return mark(ctx, invocation->key.key, 'i', INVOCATIONS);
}

static bool mark_foreign(void *ctx, const hone_store_foreign *foreign)
{
    return mark(ctx, foreign->foreign_key, 'f', FOREIGNS);
}

static void check_others(fixture *f, hone_store *store, size_t page)
{
    bool invocations[INVOCATIONS] = {false}, foreigns[FOREIGNS] = {false};
    char key[20];
    assert_int_equal(
        hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, mark_invocation, invocations, &f->err), HONE_OK);
    assert_int_equal(hone_store_foreigns(store, NULL, mark_foreign, foreigns, &f->err), HONE_OK);
    for (int i = 0; i < INVOCATIONS; i++) {
        key_of('i', i, key);
        check_status(f, page, key, invocations[i] ? HONE_OK : HONE_NOT_FOUND, true);
    }
    for (int i = 0; i < FOREIGNS; i++) {
        key_of('f', i, key);
        check_status(f, page, key, foreigns[i] ? HONE_OK : HONE_NOT_FOUND, true);
    }
    for (int i = 0; i < ALIASES; i++) {
        key_of('a', i, key);
        hone_status status = hone_store_get_alias(store, "ejkernel", "rms_norm@v1", key, ignore_alias, NULL, &f->err);
        check_status(f, page, key, status, true);
    }
}

static void note_log(void *ctx, int level, const char *message)
{
    fixture *f = ctx;
    size_t used = strlen(f->log);
    snprintf(f->log + used, sizeof f->log - used, "%d %s\n", level, message);
}

// Opens the damaged store, meets the damage by a verify, and checks all that is left.
static void check_after(fixture *f, size_t page)
{
    const hone_store_options options = {.struct_size = sizeof options, .log = note_log, .log_ctx = f};
    hone_store *store = NULL;
    hone_store_health health;
    f->log[0] = '\0';
    if (hone_store_open_with(&options, f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_status status = hone_store_verify(store, &health, &f->err);
    if (status != HONE_CORRUPT) assert_int_equal(status, HONE_OK);
    if (status == HONE_CORRUPT && hone_store_verify(store, &health, &f->err) != HONE_OK)
        fail_msg("page %zu: %s", page + 1, f->err.message);
    if (status == HONE_CORRUPT) assert_non_null(strstr(f->log, "a new store was begun with its "));
    check_decisions(f, store, page);
    check_measurements(f, store);
    check_others(f, store, page);
    hone_store_close(&store);
}

static void a_page_of_zeros_costs_what_stood_on_it(void **state)
{
    fixture *f = *state;
    const unsigned char zeros[PAGE] = {0};
    for (size_t page = 1; page < f->size / PAGE; page++) {
        restore(f);
        write_at(f, page * PAGE, zeros, PAGE);
        check_after(f, page);
    }
}

static void a_page_of_noise_costs_what_stood_on_it(void **state)
{
    fixture *f = *state;
    unsigned seed = 7;
    for (size_t page = 1; page < f->size / PAGE; page += 2) {
        unsigned char noise[PAGE];
        for (size_t i = 0; i < PAGE; i++)
            noise[i] = (unsigned char)((seed = seed * 1103515245u + 12345u) >> 16);
        noise[0] = 2; // that looks like an interior page
        restore(f);
        write_at(f, page * PAGE, noise, PAGE);
        check_after(f, page);
    }
}

static void a_flip_in_the_head_of_a_page_costs_no_other_page(void **state)
{
    fixture *f = *state;
    for (size_t page = 1; page < f->size / PAGE; page++) {
        const size_t offset = page * PAGE + page % 16;
        const unsigned char flipped = f->file[offset] ^ (unsigned char)(1u << page % 8);
        restore(f);
        write_at(f, offset, &flipped, 1);
        check_after(f, page);
    }
}

// Of the list of free pages, and of what the file's head says of it.
static void a_damaged_list_of_free_pages_brings_nothing_back(void **state)
{
    fixture *f = *state;
    const size_t trunk = trunk_of(f);
    const size_t offsets[] = {35, 39, trunk * PAGE + 3, trunk * PAGE + 7, trunk * PAGE + 11};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        const unsigned char flipped = f->file[offsets[i]] ^ 1u;
        restore(f);
        write_at(f, offsets[i], &flipped, 1);
        check_after(f, trunk);
    }
}

// Not even SQLite opens it: its first bytes say that it is a database, and its first page where the tables begin.
static void a_file_without_its_first_page_keeps_the_others(void **state)
{
    fixture *f = *state;
    const unsigned char zeros[PAGE] = {0};
    const struct {
        size_t offset, size;
    } holes[] = {{0, PAGE}, {0, 100}, {0, 16}, {16, 2}, {100, 8}, {100, PAGE - 100}};
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        restore(f);
        write_at(f, 0, f->wiped, f->size);
        write_at(f, holes[i].offset, zeros, holes[i].size);
        check_after(f, 0);
        assert_non_null(strstr(f->log, "a new store was begun with its "));
    }
}

static size_t count_names(const fixture *f, const char *part)
{
    char command[TEMPORARY_PATH_SIZE + 64], line[32] = "";
    snprintf(command, sizeof command, "ls '%s' | grep -c -e '%s'", f->folder.path, part);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    if (fgets(line, sizeof line, pipe) == NULL) line[0] = '\0';
    pclose(pipe);
    return (size_t)atoi(line);
}

// A get that meets the damage is answered all the same, and so is a put.
static void the_call_that_meets_the_damage_goes_on(void **state)
{
    fixture *f = *state;
    const unsigned char zeros[PAGE] = {0};
    for (size_t page = 1; page < f->size / PAGE; page += 3) {
        restore(f);
        write_at(f, page * PAGE, zeros, PAGE);
        hone_store *store = open_store(f);
        check_decisions(f, store, page);
        hone_store_decision put = sample_decision();
        put.key.key = "0000000000000001";
        assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
        hone_store_close(&store);
    }
    assert_int_equal(count_names(f, "salvage"), 0);
    assert_int_equal(count_names(f, "mended"), 0);
    assert_true(count_names(f, "damaged") > 0);
}

// Puts once, waits for a byte, and puts again through the store that it opened before the damage.
static int put_before_and_after(const char *url, int begin, int done)
{
    hone_store *store = NULL;
    hone_store_decision put = sample_decision();
    char byte = 0;
    double time = -1;
    bool ok = hone_store_open(hone_allocator_system(), url, &store, NULL) == HONE_OK;
    put.key.key = "0000000000000002";
    ok = ok && hone_store_put(store, &put, NULL) == HONE_OK;
    ok = write(done, &byte, 1) == 1 && read(begin, &byte, 1) == 1 && ok;
    put.key.key = "0000000000000003";
    ok = ok && hone_store_put(store, &put, NULL) == HONE_OK;
    put.key.key = "0000000000000004";
    ok = ok && hone_store_get(store, HONE_RECORD_DECISION, &put.key, HONE_WARM, check_time, &time, NULL) == HONE_OK;
    hone_store_close(&store);
    return ok ? 0 : 1;
}

static void a_process_that_had_the_damaged_file_open_continues_in_the_new_one(void **state)
{
    fixture *f = *state;
    int to_child[2], to_parent[2], left = -1;
    char byte = 0;
    double time = -1;
    assert_true(pipe(to_child) == 0 && pipe(to_parent) == 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(to_child[1]); // a parent that is gone is waited for no longer
        _exit(put_before_and_after(f->url, to_child[0], to_parent[1]));
    }
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    // Not the first page of decisions, which the WAL holds anew.
    const unsigned char zeros[PAGE] = {0};
    size_t page = 1;
    char key[20];
    key_of('d', DECISIONS / 2, key);
    while (!stands_on(f, page, key))
        page++;
    hone_store *store = open_store(f);
    hone_store_health health;
    write_at(f, page * PAGE, zeros, PAGE);
    assert_int_equal(hone_store_verify(store, &health, &f->err), HONE_CORRUPT);
    hone_store_decision put = sample_decision();
    put.key.key = "0000000000000004";
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &left, 0), child);
    assert_int_equal(left, 0);
    for (int i = 0; i < 2; i++) {
        put.key.key = i == 0 ? "0000000000000002" : "0000000000000003";
        if (hone_store_get(store, HONE_RECORD_DECISION, &put.key, HONE_WARM, check_time, &time, &f->err) != HONE_OK)
            fail_msg("'%s' is gone: %s", put.key.key, f->err.message);
    }
    assert_int_equal(hone_store_verify(store, &health, &f->err), HONE_OK);
    hone_store_close(&store);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

#define SALVAGE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SALVAGE_TEST(a_page_of_zeros_costs_what_stood_on_it),
        SALVAGE_TEST(a_page_of_noise_costs_what_stood_on_it),
        SALVAGE_TEST(a_flip_in_the_head_of_a_page_costs_no_other_page),
        SALVAGE_TEST(a_damaged_list_of_free_pages_brings_nothing_back),
        SALVAGE_TEST(a_file_without_its_first_page_keeps_the_others),
        SALVAGE_TEST(the_call_that_meets_the_damage_goes_on),
        SALVAGE_TEST(a_process_that_had_the_damaged_file_open_continues_in_the_new_one),
    };
    return cmocka_run_group_tests_name("store salvage", tests, NULL, NULL);
}
