// "memory:", a store that dies with the process: for tests, and for runs that should leave nothing behind.
#include "store/ops.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/common/quarantine.h"
#include "store/memory/memory.h"

#include <stdlib.h>
#include <string.h>

static const char open_where[] = "store.memory.open";
static const char get_where[] = "store.get";
static const char put_where[] = "store.put";
static const char remove_where[] = "store.remove";
static const char put_measurement_where[] = "store.put_measurement";
static const char add_invocations_where[] = "store.add_invocations";
static const char invocations_where[] = "store.invocations";
static const char clear_invocations_where[] = "store.clear_invocations";
static const char expire_misses_where[] = "store.expire_misses";
static const char put_alias_where[] = "store.put_alias";
static const char get_alias_where[] = "store.get_alias";
static const char put_foreign_where[] = "store.put_foreign";
static const char get_foreign_where[] = "store.get_foreign";
static const char clear_foreigns_where[] = "store.clear_foreigns";
static const char set_aside_where[] = "store.set_aside";
static const char clear_quarantine_where[] = "store.clear_quarantine";

typedef enum table_id {
    DECISIONS,
    MEASUREMENTS,
    FAILURES,
    INVOCATIONS,
    ALIASES,
    FOREIGNS,
    QUARANTINE,
    TABLE_COUNT
} table_id;

typedef struct memory_store {
    hone_store base;
    hone_table tables[TABLE_COUNT];
    hone_table_changes changes;
    bool is_held;  // changes are committed by somebody else
    bool is_begun; // or at the end of a transaction
} memory_store;

// A record of any kind; decisions, measurements, failures and invocations begin with the key that they stand under.
typedef union record {
    hone_store_key key;
    hone_store_decision decision;
    hone_store_measured measured;
    hone_store_invocation invocation;
    hone_store_alias alias;
    hone_store_foreign foreign;
    hone_store_quarantined quarantined;
} record;

static memory_store *memory_of(hone_store *store)
{
    return (memory_store *)store;
}

// Ends what was begun with hone_table_put and hone_table_remove.
static hone_status finish(memory_store *memory, bool ok, const char *where, hone_error *err)
{
    if (ok && !memory->is_held && !memory->is_begun) hone_table_commit(&memory->changes);
    if (ok) return HONE_OK;
    hone_table_rollback(&memory->changes);
    return hone_fail_memory(err, where);
}

static bool put_record(memory_store *memory, table_id id, const void *put)
{
    hone_row row;
    hone_row_of(memory->tables[id].shape, put, &row);
    return hone_table_put(&memory->changes, &memory->tables[id], &row);
}

static bool remove_record(memory_store *memory, table_id id, const void *removed)
{
    hone_row row;
    hone_row_of(memory->tables[id].shape, removed, &row);
    return hone_table_remove(&memory->changes, &memory->tables[id], &row);
}

// The record with the whole key of probe.
static bool find_record(const memory_store *memory, table_id id, const void *probe, record *out)
{
    hone_row row;
    hone_row_of(memory->tables[id].shape, probe, &row);
    const hone_row *found = hone_table_find(&memory->tables[id], &row);
    return found != NULL && hone_row_read(memory->tables[id].shape, found, out, sizeof *out);
}

// The rows under a key's device, algorithm, version and key, which begin decisions, measurements and failures.
static void range_under(const hone_table *table, const hone_store_key *key, size_t *out_begin, size_t *out_end)
{
    enum { KEY_CELLS = 4 };
    record probe;
    hone_row row;
    memset(&probe, 0, sizeof probe); // an initialiser would clear the key's part of the union only
    probe.key = *key;
    hone_row_of(table->shape, &probe, &row);
    hone_table_range(table, &row, KEY_CELLS, out_begin, out_end);
}

// Opening -------------------------------------------------------------------------------------------------------------

static void memory_close(hone_store *store)
{
    memory_store *memory = memory_of(store);
    hone_allocator allocator = store->allocator;
    for (int i = 0; i < TABLE_COUNT; i++)
        hone_table_deinit(&allocator, &memory->tables[i]);
    hone_free(&allocator, memory->changes.list);
    hone_free(&allocator, memory);
}

