// Names of values and computations: open addressing, never shrinking. Programs have tens of thousands of them, so the table that is
// jumped about in holds eight bytes a row, and the names stand in a row behind it.
#include "base/hash.h"
#include "offline/graph.h"

typedef struct hone_names_slot {
    uint32_t home, entry; // entry: 1 + its place in entries; 0: free
} hone_names_slot;

typedef struct hone_names_entry {
    const char *name;
    uint32_t size, scope, value;
} hone_names_entry;

void hone_names_init(hone_names *names, const hone_allocator *allocator)
{
    *names = (hone_names){.allocator = *allocator};
}

void hone_names_deinit(hone_names *names)
{
    hone_free(&names->allocator, names->slots);
    hone_free(&names->allocator, names->entries);
    hone_names_init(names, &names->allocator);
}

// Where a name stands, and how far on each time when something else stands there. Names that differ in a number alone stand side by
// side, for programs use them in that order: "add.41" and "add.42", and varints, whose first byte is the lowest. Those of another word
// jump over them, each its own way.
typedef struct position {
    uint32_t home, step;
} position;

static inline position position_of(uint32_t scope, hone_view name)
{
    enum { DIGITS_MAX = 6 };
    hone_view word = name;
    uint32_t number = 0;
    if (word.size > 1 && (unsigned char)*word.data >= 0x80) {
        number = (unsigned char)*word.data & 0x7f;
        word.data++, word.size--;
    }
    for (uint32_t unit = 1; word.size > 0 && name.size - word.size < DIGITS_MAX; unit *= 10) {
        char digit = word.data[word.size - 1];
        if (digit < '0' || digit > '9') break;
        number += (uint32_t)(digit - '0') * unit;
        word.size--;
    }
    uint64_t hash = (hone_hash_name(word.data, word.size) ^ scope) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t further = (hash + number) * UINT64_C(0xd6e8feb86659fd93);
    return (position){(uint32_t)(hash >> 32) + number, (uint32_t)(further >> 32) | 1};
}

static bool is_entry(const hone_names_entry *entry, uint32_t scope, hone_view name)
{
    return entry->scope == scope && entry->size == name.size &&
           (name.size == 0 || memcmp(entry->name, name.data, name.size) == 0);
}

// The slot of a name, or the free slot where it would stand. Capacity is a power of two and never full.
static hone_names_slot *find(const hone_names *names, position at, uint32_t scope, hone_view name)
{
    size_t mask = names->slot_capacity - 1;
    for (size_t i = at.home & mask;; i = (i + at.step) & mask) {
        hone_names_slot *slot = &names->slots[i];
        if (slot->entry == 0) return slot;
        if (slot->home == at.home && is_entry(&names->entries[slot->entry - 1], scope, name)) return slot;
    }
}

void hone_names_clear(hone_names *names)
{
    // A table that was once filled and holds little now is given back: emptying it again and again would cost more than filling it.
    if (names->count * 16 < names->slot_capacity) {
        hone_free(&names->allocator, names->slots);
        names->slots = NULL;
        names->slot_capacity = 0;
    } else if (names->count > 0) {
        memset(names->slots, 0, names->slot_capacity * sizeof *names->slots);
    }
    names->count = 0;
}

static bool grow_slots(hone_names *names)
{
    size_t capacity = names->slot_capacity == 0 ? 64 : names->slot_capacity * 4;
    hone_names_slot *slots = hone_alloc_array(&names->allocator, capacity, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < names->count; i++) {
        const hone_names_entry *entry = &names->entries[i];
        position at = position_of(entry->scope, (hone_view){entry->name, entry->size});
        size_t k = at.home & (capacity - 1);
        while (slots[k].entry != 0)
            k = (k + at.step) & (capacity - 1);
        slots[k] = (hone_names_slot){at.home, (uint32_t)i + 1};
    }
    hone_free(&names->allocator, names->slots);
    names->slots = slots;
    names->slot_capacity = capacity;
    return true;
}

// Room for one more.
static bool make_room(hone_names *names)
{
    if (names->count >= UINT32_MAX - 1) return false;
    if (names->count * 2 >= names->slot_capacity && !grow_slots(names)) return false;
    return hone_grow(&names->allocator, &names->entries, &names->capacity, names->count + 1, sizeof *names->entries);
}

void hone_names_put(hone_names *names, uint32_t scope, hone_view name, uint32_t value)
{
    if (names->failed || name.size > UINT32_MAX || !make_room(names)) {
        names->failed = true;
        return;
    }
    position at = position_of(scope, name);
    hone_names_slot *slot = find(names, at, scope, name);
    if (slot->entry == 0) *slot = (hone_names_slot){at.home, (uint32_t)++names->count};
    names->entries[slot->entry - 1] =
        (hone_names_entry){.name = name.data, .size = (uint32_t)name.size, .scope = scope, .value = value};
}

uint32_t hone_names_get(const hone_names *names, uint32_t scope, hone_view name)
{
    if (names->slot_capacity == 0) return HONE_GRAPH_NONE;
    const hone_names_slot *slot = find(names, position_of(scope, name), scope, name);
    return slot->entry != 0 ? names->entries[slot->entry - 1].value : HONE_GRAPH_NONE;
}
