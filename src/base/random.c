#include "base/random.h"

uint64_t hone_random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t hone_random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((hone_random_next(state) >> 32) * bound >> 32);
}

double hone_random_unit(uint64_t *state)
{
    return (double)((hone_random_next(state) >> 11) + 1) * 0x1p-53;
}

void hone_random_order(uint64_t *state, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = hone_random_below(state, i + 1);
        out[i] = out[other];
        out[other] = i;
    }
}
