// What the files of hone_stats share.
#ifndef HONE_RUNTIME_API_STATS_H
#define HONE_RUNTIME_API_STATS_H

#include "base/buffer.h"
#include "hone/stats.h"
#include "runtime/api/api.h"

typedef struct hone_stats_rows {
    hone_allocator allocator;
    hone_stats_row *rows;
    size_t count, capacity;
} hone_stats_rows;

// The runtime's own; their texts are its. Free with hone_free.
hone_status hone_stats_collect(hone_runtime *rt, hone_stats_rows *out, hone_error *err);
#endif
