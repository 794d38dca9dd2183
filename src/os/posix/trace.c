// Detects what foreign code changes in its process and does not restore: one table of facts, each read as one number.
#include "base/hash.h"
#include "os/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const uint64_t pair[2] = {hash, hone_hash64(bytes, size)};
    return hone_hash64(pair, sizeof pair);
}

// Facts ---------------------------------------------------------------------------------------------------------------

static uint64_t read_signal_mask(void)
{
    uint64_t blocked = 0;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number <= 64; number++)
        if (sigismember(&mask, number) == 1) blocked |= (uint64_t)1 << (number - 1);
    return blocked;
}

static uint64_t read_handlers(void)
{
    uint64_t hash = 0;
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0) continue; // fails for the signals that the C library uses itself
        uintptr_t handler =
            (action.sa_flags & SA_SIGINFO) != 0 ? (uintptr_t)action.sa_sigaction : (uintptr_t)action.sa_handler;
        const uint64_t fact[2] = {handler, (uint64_t)number};
        if (handler != (uintptr_t)SIG_DFL) hash = mix(hash, fact, sizeof fact);
    }
    return hash;
}

static uint64_t read_signal_stack(void)
{
    stack_t stack = {.ss_sp = NULL};
    sigaltstack(NULL, &stack);
    const uint64_t fact[3] = {(uintptr_t)stack.ss_sp, (uint64_t)stack.ss_flags, stack.ss_size};
    return hone_hash64(fact, sizeof fact);
}

static uint64_t read_folder(void)
{
    struct stat folder;
    if (stat(".", &folder) != 0) return 0;
    const uint64_t fact[2] = {folder.st_dev, folder.st_ino};
    return hone_hash64(fact, sizeof fact);
}

static uint64_t read_file_mask(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return mask;
}

static uint64_t read_environment(void)
{
    uint64_t sum = 0; // the same in any order
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        sum += hone_hash64(*entry, strlen(*entry));
    return sum;
}

static uint64_t read_locale(void)
{
    const char *name = setlocale(LC_ALL, NULL);
    uintptr_t threads = (uintptr_t)uselocale((locale_t)0);
    return mix(threads, name != NULL ? name : "", name != NULL ? strlen(name) : 0);
}

static uint64_t read_limits(void)
{
    uint64_t hash = 0;
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit = {0, 0};
        getrlimit((__rlimit_resource_t)resource, &limit);
        const uint64_t fact[2] = {limit.rlim_cur, limit.rlim_max};
        hash = mix(hash, fact, sizeof fact);
    }
    return hash;
}

// Whether and how the calling thread can be cancelled, and the attributes of threads that are created without any.
static uint64_t read_thread_rules(void)
{
    int state, type;
    size_t stack = 0, guard = 0;
    pthread_attr_t attributes;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    (void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    (void)pthread_setcanceltype(type, NULL);
    (void)pthread_setcancelstate(state, NULL);
    if (pthread_getattr_default_np(&attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, &stack);
        (void)pthread_attr_getguardsize(&attributes, &guard);
        (void)pthread_attr_destroy(&attributes);
    }
    const uint64_t fact[4] = {(uint64_t)state, (uint64_t)type, stack, guard};
    return hone_hash64(fact, sizeof fact);
}

static uint64_t read_priority(void)
{
    struct sched_param parameters = {0};
    sched_getparam(0, &parameters);
    const int64_t fact[3] = {getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), parameters.sched_priority};
    const long of_files = syscall(SYS_ioprio_get, 1 /* of a process */, 0);
    return mix(hone_hash64(fact, sizeof fact), &of_files, sizeof of_files);
}

// Registers in use are left by MMX code without emms: from then on a long double of the caller is NaN.
static uint64_t read_x87_registers(void)
{
#if defined(__x86_64__)
    struct {
        uint32_t control, status, tags, rest[4];
    } environment;
    __asm__ volatile("fnstenv %0\n\tfldenv %0" : "+m"(environment)); // the first masks all exceptions
    return environment.tags & UINT16_MAX;
#else
    return 0;
#endif
}

