// Locks on bytes of a file. They belong to the open file description and not to the process (F_OFD_SETLK, Linux 3.15):
// two threads exclude each other as two processes do, closing another descriptor of the same file releases nothing, and
// the end of a process, however it ends, releases all of its locks.
#include "base/assert.h"
#include "base/error.h"
#include "os/mutex.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = "os.lock";

// A given mode belongs to the purpose of the lock and is set whatever the umask is: which users may lock the file must
// not depend on the process that created it.
static int make_file(const char *path, unsigned mode)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (mode_t)(mode != 0 ? mode : 0666));
    if (fd >= 0 && mode != 0) (void)!fchmod(fd, (mode_t)mode);
    return fd;
}

// Opens without O_CREAT first: in a world-writable folder the kernel refuses to open another user's file with it
// (fs.protected_regular).
static int open_or_make(const char *path, unsigned mode)
{
    enum { TRIES = 8 }; // another process may create or remove it between two tries
    for (int i = 0; i < TRIES; i++) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 || errno != ENOENT) return fd;
        fd = make_file(path, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

hone_status hone_os_lock_open(const char *path, unsigned mode, int *out_fd, hone_error *err)
{
    struct stat info;
    int fd = open_or_make(path, mode);
    if (fd < 0) return hone_fail_system(err, HONE_IO, where, errno, "cannot open the lock file %s", path);
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return hone_fail(err, HONE_IO, where, "%s is not a regular file: remove it", path);
    }
    hone_fd_own(fd);
    *out_fd = fd;
    return HONE_OK;
}

bool hone_os_lock_is_private(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

void hone_os_lock_close(int *fd)
{
    if (*fd >= 0) {
        hone_fd_disown(*fd);
        close(*fd);
    }
    *fd = -1;
}

static int set_lock(int fd, short type, uint64_t byte)
{
    hone_assert(fd >= 0);
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &range);
    while (result != 0 && errno == EINTR);
    return result;
}

hone_status hone_os_lock_try(int fd, uint64_t byte, hone_error *err)
{
    if (set_lock(fd, F_WRLCK, byte) == 0) return HONE_OK;
    int code = errno;
    if (code == EAGAIN || code == EACCES) return hone_fail(err, HONE_BUSY, where, "somebody else has the lock");
    return hone_fail_system(err, HONE_IO, where, code, "cannot lock: the file system has no such locks");
}

// Unlocks explicitly instead of closing: a child that was forked without the C library's handlers shares the open file.
void hone_os_lock_leave(int fd, uint64_t byte)
{
    (void)!set_lock(fd, F_UNLCK, byte);
}

bool hone_os_lock_note(int fd, uint64_t offset, const char *text, size_t size)
{
    hone_os_size_signal_hold();
    const bool is_noted = pwrite(fd, text, size, (off_t)offset) == (ssize_t)size;
    hone_os_size_signal_release();
    return is_noted;
}

bool hone_os_lock_read_note(int fd, uint64_t offset, char *out, size_t size)
{
    return pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}
