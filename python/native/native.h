// The extension module hone._hone: what its files share. Limited API of Python 3.11, so that one build serves every
// Python from 3.11 on.
#ifndef HONE_PYTHON_NATIVE_H
#define HONE_PYTHON_NATIVE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hone/hone.h"

// Values of one call, and what of Python they borrow: fixed, so that a call allocates nothing.
enum { MAX_VALUES = 64 };

// One per process: types, exceptions and names that are looked up once.
typedef struct native_state {
    PyObject *errors[HONE_KERNEL_FAILED + 1]; // exception classes by status
    PyObject *name_dlpack, *name_get, *versioned_arguments, *unversioned_arguments;
    PyObject *context_variable; // contextvars.ContextVar of hone.Context or None
    PyObject *default_runtime;  // Python: makes or returns the runtime of the module's functions
    PyObject *allocate;         // Python: allocate(like, dtype, shape, stream) makes a result
    PyObject *maker;            // Python: maker(type, dtype): (function, dtype), where function(shape, dtype) makes one
    PyObject *exporter;         // Python: exporter(type), what shows arrays of a type, or None
    PyObject *show_torch, *show_cupy; // what exporter gives for tensors of torch, for CuPy's arrays
    PyObject *choose_stream;          // Python: choose(given, device, arrays) -> (stream, whether the call waits)
    PyObject *listed;   // Python: listed(list, type text, signature, [(type text, dtype, array)]) makes an array of it
    PyObject *log;      // Python: log(level, message), levels as hone's
    bool contexts_used; // whether any context was ever entered
    struct native_runtime *runtime; // that of the module's functions; NULL: not made yet
    PyTypeObject *runtime_type, *operation_type, *plan_type, *call_type, *context_type, *overlay_type, *result_type,
        *program_type, *store_type, *tuning_type, *torch_kernel_type, *torch_layer_type;
} native_state;

extern native_state native;

typedef struct native_runtime {
    PyObject_HEAD hone_runtime *rt;
    PyObject *operations; // dict: name -> native_operation
} native_runtime;

typedef struct native_parameter {
    PyObject *name; // interned
    hone_kind kind;
    bool is_result, is_inout, keyword_only, nullable, has_default;
} native_parameter;

enum { NATIVE_MADE_KEPT = 64 }; // a model has calls of that many shapes in turn

typedef struct native_made native_made;
typedef struct native_made_result native_made_result;

typedef struct native_operation {
    PyObject_HEAD native_runtime *runtime;
    native_made *made[NATIVE_MADE_KEPT]; // of calls whose results were made, where their keys say; NULL: of none
    const hone_op *op;
    hone_signature *signature;
    PyObject *name;
    size_t count, positional; // values; those in front that are no result and not keyword-only
    bool asks_axes;           // a function of torch has its name, and other axes
    native_parameter *parameters;
} native_operation;

typedef struct native_context {
    PyObject_HEAD native_runtime *runtime;
    hone_context *context;
} native_context;

typedef struct native_overlay {
    PyObject_HEAD native_runtime *runtime;
    hone_overlay *overlay;
} native_overlay;

typedef struct native_result {
    PyObject_HEAD native_runtime *runtime;
    hone_result *result;
} native_result;

typedef struct native_call {
    PyObject_HEAD native_operation *operation;
    hone_call *call;
} native_call;

// --- errors.c

// Raises the exception of a status with hone's own words, or the one that native_keep_exception has put there. Returns NULL.
PyObject *native_raise(const hone_error *err);
// The exception that is set, a new reference, with its traceback; none is set then.
PyObject *native_take_exception(void);
// Keeps the exception that is set, of a function that hone has called in this thread, and says so in err.
void native_keep_exception(hone_error *err);
// An exception that the program raised while a kernel of this thread ran, which is given away; NULL: none. native_raise raises
// it where the run ended with HONE_CANCELLED.
void native_keep_interrupt(PyObject *exception);

// --- log.c

// Of the levels that hone_runtime_options has; LOG_WAIT: what a call waits for, or has waited for.
enum { LOG_WAIT = -1, LOG_WARNING = 1, LOG_INFO = 2 };

// A log callback of hone's: what comes goes to Python's logging, soon. Needs no lock of the interpreter's; ctx is not
// used.
void native_log(void *ctx, int level, const char *text);

// --- tensors.c

// DLPack's DLManagedTensorVersioned: what owns a tensor.
typedef struct native_managed_tensor {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct native_managed_tensor *self);
    uint64_t flags;
    hone_tensor tensor;
} native_managed_tensor;

typedef struct native_exchange native_exchange; // in exchange.c

