// Nothing that a store's file holds can crash, hang or mislead: each byte changed, each cut and each file of noise ends
// as a store without what was lost, as a new store with the old one beside it, or as a refusal with words.
#include "hone/store.h"

#include "os/os.h"
#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <dirent.h>
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

enum { FILE_LIMIT = 1 << 18 };

typedef struct fixture {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE];
    char url[TEMPORARY_PATH_SIZE + 16];
    unsigned char original[FILE_LIMIT], bytes[FILE_LIMIT];
    size_t size;
    size_t told;
    char message[1024];
    hone_error err;
} fixture;

static void take_notice(void *ctx, int level, const char *message)
{
    fixture *f = ctx;
    assert_true(level <= 1);
    f->told++;
    snprintf(f->message, sizeof f->message, "%s", message);
}

static hone_status try_open(fixture *f, hone_store **out)
{
    const hone_store_options options = {.struct_size = sizeof options, .log = take_notice, .log_ctx = f};
    f->err.message[0] = '\0';
    return hone_store_open_with(&options, f->url, out, &f->err);
}

static void must(fixture *f, hone_status status)
{
    if (status != HONE_OK) fail_msg("%s: %s", hone_status_name(status), f->err.message);
}

static void fill(fixture *f)
{
    hone_store *store = NULL;
    hone_store_decision decision = sample_decision();
    hone_store_measurement measurement = sample_measurement();
    hone_store_invocation invocation = sample_invocation();
    hone_store_alias alias = sample_alias();
    hone_store_foreign foreign = sample_foreign();
    must(f, try_open(f, &store));
    must(f, hone_store_put(store, &decision, &f->err));
    must(f, hone_store_put_measurement(store, &decision.key, &measurement, &f->err));
    must(f, hone_store_add_invocations(store, &invocation, 1, &f->err));
    must(f, hone_store_put_alias(store, &alias, &f->err));
    must(f, hone_store_put_foreign(store, &foreign, 1, &f->err));
    hone_store_close(&store);
}

static size_t read_all(const char *path, unsigned char *out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, FILE_LIMIT, file);
    fclose(file);
    return size;
}

static void write_all(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    snprintf(f->path, sizeof f->path, "%s/store.db", f->folder.path);
    snprintf(f->url, sizeof f->url, "sqlite:%s", f->path);
    fill(f);
    f->size = read_all(f->path, f->original);
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

// Files in the folder whose names begin so; with `out` the path of one of them.
static size_t count_files(fixture *f, const char *prefix, char *out)
{
    size_t count = 0;
    DIR *folder = opendir(f->folder.path);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        count++;
        if (out != NULL) snprintf(out, TEMPORARY_PATH_SIZE, "%s/%s", f->folder.path, entry->d_name);
    }
    closedir(folder);
    return count;
}

static void remove_files(fixture *f)
{
    char path[TEMPORARY_PATH_SIZE];
    while (count_files(f, "store.db", path) > 0)
        assert_int_equal(remove(path), 0);
}

// Damaged stores ------------------------------------------------------------------------------------------------------

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

// What is served is what was put, to the last byte.
static bool compare_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *found = record->decision;
    const hone_store_decision put = sample_decision();
    ++*(size_t *)ctx;
    assert_true(same(found->key.device, put.key.device) && same(found->key.algorithm, put.key.algorithm));
    assert_true(same(found->key.version, put.key.version) && same(found->key.key, put.key.key));
    assert_true(same(found->key.spec, put.key.spec) && same(found->call, put.call));
    assert_true(same(found->kernel, put.kernel) && same(found->platform, put.platform));
    assert_true(same(found->config, put.config) && same(found->source, put.source));
    assert_true(same(found->revision, put.revision) && same(found->evidence, put.evidence));
    assert_true(same(found->environment, put.environment) && found->verified == put.verified);
    assert_true(found->regime == put.regime && found->time_ns == put.time_ns);
    return true;
}

static bool compare_measurement(void *ctx, const hone_store_record *record)
{
    const hone_store_key *key = record->key;
    const hone_store_measurement *found = record->measurement;
    const hone_store_measurement put = sample_measurement();
    ++*(size_t *)ctx;
    assert_true(same(key->key, sample_key().key) && same(found->kernel, put.kernel) && same(found->config, put.config));
    assert_true(found->time_ns == put.time_ns && found->samples == put.samples && found->failure == HONE_FAILURE_NONE);
    return true;
}

