// XLA's threads as the pool of a run.
#ifndef HONE_XLA_FFI_THREADS_H
#define HONE_XLA_FFI_THREADS_H

#include "xla_ffi/xla_ffi.h"

typedef struct hone_xla_pool {
    const xla_ffi_api *api;
    xla_ffi_context *context;
} hone_xla_pool;

// XLA's threads, the caller counted in; 0 when it lends none.
int32_t hone_xla_threads(const hone_xla_pool *pool);
// A hone_parallel_for over a hone_xla_pool.
void hone_xla_parallel_for(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);

#endif