// What an array is taken for.
typedef enum native_taking {
    NATIVE_TO_RUN,
    NATIVE_TO_DESCRIBE, // a pair (dtype, shape) is an array, too
    NATIVE_QUICKLY,     // to run, outside forward mode; what torch may make something else of is refused without words
    NATIVE_MADE         // to run; it was made for the call, and is what it says
} native_taking;

// A tensor of Python for the length of a call.
typedef struct native_tensor {
    const hone_tensor *tensor;
    PyObject *owner;                 // keeps the tensor and its memory; NULL: `own` describes memory that is not there
    const native_exchange *exchange; // by which it was taken; NULL: by a capsule
    bool read_only;
    hone_tensor own; // where the owner brings no DLPack tensor
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
} native_tensor;

// Views an array without a copy: DLPack, with or without versions; ml_dtypes' arrays of numpy, which DLPack refuses, by
// their array interface. A pair (dtype, shape) is a tensor without data. False with an exception set.
//   is_outside_forward  of the call: true once torch was found not to be in forward mode, which is then not asked again
bool native_tensor_of(PyObject *object, native_taking taking, bool *is_outside_forward, native_tensor *out);
// Whether it is a list or tuple of numbers, and no description of an array.
bool native_tensor_is_listed(PyObject *object, native_taking taking);
// Whether it is a tensor of torch.
bool native_is_torch(PyObject *object);
// The view of an array of four dims with its two in the middle in turn. False with an exception set: it has not four.
bool native_tensor_swap(native_tensor *tensor);
// Whether the object may be written: its memory is, and it is no JAX array.
bool native_tensor_check_writable(PyObject *object, const native_tensor *tensor, PyObject *name);

// --- exchange.c

// The table of C functions that a type of arrays brings (__dlpack_c_exchange_api__). NULL, without an exception: it
// brings none.
const native_exchange *native_exchange_of(PyTypeObject *type);
// Views an array for as long as it lives and keeps its shape. False, without an exception: it is not to be had so.
bool native_exchange_view(const native_exchange *exchange, PyObject *object, native_tensor *out);
// A capsule that owns a tensor, with its flags. NULL with an exception.
PyObject *native_exchange_manage(const native_exchange *exchange, PyObject *object);
// The stream that the framework is on. False with an exception set.
bool native_exchange_current_stream(const native_exchange *exchange, hone_device device, void **out);
// Finds torch's own functions for the looks below, once, from torch.Tensor or a type that is made of it. False: they are
// not there, and are asked for in Python.
bool native_torch_learn(PyTypeObject *type);
// Whether a tensor is what the view of it says, and hone may read it. False, without an exception: Python says why not.
bool native_torch_is_plain(PyObject *tensor, const hone_tensor *view);
// Whether torch may be differentiating forward, so that a tensor may have a tangent.
bool native_torch_is_forward(void);
// Whether a mode of torch's sees every operation: a graph is traced, calls are counted.
bool native_torch_is_recording(void);
// Whether nothing in torch sees, records or changes what is called: no mode, transform, autocast, trace or profiler.
bool native_torch_is_ordinary(void);
// Whether it is a Tensor or Parameter, and of no class that may make something else of what is called.
bool native_torch_is_of_its_own(PyObject *object);
// An uninitialised tensor like another. NULL with an exception.
PyObject *native_torch_empty_like(PyObject *like);
// Whether it is a tensor of the torch that was learned; false where none was.
bool native_torch_is_tensor(PyObject *object);
// Raises the versions of tensors of torch that were written. False with an exception set.
bool native_torch_raise_versions(PyObject *const *tensors, size_t count);
// An uninitialised tensor for a result that is like a tensor of its call. NULL, without an exception: Python makes it.
PyObject *native_torch_empty(PyObject *like, const hone_tensor *view, const native_made_result *wanted);
// The same for a result of the tensor's dtype and device, as its shape says.
PyObject *native_torch_new_empty(PyObject *like, const hone_tensor *view, const native_made_result *wanted);

// --- streams.c

// What a run in C is given: NULL on the CPU.
typedef struct native_execution {
    hone_execution execution;
    hone_device device;
    bool on_gpu;      // else nothing of it is asked for
    bool waits;       // some array's framework has no stream to order by: the call ends when its kernel has
    PyObject *stream; // the number, for Python; NULL: none was given
} native_execution;

struct native_arguments;
// The stream of a call with these arrays: the one that is given (NULL: none), else the current one of their framework.
// False with an exception set. native_execution_close in either case.
bool native_execution_open(
    native_execution *out, const native_runtime *runtime, const struct native_arguments *arguments, PyObject *given);
