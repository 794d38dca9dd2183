// A store whose file opens and has damaged pages: what is sound of it is carried over into a new one.
#ifndef HONE_STORE_SQLITE_SALVAGE_H
#define HONE_STORE_SQLITE_SALVAGE_H

#include "store/sqlite/connection.h"

// After SQLite has met damage, outside of a transaction. Under the lock of aside.h the file is looked at again; where
// it is damaged still, its sound records are put into a new store, its unsound ones into that one's quarantine, the
// file is moved aside, the new one takes its place, and the log is told. Nobody else writes meanwhile; who has the old
// file open finds out (hone_connection_is_moved).
// Returns: HONE_OK: the connection is open on a file that is sound; else the connection is as it was.
hone_status hone_salvage(hone_connection *connection, hone_error *err);

// The same for a file that SQLite does not open, under the lock of aside.h: what its pages hold. The connection has no
// file.
//   damage  what is wrong with it, for the log
// Returns: HONE_OK: a sound file lies under the name; HONE_NOT_FOUND: nothing of the file is a record, and it lies
// where it was.
hone_status hone_salvage_unopened(
    const hone_connection *connection, const char *file, const char *damage, hone_error *err);

#endif
