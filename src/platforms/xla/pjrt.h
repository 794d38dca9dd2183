// The part of OpenXLA's PJRT C API that hone calls, as hone's own declarations: what a plugin exports as GetPjrtApi.
//
// A plugin provides a table of functions, each of which takes one struct of arguments and returns an error or NULL.
// Tables and structs only ever grow at their ends; each begins with its size, so that both sides know how much of it
// the other one has. The numbers are those of the header of 0.81 (major 0 is the only one so far); tests/unit/xla
// compares them with that header.
#ifndef HONE_PLATFORMS_XLA_PJRT_H
#define HONE_PLATFORMS_XLA_PJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pjrt_error pjrt_error;
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_device pjrt_device;
typedef struct pjrt_description pjrt_description;
typedef struct pjrt_executable pjrt_executable; // what can be queried and serialised
typedef struct pjrt_loaded pjrt_loaded;         // what can be run
typedef struct pjrt_buffer pjrt_buffer;

// Indices of functions in the table.
typedef enum pjrt_slot {
    PJRT_ERROR_DESTROY = 0,
    PJRT_ERROR_MESSAGE = 1,
    PJRT_ERROR_CODE = 2,
    PJRT_PLUGIN_INITIALIZE = 3,
    PJRT_PLUGIN_ATTRIBUTES = 4,
    PJRT_EVENT_DESTROY = 5,
    PJRT_EVENT_AWAIT = 8,
    PJRT_CLIENT_CREATE = 10,
    PJRT_CLIENT_DESTROY = 11,
    PJRT_CLIENT_PLATFORM_NAME = 12,
    PJRT_CLIENT_PLATFORM_VERSION = 14,
    PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
    PJRT_CLIENT_COMPILE = 20,
    PJRT_CLIENT_BUFFER_FROM_HOST = 22,
    PJRT_DESCRIPTION_KIND = 26,
    PJRT_DEVICE_DESCRIPTION = 29,
    PJRT_DEVICE_LOCAL_HARDWARE_ID = 31,
    PJRT_EXECUTABLE_DESTROY = 40,
    PJRT_EXECUTABLE_OUTPUT_COUNT = 44,
    PJRT_EXECUTABLE_OPTIMIZED_PROGRAM = 48,
    PJRT_EXECUTABLE_SERIALIZE = 49,
    PJRT_LOADED_DESTROY = 50,
    PJRT_LOADED_EXECUTABLE = 51,
    PJRT_LOADED_EXECUTE = 55,
    PJRT_DESERIALIZE_AND_LOAD = 56,
    PJRT_BUFFER_DESTROY = 58,
    PJRT_BUFFER_DEVICE_POINTER = 76,
    PJRT_EXECUTABLE_OUTPUT_TYPES = 90,
    PJRT_EXECUTABLE_OUTPUT_DIMENSIONS = 91,
    PJRT_CLIENT_VIEW_OF_DEVICE_BUFFER = 93,
} pjrt_slot;

// The first two fields of every struct. extension is a list of extensions to the core; hone uses none of them.
typedef struct pjrt_head {
    size_t struct_size;
    void *extension;
} pjrt_head;

// Every function: arguments begin with a pjrt_head. Returns NULL on success.
typedef pjrt_error *pjrt_function(void *arguments);

typedef struct pjrt_api {
    pjrt_head head;
    struct {
        pjrt_head head;
        int major, minor;
    } version;
    pjrt_function *functions[]; // as many as fit in head.struct_size
} pjrt_api;
_Static_assert(sizeof(void *) != 8 || offsetof(pjrt_api, functions) == 40, "the first function is at byte 40");

// Status codes of errors that hone distinguishes.
enum {
    PJRT_INVALID_ARGUMENT = 3,
    PJRT_NOT_FOUND = 5,
    PJRT_RESOURCE_EXHAUSTED = 8,
    PJRT_FAILED_PRECONDITION = 9,
    PJRT_UNIMPLEMENTED = 12
};

// The plugin fills the fields marked "out". Texts are not NUL-terminated.
typedef struct pjrt_error_arguments {
    pjrt_head head;
    pjrt_error *error;
} pjrt_error_arguments;

typedef struct pjrt_error_message {
    pjrt_head head;
    const pjrt_error *error;
    const char *text; // out
    size_t size;      // out
} pjrt_error_message;

typedef struct pjrt_error_code {
    pjrt_head head;
    const pjrt_error *error;
    int code; // out
} pjrt_error_code;

// One object: destroy, await, initialise (which has none).
typedef struct pjrt_one {
    pjrt_head head;
    void *object;
} pjrt_one;

// One object, and the property that is queried.
typedef struct pjrt_get {
    pjrt_head head;
    void *object;
    void *value; // out: a pointer, a count, an int
} pjrt_get;

typedef struct pjrt_get_text {
    pjrt_head head;
    void *object;
    const char *text; // out
    size_t size;      // out
} pjrt_get_text;

typedef struct pjrt_get_int {
    pjrt_head head;
    void *object;
    int value; // out
} pjrt_get_int;

