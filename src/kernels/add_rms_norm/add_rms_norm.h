// A residual is added and the sum normalised: sum = x + residual, y = sum / sqrt(mean(sum^2) + eps) * weight over the
// last axis. The norm is computed from the stored sum, rounded to its dtype: the result equals that of an addition
// followed by rms_norm.
#ifndef HONE_KERNELS_ADD_RMS_NORM_H
#define HONE_KERNELS_ADD_RMS_NORM_H

#include "kernels/rms_norm/rms_norm.h"

// The order of values. The space's parameters are rms_norm's.
enum { ADD_RMS_NORM_X, ADD_RMS_NORM_RESIDUAL, ADD_RMS_NORM_WEIGHT, ADD_RMS_NORM_SUM, ADD_RMS_NORM_Y, ADD_RMS_NORM_EPS };

// The norm of the sum: its x is the array of sums.
hone_rms_norm hone_add_rms_norm_of(const hone_plan *plan, const hone_value *args);

hone_run_function hone_add_rms_norm_reference, hone_add_rms_norm_portable, hone_add_rms_norm_avx2,
    hone_add_rms_norm_avx512;

// xla.c: the kernel of XLA.
extern const hone_code hone_add_rms_norm_xla_code;
extern const char hone_add_rms_norm_xla_space[];

#endif
