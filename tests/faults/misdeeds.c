#include "misdeeds.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#if defined(__x86_64__)
#    include <xmmintrin.h>
#endif

typedef struct deed {
    const float *x;
    float *y;
    int64_t size;
    uint64_t variant; // 0 to 7
    uint64_t run;     // how many came before, in this process
} deed;

static void compute(const deed *d)
{
    for (int64_t i = 0; i < d->size; i++)
        d->y[i] = 2 * d->x[i];
}

// Crashes -------------------------------------------------------------------------------------------------------------

static void fall_segv(const deed *d)
{
    volatile int *nowhere = (volatile int *)(uintptr_t)(8 * d->variant);
    *nowhere = 1;
}

static void fall_ill(const deed *d)
{
    (void)d;
    raise(SIGILL);
}

static void fall_fpe(const deed *d)
{
    (void)d;
    raise(SIGFPE);
}

static void fall_bus(const deed *d)
{
    (void)d;
    raise(SIGBUS);
}

static void fall_abort(const deed *d)
{
    (void)d;
    abort();
}

static void fall_exit(const deed *d)
{
    exit((int)d->variant); // 0 too: success
}

static void fall_leave(const deed *d)
{
    _exit((int)d->variant);
}

static void fall_kill_group(const deed *d)
{
    (void)d;
    kill(0, SIGKILL);
}

// Through a volatile, or the compiler makes a loop of it.
static int eat_stack(volatile char *above, int depth)
{
    volatile char bytes[8192];
    bytes[0] = above != NULL ? above[0] : 1;
    bytes[8191] = (char)depth;
    return depth > 0 ? eat_stack(bytes, depth + 1) + bytes[8191] : 0;
}

static void fall_stack(const deed *d)
{
    if (eat_stack(NULL, 1) == 7) d->y[0] = 0;
}

// Right while it is verified first, dead when it is timed.
static void fall_later(const deed *d)
{
    compute(d);
    if (d->run == 3 + 40 * d->variant) raise(SIGSEGV);
}

// Hangs ---------------------------------------------------------------------------------------------------------------

static void hang_loop(const deed *d)
{
    volatile const uint64_t *variant = &d->variant;
    while (*variant < 8)
        ;
}

static void hang_sleep(const deed *d)
{
    (void)d;
    for (;;)
        sleep(1000);
}

static void hang_lock(const deed *d)
{
    (void)d;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}

static void hang_later(const deed *d)
{
    compute(d);
    if (d->run >= 5 + d->variant) hang_sleep(d);
}

// Lies ----------------------------------------------------------------------------------------------------------------

static void lie_nothing(const deed *d)
{
    (void)d;
}

static void lie_last(const deed *d)
{
    compute(d);
    d->y[d->size - 1] += 1.0f + (float)d->variant;
}

static void lie_one(const deed *d)
{
    compute(d);
    d->y[(int64_t)(d->variant * 13) % d->size] *= 1.001f;
}

static void lie_unwritten(const deed *d)
{
    deed short_of = *d;
    short_of.size -= 1 + (int64_t)d->variant;
    compute(&short_of);
}

static void lie_nan(const deed *d)
{
    compute(d);
    d->y[(int64_t)(d->variant * 7) % d->size] = NAN;
}

static void lie_zero(const deed *d)
{
    memset(d->y, 0, (size_t)d->size * sizeof d->y[0]);
}

// Right in the first runs only: it hopes to be looked at no more.
static void lie_after_first(const deed *d)
{
    if (d->run <= d->variant) compute(d);
}

static void lie_sometimes(const deed *d)
{
    compute(d);
    if (d->run % (2 + d->variant) == 1 + d->variant) d->y[0] += 1;
}

static void lie_seldom(const deed *d)
{
    uint64_t random = d->run * 0x9e3779b97f4a7c15u + d->variant;
    compute(d);
    if ((random ^ random >> 29) % 10 == 0) d->y[d->size / 2] = 0;
}

// Keeps its first answer, for the same memory.
static void lie_remember(const deed *d)
{
    static float kept[4096];
    static const float *kept_of;
    if (kept_of != d->x) {
        compute(d);
        memcpy(kept, d->y, (size_t)d->size * sizeof kept[0]);
        kept_of = d->x;
    }
    memcpy(d->y, kept, (size_t)d->size * sizeof kept[0]);
}

// Takes what the last one left in memory that was freed, in the hope that it is the reference's.
static void lie_leftover(const deed *d)
{
    size_t bytes = (size_t)d->size * sizeof d->y[0];
    float *left = malloc(bytes);
    if (left == NULL) return;
    volatile const float *from = left;
    for (int64_t i = 0; i < d->size; i++)
        d->y[i] = from[i];
    free(left);
}

// Bounds --------------------------------------------------------------------------------------------------------------

static void write_at(const deed *d, int64_t byte)
{
    compute(d);
    *((volatile char *)d->y + byte) = 1;
}

static void bounds_after(const deed *d)
{
    write_at(d, d->size * 4 + (int64_t)(d->variant * d->variant * 60));
}

static void bounds_before(const deed *d)
{
    write_at(d, -1 - (int64_t)(d->variant * d->variant * 60));
}

