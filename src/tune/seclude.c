// How a process becomes a worker that can do its host no harm. The one file of this folder that speaks to Linux itself.
#include "tune/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

// A signal handler can ask nobody else.
static pid_t parent_at_start;

// The kernel sends this when the thread that started us ends, which need not be the end of its process.
static void parent_thread_ended(int signal_number)
{
    (void)signal_number;
    if (getppid() != parent_at_start) _exit(0);
}

// A host's own handlers (of crashes, say) have no business in a worker: it is to die of what kills it.
static void forget_handlers(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void follow_parent(void)
{
    parent_at_start = getppid();
    struct sigaction action = {.sa_handler = parent_thread_ended, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
}

static void close_others(int fd)
{
    unsigned kept = (unsigned)fd, first = STDERR_FILENO + 1;
    if (kept > first) close_range(first, kept - 1, 0);
    close_range(kept >= first ? kept + 1 : first, ~0u, 0);
}

// What libraries print would land in the host's terminal.
static void be_silent(int kept)
{
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0) return;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fd != nothing && fd != kept) dup2(nothing, fd);
    if (nothing > STDERR_FILENO) close(nothing);
}

void hone_worker_seclude(int fd)
{
    forget_handlers();
    follow_parent();
    be_silent(fd);
    close_others(fd);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}
