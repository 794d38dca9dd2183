// Files as a whole: read, replaced, listed.
#include "system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// code: errno, whose words end the message; 0: the message is whole.
__attribute__((format(printf, 4, 5))) static hone_status fail(
    hone_error *err, hone_status status, int code, const char *format, ...)
{
    va_list list;
    *err = (hone_error){.status = status, .system_code = code, .where = "file"};
    va_start(list, format);
    vsnprintf(err->message, sizeof err->message, format, list);
    va_end(list);
    const size_t used = strlen(err->message);
    if (code != 0) snprintf(err->message + used, sizeof err->message - used, ": %s", strerror(code));
    return status;
}

// Folders -------------------------------------------------------------------------------------------------------------

static hone_status make_folder(const char *path, hone_error *err)
{
    if (mkdir(path, 0777) == 0) return HONE_OK;
    const int code = errno;
    if (cli_is_folder(path)) return HONE_OK;
    if (code == EEXIST) return fail(err, HONE_IO, 0, "%s exists and is not a folder", path);
    return fail(err, HONE_IO, code, "cannot make the folder %s", path);
}

hone_status cli_make_folders(const char *path, hone_error *err)
{
    char part[PATH_MAX];
    const size_t size = strlen(path);
    if (size == 0) return fail(err, HONE_INVALID_ARGUMENT, 0, "the path is empty");
    if (size >= sizeof part) return fail(err, HONE_IO, ENAMETOOLONG, "%.200s...", path);
    memcpy(part, path, size + 1);
    for (char *slash = part + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        const hone_status status = make_folder(part, err);
        if (status != HONE_OK) return status;
    }
    return make_folder(part, err);
}

hone_status cli_list_folder(const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err)
{
    DIR *list = opendir(folder);
    if (list == NULL) return fail(err, errno == ENOENT ? HONE_NOT_FOUND : HONE_IO, errno, "%s", folder);
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(list)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !visit(ctx, name)) break;
    }
    const int code = entry == NULL ? errno : 0;
    closedir(list);
    return code == 0 ? HONE_OK : fail(err, HONE_IO, code, "%s", folder);
}

// Reading -------------------------------------------------------------------------------------------------------------

static int open_to_read(const char *path, int flags, hone_status *out, hone_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    *out = HONE_OK;
    if (fd < 0) *out = fail(err, errno == ENOENT || errno == ENOTDIR ? HONE_NOT_FOUND : HONE_IO, errno, "%s", path);
    return fd;
}

// The sizes of pipes and of files in /proc are not known before they are read.
static hone_status read_all(int fd, const char *path, size_t limit, cli_text *out, hone_error *err)
{
    char chunk[65536];
    ssize_t count;
    while ((count = read(fd, chunk, sizeof chunk)) != 0) {
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail(err, HONE_IO, errno, "%s", path);
        cli_text_append(out, chunk, (size_t)count);
        if (out->failed) return fail(err, HONE_OUT_OF_MEMORY, 0, "out of memory");
        if (out->size > limit)
            return fail(err, HONE_INVALID_ARGUMENT, 0, "%s is larger than the limit of %zu bytes", path, limit);
    }
    return HONE_OK;
}

hone_status cli_read_file(const char *path, size_t limit, cli_text *out, hone_error *err)
{
    hone_status status;
    cli_text_init(out);
    if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, path, limit, out, err);
    const int fd = open_to_read(path, 0, &status, err);
    if (fd < 0) return status;
    status = read_all(fd, path, limit, out, err);
    close(fd);
    return status;
}

// What is there is asked of what was opened: between a look at the path and its opening it could change.
static hone_status check_plain(int fd, const char *path, hone_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return fail(err, HONE_IO, errno, "%s", path);
    if (S_ISREG(info.st_mode)) return HONE_OK;
    return fail(
        err, HONE_IO, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "%s is not a regular file: name another path", path);
}

hone_status cli_read_plain_file(const char *path, size_t limit, cli_text *out, hone_error *err)
{
    hone_status status;
    cli_text_init(out);
    const int fd = open_to_read(path, O_NONBLOCK, &status, err); // a pipe opens at once
    if (fd < 0) return status;
    status = check_plain(fd, path, err);
    if (status == HONE_OK) status = read_all(fd, path, limit, out, err);
    close(fd);
    return status;
}

// Replacing -----------------------------------------------------------------------------------------------------------

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = write(fd, bytes, size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

static bool close_after(int fd, bool is_well)
{
    const int code = errno;
    if (close(fd) != 0 && is_well) return false;
    errno = code;
    return is_well;
}

// A new file beside the target has the mode of the one that it replaces, or what the umask leaves.
static bool write_beside(const char *target, const char *beside, const void *bytes, size_t size)
{
    struct stat info;
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    const bool keeps = stat(target, &info) != 0 || fchmod(fd, info.st_mode & 07777) == 0;
    if (close_after(fd, keeps && write_all(fd, bytes, size) && fsync(fd) == 0)) return true;
    const int code = errno;
    (void)unlink(beside);
    errno = code;
    return false;
}

// A name stands on the disk once its folder does. A file system that cannot sync folders keeps them by itself.
static bool sync_folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL) slash[slash == path] = '\0';
    const int fd = open(slash != NULL ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || close_after(fd, fsync(fd) == 0 || errno == EINVAL); // one may be written and not read
}

static bool is_device_or_pipe(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static hone_status write_into(const char *path, const void *bytes, size_t size, hone_error *err)
{
    const int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && close_after(fd, write_all(fd, bytes, size))) return HONE_OK;
    return fail(err, HONE_IO, errno, "cannot write to %s", path);
}

hone_status cli_write_file(const char *path, const void *bytes, size_t size, hone_error *err)
{
    char target[PATH_MAX], beside[PATH_MAX];
    if (strlen(path) >= sizeof target) return fail(err, HONE_IO, ENAMETOOLONG, "%.200s...", path);
    if (is_device_or_pipe(path)) return write_into(path, bytes, size, err);
    // A link keeps pointing where it points: the file behind it is replaced.
    if (!cli_real_path(path, target, sizeof target)) memcpy(target, path, strlen(path) + 1);
    // The clock tells processes of one number apart, which share a network's file system.
    const int length =
        snprintf(beside, sizeof beside, "%s.%ld-%llx", target, (long)getpid(), (unsigned long long)cli_now_ns());
    if (length < 0 || (size_t)length >= sizeof beside) return fail(err, HONE_IO, ENAMETOOLONG, "%.200s...", path);
    if (!write_beside(target, beside, bytes, size)) return fail(err, HONE_IO, errno, "cannot write beside %s", path);
    if (rename(beside, target) != 0) {
        const int code = errno;
        (void)unlink(beside);
        return fail(err, HONE_IO, code, "cannot write %s, which is unchanged", path);
    }
    if (sync_folder_of(target)) return HONE_OK;
    return fail(err, HONE_IO, errno, "%s is written, but may not outlive a power cut", path);
}
