// Makes a process a worker that cannot harm its host. The only file of this folder that uses Linux directly.
#include "tune/worker/confine.h"

#include "os/limits.h"
#include "os/restrict.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Removes the host's own handlers, of crashes for example: a worker must die of what kills it.
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

// What libraries print must not appear in the host's terminal.
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

// The shadow memory of sanitizers is larger than any limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void hone_worker_bound_memory(void)
{
}
#else
// What counts against RLIMIT_DATA now, in bytes, with what a driver has only reserved.
static rlim_t data_bytes(void)
{
    char text[HONE_OS_TEXT_SIZE];
    unsigned long long kibibytes = 0;
    const char *line = hone_os_read_text("", "/proc/self/status", text) ? strstr(text, "VmData:") : NULL;
    return line != NULL && sscanf(line, "VmData: %llu", &kibibytes) == 1 ? (rlim_t)kibibytes * 1024 : 0;
}

// Limits memory, so that a candidate that allocates without end fails by itself.
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

// What a worker may write ---------------------------------------------------------------------------------------------

enum { PATH_SIZE = 1024, MOST_PATHS = 64 };

typedef struct paths {
    char text[MOST_PATHS][PATH_SIZE];
    const char *list[MOST_PATHS];
    size_t count;
} paths;

static const char *add_path(paths *all, const char *folder, const char *name)
{
    if (folder == NULL || folder[0] != '/' || all->count == MOST_PATHS) return NULL;
    char *path = all->text[all->count];
    const int size = snprintf(path, PATH_SIZE, "%s%s%s", folder, name[0] != '\0' ? "/" : "", name);
    if (size <= 0 || size >= PATH_SIZE) return NULL;
    return all->list[all->count++] = path;
}

// Folders in which compilers and drivers keep what they have made, for later processes. A folder is created if its
// owner is here: one that does not exist when a worker starts cannot be allowed.
static const struct {
    const char *variable;           // the environment variable with the folder
    const char *of_cache, *of_home; // otherwise: its name in the user's folder of caches, or in the home folder
    const char *owner;              // a file that shows that it may be needed; "": always; NULL: only used if it exists
} kept[] = {
    {"HONE_COMPILE_CACHE", "hone/compiled", NULL, ""},
    {"POCL_CACHE_DIR", "pocl", NULL, "/etc/OpenCL/vendors/pocl.icd"},
    {"CUDA_CACHE_PATH", NULL, ".nv", "/dev/nvidiactl"},
    {"TRITON_CACHE_DIR", NULL, ".triton", NULL},
    {"NEO_CACHE_DIR", "neo_compiler_cache", NULL, NULL},
    {"AMD_COMGR_CACHE_DIR", "comgr", NULL, NULL},
    {"MESA_SHADER_CACHE_DIR", "mesa_shader_cache", NULL, NULL},
    {NULL, "mesa_shader_cache_db", NULL, NULL},
    {"CCACHE_DIR", "ccache", NULL, NULL},
    {NULL, NULL, ".ccache", NULL},
};

static void add_kept(paths *folders)
{
    char caches[PATH_SIZE] = "";
    const char *named = hone_os_variable("XDG_CACHE_HOME"), *home = hone_os_variable("HOME");
    if (named != NULL && named[0] == '/')
        snprintf(caches, sizeof caches, "%s", named);
    else if (home != NULL && home[0] == '/')
        snprintf(caches, sizeof caches, "%s/.cache", home);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *given = kept[i].variable != NULL ? hone_os_variable(kept[i].variable) : NULL, *path;
        const char *owner = kept[i].owner;
        if (given != NULL && given[0] == '/')
            path = add_path(folders, given, "");
        else
            path = kept[i].of_cache != NULL ? add_path(folders, caches, kept[i].of_cache)
                                            : add_path(folders, home, kept[i].of_home);
        if (path != NULL && owner != NULL && (owner[0] == '\0' || access(owner, F_OK) == 0))
            (void)!hone_os_make_folders(path, NULL);
    }
}

static const char nvidia[] = "/dev/nvidiactl";

static bool add_gpu(void *ctx, const char *name)
{
    if (strncmp(name, "nvidia", strlen("nvidia")) == 0) (void)!add_path(ctx, "/dev", name);
    return true;
}

static void add_devices(paths *devices)
{
    static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty", "dri", "kfd", "accel"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)!add_path(devices, "/dev", names[i]);
    (void)!hone_os_list_folder("/dev", add_gpu, devices, NULL);
    // CUDA names its threads there, and fails if it cannot.
    if (access(nvidia, F_OK) == 0) (void)!add_path(devices, "/proc/self", "");
}

static bool is_asked_for(void)
{
    const char *word = hone_os_variable("HONE_WORKER_CONFINE");
    return word == NULL || strcmp(word, "off") != 0;
}

static bool gave_up; // this process has given up rights

void hone_worker_explain_refusal(char *reason, size_t size)
{
    const size_t used = strlen(reason);
    if (!gave_up || (strstr(reason, "ermission denied") == NULL && strstr(reason, "not permitted") == NULL)) return;
    snprintf(
        reason + used, size - used,
        " (a worker writes temporary files and caches alone, and has no network; HONE_WORKER_CONFINE=off lifts that)");
}

// NVIDIA's drivers communicate with their own services.
void hone_worker_give_up_rights(void)
{
    static paths folders, devices; // too large for a stack
    static const char *const temporary[] = {"/tmp", "/var/tmp", "/dev/shm"};
    if (!is_asked_for()) return;
    folders.count = devices.count = 0;
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++)
        (void)!add_path(&folders, temporary[i], "");
    (void)!add_path(&folders, hone_os_variable("TMPDIR"), "");
    add_kept(&folders);
    add_devices(&devices);
    const hone_os_rights rights = {folders.list, folders.count, devices.list, devices.count, access(nvidia, F_OK) == 0};
    gave_up = hone_os_restrict(&rights) != 0;
}

void hone_worker_tell_confinement(char *out, size_t size)
{
    const unsigned can = hone_os_can_restrict();
    const char *files = (can & HONE_OS_RESTRICTS_FILES) != 0 ? "writes temporary files and caches alone"
                                                             : "writes what the user may: the kernel has no Landlock";
    const char *calls = (can & HONE_OS_RESTRICTS_CALLS) != 0 ? "has no network" : "no seccomp filter holds it";
    if (is_asked_for())
        snprintf(out, size, "%s, %s", files, calls);
    else
        snprintf(out, size, "is not confined: HONE_WORKER_CONFINE=off");
}

bool hone_worker_is_confined(void)
{
    return is_asked_for() && hone_os_can_restrict() == (HONE_OS_RESTRICTS_FILES | HONE_OS_RESTRICTS_CALLS);
}

// ---------------------------------------------------------------------------------------------------------------------

void hone_worker_confine(int fd)
{
    forget_handlers();
    hone_process_keep();
    isolate(fd);
    hone_worker_bound_memory();
    // If the machine runs out of memory first, the system ends the worker rather than its host.
    write_text("/proc/self/oom_score_adj", "500");
    hone_worker_give_up_rights();
}

void hone_zygote_confine(int fd)
{
    forget_handlers();
    hone_process_follow();
    isolate(fd);
}
