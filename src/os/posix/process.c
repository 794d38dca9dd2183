// Child processes that communicate over a socket pair. Each leads its own process group, so that killing the group also
// kills what the child started.
//
// posix_spawn cannot arrange that a child dies with its parent. So the worker's main function requests this itself
// (PR_SET_PDEATHSIG, which the kernel ties to the thread that spawned it), and it reads the end of its socket when the
// parent is gone.
#include "base/assert.h"
#include "base/error.h"
#include "os/mutex.h"
#include "os/os.h"
#include "os/posix/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_FD = 3 };

extern char **environ;

static const char where_start[] = "os.process.start";

// Moves a descriptor above the standard files: a program that starts without them may open them later, and would close
// ours.
static bool move_up(int *fd)
{
    if (*fd > STDERR_FILENO) return true;
    const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved < 0) return false;
    close(*fd);
    *fd = moved;
    return true;
}

static hone_status make_pair(int out_fds[2], hone_error *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out_fds) != 0)
        return hone_fail_system(err, HONE_IO, where_start, errno, "cannot make a socket pair");
    if (move_up(&out_fds[0]) && move_up(&out_fds[1])) return HONE_OK;
    const int code = errno;
    close(out_fds[0]);
    close(out_fds[1]);
    return hone_fail_system(err, HONE_IO, where_start, code, "cannot make a socket pair");
}

static hone_process own(pid_t pid, int fd)
{
    hone_fd_own(fd);
    return (hone_process){.pid = pid, .fd = fd, .generation = hone_fork_generation()};
}

// The child's files: its end of the pair as descriptor 3, empty input, and no access to the host's output.
static int fill_actions(posix_spawn_file_actions_t *actions, int child_fd)
{
    int code = posix_spawn_file_actions_adddup2(actions, child_fd, CHILD_FD);
    if (code == 0) code = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0) code = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    return code;
}

// Gives the child its own group, and none of the host's signal handling.
static int fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int code = posix_spawnattr_setpgroup(attributes, 0);
    if (code == 0) code = posix_spawnattr_setsigmask(attributes, &none);
    if (code == 0) code = posix_spawnattr_setsigdefault(attributes, &all);
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    return code == 0 ? posix_spawnattr_setflags(attributes, flags) : code;
}

// The variables of hone_process_hand_on, the newest first. Threads that start processes read the list without a lock,
// so nothing is ever removed.
typedef struct handed_variable {
    struct handed_variable *next;
    size_t name_size;
    char entry[]; // NAME=VALUE
} handed_variable;

static _Atomic(handed_variable *) handed;

static bool is_handed(const char *entry, size_t name_size)
{
    const handed_variable *variable = atomic_load(&handed);
    while (variable != NULL &&
           (variable->name_size != name_size || strncmp(variable->entry, entry, name_size + 1) != 0))
        variable = variable->next;
    return variable != NULL && strcmp(variable->entry, entry) == 0;
}

hone_status hone_process_hand_on(const char *name, const char *value)
{
    const size_t name_size = strlen(name), size = name_size + 1 + strlen(value) + 1;
    handed_variable *variable = calloc(1, sizeof *variable + size);
    if (variable == NULL) return HONE_OUT_OF_MEMORY;
    variable->name_size = name_size;
    snprintf(variable->entry, size, "%s=%s", name, value);
    if (is_handed(variable->entry, name_size)) {
        free(variable);
        return HONE_OK;
    }
    variable->next = atomic_load(&handed);
    while (!atomic_compare_exchange_weak(&handed, &variable->next, variable))
        ;
    return HONE_OK;
}

static bool has_name(char *const *entries, const handed_variable *variable)
{
    for (; *entries != NULL; entries++)
        if (strncmp(*entries, variable->entry, variable->name_size + 1) == 0) return true;
    return false;
}

