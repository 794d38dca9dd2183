#include "tune/worker/site.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "registry/names.h"
#include "tune/worker/confine.h"

#include <string.h>

static const char where[] = "tune.site";
static const hone_log silent = {0};

enum { ALIGNMENT = 64 };

bool hone_site_is_host(const hone_site *site)
{
    return site->instance == NULL || site->ops->copy == NULL;
}

bool hone_site_is_lost(const hone_site *site)
{
    return site->instance != NULL && site->ops->is_lost != NULL && site->ops->is_lost(site->instance);
}

// A driver that shows its devices to the program need not show them to another process: the message says what it shows
// there.
static hone_status fail_missing(hone_site *site, const hone_device_info *wanted, size_t count, hone_error *err)
{
    hone_buffer words;
    hone_buffer_init(&words, site->allocator);
    if (site->ops->describe != NULL) site->ops->describe(site->instance, &words);
    hone_status status = hone_fail(
        err, HONE_UNAVAILABLE, where, "there is no %s:%d in the process that measures, which sees %zu devices%s%s",
        site->ops->facts.name, (int)wanted->device.id, count, words.size > 0 ? "; " : "", hone_buffer_string(&words));
    hone_buffer_deinit(&words);
    return status;
}

// Finds the device that a description from another process means.
static hone_status find_device(hone_site *site, const hone_device_info *wanted, hone_error *err)
{
    size_t count = 0;
    const hone_device_info *devices = site->ops->devices(site->instance, &count);
    for (size_t i = 0; i < count; i++) {
        if (devices[i].device.type != wanted->device.type || devices[i].device.id != wanted->device.id) continue;
        if (wanted->fingerprint != NULL && strcmp(devices[i].fingerprint, wanted->fingerprint) != 0)
            return hone_fail(
                err, HONE_UNAVAILABLE, where, "%s:%d is %s here, and %s where the contest was called for",
                site->ops->facts.name, (int)wanted->device.id, devices[i].fingerprint, wanted->fingerprint);
        site->device = &devices[i];
        return HONE_OK;
    }
    return fail_missing(site, wanted, count, err);
}

hone_status hone_site_open(
    hone_site *site, const hone_allocator *allocator, const hone_device_info *device, hone_error *err)
{
    memset(site, 0, sizeof *site);
    site->allocator = *allocator;
    site->ops = hone_platform_ops_of(device->platform);
    if (site->ops == NULL || site->ops->copy == NULL) return HONE_OK;
    site->unbound = hone_worker_unbound_memory();
    hone_status status = site->ops->open(allocator, &silent, &site->instance, err);
    if (status == HONE_OK) status = find_device(site, device, err);
    if (status == HONE_OK && site->ops->create_stream != NULL)
        status = site->ops->create_stream(site->instance, site->device, &site->stream, err);
    if (status != HONE_OK) hone_site_close(site);
    if (status == HONE_OK) hone_site_forget_marks(site); // opening is not attributed to a candidate
    return status;
}

void hone_site_forget_marks(const hone_site *site)
{
    if (site->instance != NULL && site->ops->disturbed != NULL)
        (void)site->ops->disturbed(site->instance, site->device, NULL, NULL);
}

unsigned hone_site_marks(const hone_site *site)
{
    unsigned marks = 0;
    if (site->instance != NULL && site->ops->disturbed != NULL)
        (void)site->ops->disturbed(site->instance, site->device, &marks, NULL);
    return marks;
}

static const hone_platform_ops *visitor_ops(hone_platform platform)
{
    const hone_platform_ops *ops = hone_platform_ops_of(hone_platform_home(platform));
    return ops != NULL && ops->visits != NULL ? ops : NULL;
}

bool hone_site_waits_for(const hone_site *site, hone_platform platform)
{
    const hone_platform_ops *ops = visitor_ops(platform);
    return site->instance != NULL && ops != NULL && !ops->starts_runs;
}

