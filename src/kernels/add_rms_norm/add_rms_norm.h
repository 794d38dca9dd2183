// A residual added and the sum normalised: sum = x + residual, y = sum / sqrt(mean(sum^2) + eps) * weight over the last
// axis. The norm is that of the sum as it is stored, rounded to its dtype: what an addition and rms_norm give in turn.
#ifndef HONE_KERNELS_ADD_RMS_NORM_H
#define HONE_KERNELS_ADD_RMS_NORM_H

#include "kernels/rms_norm/rms_norm.h"

// The order of values. The space's parameters are rms_norm's.
enum { ADD_RMS_NORM_X, ADD_RMS_NORM_RESIDUAL, ADD_RMS_NORM_WEIGHT, ADD_RMS_NORM_SUM, ADD_RMS_NORM_Y, ADD_RMS_NORM_EPS };

// The norm of the sum, whose rows are x of what it gives.
hone_rms_norm hone_add_rms_norm_of(const hone_plan *plan, const hone_value *args);

hone_run_function hone_add_rms_norm_reference, hone_add_rms_norm_portable, hone_add_rms_norm_avx2,
    hone_add_rms_norm_avx512;

// xla.c: the kernel of XLA.
extern const hone_code hone_add_rms_norm_xla_code;
extern const char hone_add_rms_norm_xla_space[];

#endif
