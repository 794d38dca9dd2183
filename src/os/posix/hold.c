// Stops a thread by the handler of a signal, in which it waits. SIGURG is ignored by default, so that a signal that
// arrives late does no harm.
#include "os/hold.h"

#include "base/assert.h"
#include "os/restrict.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The state of a hold. A thread that stops too late finds that the hold is over.
enum { FREE, ASKED, HELD };

static struct sigaction before;
static atomic_int state;
static _Atomic uint64_t most;

void hone_os_yield(void)
{
    sched_yield();
}

static void stand_still(int number)
{
    (void)number;
    const int saved = errno;
    int expected = ASKED;
    const uint64_t until = hone_os_now_ns() + atomic_load(&most);
    if (atomic_compare_exchange_strong(&state, &expected, HELD))
        while (atomic_load(&state) == HELD && hone_os_now_ns() < until)
            sched_yield();
    errno = saved;
}

bool hone_os_hold_begin(void)
{
    struct sigaction action = {.sa_handler = stand_still, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    atomic_store(&state, FREE);
    return sigaction(SIGURG, &action, &before) == 0;
}

void hone_os_hold_end(void)
{
    atomic_store(&state, FREE);
    (void)!sigaction(SIGURG, &before, NULL);
}

// Room for the processor's state, which the kernel writes, and for the handler.
static size_t stack_size(void)
{
    enum { HANDLER = 64 << 10 };
    return HANDLER + (size_t)sysconf(_SC_MINSIGSTKSZ);
}

int hone_os_hold_join(hone_os_holdable *out)
{
    const size_t size = stack_size();
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t before_it;
    *out = (hone_os_holdable){.stack = NULL};
    if (stack == MAP_FAILED) return 0;
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = size}, &before_it) != 0) {
        (void)!munmap(stack, size);
        return 0;
    }
    const bool had_one = (before_it.ss_flags & SS_DISABLE) == 0;
    *out = (hone_os_holdable){stack, had_one ? before_it.ss_sp : NULL, size, before_it.ss_size};
    return (int)syscall(SYS_gettid);
}

bool hone_os_hold_insist(void)
{
    return hone_os_keep_signals_open(SIGURG);
}

void hone_os_hold_leave(hone_os_holdable *holdable)
{
    if (holdable->stack == NULL) return;
    const stack_t back = {
        .ss_sp = holdable->before,
        .ss_size = holdable->before_size,
        .ss_flags = holdable->before != NULL ? 0 : SS_DISABLE,
    };
    (void)!sigaltstack(&back, NULL);
    (void)!munmap(holdable->stack, holdable->size);
    *holdable = (hone_os_holdable){.stack = NULL};
}

bool hone_os_hold(int thread, uint64_t patience_ns, uint64_t most_ns)
{
    hone_assert(atomic_load(&state) == FREE);
    const uint64_t until = hone_os_now_ns() + patience_ns;
    atomic_store(&most, most_ns);
    atomic_store(&state, ASKED);
    if (syscall(SYS_tgkill, getpid(), thread, SIGURG) == 0)
        while (atomic_load(&state) == ASKED && hone_os_now_ns() < until)
            sched_yield();
    int expected = ASKED;
    return !atomic_compare_exchange_strong(&state, &expected, FREE);
}

void hone_os_hold_release(void)
{
    atomic_store(&state, FREE);
}

// The field has no name in the C library's headers.
#ifndef sigev_notify_thread_id
#    define sigev_notify_thread_id _sigev_un._tid
#endif

bool hone_os_alarm_set(hone_os_alarm *alarm, uint64_t after_ns, uint64_t most_ns)
{
    const uint64_t second_ns = 1000000000u;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    timer_t timer;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    *alarm = (hone_os_alarm){NULL, false};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return false;
    *alarm = (hone_os_alarm){timer, true};
    const uint64_t ns = after_ns > 0 ? after_ns : 1;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(ns / second_ns), .tv_nsec = (long)(ns % second_ns)}};
    atomic_store(&most, most_ns);
    atomic_store(&state, ASKED);
    return timer_settime(timer, 0, &when, NULL) == 0;
}

void hone_os_alarm_end(hone_os_alarm *alarm)
{
    int expected = ASKED;
    if (alarm->is_set) (void)timer_delete((timer_t)alarm->timer);
    *alarm = (hone_os_alarm){NULL, false};
    (void)atomic_compare_exchange_strong(&state, &expected, FREE);
}

bool hone_os_alarm_await(uint64_t patience_ns)
{
    const uint64_t until = hone_os_now_ns() + patience_ns;
    while (atomic_load(&state) == ASKED && hone_os_now_ns() < until)
        sched_yield();
    return atomic_load(&state) == HELD;
}
