// A process between a parent and a worker that ends all processes that the worker leaves behind. A process that the
// worker starts may leave its process group and outlive it. Orphans become children of the nearest ancestor that asked
// for them, which is the keeper.
//
//     tuner --- keeper (subreaper) --- worker --- what it started, in whatever group or session
//
// The keeper is the process that the tuner started; the worker is its child. The keeper waits for one of three events:
// the worker ends, the tuner asks for the end (SIGTERM), or the tuner is gone (the keeper's parent changes). Then it
// kills its children, adopts theirs, and repeats this until it has none (prctl(2), PR_SET_CHILD_SUBREAPER). It ends
// with the worker's status, so that the tuner sees one process. Invariant: while the keeper lives, every process that
// the worker started is below it.
#include "os/limits.h"
#include "os/os.h"
#include "os/posix/state.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The keeper ends by itself. It counts its checks instead of measuring time: on a busy machine both the keeper and its
// worker take longer.
enum { LOOK_NS = 100 * 1000, MOST_LOOKS = 10000 };

typedef struct keeper {
    pid_t parent, worker;
    bool ended; // the worker
    int state;  // how
} keeper;

// Returns true if the worker has ended. A worker that had itself traced stops at every signal, and the keeper has to
// let it continue.
static bool reap(keeper *k)
{
    int state;
    pid_t pid;
    while ((pid = waitpid(-1, &state, WNOHANG)) > 0) {
        if (WIFSTOPPED(state)) ptrace(PTRACE_DETACH, pid, NULL, NULL);
        if (pid != k->worker || WIFSTOPPED(state)) continue;
        k->ended = true;
        k->state = state;
    }
    return k->ended;
}

static void kill_if_child(pid_t pid)
{
    hone_process_state state;
    if (hone_process_state_read(pid, &state) && state.parent == getpid()) kill(pid, SIGKILL);
}

static void kill_children(void)
{
    DIR *processes = opendir("/proc");
    if (processes == NULL) return;
    const struct dirent *entry;
    while ((entry = readdir(processes)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') kill_if_child((pid_t)strtol(entry->d_name, NULL, 10));
    closedir(processes);
}

// A worker that is asked to end may be exiting by itself, and then its exit status matters: its files are closed, which
// is what its tuner noticed, before it can be waited for.
static void await_last_words(keeper *k)
{
    hone_process_state state;
    for (int i = 0; i < MOST_LOOKS && !reap(k); i++) {
        if (!hone_process_state_read(k->worker, &state) || !state.is_exiting) return;
        hone_os_sleep_ns(LOOK_NS);
    }
}

// Kills all children. The children of a killed process become the keeper's, so this repeats until there are none. A
// process that a driver blocks dies later.
static void end_all(keeper *k)
{
    if (!k->ended) kill(-k->worker, SIGKILL);
    if (!k->ended) kill(k->worker, SIGKILL);
    for (int i = 0; i < MOST_LOOKS;) {
        int state;
        pid_t pid = waitpid(-1, &state, WNOHANG);
        if (pid < 0 && errno == ECHILD) return;
        if (pid == k->worker) k->ended = true;
        if (pid > 0) continue;
        kill_children();
        hone_os_sleep_ns(LOOK_NS);
        i++;
    }
}

// Ends with the worker's status, so that the parent sees one process.
static _Noreturn void leave(const keeper *k, bool by_itself)
{
    sigset_t none;
    if (!by_itself) _exit(0);
    if (WIFEXITED(k->state)) _exit(WEXITSTATUS(k->state));
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    // The parent may have asked for the end meanwhile; that must not replace the worker's own signal.
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
        // SIGHUP: the thread that started the keeper has ended; its process need not have ended.
        if (getppid() != k->parent) break;
        if (sigwaitinfo(awaited, NULL) != SIGTERM) continue;
        await_last_words(k);
        break;
    }
    bool by_itself = k->ended;
    end_all(k);
    leave(k, by_itself);
}

// The processor time of all processes below one, except `but`; counts them in *found.
static uint64_t spent_below(pid_t parent, pid_t but, int depth, hone_os_orphans *found)
{
    char path[64], list[HONE_OS_TEXT_SIZE];
    uint64_t spent_ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    if (depth == 0 || !hone_os_read_text("", path, list)) return 0;
    for (char *at = list, *end; *at != '\0'; at = end) {
        const pid_t pid = (pid_t)strtol(at, &end, 10);
        clockid_t clock;
        struct timespec spent;
        hone_process_state state;
        if (end == at) break;
        if (pid == but) continue;
        found->count++;
        found->running += hone_process_state_read(pid, &state) && state.is_running;
        if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &spent) == 0)
            spent_ns += (uint64_t)spent.tv_sec * 1000000000 + (uint64_t)spent.tv_nsec;
        spent_ns += spent_below(pid, but, depth - 1, found);
    }
    return spent_ns;
}

uint64_t hone_os_orphans_ns(hone_os_orphans *out)
{
    enum { DEPTH = 4 };
    hone_process_state parent;
    const pid_t above = getppid();
    *out = (hone_os_orphans){0};
    // Without a keeper the orphans cannot be distinguished from those of other processes.
    if (!hone_process_state_read(above, &parent) || strcmp(parent.name, HONE_KEEPER_NAME) != 0) return 0;
    return spent_below(above, getpid(), DEPTH, out);
}

// A signal handler has no argument.
static pid_t followed;

// The kernel sends this signal when the thread that started this process ends; its process need not have ended.
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
    char name[HONE_PROCESS_NAME_SIZE] = "";
    if (hone_os_thread_count() != 1) { // ThreadSanitizer always has a thread of its own
        hone_process_follow();
        return;
    }
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGHUP);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    signal(SIGCHLD, SIG_DFL); // if it is ignored, the status of children is lost
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_GET_NAME, name);
    prctl(PR_SET_NAME, HONE_KEEPER_NAME); // from here on SIGTERM is handled
    pid_t self = getpid();
    k.worker = fork();
    if (k.worker > 0) keep(&k, &awaited);
    prctl(PR_SET_NAME, name);
    // Without a keeper the worker still runs.
    if (k.worker < 0) hone_process_follow();
    if (k.worker == 0) follow_keeper(self);
    sigprocmask(SIG_SETMASK, &before, NULL);
}
