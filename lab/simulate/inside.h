// What the files of this folder share.
#ifndef HONE_SIMULATE_INSIDE_H
#define HONE_SIMULATE_INSIDE_H

#include "base/memory.h"
#include "simulate/recorded.h"

#include <jansson.h>

struct hone_recorded {
    hone_allocator allocator;
    hone_arena arena; // samples and texts
    hone_space *space;
    hone_bound_space *bound;
    hone_recorded_row *rows;
    hone_config *configs; // of the rows
    size_t count, row_capacity, config_capacity;
    uint32_t *slots; // row + 1, by the hash of its config
    size_t slot_count;
    const char *device, *kernel;
    bool cut;
};

// Unpacks gzip (the bytes themselves when they are none) into out. *out_cut: the packed bytes ended too early.
hone_status hone_recorded_unpack(
    const char *name, const void *bytes, size_t size, hone_buffer *out, bool *out_cut, hone_error *err);
// Puts a number for NaN and Infinity, which JSON does not have, and says where the last whole entry of an inner list or
// object ends: what a file that was cut keeps, and the brackets that it then lacks. False: there is none.
bool hone_recorded_mend(char *text, size_t size, size_t *out_size, char out_closing[3]);
// Fills recorded from a document.
hone_status hone_recorded_fill(hone_recorded *recorded, const char *name, const json_t *document, hone_error *err);
// Adds a row, in the place of one with its config; its samples are kept as they are.
hone_status hone_recorded_add(hone_recorded *recorded, const hone_recorded_row *row, hone_error *err);

#endif
