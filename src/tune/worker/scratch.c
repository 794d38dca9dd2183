#include "tune/worker/scratch.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "tune/worker/bulk.h"

#include <string.h>

// The guard's size. On a device views begin at multiples of hone_platform_ops.view_align, which is not larger.
enum { GUARD_SIZE = 4096 };
// Number of cache lines at which one that roams may begin: those of 256 pages, which lie anywhere in the memory.
enum { PLACES = 256 * 4096 / HONE_SCRATCH_ALIGN };

static const char where[] = "tune.scratch";

// The device's ------------------------------------------------------------------------------------------------------

static void let_go(hone_guarded_scratch *scratch)
{
    const hone_site *site = scratch->site;
    if (site != NULL && site->ops->view != NULL) hone_site_free(site, scratch->inner, scratch->taken_size);
    if (site != NULL) hone_site_free(site, scratch->memory, scratch->taken_size + 2 * GUARD_SIZE);
    scratch->memory = scratch->inner = NULL;
    scratch->taken_size = 0;
}

static hone_status fill(const hone_guarded_scratch *scratch, hone_error *err)
{
    const size_t size = scratch->taken_size;
    hone_status status =
        hone_site_fill(scratch->site, (hone_place){scratch->memory, 0}, HONE_GUARD_BYTE, GUARD_SIZE, err);
    if (status == HONE_OK)
        status = hone_site_fill(scratch->site, (hone_place){scratch->memory, GUARD_SIZE}, HONE_POISON_BYTE, size, err);
    if (status != HONE_OK) return status;
    return hone_site_fill(
        scratch->site, (hone_place){scratch->memory, GUARD_SIZE + size}, HONE_GUARD_BYTE, GUARD_SIZE, err);
}

static hone_status make(hone_guarded_scratch *scratch, size_t size)
{
    const hone_site *site = scratch->site;
    hone_assert(site->ops->view_align <= GUARD_SIZE);
    if (size > SIZE_MAX - 2 * GUARD_SIZE) return HONE_OUT_OF_MEMORY;
    hone_status status =
        site->ops->allocate(site->instance, site->device, size + 2 * GUARD_SIZE, &scratch->memory, NULL);
    if (status != HONE_OK) return status;
    scratch->taken_size = size;
    if (site->ops->view != NULL)
        status = site->ops->view(site->instance, scratch->memory, GUARD_SIZE, size, &scratch->inner, NULL);
    else
        scratch->inner = (char *)scratch->memory + GUARD_SIZE;
    return status == HONE_OK ? fill(scratch, NULL) : status;
}

// While the stream is captured no memory may be allocated.
static bool is_captured(const hone_site *site)
{
    return site->ops->is_capturing != NULL && site->ops->is_capturing(site->instance, site->device, site->stream);
}

// Gives a run its memory. NULL: the run uses the driver's memory, without guards.
static void *take(void *memory, size_t size)
{
    hone_guarded_scratch *scratch = memory;
    if (size == 0 || atomic_exchange(&scratch->taken, true)) return NULL;
    if (size != scratch->taken_size && !is_captured(scratch->site)) {
        let_go(scratch);
        if (make(scratch, size) != HONE_OK) let_go(scratch);
    }
    if (size == scratch->taken_size) return scratch->inner;
    atomic_store(&scratch->taken, false);
    return NULL;
}

// Called after the launch. The candidate's next run comes later on the same stream.
static void give_back(void *memory, void *taken, size_t size)
{
    hone_guarded_scratch *scratch = memory;
    hone_assert(taken == scratch->inner && size == scratch->taken_size);
    (void)taken;
    (void)size;
    atomic_store(&scratch->taken, false);
}

// Both ----------------------------------------------------------------------------------------------------------------

static char *place_of(const hone_guarded_scratch *scratch, uint32_t index)
{
    const uintptr_t first = (uintptr_t)scratch->block + GUARD_SIZE;
    const size_t rest = (HONE_SCRATCH_ALIGN - first % HONE_SCRATCH_ALIGN) % HONE_SCRATCH_ALIGN;
    return scratch->block + GUARD_SIZE + rest + index * (size_t)HONE_SCRATCH_ALIGN;
}

static hone_status take_host(
    hone_guarded_scratch *scratch, size_t size, uint32_t places, hone_execution *execution, hone_error *err)
{
    const size_t more =
        2 * GUARD_SIZE + (size_t)places * HONE_SCRATCH_ALIGN; // the last place's line is for the alignment
    if (size <= SIZE_MAX - more) scratch->block = hone_alloc(&scratch->allocator, size + more);
    if (scratch->block == NULL)
        return hone_fail(err, HONE_OUT_OF_MEMORY, where, "no memory for %zu bytes of scratch", size);
    scratch->data = place_of(scratch, 0);
    scratch->size = size;
    scratch->places = places;
    execution->scratch = scratch->data;
    execution->scratch_bytes = size;
    return hone_guarded_scratch_poison(scratch, NULL, err);
}

