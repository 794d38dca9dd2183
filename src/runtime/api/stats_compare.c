// Compares the calls that were requested with the stored ones. The keys of all rows, including those of their
// stand-ins, go into a hash table; one scan of the store then marks the keys that it has, and lists those that were not
// requested.
#include "runtime/api/stats.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "runtime/links/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "stats.compare";

// A key under which calls were requested.
typedef struct asked {
    const char *device, *algorithm, *version; // of a row
    char key[HONE_KEY_SIZE];
    bool is_stored;
    size_t next; // index + 1 of the next in its bucket; 0: none
} asked;

// A requested call: the sum of its rows.
typedef struct wanted {
    hone_stats_finding found;               // of its rows that were guesses
    bool is_guess;                          // there are some
    size_t keys[HONE_STAND_INS], key_count; // places in the table
} wanted;

typedef struct comparison {
    hone_runtime *rt;
    asked *keys;
    size_t key_count, key_capacity, *buckets, bucket_count;
    wanted *calls;
    size_t call_count, call_capacity;
    const char **devices; // of the rows, each once
    size_t device_count, device_capacity;
    hone_stats_finding *unasked; // texts are the arena's
    size_t unasked_count, unasked_capacity;
    hone_arena arena;
    bool is_system; // the store that is scanned
    bool failed;    // no memory
} comparison;

// Keys ------------------------------------------------------------------------------------------------------------------

static size_t bucket_of(const comparison *c, const hone_store_key *key)
{
    uint64_t hash = hone_hash64(key->key, strlen(key->key));
    hash = hone_hash64_add(hash, key->algorithm, strlen(key->algorithm));
    hash = hone_hash64_add(hash, key->device, strlen(key->device));
    return (size_t)(hash % c->bucket_count);
}

static asked *find_key(const comparison *c, const hone_store_key *key)
{
    for (size_t at = c->buckets[bucket_of(c, key)]; at != 0; at = c->keys[at - 1].next) {
        asked *row = &c->keys[at - 1];
        if (strcmp(row->key, key->key) == 0 && strcmp(row->algorithm, key->algorithm) == 0 &&
            strcmp(row->version, key->version) == 0 && strcmp(row->device, key->device) == 0)
            return row;
    }
    return NULL;
}

// Returns its index, SIZE_MAX if there is no memory.
static size_t add_key(comparison *c, const hone_store_key *key)
{
    asked *known = find_key(c, key);
    if (known != NULL) return (size_t)(known - c->keys);
    if (!hone_grow(&c->rt->allocator, &c->keys, &c->key_capacity, c->key_count + 1, sizeof c->keys[0])) return SIZE_MAX;
    size_t *bucket = &c->buckets[bucket_of(c, key)];
    asked *row = &c->keys[c->key_count++];
    *row = (asked){.device = key->device, .algorithm = key->algorithm, .version = key->version, .next = *bucket};
    snprintf(row->key, sizeof row->key, "%s", key->key);
    *bucket = c->key_count;
    return c->key_count - 1;
}

// Rows ------------------------------------------------------------------------------------------------------------------

// The call of a row. NULL if its algorithm is not registered or its text is not a valid call: then only its key is
// known.
static hone_call *call_of(hone_runtime *rt, const hone_stats_row *row)
{
    char name[HONE_NAME_SIZE + 20];
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error ignored;
    if (row->call == NULL) return NULL;
    snprintf(name, sizeof name, "%s@v%s", row->key.algorithm, row->key.version);
    if (hone_op_get(rt, name, &op, &ignored) != HONE_OK) return NULL;
    if (hone_call_parse(rt->allocator, op->algorithm->signature, row->call, &call, &ignored) != HONE_OK) return NULL;
    return call;
}

static void add_keys(comparison *c, wanted *call, const hone_stats_row *row)
{
    hone_call *parsed = call_of(c->rt, row);
    hone_stand_ins stand_ins = {.count = 0};
    hone_error ignored;
    size_t place = add_key(c, &row->key);
    c->failed = c->failed || place == SIZE_MAX;
    call->keys[call->key_count++] = place;
    if (parsed != NULL && hone_call_stand_ins(parsed, &stand_ins, &ignored) != HONE_OK) c->failed = true;
    for (size_t i = 0; i < stand_ins.count && !c->failed && call->key_count < HONE_STAND_INS; i++) {
        hone_store_key key = row->key;
        key.key = hone_call_key(stand_ins.calls[i]);
        if (strcmp(key.key, row->key.key) == 0) continue;
        place = add_key(c, &key);
        c->failed = c->failed || place == SIZE_MAX;
        call->keys[call->key_count++] = place;
    }
    hone_stand_ins_deinit(&stand_ins);
    hone_call_release(&parsed);
}

static bool is_usable(const hone_stats_row *row)
{
    const hone_store_key *key = &row->key;
    return key->algorithm != NULL && key->device != NULL && key->version != NULL && key->key != NULL;
}

// Sorted by key, then by their order, the rows of one call are adjacent.
typedef struct sortable {
    const hone_stats_row *row;
    size_t order;
} sortable;

