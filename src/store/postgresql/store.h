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

#endif
