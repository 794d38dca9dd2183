// Keys are written in as few bytes as their values take, since a large space has many. A cell in a key:
//
//     | kind, 4 bits | n, 4 bits | n bytes of the value, lowest first |     n = 0 to 8
//
// A cell is live at a level when it is set there or before, and read behind it. States of one level are compared by
// their live cells alone.
#include "space/states.h"

#include "base/assert.h"
#include "base/hash.h"

#include <string.h>

enum { FIRST_SLOTS = 64, CELL_BYTES = 9 };

bool hone_space_memory_grow(
    hone_space_memory *memory, void *array_pointer, size_t *capacity, size_t needed, size_t size)
{
    size_t before = *capacity;
    if (needed <= before) return true;
    size_t wanted = needed < 2 * before ? 2 * before : needed;
    memory->full = memory->full || (wanted - before) * size > memory->limit - memory->used;
    if (memory->full) return false;
    memory->failed = !hone_grow(&memory->allocator, array_pointer, capacity, wanted, size);
    memory->used += (*capacity - before) * size;
    return !memory->failed;
}

// For each cell the last level that reads it, and the level that sets it, plus one; 0: none.
typedef struct lives {
    uint8_t *set, *read;
} lives;

static void find_lives(const hone_space_walk *walk, lives *found)
{
    for (size_t level = 0; level < walk->depth; level++) {
        const hone_space_program *program = &walk->plan->programs[walk->order[level]];
        found->set[walk->order[level]] = (uint8_t)(level + 1);
        for (size_t i = 0; i < program->count; i++) {
            const hone_space_step *step = &program->steps[i];
            if (step->operation < HONE_STEP_CHECK) found->set[step->to] = (uint8_t)(level + 1);
            found->read[step->a] = found->read[step->b] = (uint8_t)(level + 1);
        }
    }
}

static bool is_live(const lives *found, size_t cell, size_t level)
{
    return found->set[cell] != 0 && found->set[cell] <= level + 1 && found->read[cell] > level + 1;
}

// A prefix that is all in the state meets no other.
static bool merges(const hone_space_walk *walk, const lives *found, size_t level)
{
    for (size_t i = 0; i <= level; i++) {
        size_t parameter = walk->order[i];
        if (walk->bound->space->parameters[parameter].count > 1 && !is_live(found, parameter, level)) return true;
    }
    return false;
}

static void list_live(hone_space_states *states, const hone_space_walk *walk, const lives *found)
{
    size_t count = 0;
    for (size_t level = 0; level < walk->depth; level++) {
        states->live_from[level] = count;
        states->merges[level] = merges(walk, found, level);
        for (size_t cell = 0; cell < walk->plan->cell_count && states->merges[level]; cell++)
            if (is_live(found, cell, level)) states->live[count++] = (uint32_t)cell;
    }
    states->live_from[walk->depth] = count;
}

static size_t count_live(const hone_space_walk *walk, const lives *found)
{
    size_t count = 0;
    for (size_t level = 0; level < walk->depth; level++)
        for (size_t cell = 0; cell < walk->plan->cell_count; cell++)
            count += is_live(found, cell, level);
    return count;
}

bool hone_space_states_init(hone_space_states *states, hone_space_memory *memory, const hone_space_walk *walk)
{
    const hone_allocator *allocator = &memory->allocator;
    size_t cells = walk->plan->cell_count;
    *states = (hone_space_states){.memory = memory};
    uint8_t *bytes = hone_alloc_array(allocator, cells, 2);
    if (bytes == NULL) return false;
    lives found = {bytes, bytes + cells};
    find_lives(walk, &found);
    states->live = hone_alloc_array(allocator, count_live(walk, &found), sizeof *states->live);
    states->key = hone_alloc_array(allocator, cells + 2, CELL_BYTES);
    if (states->live != NULL) list_live(states, walk, &found);
    hone_free(allocator, bytes);
    return states->live != NULL && states->key != NULL;
}

void hone_space_states_deinit(hone_space_states *states)
{
    const hone_allocator *allocator = &states->memory->allocator;
    hone_free(allocator, states->live);
    hone_free(allocator, states->key);
    hone_free(allocator, states->pool);
    hone_free(allocator, states->slots);
    states->memory->used -= states->pool_capacity + states->slot_count * sizeof *states->slots;
}

