#include "os/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000u;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

uint64_t hone_os_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t hone_os_random_seed(void)
{
    enum { UNUSED_BITS = 64 - 52 };
    uint64_t bits = 0;
    // If the system has no random numbers, the seed comes from the clock, which a candidate could read too.
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits)
        bits = hone_os_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
    return (bits >> UNUSED_BITS) + 1;
}

// Executes the instruction itself: a library's function can be replaced in the tables that calls go through.
static long ask_system(clockid_t clock, struct timespec *out)
{
#if defined __x86_64__
    long result = SYS_clock_gettime;
    __asm__ volatile("syscall" : "+a"(result) : "D"((long)clock), "S"(out) : "rcx", "r11", "memory");
    return result;
#else
    return syscall(SYS_clock_gettime, clock, out);
#endif
}

uint64_t hone_os_true_now_ns(void)
{
    struct timespec now = {0};
    (void)ask_system(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

uint64_t hone_os_others_ns(void)
{
    const uint64_t own = read_clock(CLOCK_THREAD_CPUTIME_ID), all = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    return all > own ? all - own : 0;
}

uint64_t hone_os_own_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double hone_os_now_utc(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void hone_os_format_utc(double seconds, char out[24])
{
    static const char never[] = "1970-01-01T00:00:00Z";
    static const double year_10000 = 253402300800.0; // the format has four digits for a year
    struct tm fields;
    time_t whole = seconds >= 0 && seconds < year_10000 ? (time_t)seconds : 0;
    if (gmtime_r(&whole, &fields) == NULL || strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &fields) == 0)
        memcpy(out, never, sizeof never);
}

bool hone_os_parse_utc(const char *text, double *out)
{
    static const char shape[] = "0000-00-00T00:00:00Z";
    int fields[6] = {0};
    size_t field = 0;
    if (strlen(text) != sizeof shape - 1) return false;
    for (size_t i = 0; shape[i] != '\0'; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (shape[i] == '0' ? !digit : text[i] != shape[i]) return false;
        if (shape[i] == '0')
            fields[field] = fields[field] * 10 + (text[i] - '0');
        else
            field++;
        if (field == 6) break;
    }
    static const int limits[6][2] = {{1970, 9999}, {1, 12}, {1, 31}, {0, 23}, {0, 59}, {0, 60}};
    for (size_t i = 0; i < 6; i++)
        if (fields[i] < limits[i][0] || fields[i] > limits[i][1]) return false;
    struct tm time = {
        .tm_year = fields[0] - 1900,
        .tm_mon = fields[1] - 1,
        .tm_mday = fields[2],
        .tm_hour = fields[3],
        .tm_min = fields[4],
        .tm_sec = fields[5],
    };
    *out = (double)timegm(&time);
    return true;
}

double hone_os_load(void)
{
    double load;
    return getloadavg(&load, 1) == 1 ? load : -1;
}

void hone_os_sleep_ns(uint64_t nanoseconds)
{
    struct timespec rest = {(time_t)(nanoseconds / second_ns), (long)(nanoseconds % second_ns)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        continue;
}
