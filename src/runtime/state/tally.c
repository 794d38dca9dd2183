#include "runtime/state/tally.h"

#include "base/assert.h"
#include "base/hash.h"
#include "registry/names.h"
#include "runtime/state/plan_table.h"

#include <stdio.h>
#include <string.h>

enum { BUCKETS = 4096 };

void hone_tally_init(hone_tally *tally, hone_allocator allocator)
{
    memset(tally, 0, sizeof *tally);
    hone_mutex_init(&tally->mutex);
    tally->allocator = allocator;
    tally->last = &tally->first;
}

static void free_row(hone_tally *tally, hone_tally_row *row)
{
    if (row == NULL) return;
    hone_call_release(&row->call);
    hone_free(&tally->allocator, row->config);
    hone_free(&tally->allocator, row);
}

void hone_tally_deinit(hone_tally *tally)
{
    while (tally->first != NULL) {
        hone_tally_row *row = tally->first;
        tally->first = row->next;
        hone_assert(row->entries == NULL);
        free_row(tally, row);
    }
    hone_free(&tally->allocator, tally->buckets);
    hone_mutex_deinit(&tally->mutex);
}

// Rows -----------------------------------------------------------------------------------------------------------------

static const char *kernel_of(const hone_tally_choice *choice)
{
    return choice->kernel != NULL ? choice->kernel->kernel.name : "";
}

static const char *platform_of(const hone_tally_choice *choice)
{
    return choice->kernel != NULL ? hone_platform_name(choice->kernel->kernel.platform) : "";
}

static uint64_t hash_of(const hone_tally_choice *choice)
{
    const char *key = hone_call_key(choice->call), *kernel = kernel_of(choice);
    uint64_t hash = hone_hash64(key, strlen(key));
    hash = hone_hash64_add(hash, kernel, strlen(kernel));
    return hone_hash64_add(hash, choice->config, strlen(choice->config));
}

static bool is_of(const hone_tally_row *row, uint64_t hash, const hone_tally_choice *choice)
{
    return row->hash == hash && row->op == choice->op && row->device == choice->device &&
           row->source == choice->source && strcmp(row->kernel, kernel_of(choice)) == 0 &&
           strcmp(row->platform, platform_of(choice)) == 0 && strcmp(row->config, choice->config) == 0 &&
           strcmp(hone_call_spec(row->call), hone_call_spec(choice->call)) == 0;
}

static hone_tally_row *append(hone_tally *tally, hone_tally_row *row)
{
    *tally->last = row;
    tally->last = &row->next;
    return row;
}

static hone_tally_row *make_others(hone_tally *tally)
{
    if (tally->others != NULL) return tally->others;
    hone_tally_row *row = hone_alloc(&tally->allocator, sizeof *row);
    if (row == NULL) return NULL;
    row->platform = "";
    tally->others = append(tally, row);
    return row;
}

static hone_tally_row *make_row(hone_tally *tally, uint64_t hash, const hone_tally_choice *choice)
{
    hone_tally_row *row = hone_alloc(&tally->allocator, sizeof *row);
    if (row == NULL) return NULL;
    row->config = hone_copy_text(&tally->allocator, choice->config, strlen(choice->config));
    if (row->config == NULL) {
        hone_free(&tally->allocator, row);
        return NULL;
    }
    row->hash = hash;
    row->call = hone_call_retain(choice->call);
    row->op = choice->op;
    row->device = choice->device;
    row->source = choice->source;
    snprintf(row->kernel, sizeof row->kernel, "%s", kernel_of(choice));
    row->platform = platform_of(choice);
    row->chained = tally->buckets[hash % BUCKETS];
    tally->buckets[hash % BUCKETS] = row;
    tally->count++;
    return append(tally, row);
}

static hone_tally_row *find_or_make(hone_tally *tally, const hone_tally_choice *choice)
{
    if (tally->buckets == NULL) tally->buckets = hone_alloc_array(&tally->allocator, BUCKETS, sizeof tally->buckets[0]);
    if (tally->buckets == NULL) return NULL;
    const uint64_t hash = hash_of(choice);
    for (hone_tally_row *row = tally->buckets[hash % BUCKETS]; row != NULL; row = row->chained)
        if (is_of(row, hash, choice)) return row;
    return tally->count < HONE_TALLY_ROWS ? make_row(tally, hash, choice) : make_others(tally);
}

// Counting -------------------------------------------------------------------------------------------------------------

static void join(hone_tally_row *row, hone_plan_entry *entry)
{
    hone_assert(entry->row == NULL);
    entry->row = row;
    entry->row_next = row->entries;
    entry->row_link = &row->entries;
    if (row->entries != NULL) row->entries->row_link = &entry->row_next;
    row->entries = entry;
}

void hone_tally_note(hone_tally *tally, const hone_tally_choice *choice, uint64_t nanoseconds, hone_plan_entry *entry)
{
    hone_mutex_lock(&tally->mutex);
    hone_tally_row *row = find_or_make(tally, choice);
    if (row != NULL) {
        row->misses++;
        row->decided_ns += nanoseconds;
        if (entry != NULL) join(row, entry);
    }
    hone_mutex_unlock(&tally->mutex);
}

void hone_tally_leave(hone_tally *tally, hone_plan_entry *entry)
{
    if (entry->row == NULL) return;
    hone_mutex_lock(&tally->mutex);
    entry->row->hits += hone_plan_entry_runs(entry);
    *entry->row_link = entry->row_next;
    if (entry->row_next != NULL) entry->row_next->row_link = entry->row_link;
    entry->row = NULL;
    hone_mutex_unlock(&tally->mutex);
}

uint64_t hone_tally_hits(const hone_tally *tally, const hone_tally_row *row)
{
    uint64_t hits = row->hits;
    hone_assert(hone_mutex_is_mine((hone_mutex *)(uintptr_t)&tally->mutex));
    for (const hone_plan_entry *entry = row->entries; entry != NULL; entry = entry->row_next)
        hits += hone_plan_entry_runs(entry);
    return hits;
}

void hone_tally_in_child(hone_tally *tally)
{
    for (hone_tally_row *row = tally->first; row != NULL; row = row->next)
        row->hits = row->misses = row->decided_ns = 0;
}
