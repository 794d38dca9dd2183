#include "store/postgresql/rows.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/common/quarantine.h"

#include <string.h>

// Reading -------------------------------------------------------------------------------------------------------------

uint64_t hone_pg_number_at(const hone_pg_connection *c, const PGresult *result, int row, int column)
{
    const unsigned char *bytes = (const unsigned char *)c->pq.PQgetvalue(result, row, column);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    return bits;
}

// Where a text begins in the connection's texts, until all are there and none moves any more.
static bool keep_text(hone_pg_connection *c, const PGresult *result, int row, int column, hone_cell *out)
{
    const int size = c->pq.PQgetlength(result, row, column);
    const char *text = c->pq.PQgetvalue(result, row, column);
    out->kind = HONE_CELL_TEXT;
    out->size = (size_t)size;
    out->as.integer = (int64_t)c->texts.size;
    hone_buffer_append(&c->texts, text, (size_t)size);
    hone_buffer_append(&c->texts, "", 1);
    return memchr(text, '\0', (size_t)size) == NULL;
}

static bool read_cell(
    hone_pg_connection *c, const PGresult *result, int row, int column, hone_cell_kind kind, hone_cell *out)
{
    *out = (hone_cell){.kind = HONE_CELL_NULL};
    if (c->pq.PQgetisnull(result, row, column)) return true;
    if (kind == HONE_CELL_TEXT) return keep_text(c, result, row, column, out);
    if (c->pq.PQgetlength(result, row, column) != 8) return false;
    const uint64_t bits = hone_pg_number_at(c, result, row, column);
    out->kind = kind;
    memcpy(&out->as.integer, &bits, sizeof bits);
    return true;
}

// HONE_CORRUPT with the reason; the row is as far as it could be read.
static hone_status read_row(
    hone_pg_connection *c,
    const PGresult *result,
    int at,
    const hone_row_shape *shape,
    hone_row *out,
    const char **out_reason)
{
    bool sound = true;
    hone_buffer_clear(&c->texts);
    *out = (hone_row){.count = shape->count, .first_count = shape->first_count};
    for (size_t i = 0; i < shape->count; i++)
        sound = read_cell(c, result, at, (int)i, hone_row_column_kind(shape, i), &out->cells[i]) && sound;
    if (c->texts.failed) return HONE_OUT_OF_MEMORY;
    for (size_t i = 0; i < shape->count; i++)
        if (out->cells[i].kind == HONE_CELL_TEXT) out->cells[i].as.text = c->texts.data + out->cells[i].as.integer;
    *out_reason = "has a value of another form";
    if (!sound) return HONE_CORRUPT;
    *out_reason = "does not match its checksum";
    return hone_pg_number_at(c, result, at, (int)shape->count) == hone_row_checksum(out) ? HONE_OK : HONE_CORRUPT;
}

hone_status hone_pg_read_record(
    hone_pg_connection *c,
    const PGresult *result,
    int at,
    hone_pg_table table,
    hone_row *row,
    hone_pg_record *out,
    const char **out_reason)
{
    const hone_row_shape *shape = hone_pg_shape(table);
    hone_status status = read_row(c, result, at, shape, row, out_reason);
    if (status != HONE_OK || hone_row_read(shape, row, out, sizeof *out)) return status;
    *out_reason = "has a value out of its range";
    return HONE_CORRUPT;
}

// Setting aside -------------------------------------------------------------------------------------------------------

// A row that is to go, by the id that it stands under.
typedef struct damaged {
    hone_buffer text;
    hone_store_quarantined quarantined; // borrows the text
    char id[HONE_SHA256_HEX_SIZE];
    struct damaged *next;
} damaged;

static bool note_damaged(
    hone_pg_connection *c,
    const PGresult *result,
    int at,
    const hone_row_shape *shape,
    const hone_row *row,
    const char *reason,
    damaged **list)
{
    damaged *one = hone_alloc(&c->allocator, sizeof *one);
    const int size = c->pq.PQgetlength(result, at, (int)shape->count + 1);
    if (one == NULL) return false;
    hone_buffer_init(&one->text, c->allocator);
    one->quarantined = hone_quarantine_row(shape, row, reason, &one->text);
    memcpy(one->id, c->pq.PQgetvalue(result, at, (int)shape->count + 1), size < 64 ? (size_t)size : 64);
    one->next = *list;
    *list = one;
    return true;
}

