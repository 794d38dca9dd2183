// Programs have tens of thousands of names, nearly all of which end with a number that hardly another name has: "%41",
// "add.41", "#loc41". Such a name stands in an array under its number; the rest, and those that find their number
// taken, in a hash table.
#include "offline/names.h"

#include "base/hash.h"

#include <string.h>

// A name as it is compared: all of its bytes when they are sixteen at most, else their hash first and then where they
// stand.
typedef struct hone_names_entry {
    uint64_t head; // up to the last eight bytes; the hash of a long name
    union {
        uint64_t tail;     // the last eight bytes, or as many as there are
        const char *bytes; // of a long name
    } rest;
    uint32_t size, scope;
    uint32_t number; // that it ends with; HONE_NAMES_NONE: with none
    uint32_t value;
} hone_names_entry;

typedef struct hone_names_slot {
    uint32_t hash, entry; // entry: 1 + its place in entries; 0: free
} hone_names_slot;

enum { WHOLE_SIZE = 16, SLOTS_LEAST = 64, NUMBERS_LEAST = 1024, NUMBERS_PER_PUT = 4 };

void hone_names_init(hone_names *names, const hone_allocator *allocator)
{
    *names = (hone_names){.allocator = *allocator};
}

void hone_names_deinit(hone_names *names)
{
    hone_free(&names->allocator, names->entries);
    hone_free(&names->allocator, names->numbered);
    hone_free(&names->allocator, names->hashed);
    hone_names_init(names, &names->allocator);
}

// --- keys

// The first byte lowest on every machine; compilers make one load of it where that is the machine's order.
static inline uint32_t load_four(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t load_eight(const char *at)
{
    return load_four(at) | (uint64_t)load_four(at + 4) << 32;
}

// The last bytes of a name, eight at most, the last one uppermost.
static inline uint64_t tail_of(hone_view name)
{
    const char *data = name.data;
    size_t size = name.size, missing = 8 * (8 - size); // bits
    if (size >= 8) return load_eight(data + size - 8);
    if (size >= 4) return (uint64_t)load_four(data + size - 4) << 32 | (uint32_t)((uint64_t)load_four(data) << missing);
    uint64_t tail = 0;
    for (size_t i = 0; i < size; i++)
        tail |= (uint64_t)(unsigned char)data[i] << (missing + 8 * i);
    return tail;
}

// The number that the uppermost bytes are the decimal digits of, eight bytes at once: what stands before them
// counts as zeros, and neighbours are added up to pairs, to fours and to the whole. The additions are those of
// simdjson's parse_eight_digits_unrolled; a byte is no digit when adding 0x76 to its difference from '0' reaches its
// highest bit.
static inline uint32_t number_of(uint64_t tail)
{
    uint64_t digits = tail ^ UINT64_C(0x3030303030303030);
    uint64_t over_nine = (digits & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7676767676767676);
    uint64_t others = (over_nine | digits) & UINT64_C(0x8080808080808080);
    unsigned count = others ? (unsigned)__builtin_clzll(others) / 8 : 8;
    if (count == 0) return HONE_NAMES_NONE;
    digits &= UINT64_MAX << 8 * (8 - count);
    digits = digits * 10 + (digits >> 8);
    uint64_t pairs = (digits & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064);
    uint64_t next_pairs = (digits >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001);
    return (uint32_t)((pairs + next_pairs) >> 32);
}

// Member by member: a structure that is handed on whole is loaded before its parts are stored.
__attribute__((always_inline)) static inline void write_key(hone_names_entry *out, uint32_t scope, hone_view name)
{
    uint64_t tail = tail_of(name);
    out->head = name.size > WHOLE_SIZE ? hone_hash64(name.data, name.size) : name.size > 8 ? load_eight(name.data) : 0;
    if (name.size > WHOLE_SIZE)
        out->rest.bytes = name.data;
    else
        out->rest.tail = tail;
    out->size = (uint32_t)name.size;
    out->scope = scope;
    out->number = number_of(tail);
}

static inline void write_number(hone_names_entry *out, uint64_t number)
{
    out->head = number;
    out->rest.tail = 0;
    out->size = out->scope = 0;
    out->number = (uint32_t)number;
}

static inline bool same_name(const hone_names_entry *a, const hone_names_entry *b)
{
    if (a->head != b->head || a->size != b->size || a->scope != b->scope) return false;
    return a->size > WHOLE_SIZE ? memcmp(a->rest.bytes, b->rest.bytes, a->size) == 0 : a->rest.tail == b->rest.tail;
}

// A multiplication to 128 bits, with the secrets of wyhash (Wang Yi). The upper half of a product mixes what its lower
// half only moves up; the sum keeps names apart whose one half makes it zero.
static uint32_t hash_of(const hone_names_entry *k)
{
    uint64_t low = k->head ^ k->scope * UINT64_C(0x9e3779b97f4a7c15), high = k->size > WHOLE_SIZE ? 0 : k->rest.tail;
    __extension__ unsigned __int128 product =
        (unsigned __int128)(low ^ UINT64_C(0xa0761d6478bd642f)) * (high ^ UINT64_C(0xe7037ed1a0b428db));
    uint64_t sum = low + high * UINT64_C(0x9fb21c651e98df25) + k->size;
    return (uint32_t)(((uint64_t)product ^ (uint64_t)(product >> 64) ^ sum * UINT64_C(0xd6e8feb86659fd93)) >> 32);
}

// --- by number

// The entry under a number; NULL: none, or one that was forgotten since.
static inline hone_names_entry *find_numbered(const hone_names *names, uint32_t number)
{
    if (number >= names->numbered_capacity) return NULL;
    size_t place = names->numbered[number];
    bool there = place > 0 && place <= names->count && names->entries[place - 1].number == number;
    return there ? &names->entries[place - 1] : NULL;
}

// True when there is a place for that number: they are not much larger than there are names.
static bool reach_number(hone_names *names, uint32_t number)
{
    if (number < names->numbered_capacity) return true;
    if (number >= NUMBERS_LEAST + names->puts * NUMBERS_PER_PUT) return false;
    size_t needed = (size_t)number + 1 < NUMBERS_LEAST ? NUMBERS_LEAST : (size_t)number + 1;
    bool grown =
        hone_grow(&names->allocator, &names->numbered, &names->numbered_capacity, needed, sizeof *names->numbered);
    names->failed |= !grown;
    return grown;
}

// --- by hash

// The slot of a name, or the free one where it would stand. Capacity is a power of two, and half of it is free.
static hone_names_slot *find_slot(const hone_names *names, const hone_names_entry *k, uint32_t hash)
{
    size_t mask = names->hashed_capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        hone_names_slot *slot = &names->hashed[i];
        if (slot->entry == 0 || (slot->hash == hash && same_name(&names->entries[slot->entry - 1], k))) return slot;
    }
}

