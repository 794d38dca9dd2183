// Libraries of packs: their code runs when they are loaded and asked for their functions. A worker tries that first,
// once for each library and before this process loads it, so that a library that crashes then does not harm the
// program.
#ifndef HONE_RUNTIME_LINKS_LIBRARIES_H
#define HONE_RUNTIME_LINKS_LIBRARIES_H

#include "runtime/links/links.h"

// Tries the libraries of a kernel, each in a worker. HONE_OK also if there are no libraries, or no worker: contests
// then have none either. HONE_INCOMPATIBLE, HONE_KERNEL_FAILED and others with the reason.
hone_status hone_runtime_try_libraries(hone_runtime *rt, const hone_kernel *kernel, hone_error *why);
// The same, once per process for a registered kernel that is about to be loaded.
hone_status hone_request_try_libraries(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why);

#endif
