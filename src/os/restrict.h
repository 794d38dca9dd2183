// Removes rights of a process, and of all processes that it starts, for good: the right to write files outside of given
// folders, to reach the network, to change the limits and the priority of other processes, and to make system calls
// that no kernel needs. Linux: Landlock and seccomp.
#ifndef HONE_OS_RESTRICT_H
#define HONE_OS_RESTRICT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HONE_OS_RESTRICTS_FILES = 1, // Landlock
    HONE_OS_RESTRICTS_CALLS = 2, // seccomp
};

// The rights that remain. Everything that the user can read stays readable.
typedef struct hone_os_rights {
    // Whose files may be created, written and removed; folders that do not exist are skipped
    const char *const *folders;
    size_t folder_count;
    const char *const *devices; // files, or folders of files, that may be written
    size_t device_count;
    bool local_sockets; // of the machine itself (AF_UNIX)
} hone_os_rights;

// Returns which restrictions this system supports.
unsigned hone_os_can_restrict(void);
// Restricts the calling thread, which should be the only one, and the threads and processes that it starts. Returns the
// restrictions that are in force afterwards.
unsigned hone_os_restrict(const hone_os_rights *rights);
// Restricts the calling thread and the threads and processes that it starts, for good: they can neither block signals
// nor change the action of this one, though the system call reports success. False if the system has no filters, or
// this process may not set one.
bool hone_os_keep_signals_open(int signal);

#endif
