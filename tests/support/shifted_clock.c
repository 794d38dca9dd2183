// A machine whose clock is wrong: loaded before a program, it puts HONE_TEST_SHIFT seconds on the time of day. What counts
// from the machine's start is left alone.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift(void)
{
    const char *text = getenv("HONE_TEST_SHIFT");
    return text != NULL ? (time_t)atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int status = real(clock, out);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += shift();
    return status;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
