// A process that stands between a parent and a worker and ends whatever the worker leaves behind. What a worker starts may
// leave its process group and outlive it; orphans come to the nearest ancestor that asked for them, which is the keeper.
#include "os/limits.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct keeper {
    pid_t parent, worker;
    bool ended; // the worker
    int state;  // how
} keeper;

// True: it has ended by now.
static bool reap(keeper *k)
{
    int state;
    pid_t pid;
    while ((pid = waitpid(-1, &state, WNOHANG)) > 0) {
        if (pid != k->worker) continue;
        k->ended = true;
        k->state = state;
    }
    return k->ended;
}

static bool is_child(const char *process)
{
    char path[64], line[HONE_OS_TEXT_SIZE];
    snprintf(path, sizeof path, "/proc/%.20s/stat", process);
    if (!hone_os_read_text("", path, line)) return false;
    const char *name_end = strrchr(line, ')');
    return name_end && strlen(name_end) > 4 && strtol(name_end + 4, NULL, 10) == getpid();
}

static void kill_children(void)
{
    DIR *processes = opendir("/proc");
    if (!processes) return;
    const struct dirent *entry;
    while ((entry = readdir(processes)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_child(entry->d_name))
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    closedir(processes);
}

// A worker that is asked to end may be about to end by itself, and then how is worth knowing: its files are closed, which is
// what its tuner noticed, before it can be waited for.
static void await_last_words(keeper *k)
{
    enum { EXITING = 0x4, TRIES = 10000 }; // PF_EXITING of the kernel
    char path[64], line[HONE_OS_TEXT_SIZE];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)k->worker);
    for (int i = 0; i < TRIES && !reap(k); i++) {
        unsigned flags = 0;
        const char *name_end = hone_os_read_text("", path, line) ? strrchr(line, ')') : NULL;
        if (!name_end || sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1) return;
        if ((flags & EXITING) == 0) return;
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
    }
}

// The children of those that are killed become ours in turn, until there are none.
static void end_all(keeper *k)
{
    if (!k->ended) kill(-k->worker, SIGKILL);
    if (!k->ended) kill(k->worker, SIGKILL);
    for (;;) {
        int state;
        pid_t pid = waitpid(-1, &state, WNOHANG);
        if (pid < 0 && errno == ECHILD) return;
        if (pid == k->worker) k->ended = true;
        if (pid > 0) continue;
        kill_children();
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
    }
}

// As the worker did, so that the parent sees one process.
static _Noreturn void leave(const keeper *k, bool by_itself)
{
    sigset_t none;
    if (!by_itself) _exit(0);
    if (WIFEXITED(k->state)) _exit(WEXITSTATUS(k->state));
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    // The parent may have asked for the end meanwhile, which is no answer to how the worker ended.
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(WTERMSIG(k->state), SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(WTERMSIG(k->state));
    _exit(1);
}

static _Noreturn void keep(keeper *k, const sigset_t *awaited)
{
    close_range(0, ~0u, 0);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (;;) {
        if (reap(k)) break;
        // SIGHUP: the thread that started us has ended, which need not be the end of its process.
        if (getppid() != k->parent) break;
        if (sigwaitinfo(awaited, NULL) != SIGTERM) continue;
        await_last_words(k);
        break;
    }
    bool by_itself = k->ended;
    end_all(k);
    leave(k, by_itself);
}

// A signal handler can ask nobody else.
static pid_t followed;

// The kernel sends this when the thread that started us ends, which need not be the end of its process.
static void parent_thread_ended(int signal_number)
{
    (void)signal_number;
    if (getppid() != followed) _exit(0);
}

void hone_process_follow(void)
{
    followed = getppid();
    struct sigaction action = {.sa_handler = parent_thread_ended, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
}

static void follow_keeper(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    setpgid(0, 0);
}

void hone_process_keep(void)
{
    keeper k = {.parent = getppid()};
    sigset_t awaited, before;
    if (hone_os_thread_count() != 1) { // ThreadSanitizer has one of its own everywhere
        hone_process_follow();
        return;
    }
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGHUP);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    signal(SIGCHLD, SIG_DFL); // ignored, children would leave no word of how they ended
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t self = getpid();
    k.worker = fork();
    if (k.worker > 0) keep(&k, &awaited);
    // Without a keeper a worker is still a worker.
    if (k.worker < 0) hone_process_follow();
    if (k.worker == 0) follow_keeper(self);
    sigprocmask(SIG_SETMASK, &before, NULL);
}