hone_status hone_site_instance_for(
    hone_site *site, hone_platform platform, hone_platform_instance **out, hone_error *err)
{
    const hone_platform_ops *ops = visitor_ops(platform);
    hone_platform_instance **visitor = &site->visitors[hone_platform_home(platform)];
    *out = site->instance;
    if (ops == NULL) return HONE_OK;
    hone_status status = *visitor != NULL ? HONE_OK : ops->open(&site->allocator, &silent, visitor, err);
    *out = *visitor;
    return status;
}

static void close_visitors(hone_site *site)
{
    for (int platform = 0; platform < HONE_PLATFORM_COUNT; platform++)
        if (site->visitors[platform] != NULL)
            hone_platform_ops_of((hone_platform)platform)->close(&site->visitors[platform]);
}

static void close_driver(hone_site *site)
{
    hone_site_free(site, site->flood, site->flood_bytes);
    if (site->stream != NULL) site->ops->destroy_stream(site->instance, site->device, site->stream);
    site->ops->close(&site->instance);
}

void hone_site_close(hone_site *site)
{
    close_visitors(site);
    if (site->instance != NULL) close_driver(site);
    if (site->unbound) hone_worker_bound_memory();
    memset(site, 0, sizeof *site);
}

hone_status hone_site_mirror(
    const hone_site *site,
    const char *block,
    size_t size,
    const char *first,
    void **out_block,
    size_t *out_skip,
    hone_error *err)
{
    hone_assert(site->instance != NULL && first >= block && (size_t)(first - block) <= size);
    // A handle has no address: its memory begins at a multiple of any alignment.
    const size_t views = site->ops->view_align, step = views > 0 ? views : ALIGNMENT;
    void *memory = NULL;
    *out_block = NULL;
    *out_skip = 0;
    if (size > SIZE_MAX - step) return hone_fail_memory(err, where);
    hone_status status = site->ops->allocate(site->instance, site->device, size + step, &memory, err);
    if (status != HONE_OK) return status;
    const size_t base = views > 0 ? 0 : (uintptr_t)memory;
    const size_t wanted = (uintptr_t)first % ALIGNMENT, unmoved = base + (size_t)(first - block);
    *out_block = memory;
    hone_assert((step & (step - 1)) == 0);
    *out_skip = (wanted - unmoved) % step; // step is a power of two: a negative difference has the same remainder
    return HONE_OK;
}

void hone_site_free(const hone_site *site, void *block, size_t size)
{
    if (block != NULL) site->ops->deallocate(site->instance, site->device, block, size);
}

hone_status hone_site_copy(
    const hone_site *site, hone_copy way, hone_place to, hone_place from, size_t size, hone_error *err)
{
    return site->ops->copy(site->instance, site->device, way, to, from, size, err);
}

hone_status hone_site_fill(const hone_site *site, hone_place to, unsigned char byte, size_t size, hone_error *err)
{
    return site->ops->fill(site->instance, site->device, to, byte, size, err);
}

hone_status hone_site_wait(const hone_site *site, hone_error *err)
{
    if (site->instance == NULL || site->ops->synchronize == NULL) return HONE_OK;
    return site->ops->synchronize(site->instance, site->device, site->stream, err);
}

hone_status hone_site_make_flood(hone_site *site, size_t bytes, hone_error *err)
{
    if (site->flood != NULL && site->flood_bytes >= bytes) return HONE_OK;
    hone_site_free(site, site->flood, site->flood_bytes);
    site->flood = NULL;
    site->flood_bytes = bytes;
    return site->ops->allocate(site->instance, site->device, bytes, &site->flood, err);
}

hone_status hone_site_overwrite(const hone_site *site, hone_error *err)
{
    hone_status status = hone_site_fill(site, (hone_place){site->flood, 0}, 1, site->flood_bytes, err);
    return status == HONE_OK ? hone_site_wait(site, err) : status;
}