static bool grow_slots(hone_names *names)
{
    if (names->hashed_count * 2 < names->hashed_capacity) return true;
    size_t capacity = names->hashed_capacity == 0 ? SLOTS_LEAST : names->hashed_capacity * 4;
    hone_names_slot *slots = hone_alloc_array(&names->allocator, capacity, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < names->hashed_capacity; i++) {
        const hone_names_slot *slot = &names->hashed[i];
        size_t k = slot->hash & (capacity - 1);
        while (slot->entry != 0 && slots[k].entry != 0)
            k = (k + 1) & (capacity - 1);
        if (slot->entry != 0) slots[k] = *slot;
    }
    hone_free(&names->allocator, names->hashed);
    names->hashed = slots;
    names->hashed_capacity = capacity;
    return true;
}

// --- both

// The place of a new entry, from 1 on; 0: memory was short.
static uint32_t add_entry(hone_names *names, const hone_names_entry *k)
{
    bool room =
        names->count < HONE_NAMES_NONE - 1 &&
        hone_grow(&names->allocator, &names->entries, &names->capacity, names->count + 1, sizeof *names->entries);
    names->failed |= !room;
    if (!room) return 0;
    hone_names_entry *entry = &names->entries[names->count++];
    entry->head = k->head;
    entry->rest = k->rest;
    entry->size = k->size;
    entry->scope = k->scope;
    entry->number = k->number;
    entry->value = k->value;
    return (uint32_t)names->count;
}

static void put_hashed(hone_names *names, const hone_names_entry *k)
{
    if (!grow_slots(names)) {
        names->failed = true;
        return;
    }
    uint32_t hash = hash_of(k);
    hone_names_slot *slot = find_slot(names, k, hash);
    if (slot->entry != 0) {
        names->entries[slot->entry - 1].value = k->value;
        return;
    }
    *slot = (hone_names_slot){hash, add_entry(names, k)};
    names->hashed_count += slot->entry != 0;
}

static void put(hone_names *names, const hone_names_entry *k)
{
    names->puts++;
    bool reached = reach_number(names, k->number);
    if (names->failed) return;
    hone_names_entry *there = reached ? find_numbered(names, k->number) : NULL;
    if (there != NULL && same_name(there, k))
        there->value = k->value;
    else if (reached && there == NULL)
        names->numbered[k->number] = add_entry(names, k);
    else
        put_hashed(names, k);
}

static uint32_t get(const hone_names *names, const hone_names_entry *k)
{
    const hone_names_entry *numbered = find_numbered(names, k->number);
    if (numbered != NULL && same_name(numbered, k)) return numbered->value;
    if (names->hashed_count == 0) return HONE_NAMES_NONE;
    const hone_names_slot *slot = find_slot(names, k, hash_of(k));
    return slot->entry != 0 ? names->entries[slot->entry - 1].value : HONE_NAMES_NONE;
}

void hone_names_clear(hone_names *names)
{
    // A table that was once filled and holds little now is given back: emptying it again and again would cost more than
    // filling it.
    if (names->hashed_count * 16 < names->hashed_capacity) {
        hone_free(&names->allocator, names->hashed);
        names->hashed = NULL;
        names->hashed_capacity = 0;
    } else if (names->hashed_count > 0) {
        memset(names->hashed, 0, names->hashed_capacity * sizeof *names->hashed);
    }
    names->count = names->hashed_count = 0;
}

void hone_names_put(hone_names *names, uint32_t scope, hone_view name, uint32_t value)
{
    hone_names_entry k;
    write_key(&k, scope, name);
    names->failed |= name.size > UINT32_MAX;
    k.value = value;
    if (!names->failed) put(names, &k);
}

uint32_t hone_names_get(const hone_names *names, uint32_t scope, hone_view name)
{
    hone_names_entry k;
    write_key(&k, scope, name);
    return get(names, &k);
}

void hone_names_put_number(hone_names *names, uint64_t number, uint32_t value)
{
    hone_names_entry k;
    write_number(&k, number);
    k.value = value;
    if (!names->failed) put(names, &k);
}

uint32_t hone_names_get_number(const hone_names *names, uint64_t number)
{
    hone_names_entry k;
    write_number(&k, number);
    return get(names, &k);
}