// This process's environment and the variables that are passed on, each name once: of duplicates, programs use the
// first or the last. NULL if there is no memory.
static char **environment_of_child(void)
{
    size_t count = 0, own = 0;
    while (environ != NULL && environ[own] != NULL)
        own++;
    handed_variable *first = atomic_load(&handed);
    for (const handed_variable *variable = first; variable != NULL; variable = variable->next)
        count++;
    char **entries = calloc(own + count + 1, sizeof *entries);
    if (entries == NULL) return NULL;
    if (own > 0) memcpy(entries, environ, own * sizeof *entries);
    for (; first != NULL; first = first->next)
        if (!has_name(entries, first)) entries[own++] = first->entry;
    return entries;
}

static int spawn(const char *program, const char *const *arguments, int child_fd, pid_t *out_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment = environment_of_child();
    int code = environment != NULL ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (code != 0) {
        free(environment);
        return code;
    }
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        code = fill_actions(&actions, child_fd);
        if (code == 0) code = fill_attributes(&attributes);
        // posix_spawn takes char *const[] for historical reasons; it does not write to the strings.
        if (code == 0)
            code = posix_spawn(out_pid, program, &actions, &attributes, (char *const *)arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return code;
}

hone_status hone_process_spawn(const char *program, const char *const *arguments, hone_process *out, hone_error *err)
{
    int fds[2];
    hone_status status = make_pair(fds, err);
    if (status != HONE_OK) return status;
    pid_t pid;
    int code = spawn(program, arguments, fds[1], &pid);
    close(fds[1]);
    if (code != 0) {
        close(fds[0]);
        return hone_fail_system(err, HONE_IO, where_start, code, "cannot start %s", program);
    }
    *out = own(pid, fds[0]);
    return HONE_OK;
}

// In the child: makes it die with the parent, and ends it if the parent was already gone.
static void follow_parent(pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

hone_status hone_process_fork(int (*body)(void *ctx, int fd), void *ctx, hone_process *out, hone_error *err)
{
    int fds[2];
    hone_status status = make_pair(fds, err);
    if (status != HONE_OK) return status;
    pid_t parent = getpid();
    hone_fork_is_own = true;
    const pid_t pid = fork();
    hone_fork_is_own = false;
    if (pid == 0) {
        follow_parent(parent);
        close(fds[0]);
        _exit(body(ctx, fds[1]));
    }
    int code = errno;
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return hone_fail_system(err, HONE_IO, where_start, code, "cannot fork");
    }
    setpgid(pid, pid); // parent and child both call it, so that the group exists when either continues
    *out = own(pid, fds[0]);
    return HONE_OK;
}

static pid_t wait_for(pid_t pid, int *out_state)
{
    pid_t waited;
    do
        waited = waitpid(pid, out_state, 0);
    while (waited < 0 && errno == EINTR);
    return waited;
}

// Checks without reaping: as long as the leader is not reaped, the number of its group is not reused.
static bool has_ended(pid_t pid)
{
    siginfo_t before = {0};
    return waitid(P_PID, (id_t)pid, &before, WEXITED | WNOHANG | WNOWAIT) == 0 && before.si_pid != 0;
}

static bool is_keeper(const hone_process_state *state)
{
    return strcmp(state->name, HONE_KEEPER_NAME) == 0 && !state->is_stopped;
}

// A keeper also ends processes that have left its group, and then ends as its worker did. A process that is exiting
// soon has an exit status. Either may take long on a busy machine, so only one that stands still ends the wait; other
// processes are not waited for. True if it ended.
static bool ask_to_end(pid_t pid)
{
    enum { LOOK_NS = 100 * 1000 };
    static const uint64_t most_ns = 30000000000u;
    hone_process_state state;
    const uint64_t end = hone_os_now_ns() + most_ns;
    if (hone_process_state_read(pid, &state) && is_keeper(&state)) kill(pid, SIGTERM);
    while (!has_ended(pid) && hone_os_now_ns() < end && hone_process_state_read(pid, &state) &&
           (state.is_exiting || is_keeper(&state)))
        hone_os_sleep_ns(LOOK_NS);
    return has_ended(pid);
}

static void end(hone_process *process)
{
    if (process->fd >= 0) {
        hone_fd_disown(process->fd);
        close(process->fd);
    }
    *process = (hone_process){.pid = -1, .fd = -1};
}

void hone_process_kill(hone_process *process, int *out_signal, int *out_exit)
{
    *out_signal = 0;
    *out_exit = 0;
    if (process->pid <= 0) return;
    if (process->generation != hone_fork_generation()) {
        end(process);
        return;
    }
    bool asked = !has_ended(process->pid), ended = !asked || ask_to_end(process->pid);
    kill(-process->pid, SIGKILL);
    int state;
    if (wait_for(process->pid, &state) == process->pid) {
        if (WIFEXITED(state)) *out_exit = WEXITSTATUS(state);
        // A death by another signal began before ours arrived.
        if (WIFSIGNALED(state) && (ended || WTERMSIG(state) != SIGKILL) && !(asked && WTERMSIG(state) == SIGTERM))
            *out_signal = WTERMSIG(state);
    }
    end(process);
}

// Milliseconds for poll until the deadline, rounded up; -1 for no deadline.
static int milliseconds_left(uint64_t deadline_ns)
{
    if (deadline_ns == 0) return -1;
    uint64_t now = hone_os_now_ns();
    if (now >= deadline_ns) return 0;
    uint64_t left = (deadline_ns - now + 999999) / 1000000;
    return left > 1000000 ? 1000000 : (int)left;
}

// Waits until fd can be read or written: HONE_OK (also if the other end is gone, which the next call reports),
// HONE_BUSY, HONE_IO.
static hone_status await_fd(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = events};
        int count = poll(&waited, 1, milliseconds_left(deadline_ns));
        if (count > 0) return HONE_OK;
        if (count < 0 && errno != EINTR) return HONE_IO;
        if (deadline_ns != 0 && hone_os_now_ns() >= deadline_ns) return HONE_BUSY;
    }
}