static hone_status memory_open(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    static const hone_row_shape *const shapes[TABLE_COUNT] = {
        &hone_row_decision, &hone_row_measurement, &hone_row_failure,   &hone_row_invocation,
        &hone_row_alias,    &hone_row_foreign,     &hone_row_quarantine};
    if (location[0] != '\0')
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, open_where, "'memory:%s': write memory: alone, it has no place", location);
    memory_store *memory = hone_alloc(allocator, sizeof *memory);
    if (memory == NULL) return hone_fail_memory(err, open_where);
    memory->base.ops = &hone_memory_store_ops;
    memory->base.allocator = *allocator;
    memory->base.log = *log;
    memory->changes.allocator = *allocator;
    for (int i = 0; i < TABLE_COUNT; i++)
        memory->tables[i].shape = shapes[i];
    *out = &memory->base;
    return HONE_OK;
}

hone_memory_tables hone_memory_hold(hone_store *store)
{
    memory_store *memory = memory_of(store);
    hone_assert(memory->changes.count == 0);
    memory->is_held = true;
    return (hone_memory_tables){memory->tables, TABLE_COUNT, &memory->changes};
}

// Decisions -----------------------------------------------------------------------------------------------------------

static hone_status memory_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    const hone_store_decision probe = {.key = *key, .regime = regime};
    record found;
    if (!find_record(memory_of(store), DECISIONS, &probe, &found) ||
        !hone_spec_agrees(key->spec, found.decision.key.spec))
        return hone_fail(
            err, HONE_NOT_FOUND, get_where, "no decision for %s@v%s %s", key->algorithm, key->version, key->key);
    visit(ctx, &found.decision);
    return HONE_OK;
}

// With a merger, what it makes of the decision and the stored one.
static hone_status put_decision(
    memory_store *memory, const hone_store_decision *decision, size_t index, hone_merger *merger, hone_error *err)
{
    const hone_store_decision *put = decision;
    record found;
    bool there = merger != NULL && find_record(memory, DECISIONS, decision, &found);
    hone_status status = merger == NULL
                             ? HONE_OK
                             : hone_merger_resolve(merger, index, there ? &found.decision : NULL, decision, &put, err);
    if (status != HONE_OK || put == NULL) return status;
    return put_record(memory, DECISIONS, put) ? HONE_OK : HONE_OUT_OF_MEMORY;
}

static hone_status memory_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = put_decision(memory_of(store), &decisions[i], i, merger, err);
    return finish(memory_of(store), status == HONE_OK, put_where, err);
}

// Returns false when there was no memory.
static bool remove_under(memory_store *memory, table_id id, const hone_store_key *key, size_t *removed)
{
    hone_table *table = &memory->tables[id];
    size_t begin, end;
    range_under(table, key, &begin, &end);
    for (size_t i = end; i > begin; i--) {
        record found;
        if (!hone_row_read(table->shape, table->rows[i - 1], &found, sizeof found) ||
            !hone_spec_agrees(key->spec, found.key.spec))
            continue;
        if (!hone_table_remove(&memory->changes, table, table->rows[i - 1])) return false;
        ++*removed;
    }
    return true;
}

static hone_status memory_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    memory_store *memory = memory_of(store);
    size_t removed = 0;
    bool ok = remove_under(memory, DECISIONS, key, &removed) && remove_under(memory, MEASUREMENTS, key, &removed) &&
              remove_under(memory, FAILURES, key, &removed);
    hone_status status = finish(memory, ok, remove_where, err);
    if (status == HONE_OK && removed == 0)
        return hone_fail(
            err, HONE_NOT_FOUND, remove_where, "nothing is stored for %s@v%s %s", key->algorithm, key->version,
            key->key);
    return status;
}

static hone_status memory_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    (void)err;
    const hone_table *table = &memory_of(store)->tables[DECISIONS];
    for (size_t i = 0; i < table->count; i++) {
        record found;
        if (!hone_row_read(table->shape, table->rows[i], &found, sizeof found)) continue;
        if (hone_key_matches(filter, &found.key) && !visit(ctx, &found.decision)) break;
    }
    return HONE_OK;
}

// Measurements --------------------------------------------------------------------------------------------------------

static hone_status memory_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    memory_store *memory = memory_of(store);
    const hone_store_measured measured = {*key, *measurement};
    bool failed = measurement->failure != HONE_FAILURE_NONE;
    bool ok = put_record(memory, failed ? FAILURES : MEASUREMENTS, &measured) &&
              remove_record(memory, failed ? MEASUREMENTS : FAILURES, &measured);
    return finish(memory, ok, put_measurement_where, err);
}

