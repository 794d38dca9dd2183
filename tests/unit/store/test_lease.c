// Leases between real processes: children of this test, which talk to it over pipes and never wait for a clock.
#include "os/os.h"
#include "store/common/lease.h"
#include "temporary_folder.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NAME = 12345, LONG = 1000 };

typedef struct ground {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE];
} ground;

static int setup(void **state)
{
    static ground g;
    *state = &g;
    if (temporary_folder_make(&g.folder) != 0) return -1;
    snprintf(g.path, sizeof g.path, "%s/store.db.leases", g.folder.path);
    return 0;
}

static int teardown(void **state)
{
    temporary_folder_remove(&((ground *)*state)->folder);
    return 0;
}

static hone_status take(const ground *g, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    return hone_lease_take(g->path, 0640, name, wait, out, err);
}

// Gives up at its first look.
static hone_status try_to_take(const ground *g, uint64_t name, hone_lease *out, hone_error *err)
{
    static const volatile int cancel = 1;
    const hone_wait wait = {.cancel = &cancel, .seconds = LONG};
    return take(g, name, &wait, out, err);
}

static void assert_free(const ground *g, uint64_t name)
{
    hone_lease lease;
    hone_error err;
    assert_int_equal(try_to_take(g, name, &lease, &err), HONE_OK);
    assert_false(lease.waited);
    hone_lease_leave(&lease);
}

static void assert_held(const ground *g, uint64_t name)
{
    hone_lease lease;
    hone_error err;
    assert_int_equal(try_to_take(g, name, &lease, &err), HONE_CANCELLED);
    assert_int_equal(lease.fd, -1);
}

// A child that takes the lease, says so, and leaves it when it is told to.
typedef struct holder {
    int pid, from, to;
} holder;

static void hold(const ground *g, uint64_t name, int said, int told)
{
    hone_lease lease;
    const hone_wait wait = {.seconds = LONG};
    char byte = 'h';
    if (take(g, name, &wait, &lease, NULL) != HONE_OK) _exit(1);
    if (write(said, &byte, 1) != 1) _exit(2);
    if (read(told, &byte, 1) != 1) _exit(3);
    hone_lease_leave(&lease);
    if (write(said, &byte, 1) != 1) _exit(4);
    (void)!read(told, &byte, 1); // lives on, without the lease
    _exit(0);
}

static holder start_holder(const ground *g, uint64_t name)
{
    int said[2], told[2];
    assert_int_equal(pipe(said), 0);
    assert_int_equal(pipe(told), 0);
    int pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(said[0]);
        close(told[1]);
        hold(g, name, said[1], told[0]);
    }
    close(said[1]);
    close(told[0]);
    return (holder){pid, said[0], told[1]};
}

static void hear(const holder *h)
{
    char byte;
    assert_int_equal(read(h->from, &byte, 1), 1);
}

static void tell(const holder *h)
{
    assert_int_equal(write(h->to, "g", 1), 1);
}

static void end_holder(holder *h, int with)
{
    if (with != 0) assert_int_equal(kill(h->pid, with), 0);
    close(h->to);
    close(h->from);
    assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
}

static void one_process_at_a_time_has_a_lease(void **state)
{
    ground *g = *state;
    holder h = start_holder(g, NAME);
    hear(&h);
    assert_held(g, NAME);
    assert_free(g, NAME + 8);
    tell(&h);
    hear(&h);
    assert_free(g, NAME);
    end_holder(&h, 0);
}

static void kill_9_of_the_holder_frees_the_lease(void **state)
{
    ground *g = *state;
    for (int i = 0; i < 20; i++) {
        holder h = start_holder(g, NAME);
        hear(&h);
        assert_held(g, NAME);
        end_holder(&h, SIGKILL);
        assert_free(g, NAME);
    }
}

// A stopped process is alive and keeps what it has: a clock would have taken it away.
static void a_stopped_holder_keeps_its_lease(void **state)
{
    ground *g = *state;
    holder h = start_holder(g, NAME);
    hear(&h);
    assert_int_equal(kill(h.pid, SIGSTOP), 0);
    assert_held(g, NAME);
    end_holder(&h, SIGKILL);
    assert_free(g, NAME);
}

