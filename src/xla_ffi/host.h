// What all calls share: the runtime, and the contexts that programs name by their digests.
#ifndef HONE_XLA_FFI_HOST_H
#define HONE_XLA_FFI_HOST_H

#include "xla_ffi/xla_ffi.h"

// The runtime; opened now when nobody gave one. NULL: it could not be opened.
hone_runtime *hone_xla_runtime(hone_error *err);
// The same when it is there already. For the hot path.
hone_runtime *hone_xla_runtime_now(void);
// The context to run under for a digest: one that does not tune. NULL: none, also where it is not known.
hone_status hone_xla_context(hone_runtime *rt, uint64_t digest, hone_context **out, hone_error *err);
// The same for a context itself, which may be NULL.
hone_status hone_xla_quiet(hone_runtime *rt, hone_context *context, hone_context **out, hone_error *err);

#endif
