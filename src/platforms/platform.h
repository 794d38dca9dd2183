// What a platform gives: devices, and whether it can run here. One folder a platform; null/ is the one to copy.
#ifndef HONE_PLATFORMS_PLATFORM_H
#define HONE_PLATFORMS_PLATFORM_H

#include "base/buffer.h"
#include "base/log.h"
#include "hone/kernel.h"
#include "os/waits.h"
#include "pack/pack.h"
#include "registry/origin.h"
#include "registry/platform.h"

typedef struct hone_platform_instance hone_platform_instance;

// Exit codes of "hone-worker devices PLATFORM", which opens a platform that wakes drivers. A driver may end the process
// itself, most often with 0 or 1: these say that an answer was reached.
enum { HONE_PLATFORM_OPENED = 90, HONE_PLATFORM_REFUSED = 91 };

// Which way bytes go between the host's memory and the device's.
typedef enum hone_copy { HONE_COPY_IN, HONE_COPY_OUT, HONE_COPY_WITHIN } hone_copy;

// Bytes of a device: what allocate gave, and how far into it. Of the host: an address, and 0.
typedef struct hone_place {
    void *memory;
    size_t offset;
} hone_place;

// Runs that are timed together, one after the other on one stream.
typedef struct hone_timed_runs {
    const hone_device_info *device;
    void *stream;
    uint32_t count;
    hone_status (*run)(void *ctx); // starts the next one
    void *ctx;
    void *
        flood; // memory of the device that is overwritten first, so that the caches hold nothing else; NULL: as they are
    size_t flood_bytes;
    // Not 0: all runs as one graph, which is replayed so often before it is timed. HONE_UNSUPPORTED with words where they
    // cannot be captured.
    uint32_t replays;
    bool *out_elsewhere; // set where it is certain that no run has started anything on the stream
} hone_timed_runs;

// What moves times on a device from outside. The bits follow those of hone_os_disturber: samples have both.
typedef enum hone_device_disturber {
    HONE_DEVICE_SLOWED = HONE_OS_STOLEN << 1,        // its clock is more than 3 % below the highest that was seen
    HONE_DEVICE_THROTTLED = HONE_DEVICE_SLOWED << 1, // heat or power holds its clock back
    HONE_DEVICE_SHARED = HONE_DEVICE_THROTTLED << 1, // another process computes on it
    HONE_DEVICE_ANY = HONE_DEVICE_SLOWED | HONE_DEVICE_THROTTLED | HONE_DEVICE_SHARED
} hone_device_disturber;

struct hone_argument; // platforms/shared/launch.h

