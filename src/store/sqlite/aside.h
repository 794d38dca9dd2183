// Files that are damaged beyond opening are moved aside, never removed.
#ifndef HONE_STORE_SQLITE_ASIDE_H
#define HONE_STORE_SQLITE_ASIDE_H

#include "hone/status.h"

#include <stdbool.h>

enum { HONE_ASIDE_SIZE = 4096 };

// The lock's file, "PATH.lock"; false when the name does not fit.
bool hone_aside_name(const char *path, char out[HONE_ASIDE_SIZE]);
// Waits for the lock: of the processes that find the damage, one mends it. hone_os_lock_close(out_fd) lets go.
hone_status hone_aside_lock(const char *path, int *out_fd, hone_error *err);
// Whether somebody ever took the lock, and may hold it now.
bool hone_aside_is_begun(const char *path);
// Moves a file, with its -wal and -shm, to "PATH.damaged-20261120T123456Z", and one more with "-2" behind it.
hone_status hone_aside_move(const char *path, char out_path[HONE_ASIDE_SIZE], hone_error *err);
// The same for a file that others have open, and puts the file `fresh` in its place in one step: the name is never
// free.
hone_status hone_aside_replace(const char *path, const char *fresh, char out_path[HONE_ASIDE_SIZE], hone_error *err);

#endif
