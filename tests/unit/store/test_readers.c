// A reader while another process is in the middle of a change: it does not wait, and sees the store as it was before,
// whole; once the change is made it sees all of it. The argument: the scheme of the store, "sqlite:" or "json:".
#include "store/ops.h"

#include "records.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 20 };

static const char *scheme;

typedef struct fixture {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE + 32];
    int changed[2], seen[2]; // pipes: the writer has put all; the reader has looked
    hone_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    const temporary_folder folder = f->folder;
    snprintf(f->url, sizeof f->url, "%s%s/store", scheme, folder.path);
    return pipe(f->changed) == 0 && pipe(f->seen) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        close(f->changed[i]);
        close(f->seen[i]);
    }
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

// Decisions that all took time_ns.
static hone_status put_within(hone_store *store, double time_ns, hone_error *err)
{
    static char keys[COUNT][20];
    hone_store_decision decisions[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof keys[i], "%016x", i);
        decisions[i] = sample_decision();
        decisions[i].key.key = keys[i];
        decisions[i].time_ns = time_ns;
    }
    const hone_store_batch batch = {.decisions = decisions, .decision_count = COUNT};
    return hone_store_put_within(store, &batch, err);
}

static hone_status put_first(hone_store *store, void *ctx, hone_error *err)
{
    (void)ctx;
    return put_within(store, 1, err);
}

static hone_status put_and_wait(hone_store *store, void *ctx, hone_error *err)
{
    fixture *f = ctx;
    char byte = 0;
    hone_status status = put_within(store, 2, err);
    if (write(f->changed[1], &byte, 1) != 1 || read(f->seen[0], &byte, 1) != 1) _exit(3);
    return status;
}

static void change(fixture *f)
{
    hone_store *store = NULL;
    hone_status status = hone_store_open(hone_allocator_system(), f->url, &store, NULL);
    if (status == HONE_OK) status = hone_store_transact(store, put_and_wait, f, NULL);
    hone_store_close(&store);
    _exit(status == HONE_OK ? 0 : 1);
}

typedef struct sight {
    unsigned count;
    double sum_ns;
} sight;

static bool count_one(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    sight *s = ctx;
    s->count++;
    s->sum_ns += decision->time_ns;
    return true;
}

static void assert_all_took(fixture *f, hone_store *store, double time_ns)
{
    sight seen = {0};
    if (hone_store_scan(store, HONE_RECORD_DECISION, NULL, count_one, &seen, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    assert_int_equal(seen.count, COUNT);
    assert_true(seen.sum_ns == COUNT * time_ns);
}

// The writer goes on only when the reader has looked: a reader that waited for it would end in HONE_BUSY, or never.
static void a_reader_does_not_wait_and_sees_all_of_a_change_or_none(void **state)
{
    fixture *f = *state;
    hone_store *store = NULL;
    char byte = 0;
    int how = 0;
    if (hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_int_equal(hone_store_transact(store, put_first, NULL, &f->err), HONE_OK);
    hone_store_close(&store); // a child that inherits what SQLite has open would share it
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) change(f);
    if (hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_int_equal(read(f->changed[0], &byte, 1), 1);
    assert_all_took(f, store, 1);
    assert_int_equal(write(f->seen[1], &byte, 1), 1);
    assert_int_equal(waitpid(writer, &how, 0), writer);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_all_took(f, store, 2);
    hone_store_close(&store);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_does_not_wait_and_sees_all_of_a_change_or_none, set_up, tear_down),
    };
    if (count != 2) {
        fprintf(stderr, "usage: %s sqlite:|json:\n", arguments[0]);
        return 2;
    }
    scheme = arguments[1];
    alarm(100);
    return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}
