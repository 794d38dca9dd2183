// Threads that are to stand still: they cannot keep the signal out that asks for it.
#include "os/hold.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RIGHT, NO_FILTERS, BLOCKED, IGNORED, OTHER_ACTION };

static void nothing(int number)
{
    (void)number;
}

static bool has_action(int number, void (*handler)(int))
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == handler;
}

// What the system does for a thread that asked for it, it does for good: in a child.
static int ask(void)
{
    sigset_t all, now;
    sigfillset(&all);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !hone_os_hold_insist()) return NO_FILTERS;
    if (sigprocmask(SIG_BLOCK, &all, NULL) != 0 || sigprocmask(SIG_SETMASK, &all, NULL) != 0) return BLOCKED;
    if (sigprocmask(SIG_BLOCK, NULL, &now) != 0 || sigismember(&now, SIGURG)) return BLOCKED;
    if (signal(SIGURG, nothing) == SIG_ERR || !has_action(SIGURG, SIG_DFL)) return IGNORED;
    if (signal(SIGUSR1, nothing) == SIG_ERR || !has_action(SIGUSR1, nothing)) return OTHER_ACTION;
    return RIGHT;
}

static void a_thread_that_is_to_be_held_cannot_block_the_signal(void **state)
{
    int status = 0;
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(ask());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTERS) skip();
    assert_int_equal(WEXITSTATUS(status), RIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_is_to_be_held_cannot_block_the_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
