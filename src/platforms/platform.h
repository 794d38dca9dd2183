// The interface of a platform: its devices, and whether it can run here. Each platform is a folder; null/ is the one to
// copy.
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

// Exit codes of "hone-worker devices PLATFORM", which opens a platform whose driver is slow to open. A driver may end
// the process itself, most often with 0 or 1; these codes mean that the platform was opened or refused.
enum { HONE_PLATFORM_OPENED = 90, HONE_PLATFORM_REFUSED = 91 };

// The direction of a copy between the host's memory and the device's.
typedef enum hone_copy { HONE_COPY_IN, HONE_COPY_OUT, HONE_COPY_WITHIN } hone_copy;

// A place in memory. Of a device: what allocate returned, and an offset in bytes. Of the host: an address, and 0.
typedef struct hone_place {
    void *memory;
    size_t offset;
} hone_place;

// Runs that are timed together, one after the other on one stream.
typedef struct hone_timed_runs {
    const hone_device_info *device;
    void *stream;
    uint32_t count;
    hone_status (*run)(void *ctx); // starts the next run
    void *ctx;
    void *
        // Memory of the device that is overwritten first, so that the caches hold nothing else; NULL: the caches stay
        // as they are
        flood;
    size_t flood_bytes;
    // If not 0: all runs as one graph, which is replayed that many times before it is timed. HONE_UNSUPPORTED with a
    // reason if they cannot be captured.
    uint32_t replays;
    bool *out_elsewhere; // set if it is certain that no run has started anything on the stream
} hone_timed_runs;

// External influences on times on a device. The bits follow those of hone_os_disturber: samples have both.
typedef enum hone_device_disturber {
    HONE_DEVICE_SLOWED = HONE_OS_STOLEN << 1,        // its clock is more than 3 % below the highest that was observed
    HONE_DEVICE_THROTTLED = HONE_DEVICE_SLOWED << 1, // heat or power limits its clock
    HONE_DEVICE_SHARED = HONE_DEVICE_THROTTLED << 1, // another process computes on it
    HONE_DEVICE_ANY = HONE_DEVICE_SLOWED | HONE_DEVICE_THROTTLED | HONE_DEVICE_SHARED
} hone_device_disturber;

struct hone_argument; // platforms/shared/launch.h

