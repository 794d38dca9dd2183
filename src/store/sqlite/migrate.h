// The schema of a file: looked at, and brought to today's.
#ifndef HONE_STORE_SQLITE_MIGRATE_H
#define HONE_STORE_SQLITE_MIGRATE_H

#include "store/sqlite/connection.h"

// Reads the version, in one read transaction: another process may be making the tables between two looks. 0: no tables
// yet.
// HONE_INCOMPATIBLE: it is something else's, or newer. HONE_CORRUPT: its tables are not hone's.
hone_status hone_migrate_look(hone_connection *connection, int64_t *out_version, hone_error *err);
// Makes the tables of a new file, or brings an older one to today's schema, in one transaction. On failure the file is
// as it was, and the connection is to be dropped.
hone_status hone_migrate(hone_connection *connection, hone_error *err);

#endif
