// The built-in algorithms: a folder for each, whose kernel.cmake adds it to the library (folders.cmake).
#ifndef HONE_KERNELS_KERNELS_H
#define HONE_KERNELS_KERNELS_H

#include "registry/registry.h"

// One algorithm with its kernels: hone_NAME_table, in the table.c of a folder whose kernel.cmake names it.
typedef struct hone_kernel_table {
    const hone_algorithm *algorithm;
    const hone_kernel *kernels;
    size_t count;
} hone_kernel_table;

// Registers every built-in algorithm and kernel.
hone_status hone_kernels_register(hone_registry *registry, hone_error *err);

#endif
