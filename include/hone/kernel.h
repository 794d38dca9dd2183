// Algorithms and kernels: what a program registers.
#ifndef HONE_KERNEL_H
#define HONE_KERNEL_H

#include "hone/code.h"
#include "hone/config.h"
#include "hone/device.h"
#include "hone/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_plan hone_plan;
typedef struct hone_kernel hone_kernel;

// Runs body(ctx, i) for every i in [0, count), in any order, possibly at the same time, and returns when all are done.
typedef void hone_parallel_for(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);

// What the caller provides for one run. NULL in its place, and every zero field, means the default: the calling thread
// with hone's own pool beside it, the default stream, scratch memory that hone lends where the kernel asked for some.
typedef struct hone_execution {
    size_t struct_size;
    void *stream;  // CUstream, cl_command_queue; borrowed, in the order of which the run is started (docs/streams.md)
    void *scratch; // of the host, plan->scratch_bytes or more, aligned to 64, this run's until the function returns
    size_t scratch_bytes;
    int32_t threads;                 // the most that may work at the same time; 1 means the calling thread alone
    hone_parallel_for *parallel_for; // the host's own pool in place of hone's
    void *pool;                      // its first argument
    // The host's memory of the device, in the order of the stream, in place of the driver's: for a run that needs some
    // beside its tensors and finds no scratch. NULL in both: not available. `take` returns NULL when none is left;
    // what it returned is given back within the run, after the launch. On OpenCL it is a cl_mem of the run's context.
    void *(*take)(void *memory, size_t size);
    void (*give_back)(void *memory, void *taken, size_t size);
    void *memory; // their first argument
} hone_execution;

// The smallest stack, in bytes, of a thread that calls hone. Contests run finalists in a thread with a stack of this
// size.
enum { HONE_LEAST_STACK = 1 << 20 };

