// "json:FOLDER" and "json:FILE.json": JSON files that people and programs can read, for teams that keep their choices
// beside their code. A memory store does the work; before it, what others wrote is read, and after it, what changed is
// written.
#include "store/ops.h"

#include "base/error.h"
#include "store/json/files.h"

extern const hone_store_ops hone_json_store_ops;

typedef struct json_store {
    hone_store base;
    hone_store *memory;
    hone_json_files files;
} json_store;

static json_store *json_of(hone_store *store)
{
    return (json_store *)store;
}

static hone_status json_open(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    json_store *json = hone_alloc(allocator, sizeof *json);
    if (json == NULL) return hone_fail_memory(err, "store.json.open");
    json->base.ops = &hone_json_store_ops;
    json->base.allocator = *allocator;
    json->base.log = *log;
    hone_status status = hone_memory_store_ops.open(allocator, log, "", &json->memory, err);
    if (status == HONE_OK) {
        const hone_memory_tables tables = hone_memory_hold(json->memory);
        status = hone_json_files_open(&json->files, allocator, location, &json->base.log, &tables, err);
        if (status != HONE_OK) hone_memory_store_ops.close(json->memory);
    }
    if (status == HONE_OK)
        *out = &json->base;
    else
        hone_free(allocator, json);
    return status;
}

static void json_close(hone_store *store)
{
    json_store *json = json_of(store);
    const hone_allocator allocator = store->allocator;
    hone_json_files_close(&json->files);
    hone_memory_store_ops.close(json->memory);
    hone_free(&allocator, json);
}

// Reading -------------------------------------------------------------------------------------------------------------

static hone_status json_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.get(json->memory, key, regime, visit, ctx, err);
}

static hone_status json_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.scan(json->memory, filter, visit, ctx, err);
}

static hone_status json_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.measurements(json->memory, filter, visit, ctx, err);
}

static hone_status json_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.failures(json->memory, filter, visit, ctx, err);
}

static hone_status json_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.invocations(json->memory, filter, visit, ctx, err);
}

static hone_status json_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    if (status != HONE_OK) return status;
    return hone_memory_store_ops.get_alias(json->memory, scheme, operation, foreign_key, visit, ctx, err);
}

static hone_status json_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.aliases(json->memory, scheme, visit, ctx, err);
}

static hone_status json_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    return status != HONE_OK ? status : hone_memory_store_ops.foreigns(json->memory, scheme, visit, ctx, err);
}

static hone_status json_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    if (status == HONE_OK) status = hone_memory_store_ops.stat(json->memory, out, err);
    if (status != HONE_OK) return status;
    out->bytes = hone_json_files_bytes(&json->files);
    out->quarantined += json->files.damage.count;
    return HONE_OK;
}

// What was set aside, then the damaged lines as they stand in the files.
typedef struct quarantine_visit {
    hone_store_visit_quarantined *visit;
    void *ctx;
    bool ended;
} quarantine_visit;

static bool visit_quarantined(void *ctx, const hone_store_quarantined *quarantined)
{
    quarantine_visit *target = ctx;
    target->ended = !target->visit(target->ctx, quarantined);
    return !target->ended;
}

static hone_status json_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    json_store *json = json_of(store);
    quarantine_visit target = {visit, ctx, false};
    hone_status status = hone_json_files_refresh(&json->files, err);
    if (status == HONE_OK) status = hone_memory_store_ops.quarantine(json->memory, visit_quarantined, &target, err);
    const hone_table *damage = &json->files.damage;
    for (size_t i = 0; status == HONE_OK && !target.ended && i < damage->count; i++) {
        const hone_cell *cells = damage->rows[i]->cells;
        const hone_store_quarantined line = {
            .kind = cells[0].as.text, .record = cells[1].as.text, .reason = cells[2].as.text};
        visit_quarantined(&target, &line);
    }
    return status;
}

// Every record is under its checksum as it is read.
static hone_status json_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_refresh(&json->files, err);
    if (status == HONE_OK) status = hone_memory_store_ops.verify(json->memory, out, err);
    if (status != HONE_OK) return status;
    out->quarantined += json->files.damage.count;
    out->set_aside = json->files.fresh;
    json->files.fresh = 0;
    return hone_json_files_check(&json->files, err);
}

// Writing -------------------------------------------------------------------------------------------------------------

static hone_status json_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.put_all(json->memory, decisions, count, merger, err);
    return hone_json_files_end(&json->files, status, err);
}

static hone_status json_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    return hone_json_files_end(&json->files, hone_memory_store_ops.remove(json->memory, key, err), err);
}

static hone_status json_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.put_measurement(json->memory, key, measurement, err);
    return hone_json_files_end(&json->files, status, err);
}

static hone_status json_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.add_invocations(json->memory, invocations, count, err);
    return hone_json_files_end(&json->files, status, err);
}

static hone_status json_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    return hone_json_files_end(&json->files, hone_memory_store_ops.clear_invocations(json->memory, device, err), err);
}

static hone_status json_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.expire_misses(json->memory, before, most, err);
    return hone_json_files_end(&json->files, status, err);
}

static hone_status json_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    return hone_json_files_end(&json->files, hone_memory_store_ops.put_alias(json->memory, alias, err), err);
}

static hone_status json_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    return hone_json_files_end(
        &json->files, hone_memory_store_ops.put_foreigns(json->memory, foreigns, count, err), err);
}

static hone_status json_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.set_aside(json->memory, key, regime, reason, err);
    return hone_json_files_end(&json->files, status, err);
}

static hone_status json_clear_quarantine(hone_store *store, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.clear_quarantine(json->memory, err);
    if (status == HONE_OK) status = hone_json_files_clear_damage(&json->files, err);
    return hone_json_files_end(&json->files, status, err);
}

static hone_status json_begin(hone_store *store, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_json_files_begin(&json->files, err);
    return status == HONE_OK ? hone_memory_store_ops.begin(json->memory, err) : status;
}

static hone_status json_end(hone_store *store, hone_status status, hone_error *err)
{
    json_store *json = json_of(store);
    status = hone_memory_store_ops.end(json->memory, status, err);
    return hone_json_files_end(&json->files, status, err);
}

// The lock's file is opened again by the next who needs it.
static void json_rest(hone_store *store)
{
    hone_os_lock_close(&json_of(store)->files.lock);
}

static hone_status json_lease(hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    return hone_lease_take_beside(hone_store_location(store), name, wait, out, err);
}

const hone_store_ops hone_json_store_ops = {
    .struct_size = sizeof(hone_store_ops),
    .scheme = "json:",
    .form = "json:FOLDER or json:FILE.json",
    .in_file = true,
    .open = json_open,
    .close = json_close,
    .get = json_get,
    .put_all = json_put_all,
    .remove = json_remove,
    .scan = json_scan,
    .put_measurement = json_put_measurement,
    .measurements = json_measurements,
    .failures = json_failures,
    .add_invocations = json_add_invocations,
    .invocations = json_invocations,
    .clear_invocations = json_clear_invocations,
    .expire_misses = json_expire_misses,
    .put_alias = json_put_alias,
    .get_alias = json_get_alias,
    .aliases = json_aliases,
    .put_foreigns = json_put_foreigns,
    .foreigns = json_foreigns,
    .set_aside = json_set_aside,
    .quarantine = json_quarantine,
    .clear_quarantine = json_clear_quarantine,
    .verify = json_verify,
    .stat = json_stat,
    .begin = json_begin,
    .end = json_end,
    .rest = json_rest,
    .lease = json_lease,
};
