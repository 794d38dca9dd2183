// PostgreSQL's own client library, found when a store of the kind is opened: who has none needs none.
#ifndef HONE_STORE_POSTGRESQL_LIBRARY_H
#define HONE_STORE_POSTGRESQL_LIBRARY_H

#include "hone/status.h"
#include "os/os.h"

#include <libpq-fe.h>

// The functions of libpq that are called here.
#define HONE_PQ_FUNCTIONS(F)                                                                                           \
    F(PQconnectdbParams) F(PQconninfoParse) F(PQconninfoFree) F(PQfreemem) F(PQfinish) F(PQstatus) F(PQerrorMessage)   \
    F(PQexec) F(PQexecParams) F(PQprepare) F(PQexecPrepared) F(PQsendQueryPrepared) F(PQsetSingleRowMode)              \
    F(PQgetResult) F(PQclear) F(PQresultStatus) F(PQresultErrorField) F(PQresultErrorMessage) F(PQntuples)             \
    F(PQnfields) F(PQgetvalue) F(PQgetlength) F(PQgetisnull) F(PQcmdTuples) F(PQgetCancel) F(PQcancel)                 \
    F(PQfreeCancel) F(PQescapeIdentifier) F(PQsetNoticeProcessor)

typedef struct hone_pq {
    hone_library *library;
#define HONE_PQ_FIELD(name) __typeof__(name) *name;
    HONE_PQ_FUNCTIONS(HONE_PQ_FIELD)
#undef HONE_PQ_FIELD
} hone_pq;

// HONE_UNAVAILABLE with what to install.
hone_status hone_pq_open(const hone_allocator *allocator, hone_pq *out, hone_error *err);
void hone_pq_close(const hone_allocator *allocator, hone_pq *pq);

#endif