hone_status hone_guarded_scratch_init(
    hone_guarded_scratch *scratch,
    const hone_allocator *allocator,
    const hone_site *site,
    size_t size,
    hone_execution *execution,
    hone_error *err)
{
    memset(scratch, 0, sizeof *scratch);
    scratch->allocator = *allocator;
    scratch->site = hone_site_is_host(site) ? NULL : site;
    if (scratch->site != NULL || size > 0) execution->struct_size = sizeof *execution;
    if (scratch->site != NULL) {
        execution->take = take;
        execution->give_back = give_back;
        execution->memory = scratch;
    }
    return size > 0 ? take_host(scratch, size, 1, execution, err) : HONE_OK;
}

void hone_guarded_scratch_deinit(hone_guarded_scratch *scratch)
{
    let_go(scratch);
    if (scratch->block != NULL) hone_free(&scratch->allocator, scratch->block);
    memset(scratch, 0, sizeof *scratch);
}

static void fill_guards(const hone_guarded_scratch *scratch)
{
    memset(scratch->data - GUARD_SIZE, HONE_GUARD_BYTE, GUARD_SIZE);
    memset(scratch->data + scratch->size, HONE_GUARD_BYTE, GUARD_SIZE);
}

hone_status hone_guarded_scratch_poison(const hone_guarded_scratch *scratch, hone_pool *pool, hone_error *err)
{
    if (scratch->block != NULL) {
        fill_guards(scratch);
        hone_bulk_fill(pool, scratch->data, HONE_POISON_BYTE, scratch->size);
    }
    return scratch->memory != NULL ? fill(scratch, err) : HONE_OK;
}

bool hone_guarded_scratch_is_untouched(const hone_guarded_scratch *scratch)
{
    for (size_t i = 0; scratch->block != NULL && i < scratch->size; i++)
        if ((unsigned char)scratch->data[i] != HONE_POISON_BYTE) return false;
    return true;
}

// Distance of the farthest byte that was written, into the guard that begins at `guard` and goes on in steps of `step`;
// 0: none.
static size_t reach_of(const char *guard, ptrdiff_t step)
{
    const char *low = step > 0 ? guard : guard - (GUARD_SIZE - 1);
    if ((unsigned char)low[0] == HONE_GUARD_BYTE && memcmp(low, low + 1, GUARD_SIZE - 1) == 0) return 0; // as a rule
    for (ptrdiff_t far = GUARD_SIZE; far > 0; far--)
        if ((unsigned char)guard[(far - 1) * step] != HONE_GUARD_BYTE) return (size_t)far;
    return 0;
}

static hone_failure check_guards(const char *below, const char *above, size_t size, const char *whose, hone_error *err)
{
    const size_t before = reach_of(below + GUARD_SIZE - 1, -1), past = reach_of(above, 1);
    const size_t far = past > 0 ? past : before;
    if (far == 0) return HONE_FAILURE_NONE;
    hone_fail(
        err, HONE_KERNEL_FAILED, where, "wrote %zu byte%s %s its scratch%s of %zu byte%s", far, far == 1 ? "" : "s",
        past > 0 ? "past the end of" : "before the start of", whose, size, size == 1 ? "" : "s");
    return HONE_FAILURE_BOUNDS;
}

static hone_failure check_host(const hone_guarded_scratch *scratch, hone_error *err)
{
    if (scratch->block == NULL) return HONE_FAILURE_NONE;
    return check_guards(scratch->data - GUARD_SIZE, scratch->data + scratch->size, scratch->size, "", err);
}

hone_status hone_guarded_scratch_roam(hone_guarded_scratch *scratch, hone_execution *execution, hone_error *err)
{
    char *before = scratch->block;
    if (before == NULL) return HONE_OK;
    scratch->block = NULL;
    const hone_status status = take_host(scratch, scratch->size, PLACES, execution, err);
    if (status == HONE_OK)
        hone_free(&scratch->allocator, before);
    else
        scratch->block = before;
    return status;
}

hone_failure hone_guarded_scratch_move(hone_guarded_scratch *scratch, hone_execution *execution, hone_error *err)
{
    static _Atomic uint64_t moves;
    if (scratch->block == NULL || scratch->places == 1) return HONE_FAILURE_NONE;
    const hone_failure failure = check_host(scratch, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    uint64_t random = atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed);
    scratch->data = place_of(scratch, hone_random_below(&random, scratch->places));
    execution->scratch = scratch->data;
    fill_guards(scratch);
    return HONE_FAILURE_NONE;
}

static hone_failure check_device(const hone_guarded_scratch *scratch, hone_error *err)
{
    char below[GUARD_SIZE], above[GUARD_SIZE];
    const hone_place first = {scratch->memory, 0}, last = {scratch->memory, GUARD_SIZE + scratch->taken_size};
    hone_status status = hone_site_copy(scratch->site, HONE_COPY_OUT, (hone_place){below, 0}, first, sizeof below, err);
    if (status == HONE_OK)
        status = hone_site_copy(scratch->site, HONE_COPY_OUT, (hone_place){above, 0}, last, sizeof above, err);
    if (status != HONE_OK) return HONE_FAILURE_RUN;
    return check_guards(below, above, scratch->taken_size, " on the device", err);
}

hone_failure hone_guarded_scratch_check(const hone_guarded_scratch *scratch, hone_error *err)
{
    const hone_failure failure = check_host(scratch, err);
    return failure == HONE_FAILURE_NONE && scratch->memory != NULL ? check_device(scratch, err) : failure;
}