static bool compare_invocation(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *found = record->invocation;
    ++*(size_t *)ctx;
    assert_true(found->count == 3 && same(found->call, sample_invocation().call));
    return true;
}

static bool compare_alias(void *ctx, const hone_store_alias *found)
{
    ++*(size_t *)ctx;
    assert_true(same(found->key.key, sample_alias().key.key) && same(found->foreign_spec, sample_alias().foreign_spec));
    return true;
}

static bool compare_foreign(void *ctx, const hone_store_foreign *found)
{
    ++*(size_t *)ctx;
    assert_true(same(found->text, sample_foreign().text) && same(found->origin, sample_foreign().origin));
    return true;
}

// Everything that reads and a put. A failure has words. Returns how many records were served.
static size_t use(fixture *f, hone_store *store)
{
    size_t served = 0;
    hone_store_key key = sample_key();
    hone_store_health health;
    hone_store_stat stat;
    hone_store_decision put = sample_decision();
    const hone_status statuses[] = {
        hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, compare_decision, &served, &f->err),
        hone_store_scan(store, HONE_RECORD_DECISION, NULL, compare_decision, &served, &f->err),
        hone_store_scan(store, HONE_RECORD_MEASUREMENT, NULL, compare_measurement, &served, &f->err),
        hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, compare_invocation, &served, &f->err),
        hone_store_aliases(store, NULL, compare_alias, &served, &f->err),
        hone_store_foreigns(store, NULL, compare_foreign, &served, &f->err),
        hone_store_get_stat(store, &stat, &f->err),
        hone_store_verify(store, &health, &f->err),
        hone_store_put(store, &put, &f->err),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_true(
            statuses[i] == HONE_OK || statuses[i] == HONE_NOT_FOUND || statuses[i] == HONE_CORRUPT ||
            statuses[i] == HONE_IO);
    return served;
}

enum { ALL_SERVED = 6 };

// What is lost is told: served less means a message, a refusal, or damage that verify or a call has named.
static void assert_harmless(fixture *f, const unsigned char *bytes, size_t size)
{
    hone_store *store = NULL;
    remove_files(f);
    write_all(f->path, bytes, size);
    f->told = 0;
    hone_status status = try_open(f, &store);
    if (status != HONE_OK) {
        assert_true(status == HONE_CORRUPT || status == HONE_INCOMPATIBLE || status == HONE_IO);
        assert_non_null(strstr(f->err.message, f->path));
        assert_null(store);
        return;
    }
    f->err.message[0] = '\0';
    size_t served = use(f, store);
    if (served < ALL_SERVED && size > 0) assert_true(f->told > 0 || f->err.message[0] != '\0');
    hone_store_close(&store);
}

// One in `sparse` where a byte is zero: most of a small store's file is room for more.
static bool is_tried(const fixture *f, size_t at, size_t step, size_t sparse)
{
    return f->original[at] != 0 ? at % step == 0 : at % sparse == 0;
}

// HONE_SOAK tries all; sanitizers are slow, so that they see every seventh.
static size_t step_of(size_t otherwise)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return getenv("HONE_SOAK") != NULL ? 1 : otherwise * 7;
#else
    return getenv("HONE_SOAK") != NULL ? 1 : otherwise;
#endif
}

static void one_bit_in_each_byte(void **state)
{
    fixture *f = *state;
    size_t step = step_of(1), sparse = step_of(397);
    for (size_t at = 0; at < f->size; at++) {
        if (!is_tried(f, at, step, sparse)) continue;
        memcpy(f->bytes, f->original, f->size);
        f->bytes[at] ^= (unsigned char)(1u << at % 8);
        assert_harmless(f, f->bytes, f->size);
    }
}

// Where the record stands: its texts, in the order of their columns, and a few bytes of numbers before and behind them.
static void find_record(const fixture *f, size_t *out_begin, size_t *out_end)
{
    static const char first[] = "cpu|amd|zen4|avx512rms_norm", last[] = "{\"os\":\"linux\"}";
    enum { HEADER = 24, CHECKSUM = 8 };
    for (size_t at = HEADER; at + sizeof first < f->size; at++) {
        if (memcmp(f->original + at, first, sizeof first - 1) != 0) continue;
        for (size_t end = at; end < at + 400; end++) {
            if (memcmp(f->original + end, last, sizeof last - 1) != 0) continue;
            *out_begin = at - HEADER;
            *out_end = end + sizeof last - 1 + CHECKSUM;
            return;
        }
    }
    fail_msg("the decision was not found in the file");
}

