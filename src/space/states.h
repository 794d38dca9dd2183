// What a search has seen: the state behind a level is the values that the constraints of later levels read, and equal
// states leave equal choices.
#ifndef HONE_SPACE_STATES_H
#define HONE_SPACE_STATES_H

#include "space/bound.h"

// A limit that several arrays share.
typedef struct hone_space_memory {
    hone_allocator allocator;
    size_t used, limit; // bytes
    bool full;          // the limit was reached
    bool failed;        // the allocator gave nothing
} hone_space_memory;

// As hone_grow.
bool hone_space_memory_grow(
    hone_space_memory *memory, void *array_pointer, size_t *capacity, size_t needed, size_t size);

typedef struct hone_space_state {
    uint32_t hash;
    uint32_t key;  // its place in the pool, plus one; 0: an empty slot
    uint32_t node; // what was found out about it
} hone_space_state;

typedef struct hone_space_states {
    hone_space_memory *memory;
    uint32_t *live;                            // the cells of the states, level by level
    size_t live_from[HONE_MAX_PARAMETERS + 1]; // where those of a level begin
    bool merges[HONE_MAX_PARAMETERS];          // false: no two prefixes up to here can have the same state
    uint8_t *key;                              // of the state at hand
    uint8_t *pool;
    size_t pool_size, pool_capacity;
    hone_space_state *slots;
    size_t slot_count, used;
} hone_space_states;

// For the parameters of a walk; false: no memory. deinit also after that.
bool hone_space_states_init(hone_space_states *states, hone_space_memory *memory, const hone_space_walk *walk);
void hone_space_states_deinit(hone_space_states *states);
// The walk's state behind a level. *out_state is what is known, *out_is_new that it was entered now and waits for
// hone_space_states_set. False: no memory.
bool hone_space_states_enter(
    hone_space_states *states,
    const hone_space_walk *walk,
    size_t level,
    hone_space_state *out_state,
    bool *out_is_new);
void hone_space_states_set(hone_space_states *states, const hone_space_state *state, uint32_t node);

#endif
