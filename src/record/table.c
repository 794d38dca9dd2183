// The table of invocations: entries in one array, found through open addressing.
#include "record/table.h"

#include "base/assert.h"
#include "base/hash.h"
#include "store/common/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINIMUM_SLOTS = 64, DECIDED_SIZE = 16 };

// The texts of the descriptor follow the struct, in one block. Who answered changes, and so has room of its own.
struct hone_record_entry {
    uint64_t hash;
    hone_store_invocation invocation;
    char kernel[HONE_NAME_SIZE];
    char decided[DECIDED_SIZE];
};

static const char *text_or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

static uint64_t hash_of(const hone_store_key *key)
{
    const char *texts[] = {key->device, key->algorithm, key->version, key->key};
    uint64_t words[4];
    for (size_t i = 0; i < 4; i++)
        words[i] = hone_hash64(texts[i], strlen(texts[i]));
    return hone_hash64(words, sizeof words);
}

static bool same_key(const hone_store_key *a, const hone_store_key *b)
{
    return strcmp(a->key, b->key) == 0 && strcmp(a->algorithm, b->algorithm) == 0 &&
           strcmp(a->version, b->version) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(text_or_empty(a->spec), text_or_empty(b->spec)) == 0;
}

void hone_record_table_init(hone_record_table *table, hone_allocator allocator)
{
    *table = (hone_record_table){.allocator = allocator};
}

void hone_record_table_deinit(hone_record_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        hone_free(&table->allocator, table->entries[i]);
    hone_free(&table->allocator, table->entries);
    hone_free(&table->allocator, table->slots);
    hone_record_table_init(table, table->allocator);
}

// Slots ---------------------------------------------------------------------------------------------------------------

// Open addressing with linear probing (Knuth, The Art of Computer Programming, vol. 3, 6.4, algorithm L). At most half
// of the slots are taken: a search looks at 1.5 slots on average for a key that is there, and at 2.5 for one that is
// not. Entries are never removed one by one, so that there are no marks of removed ones. The slot that holds the key,
// or the free one where it would stand. There is always a free one.
static size_t slot_of(const hone_record_table *table, uint64_t hash, const hone_store_key *key)
{
    hone_assert(table->slot_count > table->count && (table->slot_count & (table->slot_count - 1)) == 0);
    size_t mask = table->slot_count - 1;
    size_t slot = (size_t)hash & mask;
    for (; table->slots[slot] != 0; slot = (slot + 1) & mask) {
        const hone_record_entry *entry = table->entries[table->slots[slot] - 1];
        if (entry->hash == hash && same_key(&entry->invocation.key, key)) break;
    }
    return slot;
}

static hone_record_entry *find(const hone_record_table *table, uint64_t hash, const hone_store_key *key)
{
    if (table->slot_count == 0) return NULL;
    uint32_t index = table->slots[slot_of(table, hash, key)];
    return index == 0 ? NULL : table->entries[index - 1];
}

static void fill_slots(hone_record_table *table)
{
    memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++) {
        const hone_record_entry *entry = table->entries[i];
        table->slots[slot_of(table, entry->hash, &entry->invocation.key)] = (uint32_t)(i + 1);
    }
}

