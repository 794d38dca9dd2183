// Tensor maps: descriptions of a tensor for the copy engine (TMA) of compute capability 9.0. CUDA Driver API, "Tensor
// Map Object Management".
#include "platforms/cuda/loaded.h"

#include "base/error.h"
#include "call/call.h"
#include "hone/describe.h"
#include "hone/tensor.h"

#include <inttypes.h>

static const char where[] = "cuda.maps";

// The engine copies bytes: only the size of the type matters, and the fill value beyond the tensor, which is 0 in each
// type.
static bool type_of(hone_dtype dtype, int *out)
{
    const hone_dtype_info *info = hone_dtype_find(dtype);
    const unsigned bits = (unsigned)dtype.bits * dtype.lanes;
    if (info == NULL || bits % 8 != 0 || bits > 64) return false;
    *out = info->id == HONE_BF16  ? CUDA_MAP_BF16
           : info->id == HONE_F16 ? CUDA_MAP_F16
           : info->id == HONE_F32 ? CUDA_MAP_F32
           : info->id == HONE_F64 ? CUDA_MAP_F64
           : bits == 8            ? CUDA_MAP_U8
           : bits == 16           ? CUDA_MAP_U16
           : bits == 32           ? CUDA_MAP_I32
                                  : CUDA_MAP_I64;
    return true;
}

static int swizzle_of(unsigned bytes)
{
    return bytes == 0    ? CUDA_MAP_SWIZZLE_NONE
           : bytes == 32 ? CUDA_MAP_SWIZZLE_32
           : bytes == 64 ? CUDA_MAP_SWIZZLE_64
                         : CUDA_MAP_SWIZZLE_128;
}

// The size of a box's dim. If the box has fewer dims than the tensor, the tensor's first dims are joined into one.
static int64_t size_of(const hone_tensor *tensor, uint32_t rank, uint32_t dim)
{
    const uint32_t joined = (uint32_t)tensor->ndim - rank;
    if (dim > 0) return tensor->shape[joined + dim];
    int64_t size = 1;
    for (uint32_t i = 0; i <= joined; i++)
        if (__builtin_mul_overflow(size, tensor->shape[i], &size)) return INT64_MAX;
    return size;
}

// Reads the sizes and strides of a row-major tensor; false if the engine does not support it.
static bool read_dims(const hone_tensor *tensor, const hone_argument *argument, hone_cuda_map *out)
{
    uint64_t step = tensor->dtype.bits / 8u;
    bool fits = true;
    for (uint32_t i = 0; i < out->rank; i++) {
        const uint32_t dim = out->rank - 1 - i;
        const int64_t size = size_of(tensor, out->rank, dim);
        out->sizes[i] = (uint64_t)size;
        out->box[i] = (uint32_t)argument->as.map.last[dim] + 1;
        fits = fits && size > 0 && size <= (int64_t)UINT32_MAX + 1;
        if (i > 0) out->steps[i - 1] = step;
        fits = fits && (i == 0 || step % 16 == 0);
        fits = fits && !__builtin_mul_overflow(step, (uint64_t)size, &step);
    }
    return fits;
}

static hone_status read_map(const hone_argument *argument, const hone_plan *plan, hone_cuda_map *out, hone_error *err)
{
    const char *name = hone_signature_parameter(hone_call_signature(plan->call), argument->value)->name;
    const hone_tensor *tensor = hone_call_tensor(plan->call, argument->value);
    const uint32_t align = hone_call_align(plan->call, argument->value);
    out->rank = argument->as.map.rank;
    out->swizzle = swizzle_of(argument->as.map.swizzle);
    if (tensor->ndim < (int32_t)out->rank)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "map of %s: its box has %u dims, the tensor has only %d", name,
            (unsigned)out->rank, (int)tensor->ndim);
    if (!type_of(tensor->dtype, &out->type) || !read_dims(tensor, argument, out))
        return hone_fail(
            err, HONE_UNSUPPORTED, where,
            "map of %s: the copy engine takes elements of whole bytes, dims of 1 to 2^32, and rows of a multiple of 16 "
            "bytes",
            name);
    if (align == 0 || align % 16 == 0) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "map of %s: it is aligned to %u bytes, the copy engine asks for 16", name,
        (unsigned)align);
}

cuda_result hone_cuda_encode_map(const cuda_driver *driver, const hone_cuda_map *map, void *memory, void *out)
{
    static const uint32_t every[HONE_MAP_RANK] = {1, 1, 1, 1, 1};
    return driver->encode_map(
        out, map->type, map->rank, memory, map->sizes, map->steps, map->box, every, 0, map->swizzle,
        CUDA_MAP_PROMOTE_256, 0);
}

// Lets the driver check a box, before the first run. The address does not matter for that.
static hone_status try_map(hone_platform_instance *instance, const hone_cuda_map *map, hone_error *err)
{
    enum { ANY_ADDRESS = 1 << 20 };
    _Alignas(HONE_MAP_ALIGN) unsigned char made[HONE_MAP_BYTES];
    cuda_result result = hone_cuda_encode_map(&instance->driver, map, (void *)(uintptr_t)ANY_ADDRESS, made);
    if (result == CUDA_SUCCESS) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "cuTensorMapEncodeTiled does not take the map (%d): a box of %u x %u, swizzle %d",
        result, (unsigned)map->box[map->rank > 1 ? 1 : 0], (unsigned)map->box[0], map->swizzle);
}

hone_status hone_cuda_read_maps(hone_cuda_loaded *loaded, const hone_plan *plan, hone_error *err)
{
    hone_platform_instance *instance = loaded->instance;
    for (uint32_t i = 0; i < loaded->count; i++) {
        if (loaded->arguments[i].kind != HONE_ARGUMENT_MAP) continue;
        if (instance->driver.encode_map == NULL || loaded->gpu->info.capability < 90)
            return hone_fail(
                err, HONE_UNAVAILABLE, where,
                "tensor maps need a GPU of sm_90 or later and a driver of CUDA 12.0 or later");
        if (loaded->map_count == HONE_CUDA_MAPS)
            return hone_fail(err, HONE_UNSUPPORTED, where, "arguments: more than %d tensor maps", HONE_CUDA_MAPS);
        hone_cuda_map *map = &loaded->maps[loaded->map_count++];
        hone_status status = read_map(&loaded->arguments[i], plan, map, err);
        if (status == HONE_OK) status = try_map(instance, map, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}
