// SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom Number Generators", 2014): a counter
// that steps by 2^64 over the golden ratio, and a mix of its bits. Any state is a good one, so a seed needs no warming.
// No secrets come from it.
#include "base/random.h"

#include "base/assert.h"

uint64_t hone_random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// The upper half of a product with a fraction of 32 bits (D. Lemire, "Fast Random Integer Generation in an Interval",
// 2019, without its second draw): a number is likelier than another by at most bound / 2^32.
uint32_t hone_random_below(uint64_t *state, uint32_t bound)
{
    hone_assert(bound > 0);
    return (uint32_t)((hone_random_next(state) >> 32) * bound >> 32);
}

double hone_random_unit(uint64_t *state)
{
    return (double)((hone_random_next(state) >> 11) + 1) * 0x1p-53;
}

// Fisher and Yates' shuffle, from the inside out (D. E. Knuth, "The Art of Computer Programming", volume 2, 3.4.2).
void hone_random_order(uint64_t *state, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = hone_random_below(state, i + 1);
        out[i] = out[other];
        out[other] = i;
    }
}
