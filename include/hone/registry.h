// The kernel registry: algorithm -> kernels by platform, backend and priority.
//
// Registration is safe while other threads call: a new snapshot is published, readers never wait.
// Algorithm names are compared in Unicode lower case; platform and backend names are exact.
#ifndef HONE_REGISTRY_H
#define HONE_REGISTRY_H

#include "hone/kernel.h"
#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Registers an algorithm. A second one of equal name and version is refused unless its signature and
// reference are the same. A refused registration changes nothing.
HONE_API HONE_MUST_CHECK hone_status
hone_register_algorithm(hone_runtime *rt, const hone_algorithm *algorithm, hone_error *err);
// Registers count kernels, all or none. Structs and their strings are copied; functions and user pointers must stay.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (unknown algorithm, bad space or signature, a duplicate of
// (algorithm, platform, backend, name)); HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_register_kernels(hone_runtime *rt, const hone_kernel *kernels, size_t count, hone_error *err);
// The same, replacing duplicates. Plans of replaced kernels are made anew at the next call, but for those that are
// bound: they go on with the kernel that they were bound to. A replaced kernel is freed, with what was made for it,
// once no bound plan, no list of hone_registry_kernels and no running call, contest or explanation uses it. Its
// functions and user pointer must stay valid: there is no notification when the last user is gone.
HONE_API HONE_MUST_CHECK hone_status
hone_replace_kernels(hone_runtime *rt, const hone_kernel *kernels, size_t count, hone_error *err);

// A program's shared library exports a function of this name and type, with C linkage and default visibility, so that
// `hone --program LIBRARY` has its operations. It registers algorithms and kernels with the runtime that the command has
// opened, and is called once, in the command's only thread. A status that is not HONE_OK ends the command with err's
// message.
#define HONE_PROGRAM_REGISTER "hone_program_register"
typedef hone_status hone_program_register_function(hone_runtime *rt, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