static hone_status move_one(
    hone_pg_connection *c, hone_pg_table table, const damaged *one, const char *where, hone_error *err)
{
    hone_pg_values values = {.count = 0};
    hone_status status = hone_pg_begin(c, where, err);
    if (status != HONE_OK) return status;
    status = hone_pg_put(c, HONE_PG_QUARANTINE, HONE_PG_PUT, &one->quarantined, NULL, where, err);
    hone_pg_add_text(&values, one->id);
    if (status == HONE_OK) status = hone_pg_run(c, table, HONE_PG_DROP, &values, NULL, NULL, where, err);
    status = hone_pg_end(c, status, where, err);
    if (status != HONE_OK) return status;
    c->moved++;
    hone_log_write(
        c->log, HONE_LOG_WARNING, "store.postgresql: a record of %s %s: it was set aside", one->quarantined.kind,
        one->quarantined.reason);
    return HONE_OK;
}

// A reader that may not write leaves them where they are.
static void move_all(hone_pg_connection *c, hone_pg_table table, damaged *list, const char *where)
{
    while (list != NULL) {
        damaged *next = list->next;
        if (!c->read_only && table != HONE_PG_QUARANTINE && !list->text.failed)
            (void)move_one(c, table, list, where, NULL);
        hone_buffer_deinit(&list->text);
        hone_free(&c->allocator, list);
        list = next;
    }
}

// Walking -------------------------------------------------------------------------------------------------------------

typedef struct walk {
    hone_pg_visit *visit;
    void *ctx;
    bool ended;
    damaged *list;
} walk;

static hone_status visit_rows(hone_pg_connection *c, const PGresult *result, hone_pg_table table, walk *w)
{
    hone_pg_record record;
    hone_row row;
    for (int i = 0; i < c->pq.PQntuples(result) && !w->ended; i++) {
        const char *reason = NULL;
        hone_status status = hone_pg_read_record(c, result, i, table, &row, &record, &reason);
        if (status == HONE_OUT_OF_MEMORY) return status;
        if (status == HONE_OK)
            w->ended = !w->visit(w->ctx, &record);
        else if (!note_damaged(c, result, i, hone_pg_shape(table), &row, reason, &w->list))
            return HONE_OUT_OF_MEMORY;
    }
    return HONE_OK;
}

hone_status hone_pg_walk_result(
    hone_pg_connection *c,
    hone_pg_table table,
    PGresult *result,
    hone_pg_visit *visit,
    void *ctx,
    bool *out_ended,
    const char *where,
    hone_error *err)
{
    walk w = {.visit = visit, .ctx = ctx};
    hone_status status = visit_rows(c, result, table, &w) == HONE_OK ? HONE_OK : hone_fail_memory(err, where);
    c->pq.PQclear(result);
    move_all(c, table, w.list, where);
    *out_ended = w.ended;
    return status;
}

hone_status hone_pg_walk(
    hone_pg_connection *c,
    hone_pg_table table,
    const char *const *filters,
    hone_pg_visit *visit,
    void *ctx,
    bool *out_ended,
    const char *where,
    hone_error *err)
{
    hone_pg_values values = {.count = 0};
    PGresult *result = NULL;
    for (size_t i = 0; i < hone_pg_filters(table); i++)
        hone_pg_add_text(&values, filters[i]);
    hone_status status = hone_pg_run(c, table, HONE_PG_SCAN, &values, &result, NULL, where, err);
    return status == HONE_OK ? hone_pg_walk_result(c, table, result, visit, ctx, out_ended, where, err) : status;
}

// One -----------------------------------------------------------------------------------------------------------------

static hone_status add_id(
    hone_pg_connection *c,
    const hone_row *row,
    size_t key_count,
    char *id,
    hone_pg_values *values,
    const char *where,
    hone_error *err)
{
    if (!hone_pg_id(row, key_count, &c->scratch, id)) return hone_fail_memory(err, where);
    hone_pg_add_text(values, id);
    return HONE_OK;
}

