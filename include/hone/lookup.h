// Looking into the registry: kernels by a query, all of an algorithm, and one of them run by itself; signatures compared.
#ifndef HONE_LOOKUP_H
#define HONE_LOOKUP_H

#include "hone/kernel.h"
#include "hone/runtime.h"
#include "hone/space.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_query {
    const char *algorithm;
    hone_platform platform; // NONE: any; AUTO; or one
    hone_backend backend; // NONE: hardware that is present; ANY: only "any" kernels, then the default backend's; or one
} hone_query;

// A kernel of the registry. The result of hone_registry_get lives as long as the runtime, also when it is replaced: it
// cannot be released.
typedef struct hone_kernel_ref hone_kernel_ref;

// The kernel of highest priority among the matches (then the earliest registered), those whose instructions this machine lacks
// last, and only where a backend is named; after bounded fall-backs:
// backend any falls back to the default backend; another backend on platform xla falls back to backend any.
// Returns: HONE_OK; HONE_NOT_FOUND with the query and the candidates; HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status
hone_registry_get(hone_runtime *rt, const hone_query *query, const hone_kernel_ref **out_kernel, hone_error *err);
HONE_API const hone_kernel *hone_kernel_of(const hone_kernel_ref *kernel);
// Its space, with one config where it has no parameters. Borrowed from the kernel.
HONE_API const hone_space *hone_kernel_space(const hone_kernel_ref *kernel);
// Whether a kernel can run a call on a device.
//   call    NULL for any call
//   device  NULL for any device of this machine; then the reason is that of the first one that it might run on
// Returns: HONE_OK; else the reason: HONE_UNSUPPORTED, HONE_UNAVAILABLE (its platform, its library, or a device for it, is not
// here), or what is wrong with the pack that brought it.
HONE_API HONE_MUST_CHECK hone_status hone_kernel_check(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, hone_error *err);
// The config of a kernel without measuring: its heuristic's, else the first of its candidates, else the space's default.
// Returns: HONE_OK; HONE_NOT_FOUND (the space is empty for this call); as hone_bound_space_default.
HONE_API HONE_MUST_CHECK hone_status hone_kernel_default(
    const hone_kernel_ref *kernel,
    const hone_call *call,
    const hone_device_info *device,
    hone_config *out_config,
    hone_error *err);
// Runs such a kernel with its default config, checked like any call; unsupported parameters are refused before
// the kernel runs, and a failure becomes HONE_KERNEL_FAILED with algorithm, kernel, call text and cause.
HONE_API HONE_MUST_CHECK hone_status hone_kernel_run(
    const hone_kernel_ref *kernel,
    const hone_value *args,
    size_t count,
    const hone_execution *execution,
    hone_error *err);

// Names of all algorithms, lower case, sorted by code point. The array and its strings are one block:
// free it with hone_names_release.
HONE_API HONE_MUST_CHECK hone_status
hone_registry_algorithms(hone_runtime *rt, char ***out_names, size_t *out_count, hone_error *err);
HONE_API void hone_names_release(char ***names);
// The name that a misspelt one was meant to be, for messages: up to a third of its letters are wrong, missing, too many or swapped, or it is
// the name's first words.
// Returns: the nearest of the names, of equally near ones the first; NULL when none is near, or given or names is NULL.
HONE_API const char *hone_names_nearest(const char *given, const char *const *names, size_t count);
// The kernels of an algorithm by falling priority; none for an unknown one. Free with hone_kernels_release: until then
// each lives, also when it is replaced meanwhile.
HONE_API HONE_MUST_CHECK hone_status hone_registry_kernels(
    hone_runtime *rt, const char *algorithm, const hone_kernel_ref ***out_kernels, size_t *out_count, hone_error *err);
HONE_API void hone_kernels_release(const hone_kernel_ref ***kernels);

// Compares the signatures of all kernels of an algorithm (NULL for every algorithm), every pair: names in
// order, kinds, defaults, types after normalisation; tuning parameters are left out.
//   visit    gets a line for each mismatch, and with verbose for each kernel, until it returns false; may be NULL
//   *out_ok  true when all agree, also those that were not visited
// Returns: HONE_OK; HONE_NOT_FOUND for an unknown algorithm.
HONE_API HONE_MUST_CHECK hone_status hone_validate_signatures(
    hone_runtime *rt,
    const char *algorithm,
    bool verbose,
    bool (*visit)(void *ctx, const char *line),
    void *ctx,
    bool *out_ok,
    hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
