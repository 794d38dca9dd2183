// The numbers of plans, and their counts. A number that is released keeps its counts, since only the threads that own
// them may write them: its next plan subtracts the earlier count.
#include "runtime/state/counters.h"

#include "base/assert.h"
#include "runtime/state/epoch.h"

enum { WORDS = HONE_COUNTERS / 64 };

// Bit i of word w: the number 64 w + i is taken; 0 always is. Global to the process, like the threads' counters.
static atomic_uint_fast64_t taken[WORDS] = {1};
static atomic_uint hint; // the word in which a number was last free

static uint32_t take_in(uint32_t w)
{
    uint64_t word = atomic_load_explicit(&taken[w], memory_order_relaxed);
    while (word != UINT64_MAX) {
        const uint64_t bit = ~word & (word + 1); // the lowest free bit
        if (atomic_compare_exchange_weak(&taken[w], &word, word | bit)) return 64 * w + (uint32_t)__builtin_ctzll(bit);
    }
    return 0;
}

uint32_t hone_counters_take(uint64_t *out_before)
{
    const uint32_t first = atomic_load_explicit(&hint, memory_order_relaxed);
    uint32_t number = 0;
    for (uint32_t i = 0; i < WORDS && number == 0; i++)
        number = take_in((first + i) % WORDS);
    if (number != 0) atomic_store_explicit(&hint, number / 64, memory_order_relaxed);
    *out_before = hone_counters_read(number);
    return number;
}

void hone_counters_give_back(uint32_t number)
{
    hone_assert(number < HONE_COUNTERS);
    if (number == 0) return;
    atomic_fetch_and(&taken[number / 64], ~(UINT64_C(1) << number % 64));
    atomic_store_explicit(&hint, number / 64, memory_order_relaxed);
}

uint64_t hone_counters_read(uint32_t number)
{
    uint64_t sum = 0;
    hone_assert(number < HONE_COUNTERS);
    for (const hone_epoch_slot *slot = hone_epoch_slots(); number != 0 && slot != NULL; slot = slot->next)
        sum += atomic_load_explicit(&slot->counters.runs[number], memory_order_relaxed);
    return sum;
}
