// Libraries of packs: code that runs when it is loaded and asked for its functions. That is tried in a worker first, once
// for each and before this process loads it, so that one that crashes then harms no program that takes its kernel.
#ifndef HONE_RUNTIME_LINKS_LIBRARIES_H
#define HONE_RUNTIME_LINKS_LIBRARIES_H

#include "runtime/links/links.h"

// Asks the libraries of a kernel for their functions, each in a worker. HONE_OK also where there are none, or no worker:
// then contests have none either. HONE_INCOMPATIBLE, HONE_KERNEL_FAILED and others with what went wrong.
hone_status hone_runtime_try_libraries(hone_runtime *rt, const hone_kernel *kernel, hone_error *why);
// The same, once in this process for a registered kernel that is about to be loaded.
hone_status hone_request_try_libraries(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why);

#endif