// Returns false when visit ended it.
static bool visit_measured(
    memory_store *memory, table_id id, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx)
{
    const hone_table *table = &memory->tables[id];
    size_t begin = 0, end = table->count;
    if (hone_key_is_whole(filter)) range_under(table, filter, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        record found;
        if (!hone_row_read(table->shape, table->rows[i], &found, sizeof found)) continue;
        if (hone_key_matches(filter, &found.key) && !visit(ctx, &found.measured)) return false;
    }
    return true;
}

static hone_status memory_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    (void)err;
    if (visit_measured(memory_of(store), MEASUREMENTS, filter, visit, ctx))
        visit_measured(memory_of(store), FAILURES, filter, visit, ctx);
    return HONE_OK;
}

static hone_status memory_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    (void)err;
    (void)visit_measured(memory_of(store), FAILURES, filter, visit, ctx);
    return HONE_OK;
}

// Invocations ---------------------------------------------------------------------------------------------------------

static hone_status memory_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    memory_store *memory = memory_of(store);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        record found = {.invocation = invocations[i]};
        if (find_record(memory, INVOCATIONS, &invocations[i], &found))
            hone_invocation_merge(&found.invocation, &invocations[i]);
        ok = put_record(memory, INVOCATIONS, &found.invocation);
    }
    return finish(memory, ok, add_invocations_where, err);
}

static int by_weight(const void *a, const void *b)
{
    hone_store_invocation left, right;
    const hone_row *rows[] = {*(const hone_row *const *)a, *(const hone_row *const *)b};
    hone_row_read(&hone_row_invocation, rows[0], &left, sizeof left);
    hone_row_read(&hone_row_invocation, rows[1], &right, sizeof right);
    if (left.count != right.count) return left.count > right.count ? -1 : 1;
    return hone_row_compare(rows[0], rows[1], hone_row_invocation.key_count);
}

// The rows that a filter which names algorithm, version and key leaves to look at; with any other, all.
static void invocations_under(const hone_table *table, const hone_store_key *filter, size_t *out_begin, size_t *out_end)
{
    enum { NAMED_CELLS = 3 };
    *out_begin = 0;
    *out_end = table->count;
    if (filter == NULL || filter->algorithm == NULL || filter->version == NULL || filter->key == NULL) return;
    record probe;
    hone_row row;
    memset(&probe, 0, sizeof probe);
    probe.key = *filter;
    hone_row_of(table->shape, &probe, &row);
    hone_table_range(table, &row, NAMED_CELLS, out_begin, out_end);
}

static hone_status memory_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    const hone_table *table = &memory_of(store)->tables[INVOCATIONS];
    size_t begin, end;
    invocations_under(table, filter, &begin, &end);
    const size_t count = end - begin;
    if (count == 0) return HONE_OK;
    const hone_row **sorted = hone_alloc_array(&store->allocator, count, sizeof *sorted);
    if (sorted == NULL) return hone_fail_memory(err, invocations_where);
    for (size_t i = 0; i < count; i++)
        sorted[i] = table->rows[begin + i];
    qsort(sorted, count, sizeof *sorted, by_weight);
    for (size_t i = 0; i < count; i++) {
        record found;
        if (!hone_row_read(table->shape, sorted[i], &found, sizeof found)) continue;
        if (hone_key_matches(filter, &found.key) && !visit(ctx, &found.invocation)) break;
    }
    hone_free(&store->allocator, sorted);
    return HONE_OK;
}

static hone_status memory_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    memory_store *memory = memory_of(store);
    hone_table *table = &memory->tables[INVOCATIONS];
    const hone_store_key filter = {.device = device};
    bool ok = true;
    for (size_t i = table->count; ok && i > 0; i--) {
        record found;
        if (hone_row_read(table->shape, table->rows[i - 1], &found, sizeof found) &&
            hone_key_matches(&filter, &found.key))
            ok = hone_table_remove(&memory->changes, table, table->rows[i - 1]);
    }
    return finish(memory, ok, clear_invocations_where, err);
}

static bool read_miss(const hone_table *table, size_t index, hone_store_invocation *out)
{
    if (!hone_row_read(table->shape, table->rows[index], out, sizeof *out) || out->decided == NULL) return false;
    return strcmp(out->decided, "heuristic") == 0 || strcmp(out->decided, "transfer") == 0;
}

