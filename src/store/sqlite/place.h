// Where a decision stands in its table: under a number that is made of its key, so that a get reads one path of a tree
// of numbers, however long keys and records are.
//
// The number's first bits are of the device and the algorithm, so that what is scanned together stands together; its
// last ones are free: two keys with the same bits stand side by side, without a gap from the first on.
#ifndef HONE_STORE_SQLITE_PLACE_H
#define HONE_STORE_SQLITE_PLACE_H

#include "store/common/row.h"

enum { HONE_PLACE_SLOTS = 8 };

// The first number of the keys that have the same bits; theirs are this one and up to HONE_PLACE_SLOTS - 1 more.
// row: of a decision, or its first five cells, with any value in them.
int64_t hone_place_of(const hone_row *row);
int64_t hone_place_of_key(const hone_store_key *key, hone_regime regime);
// The first and the last number that what passes a filter can have.
void hone_place_range(const hone_store_key *filter, int64_t *out_first, int64_t *out_last);
// The first number of the place that a number is one of.
int64_t hone_place_around(int64_t number);
// Whether a number is one of a place.
bool hone_place_has(int64_t place, int64_t number);

#endif
