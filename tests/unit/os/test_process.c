// Children: started, spoken with, killed, and what they died of.
#include "os/os.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int echo(void *ctx, int fd)
{
    (void)ctx;
    char c;
    while (hone_fd_read(fd, &c, 1, 0) == HONE_OK)
        if (hone_fd_write(fd, &c, 1, 0) != HONE_OK) return 1;
    return 7;
}

static int die(void *ctx, int fd)
{
    (void)fd;
    int number = *(const int *)ctx;
    signal(number, SIG_DFL);
    raise(number);
    return 0;
}

static int start_grandchild(void *ctx, int fd)
{
    (void)ctx;
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    hone_fd_write(fd, &pid, sizeof pid, 0);
    pause();
    return 0;
}

static const uint64_t second_ns = 1000000000u;

// A daemon begins with the standard files closed, and opens them later.
static void a_childs_descriptor_is_none_of_the_standard_files(void **state)
{
    (void)state;
    const char *const arguments[] = {"sh", "-c", "exit 0", NULL};
    hone_process child;
    hone_error err = {0};
    int number, code;
    const int kept = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    const hone_status status = hone_process_spawn("/bin/sh", arguments, &child, &err);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
    assert_int_equal(status, HONE_OK);
    assert_true(child.fd > STDERR_FILENO);
    hone_process_kill(&child, &number, &code);
}

static void a_spawned_child_answers_on_descriptor_3(void **state)
{
    (void)state;
    const char *const arguments[] = {"sh", "-c", "head -c 5 <&3 >&3; exit 4", NULL};
    hone_process child;
    hone_error err = {0};
    assert_int_equal(hone_process_spawn("/bin/sh", arguments, &child, &err), HONE_OK);
    uint64_t deadline = hone_os_now_ns() + 300 * second_ns;
    char got[5] = "";
    assert_int_equal(hone_fd_write(child.fd, "hello", 5, deadline), HONE_OK);
    assert_int_equal(hone_fd_read(child.fd, got, 5, deadline), HONE_OK);
    assert_memory_equal(got, "hello", 5);
    assert_int_equal(hone_fd_read(child.fd, got, 1, deadline), HONE_IO); // it has left
    hone_os_sleep_ns(100000000);
    int number, code;
    hone_process_kill(&child, &number, &code);
    assert_int_equal(number, 0);
    assert_int_equal(code, 4);
    assert_int_equal(child.fd, -1);
    hone_process_kill(&child, &number, &code); // nobody is there any more
}

// What a child sees of a variable.
static void seen_by_child(const char *name, char *out, size_t size)
{
    char script[64];
    snprintf(script, sizeof script, "echo ${%s-nothing}", name);
    const char *const arguments[] = {"sh", "-c", script, NULL};
    hone_buffer text;
    int code = -1;
    hone_buffer_init(&text, hone_allocator_system());
    const uint64_t deadline = hone_os_now_ns() + 300 * second_ns;
    assert_int_equal(hone_process_run(arguments, deadline, 256, &text, &code, NULL), HONE_OK);
    assert_int_equal(code, 0);
    snprintf(out, size, "%.*s", (int)strcspn(hone_buffer_string(&text), "\n"), hone_buffer_string(&text));
    hone_buffer_deinit(&text);
}

static void a_passed_on_variable_is_set_in_later_children_only(void **state)
{
    static const char name[] = "HONE_TEST_HANDED", longer[] = "HONE_TEST_HANDED_TOO";
    char seen[64];
    (void)state;
    seen_by_child(name, seen, sizeof seen);
    assert_string_equal(seen, "nothing");
    static const char *const values[] = {"first", "second", "first", "first"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(hone_process_hand_on(name, values[i]), HONE_OK);
        assert_int_equal(hone_process_hand_on(longer, "other"), HONE_OK);
        seen_by_child(name, seen, sizeof seen);
        assert_string_equal(seen, values[i]);
        assert_null(getenv(name));
    }
    seen_by_child(longer, seen, sizeof seen);
    assert_string_equal(seen, "other");
    setenv(name, "own", 1);
    seen_by_child(name, seen, sizeof seen);
    unsetenv(name);
    assert_string_equal(seen, "own");
}