static int latest_first(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left > right ? -1 : left < right;
}

// Writes the time at which the first miss too many was made; -1 where there are not so many. False: no memory.
static bool find_oldest_kept(const hone_store *store, const hone_table *table, size_t most, double *out)
{
    hone_store_invocation miss;
    size_t count = 0;
    double *times = hone_alloc_array(&store->allocator, table->count + 1, sizeof *times);
    if (times == NULL) return false;
    for (size_t i = 0; i < table->count; i++)
        if (read_miss(table, i, &miss)) times[count++] = miss.last;
    qsort(times, count, sizeof *times, latest_first);
    *out = count > most ? times[most] : -1;
    hone_free(&store->allocator, times);
    return true;
}

static hone_status memory_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err)
{
    memory_store *memory = memory_of(store);
    hone_table *table = &memory->tables[INVOCATIONS];
    hone_store_invocation miss;
    double too_many;
    bool ok = find_oldest_kept(store, table, most, &too_many);
    for (size_t i = table->count; ok && i > 0; i--) {
        if (!read_miss(table, i - 1, &miss) || (miss.last >= (double)before && miss.last > too_many)) continue;
        ok = hone_table_remove(&memory->changes, table, table->rows[i - 1]);
    }
    return finish(memory, ok, expire_misses_where, err);
}

// Aliases -------------------------------------------------------------------------------------------------------------

static hone_status memory_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    return finish(memory_of(store), put_record(memory_of(store), ALIASES, alias), put_alias_where, err);
}

static hone_status memory_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    const hone_store_alias probe = {.scheme = scheme, .operation = operation, .foreign_key = foreign_key};
    record found;
    if (!find_record(memory_of(store), ALIASES, &probe, &found))
        return hone_fail(err, HONE_NOT_FOUND, get_alias_where, "no alias for %s %s:%s", scheme, operation, foreign_key);
    visit(ctx, &found.alias);
    return HONE_OK;
}

// Whether a scheme passes a filter, whose NULL matches all.
static bool scheme_matches(const char *filter, const char *scheme)
{
    return filter == NULL || strcmp(filter, scheme) == 0;
}

static hone_status memory_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    (void)err;
    const hone_table *table = &memory_of(store)->tables[ALIASES];
    for (size_t i = 0; i < table->count; i++) {
        record found;
        if (!hone_row_read(table->shape, table->rows[i], &found, sizeof found)) continue;
        if (scheme_matches(scheme, found.alias.scheme) && !visit(ctx, &found.alias)) break;
    }
    return HONE_OK;
}

// Foreign configs -----------------------------------------------------------------------------------------------------

static hone_status memory_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = put_record(memory_of(store), FOREIGNS, &foreigns[i]);
    return finish(memory_of(store), ok, put_foreign_where, err);
}

static hone_status memory_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    record found;
    if (!find_record(memory_of(store), FOREIGNS, key, &found))
        return hone_fail(
            err, HONE_NOT_FOUND, get_foreign_where, "no config of %s for %s:%s", key->scheme, key->operation,
            key->foreign_key);
    visit(ctx, &found.foreign);
    return HONE_OK;
}

static hone_status memory_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    (void)err;
    const hone_table *table = &memory_of(store)->tables[FOREIGNS];
    for (size_t i = 0; i < table->count; i++) {
        record found;
        if (!hone_row_read(table->shape, table->rows[i], &found, sizeof found)) continue;
        if (scheme_matches(scheme, found.foreign.scheme) && !visit(ctx, &found.foreign)) break;
    }
    return HONE_OK;
}

static hone_status memory_clear_foreigns(hone_store *store, const char *scheme, hone_error *err)
{
    memory_store *memory = memory_of(store);
    hone_table *table = &memory->tables[FOREIGNS];
    bool ok = true;
    for (size_t i = table->count; ok && i > 0; i--) {
        record found;
        if (hone_row_read(table->shape, table->rows[i - 1], &found, sizeof found) &&
            scheme_matches(scheme, found.foreign.scheme))
            ok = hone_table_remove(&memory->changes, table, table->rows[i - 1]);
    }
    return finish(memory, ok, clear_foreigns_where, err);
}

// Damage --------------------------------------------------------------------------------------------------------------

