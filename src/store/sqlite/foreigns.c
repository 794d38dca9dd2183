// What other systems call by other names: aliases of their keys, and their configs as they came.
#include "store/sqlite/put.h"
#include "store/sqlite/store.h"

#include "base/error.h"

static const char put_alias_where[] = "store.put_alias";
static const char get_alias_where[] = "store.get_alias";
static const char aliases_where[] = "store.aliases";
static const char put_foreign_where[] = "store.put_foreign";
static const char get_foreign_where[] = "store.get_foreign";
static const char foreigns_where[] = "store.foreigns";
static const char clear_foreigns_where[] = "store.clear_foreigns";

hone_status hone_sqlite_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    return hone_put_alone(hone_sqlite_connection(store), &hone_row_alias, alias, put_alias_where, err);
}

typedef struct alias_request {
    void (*visit)(void *ctx, const hone_store_alias *alias);
    void *ctx;
    bool found;
} alias_request;

static bool give_alias(void *ctx, const void *record)
{
    alias_request *request = ctx;
    request->found = true;
    request->visit(request->ctx, record);
    return false;
}

hone_status hone_sqlite_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    alias_request request = {visit, ctx, false};
    hone_query query;
    bool ended;
    hone_query_begin(&query, hone_sqlite_following(store), HONE_SQL_ALIAS_GET, get_alias_where);
    hone_query_text(&query, scheme);
    hone_query_text(&query, operation);
    hone_query_text(&query, foreign_key);
    hone_status status = hone_walk(&query, &hone_row_alias, give_alias, &request, &ended, err);
    if (status != HONE_OK || request.found) return status;
    return hone_fail(err, HONE_NOT_FOUND, get_alias_where, "no alias for %s %s:%s", scheme, operation, foreign_key);
}

typedef struct alias_visit {
    hone_store_visit_alias *visit;
    void *ctx;
} alias_visit;

static bool visit_alias(void *ctx, const void *record)
{
    alias_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

hone_status hone_sqlite_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    alias_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    hone_query_begin(&query, hone_sqlite_following(store), HONE_SQL_ALIAS_SCAN, aliases_where);
    hone_query_text(&query, scheme);
    return hone_walk(&query, &hone_row_alias, visit_alias, &target, &ended, err);
}

// Foreign configs -----------------------------------------------------------------------------------------------------

hone_status hone_sqlite_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    hone_status status = hone_connection_begin(connection, put_foreign_where, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = hone_put_record(connection, &hone_row_foreign, &foreigns[i], put_foreign_where, err);
    return hone_connection_end(connection, status, put_foreign_where, err);
}

typedef struct foreign_visit {
    hone_store_visit_foreign *visit;
    void *ctx;
} foreign_visit;

static bool visit_foreign(void *ctx, const void *record)
{
    foreign_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

hone_status hone_sqlite_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    foreign_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    if (hone_sqlite_following(store)->schema < HONE_SQL_FOREIGN_SCHEMA) return HONE_OK;
    hone_query_begin(&query, hone_sqlite_connection(store), HONE_SQL_FOREIGN_SCAN, foreigns_where);
    hone_query_text(&query, scheme);
    return hone_walk(&query, &hone_row_foreign, visit_foreign, &target, &ended, err);
}

typedef struct foreign_request {
    void (*visit)(void *ctx, const hone_store_foreign *foreign);
    void *ctx;
    bool found;
} foreign_request;

static bool give_foreign(void *ctx, const void *record)
{
    foreign_request *request = ctx;
    request->found = true;
    request->visit(request->ctx, record);
    return false;
}

static hone_status find_foreign(
    hone_store *store, const hone_store_foreign *key, foreign_request *request, hone_error *err)
{
    hone_query query;
    bool ended;
    if (hone_sqlite_following(store)->schema < HONE_SQL_FOREIGN_SCHEMA) return HONE_OK;
    hone_query_begin(&query, hone_sqlite_connection(store), HONE_SQL_FOREIGN_GET, get_foreign_where);
    hone_query_text(&query, key->scheme);
    hone_query_text(&query, key->operation);
    hone_query_text(&query, key->device != NULL ? key->device : "");
    hone_query_text(&query, key->foreign_key);
    return hone_walk(&query, &hone_row_foreign, give_foreign, request, &ended, err);
}

hone_status hone_sqlite_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    foreign_request request = {visit, ctx, false};
    hone_status status = find_foreign(store, key, &request, err);
    if (status != HONE_OK || request.found) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, get_foreign_where, "no config of %s for %s:%s", key->scheme, key->operation,
        key->foreign_key);
}

hone_status hone_sqlite_clear_foreigns(hone_store *store, const char *scheme, hone_error *err)
{
    hone_query query;
    if (hone_sqlite_following(store)->schema < HONE_SQL_FOREIGN_SCHEMA) return HONE_OK;
    hone_query_begin(&query, hone_sqlite_connection(store), HONE_SQL_FOREIGN_CLEAR, clear_foreigns_where);
    hone_query_text(&query, scheme);
    return hone_query_run(&query, "clear", err);
}
