// What the kernel reports about a process that may end at any time.
#ifndef HONE_OS_POSIX_STATE_H
#define HONE_OS_POSIX_STATE_H

#include <stdbool.h>
#include <sys/types.h>

enum { HONE_PROCESS_NAME_SIZE = 16 };

// The name that a keeper gives itself, by which its parent knows that it handles SIGTERM.
#define HONE_KEEPER_NAME "hone-keeper"

typedef struct hone_process_state {
    char name[HONE_PROCESS_NAME_SIZE];
    pid_t parent;
    bool is_running; // its first thread runs or is ready to
    bool is_stopped; // by a signal or a debugger
    bool is_exiting; // its files may be closed by now; it cannot be waited for yet
} hone_process_state;

// False: there is no such process.
bool hone_process_state_read(pid_t pid, hone_process_state *out);

#endif
