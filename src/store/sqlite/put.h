// Putting records of any kind into their tables.
#ifndef HONE_STORE_SQLITE_PUT_H
#define HONE_STORE_SQLITE_PUT_H

#include "store/sqlite/connection.h"

// Puts a row, in the place of one with its key. A measurement or failure takes several statements: in a transaction.
// HONE_IO: so many keys have a decision's hash that its place is full.
hone_status hone_put_row(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *where, hone_error *err);
hone_status hone_put_record(
    hone_connection *connection, const hone_row_shape *shape, const void *record, const char *where, hone_error *err);

// After decisions of a place were deleted, in the same transaction: the others move up.
hone_status hone_close_gaps(hone_connection *connection, int64_t place, const char *where, hone_error *err);

#endif