// struct_size first, grows at the end, NULL means default.
typedef struct hone_platform_ops {
    uint32_t struct_size;
    hone_platform_facts facts;
    // Why it is not opened on its own: it has no loader, or it is opened only when it is named (facts.is_by_name_only).
    // NULL: it is.
    const char *reason;
    // Loads what is needed and finds devices. HONE_UNAVAILABLE with what is missing and the package that brings it.
    // NULL: the platform's kernels run on the devices of its home (facts.home), whose instance it is given.
    hone_status (*open)(
        const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err);
    void (*close)(hone_platform_instance **instance);
    // Borrowed from the instance.
    const hone_device_info *(*devices)(hone_platform_instance *instance, size_t *out_count);
    // Makes a plan ready in place of the kernel's own prepare, which it calls when the kernel has one, and gives back
    // what it made. NULL: the kernel's alone.
    hone_status (*prepare)(
        hone_platform_instance *instance,
        const hone_plan *plan,
        void **out_state,
        size_t *out_scratch_bytes,
        hone_error *err);
    void (*release)(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
    // Memory on the device, for inputs that tuning makes. NULL: the host's.
    hone_status (*allocate)(
        hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err);
    void (*deallocate)(hone_platform_instance *instance, const hone_device_info *device, void *memory, size_t size);
    // Waits for everything started on a stream of the device, and says what failed there. NULL: runs are synchronous.
    hone_status (*synchronize)(
        hone_platform_instance *instance, const hone_device_info *device, void *stream, hone_error *err);
    // Copies bytes; done when it returns. NULL: the host reads and writes the memory itself.
    hone_status (*copy)(
        hone_platform_instance *instance,
        const hone_device_info *device,
        hone_copy way,
        hone_place to,
        hone_place from,
        size_t size,
        hone_error *err);
    // Sets each of size bytes of the device's memory.
    hone_status (*fill)(
        hone_platform_instance *instance,
        const hone_device_info *device,
        hone_place to,
        unsigned char byte,
        size_t size,
        hone_error *err);
    // A stream beside those of others, in order with copy and fill. NULL: there are none.
    hone_status (*create_stream)(
        hone_platform_instance *instance, const hone_device_info *device, void **out_stream, hone_error *err);
    void (*destroy_stream)(hone_platform_instance *instance, const hone_device_info *device, void *stream);
    // What is started next on streams that create_stream made waits for about so long, and then begins on all of them at
    // once; returns before that. NULL: there is no way.
    hone_status (*hold_streams)(
        hone_platform_instance *instance, const hone_device_info *device, uint64_t nanoseconds, hone_error *err);
    // Whether what comes to a stream is captured into a graph and not run. NULL: the platform has no graphs.
    bool (*is_capturing)(hone_platform_instance *instance, const hone_device_info *device, void *stream);
    // How long runs take on the device, all together, without what starting them costs. NULL: the clock of the host.
    hone_status (*time)(hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err);
    // What has disturbed the device since this was asked before, and does now: bits of hone_device_disturber. Asked
    // before and after each sample, it takes at most a few percent of the time; what it opens at the first time stays
    // open. HONE_UNAVAILABLE with what is missing: nothing is known. NULL: nothing ever is.
    //   out_marks  NULL: nobody asks; what was seen so far is forgotten
    hone_status (*disturbed)(
        hone_platform_instance *instance, const hone_device_info *device, unsigned *out_marks, hone_error *err);
    // Whether a failure has left the device unusable for this process: nothing will succeed any more. NULL: never.
    bool (*is_lost)(const hone_platform_instance *instance);
    // What runs a kernel that has code and no function of its own. NULL: there is no such kernel.
    hone_run_function *run;
    // Whether this platform, which has no devices itself, can run kernels on one of another's, or what is missing. Its
    // instance is opened when the first of its kernels is looked at, beside the device's own. NULL: its devices are its
    // own.
    hone_status (*visits)(hone_platform_instance *instance, const hone_device_info *device, hone_error *err);
    // Of visits: its runs are started on the stream of the device, which tells their end and their time. Else they have
    // ended when they return.
    bool starts_runs;
    // Appends lines for people: what compiles and runs its kernels, of which version, or the package that brings it.
    // NULL: its devices say it.
    //   instance  NULL: the platform is not here
    void (*describe)(hone_platform_instance *instance, hone_buffer *out);
    bool wakes; // open takes long: it waits until a call or a question needs this platform
    // What allocate gives is a handle and no address: a tensor's data is the handle, its byte_offset a multiple of this
    // many bytes. 0: it is an address.
    uint32_t view_align;
    // A handle of size bytes of such memory, from an offset that is a multiple of view_align; given back as memory is.
    // NULL: memory is an address.
    hone_status (*view)(
        hone_platform_instance *instance, void *memory, size_t offset, size_t size, void **out, hone_error *err);
    // What is wrong with a variant of a kernel of a pack, as far as its texts, facts and files tell without a device
    // (hone_pack_judge of pack/pack.h). NULL: the platform takes no packs.
    hone_status (*check)(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
    bool stands_alone; // prepare, release and run need no instance
    // The words of the last run that failed, which are told once. False: there are none. NULL: a status is all that it
    // says.
    bool (*last_failure)(hone_platform_instance *instance, hone_error *err);
    // Compares the list of arguments of such a variant, as calls of its algorithm have it, with what its binary says of
    // itself.
    // NULL: its binaries say nothing.
    hone_status (*fits)(
        const hone_pack_variant *variant, const struct hone_argument *arguments, uint32_t count, hone_error *err);
    // What runs of a plan that prepare made from code, as a number: of the binary, the launch and the arguments that no
    // run changes. Plans of one kernel for one call with equal ones run alike, and are measured once. 0, NULL: not
    // known.
    uint64_t (*digest)(const hone_plan *plan);
    // Loads a file of a pack and looks a kernel up in it, as prepare will: asked of a process of its own, since code
    // that is loaded may end the process. NULL: nothing of a file runs before a launch.
    hone_status (*try_file)(const hone_pack_file *file, const char *entry, hone_error *err);
    // How the symbols of such a file's functions begin, and those of functions that describe one; what one says of its
    // function, as JSON, by loading the file. NULL, all three: nobody can tell a kernel by its symbol.
    const char *exports, *describes;
    hone_status (*tell_function)(const char *path, const char *entry, hone_buffer *out, hone_error *err);
    // What a launch may ask for. NULL: its home's, or there are no launches to describe.
    const struct hone_launch_rules *launch; // platforms/shared/launch.h
    // version 1 ends here
} hone_platform_ops;

// The one table: every platform of hone_platform, by its number. That of HONE_PLATFORM_NONE is NULL.
extern const hone_platform_ops *const hone_platforms[HONE_PLATFORM_COUNT];

// The ops of a platform, also of one that is opened only when it is asked for; NULL: a number that is not one.
const hone_platform_ops *hone_platform_ops_of(hone_platform platform);
// Its facts: the hone_platform_find that the registry and packs are given.
const hone_platform_facts *hone_platform_facts_of(hone_platform platform);
// The platforms for hone_pack_open: their facts and their checks.
extern const hone_pack_platforms hone_platform_packs;
// The platform whose instance a platform's kernels are given: its home, else itself.
hone_platform hone_platform_home(hone_platform platform);
// Whether times on a platform's devices can be of a regime. Warm and cold are everywhere; eager is where runs are started
// and waited for, graph where they can be captured: elsewhere starting a run is part of the run.
bool hone_platform_has_regime(hone_platform platform, hone_regime regime);
// The platform of functions of this process (facts.is_host): references are of it.
hone_platform hone_platform_host(void);
// What plan->run is for a kernel: its own function, else its platform's.
hone_run_function *hone_platform_run_of(const hone_kernel *kernel);
// The check of a kernel's platform: a hone_pack_judge.
hone_status hone_platform_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
// Whether a variant that was checked can fit calls of the algorithm whose signature this is: the names in its texts,
// its list of arguments beside what its binary takes. A hone_pack_fitter (pack/pack.h).
hone_status hone_platform_fits(
    const hone_pack_kernel *kernel, const hone_pack_variant *variant, const hone_signature *signature, hone_error *err);
// Prepares a plan as its platform does, else as its kernel does; and releases what came of it. instance may be NULL
// when the platform has no prepare of its own.
hone_status hone_platform_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_platform_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
// What runs of a plan that is prepared, as a number, as its kernel says or its platform; 0: not known.
uint64_t hone_platform_digest(const hone_plan *plan);
// hone_plan.say of every plan.
hone_status hone_platform_say(const hone_plan *plan, hone_status status, const char *words);
// What went wrong when a run of the kernel failed, in its own words, or in its platform's; "run answered 'kernel
// failed'" where there are none. On the thread that ran it. instance: what the plan was prepared with.
void hone_platform_run_words(
    hone_platform_instance *instance, const hone_kernel *kernel, hone_status status, hone_error *out);

#endif
