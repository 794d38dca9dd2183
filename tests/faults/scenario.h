// What the fault tests do with a store while something fails: open it, read, write, close. Each answer is one that a
// program can act on, and what was acknowledged is there when the fault is over.
#ifndef HONE_TESTS_FAULTS_SCENARIO_H
#define HONE_TESTS_FAULTS_SCENARIO_H

#include "hone/store.h"

#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// What a run was told: true where it was answered HONE_OK.
typedef struct scenario {
    hone_allocator allocator;
    bool ends_with_put; // the rest is not done
    bool opened, put, merged, measured;
    hone_status statuses[16];
    size_t count;
    hone_error err;
} scenario;

// The keys of what was there before, and of what is put and merged.
#define SCENARIO_OLD    "00000000000000a1"
#define SCENARIO_PUT    "00000000000000b2"
#define SCENARIO_MERGED "00000000000000c3"

static inline bool scenario_ignore(void *ctx, const hone_store_record *record)
{
    (void)ctx;
    (void)record;
    return true;
}

static inline bool scenario_pass(void *ctx, const hone_store_record *record)
{
    (void)ctx;
    (void)record;
    return true;
}

static inline bool scenario_note(scenario *s, hone_status status)
{
    s->statuses[s->count++] = status;
    return status == HONE_OK;
}

// The decision that stands before the fault, the one that is put during it, and the one that is merged.
static inline hone_store_decision scenario_decision(const char *key)
{
    hone_store_decision decision = sample_decision();
    decision.key.key = key;
    return decision;
}

static inline void scenario_run(scenario *s, const char *url)
{
    hone_store *store = NULL;
    hone_store_stat stat;
    hone_store_health health;
    hone_store_key old = sample_key();
    const hone_store_decision put = scenario_decision(SCENARIO_PUT), merged = scenario_decision(SCENARIO_MERGED);
    const hone_store_measurement measurement = sample_measurement();
    old.key = SCENARIO_OLD;
    s->opened = scenario_note(s, hone_store_open(s->allocator, url, &store, &s->err));
    if (!s->opened) return;
    scenario_note(s, hone_store_get(store, HONE_RECORD_DECISION, &old, HONE_WARM, scenario_ignore, NULL, &s->err));
    s->put = scenario_note(s, hone_store_put(store, &put, &s->err));
    if (s->ends_with_put) {
        hone_store_close(&store);
        return;
    }
    s->merged = scenario_note(s, hone_store_merge(store, &merged, 1, NULL, NULL, &s->err));
    s->measured = scenario_note(s, hone_store_put_measurement(store, &put.key, &measurement, &s->err));
    scenario_note(s, hone_store_scan(store, HONE_RECORD_DECISION, NULL, scenario_pass, NULL, &s->err));
    scenario_note(s, hone_store_get_stat(store, &stat, &s->err));
    scenario_note(s, hone_store_verify(store, &health, &s->err));
    hone_store_close(&store);
}

static inline void scenario_prepare(const char *url)
{
    hone_store *store = NULL;
    hone_error err;
    const hone_store_decision old = scenario_decision(SCENARIO_OLD);
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) fail_msg("%s", err.message);
    if (hone_store_put(store, &old, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_store_close(&store);
}

// A store of many pages of which one is gone, with nothing on it that a scenario asks for.
typedef struct scenario_damaged {
    unsigned char bytes[1 << 18];
    size_t size;
} scenario_damaged;

enum { SCENARIO_PAGE = 4096, SCENARIO_LEAF = 13, SCENARIO_FILLERS = 24 };

static inline void scenario_fill(const char *url)
{
    hone_store *store = NULL;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) fail_msg("%s", err.message);
    for (unsigned i = 0; i < SCENARIO_FILLERS; i++) {
        char key[20];
        snprintf(key, sizeof key, "f%015x", i);
        const hone_store_decision filler = scenario_decision(key);
        if (hone_store_put(store, &filler, &err) != HONE_OK) fail_msg("%s", err.message);
    }
    hone_store_close(&store);
}

