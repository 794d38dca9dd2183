// Rights that a process gives up for good, and all that it starts after it: to write files elsewhere than it must, to
// reach the network, to change the limits and the priority of other processes than the caller, and calls that no kernel of anybody's
// needs. Linux: Landlock and seccomp.
#ifndef HONE_OS_RESTRICT_H
#define HONE_OS_RESTRICT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HONE_OS_RESTRICTS_FILES = 1, // Landlock
    HONE_OS_RESTRICTS_CALLS = 2, // seccomp
};

// What may still be done. Everything can be read that the user can read.
typedef struct hone_os_rights {
    const char *const *folders; // whose files may be made, written and removed; what is not there is passed by
    size_t folder_count;
    const char *const *devices; // files, or folders of files, that may be written
    size_t device_count;
    bool local_sockets; // of the machine itself (AF_UNIX)
} hone_os_rights;

// What this system can do of it.
unsigned hone_os_can_restrict(void);
// For the calling thread, which should be the only one, and those that it starts. Returns what holds from here on.
unsigned hone_os_restrict(const hone_os_rights *rights);
// For the calling thread and those that it starts, for good: they can neither block signals nor change the action of this one;
// the system call reports success. False: the system has no filters, or this process may not set one.
bool hone_os_keep_signals_open(int signal);

#endif
