// The bits of a number, highest first:
//
//     63        52 51         42 41                                   3 2    0
//     | device 12 | algorithm 10 | device, algorithm, version, key, regime 39 | slot 3 |
//
// Each field is the highest bits of a hash, so that fields of fewer bits would begin alike. The first two hash one
// cell, the third hashes all five: keys of one device and algorithm stand in one range, and two keys share a place once
// in 2^39 of it.
#include "store/sqlite/place.h"

#include "base/assert.h"
#include "base/hash.h"

#include <string.h>

// Never changed once released: stores are looked up by these.
enum { KEY_CELLS = 5, DEVICE_BITS = 12, ALGORITHM_BITS = 10, REST_BITS = 39 };
_Static_assert((1 << (64 - DEVICE_BITS - ALGORITHM_BITS - REST_BITS)) == HONE_PLACE_SLOTS, "64 bits in all");

static uint64_t high_bits(uint64_t hash, int count)
{
    hone_assert(count > 0 && count < 64);
    return hash >> (64 - count);
}

static uint64_t hash_cell(const hone_cell *cell)
{
    const hone_row row = {.count = 1, .cells = {*cell}};
    return hone_row_checksum(&row);
}

static hone_cell cell_of(const char *text)
{
    const char *value = text == NULL ? "" : text;
    return (hone_cell){.kind = HONE_CELL_TEXT, .size = strlen(value), .as.text = value};
}

static uint64_t region_of(const hone_cell *device, const hone_cell *algorithm)
{
    return high_bits(hash_cell(device), DEVICE_BITS) << ALGORITHM_BITS |
           high_bits(hash_cell(algorithm), ALGORITHM_BITS);
}

// As SQLite orders them: by the bits with the sign.
static int64_t number_of(uint64_t bits)
{
    int64_t number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

int64_t hone_place_of(const hone_row *row)
{
    hone_row key = *row;
    key.count = KEY_CELLS;
    key.first_count = 0;
    const uint64_t rest = high_bits(hone_row_checksum(&key), REST_BITS);
    return number_of((region_of(&row->cells[0], &row->cells[1]) << REST_BITS | rest) * HONE_PLACE_SLOTS);
}

int64_t hone_place_of_key(const hone_store_key *key, hone_regime regime)
{
    const hone_row row = {
        .count = KEY_CELLS,
        .cells = {
            cell_of(key->device),
            cell_of(key->algorithm),
            cell_of(key->version),
            cell_of(key->key),
            {.kind = HONE_CELL_INTEGER, .as.integer = (int64_t)regime}}};
    return hone_place_of(&row);
}

void hone_place_range(const hone_store_key *filter, int64_t *out_first, int64_t *out_last)
{
    const hone_cell device = cell_of(filter->device), algorithm = cell_of(filter->algorithm);
    *out_first = INT64_MIN;
    *out_last = INT64_MAX;
    if (filter->device == NULL) return;
    const int free_bits = 64 - DEVICE_BITS - (filter->algorithm == NULL ? 0 : ALGORITHM_BITS);
    const uint64_t rest = (UINT64_C(1) << free_bits) - 1;
    const uint64_t first = region_of(&device, &algorithm) << (64 - DEVICE_BITS - ALGORITHM_BITS) & ~rest;
    *out_first = number_of(first);
    *out_last = number_of(first | rest);
}

int64_t hone_place_around(int64_t number)
{
    return number & ~(int64_t)(HONE_PLACE_SLOTS - 1);
}

bool hone_place_has(int64_t place, int64_t number)
{
    return hone_place_around(number) == place;
}