// struct_size first, grows at the end, NULL means the default.
typedef struct hone_platform_ops {
    uint32_t struct_size;
    hone_platform_facts facts;
    // Why it is not opened by default: it has no loader, or it is opened only when it is named (facts.is_by_name_only).
    // NULL: it is opened by default.
    const char *reason;
    // Loads what is needed and finds devices. HONE_UNAVAILABLE with what is missing and the package that provides it.
    // NULL: the platform's kernels run on the devices of its home (facts.home), and get its instance.
    hone_status (*open)(
        const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err);
    void (*close)(hone_platform_instance **instance);
    // Borrowed from the instance.
    const hone_device_info *(*devices)(hone_platform_instance *instance, size_t *out_count);
    // Prepares a plan. Replaces the kernel's own prepare, which it calls if the kernel has one; its release also
    // releases what that made. NULL: the kernel's own alone.
    hone_status (*prepare)(
        hone_platform_instance *instance,
        const hone_plan *plan,
        void **out_state,
        size_t *out_scratch_bytes,
        hone_error *err);
    void (*release)(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
    // Memory on the device, for inputs that tuning generates. NULL: uses the host's.
    hone_status (*allocate)(
        hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err);
    void (*deallocate)(hone_platform_instance *instance, const hone_device_info *device, void *memory, size_t size);
    // Waits for everything that was started on a stream of the device, and returns its failure. NULL: runs are
    // synchronous.
    hone_status (*synchronize)(
        hone_platform_instance *instance, const hone_device_info *device, void *stream, hone_error *err);
    // Copies bytes, and returns when that is done. NULL: the host reads and writes the memory itself.
    hone_status (*copy)(
        hone_platform_instance *instance,
        const hone_device_info *device,
        hone_copy way,
        hone_place to,
        hone_place from,
        size_t size,
        hone_error *err);
    // Sets each of size bytes of the device's memory to the value.
    hone_status (*fill)(
        hone_platform_instance *instance,
        const hone_device_info *device,
        hone_place to,
        unsigned char byte,
        size_t size,
        hone_error *err);
    // Creates a separate stream, which is ordered with copy and fill. NULL: there are no streams.
    hone_status (*create_stream)(
        hone_platform_instance *instance, const hone_device_info *device, void **out_stream, hone_error *err);
    void (*destroy_stream)(hone_platform_instance *instance, const hone_device_info *device, void *stream);
    // Work that is started next on streams of create_stream waits for about this time, in ns, and then begins on all of
    // them at once; the function returns earlier. NULL: not possible.
    hone_status (*hold_streams)(
        hone_platform_instance *instance, const hone_device_info *device, uint64_t nanoseconds, hone_error *err);
    // Whether work on a stream is captured into a graph instead of being run. NULL: the platform has no graphs.
    bool (*is_capturing)(hone_platform_instance *instance, const hone_device_info *device, void *stream);
    // The time of the runs on the device, as a sum, in ns, without the cost of starting them. NULL: the host's clock is
    // used.
    hone_status (*time)(hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err);
    // What has disturbed the device since the last call, and does now: bits of hone_device_disturber. It is called
    // before and after each sample, so it uses at most a few percent of the time; what it opens at the first call stays
    // open. HONE_UNAVAILABLE with what is missing: nothing is known. NULL: nothing is ever known.
    //   out_marks  NULL: discards what was noted so far
    hone_status (*disturbed)(
        hone_platform_instance *instance, const hone_device_info *device, unsigned *out_marks, hone_error *err);
    // Whether a failure has made the device unusable for this process: every later operation fails. NULL: never.
    bool (*is_lost)(const hone_platform_instance *instance);
    // Runs a kernel that has code and no function of its own. NULL: there is no such kernel.
    hone_run_function *run;
    // Whether this platform, which has no devices itself, can run kernels on a device of another platform, or what is
    // missing. Its instance is opened when the first of its kernels is considered, in addition to the device's own.
    // NULL: its devices are its own.
    hone_status (*visits)(hone_platform_instance *instance, const hone_device_info *device, hone_error *err);
    // For visits: its runs are started on the stream of the device, which reports their end and their time. Otherwise
    // they have ended when they return.
    bool starts_runs;
    // Appends lines for people: the compiler and runtime of its kernels with their versions, or the package that
    // provides them. NULL: its devices report that.
    //   instance  NULL: the platform is not available
    void (*describe)(hone_platform_instance *instance, hone_buffer *out);
    bool wakes; // opening it is slow: it waits until a call or a query needs this platform
    // If not 0, allocate returns a handle instead of an address: a tensor's data is the handle, and its byte_offset is
    // a multiple of this many bytes. 0: it is an address.
    uint32_t view_align;
    // Creates a handle for size bytes of such memory, from an offset that is a multiple of view_align; it is freed like
    // memory. NULL: memory is an address.
    hone_status (*view)(
        hone_platform_instance *instance, void *memory, size_t offset, size_t size, void **out, hone_error *err);
    // Checks a variant of a kernel of a pack, as far as its texts, facts and files allow without a device
    // (hone_pack_judge of pack/pack.h). NULL: the platform accepts no packs.
    hone_status (*check)(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
    bool stands_alone; // prepare, release and run need no instance
    // The message of the last run that failed, which is returned once. False if there is none. NULL: a run only returns
    // a status.
    bool (*last_failure)(hone_platform_instance *instance, hone_error *err);
    // Compares the argument list of such a variant, as calls of its algorithm have it, with the description in its
    // binary. NULL: its binaries have no description.
    hone_status (*fits)(
        const hone_pack_variant *variant, const struct hone_argument *arguments, uint32_t count, hone_error *err);
    // A digest of what a plan that prepare made from code runs: the binary, the launch and the arguments that no run
    // changes. Plans of one kernel for one call with equal digests run the same code, and are measured once. 0, or a
    // NULL function: not known.
    uint64_t (*digest)(const hone_plan *plan);
    // Loads a file of a pack and looks a kernel up in it, as prepare will. Called in a separate process, since code
    // that is loaded may end the process. NULL: no code of a file runs before a launch.
    hone_status (*try_file)(const hone_pack_file *file, const char *entry, hone_error *err);
    // The prefix of the symbols of such a file's functions, and of the functions that describe one. tell_function loads
    // the file and returns such a description as JSON. NULL, all three: kernels cannot be recognised by their symbols.
    const char *exports, *describes;
    hone_status (*tell_function)(const char *path, const char *entry, hone_buffer *out, hone_error *err);
    // The limits of a launch. NULL: its home's, or there are no launches to describe.
    const struct hone_launch_rules *launch; // platforms/shared/launch.h
    // version 1 ends here
} hone_platform_ops;

// The table of all platforms, by their numbers. The entry of HONE_PLATFORM_NONE is NULL.
extern const hone_platform_ops *const hone_platforms[HONE_PLATFORM_COUNT];

// The ops of a platform, also of one that is opened only on request; NULL for an invalid number.
const hone_platform_ops *hone_platform_ops_of(hone_platform platform);
// Its facts: the hone_platform_find that is passed to the registry and to packs.
const hone_platform_facts *hone_platform_facts_of(hone_platform platform);
// The platforms for hone_pack_open: their facts and their checks.
extern const hone_pack_platforms hone_platform_packs;
// The platform whose instance is passed to a platform's kernels: its home, else itself.
hone_platform hone_platform_home(hone_platform platform);
// Whether times on a platform's devices can be measured in a regime. Warm and cold always can; eager requires that runs
// are started and waited for separately, graph that they can be captured: elsewhere starting a run is part of the run.
bool hone_platform_has_regime(hone_platform platform, hone_regime regime);
// The platform of functions of this process (facts.is_host), to which references belong.
hone_platform hone_platform_host(void);
// The value of plan->run for a kernel: its own function, else its platform's.
hone_run_function *hone_platform_run_of(const hone_kernel *kernel);
// The check of a kernel's platform: a hone_pack_judge.
hone_status hone_platform_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
// Whether a variant that was checked can fit calls of the algorithm with this signature: the names in its texts, and
// its argument list compared with what its binary accepts. A hone_pack_fitter (pack/pack.h).
hone_status hone_platform_fits(
    const hone_pack_kernel *kernel, const hone_pack_variant *variant, const hone_signature *signature, hone_error *err);
// Prepares a plan with its platform's function, else with its kernel's; and releases the result. instance may be NULL
// if the platform has no prepare of its own.
hone_status hone_platform_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_platform_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
// A digest of what a prepared plan runs, from its kernel or its platform; 0 if it is not known.
uint64_t hone_platform_digest(const hone_plan *plan);
// hone_plan.say of every plan.
hone_status hone_platform_say(const hone_plan *plan, hone_status status, const char *words);
// Why a run of the kernel failed, from the kernel, else from its platform; "run answered 'kernel failed'" if neither
// has a message. On the thread that ran it. instance: the one with which the plan was prepared.
void hone_platform_run_words(
    hone_platform_instance *instance, const hone_kernel *kernel, hone_status status, hone_error *out);

#endif
