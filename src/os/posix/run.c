// Programs that are run to their end: compilers.
#include "base/error.h"
#include "os/os.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 512 };

static const char where[] = "os.process.run";

// Until the program has closed its end, or longer than it is waited for.
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
    for (const char *at = getenv("PATH"); at != NULL && *at != '\0';) {
        char path[PATH_MAX];
        const size_t length = strcspn(at, ":");
        const int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (length > 0 && written > 0 && (size_t)written < sizeof path && take(path, out, size)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

// Private folders --------------------------------------------------------------------------------------------------

bool hone_os_make_private_folder(char *out, size_t size)
{
    const char *parent = getenv("TMPDIR");
    const int length = snprintf(out, size, "%s/hone-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
    return length > 0 && (size_t)length < size && mkdtemp(out) != NULL;
}

static bool remove_one(void *ctx, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", (const char *)ctx, name);
    if (length > 0 && (size_t)length < sizeof path) (void)!unlink(path);
    return true;
}

void hone_os_remove_private_folder(const char *folder)
{
    (void)!hone_os_list_folder(folder, remove_one, (void *)(uintptr_t)folder, NULL);
    (void)!rmdir(folder);
}