typedef enum pjrt_named_type {
    PJRT_NAMED_TEXT,
    PJRT_NAMED_INT,
    PJRT_NAMED_INTS,
    PJRT_NAMED_FLOAT,
    PJRT_NAMED_BOOL
} pjrt_named_type;

typedef struct pjrt_named_value {
    pjrt_head head;
    const char *name;
    size_t name_size;
    pjrt_named_type type;
    union {
        const char *text;
        int64_t i64;
        const int64_t *i64s;
        float f32;
        bool truth;
    } value;
    size_t value_size; // 1 for what is neither a string nor a list
} pjrt_named_value;

typedef struct pjrt_attributes {
    pjrt_head head;
    const pjrt_named_value *values; // out
    size_t count;                   // out
} pjrt_attributes;

typedef struct pjrt_client_create {
    pjrt_head head;
    const pjrt_named_value *options;
    size_t option_count;
    void *get_callback, *get_context, *put_callback, *put_context; // of programs on several hosts
    pjrt_client *client;                                           // out
    void *try_get_callback, *try_get_context;
} pjrt_client_create;

typedef struct pjrt_addressable_devices {
    pjrt_head head;
    pjrt_client *client;
    pjrt_device *const *devices; // out
    size_t count;                // out
} pjrt_addressable_devices;

typedef struct pjrt_program {
    pjrt_head head;
    char *code; // input of a compilation; output of a query for a program, if it is not NULL
    size_t code_size;
    const char *format; // "mlir", "hlo", "hlo_with_config"
    size_t format_size;
} pjrt_program;

typedef struct pjrt_compile {
    pjrt_head head;
    pjrt_client *client;
    const pjrt_program *program;
    const char *options; // a CompileOptionsProto
    size_t options_size;
    pjrt_loaded *loaded; // out
} pjrt_compile;

typedef enum pjrt_host_semantics {
    PJRT_HOST_COPY = 0,      // the data is read before the call returns
    PJRT_HOST_IMMUTABLE = 2, // the buffer uses the data, which must not be written
    PJRT_HOST_MUTABLE = 3,   // the buffer uses the data, which a donation may overwrite
} pjrt_host_semantics;

typedef struct pjrt_buffer_from_host {
    pjrt_head head;
    pjrt_client *client;
    const void *data;
    int type; // hone_dtype_info.pjrt
    const int64_t *dims;
    size_t dim_count;
    const int64_t *byte_strides; // NULL: row-major
    size_t byte_stride_count;
    pjrt_host_semantics semantics;
    pjrt_device *device;
    void *memory, *layout;
    pjrt_event *done;    // out
    pjrt_buffer *buffer; // out
} pjrt_buffer_from_host;

typedef struct pjrt_view {
    pjrt_head head;
    pjrt_client *client;
    void *data;
    const int64_t *dims;
    size_t dim_count;
    int type;
    void *layout;
    pjrt_device *device;
    void (*on_delete)(void *data, void *context); // required
    void *on_delete_context;
    intptr_t stream;     // on which the data are produced; 0: they are ready
    pjrt_buffer *buffer; // out
    void *memory;
} pjrt_view;

typedef struct pjrt_execute_options {
    pjrt_head head;
    void *send_callbacks, *receive_callbacks;
    size_t send_count, receive_count;
    int launch_id;
    const int64_t *kept_arguments; // those that are not donated
    size_t kept_argument_count;
    void *context;
    const char *call_location;
    size_t task_count;
    int *task_ids;
    int64_t *incarnation_ids;
} pjrt_execute_options;

typedef struct pjrt_execute {
    pjrt_head head;
    pjrt_loaded *loaded;
    pjrt_execute_options *options;
    pjrt_buffer *const *const *argument_lists; // a list for each device
    size_t device_count, argument_count;
    pjrt_buffer **const *output_lists; // filled
    pjrt_event **complete;             // filled: an event for each device
    pjrt_device *device;
} pjrt_execute;

typedef struct pjrt_output_types {
    pjrt_head head;
    pjrt_executable *executable;
    const int *types; // out
    size_t count;     // out
} pjrt_output_types;

typedef struct pjrt_output_dimensions {
    pjrt_head head;
    pjrt_executable *executable;
    size_t count;
    const int64_t *dims; // out: of all outputs, concatenated
    const size_t *ranks; // out
} pjrt_output_dimensions;

typedef struct pjrt_serialize {
    pjrt_head head;
    const pjrt_executable *executable;
    const char *bytes;               // out
    size_t size;                     // out
    void *owner;                     // out: of the bytes
    void (*free_owner)(void *owner); // out
} pjrt_serialize;

typedef struct pjrt_deserialize {
    pjrt_head head;
    pjrt_client *client;
    const char *bytes;
    size_t size;
    pjrt_loaded *loaded; // out
    const char *options; // NULL: those with which it was compiled
    size_t options_size;
} pjrt_deserialize;

// {PJRT_HEAD(arguments), ...}: the head of a struct of arguments.
#define PJRT_HEAD(type) .head = {.struct_size = sizeof(type)}

#endif
