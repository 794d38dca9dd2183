// Keys are compared field by field: a joined string would be ambiguous, since fingerprints hold any text.
#include "config/decisions.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"

#include <string.h>

static const char where[] = "cache.put";

void hone_decisions_init(hone_decisions *table, hone_allocator allocator)
{
    memset(table, 0, sizeof *table);
    table->allocator = allocator;
}

static void free_row(const hone_allocator *allocator, hone_decision_row *row)
{
    if (row == NULL) return;
    hone_free(allocator, row->device);
    hone_free(allocator, row->spec);
    hone_free(allocator, row);
}

void hone_decisions_clear(hone_decisions *table)
{
    for (size_t i = 0; i < table->count; i++)
        free_row(&table->allocator, table->rows[i]);
    table->count = 0;
    if (table->slots != NULL) memset(table->slots, 0, table->slot_count * sizeof *table->slots);
}

void hone_decisions_deinit(hone_decisions *table)
{
    hone_decisions_clear(table);
    hone_free(&table->allocator, table->rows);
    hone_free(&table->allocator, table->slots);
    hone_decisions_init(table, table->allocator);
}

// The device is left out of the hash, so that rows for every device share the chain of those for one.
static size_t first_slot(const hone_decisions *table, const char *algorithm, const char *version, const char *key)
{
    uint64_t hash = hone_hash64(algorithm, strlen(algorithm));
    hash ^= hone_hash64(version, strlen(version)) * 3;
    hash ^= hone_hash64(key, strlen(key)) * 5;
    return (size_t)hash & (table->slot_count - 1);
}

static bool same_call(const hone_decision *row, const char *algorithm, const char *version, const char *key)
{
    return strcmp(row->key, key) == 0 && strcmp(row->algorithm, algorithm) == 0 && strcmp(row->version, version) == 0;
}

static hone_decision_row *find_row(
    const hone_decisions *table, const char *device, const char *algorithm, const char *version, const char *key)
{
    if (table->slot_count == 0) return NULL;
    hone_assert(table->slot_count > table->count);
    size_t slot = first_slot(table, algorithm, version, key);
    for (; table->slots[slot] != 0; slot = (slot + 1) & (table->slot_count - 1)) {
        hone_decision_row *row = table->rows[table->slots[slot] - 1];
        if (same_call(&row->decision, algorithm, version, key) && strcmp(row->device, device) == 0) return row;
    }
    return NULL;
}

static void link_row(hone_decisions *table, size_t index)
{
    hone_assert(table->slot_count > index && (table->slot_count & (table->slot_count - 1)) == 0);
    const hone_decision *decision = &table->rows[index]->decision;
    size_t slot = first_slot(table, decision->algorithm, decision->version, decision->key);
    while (table->slots[slot] != 0)
        slot = (slot + 1) & (table->slot_count - 1);
    table->slots[slot] = (uint32_t)index + 1;
}

static bool make_room(hone_decisions *table)
{
    if (!hone_grow(&table->allocator, &table->rows, &table->capacity, table->count + 1, sizeof *table->rows))
        return false;
    if (table->slot_count >= 2 * (table->count + 1)) return true;
    size_t slot_count = table->slot_count == 0 ? 16 : table->slot_count * 2;
    uint32_t *slots = hone_alloc_array(&table->allocator, slot_count, sizeof *slots);
    if (slots == NULL) return false;
    hone_free(&table->allocator, table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    for (size_t i = 0; i < table->count; i++)
        link_row(table, i);
    return true;
}

static hone_decision_row *make_row(
    const hone_allocator *allocator, const char *device, const char *spec, const hone_decision *decision)
{
    hone_decision_row *row = hone_alloc(allocator, sizeof *row);
    if (row == NULL) return NULL;
    row->device = hone_copy_text(allocator, device, strlen(device));
    row->spec = hone_copy_text(allocator, spec, strlen(spec));
    row->decision = *decision;
    if (row->device != NULL && row->spec != NULL) return row;
    free_row(allocator, row);
    return NULL;
}

hone_status hone_decisions_put(
    hone_decisions *table, const char *device, const char *spec, const hone_decision *decision, hone_error *err)
{
    device = device == NULL ? "" : device;
    spec = spec == NULL ? "" : spec;
    hone_decision_row *row = find_row(table, device, decision->algorithm, decision->version, decision->key);
    if (row != NULL) {
        char *copy = hone_copy_text(&table->allocator, spec, strlen(spec));
        if (copy == NULL) return hone_fail_memory(err, where);
        hone_free(&table->allocator, row->spec);
        row->spec = copy;
        row->decision = *decision;
        row->as_of = 0;
        return HONE_OK;
    }
    if (!make_room(table)) return hone_fail_memory(err, where);
    row = make_row(&table->allocator, device, spec, decision);
    if (row == NULL) return hone_fail_memory(err, where);
    table->rows[table->count] = row;
    link_row(table, table->count);
    table->count++;
    return HONE_OK;
}

void hone_decisions_note_stored(
    hone_decisions *table, const char *device, const hone_decision *decision, uint64_t as_of)
{
    hone_decision_row *row = find_row(table, device, decision->algorithm, decision->version, decision->key);
    if (row != NULL) row->as_of = as_of;
}

static bool spec_agrees(const hone_decision_row *row, const char *spec)
{
    return spec == NULL || spec[0] == '\0' || row->spec[0] == '\0' || strcmp(row->spec, spec) == 0;
}

const hone_decision_row *hone_decisions_get(
    const hone_decisions *table,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key,
    const char *spec)
{
    const hone_decision_row *row = find_row(table, device, algorithm, version, key);
    if (row != NULL && spec_agrees(row, spec)) return row;
    row = find_row(table, "", algorithm, version, key);
    return row != NULL && spec_agrees(row, spec) ? row : NULL;
}
