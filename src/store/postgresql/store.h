// What the parts of the store of kind "postgresql:" share.
#ifndef HONE_STORE_POSTGRESQL_STORE_H
#define HONE_STORE_POSTGRESQL_STORE_H

#include "store/ops.h"
#include "store/postgresql/leases.h"
#include "store/postgresql/rows.h"

typedef struct hone_pg_store {
    hone_store base;
    hone_pg_connection connection;
    hone_pg_sessions sessions; // of leases
} hone_pg_store;

extern const hone_queue_ops hone_pg_queue_ops;

static inline hone_pg_connection *hone_pg_connection_of(hone_store *store)
{
    return &((hone_pg_store *)store)->connection;
}

// What is done in a transaction of its own, or as a part of one; done again where the server ends it for the sake of
// another one.
typedef hone_status hone_pg_work(hone_pg_connection *connection, void *ctx, hone_error *err);
hone_status hone_pg_transact(hone_store *store, hone_pg_work *work, void *ctx, const char *where, hone_error *err);

#endif