void native_execution_close(native_execution *execution);
// For hone_run: NULL on the CPU.
const hone_execution *native_execution_of(const native_execution *execution);
// After the run: waits for it where the call does. Without the interpreter's lock.
hone_status native_execution_end(const native_execution *execution, const native_runtime *runtime, hone_error *err);
// Whether the stream is being captured: an exception then, for what may not happen there.
bool native_execution_check_uncaptured(
    const native_execution *execution, const native_runtime *runtime, const char *what);

// --- arguments.c

// The arguments of one call as hone takes them. Only what count and held_count cover is set.
typedef struct native_arguments {
    size_t count;      // of values, up to the last that was given
    size_t held_count; // of held
    bool lacks_results;
    bool is_outside_forward;           // native_tensor_of's
    bool makes;                        // what is taken now was made for this call
    bool asks_axes;                    // tensors of torch are refused: nobody has said in which order their axes are
    bool swaps;                        // axes="bhsd": arrays have their two dims in the middle in turn
    PyObject *like;                    // the first array, borrowed
    PyObject *axes, *stream;           // the keyword arguments of these names, borrowed; NULL: not given
    const native_execution *execution; // for results that are made; NULL: none yet
    uint64_t lists;                    // a bit for each that is a list of numbers, whose dtype the others tell
    PyObject *listed;                  // what was made of these: a list; NULL: nothing was
    uint64_t made;                     // a bit for each value that was made for this call
    hone_value values[MAX_VALUES];
    PyObject *objects[MAX_VALUES]; // borrowed; NULL: not given
    native_tensor held[MAX_VALUES];
} native_arguments;

// Takes positional arguments and keywords in the order of Python's fast calls.
bool native_arguments_take(
    native_arguments *out,
    native_operation *operation,
    PyObject *const *args,
    Py_ssize_t count,
    PyObject *keyword_names,
    native_taking taking);
// Says to torch that the results which were given are other values now: what recorded their old ones is to know. False with an
// exception set.
bool native_arguments_written(const native_arguments *arguments, const native_operation *operation);
// The array that a list of numbers is for a parameter of a type, kept for the length of the call, borrowed. NULL with an exception.
//   taken  (type text, dtype, array) of the others; the reference is taken
PyObject *native_arguments_listed(
    native_arguments *arguments, PyObject *list, const char *type_text, const char *signature, PyObject *taken);
void native_arguments_release(native_arguments *arguments);
// Puts the parameter's name before the message of an exception that says why an array could not be taken. Exceptions of the array's own
// stay as they are. Always false.
bool native_arguments_name(const native_parameter *parameter);
// The call that the arguments describe; *out is the caller's.
bool native_arguments_describe(const native_arguments *arguments, native_operation *operation, hone_call **out);
// Makes the results that were left out, as arrays like the first argument. Returns what the call gives back: one
// result, or a tuple. A new reference.
PyObject *native_arguments_results(native_arguments *arguments, native_operation *operation, PyObject **made);

// --- made.c

enum { NATIVE_KEY_WORDS = 96 };

struct native_made_result {
    PyObject *shape, *dtype; // as the caller sees it, or as hone has it, if turned: a tuple of ints; numpy's name
    bool is_turned;          // the caller gets it with the two dims in the middle in turn
    PyTypeObject *like; // results of calls whose first array is of this type: maker(shape, maker_dtype); NULL: of none
    PyObject *maker, *maker_dtype;
    hone_dtype element;
    int32_t ndim;
    int64_t dims[HONE_MAX_RANK]; // as hone has it
};

// What the results of a call are.
struct native_made {
    size_t users;
    size_t words; // of the key; 0: no call is like this one
    int64_t key[NATIVE_KEY_WORDS];
    size_t count;
    native_made_result results[];
};

// What the results are of a call that leaves them out: those of one before, where the call is like it. NULL with an exception;
// the caller releases it.
native_made *native_made_find(native_operation *operation, const native_arguments *arguments);
void native_made_release(native_made *made);

// --- scripts.c

PyObject *native_scripts_lend(PyObject *module, PyObject *args);
PyObject *native_scripts_work(PyObject *module, PyObject *args);
PyObject *native_scripts_signature(PyObject *module, PyObject *text);
// Loads a pack: (algorithm, kernel, status, reason) of what of it was refused.
PyObject *native_scripts_load(native_runtime *runtime, PyObject *folder);
// The same without registering anything.
PyObject *native_scripts_check(native_runtime *runtime, PyObject *folder);

// --- contexts.c

// The context that the calling code is in, borrowed from *out_owner (a new reference, or NULL). False: an exception.
bool native_context_current(hone_context **out, PyObject **out_owner);

// tuning.c
extern const char *const native_regime_names[HONE_REGIME_COUNT];
// warm, cold, graph or eager by name; NULL: warm. False: an exception is set.
bool native_regime(const char *name, hone_regime *out);

// --- the types, each made by its file

