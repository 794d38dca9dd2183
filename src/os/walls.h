// Pages around an array that nobody may touch, so that what reads past its end shows. As os.h's guards: a touch is noted
// and goes on, in a process of its own.
#ifndef HONE_OS_WALLS_H
#define HONE_OS_WALLS_H

#include "os/os.h"

// Room for an array between two walls. All zero: none.
typedef struct hone_os_walled {
    char *block; // with its walls
    size_t block_size;
    char *room; // whole pages, zeroed
    size_t size;
    const char
        *mirror; // the same pages once more: what is put in the place of the room's does not show there. NULL: none
    hone_os_guard before, behind;
} hone_os_walled;

// Room of at least size bytes, in whole pages. hone_os_guard_begin came before. False: there is no memory, or no more
// walls.
//   mirrored  with a mirror, where the system gives one
bool hone_os_walled_create(hone_os_walled *walled, size_t size, bool mirrored);
void hone_os_walled_destroy(hone_os_walled *walled);

// Runs run(ctx) in a thread with a stack of so many bytes, and a wall below it that no frame steps over; what touches that
// is a fault. Returns when it has ended. False: there is no memory, or no thread.
bool hone_os_run_on_stack(size_t bytes, void (*run)(void *ctx), void *ctx);

// From here on a fault that is nobody's guard ends the process with this exit code; 0: as it did before.
void hone_os_exit_on_fault(int code);

#endif
