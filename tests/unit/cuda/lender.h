// A host that lends device memory to a run.
#ifndef HONE_TESTS_CUDA_LENDER_H
#define HONE_TESTS_CUDA_LENDER_H

#include "hone/hone.h"

typedef struct lender {
    _Alignas(256) char memory[4096];
    int asked, out;
    bool empty, askew; // has none left; gives memory that is not aligned as the driver's
} lender;

static void *lender_take(void *ctx, size_t size)
{
    lender *host = ctx;
    host->asked++;
    if (host->empty || size > sizeof host->memory - 1) return NULL;
    host->out++;
    return host->memory + (host->askew ? 1 : 0);
}

static void lender_give_back(void *ctx, void *taken, size_t size)
{
    lender *host = ctx;
    (void)size;
    if (taken == host->memory + (host->askew ? 1 : 0)) host->out--;
}

static inline hone_execution lender_execution(lender *host, void *stream)
{
    return (hone_execution){
        .struct_size = sizeof(hone_execution),
        .stream = stream,
        .take = lender_take,
        .give_back = lender_give_back,
        .memory = host,
    };
}

#endif
