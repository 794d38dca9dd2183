#include "system.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

static const uint64_t second_ns = 1000000000;

const char *cli_variable(const char *name)
{
    return secure_getenv(name);
}

uint64_t cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

void cli_sleep_ns(uint64_t nanoseconds)
{
    struct timespec rest = {(time_t)(nanoseconds / second_ns), (long)(nanoseconds % second_ns)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        continue;
}

void cli_utc_text(double seconds, char out[24])
{
    static const char never[] = "1970-01-01T00:00:00Z";
    static const double year_10000 = 253402300800.0; // the format has four digits for a year
    struct tm fields;
    const time_t whole = seconds >= 0 && seconds < year_10000 ? (time_t)seconds : 0;
    if (gmtime_r(&whole, &fields) == NULL || strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &fields) == 0)
        memcpy(out, never, sizeof never);
}

uint64_t cli_random_seed(void)
{
    enum { UNUSED_BITS = 64 - 52 };
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) bits = cli_now_ns() << UNUSED_BITS;
    return (bits >> UNUSED_BITS) + 1;
}

// The first bit of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom Number Generators",
// 2014): any state is a good one, so a seed needs no warming.
bool cli_random_bit(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) >> 63 != 0;
}

bool cli_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool cli_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool cli_is_plain_file(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool cli_real_path(const char *path, char *out, size_t size)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL || strlen(real) >= size) return false;
    memcpy(out, real, strlen(real) + 1);
    return true;
}
