// Where a contest's data lies and its candidates run: in the host's memory, or in that of a device, of which a block on
// the host is then a mirror. The platform is opened in the process that measures, so a worker process has its own
// driver.
#ifndef HONE_TUNE_WORKER_SITE_H
#define HONE_TUNE_WORKER_SITE_H

#include "platforms/platform.h"

// The bytes where nothing was written: GUARD around arrays, in slack and padding; POISON in results and scratch memory
// before a verified run, where it is NaN in every float type and -1 in integers.
enum { HONE_GUARD_BYTE = 0xd7, HONE_POISON_BYTE = 0xff };

typedef struct hone_site {
    hone_allocator allocator;
    const hone_platform_ops *ops;
    hone_platform_instance *instance; // NULL: the host, whose kernels need no platform
    const hone_device_info *device;   // the instance's own
    void *stream;
    void *flood; // memory that is overwritten between cold samples; NULL: none
    size_t flood_bytes;
    bool unbound; // the worker's memory limit is lifted while the driver is open
    hone_platform_instance *visitors[HONE_PLATFORM_COUNT]; // of platforms without devices, which run on this one
} hone_site;

// Opens the platform of a device; a native one is the host. HONE_UNAVAILABLE: the device is not here, or is another
// one.
hone_status hone_site_open(
    hone_site *site, const hone_allocator *allocator, const hone_device_info *device, hone_error *err);
void hone_site_close(hone_site *site);
// The instance that prepares the kernels of a platform: the site's own, or that of a platform without devices, which is
// opened for its first kernel. *out NULL: the platform needs none. Borrowed.
hone_status hone_site_instance_for(
    hone_site *site, hone_platform platform, hone_platform_instance **out, hone_error *err);
// Whether a platform's kernels do not use the site's streams and clock: they are done when their function returns.
bool hone_site_waits_for(const hone_site *site, hone_platform platform);
// True when kernels read the host's memory.
bool hone_site_is_host(const hone_site *site);
// Whether no further candidate can succeed in this process.
bool hone_site_is_lost(const hone_site *site);

// Allocates memory on the device for a copy of a host's block. `first` is a tensor's first element in the block; in the
// copy it is as far from a multiple of 64. *out_block is to be freed; the copy begins *out_skip bytes into it.
hone_status hone_site_mirror(
    const hone_site *site,
    const char *block,
    size_t size,
    const char *first,
    void **out_block,
    size_t *out_skip,
    hone_error *err);
void hone_site_free(const hone_site *site, void *block, size_t size);
hone_status hone_site_copy(
    const hone_site *site, hone_copy way, hone_place to, hone_place from, size_t size, hone_error *err);
hone_status hone_site_fill(const hone_site *site, hone_place to, unsigned char byte, size_t size, hone_error *err);
// Waits for the runs that were started. HONE_OK on the host.
hone_status hone_site_wait(const hone_site *site, hone_error *err);
// What disturbed the device since hone_site_forget_marks, as its platform reports; 0 on the host.
unsigned hone_site_marks(const hone_site *site);
void hone_site_forget_marks(const hone_site *site);
// Overwrites the memory of the flood, and waits for the end.
hone_status hone_site_overwrite(const hone_site *site, hone_error *err);
// Allocates memory for the flood, which replaces data in the caches.
hone_status hone_site_make_flood(hone_site *site, size_t bytes, hone_error *err);

#endif