// Keeps the table at most half full.
static bool reserve_slots(hone_record_table *table, size_t count)
{
    if (count > UINT32_MAX / 2) return false;
    if (count * 2 <= table->slot_count) return true;
    size_t slot_count = table->slot_count == 0 ? MINIMUM_SLOTS : table->slot_count * 2;
    uint32_t *slots = hone_alloc_array(&table->allocator, slot_count, sizeof *slots);
    if (slots == NULL) return false;
    hone_free(&table->allocator, table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    fill_slots(table);
    return true;
}

// Entries -------------------------------------------------------------------------------------------------------------

// Copies text to *end and moves it behind; NULL stays NULL.
static const char *pack(char **end, const char *text)
{
    if (text == NULL) return NULL;
    size_t size = strlen(text) + 1;
    char *copy = *end;
    memcpy(copy, text, size);
    *end += size;
    return copy;
}

static void set_answer(hone_record_entry *entry, const char *kernel, const char *decided)
{
    if (kernel != NULL) {
        snprintf(entry->kernel, sizeof entry->kernel, "%s", kernel);
        entry->invocation.kernel = entry->kernel;
    }
    if (decided != NULL) {
        snprintf(entry->decided, sizeof entry->decided, "%s", decided);
        entry->invocation.decided = entry->decided;
    }
}

static hone_record_entry *create_entry(
    const hone_allocator *allocator, uint64_t hash, const hone_store_invocation *invocation)
{
    const hone_store_key *key = &invocation->key;
    const char *texts[] = {key->device, key->algorithm, key->version, key->key, key->spec, invocation->call};
    size_t size = sizeof(hone_record_entry);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] != NULL) size += strlen(texts[i]) + 1;
    hone_record_entry *entry = hone_alloc(allocator, size);
    if (entry == NULL) return NULL;
    char *end = (char *)(entry + 1);
    entry->hash = hash;
    entry->invocation.key.device = pack(&end, key->device);
    entry->invocation.key.algorithm = pack(&end, key->algorithm);
    entry->invocation.key.version = pack(&end, key->version);
    entry->invocation.key.key = pack(&end, key->key);
    entry->invocation.key.spec = pack(&end, key->spec);
    entry->invocation.call = pack(&end, invocation->call);
    entry->invocation.count = invocation->count;
    entry->invocation.first = invocation->first;
    entry->invocation.last = invocation->last;
    set_answer(entry, invocation->kernel, invocation->decided);
    return entry;
}

// The texts of the descriptor stay the entry's own; only counts, times and who answered change.
static void merge(hone_record_entry *entry, const hone_store_invocation *added)
{
    hone_store_invocation merged = entry->invocation;
    hone_invocation_merge(&merged, added);
    entry->invocation.count = merged.count;
    entry->invocation.first = merged.first;
    entry->invocation.last = merged.last;
    if (merged.kernel == added->kernel) set_answer(entry, added->kernel, NULL);
    if (merged.decided == added->decided) set_answer(entry, NULL, added->decided);
}

bool hone_record_table_has(const hone_record_table *table, const hone_store_invocation *invocation)
{
    return find(table, hash_of(&invocation->key), &invocation->key) != NULL;
}

bool hone_record_table_add(hone_record_table *table, const hone_store_invocation *invocation)
{
    uint64_t hash = hash_of(&invocation->key);
    hone_record_entry *entry = find(table, hash, &invocation->key);
    if (entry != NULL) {
        merge(entry, invocation);
        return true;
    }
    if (!reserve_slots(table, table->count + 1) ||
        !hone_grow(&table->allocator, &table->entries, &table->capacity, table->count + 1, sizeof *table->entries))
        return false;
    entry = create_entry(&table->allocator, hash, invocation);
    if (entry == NULL) return false;
    table->slots[slot_of(table, hash, &invocation->key)] = (uint32_t)(table->count + 1);
    table->entries[table->count++] = entry;
    return true;
}

const hone_store_invocation *hone_record_table_at(const hone_record_table *table, size_t index)
{
    hone_assert(index < table->count);
    return &table->entries[index]->invocation;
}

void hone_record_table_clear(hone_record_table *table, const char *device)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        hone_record_entry *entry = table->entries[i];
        if (device != NULL && strcmp(entry->invocation.key.device, device) != 0)
            table->entries[kept++] = entry;
        else
            hone_free(&table->allocator, entry);
    }
    table->count = kept;
    if (table->slot_count > 0) fill_slots(table);
}

// Equal weights stand in the order of the store's scan, so that two runs list the same.
static int by_weight(const void *a, const void *b)
{
    const hone_store_invocation *left = &(*(hone_record_entry *const *)a)->invocation;
    const hone_store_invocation *right = &(*(hone_record_entry *const *)b)->invocation;
    if (left->count != right->count) return left->count > right->count ? -1 : 1;
    const char *const texts[][2] = {
        {left->key.algorithm, right->key.algorithm},
        {left->key.version, right->key.version},
        {left->key.key, right->key.key},
        {left->key.device, right->key.device},
        {text_or_empty(left->key.spec), text_or_empty(right->key.spec)},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int order = strcmp(texts[i][0], texts[i][1]);
        if (order != 0) return order;
    }
    return 0;
}

void hone_record_table_sort(hone_record_table *table)
{
    if (table->count > 1) qsort(table->entries, table->count, sizeof *table->entries, by_weight);
}