static uint64_t read_settings_of_kernel(void)
{
    enum { GET_MEMORY_MERGE = 68 }; // PR_GET_MEMORY_MERGE of Linux 6.4
    static const struct {
        int option;
        unsigned long what;
    } asked[] = {
        {PR_GET_THP_DISABLE, 0},
        {PR_GET_TIMERSLACK, 0},
        {PR_GET_DUMPABLE, 0},
        {PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS},
        {PR_GET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH},
        {PR_GET_NO_NEW_PRIVS, 0},
        {PR_GET_SECCOMP, 0},
        {GET_MEMORY_MERGE, 0},
    };
    // Whether the process reaps orphans, its signal when the parent ends, its memory policy, whether it may read the
    // processor's time-stamp counter.
    int answers[4] = {0, 0, 0, 0};
    (void)prctl(PR_GET_CHILD_SUBREAPER, &answers[0], 0, 0, 0);
    (void)prctl(PR_GET_PDEATHSIG, &answers[1], 0, 0, 0);
    (void)syscall(SYS_get_mempolicy, &answers[2], NULL, 0, NULL, 0);
#ifdef PR_GET_TSC
    (void)prctl(PR_GET_TSC, &answers[3], 0, 0, 0);
#endif
    const int persona = personality(UINT32_MAX); // changes nothing
    char name[16] = "";
    (void)prctl(PR_GET_NAME, name, 0, 0, 0);
    uint64_t hash = mix(hone_hash64(name, strnlen(name, sizeof name)), answers, sizeof answers);
    hash = mix(hash, &persona, sizeof persona);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const int answer = prctl(asked[i].option, asked[i].what, 0, 0, 0);
        hash = mix(hash, &answer, sizeof answer);
    }
    return hash;
}

static uint64_t read_user(void)
{
    const uint64_t fact[5] = {getuid(), geteuid(), getegid(), (uint64_t)getpgrp(), (uint64_t)getsid(0)};
    return hone_hash64(fact, sizeof fact);
}

static uint64_t read_standard_files(void)
{
    uint64_t hash = 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat file = {0};
        int code = fstat(fd, &file);
        const uint64_t flags = (uint64_t)fcntl(fd, F_GETFL);
        const uint64_t fact[5] = {(uint64_t)code, file.st_dev, file.st_ino, file.st_rdev, flags};
        hash = mix(hash, fact, sizeof fact);
    }
    return hash;
}

static uint64_t read_timers(void)
{
    static const __itimer_which_t which[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    uint64_t armed = 0;
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        struct itimerval timer = {0};
        getitimer(which[i], &timer);
        if (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0) armed |= (uint64_t)1 << i;
    }
    // Also counts timers of timer_create that are not armed: a process can have only about a thousand.
    FILE *list = fopen("/proc/self/timers", "re");
    char line[128];
    while (list != NULL && fgets(line, sizeof line, list) != NULL)
        if (strncmp(line, "ID:", 3) == 0) armed += (uint64_t)1 << 8;
    if (list != NULL) fclose(list);
    return armed;
}

// The lowest free key.
static uint64_t read_next_key(void)
{
    pthread_key_t key;
    if (pthread_key_create(&key, NULL) != 0) return PTHREAD_KEYS_MAX;
    pthread_key_delete(key);
    return key;
}

static uint64_t read_keys_left(void)
{
    return read_next_key() < PTHREAD_KEYS_MAX;
}

static uint64_t read_children(void)
{
    siginfo_t child = {0};
    return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) ==
           0; // also those that send no signal (clone)
}

static const struct {
    const char *what;
    uint64_t (*read)(void);
    bool of_thread, of_loading;
} facts[HONE_OS_FACTS] = {
    {"the signal mask", read_signal_mask, true, false},
    {"a signal's handler", read_handlers, false, true},
    {"the stack of signal handlers", read_signal_stack, true, true},
    {"the floating-point mode", hone_os_float_mode, true, false},
    {"the x87 registers", read_x87_registers, true, false},
    {"the working folder", read_folder, false, false},
    {"the mask of new files", read_file_mask, false, false},
    {"the environment", read_environment, false, true},
    {"the locale", read_locale, false, false},
    {"the resource limits", read_limits, false, false},
    {"the priority", read_priority, false, false},
    {"the kernel's settings (prctl)", read_settings_of_kernel, false, false},
    {"the user or the process group", read_user, false, false},
    {"the standard files", read_standard_files, false, false},
    {"the rules of threads (cancellation, default attributes)", read_thread_rules, false, false},
    {"a timer", read_timers, false, false},
    {"the child processes", read_children, false, false},
    {"the keys for thread-local data (none is left)", read_keys_left, false, false},
};

