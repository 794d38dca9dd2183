#include "xla_ffi/host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

// A context that a program may name by its digest, and what its calls run under: itself, or where it would tune, one
// derived from it.
typedef struct known_context {
    struct known_context *next;
    hone_runtime *rt;
    uint64_t digest;
    hone_context *context, *quiet;
} known_context;

static _Atomic(hone_runtime *) runtime;
static hone_runtime *own;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static known_context *contexts;

void hone_xla_use(hone_runtime *rt)
{
    atomic_store_explicit(&runtime, rt, memory_order_release);
}

hone_runtime *hone_xla_runtime_now(void)
{
    return atomic_load_explicit(&runtime, memory_order_acquire);
}

// A runtime that nobody has given is never closed: threads of XLA may be calling it to the end.
static void write_record(void)
{
    (void)!hone_record_flush(own, NULL);
}

hone_runtime *hone_xla_runtime(hone_error *err)
{
    hone_runtime *rt = hone_xla_runtime_now();
    if (rt != NULL) return rt;
    pthread_mutex_lock(&mutex);
    rt = hone_xla_runtime_now();
    if (rt == NULL && hone_runtime_open(NULL, &rt, err) == HONE_OK) {
        hone_xla_use(rt);
        own = rt;
        (void)!atexit(write_record);
    }
    pthread_mutex_unlock(&mutex);
    return rt;
}

// rt NULL: of any runtime.
static known_context *find(const hone_runtime *rt, uint64_t digest)
{
    known_context *known = contexts;
    while (known != NULL && !((rt == NULL || known->rt == rt) && known->digest == digest))
        known = known->next;
    return known;
}

static known_context *add(hone_runtime *rt, hone_context *context)
{
    known_context *known = find(rt, hone_context_digest(context));
    if (known != NULL) return known;
    known = calloc(1, sizeof *known);
    if (known == NULL) return NULL;
    *known = (known_context){contexts, rt, hone_context_digest(context), hone_context_retain(context), NULL};
    contexts = known;
    return known;
}

static hone_status fail_memory(hone_error *err)
{
    if (err != NULL) *err = (hone_error){HONE_OUT_OF_MEMORY, 0, "xla", "out of memory"};
    return HONE_OUT_OF_MEMORY;
}

// Under the mutex.
static hone_status quieten(known_context *known, hone_error *err)
{
    if (known->quiet != NULL || hone_policy_of(known->rt, known->context) != HONE_POLICY_TUNE) return HONE_OK;
    return hone_context_derive(known->rt, known->context, NULL, NULL, HONE_POLICY_HEURISTIC, &known->quiet, err);
}

hone_status hone_xla_quiet(hone_runtime *rt, hone_context *context, hone_context **out, hone_error *err)
{
    pthread_mutex_lock(&mutex);
    known_context *known = add(rt, context);
    hone_status status = known != NULL ? quieten(known, err) : fail_memory(err);
    if (status == HONE_OK) *out = known->quiet != NULL ? known->quiet : known->context;
    pthread_mutex_unlock(&mutex);
    return status;
}

// One that was made known under another runtime serves too: it says the same.
hone_status hone_xla_context(hone_runtime *rt, uint64_t digest, hone_context **out, hone_error *err)
{
    pthread_mutex_lock(&mutex);
    const known_context *known = find(rt, digest);
    if (known == NULL && digest != 0) known = find(NULL, digest);
    hone_context *context = known != NULL ? known->context : NULL;
    pthread_mutex_unlock(&mutex);
    return hone_xla_quiet(rt, context, out, err);
}

hone_status hone_xla_add_context(hone_context *context, hone_error *err)
{
    hone_context *quiet;
    hone_runtime *rt = hone_xla_runtime(err);
    if (rt == NULL) return err != NULL ? err->status : HONE_UNAVAILABLE;
    return hone_xla_quiet(rt, context, &quiet, err);
}
