// Damaged records: moved to the quarantine, so that they are told once and served never.
#ifndef HONE_STORE_SQLITE_DAMAGE_H
#define HONE_STORE_SQLITE_DAMAGE_H

#include "store/sqlite/connection.h"

// Moves the current row of a query inside a transaction, and tells the log.
hone_status hone_damage_move(hone_query *query, const hone_row_shape *shape, const char *reason, hone_error *err);
// Puts a row that does not come from a table of today into the quarantine, and tells the log.
hone_status hone_damage_keep(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *reason, hone_error *err);
// Puts a record into the quarantine, which keeps the last ones.
hone_status hone_damage_put(hone_connection *connection, const hone_store_quarantined *quarantined, hone_error *err);
// Steps through a query again, in a transaction of its own, and moves each row that is damaged still. Where the store
// cannot be written now, the rows stay and are told once. Called between steps and the query's end.
void hone_damage_move_all(hone_query *query, const hone_row_shape *shape);
// Whether SQLite finds its own structures sound: HONE_OK, or HONE_CORRUPT with what it found first.
hone_status hone_damage_check_file(hone_connection *connection, hone_error *err);

#endif