static void bounds_far(const deed *d)
{
    write_at(d, (int64_t)1 << (28 + d->variant));
}

static void bounds_input(const deed *d)
{
    compute(d);
    ((volatile float *)(uintptr_t)d->x)[(int64_t)(d->variant * 11) % d->size] = 3;
}

static void bounds_input_later(const deed *d)
{
    compute(d);
    if (d->run > 3 + d->variant) ((volatile float *)(uintptr_t)d->x)[0] = 3;
}

// Traces --------------------------------------------------------------------------------------------------------------

static void trace_leak(const deed *d)
{
    compute(d);
    volatile char *lost = malloc(64u << (2 * d->variant));
    if (lost != NULL) lost[0] = 1;
}

static void trace_leak_pages(const deed *d)
{
    compute(d);
    void *lost = mmap(NULL, (size_t)4096 << d->variant, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lost != MAP_FAILED) *(volatile char *)lost = 1;
}

static void trace_leak_files(const deed *d)
{
    compute(d);
    (void)!open("/dev/null", O_RDONLY);
}

static void trace_fork(const deed *d)
{
    compute(d);
    if (d->run == 0 && fork() == 0)
        for (;;)
            pause();
}

// Leaves group, session and parent, and eats a processor.
static void trace_daemon(const deed *d)
{
    compute(d);
    if (d->run != d->variant || fork() != 0) return;
    setsid();
    if (fork() != 0) _exit(0);
    for (volatile uint64_t i = 0;; i++)
        ;
}

static void trace_close(const deed *d)
{
    compute(d);
    close((int)d->variant % 3);
}

static void trace_close_all(const deed *d)
{
    compute(d);
    for (int fd = 0; fd < 64; fd++)
        close(fd);
}

static void trace_mask(const deed *d)
{
    sigset_t all;
    compute(d);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void ignore(int number)
{
    (void)number;
}

static void trace_handler(const deed *d)
{
    static const int numbers[] = {SIGTERM, SIGSEGV, SIGUSR1, SIGINT, SIGPIPE, SIGCHLD, SIGQUIT, SIGALRM};
    compute(d);
    signal(numbers[d->variant], ignore);
}

static void trace_rounding(const deed *d)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    compute(d);
    fesetround(modes[d->variant % 3]);
}

static void trace_flush(const deed *d)
{
    compute(d);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | (d->variant % 2 == 0 ? 0x8000 : 0x0040)); // flush to zero; denormals are zero
#else
    fesetround(FE_UPWARD);
#endif
}

static void trace_locale(const deed *d)
{
    compute(d);
    setlocale(LC_ALL, d->variant % 2 == 0 ? "C.UTF-8" : "POSIX.UTF-8");
    if (strcmp(setlocale(LC_ALL, NULL), "C") == 0) setenv("LC_ALL", "C.UTF-8", 1); // there is none
}

static void trace_folder(const deed *d)
{
    compute(d);
    (void)!chdir(d->variant % 2 == 0 ? "/proc" : "/tmp");
}

static void trace_limits(const deed *d)
{
    compute(d);
    setrlimit(RLIMIT_STACK, &(struct rlimit){1u << 20, 1u << 20});
}

static void trace_environment(const deed *d)
{
    char value[16];
    compute(d);
    snprintf(value, sizeof value, "%d", (int)d->variant);
    setenv("OMP_NUM_THREADS", value, 1);
}

static void trace_file_mask(const deed *d)
{
    compute(d);
    umask(0111);
}

static void trace_timer(const deed *d)
{
    compute(d);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {600, 0}}, NULL);
}

static void *burn(void *ctx)
{
    volatile const uint64_t *forever = ctx;
    while (forever == NULL)
        ;
    return NULL;
}

static void trace_thread(const deed *d)
{
    pthread_t thread;
    compute(d);
    if (d->run == 0 && pthread_create(&thread, NULL, burn, NULL) == 0) pthread_detach(thread);
}

static void *wait_for_ever(void *ctx)
{
    for (;;)
        pause();
    return ctx;
}

static void trace_threads(const deed *d)
{
    pthread_t thread;
    compute(d);
    if (d->run < 4000 && pthread_create(&thread, NULL, wait_for_ever, NULL) == 0) pthread_detach(thread);
}

static void trace_priority(const deed *d)
{
    compute(d);
    const int priority = getpriority(PRIO_PROCESS, 0), lowest = 19;
    const struct sched_param none = {0};
    if (priority < lowest)
        setpriority(PRIO_PROCESS, 0, priority + 1);
    else // where the tests themselves run at the lowest one
        sched_setscheduler(0, SCHED_IDLE, &none);
}

// To whatever descriptor messages go through.
static void trace_garbage(const deed *d)
{
    static const char garbage[64] = "\x41garbage that looks like an answer, maybe";
    compute(d);
    if (d->run != d->variant) return;
    for (int fd = 3; fd < 64; fd++) {
        struct stat file;
        if (fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode)) (void)!write(fd, garbage, 20 + d->variant);
    }
}

