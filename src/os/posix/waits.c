// Linux counts for each thread how long it waited in a processor's run queue: the second number of /proc/.../schedstat.
#include "os/waits.h"

#include "os/conditions.h"
#include "os/os.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// A thread that is woken waits some us for its processor to wake, and other threads wait for the system's own threads.
// A wait shorter than a hundredth of the work changes the work's time by no more than that, and is ignored.
static const double least_share = 0.01;

static double read_stolen_ticks(void)
{
    hone_os_conditions conditions;
    hone_os_conditions_read_stolen("", &conditions);
    return conditions.stolen_ticks;
}

void hone_os_waits_begin(hone_os_waits *waits)
{
    waits->count = 0;
    waits->own = -1;
    waits->stolen_ticks = read_stolen_ticks();
    DIR *threads = opendir("/proc/self/task");
    if (threads == NULL) return;
    const struct dirent *entry;
    while ((entry = readdir(threads)) != NULL && waits->count < HONE_OS_WAITS_THREADS) {
        char path[64];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        waits->threads[waits->count] = (int)strtol(entry->d_name, NULL, 10);
        if (waits->threads[waits->count] == gettid()) waits->own = waits->count;
        waits->files[waits->count++] = file;
    }
    closedir(threads);
}

// "RUNNING WAITING SLICES", in ns. False: the thread has ended, or the system does not count.
static bool read_delay(int file, uint64_t *out_ran_ns, uint64_t *out_ns)
{
    char text[96], *at, *end;
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    if (size <= 0) return false;
    text[size] = '\0';
    *out_ran_ns = strtoull(text, &at, 10);
    *out_ns = strtoull(at, &end, 10);
    return end != at;
}

static void read_one(const hone_os_waits *waits, int i, hone_os_waits_reading *out)
{
    if (i >= 0 && read_delay(waits->files[i], &out->ran_ns[i], &out->delays_ns[i])) out->delay_known = true;
}

static void read_others(const hone_os_waits *waits, hone_os_waits_reading *out)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) out->preemptions = (uint64_t)usage.ru_nivcsw;
    for (int i = 0; i < waits->count; i++)
        if (i != waits->own) read_one(waits, i, out);
}

void hone_os_waits_read(const hone_os_waits *waits, hone_os_waits_reading *out)
{
    *out = (hone_os_waits_reading){.count = waits->count};
    read_others(waits, out);
    out->processor = sched_getcpu();
    read_one(waits, waits->own, out);
}

// The clock of a thread's processor time, as pthread_getcpuclockid makes it of the thread's number (clock_getcpuclockid
// knows processes only): the bits of the number inverted, then 1 for a thread, then 2, time by the scheduler.
//
//     31            3   2   1 0
//     +-------------+---+------+
//     | ~thread     | 1 | 1  0 |
//     +-------------+---+------+
static uint64_t processor_ns(int thread)
{
    struct timespec time;
    clockid_t clock = (clockid_t)((~(unsigned)thread << 3) | 6u);
    if (clock_gettime(clock, &time) != 0) return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// Whether a thread is ready but its processor time does not advance while the system is asked for its state. Without
// this a thread that was woken and has had no processor yet would be taken for idle: its wait is counted only when it
// ends.
static bool waits_now(int thread)
{
    char number[16];
    snprintf(number, sizeof number, "%d", thread);
    uint64_t before_ns = processor_ns(thread);
    return hone_os_thread_state(number) == 'R' && processor_ns(thread) == before_ns;
}

void hone_os_waits_read_own(const hone_os_waits *waits, hone_os_waits_reading *out)
{
    *out = (hone_os_waits_reading){.count = waits->count};
    read_one(waits, waits->own, out);
    out->processor = sched_getcpu();
}

void hone_os_waits_read_others(const hone_os_waits *waits, hone_os_waits_reading *out)
{
    read_others(waits, out);
    for (int i = 0; i < waits->count; i++) {
        out->waits[i] = i != waits->own && waits_now(waits->threads[i]);
        out->waiting += out->waits[i];
    }
}

unsigned hone_os_waits_end(hone_os_waits *waits)
{
    for (int i = 0; i < waits->count; i++)
        close(waits->files[i]);
    waits->count = 0;
    double stolen_ticks = read_stolen_ticks();
    return waits->stolen_ticks >= 0 && stolen_ticks > waits->stolen_ticks ? HONE_OS_STOLEN : 0;
}

static double grown(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) : 0; // the numbers of a thread that has ended are gone
}

// A wait that still lasts is not counted yet: the thread had no processor except for the time that it ran. It may also
// have been idle for a part of that time, which is not known.
static double wait_of(const hone_os_waits_reading *before, const hone_os_waits_reading *after, int i, double elapsed_ns)
{
    const double over_ns = grown(before->delays_ns[i], after->delays_ns[i]);
    if (!after->waits[i]) return over_ns;
    return fmax(over_ns, elapsed_ns - grown(before->ran_ns[i], after->ran_ns[i]));
}

static double longest_wait(const hone_os_waits_reading *before, const hone_os_waits_reading *after, double elapsed_ns)
{
    double longest = 0;
    for (int i = 0; i < before->count && i < after->count; i++)
        longest = fmax(longest, wait_of(before, after, i, elapsed_ns));
    return longest;
}

unsigned hone_os_waits_between(
    const hone_os_waits_reading *before, const hone_os_waits_reading *after, double elapsed_ns, double *out_waited_ns)
{
    unsigned marks = 0;
    bool known = before->delay_known && after->delay_known;
    *out_waited_ns = known ? longest_wait(before, after, elapsed_ns) : 0;
    if (*out_waited_ns > least_share * elapsed_ns || after->waiting > 0) marks |= HONE_OS_WAITED;
    if (!known && after->preemptions > before->preemptions) marks |= HONE_OS_PREEMPTED;
    if (before->processor >= 0 && after->processor != before->processor) marks |= HONE_OS_MIGRATED;
    return marks;
}
