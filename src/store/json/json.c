// "json:FOLDER" and "json:FILE.json": JSON files that people and programs can read, for teams that keep their choices
// beside their code. A memory store does the work; before it, what others wrote is read, and after it, what changed is
// written (store/memory/backed.h).
#include "store/memory/backed.h"

#include "base/error.h"
#include "store/json/files.h"

static const char where[] = "store.json.open";

extern const hone_store_ops hone_json_store_ops;

typedef struct json_store {
    hone_backed_store backed;
    hone_json_files files;
} json_store;

static json_store *json_of(hone_store *store)
{
    return (json_store *)store;
}

static hone_status refresh(hone_store *store, hone_error *err)
{
    return hone_json_files_refresh(&json_of(store)->files, err);
}

static hone_status begin(hone_store *store, hone_error *err)
{
    return hone_json_files_begin(&json_of(store)->files, err);
}

static hone_status end(hone_store *store, hone_status status, hone_error *err)
{
    return hone_json_files_end(&json_of(store)->files, status, err);
}

static const hone_backing files_backing = {refresh, begin, end};

static hone_status json_open(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    json_store *json = hone_alloc(allocator, sizeof *json);
    if (json == NULL) return hone_fail_memory(err, where);
    hone_backed_store *backed = &json->backed;
    hone_status status = hone_backed_init(backed, &hone_json_store_ops, &files_backing, allocator, log, err);
    if (status == HONE_OK) {
        status = hone_json_files_open(&json->files, allocator, location, &backed->base.log, &backed->tables, err);
        if (status != HONE_OK) hone_backed_deinit(backed);
    }
    if (status == HONE_OK)
        *out = &backed->base;
    else
        hone_free(allocator, json);
    return status;
}

static void json_close(hone_store *store)
{
    json_store *json = json_of(store);
    const hone_allocator allocator = store->allocator;
    hone_json_files_close(&json->files);
    hone_backed_deinit(&json->backed);
    hone_free(&allocator, json);
}

static hone_status json_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    const hone_json_files *files = &json_of(store)->files;
    hone_status status = hone_backed_stat(store, out, err);
    if (status != HONE_OK) return status;
    out->bytes = hone_json_files_bytes(files);
    out->quarantined += files->damage.count;
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
    hone_status status = hone_backed_quarantine(store, visit_quarantined, &target, err);
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
    hone_status status = hone_backed_verify(store, out, err);
    if (status != HONE_OK) return status;
    out->quarantined += json->files.damage.count;
    out->set_aside = json->files.fresh;
    json->files.fresh = 0;
    return hone_json_files_check(&json->files, err);
}

static hone_status json_clear_quarantine(hone_store *store, hone_error *err)
{
    json_store *json = json_of(store);
    hone_status status = hone_backed_begin(store, err);
    if (status != HONE_OK) return status;
    status = hone_backed_clear_quarantine(store, err);
    if (status == HONE_OK) status = hone_json_files_clear_damage(&json->files, err);
    return hone_backed_end(store, status, err);
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

static hone_status json_changes(hone_store *store, uint64_t *out, hone_error *err)
{
    hone_status status = hone_backed_refresh(store, err);
    *out = json_of(store)->files.loads;
    return status;
}

const hone_store_ops hone_json_store_ops = {
    .struct_size = sizeof(hone_store_ops),
    .scheme = "json:",
    .form = "json:FOLDER or json:FILE.json",
    .in_file = true,
    .open = json_open,
    .close = json_close,
    HONE_BACKED_STORE_OPS,
    .quarantine = json_quarantine,
    .clear_quarantine = json_clear_quarantine,
    .verify = json_verify,
    .stat = json_stat,
    .rest = json_rest,
    .lease = json_lease,
    .changes = json_changes,
};
