// One product with everything a test needs around it: inputs, the right answer and its bound, guarded outputs.
#ifndef HONE_TESTS_KERNELS_MATMUL_PRODUCT_H
#define HONE_TESTS_KERNELS_MATMUL_PRODUCT_H

#include "hone/kernel.h"

// Where the products of a batch lie.
typedef enum product_layout {
    BATCH_FOLLOWS,   // one behind the other, with a gap
    BATCH_BETWEEN,   // row 0 of each, then row 1 of each: as heads lie in [tokens, heads, dim]
    BATCH_ONE_A,     // a is the same for all
    BATCH_ONE_B,     // b is
    BATCH_BACKWARDS, // the arrays that are read lie in the other order
    BATCH_LAYOUTS
} product_layout;

// None: one product.
typedef struct product_batch {
    int axes;
    int64_t sizes[2];
    product_layout lies;
} product_batch;

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
    product_batch batch;
    product_epilogue epilogue;
    hone_signature *signature; // borrowed
    hone_call *call;
    hone_tensor tensors[5]; // a, b, c, the bias, the residual
    int64_t shapes[5][4], strides[5][4];
    unsigned char *memory[5]; // c's begins with a guard
    size_t bytes[5];
    bool *inside;             // bytes of elements of c
    double *expected, *bound; // products x m x n
    hone_value args[7];
} test_product;

void product_init(test_product *product, hone_signature *signature, product_case is);
void product_init_finished(
    test_product *product, hone_signature *signature, product_case is, product_epilogue epilogue);
void product_init_batch(
    test_product *product, hone_signature *signature, product_case is, product_epilogue epilogue, product_batch batch);
void product_deinit(test_product *product);
// Fills c and what is around it with a pattern that is NaN in every dtype.
void product_poison(test_product *product);
// NULL when c is right and nothing else was written, else words that live until the next call.
const char *product_check(const test_product *product);

#endif
