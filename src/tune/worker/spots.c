#include "tune/worker/spots.h"

#include "base/assert.h"
#include "base/random.h"
#include "call/call.h"

#include <string.h>

enum { OTHER_BITS = 0x55 };

static bool is_real(hone_dtype dtype)
{
    return dtype.code != HONE_CODE_INT && dtype.code != HONE_CODE_UINT && dtype.code != HONE_CODE_BOOL;
}

// Whether a result can be distinguished from what its place was overwritten with. A small integer may be equal to that
// when inputs have changed.
static bool is_told_apart(hone_dtype dtype)
{
    return is_real(dtype) || dtype.code == HONE_CODE_BOOL || dtype.bits >= 32;
}

static bool has_spots(const hone_buffers *buffers, size_t index)
{
    const hone_tensor *tensor = &buffers->sets[0].fenced[index].tensor;
    return hone_buffers_is_result(buffers, index) && tensor->dtype.bits % 8 == 0 && is_told_apart(tensor->dtype) &&
           tensor->dtype.bits / 8 <= HONE_MOST_SPOT_BYTES && hone_tensor_elements(tensor) > 0;
}

static uint32_t count_results(const hone_buffers *buffers)
{
    uint32_t count = 0;
    for (size_t i = 0; i < buffers->count; i++)
        count += has_spots(buffers, i);
    return count;
}

// The parameter of the n-th result that can have spots.
static uint32_t nth_result(const hone_buffers *buffers, uint32_t n)
{
    for (uint32_t i = 0; i < buffers->count; i++)
        if (has_spots(buffers, i) && n-- == 0) return i;
    hone_assert(false);
    return 0;
}

static void choose_element(hone_spot *spot, const hone_tensor *tensor, uint64_t *random)
{
    spot->index = (int64_t)(hone_random_next(random) % (uint64_t)hone_tensor_elements(tensor));
    spot->size = tensor->dtype.bits / 8;
    spot->offset = hone_tensor_offset(tensor, spot->index);
}

static hone_status choose_one(
    hone_spot *spot, const hone_buffers *buffers, size_t set, uint64_t *random, hone_error *err)
{
    const hone_fenced *fenced = &buffers->sets[set].fenced[spot->value];
    choose_element(spot, &fenced->tensor, random);
    memset(spot->poison, HONE_POISON_BYTE, sizeof spot->poison);
    if (!is_real(fenced->tensor.dtype)) {
        hone_status status = hone_buffers_read(buffers, fenced, spot->offset, spot->poison, spot->size, err);
        if (status != HONE_OK) return status;
        for (uint32_t b = 0; b < spot->size; b++)
            spot->poison[b] ^= OTHER_BITS;
    }
    return HONE_OK;
}

hone_status hone_spots_choose(
    hone_spots *spots, const hone_buffers *buffers, size_t set, uint32_t most, uint64_t *random, hone_error *err)
{
    const uint32_t results = count_results(buffers);
    hone_assert(set < buffers->set_count && most <= HONE_MOST_SPOTS);
    spots->set = set;
    spots->count = 0;
    while (results > 0 && spots->count < most) {
        hone_spot *spot = &spots->spots[spots->count];
        spot->value = nth_result(buffers, hone_random_below(random, results));
        hone_status status = choose_one(spot, buffers, set, random, err);
        if (status != HONE_OK) return status;
        spots->count++;
    }
    return HONE_OK;
}

hone_status hone_spots_set(
    hone_spots *spots, const hone_buffers *buffers, size_t set, uint32_t most, uint64_t *random, hone_error *err)
{
    hone_status status = hone_spots_choose(spots, buffers, set, most, random, err);
    return status == HONE_OK ? hone_spots_overwrite(spots, buffers, err) : status;
}

hone_status hone_spots_overwrite(const hone_spots *spots, const hone_buffers *buffers, hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t i = 0; i < spots->count && status == HONE_OK; i++) {
        const hone_spot *spot = &spots->spots[i];
        const hone_fenced *fenced = &buffers->sets[spots->set].fenced[spot->value];
        status = hone_buffers_write(buffers, fenced, spot->offset, spot->poison, spot->size, err);
    }
    return status;
}

void hone_spots_overwrite_one(const hone_spots *spots, const hone_buffers *buffers)
{
    if (spots->count == 0) return;
    const hone_spot *spot = &spots->spots[0];
    const hone_fenced *fenced = &buffers->sets[spots->set].fenced[spot->value];
    hone_assert(fenced->device_block == NULL && spot->size <= sizeof spot->poison);
    memcpy((char *)fenced->tensor.data + spot->offset, spot->poison, spot->size);
}

hone_status hone_spots_left(
    const hone_spots *spots, const hone_buffers *buffers, uint32_t *out_left, uint32_t *out_first, hone_error *err)
{
    *out_left = 0;
    for (uint32_t i = 0; i < spots->count; i++) {
        const hone_spot *spot = &spots->spots[i];
        unsigned char now[HONE_MOST_SPOT_BYTES];
        const hone_fenced *fenced = &buffers->sets[spots->set].fenced[spot->value];
        hone_status status = hone_buffers_read(buffers, fenced, spot->offset, now, spot->size, err);
        if (status != HONE_OK) return status;
        if (memcmp(now, spot->poison, spot->size) != 0) continue;
        if ((*out_left)++ == 0) *out_first = i;
    }
    return HONE_OK;
}
