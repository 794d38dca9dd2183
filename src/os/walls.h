// Inaccessible pages around an array, which detect reads past its end. They are like os.h's guards: an access is
// recorded and then proceeds, in a separate process.
#ifndef HONE_OS_WALLS_H
#define HONE_OS_WALLS_H

#include "os/os.h"

// Memory for an array between two walls. All zero: none.
typedef struct hone_os_walled {
    char *block; // with its walls
    size_t block_size;
    char *room; // whole pages, zeroed
    size_t size;
    const char
        *mirror; // the same pages mapped again: a page that replaces one of the room does not appear here. NULL: none
    hone_os_guard before, behind;
} hone_os_walled;

// Room of at least size bytes, in whole pages. Call hone_os_guard_begin before. False if there is no memory, or no more
// walls.
//   mirrored  with a mirror, if the system supports it
bool hone_os_walled_create(hone_os_walled *walled, size_t size, bool mirrored);
void hone_os_walled_destroy(hone_os_walled *walled);

// Runs run(ctx) in a thread with a stack of that many bytes, and a wall below it that is larger than any frame; an
// access to the wall is a fault. Returns when the thread has ended. False if there is no memory, or no thread.
bool hone_os_run_on_stack(size_t bytes, void (*run)(void *ctx), void *ctx);

// From here on a fault outside of all guards ends the process with this exit code; 0: as before.
void hone_os_exit_on_fault(int code);

#endif
