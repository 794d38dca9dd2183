// Files and folders.
#include "base/assert.h"
#include "base/error.h"
#include "os/os.h"
#include "os/plain_file.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const char where_make[] = "os.make_folders", where_read[] = "os.read_file", where_list[] = "os.list_folder",
                  where_own[] = "os.own_folder", where_runtime[] = "os.runtime_folder";

static int64_t time_ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

bool hone_os_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool hone_os_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool hone_os_is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

bool hone_os_is_free(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 && errno == ENOENT;
}

bool hone_os_folder_of(const char *path, char *out, size_t out_size)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (size >= out_size) return false;
    memcpy(out, slash == NULL ? "." : path, size);
    out[size] = '\0';
    return true;
}

int hone_os_folder_open(const char *path)
{
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void hone_os_folder_close(int *folder)
{
    if (*folder >= 0) close(*folder);
    *folder = -1;
}

bool hone_os_folder_changed(int folder, int64_t *out_ns)
{
    struct stat info;
    if (folder < 0 || fstat(folder, &info) != 0) return false;
    *out_ns = time_ns_of(&info.st_mtim);
    return true;
}

bool hone_os_may_make_files_beside(const char *path)
{
    char folder[PATH_MAX];
    return hone_os_folder_of(path, folder, sizeof folder) && access(folder, W_OK | X_OK) == 0;
}

bool hone_os_free_bytes(const char *folder, double *out)
{
    struct statfs info;
    if (statfs(folder, &info) != 0) return false;
    *out = (double)info.f_bavail * (double)info.f_bsize;
    return true;
}

bool hone_os_is_network_file(const char *path)
{
    // linux/magic.h lacks some of these numbers.
    static const unsigned long kinds[] = {
        0x6969,     // NFS
        0x517b,     // SMB
        0xff534d42, // CIFS
        0xfe534d42, // SMB2
        0x65735546, // FUSE: sshfs among many
        0x01021997, // 9P
        0x00c36400, // Ceph
        0x5346414f, // AFS
        0x6b414653, // kAFS
        0x73757245, // Coda
        0x564c,     // NCP
        0x0bd00bd0, // Lustre
        0x47504653, // GPFS
        0x7461636f, // OCFS2
        0x01161970, // GFS2
        0x786f4256, // VirtualBox's shared folders
        0xaad7aaea, // Panasas
        0x19830326, // BeeGFS
    };
    char folder[PATH_MAX];
    struct statfs info;
    if (statfs(path, &info) != 0 && (!hone_os_folder_of(path, folder, sizeof folder) || statfs(folder, &info) != 0))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (((unsigned long)info.f_type & 0xffffffff) == kinds[i]) return true;
    return false;
}

static hone_status make_folder(const char *path, hone_error *err)
{
    if (mkdir(path, 0777) == 0) return HONE_OK;
    int code = errno;
    if (hone_os_is_folder(path)) return HONE_OK;
    if (code == EEXIST) return hone_fail(err, HONE_IO, where_make, "%s exists and is not a folder", path);
    return hone_fail_system(err, HONE_IO, where_make, code, "cannot make the folder %s", path);
}

hone_status hone_os_make_folders(const char *path, hone_error *err)
{
    char part[PATH_MAX];
    size_t size = strlen(path);
    if (size == 0) return hone_fail(err, HONE_INVALID_ARGUMENT, where_make, "the path is empty");
    if (size >= sizeof part) return hone_fail_system(err, HONE_IO, where_make, ENAMETOOLONG, "%.200s...", path);
    if (hone_os_is_folder(path)) return HONE_OK;
    memcpy(part, path, size + 1);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        hone_status status = make_folder(part, err);
        if (status != HONE_OK) return status;
        *slash = '/';
    }
    return make_folder(part, err);
}

static hone_status open_file(const char *path, int flags, int *out_fd, hone_error *err)
{
    *out_fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (*out_fd >= 0) return HONE_OK;
    int code = errno;
    hone_status status = code == ENOENT || code == ENOTDIR ? HONE_NOT_FOUND : HONE_IO;
    return hone_fail_system(err, status, where_read, code, "%s", path);
}

// The sizes of files in /proc and of pipes are not known before they are read, so this reads without them.
static hone_status read_all(int fd, const char *path, size_t limit, hone_buffer *out, hone_error *err)
{
    char chunk[65536];
    size_t total = 0;
    for (;;) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return hone_fail_system(err, HONE_IO, where_read, errno, "%s", path);
        if (count == 0) break;
        total += (size_t)count;
        if (total > limit)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where_read, "%s is larger than the limit of %zu bytes", path, limit);
        hone_buffer_append(out, chunk, (size_t)count);
        if (out->failed) break;
    }
    return out->failed ? hone_fail_memory(err, where_read) : HONE_OK;
}

hone_status hone_os_read_file(const char *path, size_t limit, hone_buffer *out, hone_error *err)
{
    int fd;
    if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, path, limit, out, err);
    hone_status status = open_file(path, 0, &fd, err);
    if (status != HONE_OK) return status;
    status = read_all(fd, path, limit, out, err);
    close(fd);
    return status;
}

