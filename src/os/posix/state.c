#include "os/posix/state.h"

#include "os/limits.h"

#include <stdio.h>
#include <string.h>

enum { EXITING = 0x4 }; // PF_EXITING of the kernel

bool hone_process_state_read(pid_t pid, hone_process_state *out)
{
    char path[64], line[HONE_OS_TEXT_SIZE], state = 0;
    int parent = 0;
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!hone_os_read_text("", path, line)) return false;
    // The name may contain any character, brackets too.
    const char *name = strchr(line, '('), *end = strrchr(line, ')');
    if (name == NULL || end == NULL || sscanf(end + 1, " %c %d %*d %*d %*d %*d %u", &state, &parent, &flags) != 3)
        return false;
    size_t size = end > name ? (size_t)(end - name) - 1 : 0;
    if (size >= sizeof out->name) size = sizeof out->name - 1;
    memcpy(out->name, name + 1, size);
    out->name[size] = '\0';
    out->parent = (pid_t)parent;
    out->is_running = state == 'R';
    out->is_stopped = state == 'T' || state == 't';
    out->is_exiting = (flags & EXITING) != 0;
    return true;
}
