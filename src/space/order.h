// In which order the parameters are best set.
#ifndef HONE_SPACE_ORDER_H
#define HONE_SPACE_ORDER_H

#include "space/bound.h"

// An order in which as little as can be is open at a time: a parameter is open from when it is set until all those are
// set that a constraint reads together with it. False when the order of the text is about as good.
bool hone_space_choose_order(const hone_bound_space *bound, uint8_t *out_order);

#endif
