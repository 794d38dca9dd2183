#include "runtime/state/epoch.h"

#include "base/assert.h"
#include "config/context.h"
#include "os/mutex.h"
#include "os/os.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_uint_fast64_t hone_epoch_now = 1;
atomic_bool hone_epoch_fences = true;

// The threads of the process, not of a runtime: a thread has one slot for all runtimes.
static _Atomic(hone_epoch_slot *) slots;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_end;

static void give_back(void *slot_pointer)
{
    hone_epoch_slot *slot = slot_pointer;
    hone_thread_self.slot = NULL;
    atomic_store_explicit(&slot->epoch, 0, memory_order_release);
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

// Threads of the parent, except the one that forked, do not exist in the child: their slots are cleared.
static void in_child(void *ctx)
{
    (void)ctx;
    for (hone_epoch_slot *slot = atomic_load(&slots); slot != NULL; slot = slot->next) {
        if (slot == hone_thread_self.slot) continue;
        atomic_store(&slot->epoch, 0);
        atomic_store(&slot->taken, false);
    }
    if (!atomic_load(&hone_epoch_fences))
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static bool is_thread_sanitizer(void)
{
#if defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
    return true;
#    else
    return false;
#    endif
#else
    return false;
#endif
}

static void start(void)
{
    static hone_fork_watch watch = {.in_child = in_child};
    hone_fork_watch_begin(&watch);
    pthread_key_create(&thread_end, give_back);
    if (is_thread_sanitizer()) return;
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (commands < 0 || (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) return;
    atomic_store(&hone_epoch_fences, false);
}

static hone_epoch_slot *take_free_slot(void)
{
    for (hone_epoch_slot *slot = atomic_load(&slots); slot != NULL; slot = slot->next) {
        bool expected = false;
        if (atomic_compare_exchange_strong(&slot->taken, &expected, true)) return slot;
    }
    return NULL;
}

static hone_epoch_slot *add_slot(void)
{
    hone_epoch_slot *slot = hone_os_zero_pages(sizeof *slot);
    if (slot == NULL) return NULL;
    atomic_init(&slot->epoch, 0);
    atomic_init(&slot->taken, true);
    slot->next = atomic_load(&slots);
    while (!atomic_compare_exchange_weak(&slots, &slot->next, slot))
        continue;
    return slot;
}

hone_epoch_slot *hone_epoch_register(void)
{
    if (hone_thread_self.slot != NULL) return hone_thread_self.slot;
    pthread_once(&once, start);
    hone_epoch_slot *slot = take_free_slot();
    if (slot == NULL) slot = add_slot();
    if (slot == NULL) return NULL;
    hone_thread_self.slot = slot;
    pthread_setspecific(thread_end, slot);
    return slot;
}

const hone_epoch_slot *hone_epoch_slots(void)
{
    return atomic_load(&slots);
}

uint64_t hone_epoch_advance(void)
{
    return (uint64_t)atomic_fetch_add(&hone_epoch_now, 1);
}

// A fence whose whole cost the reclaimer pays. Source: Linux's membarrier(2), made for RCU in user space.
//
//     reclaimer                       reader
//     removes the entry               writes the epoch into its slot (a plain store)
//     ends epoch e                    looks the entry up
//     membarrier: each thread of the process executes a full fence
//     reads the slots
//
// A reader whose fence comes before its store does its lookup after the fence, and does not find the entry. A reader
// whose fence comes after its store is seen in its slot. Cost: one interrupt for each running thread, and only when
// plans are dropped.
bool hone_epoch_passed(uint64_t epoch)
{
    hone_assert(epoch < atomic_load(&hone_epoch_now)); // the epoch has ended
    bool fences = atomic_load(&hone_epoch_fences);
    if (!fences) (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    for (hone_epoch_slot *slot = atomic_load(&slots); slot != NULL; slot = slot->next) {
        uint64_t held = fences ? atomic_fetch_add_explicit(&slot->epoch, 0, memory_order_acq_rel)
                               : atomic_load_explicit(&slot->epoch, memory_order_acquire);
        if (held != 0 && held <= epoch) return false;
    }
    return true;
}
