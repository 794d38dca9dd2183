// A server whose sessions are cut at each point of what a program says to it, one after the other: before the server hears
// it, and after it has answered and the program has not heard. It is there again at once, or stays away. What was
// acknowledged is there, what was not is there whole or not at all, and a program is told what it can act on.
#include "scenario.h"

#include "store/ops.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { BATCH = 3 };

// The wire -----------------------------------------------------------------------------------------------------------

typedef struct wire {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE], to[TEMPORARY_PATH_SIZE];
    int listener;
    pthread_t thread;
    atomic_int said, at; // messages of the program so far; the one at which it is cut
    atomic_bool after, stays_away, away;
} wire;

typedef struct session {
    wire *wire;
    int client;
} session;

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static bool pass(int from, int to, bool *out_ended)
{
    static _Thread_local char bytes[1 << 16];
    const ssize_t size = recv(from, bytes, sizeof bytes, 0);
    *out_ended = size <= 0;
    return *out_ended || send(to, bytes, (size_t)size, MSG_NOSIGNAL) == size;
}

// Returns when the session ends, or is cut.
static void carry(wire *w, int client, int server)
{
    struct pollfd ends[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    bool is_due = false, ended = false;
    while (!ended && poll(ends, 2, -1) > 0) {
        if (ends[1].revents != 0) {
            if (is_due) break;
            if (!pass(server, client, &ended)) break;
        }
        if (ends[0].revents == 0 || ended) continue;
        const bool cut = atomic_fetch_add(&w->said, 1) == atomic_load(&w->at);
        if (cut && !atomic_load(&w->after)) {
            is_due = true;
            break;
        }
        is_due = is_due || cut;
        if (!pass(client, server, &ended)) break;
    }
    if (is_due) atomic_store(&w->away, atomic_load(&w->stays_away));
}

static void *hold_session(void *ctx)
{
    session *s = ctx;
    const int server = connect_to(s->wire->to);
    if (server >= 0) {
        carry(s->wire, s->client, server);
        close(server);
    }
    close(s->client);
    free(s);
    return NULL;
}

static void *listen_on(void *ctx)
{
    wire *w = ctx;
    for (;;) {
        const int client = accept(w->listener, NULL, NULL);
        pthread_t thread;
        if (client < 0) return NULL;
        session *s = malloc(sizeof *s);
        if (s == NULL || atomic_load(&w->away)) {
            close(client);
            free(s);
            continue;
        }
        *s = (session){w, client};
        if (pthread_create(&thread, NULL, hold_session, s) == 0) pthread_detach(thread);
    }
}

static int set_up(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static wire wires[4]; // sessions of an earlier test may still read theirs
    static int made;
    wire *w = &wires[made++];
    *state = w;
    if (temporary_folder_make(&w->folder) != 0) return -1;
    snprintf(w->to, sizeof w->to, "%s/.s.PGSQL.5432", getenv("PGHOST"));
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/.s.PGSQL.5432", w->folder.path);
    snprintf(w->path, sizeof w->path, "%s", address.sun_path);
    w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(w->listener, (const struct sockaddr *)&address, sizeof address) != 0 || listen(w->listener, 16) != 0)
        return -1;
    return pthread_create(&w->thread, NULL, listen_on, w);
}

static int tear_down(void **state)
{
    wire *w = *state;
    shutdown(w->listener, SHUT_RDWR);
    pthread_join(w->thread, NULL);
    close(w->listener);
    unlink(w->path);
    temporary_folder_remove(&w->folder);
    return 0;
}

// Cutting ------------------------------------------------------------------------------------------------------------

typedef struct told {
    scenario s;
    hone_status put_all, merge_all, count;
} told;

static void make_batch(hone_store_decision out[BATCH], char keys[BATCH][20], unsigned first)
{
    for (unsigned i = 0; i < BATCH; i++) {
        snprintf(keys[i], 20, "d%015x", first + i);
        out[i] = scenario_decision(keys[i]);
    }
}

static void run_batches(told *t, const char *url)
{
    hone_store *store = NULL;
    hone_store_decision put[BATCH], merged[BATCH];
    char keys[2][BATCH][20];
    hone_error err;
    const hone_store_invocation counted = sample_invocation();
    make_batch(put, keys[0], 0);
    make_batch(merged, keys[1], BATCH);
    t->put_all = t->merge_all = t->count = HONE_UNAVAILABLE;
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) return;
    t->put_all = hone_store_put_all(store, put, BATCH, &err);
    t->merge_all = hone_store_merge(store, merged, BATCH, NULL, NULL, &err);
    t->count = hone_store_add_invocations(store, &counted, 1, &err);
    hone_store_close(&store);
}