// Reads the properties from the open file: the path could change between a check of it and the opening.
static hone_status check_plain(int fd, const char *path, hone_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return hone_fail_system(err, HONE_IO, where_read, errno, "%s", path);
    if (S_ISREG(info.st_mode)) return HONE_OK;
    return hone_fail_system(
        err, HONE_IO, where_read, S_ISDIR(info.st_mode) ? EISDIR : EINVAL,
        "%s is not a regular file: name another path", path);
}

hone_status hone_os_read_plain_file(const char *path, size_t limit, hone_buffer *out, hone_error *err)
{
    int fd;
    hone_status status = open_file(path, O_NONBLOCK, &fd, err); // opening a pipe does not wait
    if (status != HONE_OK) return status;
    status = check_plain(fd, path, err);
    if (status == HONE_OK) status = read_all(fd, path, limit, out, err);
    close(fd);
    return status;
}

bool hone_os_object_path(const void *address, char *out, size_t size)
{
    Dl_info info;
    struct link_map *map = NULL;
    char path[PATH_MAX];
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || map == NULL) return false;
    // The program itself has no name in the link map, and the one of Dl_info is its argv[0], relative to a
    // folder that may have changed since.
    const char *name = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    if (realpath(name, path) == NULL || strlen(path) >= size) return false;
    memcpy(out, path, strlen(path) + 1);
    return true;
}

bool hone_os_own_path(char *out, size_t size)
{
    static const char own_address = 0;
    return hone_os_object_path(&own_address, out, size);
}

bool hone_os_is_executable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

hone_file_stamp hone_os_file_stamp(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) return (hone_file_stamp){0};
    return (hone_file_stamp){
        .device = info.st_dev,
        .inode = info.st_ino,
        .size = (uint64_t)info.st_size,
        .time_ns = time_ns_of(&info.st_mtim),
    };
}

unsigned hone_os_file_mode(const char *path, unsigned otherwise)
{
    struct stat info;
    return stat(path, &info) == 0 ? (unsigned)info.st_mode & 0777 : otherwise;
}

bool hone_os_is_plain_file(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool hone_os_is_file_at(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 && open_file.st_dev == named.st_dev &&
           open_file.st_ino == named.st_ino;
}

bool hone_os_real_path(const char *path, char *out, size_t size)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL || strlen(real) >= size) return false;
    memcpy(out, real, strlen(real) + 1);
    return true;
}

static bool is_own_name(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

hone_status hone_os_list_folder(
    const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err)
{
    DIR *list = opendir(folder);
    if (list == NULL) {
        int code = errno;
        return hone_fail_system(err, code == ENOENT ? HONE_NOT_FOUND : HONE_IO, where_list, code, "%s", folder);
    }
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(list)) != NULL)
        if (!is_own_name(entry->d_name) && !visit(ctx, entry->d_name)) break;
    int code = entry == NULL ? errno : 0;
    closedir(list);
    return code == 0 ? HONE_OK : hone_fail_system(err, HONE_IO, where_list, code, "%s", folder);
}

hone_status hone_os_make_own_folder(const char *path, hone_error *err)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return hone_fail_system(err, HONE_IO, where_own, errno, "cannot make the folder %s", path);
    if (lstat(path, &info) != 0) return hone_fail_system(err, HONE_IO, where_own, errno, "%s", path);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0)
        return hone_fail(
            err, HONE_IO, where_own,
            "%s is not a folder of user %u alone (mode 0700, no link): remove it, or have its owner do so", path,
            (unsigned)geteuid());
    return HONE_OK;
}

// As the specification of XDG_RUNTIME_DIR requires: owned by the user, and not accessible to others.
static bool is_own_folder(const char *path)
{
    struct stat info;
    return path != NULL && path[0] == '/' && lstat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
           info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

hone_status hone_os_runtime_folder(char *out, size_t size, hone_error *err)
{
    char usual[64];
    const char *named = hone_os_variable("XDG_RUNTIME_DIR");
    int length;
    snprintf(usual, sizeof usual, "/run/user/%u", (unsigned)geteuid());
    const char *base = is_own_folder(named) ? named : is_own_folder(usual) ? usual : NULL;
    if (base != NULL)
        length = snprintf(out, size, "%s/hone", base);
    else
        length = snprintf(out, size, "/tmp/hone-%u", (unsigned)geteuid());
    if (length <= 0 || (size_t)length >= size)
        return hone_fail(err, HONE_IO, where_runtime, "XDG_RUNTIME_DIR is longer than %zu bytes", size);
    return hone_os_make_own_folder(out, err);
}

bool hone_os_is_own_process(int pid)
{
    char path[32];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%d", pid);
    return pid > 0 && stat(path, &info) == 0 && info.st_uid == geteuid();
}

// The signal for a file beyond the size limit would end the process; the write itself fails too, and that is reported.
static _Thread_local struct {
    int depth;
    bool was_blocked; // by the host
} size_signal;

void hone_os_size_signal_hold(void)
{
    sigset_t set, before;
    if (size_signal.depth++ > 0) return;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    size_signal.was_blocked = sigismember(&before, SIGXFSZ) == 1;
}

void hone_os_size_signal_release(void)
{
    const struct timespec at_once = {0};
    sigset_t set;
    hone_assert(size_signal.depth > 0);
    if (--size_signal.depth > 0 || size_signal.was_blocked) return;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    (void)!sigtimedwait(&set, NULL, &at_once);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