// A type of which only C makes objects. Returns NULL with an exception set.
PyTypeObject *native_make_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots);
PyTypeObject *native_runtime_make_type(PyObject *module);
PyTypeObject *native_operation_make_type(PyObject *module);
PyTypeObject *native_plan_make_type(PyObject *module);
PyTypeObject *native_call_make_type(PyObject *module);
PyTypeObject *native_context_make_type(PyObject *module);
PyTypeObject *native_overlay_make_type(PyObject *module);
PyTypeObject *native_result_make_type(PyObject *module);
PyTypeObject *native_program_make_type(PyObject *module);
PyTypeObject *native_store_make_type(PyObject *module);
PyTypeObject *native_tuner_make_type(PyObject *module);
PyTypeObject *native_torch_kernel_make_type(PyObject *module);
PyTypeObject *native_torch_layer_make_type(PyObject *module);

// Parameters and results of a signature, a dict each.
PyObject *native_parameters_of(const hone_signature *signature);
// The operation of a name or object, borrowed; NULL with an exception.
native_operation *native_operation_find(native_runtime *runtime, PyObject *name_or_operation);
typedef PyObject *native_operation_function(
    native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names);
// Calls a function with the operation that args[0] names, and keeps it meanwhile: another thread may close the runtime.
PyObject *native_with_operation(
    native_runtime *runtime,
    native_operation_function *function,
    PyObject *const *args,
    Py_ssize_t count,
    PyObject *names);
// The operation of a name of the module's runtime, a new reference; NULL with an exception.
native_operation *native_operation_of_default(PyObject *name);
// The call of arguments that were taken, which stay the caller's.
PyObject *native_operation_run_taken(native_operation *operation, native_arguments *arguments);
PyObject *native_operation_run(native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *native_operation_bind(native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *native_operation_call(native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *native_plan_new(native_operation *operation, native_arguments *arguments);
PyObject *native_call_new(native_operation *operation, hone_call *call);      // takes the call
PyObject *native_result_new(native_runtime *runtime, hone_result *result);    // takes the result
PyObject *native_overlay_new(native_runtime *runtime, hone_overlay *overlay); // takes the overlay
PyObject *native_program_read(native_runtime *runtime, PyObject *args);
PyObject *native_context_derive(native_runtime *runtime, PyObject *args);
PyObject *native_context_derive_chain(native_runtime *runtime, PyObject *args);
// Tuning, in tuning.c. options: keyword arguments of hone.tune.
PyObject *native_tune(native_runtime *runtime, PyObject *args, PyObject *options);
typedef hone_status native_tuning(void *subject, const hone_tune_options *options, hone_result **out, hone_error *err);
PyObject *native_tune_with(native_runtime *runtime, native_tuning *tuning, void *subject, PyObject *options);
// Calls tuner(tuning) for a contest. False: an exception is set.
bool native_run_tuner(PyObject *tuner, hone_tuning *tuning);
// audit(calls, threshold, **options): the audit document.
PyObject *native_audit(native_runtime *runtime, PyObject *args, PyObject *options);
// counts.c: stats(format), compare_stats(), agree(calls) of a runtime, and compare_agreements(documents).
PyObject *native_runtime_stats(PyObject *runtime, PyObject *format);
PyObject *native_runtime_compare_stats(PyObject *runtime, PyObject *none);
PyObject *native_runtime_agree(PyObject *runtime, PyObject *calls);
PyObject *native_compare_agreements(PyObject *module, PyObject *documents);
// open_store(url, read_only), in store.c.
PyObject *native_store_open(PyObject *module, PyObject *args);
// torch_kernel(name, recorded or None, makes_results, torch.Tensor), in torch_kernel.c: what torch's dispatcher calls.
PyObject *native_torch_kernel_new(PyObject *module, PyObject *args);
// torch_layer(operation, weights, scalars, eps, eps_if_none, attributes, takes_rows), in torch_layer.c: what runs
// a module's call.
PyObject *native_torch_layer_new(PyObject *module, PyObject *args);
// A decision as a dict.
PyObject *native_decision(const hone_decision *decision, const char *call);

// The memory of an object of a heap type, given back with its type.
void native_object_free(PyObject *self);
// A str, or None for NULL.
PyObject *native_text(const char *text);
// Appends an item, which is taken. Where that fails, or the item is NULL, the list is gone and an exception is set.
void native_append(PyObject **list, PyObject *item);
// A tuple of ints.
PyObject *native_shape(const hone_tensor *tensor);
// Raises a TypeError, "NAME must be EXPECTED, got TYPE". Always false.
bool native_fail_type(PyObject *name, const char *expected, PyObject *object);
// The text of a str, borrowed; NULL with an exception for what is none, and for one that holds a NUL.
const char *native_utf8(PyObject *text);

#endif
