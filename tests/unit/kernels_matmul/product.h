// One product with everything a test needs around it: inputs, the right answer and its bound, guarded outputs.
#ifndef HONE_TESTS_KERNELS_MATMUL_PRODUCT_H
#define HONE_TESTS_KERNELS_MATMUL_PRODUCT_H

#include "hone/kernel.h"

typedef struct product_case {
    int64_t m, n, k;
    hone_dtype_id dtype;
    bool transpose_b;
    int64_t gap; // elements behind each row of a, b and c
} product_case;

// What follows the sums. Arrays have the case's dtype and gap.
typedef struct product_epilogue {
    bool bias, residual;
    const char *activation; // NULL: none
} product_epilogue;

typedef struct test_product {
    product_case is;
    product_epilogue epilogue;
    hone_signature *signature; // borrowed
    hone_call *call;
    hone_tensor tensors[5]; // a, b, c, the bias, the residual
    int64_t shapes[5][2], strides[5][2];
    unsigned char *memory[5]; // c's begins with a guard
    size_t bytes[5];
    double *expected, *bound; // m x n
    hone_value args[7];
} test_product;

void product_init(test_product *product, hone_signature *signature, product_case is);
void product_init_finished(
    test_product *product, hone_signature *signature, product_case is, product_epilogue epilogue);
void product_deinit(test_product *product);
// Fills c and what is around it with a pattern that is NaN in every dtype.
void product_poison(test_product *product);
// NULL when c is right and nothing else was written, else words that live until the next call.
const char *product_check(const test_product *product);

#endif
