#include "config/own_values.h"

#include "base/assert.h"
#include "base/hash.h"

#include <string.h>

static void free_row(const hone_allocator *allocator, hone_own_row *row)
{
    hone_free(allocator, row->device);
    hone_free(allocator, row->operation);
    hone_free(allocator, row->key);
    hone_free(allocator, row->json);
}

void hone_own_values_clear(hone_own_values *values)
{
    for (size_t i = 0; i < values->count; i++)
        free_row(&values->allocator, &values->rows[i]);
    values->count = 0;
    if (values->slots != NULL) memset(values->slots, 0, values->slot_count * sizeof *values->slots);
}

void hone_own_values_deinit(hone_own_values *values)
{
    hone_own_values_clear(values);
    hone_free(&values->allocator, values->rows);
    hone_free(&values->allocator, values->slots);
}

static uint64_t hash_of(const hone_own_value *value)
{
    uint64_t hash = hone_hash64(value->device, strlen(value->device));
    hash = hone_hash64_add(hash, value->operation, strlen(value->operation));
    return hone_hash64_add(hash, value->key, strlen(value->key));
}

static bool is_row(const hone_own_row *row, uint64_t hash, const hone_own_value *value)
{
    return row->hash == hash && strcmp(row->key, value->key) == 0 && strcmp(row->operation, value->operation) == 0 &&
           strcmp(row->device, value->device) == 0;
}

static hone_own_row *find(const hone_own_values *values, uint64_t hash, const hone_own_value *value)
{
    if (values->slot_count == 0) return NULL;
    hone_assert(values->slot_count > values->count);
    size_t slot = (size_t)hash & (values->slot_count - 1);
    for (; values->slots[slot] != 0; slot = (slot + 1) & (values->slot_count - 1))
        if (is_row(&values->rows[values->slots[slot] - 1], hash, value)) return &values->rows[values->slots[slot] - 1];
    return NULL;
}

const hone_own_row *hone_own_values_get(const hone_own_values *values, const hone_own_value *value)
{
    return find(values, hash_of(value), value);
}

static void link_row(hone_own_values *values, size_t index)
{
    size_t slot = (size_t)values->rows[index].hash & (values->slot_count - 1);
    while (values->slots[slot] != 0)
        slot = (slot + 1) & (values->slot_count - 1);
    values->slots[slot] = (uint32_t)index + 1;
}

static bool make_room(hone_own_values *values)
{
    if (values->count >= UINT32_MAX ||
        !hone_grow(&values->allocator, &values->rows, &values->capacity, values->count + 1, sizeof *values->rows))
        return false;
    if (values->slot_count >= 2 * (values->count + 1)) return true;
    const size_t slot_count = values->slot_count == 0 ? 16 : values->slot_count * 2;
    uint32_t *slots = hone_alloc_array(&values->allocator, slot_count, sizeof *slots);
    if (slots == NULL) return false;
    hone_free(&values->allocator, values->slots);
    values->slots = slots;
    values->slot_count = slot_count;
    for (size_t i = 0; i < values->count; i++)
        link_row(values, i);
    return true;
}

static bool replace(const hone_allocator *allocator, hone_own_row *row, const char *json)
{
    char *copy = hone_copy_text(allocator, json, strlen(json));
    if (copy == NULL) return false;
    hone_free(allocator, row->json);
    row->json = copy;
    return true;
}

bool hone_own_values_put(hone_own_values *values, const hone_own_value *value)
{
    const hone_allocator *allocator = &values->allocator;
    const uint64_t hash = hash_of(value);
    hone_own_row *known = find(values, hash, value);
    if (known != NULL) return replace(allocator, known, value->json);
    if (!make_room(values)) return false;
    hone_own_row *row = &values->rows[values->count];
    *row = (hone_own_row){
        .hash = hash,
        .device = hone_copy_text(allocator, value->device, strlen(value->device)),
        .operation = hone_copy_text(allocator, value->operation, strlen(value->operation)),
        .key = hone_copy_text(allocator, value->key, strlen(value->key)),
        .json = hone_copy_text(allocator, value->json, strlen(value->json)),
    };
    if (row->device == NULL || row->operation == NULL || row->key == NULL || row->json == NULL) {
        free_row(allocator, row);
        return false;
    }
    link_row(values, values->count++);
    return true;
}