typedef struct told {
    int calls, pid;
    const holder *h;
} told;

static void hear_who(void *ctx, int pid)
{
    told *t = ctx;
    t->calls++;
    t->pid = pid;
    tell(t->h);
}

static void a_wait_says_for_whom_and_ends_when_the_holder_leaves(void **state)
{
    ground *g = *state;
    hone_lease lease;
    hone_error err;
    holder h = start_holder(g, NAME);
    hear(&h);
    told t = {.h = &h};
    const hone_wait wait = {.seconds = LONG, .say = hear_who, .ctx = &t};
    assert_int_equal(take(g, NAME, &wait, &lease, &err), HONE_OK);
    assert_int_equal(t.calls, 1);
    assert_int_equal(t.pid, h.pid);
    assert_true(lease.waited);
    hone_lease_leave(&lease);
    end_holder(&h, 0);
}

static void a_holder_is_not_waited_for_longer_than_allowed(void **state)
{
    ground *g = *state;
    hone_lease lease;
    hone_error err;
    char who[40];
    holder h = start_holder(g, NAME);
    hear(&h);
    const hone_wait wait = {.seconds = 0.02};
    assert_int_equal(take(g, NAME, &wait, &lease, &err), HONE_BUSY);
    snprintf(who, sizeof who, "process %d", h.pid);
    assert_non_null(strstr(err.message, who));
    end_holder(&h, SIGKILL);
}

// The test holds the lease until the child waits for it, then wants it back at once: the child comes first.
static void a_lease_is_given_in_turns(void **state)
{
    ground *g = *state;
    hone_lease lease;
    const hone_wait wait = {.seconds = LONG};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(take(g, NAME, &wait, &lease, NULL), HONE_OK);
        holder h = start_holder(g, NAME);
        int fd = open(g->path, O_RDWR);
        // Taken: the child stands in line.
        while (hone_os_lock_try(fd, 4096 + 2 * (NAME >> 3) + 1, NULL) == HONE_OK) {
            hone_os_lock_leave(fd, 4096 + 2 * (NAME >> 3) + 1);
            hone_os_sleep_ns(100000);
        }
        close(fd);
        hone_lease_leave(&lease);
        told t = {.h = &h};
        const hone_wait saying = {.seconds = LONG, .say = hear_who, .ctx = &t};
        assert_int_equal(take(g, NAME, &saying, &lease, NULL), HONE_OK);
        assert_true(lease.waited);
        hear(&h); // it had the lease
        hone_lease_leave(&lease);
        end_holder(&h, SIGKILL);
    }
}

typedef struct crowd {
    const ground *g;
    atomic_int in, most, taken;
} crowd;

static void *join_the_crowd(void *arg)
{
    crowd *c = arg;
    const hone_wait wait = {.seconds = LONG};
    for (int i = 0; i < 3; i++) {
        hone_lease lease;
        if (take(c->g, NAME, &wait, &lease, NULL) != HONE_OK) return NULL;
        int in = atomic_fetch_add(&c->in, 1) + 1;
        if (in > atomic_load(&c->most)) atomic_store(&c->most, in);
        atomic_fetch_add(&c->taken, 1);
        atomic_fetch_sub(&c->in, 1);
        hone_lease_leave(&lease);
    }
    return NULL;
}

static void threads_exclude_each_other_as_processes_do(void **state)
{
    crowd c = {.g = *state};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, join_the_crowd, &c), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&c.taken), 12);
    assert_int_equal(atomic_load(&c.most), 1);
}

