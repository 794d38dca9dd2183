// Runs programs to their end: compilers.
#include "base/error.h"
#include "os/mutex.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 512 };

static const char where[] = "os.process.run";

// Reads until the program has closed its end, or until the deadline.
static hone_status read_all(const hone_process *process, uint64_t deadline_ns, size_t limit, hone_buffer *out)
{
    const size_t most = out->size + limit;
    for (;;) {
        char byte;
        hone_status status = hone_fd_read(process->fd, &byte, 1, deadline_ns);
        if (status == HONE_IO) return HONE_OK;
        if (status != HONE_OK) return status;
        if (out->size < most) hone_buffer_char(out, byte);
    }
}

hone_status hone_process_run(
    const char *const *arguments, uint64_t deadline_ns, size_t limit, hone_buffer *out, int *out_exit, hone_error *err)
{
    static const char script[] = "exec \"$@\" >&3 2>&3";
    const char *all[MOST_ARGUMENTS + 5] = {"sh", "-c", script, "sh"};
    hone_process process;
    int signal_number = 0;
    size_t count = 4;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        if (i == MOST_ARGUMENTS)
            return hone_fail(err, HONE_INVALID_ARGUMENT, where, "more than %d arguments", MOST_ARGUMENTS);
        all[count++] = arguments[i];
    }
    *out_exit = 0;
    hone_status status = hone_process_spawn("/bin/sh", all, &process, err);
    if (status != HONE_OK) return status;
    status = read_all(&process, deadline_ns, limit, out);
    hone_process_kill(&process, &signal_number, out_exit);
    if (status != HONE_OK) return hone_fail(err, status, where, "%s did not end in time", arguments[0]);
    if (signal_number == 0) return HONE_OK;
    hone_fail(err, HONE_KERNEL_FAILED, where, "%s was ended by signal %d", arguments[0], signal_number);
    if (err != NULL) err->system_code = signal_number;
    return HONE_KERNEL_FAILED;
}

static bool take(const char *path, char *out, size_t size)
{
    char resolved[PATH_MAX];
    if (!hone_os_is_executable(path) || realpath(path, resolved) == NULL || strlen(resolved) >= size) return false;
    memcpy(out, resolved, strlen(resolved) + 1);
    return true;
}

bool hone_os_find_program(const char *name, char *out, size_t size)
{
    if (strchr(name, '/') != NULL) return take(name, out, size);
    for (const char *at = hone_os_variable("PATH"); at != NULL && *at != '\0';) {
        char path[PATH_MAX];
        const size_t length = strcspn(at, ":");
        const int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (length > 0 && written > 0 && (size_t)written < sizeof path && take(path, out, size)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

// Private folders -----------------------------------------------------------------------------------------------------

// The owner of a folder holds a lock on it, so that a folder without a lock is known to belong to a process that was
// killed.
static const char folder_start[] = "hone-build-";

static void remove_whole(const char *folder);

// Removes a link, but not its target.
static bool remove_one(void *ctx, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", (const char *)ctx, name);
    if (length > 0 && (size_t)length < sizeof path && unlink(path) != 0 && errno == EISDIR) remove_whole(path);
    return true;
}

static void remove_whole(const char *folder)
{
    (void)!hone_os_list_folder(folder, remove_one, (void *)(uintptr_t)folder, NULL);
    (void)!rmdir(folder);
}

// -1 if another process holds it, if it belongs to another user, or if it no longer exists.
static int hold(const char *folder)
{
    struct stat info;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        hone_os_is_file_at(fd, folder)) {
        hone_fd_own(fd);
        return fd;
    }
    close(fd);
    return -1;
}

static void let_go(int *fd)
{
    hone_fd_disown(*fd);
    close(*fd);
    *fd = -1;
}

static bool remove_left_behind(void *ctx, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", (const char *)ctx, name);
    if (strncmp(name, folder_start, sizeof folder_start - 1) != 0 || length <= 0 || (size_t)length >= sizeof path)
        return true;
    int fd = hold(path);
    if (fd < 0) return true;
    remove_whole(path);
    let_go(&fd);
    return true;
}

bool hone_os_make_private_folder(char *out, size_t size, int *out_hold)
{
    enum { TRIES = 16 }; // another process that cleans up may take a new folder before it is locked
    static atomic_flag has_looked = ATOMIC_FLAG_INIT;
    const char *named = hone_os_variable("TMPDIR"), *parent = named != NULL && named[0] == '/' ? named : "/tmp";
    *out_hold = -1;
    if (!atomic_flag_test_and_set(&has_looked))
        (void)!hone_os_list_folder(parent, remove_left_behind, (void *)(uintptr_t)parent, NULL);
    for (int i = 0; i < TRIES && *out_hold < 0; i++) {
        const int length = snprintf(out, size, "%s/%sXXXXXX", parent, folder_start);
        if (length <= 0 || (size_t)length >= size || mkdtemp(out) == NULL) return false;
        *out_hold = hold(out);
        if (*out_hold < 0) (void)!rmdir(out);
    }
    return *out_hold >= 0;
}

void hone_os_remove_private_folder(const char *folder, int *hold_of_it)
{
    remove_whole(folder);
    if (*hold_of_it >= 0) let_go(hold_of_it);
}
