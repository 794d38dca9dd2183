// What hone and the libraries inside a wheel call of the C library, and glibc 2.28 lacks. In a wheel they are these functions,
// which nobody outside it sees; what is built for one machine has the C library's.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// Since 2.30.
HIDDEN pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

// Since 2.33: before, macros of the headers made other calls of them. The kernel's struct is the C library's where longs have 64 bits.
_Static_assert(sizeof(long) == 8 && sizeof(struct stat) == sizeof(struct stat64), "of 64-bit systems");

HIDDEN int stat(const char *restrict path, struct stat *restrict out)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

HIDDEN int lstat(const char *restrict path, struct stat *restrict out)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat(int fd, struct stat *out)
{
    return (int)syscall(SYS_fstat, fd, out);
}

HIDDEN int stat64(const char *restrict path, struct stat64 *restrict out)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

HIDDEN int lstat64(const char *restrict path, struct stat64 *restrict out)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat64(int fd, struct stat64 *out)
{
    return (int)syscall(SYS_fstat, fd, out);
}

// Where the limit is higher, few descriptors are: a billion calls would take minutes.
enum { MOST_CLOSED = 1 << 20 };

// Since 2.34, and of Linux 5.9. Systems with an older C library often have an older kernel. It is called between fork and exec,
// where /proc cannot be listed by opendir, which allocates.
HIDDEN int close_range(unsigned first, unsigned last, int flags)
{
    int result = (int)syscall(SYS_close_range, first, last, flags);
    if (result == 0 || errno != ENOSYS || flags != 0) return result;
    long limit = sysconf(_SC_OPEN_MAX);
    unsigned end = limit < 0 || limit > MOST_CLOSED ? MOST_CLOSED : (unsigned)limit;
    for (unsigned fd = first; fd <= last && fd < end; fd++)
        close((int)fd);
    return 0;
}

// Since 2.33. The older one counts in ints, which wrap at 4 GiB.
HIDDEN struct mallinfo2 mallinfo2(void)
{
    struct mallinfo2 (*newer)(void) = NULL;
    *(void **)&newer = dlsym(RTLD_DEFAULT, "mallinfo2");
    if (newer != NULL) return newer();
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo older = mallinfo();
    return (struct mallinfo2){
        .arena = (unsigned)older.arena,
        .ordblks = (unsigned)older.ordblks,
        .smblks = (unsigned)older.smblks,
        .hblks = (unsigned)older.hblks,
        .hblkhd = (unsigned)older.hblkhd,
        .usmblks = (unsigned)older.usmblks,
        .fsmblks = (unsigned)older.fsmblks,
        .uordblks = (unsigned)older.uordblks,
        .fordblks = (unsigned)older.fordblks,
        .keepcost = (unsigned)older.keepcost,
    };
}