static bool add_up(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    *(uint64_t *)ctx += invocation->count;
    return true;
}

static void check_batch(hone_store *store, unsigned first, hone_status status)
{
    hone_store_decision batch[BATCH];
    char keys[BATCH][20];
    hone_error err;
    int there = 0;
    make_batch(batch, keys, first);
    for (int i = 0; i < BATCH; i++)
        there += hone_store_get(store, HONE_RECORD_DECISION, &batch[i].key, HONE_WARM, scenario_ignore, NULL, &err) ==
                 HONE_OK;
    if (status == HONE_OK) assert_int_equal(there, BATCH);
    assert_true(there == 0 || there == BATCH);
}

static void check(const told *t, hone_store *store)
{
    hone_error err;
    hone_store_health health;
    uint64_t sum = 0;
    scenario_assert_kept(&t->s, store);
    assert_int_equal(hone_store_verify(store, &health, &err), HONE_OK);
    assert_true(health.set_aside == 0 && health.quarantined == 0);
    check_batch(store, 0, t->put_all);
    check_batch(store, BATCH, t->merge_all);
    assert_int_equal(hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, add_up, &sum, &err), HONE_OK);
    const uint64_t once = sample_invocation().count;
    assert_true(sum == once || (sum == 0 && t->count != HONE_OK));
}

static void begin_anew(hone_store *store)
{
    hone_error err;
    const hone_store_decision old = scenario_decision(SCENARIO_OLD);
    hone_store_decision batch[2 * BATCH];
    char keys[BATCH][20], more[BATCH][20];
    make_batch(batch, keys, 0);
    make_batch(batch + BATCH, more, BATCH);
    assert_int_equal(hone_store_put(store, &old, &err), HONE_OK);
    const char *const others[] = {SCENARIO_PUT, SCENARIO_MERGED};
    for (int i = 0; i < 2; i++) {
        hone_store_key key = sample_key();
        key.key = others[i];
        (void)!hone_store_remove(store, &key, &err);
    }
    for (int i = 0; i < 2 * BATCH; i++)
        (void)!hone_store_remove(store, &batch[i].key, &err);
    assert_int_equal(hone_store_clear_invocations(store, NULL, &err), HONE_OK);
}

static bool is_an_answer(hone_status status)
{
    return status == HONE_OK || status == HONE_UNAVAILABLE;
}

static void cut_each(wire *w, bool after, bool stays_away)
{
    char url[2 * TEMPORARY_PATH_SIZE];
    hone_store *direct = NULL;
    hone_error err;
    int at = 0;
    assert_int_equal(hone_store_open(hone_allocator_system(), "postgresql://?schema=cuts", &direct, &err), HONE_OK);
    snprintf(url, sizeof url, "postgresql://?host=%s&schema=cuts", w->folder.path);
    for (bool was_cut = true; was_cut; at++) {
        told t = {.s = {.allocator = hone_allocator_system()}};
        begin_anew(direct);
        atomic_store(&w->away, false);
        atomic_store(&w->after, after);
        atomic_store(&w->stays_away, stays_away);
        atomic_store(&w->at, at);
        atomic_store(&w->said, 0);
        scenario_run(&t.s, url);
        run_batches(&t, url);
        was_cut = atomic_load(&w->said) > at;
        atomic_store(&w->at, -1);
        for (size_t i = 0; i < t.s.count; i++)
            if (!is_an_answer(t.s.statuses[i]))
                fail_msg("cut at %d, step %zu: %s: %s", at, i, hone_status_name(t.s.statuses[i]), t.s.err.message);
        assert_true(is_an_answer(t.put_all) && is_an_answer(t.merge_all) && is_an_answer(t.count));
        check(&t, direct);
    }
    assert_true(at > 40);
    hone_store_close(&direct);
}

static void before_the_server_hears_and_it_is_there_again(void **state)
{
    cut_each(*state, false, false);
}

static void before_the_server_hears_and_it_stays_away(void **state)
{
    cut_each(*state, false, true);
}

static void after_its_answer_and_it_is_there_again(void **state)
{
    cut_each(*state, true, false);
}

static void after_its_answer_and_it_stays_away(void **state)
{
    cut_each(*state, true, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(before_the_server_hears_and_it_is_there_again),
        TEST(before_the_server_hears_and_it_stays_away),
        TEST(after_its_answer_and_it_is_there_again),
        TEST(after_its_answer_and_it_stays_away),
    };
    alarm(580);
    return cmocka_run_group_tests_name("cuts", tests, NULL, NULL);
}
