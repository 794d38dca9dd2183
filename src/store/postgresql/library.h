// PostgreSQL's own client library, found when a store of the kind is opened: who has none needs none.
#ifndef HONE_STORE_POSTGRESQL_LIBRARY_H
#define HONE_STORE_POSTGRESQL_LIBRARY_H

#include "hone/status.h"
#include "os/os.h"

// What is declared of libpq-fe.h, of PostgreSQL 9.3 and later, whose interface stays.
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef struct pg_cancel PGcancel;
typedef unsigned int Oid;

enum {
    CONNECTION_OK = 0,
    PGRES_COMMAND_OK = 1,
    PGRES_TUPLES_OK = 2,
    PGRES_PIPELINE_SYNC = 10,
    PGRES_PIPELINE_ABORTED = 11,
    PG_DIAG_SQLSTATE = 'C',
    PG_DIAG_MESSAGE_PRIMARY = 'M'
};

typedef struct pgNotify {
    char *relname; // the channel
    int be_pid;
    char *extra;
    struct pgNotify *next;
} PGnotify;

typedef struct PQconninfoOption {
    char *keyword, *envvar, *compiled, *val, *label, *dispchar;
    int dispsize;
} PQconninfoOption;

// name, result, parameters
#define HONE_PQ_FUNCTIONS(F)                                                                                           \
    F(PQconnectdbParams, PGconn *, (const char *const *names, const char *const *values, int expand))                  \
    F(PQconnectStartParams, PGconn *, (const char *const *names, const char *const *values, int expand))               \
    F(PQconninfo, PQconninfoOption *, (PGconn * conn))                                                                 \
    F(PQconninfoParse, PQconninfoOption *, (const char *info, char **words))                                           \
    F(PQconninfoFree, void, (PQconninfoOption * options))                                                              \
    F(PQfreemem, void, (void *memory))                                                                                 \
    F(PQfinish, void, (PGconn * conn))                                                                                 \
    F(PQstatus, int, (const PGconn *conn))                                                                             \
    F(PQparameterStatus, const char *, (const PGconn *conn, const char *name))                                         \
    F(PQerrorMessage, char *, (const PGconn *conn))                                                                    \
    F(PQexec, PGresult *, (PGconn * conn, const char *sql))                                                            \
    F(PQsendQuery, int, (PGconn * conn, const char *sql))                                                              \
    F(PQsendQueryParams, int,                                                                                          \
      (PGconn * conn, const char *sql, int count, const Oid *types, const char *const *values, const int *sizes,       \
       const int *formats, int format))                                                                                \
    F(PQsendPrepare, int, (PGconn * conn, const char *name, const char *sql, int count, const Oid *types))             \
    F(PQgetResult, PGresult *, (PGconn * conn))                                                                        \
    F(PQisBusy, int, (PGconn * conn))                                                                                  \
    F(PQsocket, int, (const PGconn *conn))                                                                             \
    F(PQsendQueryPrepared, int,                                                                                        \
      (PGconn * conn, const char *name, int count, const char *const *values, const int *sizes, const int *formats,    \
       int format))                                                                                                    \
    F(PQclear, void, (PGresult * result))                                                                              \
    F(PQresultStatus, int, (const PGresult *result))                                                                   \
    F(PQresultErrorField, char *, (const PGresult *result, int field))                                                 \
    F(PQresultErrorMessage, char *, (const PGresult *result))                                                          \
    F(PQntuples, int, (const PGresult *result))                                                                        \
    F(PQgetvalue, char *, (const PGresult *result, int row, int column))                                               \
    F(PQgetlength, int, (const PGresult *result, int row, int column))                                                 \
    F(PQgetisnull, int, (const PGresult *result, int row, int column))                                                 \
    F(PQcmdTuples, char *, (PGresult * result))                                                                        \
    F(PQconsumeInput, int, (PGconn * conn))                                                                            \
    F(PQnotifies, PGnotify *, (PGconn * conn))                                                                         \
    F(PQbackendPID, int, (const PGconn *conn))                                                                         \
    F(PQescapeIdentifier, char *, (PGconn * conn, const char *text, size_t size))                                      \
    F(PQsetNoticeProcessor, void *, (PGconn * conn, void (*says)(void *ctx, const char *words), void *ctx))

// Of PostgreSQL 14 and later; NULL in an older one.
#define HONE_PQ_LATER_FUNCTIONS(F)                                                                                     \
    F(PQenterPipelineMode, int, (PGconn * conn))                                                                       \
    F(PQexitPipelineMode, int, (PGconn * conn))                                                                        \
    F(PQpipelineSync, int, (PGconn * conn))

typedef struct hone_pq {
    hone_library *library;
#define HONE_PQ_FIELD(name, result, parameters) result(*name) parameters;
    HONE_PQ_FUNCTIONS(HONE_PQ_FIELD)
    HONE_PQ_LATER_FUNCTIONS(HONE_PQ_FIELD)
#undef HONE_PQ_FIELD
} hone_pq;

// HONE_UNAVAILABLE with what to install.
hone_status hone_pq_open(const hone_allocator *allocator, hone_pq *out, hone_error *err);
void hone_pq_close(const hone_allocator *allocator, hone_pq *pq);

#endif