// Unlocked by name: a child that was forked meanwhile has the same open file.
static void a_child_of_the_holder_does_not_keep_what_the_holder_leaves(void **state)
{
    ground *g = *state;
    hone_lease lease;
    const hone_wait wait = {.seconds = LONG};
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(take(g, NAME, &wait, &lease, NULL), HONE_OK);
    int pid = fork();
    if (pid == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    hone_lease_leave(&lease);
    assert_free(g, NAME);
    close(ends[1]);
    close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void the_file_has_the_mode_that_was_asked_for_whatever_the_umask(void **state)
{
    ground *g = *state;
    struct stat info;
    mode_t before = umask(0077);
    hone_lease lease;
    const hone_wait wait = {.seconds = LONG};
    hone_status status = hone_lease_take(g->path, 0666, NAME, &wait, &lease, NULL);
    umask(before);
    assert_int_equal(status, HONE_OK);
    hone_lease_leave(&lease);
    assert_int_equal(stat(g->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666);
}

// In a folder of everybody's, like /tmp, a file that another user made is opened and locked all the same.
static void another_users_file_in_a_folder_of_everybodys_can_be_locked(void **state)
{
    ground *g = *state;
    hone_lease lease;
    const hone_wait wait = {.seconds = LONG};
    if (geteuid() != 0) skip();
    assert_int_equal(chmod(g->folder.path, 01777), 0);
    assert_int_equal(hone_lease_take(g->path, 0666, NAME, &wait, &lease, NULL), HONE_OK);
    hone_lease_leave(&lease);
    int how = 0, pid = fork();
    if (pid == 0) {
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
        _exit(hone_lease_take(g->path, 0666, NAME, &wait, &lease, NULL) == HONE_OK ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void links_folders_and_missing_folders_are_refused(void **state)
{
    ground *g = *state;
    hone_lease lease;
    hone_error err;
    const hone_wait wait = {.seconds = LONG};
    char target[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 8];
    snprintf(target, sizeof target, "%s/target", g->folder.path);
    assert_int_equal(symlink(target, g->path), 0);
    assert_int_equal(take(g, NAME, &wait, &lease, &err), HONE_IO);
    assert_int_equal(access(target, F_OK), -1);
    assert_int_equal(hone_lease_take(g->folder.path, 0600, NAME, &wait, &lease, &err), HONE_IO);
    snprintf(path, sizeof path, "%s/no/folder", g->folder.path);
    assert_int_equal(hone_lease_take(path, 0600, NAME, &wait, &lease, &err), HONE_IO);
    assert_non_null(strstr(err.message, path));
    snprintf(path, sizeof path, "%s/fifo", g->folder.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(hone_lease_take(path, 0600, NAME, &wait, &lease, &err), HONE_IO);
    hone_lease_leave(&lease); // nothing, since nothing was taken
}

static void notes_of_anything_are_no_more_than_hints(void **state)
{
    ground *g = *state;
    unsigned char noise[8192];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 37 + 11);
    int fd = open(g->path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, noise, sizeof noise), (ssize_t)sizeof noise);
    close(fd);
    assert_free(g, NAME);
    assert_int_equal(truncate(g->path, 3), 0);
    assert_free(g, NAME);
}

static void a_name_is_of_all_its_parts_in_order(void **state)
{
    (void)state;
    const char *ab[] = {"a", "b"}, *ba[] = {"b", "a"}, *joined[] = {"ab", ""}, *one[] = {"ab"};
    uint64_t names[] = {
        hone_lease_name(ab, 2), hone_lease_name(ba, 2), hone_lease_name(joined, 2), hone_lease_name(one, 1)};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(names[i] >> 3 != names[j] >> 3);
    assert_true(names[0] == hone_lease_name(ab, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_process_at_a_time_has_a_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(kill_9_of_the_holder_frees_the_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_holder_keeps_its_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wait_says_for_whom_and_ends_when_the_holder_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(a_holder_is_not_waited_for_longer_than_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lease_is_given_in_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_of_the_holder_does_not_keep_what_the_holder_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_has_the_mode_that_was_asked_for_whatever_the_umask, setup, teardown),
        cmocka_unit_test_setup_teardown(another_users_file_in_a_folder_of_everybodys_can_be_locked, setup, teardown),
        cmocka_unit_test_setup_teardown(links_folders_and_missing_folders_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(notes_of_anything_are_no_more_than_hints, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_exclude_each_other_as_processes_do, setup, teardown),
        cmocka_unit_test(a_name_is_of_all_its_parts_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