hone_status hone_pg_find(
    hone_pg_connection *c,
    hone_pg_table table,
    hone_pg_verb verb,
    const void *probe,
    hone_pg_record *out,
    bool *out_there,
    const char *where,
    hone_error *err)
{
    const hone_row_shape *shape = hone_pg_shape(table);
    char id[HONE_SHA256_HEX_SIZE];
    hone_pg_values values = {.count = 0};
    PGresult *result = NULL;
    const char *reason = NULL;
    hone_row row;
    damaged *list = NULL;
    *out_there = false;
    hone_row_of(shape, probe, &row);
    hone_status status = add_id(c, &row, shape->key_count, id, &values, where, err);
    if (status == HONE_OK) status = hone_pg_run(c, table, verb, &values, &result, NULL, where, err);
    if (status != HONE_OK) return status;
    if (c->pq.PQntuples(result) > 0) {
        hone_status read = hone_pg_read_record(c, result, 0, table, &row, out, &reason);
        *out_there = read == HONE_OK;
        if (read == HONE_OUT_OF_MEMORY ||
            (read == HONE_CORRUPT && !note_damaged(c, result, 0, shape, &row, reason, &list)))
            status = hone_fail_memory(err, where);
    }
    c->pq.PQclear(result);
    move_all(c, table, list, where);
    return status;
}

hone_status hone_pg_put_values(
    hone_pg_connection *c,
    hone_pg_table table,
    const void *record,
    hone_pg_ids *ids,
    hone_pg_values *values,
    const char *where,
    hone_error *err)
{
    const hone_row_shape *shape = hone_pg_shape(table);
    hone_row row;
    *values = (hone_pg_values){.count = 0};
    hone_row_of(shape, record, &row);
    hone_status status = add_id(c, &row, shape->key_count, ids->id, values, where, err);
    if (status == HONE_OK && hone_pg_has_call(table)) {
        // Records of calls begin with the key that they stand under.
        if (!hone_pg_call_id(record, &c->scratch, ids->call)) return hone_fail_memory(err, where);
        hone_pg_add_text(values, ids->call);
    }
    if (status != HONE_OK) return status;
    hone_pg_add_cells(values, &row);
    hone_pg_add_integer(values, (int64_t)hone_row_checksum(&row));
    return HONE_OK;
}

hone_status hone_pg_put(
    hone_pg_connection *c,
    hone_pg_table table,
    hone_pg_verb verb,
    const void *record,
    bool *out_put,
    const char *where,
    hone_error *err)
{
    hone_pg_ids ids;
    hone_pg_values values;
    uint64_t changed = 0;
    hone_assert(verb == HONE_PG_PUT || verb == HONE_PG_ADD);
    hone_status status = hone_pg_put_values(c, table, record, &ids, &values, where, err);
    if (status == HONE_OK) status = hone_pg_run(c, table, verb, &values, NULL, &changed, where, err);
    if (out_put != NULL) *out_put = changed > 0;
    return status;
}

hone_status hone_pg_swap_job(
    hone_pg_connection *c,
    const hone_job *stored,
    const hone_job *put,
    bool *out_done,
    const char *where,
    hone_error *err)
{
    const hone_row_shape *shape = hone_pg_shape(HONE_PG_JOB);
    char id[HONE_SHA256_HEX_SIZE];
    hone_pg_values values = {.count = 0};
    uint64_t changed = 0;
    hone_row before, row;
    hone_row_of(shape, stored, &before);
    hone_status status = add_id(c, &before, shape->key_count, id, &values, where, err);
    if (status != HONE_OK) return status;
    if (put != NULL) {
        hone_row_of(shape, put, &row);
        hone_pg_add_cells(&values, &row);
        hone_pg_add_integer(&values, (int64_t)hone_row_checksum(&row));
    }
    hone_pg_add_integer(&values, (int64_t)hone_row_checksum(&before));
    status =
        hone_pg_run(c, HONE_PG_JOB, put != NULL ? HONE_PG_SWAP : HONE_PG_TAKE, &values, NULL, &changed, where, err);
    *out_done = changed > 0;
    return status;
}

hone_status hone_pg_drop(
    hone_pg_connection *c, hone_pg_table table, const void *probe, const char *where, hone_error *err)
{
    const hone_row_shape *shape = hone_pg_shape(table);
    char id[HONE_SHA256_HEX_SIZE];
    hone_pg_values values = {.count = 0};
    hone_row row;
    hone_row_of(shape, probe, &row);
    hone_status status = add_id(c, &row, shape->key_count, id, &values, where, err);
    return status == HONE_OK ? hone_pg_run(c, table, HONE_PG_DROP, &values, NULL, NULL, where, err) : status;
}
