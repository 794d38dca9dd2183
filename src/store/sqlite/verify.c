// The quarantine, and whether all of a store is sound.
#include "store/sqlite/damage.h"
#include "store/sqlite/store.h"

#include "base/error.h"

static const char quarantine_where[] = "store.quarantine";
static const char clear_quarantine_where[] = "store.clear_quarantine";
static const char verify_where[] = "store.verify";

typedef struct quarantine_visit {
    hone_store_visit_quarantined *visit;
    void *ctx;
} quarantine_visit;

static bool visit_quarantined(void *ctx, const void *record)
{
    quarantine_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

hone_status hone_sqlite_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    quarantine_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    if (hone_sqlite_following(store)->schema < HONE_SQL_QUARANTINE_SCHEMA) return HONE_OK;
    hone_query_begin(&query, hone_sqlite_connection(store), HONE_SQL_QUARANTINE_SCAN, quarantine_where);
    return hone_walk(&query, &hone_row_quarantine, visit_quarantined, &target, &ended, err);
}

hone_status hone_sqlite_clear_quarantine(hone_store *store, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, hone_sqlite_following(store), HONE_SQL_QUARANTINE_CLEAR, clear_quarantine_where);
    return hone_query_run(&query, "clear", err);
}

static bool count_record(void *ctx, const void *record)
{
    (void)record;
    ++*(uint64_t *)ctx;
    return true;
}

static hone_status verify_table(
    hone_connection *connection, hone_sql id, const hone_row_shape *shape, uint64_t *count, hone_error *err)
{
    static const hone_store_key all = {0};
    hone_query query;
    bool ended;
    hone_query_begin(&query, connection, id, verify_where);
    if (id == HONE_SQL_DECISION_SCAN_ANY) hone_bind_decisions(&query, &all);
    while (query.code == SQLITE_OK && query.bound < sqlite3_bind_parameter_count(query.statement))
        hone_query_text(&query, NULL);
    return hone_walk(&query, shape, count_record, count, &ended, err);
}

// A measurement and its call are put together, so that one without a call is damage.
static hone_status verify_orphans(hone_connection *connection, hone_error *err)
{
    static const struct {
        hone_sql id, drop;
        const hone_row_shape *shape;
    } tables[] = {
        {HONE_SQL_MEASUREMENT_ORPHANS, HONE_SQL_MEASUREMENT_ORPHANS_DROP, &hone_row_measurement},
        {HONE_SQL_FAILURE_ORPHANS, HONE_SQL_FAILURE_ORPHANS_DROP, &hone_row_failure},
    };
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < sizeof tables / sizeof *tables; i++) {
        uint64_t sound = 0, moved = connection->moved;
        hone_query query;
        status = verify_table(connection, tables[i].id, tables[i].shape, &sound, err);
        if (status != HONE_OK || connection->moved == moved) continue;
        hone_query_begin(&query, connection, tables[i].drop, verify_where);
        status = hone_query_run(&query, "drop what was set aside", err);
    }
    return status;
}

hone_status hone_sqlite_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    static const struct {
        hone_sql id;
        const hone_row_shape *shape;
        int schema;
    } tables[] = {
        {HONE_SQL_DECISION_SCAN_ANY, &hone_row_decision, 1}, {HONE_SQL_MEASUREMENT_SCAN, &hone_row_measurement, 1},
        {HONE_SQL_FAILURE_SCAN, &hone_row_failure, 1},       {HONE_SQL_INVOCATION_SCAN, &hone_row_invocation, 1},
        {HONE_SQL_ALIAS_SCAN, &hone_row_alias, 1},           {HONE_SQL_FOREIGN_SCAN, &hone_row_foreign, 2},
        {HONE_SQL_QUARANTINE_SCAN, &hone_row_quarantine, 2},
    };
    hone_connection *connection = hone_sqlite_following(store);
    hone_store_health health = {0};
    const uint64_t moved = connection->moved;
    hone_status status = hone_damage_check_file(connection, err);
    if (status == HONE_OK) status = verify_orphans(connection, err);
    for (size_t i = 0; status == HONE_OK && i < sizeof tables / sizeof *tables; i++) {
        bool is_quarantine = tables[i].shape == &hone_row_quarantine;
        if (tables[i].schema > connection->schema) continue;
        status = verify_table(
            connection, tables[i].id, tables[i].shape, is_quarantine ? &health.quarantined : &health.records, err);
    }
    health.set_aside = connection->moved - moved;
    if (status == HONE_OK) *out = health;
    return status;
}
