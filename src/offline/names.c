// Names of values and computations: open addressing, never shrinking.
#include "base/hash.h"
#include "offline/graph.h"

typedef struct hone_names_row {
    hone_view name;
    uint64_t hash;
    uint32_t scope, value;
    bool used;
} hone_names_row;

void hone_names_init(hone_names *names, const hone_allocator *allocator)
{
    *names = (hone_names){.allocator = *allocator};
}

void hone_names_deinit(hone_names *names)
{
    hone_free(&names->allocator, names->rows);
    hone_names_init(names, &names->allocator);
}

static uint64_t hash_of(uint32_t scope, hone_view name)
{
    return hone_hash64(name.data, name.size) ^ (scope * UINT64_C(0x9e3779b97f4a7c15));
}

// The row of a name, or the free row where it would stand. Capacity is a power of two and never full.
static hone_names_row *find(hone_names_row *rows, size_t capacity, uint64_t hash, uint32_t scope, hone_view name)
{
    for (size_t i = hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        hone_names_row *row = &rows[i];
        if (!row->used) return row;
        if (row->hash == hash && row->scope == scope && hone_view_equal(row->name, name)) return row;
    }
}

static bool make_room(hone_names *names)
{
    if (names->count * 2 < names->capacity) return true;
    size_t capacity = names->capacity == 0 ? 64 : names->capacity * 2;
    hone_names_row *rows = hone_alloc_array(&names->allocator, capacity, sizeof *rows);
    if (!rows) return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const hone_names_row *row = &names->rows[i];
        if (row->used) *find(rows, capacity, row->hash, row->scope, row->name) = *row;
    }
    hone_free(&names->allocator, names->rows);
    names->rows = rows;
    names->capacity = capacity;
    return true;
}

void hone_names_put(hone_names *names, uint32_t scope, hone_view name, uint32_t value)
{
    if (names->failed || !make_room(names)) {
        names->failed = true;
        return;
    }
    uint64_t hash = hash_of(scope, name);
    hone_names_row *row = find(names->rows, names->capacity, hash, scope, name);
    if (!row->used) names->count++;
    *row = (hone_names_row){.name = name, .hash = hash, .scope = scope, .value = value, .used = true};
}

uint32_t hone_names_get(const hone_names *names, uint32_t scope, hone_view name)
{
    if (names->capacity == 0) return HONE_GRAPH_NONE;
    const hone_names_row *row = find(names->rows, names->capacity, hash_of(scope, name), scope, name);
    return row->used ? row->value : HONE_GRAPH_NONE;
}
