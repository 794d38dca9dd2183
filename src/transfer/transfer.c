// The nearest decisions of a store, by one pass over what the index holds of an algorithm and device, with the nearest
// few kept in order. What the store says is read under the mutex; kernels and spaces are asked without it. Constants
// were chosen by hand; docs/benchmarks.md ("Transfer") has how good answers by them are.
#include "transfer/transfer.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/mutex.h"
#include "transfer/index.h"

#include <math.h>
#include <string.h>

enum { LOOKED_AT = HONE_TRANSFER_NEIGHBOURS * 3 / 2 }; // some have no config that may run the call

static const char where[] = "transfer";
static const double version_distance = 1;
// A config that is not among a neighbour's best is slower than the last of them, by so much as far as is known.
static const double unknown_factor = 1.35;

struct hone_transfer {
    hone_allocator allocator;
    size_t most;
    hone_mutex mutex;
    hone_transfer_table *tables; // one an algorithm and device
};

hone_status hone_transfer_create(const hone_allocator *allocator, size_t most, hone_transfer **out, hone_error *err)
{
    *out = hone_alloc(allocator, sizeof **out);
    if (*out == NULL) return hone_fail_memory(err, where);
    (*out)->allocator = *allocator;
    (*out)->most = most;
    hone_mutex_init(&(*out)->mutex);
    return HONE_OK;
}

void hone_transfer_destroy(hone_transfer **transfer)
{
    hone_transfer *gone = *transfer;
    if (gone == NULL) return;
    *transfer = NULL;
    hone_allocator allocator = gone->allocator;
    while (gone->tables != NULL) {
        hone_transfer_table *table = gone->tables;
        gone->tables = table->next;
        hone_transfer_table_destroy(&allocator, table);
    }
    hone_mutex_deinit(&gone->mutex);
    hone_free(&allocator, gone);
}

void hone_transfer_answer_deinit(hone_transfer_answer *answer)
{
    hone_arena_destroy(&answer->arena);
    answer->neighbour_count = answer->proposal_count = 0;
}

static hone_transfer_table *new_table(const hone_transfer *transfer, const hone_store_key *key)
{
    const hone_allocator *allocator = &transfer->allocator;
    hone_transfer_table *table = hone_alloc(allocator, sizeof *table);
    if (table == NULL) return NULL;
    table->arena.allocator = *allocator;
    table->most = transfer->most;
    table->algorithm = hone_copy_text(allocator, key->algorithm, strlen(key->algorithm));
    table->device = hone_copy_text(allocator, key->device, strlen(key->device));
    if (table->algorithm != NULL && table->device != NULL) return table;
    hone_transfer_table_destroy(allocator, table);
    return NULL;
}

static hone_transfer_table *table_of(hone_transfer *transfer, const hone_store_key *key)
{
    for (hone_transfer_table *table = transfer->tables; table != NULL; table = table->next)
        if (strcmp(table->algorithm, key->algorithm) == 0 && strcmp(table->device, key->device) == 0) return table;
    hone_transfer_table *table = new_table(transfer, key);
    if (table == NULL) return NULL;
    table->next = transfer->tables;
    transfer->tables = table;
    return table;
}

// The nearest ---------------------------------------------------------------------------------------------------------

typedef struct near {
    hone_transfer_entry *entry;
    double distance;
} near;

typedef struct nearest {
    near rows[LOOKED_AT];
    size_t count;
} nearest;

static bool is_same_call(const hone_transfer_entry *entry, const hone_store_key *key)
{
    return strcmp(entry->key, key->key) == 0 && strcmp(entry->version, key->version) == 0 &&
           strcmp(entry->device, key->device) == 0;
}

// The user's come before the system's, and of one call the first counts. A row may have been read twice where others
// put between two readings.
static bool is_there(const nearest *list, const near *row)
{
    const hone_store_key key = {.device = row->entry->device, .version = row->entry->version, .key = row->entry->key};
    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].distance == row->distance && is_same_call(list->rows[i].entry, &key)) return true;
    return false;
}

static void insert(nearest *list, const near *row)
{
    size_t at = list->count;
    if (at == LOOKED_AT && list->rows[at - 1].distance <= row->distance) return;
    if (is_there(list, row)) return;
    if (at == LOOKED_AT)
        at--;
    else
        list->count++;
    for (; at > 0 && list->rows[at - 1].distance > row->distance; at--)
        list->rows[at] = list->rows[at - 1];
    list->rows[at] = *row;
}

static void find_nearest(
    hone_transfer_table *table, const hone_transfer_question *question, const hone_traits *traits, nearest *out)
{
    const hone_store_key *key = &question->key;
    // Rows of one device follow each other.
    const char *device = NULL;
    double penalty = 0;
    for (size_t i = 0; i < table->count; i++) {
        hone_transfer_entry *entry = &table->entries[i];
        if (entry->regime != question->regime || is_same_call(entry, key)) continue;
        if (entry->device != device) penalty = hone_device_distance(device = entry->device, key->device);
        double most = out->count == LOOKED_AT ? out->rows[LOOKED_AT - 1].distance : INFINITY;
        if (penalty >= most) continue;
        near row = {entry, penalty + hone_traits_distance(traits, &entry->traits)};
        if (strcmp(entry->version, key->version) != 0) row.distance += version_distance;
        if (isfinite(row.distance)) insert(out, &row);
    }
}

// Neighbours ----------------------------------------------------------------------------------------------------------

typedef struct search {
    hone_transfer_table *table;
    hone_store *stores[2]; // the user's, the system's
    const hone_transfer_question *question;
    hone_transfer_neighbour found[LOOKED_AT + 1];
    size_t count;
    hone_arena *arena; // of the answer
    bool failed;
} search;