static uint8_t *put_number(uint8_t *to, unsigned kind, uint64_t bits)
{
    unsigned bytes = bits == 0 ? 0 : (71 - (unsigned)__builtin_clzll(bits)) / 8;
    *to = (uint8_t)(kind << 4 | bytes);
    for (unsigned i = 0; i < bytes; i++)
        to[1 + i] = (uint8_t)(bits >> 8 * i);
    return to + 1 + bytes;
}

// Texts of a plan that are one are at one address.
static uint8_t *put_cell(uint8_t *to, const hone_scalar *cell)
{
    uint64_t bits = 0;
    if (cell->kind == HONE_SCALAR_TEXT)
        bits = (uintptr_t)cell->as.text.data;
    else if (cell->kind == HONE_SCALAR_FLOAT)
        memcpy(&bits, &cell->as.f64, sizeof bits);
    else if (cell->kind != HONE_SCALAR_NONE) // small negative numbers are short, too
        bits = (uint64_t)cell->as.i64 << 1 ^ (uint64_t)(cell->as.i64 >> 63);
    return put_number(to, cell->kind, bits);
}

// No key of a level begins another: they end where the last cell's bytes do.
static size_t write_key(hone_space_states *states, const hone_space_walk *walk, size_t level)
{
    uint8_t *to = states->key;
    hone_assert(states->merges[level]);
    *to++ = (uint8_t)level;
    for (size_t i = states->live_from[level]; i < states->live_from[level + 1]; i++)
        to = put_cell(to, &walk->cells[states->live[i]]);
    return (size_t)(to - states->key);
}

static bool has_key(const hone_space_states *states, const hone_space_state *slot, uint32_t hash, size_t size)
{
    size_t at = slot->key - 1;
    return slot->hash == hash && size <= states->pool_size - at && memcmp(states->pool + at, states->key, size) == 0;
}

static bool grow_slots(hone_space_states *states)
{
    hone_space_state *old = states->slots;
    size_t old_count = states->slot_count, size = sizeof *old;
    if (states->used < old_count / 4 * 3) return true;
    states->slots = NULL;
    states->slot_count = 0;
    size_t wanted = old_count == 0 ? FIRST_SLOTS : 2 * old_count;
    if (!hone_space_memory_grow(states->memory, &states->slots, &states->slot_count, wanted, size)) {
        states->slots = old;
        states->slot_count = old_count;
        return false;
    }
    for (size_t i = 0; i < old_count; i++) {
        size_t j = old[i].hash & (states->slot_count - 1);
        if (old[i].key == 0) continue;
        while (states->slots[j].key != 0)
            j = (j + 1) & (states->slot_count - 1);
        states->slots[j] = old[i];
    }
    hone_free(&states->memory->allocator, old);
    states->memory->used -= old_count * size;
    return true;
}

static bool add_key(hone_space_states *states, size_t size, hone_space_state *slot)
{
    size_t needed = states->pool_size + size;
    if (needed >= UINT32_MAX) states->memory->full = true;
    if (states->memory->full) return false;
    if (!hone_space_memory_grow(states->memory, &states->pool, &states->pool_capacity, needed, 1)) return false;
    memcpy(states->pool + states->pool_size, states->key, size);
    slot->key = (uint32_t)states->pool_size + 1;
    states->pool_size = needed;
    states->used++;
    return true;
}

bool hone_space_states_enter(
    hone_space_states *states, const hone_space_walk *walk, size_t level, hone_space_state *out_state, bool *out_is_new)
{
    if (!grow_slots(states)) return false;
    size_t size = write_key(states, walk, level), mask = states->slot_count - 1;
    uint32_t hash = (uint32_t)hone_hash64(states->key, size);
    size_t i = hash & mask;
    while (states->slots[i].key != 0 && !has_key(states, &states->slots[i], hash, size))
        i = (i + 1) & mask;
    hone_space_state *slot = &states->slots[i];
    *out_is_new = slot->key == 0;
    slot->hash = hash;
    if (*out_is_new && !add_key(states, size, slot)) return false;
    *out_state = *slot;
    return true;
}

void hone_space_states_set(hone_space_states *states, const hone_space_state *state, uint32_t node)
{
    hone_assert(state->key != 0); // it was entered
    size_t mask = states->slot_count - 1, i = state->hash & mask;
    while (states->slots[i].key != state->key)
        i = (i + 1) & mask;
    states->slots[i].node = node;
}
