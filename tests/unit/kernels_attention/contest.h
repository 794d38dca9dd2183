// Runs every kernel of an algorithm on one call, at configs from its space, and compares each with the reference.
#ifndef HONE_TESTS_KERNELS_ATTENTION_CONTEST_H
#define HONE_TESTS_KERNELS_ATTENTION_CONTEST_H

#include "kernels/kernels.h"

enum { CONTEST_MAX_VALUES = 16 };

typedef struct contest {
    const hone_kernel_table *table;
    hone_signature *signature;
    hone_call *call;         // bound to the memory below
    hone_device_info device; // this machine
    size_t count;
    hone_value args[CONTEST_MAX_VALUES];
    hone_tensor tensors[CONTEST_MAX_VALUES];
    int64_t shapes[CONTEST_MAX_VALUES][HONE_MAX_RANK], strides[CONTEST_MAX_VALUES][HONE_MAX_RANK];
    unsigned char *memory[CONTEST_MAX_VALUES];   // a guard, the tensor, a guard
    unsigned char *expected[CONTEST_MAX_VALUES]; // inputs as they were; results as the reference gives them
    size_t bytes[CONTEST_MAX_VALUES];            // of a tensor, from its first to its last element
    uint32_t kernels_run;
    double spread; // inputs are uniform in [-spread, spread)
    bool only_own; // contest_run leaves kernels out that call the libraries of others
} contest;

// gap: elements behind each row of the last axis, so that tensors are not dense; NaN lies there.
void contest_init(contest *own, const hone_kernel_table *table, const char *call_text, int64_t gap, double spread);
// Runs all kernels that this machine and the call allow, each at its heuristic and `configs` sampled configs; fails the
// test at the first that is wrong, writes outside its results, or changes an input.
void contest_run(contest *own, size_t configs);
void contest_deinit(contest *own);
// All three, densely and with a gap.
void contest_once(const hone_kernel_table *table, const char *call_text, size_t configs);

// Runs one kernel ("reference" too) at its heuristic or default config.
void contest_run_kernel(contest *own, const char *name);
// Element `index` of a dense value; set it.
double contest_get(const contest *own, size_t value, int64_t index);
// Fails the test when the element is off by more than `allowed`.
void contest_expect(const contest *own, size_t value, int64_t index, double right, double allowed);
void contest_set(contest *own, size_t value, int64_t index, double number);

#endif
