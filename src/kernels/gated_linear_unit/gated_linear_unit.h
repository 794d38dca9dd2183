// y = activation(x W0) * (x W1), with W0 = weights[:, 0] and W1 = weights[:, 1].
#ifndef HONE_KERNELS_GATED_LINEAR_UNIT_H
#define HONE_KERNELS_GATED_LINEAR_UNIT_H

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { GATED_X, GATED_WEIGHTS, GATED_Y, GATED_ACTIVATION };
enum { GATED_ROWS, GATED_VECTORS, GATED_THREADS };

typedef enum hone_activation {
    ACTIVATION_NONE,
    ACTIVATION_SILU,
    ACTIVATION_SIGMOID,
    ACTIVATION_RELU,
    ACTIVATION_GELU, // in its tanh form
    ACTIVATION_TANH,
    ACTIVATION_COUNT
} hone_activation;

// ACTIVATION_COUNT if the name is unknown.
hone_activation hone_activation_of(const hone_value *value);

hone_run_function hone_gated_linear_unit_reference, hone_gated_linear_unit_portable, hone_gated_linear_unit_avx2,
    hone_gated_linear_unit_avx512;

#endif
