// The statements, made from the shapes of the records (store/common/row.h).
//
// Texts are bytea: hone's may be any bytes, and bytea compares by them. A row's primary key is the digest of its key's
// cells, since what PostgreSQL's indexes hold is shorter than a canonical text may be; `call` is that of device,
// algorithm, version and key, by which measurements and decisions are found together.
#ifndef HONE_STORE_POSTGRESQL_SQL_H
#define HONE_STORE_POSTGRESQL_SQL_H

#include "base/buffer.h"
#include "base/hash.h"
#include "store/common/row.h"

// The version of the tables; a schema with a later one is refused.
enum { HONE_PG_SCHEMA = 2 };

typedef enum hone_pg_table {
    HONE_PG_DECISION,
    HONE_PG_MEASUREMENT,
    HONE_PG_FAILURE,
    HONE_PG_INVOCATION,
    HONE_PG_ALIAS,
    HONE_PG_FOREIGN,
    HONE_PG_JOB,
    HONE_PG_QUARANTINE,
    HONE_PG_TABLES
} hone_pg_table;

// What is done with one table. Parameters stand behind each.
typedef enum hone_pg_verb {
    HONE_PG_PUT,    // id, call, cells, checksum: takes the place of what stands there; of measurements and failures
                    // that with the same key of the other table goes
    HONE_PG_ADD,    // the same: where nothing stands
    HONE_PG_GET,    // id
    HONE_PG_LOCK,   // id: GET, until the transaction ends
    HONE_PG_DROP,   // id
    HONE_PG_SCAN,   // the first cells of the filter (hone_pg_filters), NULL matches all; in the order of scans
    HONE_PG_REMOVE, // call, spec
    HONE_PG_CLEAR,  // device or scheme, NULL matches all
    // Of jobs alone, in the order in which they are claimed.
    HONE_PG_NEXT,    // device, state, limit
    HONE_PG_LOOK,    // devices, limit of each; those that wait
    HONE_PG_ORPHANS, // devices, limit of each; those that are held, whose holder is gone
    // Of jobs alone, where the row is still the one that was read.
    HONE_PG_SWAP, // id, cells, checksum, checksum of what is stored: changes it
    HONE_PG_TAKE, // id, checksum of what is stored: removes it
    // Of any.
    HONE_PG_LOCKS, // ids: LOCK of each that is there, in the order of keys
    HONE_PG_VERBS
} hone_pg_verb;

const hone_row_shape *hone_pg_shape(hone_pg_table table);
// Whether its records belong to a call, and have a column `call`.
bool hone_pg_has_call(hone_pg_table table);
// Columns that SCAN filters by: device, algorithm, version and key, or the scheme alone.
size_t hone_pg_filters(hone_pg_table table);
// The select of jobs of every device: state, limit.
void hone_pg_write_any_jobs(hone_buffer *out);
void hone_pg_write_sql(hone_pg_table table, hone_pg_verb verb, hone_buffer *out);
// What makes today's tables in the schema of the search path out of those of a version; 0: there are none.
void hone_pg_write_tables(int64_t version, hone_buffer *out);

// The digest of cells [0, count) of a row, and that of a call. False: no memory.
bool hone_pg_id(const hone_row *row, size_t count, hone_buffer *scratch, char out_hex[HONE_SHA256_HEX_SIZE]);
bool hone_pg_call_id(const hone_store_key *key, hone_buffer *scratch, char out_hex[HONE_SHA256_HEX_SIZE]);

#endif