void hone_os_state_read(hone_os_state *out)
{
    for (size_t i = 0; i < HONE_OS_FACTS; i++)
        out->facts[i] = facts[i].read();
}

// A library that was linked with -Ofast or -ffast-math makes the thread that loads it treat subnormal numbers as zero.
// hone restores the mode after libraries that it loads itself (library.c), but not after those that a kernel loads.
static const char *what_of(size_t fact, const hone_os_state *before, const hone_os_state *now)
{
#if defined(__x86_64__)
    const uint64_t flushes = 0x8040; // flush-to-zero, denormals-are-zero
    if (facts[fact].read == hone_os_float_mode && (now->facts[fact] & ~before->facts[fact] & flushes) != 0)
        return "the floating-point mode (subnormal numbers count as zero, flush-to-zero, as a library that is linked "
               "with -Ofast or -ffast-math does when a kernel loads it)";
#else
    (void)before;
    (void)now;
#endif
    return facts[fact].what;
}

const char *hone_os_state_changed(const hone_os_state *before, const hone_os_state *now, bool of_thread)
{
    for (size_t i = 0; i < HONE_OS_FACTS; i++)
        if (before->facts[i] != now->facts[i] && (facts[i].of_thread || !of_thread)) return what_of(i, before, now);
    return NULL;
}

void hone_os_state_adopt_loading(hone_os_state *state)
{
    for (size_t i = 0; i < HONE_OS_FACTS; i++)
        if (facts[i].of_loading) state->facts[i] = facts[i].read();
}

// A thread's own ------------------------------------------------------------------------------------------------------

// Takes some ns, which matters because a pool's workers call it after each job: fegetenv would store and load the whole
// environment.
uint64_t hone_os_float_mode(void)
{
#if defined(__x86_64__)
    const uint32_t flags = 0x3f; // exceptions that have occurred
    uint16_t control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    return (uint64_t)control << 32 | (__builtin_ia32_stmxcsr() & ~flags);
#else
    return (uint64_t)fegetround();
#endif
}

uint64_t hone_os_thread_settings(void)
{
    cpu_set_t processors;
    CPU_ZERO(&processors);
    (void)sched_getaffinity(0, sizeof processors, &processors);
    const uint64_t facts_of_it[] = {read_signal_mask(), read_priority(), read_x87_registers()};
    uint64_t hash = hone_hash64(facts_of_it, sizeof facts_of_it);
    return mix(hash, &processors, sizeof processors);
}

#if defined(__x86_64__)
// GCC analyses which registers a function leaves alone, also for arguments; it cannot see that in assembler text.
#    if defined(__clang__)
#        define ASSEMBLY __attribute__((naked, noinline))
#    else
#        define ASSEMBLY __attribute__((naked, noipa))
#    endif
// Writes marks into all registers that a function must preserve for its caller, except the stack pointer, and sets a
// bit in *out for each that comes back changed. The caller's values are restored in any case.
ASSEMBLY static int call_with_marks(
    __attribute__((unused)) int (*call)(void *ctx),
    __attribute__((unused)) void *ctx,
    __attribute__((unused)) uint32_t *out)
{
    __asm__("push %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\tpush %rdx\n\t"
            "mov %rdi, %rax\n\t"
            "mov %rsi, %rdi\n\t"
            "movabs $0x5bd1e9955bd1e990, %rbx\n\t"
            "lea 1(%rbx), %rbp\n\t"
            "lea 2(%rbx), %r12\n\t"
            "lea 3(%rbx), %r13\n\t"
            "lea 4(%rbx), %r14\n\t"
            "lea 5(%rbx), %r15\n\t"
            "call *%rax\n\t"
            "pop %rdx\n\t"
            "movabs $0x5bd1e9955bd1e990, %rcx\n\t"
            "xor %esi, %esi\n\t"
            "cmp %rcx, %rbx\n\tje 1f\n\tor $1, %esi\n1:\tinc %rcx\n\t"
            "cmp %rcx, %rbp\n\tje 1f\n\tor $2, %esi\n1:\tinc %rcx\n\t"
            "cmp %rcx, %r12\n\tje 1f\n\tor $4, %esi\n1:\tinc %rcx\n\t"
            "cmp %rcx, %r13\n\tje 1f\n\tor $8, %esi\n1:\tinc %rcx\n\t"
            "cmp %rcx, %r14\n\tje 1f\n\tor $16, %esi\n1:\tinc %rcx\n\t"
            "cmp %rcx, %r15\n\tje 1f\n\tor $32, %esi\n1:\t"
            "mov %esi, (%rdx)\n\t"
            "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\t"
            "ret");
}

