// Several records in one transaction of the caller's: what is stored for them is read by one statement, and what is put
// goes to the server at once, so that so many take as many round trips as one.
#ifndef HONE_STORE_POSTGRESQL_MANY_H
#define HONE_STORE_POSTGRESQL_MANY_H

#include "store/postgresql/rows.h"

// At a time.
enum { HONE_PG_AT_ONCE = 200 };

// What is to stand in place of `stored` (NULL: nothing), which nobody changes meanwhile. NULL of *out_put: it stays. It
// may be asked again for the same record.
typedef hone_status hone_pg_amendment(
    void *ctx, const void *record, const hone_pg_record *stored, const void **out_put, hone_error *err);

// Puts what `makes` makes of each record. Equal keys stand side by side.
hone_status hone_pg_amend_all(
    hone_pg_connection *connection,
    hone_pg_table table,
    const void *const *records,
    size_t count,
    hone_pg_amendment *makes,
    void *ctx,
    const char *where,
    hone_error *err);
// PUT or ADD of each. *out_put (may be NULL): how many rows were written.
hone_status hone_pg_put_all(
    hone_pg_connection *connection,
    hone_pg_table table,
    hone_pg_verb verb,
    const void *const *records,
    size_t count,
    size_t *out_put,
    const char *where,
    hone_error *err);

#endif
