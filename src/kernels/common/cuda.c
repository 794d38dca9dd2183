// Chooses a config for kernels over rows that is likely to be fast on a GPU.
#include "kernels/common/cuda.h"

#include "kernels/vector/arguments.h"

enum { THREADS_PER_ROW, ROWS_PER_BLOCK, VECTOR, KEEP, CLUSTER, PARAMETERS };

int64_t hone_cuda_vector(int64_t dim, const hone_dtype_info *dtype)
{
    int64_t vector = 1;
    while (vector * 2 * dtype->bits <= 128 && dim % (vector * 2) == 0)
        vector *= 2;
    return vector;
}

// Two to four packs for each thread; one if a few threads are enough, or if there are too few rows for the
// multiprocessors.
static int64_t threads_of(int64_t packs, bool is_few, int64_t most)
{
    int64_t threads = 4;
    while (threads < most && (threads < 32 || is_few ? threads < packs : threads * 4 < packs))
        threads *= 2;
    return threads;
}

static bool has_clusters(const hone_device_info *device)
{
    return device != NULL && device->capability >= 90;
}

// The size of a cluster, for a row that is too long for the threads of one block.
static int64_t cluster_of(int64_t packs, int64_t threads, const hone_device_info *device)
{
    int64_t cluster = 1;
    while (has_clusters(device) && cluster < 8 && threads * cluster * 4 < packs)
        cluster *= 2;
    return cluster;
}

// The least power of two that covers the row; 0 if it does not fit into registers.
static int64_t kept_of(int64_t packs, int64_t threads, int64_t vector)
{
    int64_t keep = 1;
    while (keep * threads < packs)
        keep *= 2;
    return keep <= 16 && keep * vector <= 64 && (threads < 1024 || keep * vector <= 32) ? keep : 0;
}

// Whether a row, one of few, is longer than what a cluster's registers hold well: it is then read twice, the second
// time from L2.
static bool is_read_twice(int64_t packs, bool is_few, const hone_device_info *device)
{
    return is_few && cluster_of(packs, 512, device) == 8;
}

// Halves an access of 16 bytes and doubles the threads, if rows fill the device and each has enough work for a warp:
// blocks of more than 256 threads need more rows.
static int64_t narrowed(
    int64_t vector, int64_t dim, int64_t rows, const hone_dtype_info *dtype, const hone_device_info *device)
{
    const int64_t packs = 2 * dim / vector, sms = device != NULL ? device->sms : 0;
    const int64_t least = threads_of(packs, false, 1024) > 256 ? 8 * sms : sms;
    return vector * dtype->bits == 128 && packs >= 128 && rows >= least ? vector / 2 : vector;
}

// How often a row is read if it does not fit into registers, and whether other arrays are read too.
typedef enum rows_sort {
    READ_OFTEN, // three times
    READ_TWICE,
    READ_WIDE, // with two other arrays: accesses of half the width are slower
} rows_sort;

static bool choose_rows(
    const hone_call *call, const hone_device_info *device, rows_sort rows_are, hone_config *out_config)
{
    const int64_t dim = hone_dim_of(call, "dim");
    if (dim == 0) return false;
    const int64_t rows = hone_tensor_elements(hone_call_tensor(call, 0)) / dim;
    const hone_dtype_info *dtype = hone_call_dtype(call, "T");
    const int64_t widest = hone_cuda_vector(dim, dtype);
    const bool is_few = device != NULL && rows < device->sms;
    const bool is_twice = rows_are == READ_TWICE && widest > 1 && is_read_twice(dim / widest, is_few, device);
    const int64_t vector = is_twice                ? widest / 2
                           : rows_are != READ_WIDE ? narrowed(widest, dim, rows, dtype, device)
                                                   : widest;
    const int64_t packs = dim / vector;
    // Two blocks of 512 threads fit into a multiprocessor, while one of 1,024 may use up its registers alone.
    const bool is_long = dim / widest > 4096 && has_clusters(device);
    const int64_t threads = is_twice ? 256 : threads_of(packs, is_few, is_long ? 512 : 1024);
    const int64_t cluster = cluster_of(packs, threads, device);
    int64_t *values = out_config->values;
    out_config->count = PARAMETERS;
    values[THREADS_PER_ROW] = threads;
    values[ROWS_PER_BLOCK] = threads < (vector < widest ? 64 : 128) ? 128 / threads : 1;
    values[VECTOR] = vector;
    values[KEEP] = is_twice ? 0 : kept_of(packs, threads * cluster, vector);
    values[CLUSTER] = cluster;
    return true;
}

bool hone_rows_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    return choose_rows(call, device, READ_OFTEN, out_config);
}

bool hone_rows_cuda_wide_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    return choose_rows(call, device, READ_WIDE, out_config);
}

bool hone_rms_rows_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    return choose_rows(call, device, READ_TWICE, out_config);
}
