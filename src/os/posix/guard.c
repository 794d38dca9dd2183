// Read-only pages, and a handler that records a write to them. The handler then makes the pages writable, so that the
// write and the process continue; callers can query the record later. Faults elsewhere act as before the handler.
//
// A signal handler has no argument, hence the table. Only the thread that owns the guards writes to it; handlers, on
// any thread, read it.
#include "os/walls.h"

#include "base/assert.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_GUARDS = 256 };

static struct place {
    _Atomic uintptr_t from; // 0: the place is free
    _Atomic size_t size;
    atomic_bool written;
} places[MOST_GUARDS];

static struct sigaction before; // the action for faults elsewhere
static atomic_int exit_code;    // exit code for such faults; 0: none

static struct place *find(uintptr_t address)
{
    for (int i = 0; i < MOST_GUARDS; i++) {
        uintptr_t from = atomic_load(&places[i].from);
        if (from != 0 && address >= from && address - from < atomic_load(&places[i].size)) return &places[i];
    }
    return NULL;
}

static void note_write(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool is_fault = info->si_code > 0; // otherwise the signal was sent
    struct place *place = is_fault ? find((uintptr_t)info->si_addr) : NULL;
    if (place != NULL && mprotect((void *)place->from, place->size, PROT_READ | PROT_WRITE) == 0) {
        atomic_store(&place->written, true);
        return;
    }
    const int code = atomic_load(&exit_code);
    if (is_fault && code != 0) _exit(code);
    sigaction(SIGSEGV, &before, NULL); // the instruction faults again
    if (!is_fault) raise(number);
}

bool hone_os_guard_begin(void)
{
    struct sigaction action = {.sa_sigaction = note_write, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    if (sigaction(SIGSEGV, NULL, &now) != 0) return false;
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == note_write) return true;
    before = now;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSEGV, &action, NULL) == 0;
}

void hone_os_exit_on_fault(int code)
{
    atomic_store(&exit_code, code);
}

// protection: the accesses that the pages still allow.
static bool close_pages(hone_os_guard *guard, char *block, size_t size, int protection)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)block + page - 1) & ~(page - 1), to = ((uintptr_t)block + size) & ~(page - 1);
    hone_assert(guard->size == 0);
    int free_place = 0;
    while (free_place < MOST_GUARDS && atomic_load(&places[free_place].from) != 0)
        free_place++;
    if (free_place == MOST_GUARDS || to <= from) return false;
    struct place *place = &places[free_place];
    atomic_store(&place->written, false);
    atomic_store(&place->size, to - from);
    atomic_store(&place->from, from);
    if (mprotect((void *)from, to - from, protection) != 0) {
        atomic_store(&place->from, 0);
        return false;
    }
    *guard = (hone_os_guard){(char *)from, to - from, free_place};
    return true;
}

bool hone_os_guard_close(hone_os_guard *guard, char *block, size_t size)
{
    return close_pages(guard, block, size, PROT_READ);
}

bool hone_os_guard_was_written(const hone_os_guard *guard)
{
    return guard->size > 0 && atomic_load(&places[guard->place].written);
}

bool hone_os_guard_open(hone_os_guard *guard)
{
    if (guard->size == 0) return true;
    if (mprotect(guard->from, guard->size, PROT_READ | PROT_WRITE) != 0) return false;
    atomic_store(&places[guard->place].from, 0);
    *guard = (hone_os_guard){NULL, 0, 0};
    return true;
}

// A wall is wider than the distance by which a kernel that is wrong by one row reads too far.
enum { WALL_SIZE = 64 << 10 };

// Maps the pages of the room, which have no other name, a second time. If that fails the room stays as it is.
static void make_mirror(hone_os_walled *walled)
{
    const int fd = memfd_create("hone-room", MFD_CLOEXEC);
    if (fd < 0) return;
    void *mirror = MAP_FAILED;
    if (ftruncate(fd, (off_t)walled->size) == 0) mirror = mmap(NULL, walled->size, PROT_READ, MAP_SHARED, fd, 0);
    if (mirror != MAP_FAILED &&
        mmap(walled->room, walled->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
        walled->mirror = mirror;
    else if (mirror != MAP_FAILED)
        munmap(mirror, walled->size);
    close(fd);
}

bool hone_os_walled_create(hone_os_walled *walled, size_t size, bool mirrored)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + page - 1) & ~(page - 1);
    memset(walled, 0, sizeof *walled);
    if (size > SIZE_MAX / 2) return false;
    void *block = mmap(NULL, room + 2 * WALL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return false;
    *walled = (hone_os_walled){
        .block = block, .block_size = room + 2 * WALL_SIZE, .room = (char *)block + WALL_SIZE, .size = room};
    if (mirrored && room > 0) make_mirror(walled);
    if (close_pages(&walled->before, walled->block, WALL_SIZE, PROT_NONE) &&
        close_pages(&walled->behind, walled->room + room, WALL_SIZE, PROT_NONE))
        return true;
    hone_os_walled_destroy(walled);
    return false;
}

void hone_os_walled_destroy(hone_os_walled *walled)
{
    if (walled->block == NULL) return;
    if (walled->before.size > 0) atomic_store(&places[walled->before.place].from, 0);
    if (walled->behind.size > 0) atomic_store(&places[walled->behind.place].from, 0);
    munmap(walled->block, walled->block_size);
    if (walled->mirror != NULL) munmap((void *)(uintptr_t)walled->mirror, walled->size);
    memset(walled, 0, sizeof *walled);
}

void *hone_os_zero_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

// A stack with a wall ----------------------------------------------------------------------------------------------------

typedef struct stacked {
    void (*run)(void *ctx);
    void *ctx;
} stacked;

// The handler of this thread's faults needs a stack of its own, since the thread's stack may be exhausted.
static void *run_stacked(void *ctx)
{
    const stacked *s = ctx;
    hone_os_holdable handler;
    (void)hone_os_hold_join(&handler);
    s->run(s->ctx);
    hone_os_hold_leave(&handler);
    return NULL;
}

bool hone_os_run_on_stack(size_t bytes, void (*run)(void *ctx), void *ctx)
{
    const size_t below = (size_t)64 << 20;
    stacked s = {run, ctx};
    pthread_attr_t attributes;
    pthread_t thread;
    char *block = mmap(NULL, below + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return false;
    bool made = mprotect(block + below, bytes, PROT_READ | PROT_WRITE) == 0 && pthread_attr_init(&attributes) == 0;
    if (made) {
        made = pthread_attr_setstack(&attributes, block + below, bytes) == 0 &&
               pthread_create(&thread, &attributes, run_stacked, &s) == 0;
        pthread_attr_destroy(&attributes);
    }
    if (made) pthread_join(thread, NULL);
    munmap(block, below + bytes);
    return made;
}