int hone_os_call_marked(int (*call)(void *ctx), void *ctx, const char **out_changed)
{
#    define KEPT(name) "changes the register " name ", which a function keeps for its caller"
    static const char *const kept[] = {KEPT("rbx"), KEPT("rbp"), KEPT("r12"), KEPT("r13"), KEPT("r14"), KEPT("r15")};
#    undef KEPT
    uint32_t changed = 0;
    const int answer = call_with_marks(call, ctx, &changed);
    *out_changed = changed != 0 ? kept[__builtin_ctz(changed)] : NULL;
    return answer;
}
#else
int hone_os_call_marked(int (*call)(void *ctx), void *ctx, const char **out_changed)
{
    *out_changed = NULL;
    return call(ctx);
}
#endif

typedef struct thread_mode {
    fenv_t float_mode;
    sigset_t mask;
    cpu_set_t processors;
} thread_mode;

_Static_assert(sizeof(thread_mode) <= sizeof(hone_os_thread_mode), "the public place holds it");

void hone_os_thread_mode_save(hone_os_thread_mode *out)
{
    thread_mode mode;
    memset(&mode, 0, sizeof mode);
    fegetenv(&mode.float_mode);
    pthread_sigmask(SIG_SETMASK, NULL, &mode.mask);
    sched_getaffinity(0, sizeof mode.processors, &mode.processors);
    memcpy(out->bytes, &mode, sizeof mode);
}

void hone_os_thread_mode_restore(const hone_os_thread_mode *mode)
{
    thread_mode saved;
    memcpy(&saved, mode->bytes, sizeof saved);
    fesetenv(&saved.float_mode);
    pthread_sigmask(SIG_SETMASK, &saved.mask, NULL);
    (void)hone_os_thread_come_back(mode);
}

bool hone_os_thread_come_back(const hone_os_thread_mode *mode)
{
    thread_mode saved;
    cpu_set_t now;
    memcpy(&saved, mode->bytes, sizeof saved);
    // More than 1,024 processors do not fit in the set, and then nothing was saved.
    if (CPU_COUNT(&saved.processors) == 0 || sched_getaffinity(0, sizeof now, &now) != 0) return false;
    return !CPU_EQUAL(&now, &saved.processors) && sched_setaffinity(0, sizeof saved.processors, &saved.processors) == 0;
}

// Holdings ------------------------------------------------------------------------------------------------------------

static uint64_t count_entries(const char *path)
{
    uint64_t count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL) return 0;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

// Source: Linux's Documentation/admin-guide/mm/pagemap.rst. One number of 64 bits for each page.
bool hone_os_has_memory(const void *from, size_t size)
{
    enum { ENTRIES = 512 };
    const uint64_t is_there = (uint64_t)1 << 63 | (uint64_t)1 << 62; // in memory, or swapped out
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = ((uintptr_t)from + size) / page;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entries[ENTRIES];
    bool has = true;
    for (uintptr_t at = ((uintptr_t)from + page - 1) / page; at < end && fd >= 0 && has;) {
        const size_t wanted = end - at < ENTRIES ? end - at : ENTRIES;
        const ssize_t came = pread(fd, entries, wanted * sizeof entries[0], (off_t)(at * sizeof entries[0]));
        const size_t count = came > 0 ? (size_t)came / sizeof entries[0] : 0;
        for (size_t i = 0; i < count; i++)
            has = has && (entries[i] & is_there) != 0;
        if (count == 0) break; // reading is not permitted
        at += count;
    }
    if (fd >= 0) close(fd);
    return has;
}

