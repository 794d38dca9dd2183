// Greedy, from every parameter as the first one: what has to be remembered at a time is estimated by the combinations
// of the open parameters' values. A parameter is open from where it is set until the last one that a constraint reads
// together with it; the width of a diagram at a level is at most the product of the open ones' values. Finding the best
// order is NP-hard (B. Bollig and I. Wegener, "Improving the Variable Ordering of OBDDs Is NP-Complete", 1996).
#include "space/order.h"

#include <math.h>

static double combinations(const hone_bound_space *bound, uint32_t parameters)
{
    double product = 1;
    for (; parameters != 0; parameters &= parameters - 1)
        product *= (double)bound->space->parameters[__builtin_ctz(parameters)].count;
    return product;
}

// What is still needed of those that are set.
static uint32_t open_after(const hone_bound_space *bound, uint32_t set)
{
    uint32_t open = 0;
    for (uint32_t left = set; left != 0; left &= left - 1) {
        int parameter = __builtin_ctz(left);
        if ((bound->neighbours[parameter] & ~set) != 0) open |= 1u << parameter;
    }
    return open;
}

// The parameter that leaves least open; of equals the first of the text.
static size_t next_of(const hone_bound_space *bound, uint32_t set)
{
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < bound->space->parameter_count; i++) {
        if ((set >> i & 1) != 0) continue;
        double cost = combinations(bound, open_after(bound, set | 1u << i));
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

// What the states of all levels come to. first: which parameter an order begins with; TEXT: the order of the text.
enum { TEXT = -1, WORTH_IT = 4 };

static double order_from(const hone_bound_space *bound, int first, uint8_t *out_order)
{
    uint32_t set = 0;
    double cost = 0;
    for (size_t i = 0; i < bound->space->parameter_count; i++) {
        size_t parameter = first == TEXT ? i : i == 0 ? (size_t)first : next_of(bound, set);
        set |= 1u << parameter;
        out_order[i] = (uint8_t)parameter;
        cost += combinations(bound, open_after(bound, set));
    }
    return cost;
}

bool hone_space_choose_order(const hone_bound_space *bound, uint8_t *out_order)
{
    double least = order_from(bound, TEXT, out_order) / WORTH_IT;
    int best = TEXT;
    for (int i = 0; i < (int)bound->space->parameter_count; i++) {
        double cost = order_from(bound, i, out_order);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    order_from(bound, best, out_order);
    return best != TEXT;
}
