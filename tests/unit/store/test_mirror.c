// A store on a server with its files here: what is answered while the server is away, and what reaches it later. The
// server is that of tests/support/with-postgresql.
#include "hone/store.h"

#include "os/os.h"
#include "records.h"
#include "store/mirror.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    temporary_folder folder;
    char url[96], said[4000];
    hone_store *store; // mirrored
    hone_error err;
} fixture;

static void listen_to(void *ctx, int level, const char *message)
{
    fixture *f = ctx;
    (void)level;
    strncat(f->said, message, sizeof f->said - strlen(f->said) - 1);
}

static void open_mirrored(fixture *f)
{
    const hone_store_options options = {
        .struct_size = sizeof options, .allocator = hone_allocator_system(), .log = listen_to, .log_ctx = f};
    if (hone_store_open_mirrored(&options, f->url, f->folder.path, &f->store, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
}

static int set_up(void **state)
{
    static int opened;
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    snprintf(f->url, sizeof f->url, "postgresql://?schema=m%d_%d", (int)getpid(), opened++);
    open_mirrored(f);
    return 0;
}

static void control(const char *verb)
{
    char command[300];
    snprintf(command, sizeof command, "%s %s", getenv("HONE_POSTGRESQL"), verb);
    assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
    fixture *f = *state;
    hone_store_close(&f->store);
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

static bool see(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    snprintf(ctx, 64, "%s", decision->kernel);
    return true;
}

static hone_status get(hone_store *store, const char *key, char kernel[64])
{
    hone_store_key whole = sample_key();
    hone_error err;
    whole.key = key;
    kernel[0] = '\0';
    return hone_store_get(store, HONE_RECORD_DECISION, &whole, HONE_WARM, see, kernel, &err);
}

static hone_status put(hone_store *store, const char *key, const char *kernel)
{
    hone_store_decision decision = sample_decision();
    hone_error err;
    decision.key.key = key;
    decision.kernel = kernel;
    return hone_store_put(store, &decision, &err);
}

static hone_status count(hone_store *store, const char *device, uint64_t calls)
{
    hone_store_invocation one = {.key = sample_key(), .count = calls, .first = 5, .last = 6};
    hone_error err;
    if (device != NULL) one.key.device = device;
    return hone_store_add_invocations(store, &one, 1, &err);
}

static bool add_up(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    *(uint64_t *)ctx += invocation->count;
    return true;
}

static uint64_t counted(hone_store *store)
{
    uint64_t sum = 0;
    hone_error err;
    assert_int_equal(hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, add_up, &sum, &err), HONE_OK);
    return sum;
}

static hone_store *open_server(fixture *f)
{
    hone_store *server = NULL;
    if (hone_store_open(hone_allocator_system(), f->url, &server, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return server;
}

static const char copied[] = "00000000000000a1", unknown[] = "00000000000000a2", fresh[] = "00000000000000a3";

static void while_the_server_is_away_the_copy_answers_and_says_how_old_it_is(void **state)
{
    fixture *f = *state;
    char kernel[64], away[500];
    hone_store *server = open_server(f);
    assert_int_equal(put(server, copied, "first"), HONE_OK);
    assert_int_equal(get(f->store, copied, kernel), HONE_OK);
    assert_string_equal(hone_store_away(f->store, away, sizeof away), "");
    hone_store_close(&server);
    control("stop");
    assert_int_equal(get(f->store, copied, kernel), HONE_OK);
    assert_string_equal(kernel, "first");
    assert_int_equal(get(f->store, unknown, kernel), HONE_NOT_FOUND);
    assert_non_null(strstr(f->said, "server is away: going on with its copy of 20"));
    assert_non_null(strstr(hone_store_away(f->store, away, sizeof away), "its copy of 20"));
    control("start");
}

static void a_removal_on_the_server_reaches_the_copy(void **state)
{
    fixture *f = *state;
    char kernel[64];
    hone_store_key key = sample_key();
    key.key = copied;
    hone_store *server = open_server(f);
    assert_int_equal(put(server, copied, "first"), HONE_OK);
    assert_int_equal(get(f->store, copied, kernel), HONE_OK);
    assert_int_equal(hone_store_remove(server, &key, &f->err), HONE_OK);
    assert_int_equal(get(f->store, copied, kernel), HONE_NOT_FOUND);
    hone_store_close(&server);
    control("stop");
    assert_int_equal(get(f->store, copied, kernel), HONE_NOT_FOUND);
    control("start");
}

static void records_put_while_the_server_is_down_are_sent_once(void **state)
{
    fixture *f = *state;
    char kernel[64], away[500];
    control("stop");
    assert_int_equal(put(f->store, fresh, "local"), HONE_OK);
    assert_int_equal(count(f->store, NULL, 7), HONE_OK);
    assert_int_equal(get(f->store, fresh, kernel), HONE_OK);
    assert_string_equal(kernel, "local");
    // Another process goes on with it.
    hone_store_close(&f->store);
    open_mirrored(f);
    assert_int_equal(get(f->store, fresh, kernel), HONE_OK);
    assert_int_equal(count(f->store, NULL, 5), HONE_OK);
    control("start");
    for (int tries = 0; tries < 200 && hone_store_away(f->store, away, sizeof away)[0] != '\0'; tries++) {
        hone_os_sleep_ns(50000000);
        (void)get(f->store, unknown, kernel);
    }
    hone_store *server = open_server(f);
    assert_int_equal(get(server, fresh, kernel), HONE_OK);
    assert_string_equal(kernel, "local");
    assert_int_equal(counted(server), 12);
    hone_store_close(&f->store);
    open_mirrored(f);
    assert_int_equal(counted(server), 12);
    assert_int_equal(count(f->store, NULL, 1), HONE_OK);
    assert_int_equal(counted(server), 13);
    hone_store_close(&server);
}

static hone_store *open_unsent(fixture *f)
{
    char command[300], path[400] = "", url[500];
    hone_store *unsent = NULL;
    snprintf(command, sizeof command, "ls %s/*-unsent.db", f->folder.path);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    assert_non_null(fgets(path, sizeof path, list));
    pclose(list);
    path[strcspn(path, "\n")] = '\0';
    snprintf(url, sizeof url, "sqlite:%s", path);
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &unsent, &f->err), HONE_OK);
    return unsent;
}

static bool refuse_any(void *ctx, const hone_store_foreign *foreign)
{
    (void)ctx;
    fail_msg("%s stands there", foreign->scheme);
    return false;
}

// As a process leaves it that is killed between the server's commit and its own.
static void counts_that_the_server_has_are_not_sent_again(void **state)
{
    fixture *f = *state;
    char under_way[500];
    const hone_store_foreign mark = {
        .scheme = "hone.sent.00000000deadbeef", .operation = "counts", .foreign_key = "sent", .text = "true"};
    hone_store_close(&f->store);
    hone_store *server = open_server(f), *unsent = open_unsent(f);
    snprintf(under_way, sizeof under_way, "sending 00000000deadbeef %s", sample_key().device);
    assert_int_equal(count(server, NULL, 4), HONE_OK);
    assert_int_equal(hone_store_put_foreign(server, &mark, 1, &f->err), HONE_OK);
    assert_int_equal(count(unsent, under_way, 4), HONE_OK);
    assert_int_equal(count(unsent, NULL, 3), HONE_OK);
    hone_store_close(&unsent);
    open_mirrored(f);
    assert_int_equal(counted(server), 4);
    hone_store_close(&f->store);
    open_mirrored(f);
    assert_int_equal(counted(server), 7);
    unsent = open_unsent(f);
    assert_int_equal(counted(unsent), 0);
    hone_store_close(&unsent);
    // The server forgets the mark.
    assert_int_equal(hone_store_foreigns(server, NULL, refuse_any, NULL, &f->err), HONE_OK);
    hone_store_close(&server);
}

static void without_a_folder_for_the_files_the_store_is_the_servers_alone(void **state)
{
    fixture *f = *state;
    char kernel[64];
    hone_store_close(&f->store);
    temporary_folder_remove(&f->folder);
    snprintf(f->folder.path, sizeof f->folder.path, "/dev/null/none");
    open_mirrored(f);
    assert_int_equal(put(f->store, fresh, "one"), HONE_OK);
    assert_int_equal(get(f->store, fresh, kernel), HONE_OK);
    control("stop");
    assert_int_equal(put(f->store, fresh, "two"), HONE_UNAVAILABLE);
    control("start");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(while_the_server_is_away_the_copy_answers_and_says_how_old_it_is),
        TEST(a_removal_on_the_server_reaches_the_copy),
        TEST(records_put_while_the_server_is_down_are_sent_once),
        TEST(counts_that_the_server_has_are_not_sent_again),
        TEST(without_a_folder_for_the_files_the_store_is_the_servers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