static hone_status memory_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    memory_store *memory = memory_of(store);
    const hone_store_decision probe = {.key = *key, .regime = regime};
    hone_row row;
    hone_buffer text;
    hone_row_of(&hone_row_decision, &probe, &row);
    const hone_row *found = hone_table_find(&memory->tables[DECISIONS], &row);
    if (found == NULL) return hone_fail(err, HONE_NOT_FOUND, set_aside_where, "no decision for %s", key->key);
    hone_buffer_init(&text, store->allocator);
    const hone_store_quarantined quarantined = hone_quarantine_row(&hone_row_decision, found, reason, &text);
    bool ok = !text.failed && put_record(memory, QUARANTINE, &quarantined) && remove_record(memory, DECISIONS, &probe);
    hone_buffer_deinit(&text);
    return finish(memory, ok, set_aside_where, err);
}

static hone_status memory_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    (void)err;
    const hone_table *table = &memory_of(store)->tables[QUARANTINE];
    for (size_t i = 0; i < table->count; i++) {
        record found;
        if (hone_row_read(table->shape, table->rows[i], &found, sizeof found) && !visit(ctx, &found.quarantined)) break;
    }
    return HONE_OK;
}

static hone_status memory_clear_quarantine(hone_store *store, hone_error *err)
{
    memory_store *memory = memory_of(store);
    hone_table *table = &memory->tables[QUARANTINE];
    bool ok = true;
    for (size_t i = table->count; ok && i > 0; i--)
        ok = hone_table_remove(&memory->changes, table, table->rows[i - 1]);
    return finish(memory, ok, clear_quarantine_where, err);
}

// Memory is not looked at again: what stands in it came through a put.
static hone_status memory_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    (void)err;
    const memory_store *memory = memory_of(store);
    hone_store_health health = {.quarantined = memory->tables[QUARANTINE].count};
    for (int i = 0; i < QUARANTINE; i++)
        health.records += memory->tables[i].count;
    *out = health;
    return HONE_OK;
}

static hone_status memory_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    (void)err;
    const hone_table *tables = memory_of(store)->tables;
    *out = (hone_store_stat){
        .decisions = tables[DECISIONS].count,
        .measurements = tables[MEASUREMENTS].count,
        .failures = tables[FAILURES].count,
        .invocations = tables[INVOCATIONS].count,
        .aliases = tables[ALIASES].count,
        .foreigns = tables[FOREIGNS].count,
        .quarantined = tables[QUARANTINE].count,
        .schema = HONE_STORE_SCHEMA,
    };
    return HONE_OK;
}

// Transactions --------------------------------------------------------------------------------------------------------

static hone_status memory_begin(hone_store *store, hone_error *err)
{
    (void)err;
    hone_assert(!memory_of(store)->is_begun);
    memory_of(store)->is_begun = true;
    return HONE_OK;
}

static hone_status memory_end(hone_store *store, hone_status status, hone_error *err)
{
    (void)err;
    memory_store *memory = memory_of(store);
    hone_assert(memory->is_begun);
    memory->is_begun = false;
    if (status != HONE_OK)
        hone_table_rollback(&memory->changes);
    else if (!memory->is_held)
        hone_table_commit(&memory->changes);
    return status;
}

const hone_store_ops hone_memory_store_ops = {
    .struct_size = sizeof(hone_store_ops),
    .scheme = "memory:",
    .form = "memory:",
    .open = memory_open,
    .close = memory_close,
    .get = memory_get,
    .put_all = memory_put_all,
    .remove = memory_remove,
    .scan = memory_scan,
    .put_measurement = memory_put_measurement,
    .measurements = memory_measurements,
    .failures = memory_failures,
    .add_invocations = memory_add_invocations,
    .invocations = memory_invocations,
    .clear_invocations = memory_clear_invocations,
    .expire_misses = memory_expire_misses,
    .put_alias = memory_put_alias,
    .get_alias = memory_get_alias,
    .aliases = memory_aliases,
    .put_foreigns = memory_put_foreigns,
    .foreigns = memory_foreigns,
    .get_foreign = memory_get_foreign,
    .clear_foreigns = memory_clear_foreigns,
    .set_aside = memory_set_aside,
    .quarantine = memory_quarantine,
    .clear_quarantine = memory_clear_quarantine,
    .verify = memory_verify,
    .stat = memory_stat,
    .begin = memory_begin,
    .end = memory_end,
};
