// Kernels that are functions of Python: how a process that runs an interpreter lends it to hone.
//
// Such a kernel comes in a pack: platform "python", a file of source, and the function's name for an entry
// (docs/write-a-kernel-in-python.md). hone links no interpreter. The Python package lends its own when it is imported; a
// process without one keeps these kernels out, and says so in hone_explain.
#ifndef HONE_INTERPRETER_H
#define HONE_INTERPRETER_H

#include "hone/kernel.h"
#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// A function as a plan needs it. All is borrowed for the call of prepare.
typedef struct hone_script {
    size_t struct_size;
    const char *path;   // of the file, absolute
    const char *sha256; // of its bytes, 64 hex digits
    const char *source; // its bytes, which were compared with the digest, and a NUL
    size_t source_size;
    const char *entry;  // the function's name
    const char *facts;  // JSON object: of the kernel in pack.json
    const char *config; // JSON object: the config's parameters
    bool is_reference;
    const hone_call *call;
    const hone_device_info *device;
} hone_script;

// Around a candidate in a worker.
typedef enum hone_interpreter_stage {
    HONE_INTERPRETER_BEGINS,   // notes how the interpreter is
    HONE_INTERPRETER_PREPARED, // the candidate is imported: the settings that it made meanwhile are taken as they are
    HONE_INTERPRETER_ENDS,     // compares, and puts back what was changed
    HONE_INTERPRETER_RACES, // two threads are about to run it at once: they are to hand over the interpreter's lock soon
    HONE_INTERPRETER_RACED, // they have done so
} hone_interpreter_stage;

typedef struct hone_interpreter {
    size_t struct_size;
    const char *name; // "Python 3.11.7", for people
    // The program and arguments of a process that lends an interpreter of the same kind and calls hone_interpreter_work(3),
    // NULL-ended. Candidates and references that are functions of Python run in one.
    const char *const *worker;
    // Finds the function. Any thread. Returns: HONE_OK; HONE_UNAVAILABLE (it imports what is not here);
    // HONE_UNSUPPORTED, HONE_KERNEL_FAILED with words; HONE_OUT_OF_MEMORY.
    hone_status (*prepare)(const hone_script *script, void **out_state, hone_error *err);
    void (*release)(void *state);
    // Runs it. args: one value for each parameter and result of the signature, scalars as the call has them. Any thread.
    //   words  why it failed, up to size bytes
    hone_status (*run)(
        void *state, const hone_value *args, size_t count, const hone_execution *execution, char *words, size_t size);
    // Of a worker: called once, before the first question, to load what candidates need and none of them is to wait for.
    // NULL if there is nothing.
    void (*start)(void);
    // Of a worker: what a candidate changes of the interpreter, which others share: functions of modules, settings. True, at
    // the end alone: it has changed what words name, such as "numpy.sin", up to size bytes. NULL if it is not looked for.
    // words is NULL in other stages.
    bool (*watch)(hone_interpreter_stage stage, char *words, size_t size);
    // Folders of its packages, absolute, a colon between: where libraries that packages bring (plugins of XLA, OpenBLAS, tvm-ffi)
    // are looked for first, and of workers, too. NULL if they are not known.
    const char *packages;
} hone_interpreter;

// Lends an interpreter, for good; a second one takes the place of the first. Before hone_runtime_open. NULL is refused.
//   interpreter  static: it is kept
// Threads: one, before others use hone. Returns: HONE_OK; HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status hone_interpreter_lend(const hone_interpreter *interpreter, hone_error *err);
// The whole of a worker's process: answers a contest's questions on a file descriptor until its other end is closed.
// The process loses its open files, the network, and what it might write (docs/tune.md). Returns the exit code.
HONE_API int hone_interpreter_work(int fd);

// A run that keeps the interpreter's lock, which takes as long to give up and take as a small kernel does: hone_run of a call that is
// a table hit, of one of the library's own kernels for the CPU with at most 64 KiB to move and 100,000 operations to do,
// some ten microseconds. Decides nothing, calls no callback and logs nothing. Any thread.
//   args  as hone_run's
// Returns: whether it ran. If not, results hold nothing: give the lock up and call hone_run.
HONE_API HONE_MUST_CHECK bool hone_run_if_short(const hone_op *op, const hone_value *args, size_t count);
// Whether a run of a bound plan is such a run. NULL: false.
HONE_API bool hone_plan_is_short(const hone_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