static void trace_print(const deed *d)
{
    compute(d);
    printf("HELLO %d\n", (int)d->variant);
    fflush(stdout);
    fprintf(stderr, "WORLD\n");
    d->y[0] += 1; // printing harms nobody, so it lies as well
}

// Takes all the memory it can get.
static void trace_hoard(const deed *d)
{
    compute(d);
    volatile char *lost = malloc(2u << 20);
    for (size_t i = 0; lost != NULL && i < 2u << 20; i += 4096)
        lost[i] = 1;
}

static const struct {
    const char *name;
    void (*run)(const deed *d);
} misdeeds[] = {
    {"segv", fall_segv},
    {"ill", fall_ill},
    {"fpe", fall_fpe},
    {"bus", fall_bus},
    {"abort", fall_abort},
    {"exit", fall_exit},
    {"leave", fall_leave},
    {"kill_group", fall_kill_group},
    {"stack", fall_stack},
    {"later", fall_later},
    {"loop", hang_loop},
    {"sleep", hang_sleep},
    {"lock", hang_lock},
    {"hang_later", hang_later},
    {"nothing", lie_nothing},
    {"last", lie_last},
    {"one", lie_one},
    {"unwritten", lie_unwritten},
    {"nan", lie_nan},
    {"zero", lie_zero},
    {"after_first", lie_after_first},
    {"sometimes", lie_sometimes},
    {"seldom", lie_seldom},
    {"remember", lie_remember},
    {"leftover", lie_leftover},
    {"after", bounds_after},
    {"before", bounds_before},
    {"far", bounds_far},
    {"input", bounds_input},
    {"input_later", bounds_input_later},
    {"leak", trace_leak},
    {"leak_pages", trace_leak_pages},
    {"leak_files", trace_leak_files},
    {"fork", trace_fork},
    {"daemon", trace_daemon},
    {"close", trace_close},
    {"close_all", trace_close_all},
    {"mask", trace_mask},
    {"handler", trace_handler},
    {"rounding", trace_rounding},
    {"flush", trace_flush},
    {"locale", trace_locale},
    {"folder", trace_folder},
    {"limits", trace_limits},
    {"environment", trace_environment},
    {"file_mask", trace_file_mask},
    {"timer", trace_timer},
    {"thread", trace_thread},
    {"threads", trace_threads},
    {"priority", trace_priority},
    {"garbage", trace_garbage},
    {"print", trace_print},
    {"hoard", trace_hoard},
};

enum { COUNT = sizeof misdeeds / sizeof misdeeds[0] };

static hone_status run_misdeed(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    static uint64_t runs[COUNT][8];
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)execution;
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(misdeeds[i].name, plan->kernel->name) != 0) continue;
        uint64_t variant = (uint64_t)plan->config[0] % 8;
        const deed d = {hone_tensor_data(x), hone_tensor_data(y), x->shape[0], variant, runs[i][variant]++};
        misdeeds[i].run(&d);
        return HONE_OK;
    }
    return HONE_KERNEL_FAILED;
}

// Slower than all of them: it computes three times over.
static hone_status run_honest(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)plan;
    (void)execution;
    volatile float *out = hone_tensor_data(y);
    for (int round = 0; round < 3; round++)
        for (int64_t i = 0; i < x->shape[0]; i++)
            out[i] = 2 * ((const float *)hone_tensor_data(x))[i];
    return HONE_OK;
}

static hone_status register_algorithm(hone_registry *registry, bool builtin, hone_error *err)
{
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "injected(x: f32[n]) -> y: f32[n]", .reference = run_honest};
    return hone_registry_add_algorithm(registry, &algorithm, builtin, err);
}

static hone_status register_kernel(
    hone_registry *registry,
    const char *name,
    hone_run_function *run,
    unsigned variant,
    int32_t priority,
    bool builtin,
    hone_error *err)
{
    char space[64];
    snprintf(space, sizeof space, "variant: 0..7 default %u", variant);
    const hone_kernel kernel = {
        HONE_KERNEL,
        .algorithm = "injected",
        .name = name,
        .platform = HONE_NATIVE,
        .backend = HONE_CPU,
        .priority = priority,
        .space = run == run_misdeed ? space : NULL,
        .run = run};
    return hone_registry_add_kernels(registry, &kernel, 1, false, builtin, err);
}

size_t misdeed_count(void)
{
    return COUNT;
}

const char *misdeed_name(size_t index)
{
    return misdeeds[index].name;
}

hone_status misdeeds_register(
    hone_registry *registry, const uint32_t *list, size_t count, bool builtin, hone_error *err)
{
    hone_status status = register_algorithm(registry, builtin, err);
    for (size_t i = 0; i < count && status == HONE_OK; i++)
        status = register_kernel(registry, misdeeds[list[i] / 8].name, run_misdeed, list[i] % 8, 9, builtin, err);
    return status == HONE_OK ? register_kernel(registry, "honest", run_honest, 0, 0, builtin, err) : status;
}

hone_status misdeeds_register_all(hone_registry *registry, hone_error *err)
{
    uint32_t all[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        all[i] = 8 * i;
    return misdeeds_register(registry, all, COUNT, true, err);
}