// A kernel of a GPU is started on the stream, and may still run when its function returns; one of XLA has ended.
// A run's status: HONE_OK; HONE_UNSUPPORTED and HONE_KERNEL_FAILED disable the kernel for the call's key,
// and the next best runs.
typedef hone_status hone_run_function(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

// A decision made ready to run. Immutable, shared by threads. Kernels read it; nobody writes it.
struct hone_plan {
    hone_run_function *run; // plan->run(plan, args, execution): one indirect call
    const int64_t *config;  // the config's values in the order of the kernel's space: plan->config[BLOCK_M]
    void *state;            // what the kernel's prepare made
    const hone_kernel *kernel;
    const hone_call *call; // the descriptor it was bound for: dims, dtypes, defaults; its data pointers mean nothing
    const hone_device_info *device;
    size_t scratch_bytes;
    hone_parallel_for *parallel_for; // hone's own pool
    void *pool;
    // Keeps the reason why a run of this thread fails, up to 255 bytes, and returns status; may be NULL. See hone_plan_fail.
    hone_status (*say)(const hone_plan *plan, hone_status status, const char *words);
};

// For kernels: ends a failing run with a reason, which reaches the caller's error, the log and the contest's table:
//     return hone_plan_fail(plan, HONE_KERNEL_FAILED, "the device has no memory left");
// On the thread that was called. A run that does not fail pays nothing.
static inline hone_status hone_plan_fail(const hone_plan *plan, hone_status status, const char *words)
{
    return plan->say != NULL ? plan->say(plan, status, words) : status;
}

// Splits a run over threads: execution's pool, else hone's, at most `threads` at a time (also limited by
// execution->threads). For kernels.
HONE_API void hone_plan_parallel_for(
    const hone_plan *plan,
    const hone_execution *execution,
    int32_t threads,
    int64_t count,
    void (*body)(void *ctx, int64_t index),
    void *ctx);
// The same for bodies that have memory of their own, a part of the scratch memory say: `worker` is below `workers`, and no
// two bodies run at the same time with one number.
HONE_API void hone_plan_parallel_workers(
    const hone_plan *plan,
    const hone_execution *execution,
    int32_t workers,
    int64_t count,
    void (*body)(void *ctx, int64_t index, int32_t worker),
    void *ctx);

// How large an error a kernel may have against the reference: |out - ref| <= absolute + relative * |ref| + scale *
// eps(dtype) * magnitude, where magnitude is what the reference gives beside the result (for a matrix product,
// (|a||b|)[i, j]) or else max |ref|.
// All zero: the defaults of the dtype (docs/tolerance.md). Negative, NaN and infinite ones are refused.
typedef struct hone_tolerance {
    double absolute, relative;
    double scale; // c * k of the bound c k eps |a||b|
} hone_tolerance;

// What a run costs at least, whatever computes it. For GB/s, GFLOP/s and share of peak in tables, and for the floor of
// contests: a candidate that takes less than the device needs for this is impossible, and is rejected.
typedef struct hone_cost {
    double bytes;      // moved: what must be read of the inputs, once, and the outputs, once
    double operations; // floating point
} hone_cost;

// A call that is the product of two matrices: value `out`, [..., m, n], is value `a` times value `b`. Leading axes are those
// of a batch of products, the same in all three.
typedef struct hone_product {
    size_t a, b, out;
    int32_t a_rows; // the axis of a that has m, of its last two; the other one has k
    int32_t b_rows; // the axis of b that has k
} hone_product;

// Special values that an operation defines results for. Contests verify kernels on rows that contain them.
typedef enum hone_special {
    HONE_SPECIAL_SMALL = 1 << 0,          // zeros of both signs and subnormal numbers
    HONE_SPECIAL_LOWEST = 1 << 1,         // the lowest number of the dtype in all of a row, as masks leave it
    HONE_SPECIAL_MINUS_INFINITY = 1 << 2, // among finite elements
    HONE_SPECIAL_INFINITY = 1 << 3,
    HONE_SPECIAL_NAN = 1 << 4,
    HONE_SPECIAL_EVERYWHERE = 1 << 5 // the same in the other arrays of floats that are made as the first is
} hone_special;

typedef struct hone_algorithm {
    size_t struct_size;
    const char *signature; // copied
    // Computes in higher precision than the dtype. Where it is NULL, kernels cannot be verified, and none wins a contest.
    hone_run_function *reference;
    hone_tolerance tolerance;
    // bytes and operations of a call; may be NULL
    void (*model)(const hone_call *call, hone_cost *out_cost);
    // fills an input with realistic data in place of the signature's generator; may be NULL.
    // Returns false to leave this input to the generator.
    bool (*make_input)(const hone_call *call, size_t index, const hone_tensor *tensor, uint64_t seed);
    // Dims along which a call falls into parts that do not touch each other, so that a large result is verified on
    // some of them: "m" (rows of a product), "batch heads:kv_heads" (dims split alike are joined by ':'), "..." (the
    // leading dims). Each must be a dim of the signature. NULL if results are always verified whole. Static text.
    const char *independent;
    // In place of `reference`: the name of a kernel of this algorithm, registered before the first contest, that takes
    // tensors of the CPU and has no space. Static text, or that of a pack. May be NULL.
    const char *reference_kernel;
    // hone_special bits: elements of the first array of floats for which results are what the reference gives, in each
    // row of its last axis, and of the others' where HONE_SPECIAL_EVERYWHERE is among them. With 0 contests verify on ordinary, large and tiny numbers alone.
    uint32_t special;
    // Tells whether a call is a product, which is then verified whole also where the reference is computed in parts.
    // NULL if no call is. Returns false where this one is not.
    bool (*product)(const hone_call *call, hone_product *out);
} hone_algorithm;

struct hone_kernel {
    size_t struct_size;
    const char *algorithm; // name; any version suffix "@v2" selects that version, else the newest
    const char *name;      // unique among (algorithm, platform, backend)
    hone_platform platform;
    hone_backend backend;
    int64_t priority;      // higher goes first in look-ups
    uint64_t needs;        // HONE_CPU_* bits that must all be there
    const char *signature; // the kernel's own, when it supports less or more; NULL selects the algorithm's
    const char *space;     // docs/spaces.md; NULL means one config
    // Changes with the kernel's code, so that decisions on the old code go stale. Without one (NULL or "1")
    // hone does not remember what it measures of a program's function.
    const char *revision;
    void *user;        // for the functions below
    bool is_reference; // never competes; runs when nothing else can
    // Can it run this call at all? If not, fills why->message (shown by explain). NULL means that it can.
    bool (*supports)(const hone_kernel *kernel, const hone_call *call, hone_error *why);
    // A config without measuring. If it is NULL or returns false, the default of the space is used.
    bool (*heuristic)(
        const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
    // An explicit list in place of the space's enumeration: false ends it. NULL selects the space's enumeration.
    bool (*candidates)(const hone_kernel *kernel, const hone_call *call, size_t index, hone_config *out_config);
    // Compile, load, pack, create a library's primitive. plan has kernel, call, config and device filled in;
    // may set *out_scratch_bytes. NULL if there is nothing to prepare.
    hone_status (*prepare)(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
    void (*release)(const hone_kernel *kernel, void *state);
    hone_run_function *run;
    // What runs, as a number: two plans of this kernel for one call, both prepared, whose numbers are equal and not 0
    // run the same code with the same parameters, and are measured once. 0 if it is not known. Where it is NULL, configs
    // that differ run different code.
    uint64_t (*digest)(const hone_plan *plan);
    const char
        *library; // soname of the library that it calls, "libopenblas.so.0": another version of it makes what was
                  // measured with this one worth measuring again. NULL if it calls none
    const hone_code *code; // for platforms that compile or load: run and prepare may then be NULL. Copied.
    // Writes the path of the library's file where the loader does not find it by its soname; loads nothing. False: it
    // is not here. NULL if the loader finds `library`.
    bool (*find_library)(const hone_kernel *kernel, char *path, size_t size);
    // True: another kernel is expected to be faster for this call, and a call that was never tuned takes this one after
    // those that do not yield. Contests try it as any other. Asked of calls that
    // `supports` takes. NULL if priority alone decides.
    bool (*yields)(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device);
};

// First in an initialiser: {HONE_KERNEL, .algorithm = "rms_norm", ...}. C++17 calls hone_kernel_init.
#define HONE_KERNEL    .struct_size = sizeof(hone_kernel)
#define HONE_ALGORITHM .struct_size = sizeof(hone_algorithm)
// Among them, for a function of the program's own: .platform and .backend.
#define HONE_ON_CPU .platform = HONE_NATIVE, .backend = HONE_CPU

static inline void hone_kernel_init(hone_kernel *kernel)
{
    unsigned char *bytes = (unsigned char *)kernel;
    for (size_t i = 0; i < sizeof *kernel; i++)
        bytes[i] = 0;
    kernel->struct_size = sizeof *kernel;
}

static inline void hone_algorithm_init(hone_algorithm *algorithm)
{
    unsigned char *bytes = (unsigned char *)algorithm;
    for (size_t i = 0; i < sizeof *algorithm; i++)
        bytes[i] = 0;
    algorithm->struct_size = sizeof *algorithm;
}

#ifdef __cplusplus
}
#endif
#endif