static void every_bit_of_one_record(void **state)
{
    fixture *f = *state;
    size_t begin = 0, end = 0, step = step_of(1);
    find_record(f, &begin, &end);
    for (size_t bit = begin * 8; bit < end * 8; bit += step) {
        memcpy(f->bytes, f->original, f->size);
        f->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_harmless(f, f->bytes, f->size);
    }
}

static void a_cut_at_every_length(void **state)
{
    fixture *f = *state;
    size_t step = step_of(127);
    for (size_t size = 0; size < f->size; size += size < 128 ? step_of(1) : step)
        assert_harmless(f, f->original, size);
    for (size_t size = 4096; size < f->size; size += 4096)
        assert_harmless(f, f->original, size);
}

// The same numbers each time.
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void random_bytes(void **state)
{
    fixture *f = *state;
    uint32_t seed = 1;
    for (size_t round = 0; round < 120 || (round < 2000 && getenv("HONE_SOAK") != NULL); round++) {
        size_t size = next_random(&seed) % (FILE_LIMIT / 4);
        for (size_t i = 0; i < size; i++)
            f->bytes[i] = (unsigned char)next_random(&seed);
        // Some begin as a store does, so that more than the first look is tried.
        size_t head = round % 3 == 0 ? 0 : round % 3 == 1 ? 100 : 4096;
        if (size > head) memcpy(f->bytes, f->original, head);
        assert_harmless(f, f->bytes, size);
    }
}

static void scattered_noise(void **state)
{
    fixture *f = *state;
    uint32_t seed = 7;
    for (size_t round = 0; round < 120 || (round < 2000 && getenv("HONE_SOAK") != NULL); round++) {
        memcpy(f->bytes, f->original, f->size);
        for (size_t i = 0; i < 1 + round % 50; i++)
            f->bytes[next_random(&seed) % f->size] = (unsigned char)next_random(&seed);
        assert_harmless(f, f->bytes, f->size);
    }
}

// A WAL that a crash left is damaged too: what SQLite recovers of it ends at the first frame that is not whole.
static void a_damaged_wal(void **state)
{
    fixture *f = *state;
    char wal[TEMPORARY_PATH_SIZE + 8];
    hone_store *store = NULL;
    unsigned char *frames = malloc(FILE_LIMIT);
    assert_non_null(frames);
    snprintf(wal, sizeof wal, "%s-wal", f->path);
    must(f, try_open(f, &store));
    hone_store_decision put = sample_decision();
    put.time_ns += 1; // what stays the same is not written
    must(f, hone_store_put(store, &put, &f->err));
    size_t size = read_all(wal, frames);
    hone_store_close(&store);
    assert_true(size > 4096);
    for (size_t at = 0; at < size; at += at < 64 ? step_of(1) : step_of(31)) {
        remove_files(f);
        memcpy(f->bytes, frames, size);
        f->bytes[at] ^= (unsigned char)(1u << at % 8);
        write_all(f->path, f->original, f->size);
        write_all(wal, f->bytes, size);
        f->told = 0;
        must(f, try_open(f, &store));
        use(f, store);
        hone_store_close(&store);
    }
    free(frames);
}

// Moving aside --------------------------------------------------------------------------------------------------------

// The header of a store, and nothing of it behind: what SQLite does not open.
static void write_noise(fixture *f)
{
    static unsigned char header[100];
    unsigned char noise[8192];
    if (header[0] == 0) memcpy(header, f->original, sizeof header);
    memset(noise, 'x', sizeof noise);
    memcpy(noise, header, sizeof header);
    noise[18] = noise[19] = 1; // without a WAL
    write_all(f->path, noise, sizeof noise);
}

