// Values of a space's parameters, beside the words of the public header.
#ifndef HONE_SPACE_VALUE_H
#define HONE_SPACE_VALUE_H

#include "hone/space.h"

// A value as a config's JSON has it: 16, 0.5, true, "row". The space's.
const char *hone_space_value_json(const hone_space *space, size_t index, size_t position);

#endif