static int compare_keys(const hone_stats_row *a, const hone_stats_row *b)
{
    int by = strcmp(a->key.key, b->key.key);
    if (by == 0) by = strcmp(a->key.algorithm, b->key.algorithm);
    if (by == 0) by = strcmp(a->key.version, b->key.version);
    return by != 0 ? by : strcmp(a->key.device, b->key.device);
}

static int compare_rows(const void *left, const void *right)
{
    const sortable *a = left, *b = right;
    const int by = compare_keys(a->row, b->row);
    return by != 0 ? by : (a->order > b->order) - (a->order < b->order);
}

static void add_device(comparison *c, const char *device)
{
    for (size_t i = 0; i < c->device_count; i++)
        if (strcmp(c->devices[i], device) == 0) return;
    c->failed =
        c->failed ||
        !hone_grow(&c->rt->allocator, &c->devices, &c->device_capacity, c->device_count + 1, sizeof c->devices[0]);
    if (!c->failed) c->devices[c->device_count++] = device;
}

// Whether the answer was not measured. An answer that a user named by its kernel is not a miss.
static bool is_guess(const hone_stats_row *row)
{
    return row->source == HONE_SOURCE_NONE || hone_source_is(row->source, HONE_LINK_GUESSED);
}

static void add_row(comparison *c, const hone_stats_row *row, bool is_another)
{
    if (is_another) {
        if (!hone_grow(&c->rt->allocator, &c->calls, &c->call_capacity, c->call_count + 1, sizeof c->calls[0])) {
            c->failed = true;
            return;
        }
        wanted *call = &c->calls[c->call_count++];
        *call = (wanted){.found = {.key = row->key, .call = row->call}};
        add_device(c, row->key.device);
        add_keys(c, call, row);
    }
    if (!is_guess(row)) return;
    wanted *call = &c->calls[c->call_count - 1];
    call->is_guess = true;
    call->found.calls += row->hits + row->misses;
    call->found.kernel = row->kernel;
    call->found.source = row->source;
}

static void add_rows(comparison *c, const hone_stats_row *rows, size_t count)
{
    sortable *sorted = hone_alloc_array(&c->rt->allocator, count + 1, sizeof sorted[0]);
    size_t used = 0;
    c->bucket_count = 4 * count + 64;
    c->buckets = hone_alloc_array(&c->rt->allocator, c->bucket_count, sizeof c->buckets[0]);
    c->failed = sorted == NULL || c->buckets == NULL;
    for (size_t i = 0; i < count && !c->failed; i++)
        if (is_usable(&rows[i])) sorted[used++] = (sortable){&rows[i], i};
    if (!c->failed) qsort(sorted, used, sizeof sorted[0], compare_rows);
    for (size_t i = 0; i < used && !c->failed; i++)
        add_row(c, sorted[i].row, i == 0 || compare_keys(sorted[i - 1].row, sorted[i].row) != 0);
    hone_free(&c->rt->allocator, sorted);
}

// The store -------------------------------------------------------------------------------------------------------------

static const char *keep(comparison *c, const char *text)
{
    const char *kept = text != NULL ? hone_arena_text(&c->arena, text, strlen(text)) : NULL;
    c->failed = c->failed || (text != NULL && kept == NULL);
    return kept;
}

static bool is_of_rows(const comparison *c, const char *device)
{
    for (size_t i = 0; i < c->device_count; i++)
        if (strcmp(c->devices[i], device) == 0) return true;
    return c->device_count == 0;
}

// The regimes of a key are adjacent.
static bool is_listed(const comparison *c, const hone_store_key *key)
{
    if (c->unasked_count == 0) return false;
    const hone_store_key *last = &c->unasked[c->unasked_count - 1].key;
    return strcmp(last->key, key->key) == 0 && strcmp(last->algorithm, key->algorithm) == 0 &&
           strcmp(last->version, key->version) == 0 && strcmp(last->device, key->device) == 0;
}

static void list_unasked(comparison *c, const hone_store_decision *row)
{
    if (is_listed(c, &row->key) || !is_of_rows(c, row->key.device)) return;
    if (!hone_grow(&c->rt->allocator, &c->unasked, &c->unasked_capacity, c->unasked_count + 1, sizeof c->unasked[0])) {
        c->failed = true;
        return;
    }
    c->unasked[c->unasked_count++] = (hone_stats_finding){
        .is_stored = true,
        .key =
            {keep(c, row->key.device), keep(c, row->key.algorithm), keep(c, row->key.version), keep(c, row->key.key),
             keep(c, row->key.spec)},
        .call = keep(c, row->call),
        .kernel = keep(c, row->kernel),
    };
}

static bool take_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    comparison *c = ctx;
    asked *key = find_key(c, &row->key);
    if (key != NULL)
        key->is_stored = true;
    else if (!c->is_system)
        list_unasked(c, row);
    return !c->failed;
}

