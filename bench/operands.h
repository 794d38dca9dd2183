// Memory behind a call: made-up inputs, room for its results.
#ifndef HONE_BENCH_OPERANDS_H
#define HONE_BENCH_OPERANDS_H

#include <hone/hone.h>

enum { OPERANDS_MOST = 16 };

typedef struct bench_operands {
    hone_value values[OPERANDS_MOST]; // in the order of values in C
    hone_tensor tensors[OPERANDS_MOST];
    void *memory[OPERANDS_MOST]; // NULL: no tensor
    size_t count;
    int result; // the index of the first result
} bench_operands;

// Inputs between -1 and 1, f32 or bf16. call must outlive them. Returns nonzero when it cannot be done.
int operands_make(const hone_call *call, bench_operands *out);
void operands_free(bench_operands *operands);
// The results as floats, *out_count of them; the caller frees. NULL when there is no memory.
float *operands_result(const bench_operands *operands, size_t *out_count);

#endif