static void a_program_that_is_not_there_is_a_failure(void **state)
{
    (void)state;
    const char *const arguments[] = {"x", NULL};
    hone_process child;
    hone_error err = {0};
    assert_int_equal(hone_process_spawn("/no/such/program", arguments, &child, &err), HONE_IO);
    assert_non_null(strstr(err.message, "/no/such/program"));
    assert_int_equal(err.system_code, 2);
}

static void a_forked_child_runs_the_body(void **state)
{
    (void)state;
    hone_process child;
    hone_error err = {0};
    char got[300], sent[300];
    memset(sent, 'x', sizeof sent);
    assert_int_equal(hone_process_fork(echo, NULL, &child, &err), HONE_OK);
    uint64_t deadline = hone_os_now_ns() + 300 * second_ns;
    assert_int_equal(hone_fd_write(child.fd, sent, sizeof sent, deadline), HONE_OK);
    assert_int_equal(hone_fd_read(child.fd, got, sizeof got, deadline), HONE_OK);
    assert_memory_equal(sent, got, sizeof got);
    int number, code;
    hone_process_kill(&child, &number, &code);
    assert_int_equal(number, 0);
}

static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    hone_process child;
    hone_error err = {0};
    char c;
    assert_int_equal(hone_process_fork(echo, NULL, &child, &err), HONE_OK);
    uint64_t start = hone_os_now_ns();
    assert_int_equal(hone_fd_read(child.fd, &c, 1, start + 30000000), HONE_BUSY); // it never answers
    assert_true(hone_os_now_ns() - start >= 30000000);
    int number, code;
    hone_process_kill(&child, &number, &code);
}

static void the_signal_that_killed_a_child_is_reported(void **state)
{
    (void)state;
    static const int numbers[] = {SIGSEGV, SIGABRT, SIGFPE, SIGKILL};
    for (size_t i = 0; i < 4; i++) {
        int asked = numbers[i], number, code;
        char c;
        hone_process child;
        hone_error err = {0};
        assert_int_equal(hone_process_fork(die, &asked, &child, &err), HONE_OK);
        assert_int_equal(hone_fd_read(child.fd, &c, 1, hone_os_now_ns() + 300 * second_ns), HONE_IO);
        hone_process_kill(&child, &number, &code); // comes after the end, whose reason stands before descriptors close
        assert_int_equal(number, asked);
    }
}

static void killing_takes_the_whole_group(void **state)
{
    (void)state;
    hone_process child;
    hone_error err = {0};
    pid_t grandchild;
    assert_int_equal(hone_process_fork(start_grandchild, NULL, &child, &err), HONE_OK);
    assert_int_equal(
        hone_fd_read(child.fd, &grandchild, sizeof grandchild, hone_os_now_ns() + 300 * second_ns), HONE_OK);
    int fd = dup(child.fd), number, code;
    hone_process_kill(&child, &number, &code);
    char c;
    // The grandchild holds the other end too: only its death ends the reading.
    assert_int_equal(hone_fd_read(fd, &c, 1, hone_os_now_ns() + 300 * second_ns), HONE_IO);
    close(fd);
}

// A candidate knows who its parent is.
static int stop_keeper(void *ctx, int fd)
{
    (void)ctx;
    hone_process_keep();
    kill(getppid(), SIGSTOP);
    (void)!hone_fd_write(fd, "s", 1, 0);
    pause();
    return 0;
}

static void a_keeper_that_is_stopped_is_not_waited_for(void **state)
{
    int number, code;
    char c;
    hone_process child;
    hone_error err = {0};
    (void)state;
    if (hone_os_thread_count() != 1) return; // nobody is kept then, and the child would stop this test
    assert_int_equal(hone_process_fork(stop_keeper, NULL, &child, &err), HONE_OK);
    assert_int_equal(hone_fd_read(child.fd, &c, 1, hone_os_now_ns() + 300 * second_ns), HONE_OK);
    const pid_t pid = child.pid;
    hone_process_kill(&child, &number, &code); // one that waits for the keeper for ever is ended by ctest
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spawned_child_answers_on_descriptor_3),
        cmocka_unit_test(a_childs_descriptor_is_none_of_the_standard_files),
        cmocka_unit_test(a_passed_on_variable_is_set_in_later_children_only),
        cmocka_unit_test(a_program_that_is_not_there_is_a_failure),
        cmocka_unit_test(a_forked_child_runs_the_body),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(the_signal_that_killed_a_child_is_reported),
        cmocka_unit_test(killing_takes_the_whole_group),
        cmocka_unit_test(a_keeper_that_is_stopped_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