static const char *copy(search *s, const char *text)
{
    if (text == NULL) return NULL;
    const char *kept = hone_arena_text(s->arena, text, strlen(text));
    s->failed = s->failed || kept == NULL;
    return kept;
}

static void take(search *s, const hone_transfer_entry *entry, double distance)
{
    hone_assert(s->count < sizeof s->found / sizeof s->found[0]);
    hone_transfer_neighbour *out = &s->found[s->count];
    *out = (hone_transfer_neighbour){
        .device = copy(s, entry->device),
        .version = copy(s, entry->version),
        .key = copy(s, entry->key),
        .call = copy(s, entry->call),
        .distance = distance,
        .count = entry->choice_count,
    };
    for (size_t i = 0; i < entry->choice_count; i++) {
        const hone_transfer_choice *choice = &entry->choices[i];
        out->choices[i] = (hone_transfer_choice){
            copy(s, choice->kernel), copy(s, choice->config), copy(s, choice->revision), choice->relative};
        out->unknown_relative = unknown_factor * choice->relative;
    }
    s->count += out->count > 0;
}

// An interrupted contest, or one whose decision can no longer be served, leaves measurements of this very call.
static hone_status take_itself(search *s, hone_error *err)
{
    const hone_store_key *key = &s->question->key;
    for (int i = 0; i < 2 && s->count == 0 && !s->question->others_only; i++) {
        hone_transfer_entry self = {.device = key->device, .version = key->version, .key = key->key};
        if (s->stores[i] == NULL) continue;
        hone_status status = hone_transfer_load_choices(
            s->arena, s->stores[i], key, s->question->regime, NULL, &self.choices, &self.choice_count, err);
        if (status != HONE_OK) return status;
        take(s, &self, 0);
    }
    return HONE_OK;
}

static hone_status load(search *s, hone_transfer_entry *entry, hone_error *err)
{
    const hone_store_key key = {entry->device, s->table->algorithm, entry->version, entry->key, NULL};
    if (entry->choices != NULL) return HONE_OK;
    return hone_transfer_load_choices(
        &s->table->arena, s->stores[entry->is_system], &key, entry->regime, entry, &entry->choices,
        &entry->choice_count, err);
}

static hone_status look(search *s, const hone_traits *traits, hone_error *err)
{
    nearest list = {.count = 0};
    find_nearest(s->table, s->question, traits, &list);
    hone_status status = take_itself(s, err);
    for (size_t i = 0; i < list.count && status == HONE_OK; i++) {
        status = load(s, list.rows[i].entry, err);
        if (status == HONE_OK) take(s, list.rows[i].entry, list.rows[i].distance);
    }
    return status == HONE_OK && s->failed ? hone_fail_memory(err, where) : status;
}

// Leaves out what cannot run the call; the kernel and the space are asked, so no lock is held.
static void admit(const hone_transfer_question *question, hone_transfer_neighbour *neighbour)
{
    size_t kept = 0;
    for (size_t i = 0; i < neighbour->count; i++) {
        const hone_transfer_choice *choice = &neighbour->choices[i];
        bool may = question->admits == NULL ||
                   question->admits(question->admits_ctx, choice->kernel, choice->config, choice->revision);
        if (may) neighbour->choices[kept++] = *choice;
    }
    neighbour->count = kept;
}

static void admit_all(search *s, hone_transfer_answer *out)
{
    for (size_t i = 0; i < s->count && out->neighbour_count < HONE_TRANSFER_NEIGHBOURS; i++) {
        admit(s->question, &s->found[i]);
        if (s->found[i].count > 0) out->neighbours[out->neighbour_count++] = s->found[i];
    }
}

static hone_status find(
    hone_transfer *transfer, search *s, const hone_traits *traits, hone_error *out_failure, hone_error *err)
{
    hone_status status = HONE_OUT_OF_MEMORY;
    hone_mutex_lock(&transfer->mutex);
    s->table = table_of(transfer, &s->question->key);
    if (s->table != NULL)
        status = hone_transfer_table_refresh(s->table, s->stores, s->question->stamp, out_failure, err);
    else
        hone_fail_memory(err, where);
    if (status == HONE_OK) status = look(s, traits, err);
    hone_mutex_unlock(&transfer->mutex);
    return status;
}

hone_status hone_transfer_find(
    hone_transfer *transfer,
    hone_store *user,
    hone_store *system,
    const hone_transfer_question *question,
    hone_transfer_answer *out,
    hone_error *err)
{
    memset(out, 0, sizeof *out);
    out->arena.allocator = transfer->allocator;
    out->regime = question->regime;
    hone_traits traits;
    hone_error failure = {.status = HONE_OK};
    search *s = hone_alloc(&transfer->allocator, sizeof *s);
    if (s == NULL) return hone_fail_memory(err, where);
    *s = (search){.stores = {user, system}, .question = question, .arena = &out->arena};
    hone_status status = hone_traits_read(&out->arena, question->key.spec, &traits, err);
    if (status == HONE_OK) status = find(transfer, s, &traits, &failure, err);
    if (status == HONE_OK) admit_all(s, out);
    if (status == HONE_OK) status = hone_transfer_rank(out, err);
    if (status == HONE_OK && out->neighbour_count == 0 && failure.status != HONE_OK) {
        status = failure.status;
        if (err != NULL) *err = failure;
    }
    hone_free(&transfer->allocator, s);
    if (status != HONE_OK) hone_transfer_answer_deinit(out);
    return status;
}