static void a_store_that_cannot_be_opened_is_moved_aside_and_reported_once(void **state)
{
    fixture *f = *state;
    char moved[TEMPORARY_PATH_SIZE];
    hone_store *store = NULL;
    write_noise(f);
    size_t size = read_all(f->path, f->bytes);
    must(f, try_open(f, &store));
    assert_int_equal(f->told, 1);
    assert_int_equal(count_files(f, "store.db.damaged-20", moved), 1);
    assert_non_null(strstr(f->message, f->path));
    assert_non_null(strstr(f->message, moved));
    assert_int_equal(read_all(moved, f->original), size);
    assert_memory_equal(f->original, f->bytes, size);
    hone_store_stat stat;
    must(f, hone_store_get_stat(store, &stat, &f->err));
    assert_int_equal(stat.decisions, 0);
    hone_store_close(&store);
    must(f, try_open(f, &store));
    assert_int_equal(f->told, 1);
    hone_store_close(&store);
    write_noise(f); // within the same second
    must(f, try_open(f, &store));
    assert_int_equal(count_files(f, "store.db.damaged-20", NULL), 2);
    hone_store_close(&store);
}

// Opened under its name and through a link: a refusal with words, and neither the file nor its folder changed.
static void assert_left(fixture *f, const unsigned char *bytes, size_t size)
{
    char link[TEMPORARY_PATH_SIZE], urls[2][TEMPORARY_PATH_SIZE + 16];
    hone_store *store = NULL;
    remove_files(f);
    write_all(f->path, bytes, size);
    snprintf(link, sizeof link, "%s/link", f->folder.path);
    (void)!symlink(f->path, link);
    snprintf(urls[0], sizeof urls[0], "sqlite:%s", f->path);
    snprintf(urls[1], sizeof urls[1], "sqlite:%s", link);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(hone_store_open(hone_allocator_system(), urls[i], &store, &f->err), HONE_INCOMPATIBLE);
        assert_non_null(strstr(f->err.message, i == 0 ? f->path : link));
        assert_non_null(strstr(f->err.message, "was not changed"));
        assert_int_equal(count_files(f, "store.db", NULL), 1);
        assert_int_equal(read_all(f->path, f->bytes), size);
        assert_memory_equal(f->bytes, bytes, size);
    }
    assert_int_equal(f->told, 0);
}

static void a_file_of_something_else_is_left(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {
        "x", "dear diary\n", "{\"hone_store\": 1, \"records\": [\n]}\n",
        "CREATE TABLE decision( id INTEGER PRIMARY KEY,", "SQLite format 4"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_left(f, (const unsigned char *)texts[i], strlen(texts[i]));
    unsigned char noise[FILE_LIMIT / 8];
    uint32_t seed = 3;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)next_random(&seed);
    assert_left(f, noise, sizeof noise);
    memset(noise, '\n', sizeof noise); // as a page of an index begins
    assert_left(f, noise, sizeof noise);
    memset(noise, 0, sizeof noise);
    assert_left(f, noise, sizeof noise);
}

// Its header is sound, and names no application, or another.
static void a_damaged_database_of_something_else_is_left(void **state)
{
    fixture *f = *state;
    enum { HEADER = 100, APPLICATION = 68 };
    unsigned char bytes[8192];
    for (int named = 0; named < 2; named++) {
        memset(bytes, 'x', sizeof bytes);
        memcpy(bytes, f->original, HEADER);
        memset(bytes + APPLICATION, named ? 7 : 0, 4);
        assert_left(f, bytes, sizeof bytes);
    }
}

// Its header is gone or says something else: the records on its pages tell whose it is.
static void a_store_without_its_first_page_is_known_by_its_records(void **state)
{
    fixture *f = *state;
    enum { PAGE = 4096 };
    static const struct {
        size_t begin, size;
    } lost[] = {{0, 1}, {0, 100}, {0, PAGE}, {68, PAGE - 68}};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        hone_store *store = NULL;
        hone_store_stat stat;
        remove_files(f);
        memcpy(f->bytes, f->original, f->size);
        memset(f->bytes + lost[i].begin, 0, lost[i].size);
        write_all(f->path, f->bytes, f->size);
        must(f, try_open(f, &store));
        must(f, hone_store_get_stat(store, &stat, &f->err));
        assert_int_equal(stat.decisions, 1);
        hone_store_close(&store);
        assert_int_equal(count_files(f, "store.db.damaged-20", NULL), 1);
    }
}

static void its_wal_goes_with_it(void **state)
{
    fixture *f = *state;
    char path[TEMPORARY_PATH_SIZE + 8];
    static const char *const suffixes[] = {"-wal", "-shm"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        write_all(path, f->original, f->size);
    }
    write_noise(f);
    hone_store *store = NULL;
    must(f, try_open(f, &store));
    assert_int_equal(count_files(f, "store.db.damaged-20", NULL), 3);
    hone_store_close(&store);
}

