// Runs kernels of matmul at configs from their spaces and holds them to a sum in double.
#ifndef HONE_TESTS_KERNELS_MATMUL_HARNESS_H
#define HONE_TESTS_KERNELS_MATMUL_HARNESS_H

#include "kernels/tables.h"
#include "os/os.h"
#include "product.h"

typedef struct test_machine {
    hone_os_cpu cpu;
    hone_device_info device;
    hone_signature *signature;
} test_machine;

// Which kernels of the table.
typedef bool test_kernels(const hone_kernel *kernel);

// How often kernels shared work out, and in how many pieces together (parallel.c).
extern int parallel_calls, parallel_pieces;

// For cmocka: *state becomes a test_machine.
int machine_set_up(void **state);
int machine_tear_down(void **state);

// Why a kernel cannot run a call here, or NULL.
const char *reason_against(const test_machine *machine, const hone_kernel *kernel, const hone_call *call);
// One run at the heuristic's config, whose results the caller looks at. False: it cannot be prepared here.
bool run_once(const test_machine *machine, const hone_kernel *kernel, test_product *product);
// Runs the heuristic's config and some of the space's. Returns how many ran.
int run_kernel(const test_machine *machine, const hone_kernel *kernel, test_product *product, uint64_t seed);
// The same at batches, however their products lie, with and without what follows the sums.
void run_batches(const test_machine *machine, test_kernels *kernels, hone_dtype_id dtype, bool transpose_b);
// Those of the kernels that can run it.
void run_kernels(const test_machine *machine, test_kernels *kernels, product_case is);
// Likewise; returns how many could.
int run_finished(const test_machine *machine, test_kernels *kernels, product_case is, product_epilogue epilogue);
// The same at odd shapes with and without gaps between the rows.
void run_shapes(const test_machine *machine, test_kernels *kernels, hone_dtype_id dtype, bool transpose_b);

#endif