// Source: Linux's Documentation/filesystems/proc.rst, /proc/PID/smaps: VmFlags.
static const struct {
    const char *flag, *words;
} advice[] = {
    {NULL, "that its pages may be taken away until they are written (MADV_FREE)"},
    {" dc ", "that a child of fork does not get it (MADV_DONTFORK)"},
    {" wf ", "that a child of fork gets zeros in its place (MADV_WIPEONFORK)"},
    {" hg ", "that it may have huge pages (MADV_HUGEPAGE)"},
    {" nh ", "that it has no huge pages (MADV_NOHUGEPAGE)"},
    {" mg ", "that its pages may be merged with equal ones (MADV_MERGEABLE)"},
    {" lo ", "that it stays in memory (mlock)"},
    {" sr ", "that it is read in order (MADV_SEQUENTIAL)"},
    {" rr ", "that it is read in no order (MADV_RANDOM)"},
    {" dd ", "that it is in no core file (MADV_DONTDUMP)"},
};
enum { ADVICE = sizeof advice / sizeof *advice };

static bool meets(const hone_os_span *spans, size_t count, uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)spans[i].from < to && (uintptr_t)spans[i].from + spans[i].size > from) return true;
    return false;
}

uint32_t hone_os_advice(const hone_os_span *spans, size_t count)
{
    static const char lazy[] = "LazyFree:", flags[] = "VmFlags:";
    char line[512];
    bool is_meant = false;
    uint32_t found = 0;
    FILE *maps = fopen("/proc/self/smaps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) is_meant = meets(spans, count, from, to);
        if (!is_meant) continue;
        if (strncmp(line, lazy, sizeof lazy - 1) == 0 && strtoul(line + sizeof lazy - 1, NULL, 10) > 0) found |= 1;
        if (strncmp(line, flags, sizeof flags - 1) != 0) continue;
        for (uint32_t i = 1; i < ADVICE; i++)
            if (strstr(line, advice[i].flag) != NULL) found |= UINT32_C(1) << i;
    }
    if (maps != NULL) fclose(maps);
    return found;
}

const char *hone_os_advice_words(uint32_t found)
{
    return found != 0 ? advice[__builtin_ctz(found)].words : "nothing";
}

#if defined(__GLIBC__) && __SIZEOF_POINTER__ == 8
// The first chunk of the heap that grows by brk. NULL if the process has no such heap.
static const char *find_heap(void)
{
    char line[512];
    unsigned long from = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) return NULL;
    while (from == 0 && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "[heap]") != NULL) from = strtoul(line, NULL, 16);
    fclose(maps);
    return (const char *)from; // NOLINT: an address as the system tells it
}

// A chunk begins with two words, of which the second is its size and three flags. The last chunk ends with the heap.
// Source: glibc's malloc/malloc.c, "Chunk layout".
//
//      | before (8) | size, flags (8) | what malloc returned ...
static bool is_whole(const char *piece)
{
    enum { LEAST = 32, ALIGN = 16, FLAGS = 7, FENCE = 16 }; // a fence is where other code took memory by brk
    const char *const end = sbrk(0);
    size_t size = 0;
    for (; piece < end; piece += size) {
        memcpy(&size, piece + sizeof size, sizeof size);
        size &= ~(size_t)FLAGS;
        if (size == FENCE) return true;
        if (size < LEAST || size % ALIGN != 0 || size > (size_t)(end - piece)) return false;
    }
    return true;
}

bool hone_os_heap_is_whole(void)
{
    enum { LOOKS = 3 }; // repeats the check, since another thread may be changing the heap
    static const char *heap;
    if (heap == NULL) heap = find_heap();
    for (int i = 0; heap != NULL && i < LOOKS; i++)
        if (is_whole(heap)) return true;
    return false;
}
#else
bool hone_os_heap_is_whole(void)
{
    return false;
}
#endif

void hone_os_holdings_read(hone_os_holdings *out)
{
    unsigned long long mapped = 0, resident = 0;
    char text[HONE_OS_TEXT_SIZE];
    if (hone_os_read_text("", "/proc/self/statm", text)) (void)!sscanf(text, "%llu %llu", &mapped, &resident);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct mallinfo2 heap = mallinfo2();
    out->amounts[HONE_HELD_HEAP] = heap.uordblks;
    out->amounts[HONE_HELD_MAPPED] = mapped * page;
    out->amounts[HONE_HELD_RESIDENT] = resident * page;
    out->amounts[HONE_HELD_DESCRIPTORS] = count_entries("/proc/self/fd");
    out->amounts[HONE_HELD_THREADS] = (uint64_t)hone_os_thread_count();
    out->amounts[HONE_HELD_KEYS] = read_next_key();
}