static bool should_wait(ssize_t count)
{
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

hone_status hone_fd_write(int fd, const void *bytes, size_t size, uint64_t deadline_ns)
{
    const char *at = bytes;
    hone_assert(fd >= 0 && (bytes != NULL || size == 0));
    while (size > 0) {
        ssize_t count = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        } else if (should_wait(count)) {
            hone_status status = await_fd(fd, POLLOUT, deadline_ns);
            if (status != HONE_OK) return status;
        } else if (errno != EINTR) {
            return HONE_IO;
        }
    }
    return HONE_OK;
}

hone_status hone_fd_read(int fd, void *bytes, size_t size, uint64_t deadline_ns)
{
    char *at = bytes;
    hone_assert(fd >= 0 && (bytes != NULL || size == 0));
    while (size > 0) {
        ssize_t count = recv(fd, at, size, MSG_DONTWAIT);
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        } else if (should_wait(count)) {
            hone_status status = await_fd(fd, POLLIN, deadline_ns);
            if (status != HONE_OK) return status;
        } else if (count == 0 || errno != EINTR) {
            return HONE_IO;
        }
    }
    return HONE_OK;
}

bool hone_fd_is_readable(int fd)
{
    return await_fd(fd, POLLIN, hone_os_now_ns()) != HONE_BUSY;
}

bool hone_fd_await_readable(int fd, uint64_t patience_ns)
{
    return await_fd(fd, POLLIN, hone_os_now_ns() + patience_ns) != HONE_BUSY;
}

// This process --------------------------------------------------------------------------------------------------------

int hone_os_process_id(void)
{
    return (int)getpid();
}

void hone_os_who(char *out, size_t size)
{
    char host[256] = "?", names[4096], number[24];
    struct passwd entry, *found = NULL;
    snprintf(number, sizeof number, "%u", (unsigned)geteuid());
    if (getpwuid_r(geteuid(), &entry, names, sizeof names, &found) != 0) found = NULL;
    if (gethostname(host, sizeof host - 1) != 0) memcpy(host, "?", 2);
    snprintf(out, size, "%s@%s", found != NULL ? found->pw_name : number, host);
}