static inline void scenario_write(const scenario_damaged *damaged, const char *url)
{
    FILE *file = fopen(url + strlen("sqlite:"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(damaged->bytes, 1, damaged->size, file), damaged->size);
    assert_int_equal(fclose(file), 0);
}

static inline void scenario_make_damaged(scenario_damaged *out, const char *url)
{
    scenario_prepare(url);
    scenario_fill(url);
    FILE *file = fopen(url + strlen("sqlite:"), "rb");
    assert_non_null(file);
    out->size = fread(out->bytes, 1, sizeof out->bytes, file);
    assert_int_equal(fclose(file), 0);
    for (size_t at = SCENARIO_PAGE; at < out->size; at += SCENARIO_PAGE) {
        unsigned char *page = out->bytes + at;
        bool is_of_fillers = page[0] == SCENARIO_LEAF && memmem(page, SCENARIO_PAGE, "f00000000000", 12) != NULL;
        if (!is_of_fillers || memmem(page, SCENARIO_PAGE, SCENARIO_OLD, strlen(SCENARIO_OLD)) != NULL) continue;
        memset(page, 0, SCENARIO_PAGE);
        return;
    }
    fail_msg("no page has fillers alone");
}

static inline void scenario_assert_there(hone_store *store, const char *text)
{
    hone_error err;
    hone_store_key key = sample_key();
    key.key = text;
    if (hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, scenario_ignore, NULL, &err) != HONE_OK)
        fail_msg("'%s' was acknowledged and is gone: %s", text, err.message);
}

// What was acknowledged is there.
static inline void scenario_assert_kept(const scenario *s, hone_store *store)
{
    scenario_assert_there(store, SCENARIO_OLD);
    if (s->put) scenario_assert_there(store, SCENARIO_PUT);
    if (s->merged) scenario_assert_there(store, SCENARIO_MERGED);
}

// After the fault: nothing that was acknowledged is missing, nothing is damaged, no file was moved aside.
static inline void scenario_check(const scenario *s, const char *url)
{
    hone_store *store = NULL;
    hone_store_health health;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) fail_msg("%s", err.message);
    scenario_assert_kept(s, store);
    if (hone_store_verify(store, &health, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_true(health.set_aside == 0 && health.quarantined == 0);
    assert_true(health.records >= 1u + s->put + s->merged + s->measured);
    hone_store_close(&store);
}

// Whether a file of the folder has a part of a name.
static inline bool scenario_has_file(const char *folder, const char *part)
{
    DIR *list = opendir(folder);
    assert_non_null(list);
    bool has = false;
    for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list))
        has = has || strstr(entry->d_name, part) != NULL;
    closedir(list);
    return has;
}

// The same of a damaged store: it is mended at the latest now, what was acknowledged is in the new one, the old one is
// kept, and nothing of the work lies about, but where it was the removing that failed.
static inline void scenario_check_mended(const scenario *s, const char *url, const char *folder, bool may_lie_about)
{
    hone_store *store = NULL;
    hone_store_health health;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_status status = hone_store_verify(store, &health, &err);
    if (status == HONE_CORRUPT) status = hone_store_verify(store, &health, &err);
    if (status != HONE_OK) fail_msg("%s", err.message);
    scenario_assert_kept(s, store);
    hone_store_close(&store);
    assert_true(scenario_has_file(folder, ".damaged-"));
    if (may_lie_about) return;
    assert_false(scenario_has_file(folder, ".mended") || scenario_has_file(folder, ".salvage"));
}

// Removes what is in a folder, so that each run begins alike.
static inline void scenario_clear(const char *folder)
{
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        char path[TEMPORARY_PATH_SIZE * 2];
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        assert_in_range(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name), 1, sizeof path - 1);
        if (lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode)) scenario_clear(path);
        assert_int_equal(remove(path), 0);
    }
    closedir(list);
}

#endif
