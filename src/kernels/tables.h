// The tables of the built-in algorithms, one line each.
#ifndef HONE_KERNELS_TABLES_H
#define HONE_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const hone_kernel_table hone_matmul_table;

#endif
