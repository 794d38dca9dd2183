// How a process becomes a worker that can do its host no harm. The one file of this folder that speaks to Linux itself.
#include "tune/worker/confine.h"

#include "os/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// A host's own handlers (of crashes, say) have no business in a worker: it is to die of what kills it.
static void forget_handlers(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
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

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!write(fd, text, strlen(text));
    close(fd);
}

static bool is_bounded; // by hone_worker_bound_memory

// The shadows of sanitizers are larger than any memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void hone_worker_bound_memory(void)
{
}
#else
// What counts against RLIMIT_DATA by now: also what a driver has only reserved.
static rlim_t data_bytes(void)
{
    char text[HONE_OS_TEXT_SIZE];
    unsigned long long kibibytes = 0;
    const char *line = hone_os_read_text("", "/proc/self/status", text) ? strstr(text, "VmData:") : NULL;
    return line != NULL && sscanf(line, "VmData: %llu", &kibibytes) == 1 ? (rlim_t)kibibytes * 1024 : 0;
}

// A candidate that allocates without end fails by itself.
void hone_worker_bound_memory(void)
{
    int64_t bytes = hone_os_memory_bytes();
    const rlim_t most = data_bytes() + (rlim_t)(bytes > 0 ? bytes - bytes / 8 : 0);
    struct rlimit limit;
    if (bytes > 0 && getrlimit(RLIMIT_DATA, &limit) == 0 && most < limit.rlim_cur) {
        limit.rlim_cur = most;
        is_bounded = setrlimit(RLIMIT_DATA, &limit) == 0;
    }
}
#endif

bool hone_worker_unbound_memory(void)
{
    struct rlimit limit;
    if (!is_bounded || getrlimit(RLIMIT_DATA, &limit) != 0) return false;
    limit.rlim_cur = limit.rlim_max;
    is_bounded = setrlimit(RLIMIT_DATA, &limit) != 0;
    return !is_bounded;
}

static void isolate(int fd)
{
    be_silent(fd);
    close_others(fd);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

void hone_worker_confine(int fd)
{
    forget_handlers();
    hone_process_keep();
    isolate(fd);
    hone_worker_bound_memory();
    // Where the machine runs out first, the system ends the worker rather than its host.
    write_text("/proc/self/oom_score_adj", "500");
}

void hone_zygote_confine(int fd)
{
    forget_handlers();
    hone_process_follow();
    isolate(fd);
}
