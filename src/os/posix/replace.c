// Replaces a file in one step: every reader sees the old text or the new, also after a crash or a power cut. Also
// provides the steps one by one, for replacing several files at once. The steps: write a new file beside the old one,
// fsync it, rename it over the old one (rename(2) is atomic), fsync the folder, without which a power cut may undo the
// renaming.
#include "base/error.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = "os.replace_file";

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, bytes, size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

// Creates a new file beside the target, with the mode that the umask gives. The clock in its name distinguishes
// processes of different machines that have the same number and share a network file system.
static int open_beside(const char *target, char *out, size_t size)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        int length = snprintf(
            out, size, "%s.%ld-%llx", target, (long)getpid(), (unsigned long long)hone_os_now_ns() + (unsigned)i);
        if (length < 0 || (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

// The new name is on the disk once its folder is synced. A file system that cannot sync folders keeps names durable by
// itself.
static bool sync_names(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return true; // the folder can be written but not read
    bool ok = fsync(fd) == 0 || errno == EINVAL;
    int code = errno;
    close(fd);
    errno = code;
    return ok;
}

static bool sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    return hone_os_folder_of(path, folder, sizeof folder) && sync_names(folder);
}

static bool keep_mode(int fd, const char *target)
{
    struct stat info;
    return stat(target, &info) != 0 || fchmod(fd, info.st_mode & 07777) == 0;
}

static bool fill(int fd, const char *target, const void *bytes, size_t size)
{
    bool ok = write_all(fd, bytes, size) && keep_mode(fd, target) && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 && ok) return false;
    errno = code;
    return ok;
}

static bool is_device_or_pipe(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static hone_status write_into(const char *path, const void *bytes, size_t size, hone_error *err)
{
    int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    bool ok = fd >= 0 && write_all(fd, bytes, size);
    int code = errno;
    if (fd >= 0) close(fd);
    return ok ? HONE_OK : hone_fail_system(err, HONE_IO, where, code, "cannot write to %s", path);
}

hone_status hone_os_replace_file(const char *path, const void *bytes, size_t size, hone_error *err)
{
    char target[PATH_MAX], temporary[PATH_MAX];
    if (strlen(path) >= sizeof target) return hone_fail_system(err, HONE_IO, where, ENAMETOOLONG, "%.200s...", path);
    if (is_device_or_pipe(path)) return write_into(path, bytes, size, err);
    // A link keeps its target: the file that it points to is replaced.
    if (realpath(path, target) == NULL) memcpy(target, path, strlen(path) + 1);
    int fd = open_beside(target, temporary, sizeof temporary);
    if (fd < 0) return hone_fail_system(err, HONE_IO, where, errno, "cannot write beside %s", path);
    if (fill(fd, target, bytes, size) && rename(temporary, target) == 0) {
        if (sync_folder_of(target)) return HONE_OK;
        return hone_fail_system(err, HONE_IO, where, errno, "%s is written, but may not outlive a power cut", path);
    }
    int code = errno;
    unlink(temporary);
    return hone_fail_system(err, HONE_IO, where, code, "cannot write %s, which is unchanged", path);
}

// One call of write: the kernel locks the file for its duration, and O_APPEND puts the text at the end.
hone_status hone_os_append_file(const char *path, const void *bytes, size_t size, hone_error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    ssize_t written;
    if (fd < 0) return hone_fail_system(err, HONE_IO, where, errno, "cannot append to %s", path);
    do
        written = write(fd, bytes, size);
    while (written < 0 && errno == EINTR);
    int code = errno;
    close(fd);
    if (written == (ssize_t)size) return HONE_OK;
    if (written < 0) return hone_fail_system(err, HONE_IO, where, code, "cannot append to %s", path);
    return hone_fail(err, HONE_IO, where, "%s took %zd of %zu bytes", path, written, size);
}

void hone_os_tell(const char *text, size_t size)
{
    (void)!write_all(STDERR_FILENO, text, size);
}

hone_status hone_os_write_beside(
    const char *target, const char *temporary, const void *bytes, size_t size, hone_error *err)
{
    // Another process may have prepared this name, even as a link, so the old file is removed instead of written
    // through.
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return hone_fail_system(err, HONE_IO, where, errno, "cannot write beside %s", target);
    if (fill(fd, target, bytes, size)) return HONE_OK;
    int code = errno;
    unlink(temporary);
    return hone_fail_system(err, HONE_IO, where, code, "cannot write %s, which is unchanged", target);
}

hone_status hone_os_rename(const char *from, const char *to, hone_error *err)
{
    if (rename(from, to) == 0) return HONE_OK;
    return hone_fail_system(err, HONE_IO, where, errno, "cannot put %s in its place", to);
}

hone_status hone_os_link(const char *from, const char *to, hone_error *err)
{
    if (link(from, to) == 0) return HONE_OK;
    return hone_fail_system(err, HONE_IO, where, errno, "cannot name %s also %s", from, to);
}

hone_status hone_os_sync_folder(const char *folder, hone_error *err)
{
    if (sync_names(folder)) return HONE_OK;
    return hone_fail_system(err, HONE_IO, where, errno, "what was written in %s may not outlive a power cut", folder);
}

void hone_os_remove_file(const char *path)
{
    (void)unlink(path);
}