static void a_link_to_a_damaged_file_stays_a_link(void **state)
{
    fixture *f = *state;
    char link[TEMPORARY_PATH_SIZE];
    hone_store *store = NULL;
    write_noise(f);
    snprintf(link, sizeof link, "%s/link", f->folder.path);
    assert_int_equal(symlink(f->path, link), 0);
    snprintf(f->url, sizeof f->url, "sqlite:%s", link);
    must(f, try_open(f, &store));
    hone_store_close(&store);
    assert_int_equal(count_files(f, "store.db.damaged-20", NULL), 1);
    assert_int_equal(count_files(f, "link", NULL), 1);
    assert_true(read_all(f->path, f->bytes) > 4096);
}

static void eight_processes_that_find_the_damage_move_it_once(void **state)
{
    fixture *f = *state;
    enum { PROCESSES = 8 };
    pid_t children[PROCESSES];
    write_noise(f);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] != 0) continue;
        char key[32];
        hone_store *store = NULL;
        hone_store_decision put = sample_decision();
        snprintf(key, sizeof key, "%016x", (unsigned)i);
        put.key.key = key;
        bool ok = try_open(f, &store) == HONE_OK && hone_store_put(store, &put, &f->err) == HONE_OK;
        if (!ok) fprintf(stderr, "%s\n", f->err.message);
        hone_store_close(&store);
        _exit(ok ? 0 : 1);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int how = 0;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    hone_store *store = NULL;
    hone_store_stat stat;
    must(f, try_open(f, &store));
    must(f, hone_store_get_stat(store, &stat, &f->err));
    assert_int_equal(stat.decisions, PROCESSES);
    hone_store_close(&store);
    assert_int_equal(count_files(f, "store.db.damaged-20", NULL), 1);
}

// Whoever waits for the lock looks at the file again, and finds it mended.
static void a_store_repaired_by_another_process_is_opened(void **state)
{
    fixture *f = *state;
    char lock[TEMPORARY_PATH_SIZE + 8];
    int fd = -1, pipes[2];
    snprintf(lock, sizeof lock, "%s.lock", f->path);
    assert_int_equal(pipe(pipes), 0);
    write_noise(f);
    must(f, hone_os_lock_open(lock, 0600, &fd, &f->err));
    must(f, hone_os_lock_try(fd, 0, &f->err));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hone_store *store = NULL;
        hone_os_lock_close(&fd);
        bool began = write(pipes[1], "", 1) == 1;
        hone_status status = try_open(f, &store);
        hone_store_close(&store);
        _exit(began && status == HONE_OK && f->told == 0 ? 0 : 1);
    }
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    write_all(f->path, f->original, f->size);
    hone_os_lock_leave(fd, 0);
    hone_os_lock_close(&fd);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(count_files(f, "store.db.damaged-20", NULL), 0);
    close(pipes[0]);
    close(pipes[1]);
}

#define DAMAGE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DAMAGE_TEST(one_bit_in_each_byte),
        DAMAGE_TEST(every_bit_of_one_record),
        DAMAGE_TEST(a_cut_at_every_length),
        DAMAGE_TEST(random_bytes),
        DAMAGE_TEST(scattered_noise),
        DAMAGE_TEST(a_damaged_wal),
        DAMAGE_TEST(a_store_that_cannot_be_opened_is_moved_aside_and_reported_once),
        DAMAGE_TEST(a_file_of_something_else_is_left),
        DAMAGE_TEST(a_damaged_database_of_something_else_is_left),
        DAMAGE_TEST(a_store_without_its_first_page_is_known_by_its_records),
        DAMAGE_TEST(its_wal_goes_with_it),
        DAMAGE_TEST(a_link_to_a_damaged_file_stays_a_link),
        DAMAGE_TEST(eight_processes_that_find_the_damage_move_it_once),
        DAMAGE_TEST(a_store_repaired_by_another_process_is_opened),
    };
    // Thousands of files are made: in memory, where there is a place for it.
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    alarm(getenv("HONE_SOAK") != NULL ? 3600 : 580);
    return cmocka_run_group_tests_name("store damage", tests, NULL, NULL);
}