static hone_status scan(comparison *c, hone_store *store, bool is_system, hone_error *err)
{
    c->is_system = is_system;
    hone_status status =
        store == NULL ? HONE_OK : hone_store_scan(store, HONE_RECORD_DECISION, NULL, take_decision, c, err);
    return c->failed ? hone_fail_memory(err, where) : status;
}

// Telling ---------------------------------------------------------------------------------------------------------------

static bool is_unstored(const comparison *c, const wanted *call)
{
    if (!call->is_guess) return false;
    for (size_t i = 0; i < call->key_count; i++)
        if (c->keys[call->keys[i]].is_stored) return false;
    return true;
}

static int compare_weights(const void *left, const void *right)
{
    const wanted *a = left, *b = right;
    if (a->found.calls != b->found.calls) return a->found.calls < b->found.calls ? 1 : -1;
    return strcmp(a->found.key.key, b->found.key.key);
}

static void find_nearest(const comparison *c, hone_stats_finding *found, hone_neighbours *nearest)
{
    hone_store *store = hone_runtime_store(c->rt);
    hone_error ignored;
    if (store == NULL || found->key.spec == NULL) return;
    if (hone_nearest_find(store, &found->key, nearest, &ignored) != HONE_OK || nearest->count == 0) return;
    found->nearest = nearest->rows[0].key;
    found->differs = nearest->rows[0].differs;
}

// A stored call from which a guess was made is useful, even if it was not requested.
static void leave_out_neighbours(comparison *c)
{
    size_t looked = 0;
    for (size_t i = 0; i < c->call_count && c->unasked_count > 0 && looked < HONE_STATS_NEAREST; i++) {
        const wanted *call = &c->calls[i];
        hone_neighbours nearest = {.count = 0};
        if (!call->is_guess || call->found.source != HONE_SOURCE_TRANSFER) continue;
        hone_stats_finding found = call->found;
        looked++;
        find_nearest(c, &found, &nearest);
        size_t kept = 0;
        for (size_t j = 0; j < c->unasked_count; j++) {
            bool is_used = false;
            for (size_t k = 0; k < nearest.count; k++)
                is_used = is_used || strcmp(nearest.rows[k].key, c->unasked[j].key.key) == 0;
            if (!is_used) c->unasked[kept++] = c->unasked[j];
        }
        c->unasked_count = kept;
    }
}

typedef bool finding_visit(void *ctx, const hone_stats_finding *finding);

static void tell(comparison *c, finding_visit *visit, void *ctx)
{
    size_t told = 0;
    bool on = true;
    qsort(c->calls, c->call_count, sizeof c->calls[0], compare_weights);
    leave_out_neighbours(c);
    for (size_t i = 0; i < c->call_count && on; i++) {
        hone_neighbours nearest;
        if (!is_unstored(c, &c->calls[i])) continue;
        if (told++ < HONE_STATS_NEAREST) find_nearest(c, &c->calls[i].found, &nearest);
        on = visit(ctx, &c->calls[i].found);
    }
    for (size_t i = 0; i < c->unasked_count && on; i++)
        on = visit(ctx, &c->unasked[i]);
}

static void end(comparison *c)
{
    const hone_allocator *allocator = &c->rt->allocator;
    hone_free(allocator, c->keys);
    hone_free(allocator, c->buckets);
    hone_free(allocator, c->calls);
    hone_free(allocator, c->unasked);
    hone_free(allocator, c->devices);
    hone_arena_destroy(&c->arena);
}

static hone_status stats_compare_known(
    hone_runtime *rt, const hone_stats_row *rows, size_t count, finding_visit *visit, void *ctx, hone_error *err)
{
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and visit must not be NULL");
    if (hone_runtime_store(rt) == NULL && hone_runtime_system_store(rt) == NULL)
        return hone_fail(err, HONE_UNAVAILABLE, where, "%s", hone_runtime_store_reason(rt));
    hone_stats_rows own = {.rows = NULL};
    hone_status status = rows == NULL ? hone_stats_collect(rt, &own, err) : HONE_OK;
    if (status != HONE_OK) return status;
    comparison c = {.rt = rt, .arena = {.allocator = rt->allocator}};
    if (rows == NULL)
        add_rows(&c, own.rows, own.count);
    else
        add_rows(&c, rows, count);
    status = c.failed ? hone_fail_memory(err, where) : scan(&c, hone_runtime_store(rt), false, err);
    if (status == HONE_OK) status = scan(&c, hone_runtime_system_store(rt), true, err);
    if (status == HONE_OK) tell(&c, visit, ctx);
    end(&c);
    hone_free(&rt->allocator, own.rows);
    return status;
}

hone_status hone_stats_compare_sized(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    size_t size,
    finding_visit *visit,
    void *ctx,
    hone_error *err)
{
    hone_structs taken;
    hone_status status = hone_structs_take(&taken, rows, count, size, sizeof *rows, "hone_stats_row", where, err);
    if (status == HONE_OK) status = stats_compare_known(rt, taken.items, count, visit, ctx, err);
    hone_structs_drop(&taken);
    return status;
}
