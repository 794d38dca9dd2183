#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

// The libraries look for these names in the program.
#pragma GCC visibility push(default)

faults faults_now = {.left = -1};

static bool fails(const char *name)
{
    if (faults_now.left < 0 || faults_now.left-- > 0) return false;
    snprintf(faults_now.failed, sizeof faults_now.failed, "%s", name);
    errno = faults_now.code;
    return true;
}

static bool write_fails(const char *name)
{
    if (!faults_now.every_write) return fails(name);
    errno = faults_now.code;
    return true;
}

// The C library's own function of that name.
#define REAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

#define PASS(type, name, parameters, arguments, failure)                                                               \
    type name parameters;                                                                                              \
    type name parameters                                                                                               \
    {                                                                                                                  \
        return fails(#name) ? (failure) : REAL(name) arguments;                                                        \
    }
#define PASS_WRITE(type, name, parameters, arguments)                                                                  \
    type name parameters;                                                                                              \
    type name parameters                                                                                               \
    {                                                                                                                  \
        return write_fails(#name) ? -1 : REAL(name) arguments;                                                         \
    }
#define PASS_SYNC(name)                                                                                                \
    int name(int fd);                                                                                                  \
    int name(int fd)                                                                                                   \
    {                                                                                                                  \
        faults_now.syncs++;                                                                                            \
        return fails(#name) ? -1 : REAL(name)(fd);                                                                     \
    }
#define PASS_OPEN(name)                                                                                                \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;                                               \
        va_end(list);                                                                                                  \
        return fails(#name) ? -1 : REAL(name)(path, flags, mode);                                                      \
    }
#define PASS_FCNTL(name)                                                                                               \
    int name(int fd, int command, ...)                                                                                 \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, command);                                                                                       \
        void *argument = va_arg(list, void *);                                                                         \
        va_end(list);                                                                                                  \
        return fails(#name) ? -1 : REAL(name)(fd, command, argument);                                                  \
    }

PASS_OPEN(open)
PASS_OPEN(open64)
PASS_FCNTL(fcntl)
PASS_FCNTL(fcntl64)
PASS(ssize_t, read, (int fd, void *out, size_t size), (fd, out, size), -1)
PASS(ssize_t, pread, (int fd, void *out, size_t size, off_t at), (fd, out, size, at), -1)
PASS(ssize_t, pread64, (int fd, void *out, size_t size, off64_t at), (fd, out, size, at), -1)
PASS_WRITE(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
PASS_WRITE(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))
PASS_WRITE(ssize_t, pwrite64, (int fd, const void *bytes, size_t size, off64_t at), (fd, bytes, size, at))
PASS_WRITE(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
PASS_WRITE(int, ftruncate64, (int fd, off64_t size), (fd, size))
PASS(int, ftruncate, (int fd, off_t size), (fd, size), -1)
PASS_SYNC(fsync)
PASS_SYNC(fdatasync)
PASS(int, close, (int fd), (fd), (REAL(close)(fd), errno = faults_now.code, -1))
PASS(int, unlink, (const char *path), (path), -1)
PASS(int, rename, (const char *from, const char *to), (from, to), -1)
PASS(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
PASS(int, access, (const char *path, int mode), (path, mode), -1)
PASS(int, stat, (const char *path, struct stat *out), (path, out), -1)
PASS(int, stat64, (const char *path, struct stat64 *out), (path, out), -1)
PASS(int, fstat, (int fd, struct stat *out), (fd, out), -1)
PASS(int, fstat64, (int fd, struct stat64 *out), (fd, out), -1)
PASS(int, lstat, (const char *path, struct stat *out), (path, out), -1)
PASS(int, lstat64, (const char *path, struct stat64 *out), (path, out), -1)
PASS(ssize_t, readlink, (const char *path, char *out, size_t size), (path, out, size), -1)
PASS(char *, getcwd, (char *out, size_t size), (out, size), NULL)
PASS(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
PASS(int, munmap, (void *at, size_t size), (at, size), -1)
PASS(
    void *,
    mmap,
    (void *at, size_t size, int protection, int flags, int fd, off_t from),
    (at, size, protection, flags, fd, from),
    MAP_FAILED)
PASS(
    void *,
    mmap64,
    (void *at, size_t size, int protection, int flags, int fd, off64_t from),
    (at, size, protection, flags, fd, from),
    MAP_FAILED)

int statfs(const char *path, struct statfs *out);
int statfs(const char *path, struct statfs *out)
{
    if (fails("statfs")) return -1;
    int code = REAL(statfs)(path, out);
    if (faults_now.file_system != 0) out->f_type = faults_now.file_system;
    return code;
}

// Waiting takes no time; the clocks go on all the same.
static long long slept_ns;

static void sleep_ns(long long nanoseconds)
{
    slept_ns += nanoseconds;
}

int nanosleep(const struct timespec *rest, struct timespec *left)
{
    (void)left;
    sleep_ns(rest->tv_sec * 1000000000LL + rest->tv_nsec);
    return 0;
}

int usleep(useconds_t microseconds)
{
    sleep_ns(microseconds * 1000LL);
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    static struct timespec stood;
    if (faults_now.clock_stands && stood.tv_sec > 0) {
        *out = stood;
        return 0;
    }
    int code = REAL(clock_gettime)(clock, out);
    long long ns = out->tv_nsec + slept_ns % 1000000000;
    out->tv_sec += slept_ns / 1000000000 + ns / 1000000000;
    out->tv_nsec = ns % 1000000000;
    if (clock == CLOCK_REALTIME) out->tv_sec += faults_now.clock_shift;
    if (faults_now.clock_stands) stood = *out;
    return code;
}
