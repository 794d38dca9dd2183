// XLA's foreign function interface, as much of it as a handler needs, so that hone builds without jaxlib.
//
// Source of the layouts and numbers: xla/ffi/api/c_api.h, which jaxlib ships. Structs of XLA grow at their ends and say
// their size; what is here has been the same from FFI 0.1 to 0.5, and tests/python/test_xla_ffi.py compares it with the
// header of the jaxlib that is installed.
#ifndef HONE_XLA_FFI_FFI_H
#define HONE_XLA_FFI_FFI_H

#include <stddef.h>
#include <stdint.h>

// What is said to XLA: a handler of 0.1 is taken by every runtime since.
enum { XLA_FFI_MAJOR = 0, XLA_FFI_MINOR = 1 };

typedef enum xla_ffi_code {
    XLA_FFI_CANCELLED = 1,
    XLA_FFI_UNKNOWN = 2,
    XLA_FFI_INVALID_ARGUMENT = 3,
    XLA_FFI_NOT_FOUND = 5,
    XLA_FFI_RESOURCE_EXHAUSTED = 8,
    XLA_FFI_FAILED_PRECONDITION = 9,
    XLA_FFI_ABORTED = 10,
    XLA_FFI_UNIMPLEMENTED = 12,
    XLA_FFI_INTERNAL = 13,
    XLA_FFI_UNAVAILABLE = 14,
    XLA_FFI_DATA_LOSS = 15
} xla_ffi_code;

// Of xla::PrimitiveType: those that scalars of attributes may have. Buffers have any of hone_dtype_info.xla.
enum {
    XLA_FFI_PRED = 1,
    XLA_FFI_S8 = 2,
    XLA_FFI_S16 = 3,
    XLA_FFI_S32 = 4,
    XLA_FFI_S64 = 5,
    XLA_FFI_F32 = 11,
    XLA_FFI_F64 = 12,
    XLA_FFI_DATA_TYPES = 64 // more than there are
};

typedef struct xla_ffi_error xla_ffi_error;
typedef struct xla_ffi_context xla_ffi_context;

typedef enum xla_ffi_extension_type { XLA_FFI_EXTENSION_METADATA = 1 } xla_ffi_extension_type;

typedef struct xla_ffi_extension {
    size_t struct_size;
    xla_ffi_extension_type type;
    struct xla_ffi_extension *next;
} xla_ffi_extension;

typedef struct xla_ffi_version {
    size_t struct_size;
    xla_ffi_extension *extension;
    int major, minor;
} xla_ffi_version;

typedef struct xla_ffi_metadata {
    size_t struct_size;
    xla_ffi_version api_version;
    uint32_t traits;
} xla_ffi_metadata;

typedef struct xla_ffi_metadata_extension {
    xla_ffi_extension extension;
    xla_ffi_metadata *metadata;
} xla_ffi_metadata_extension;

typedef struct xla_ffi_text {
    const char *data;
    size_t size;
} xla_ffi_text;

typedef struct xla_ffi_scalar {
    int dtype;
    const void *value;
} xla_ffi_scalar;

typedef struct xla_ffi_buffer {
    size_t struct_size;
    xla_ffi_extension *extension;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} xla_ffi_buffer;

enum { XLA_FFI_IS_BUFFER = 1 };

// Arguments, and results.
typedef struct xla_ffi_buffers {
    size_t struct_size;
    xla_ffi_extension *extension;
    int64_t size;
    const int *types; // XLA_FFI_IS_BUFFER
    xla_ffi_buffer **buffers;
} xla_ffi_buffers;

typedef enum xla_ffi_attribute_type {
    XLA_FFI_ARRAY = 1,
    XLA_FFI_DICTIONARY = 2,
    XLA_FFI_SCALAR = 3,
    XLA_FFI_STRING = 4
} xla_ffi_attribute_type;

typedef struct xla_ffi_attributes {
    size_t struct_size;
    xla_ffi_extension *extension;
    int64_t size;
    const int *types; // xla_ffi_attribute_type
    xla_ffi_text **names;
    void **values; // xla_ffi_scalar, xla_ffi_text
} xla_ffi_attributes;

typedef enum xla_ffi_stage { XLA_FFI_INSTANTIATE = 0, XLA_FFI_EXECUTE = 3 } xla_ffi_stage;

typedef struct xla_ffi_error_create {
    size_t struct_size;
    xla_ffi_extension *extension;
    const char *message;
    xla_ffi_code code;
} xla_ffi_error_create;

typedef struct xla_ffi_error_destroy {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_error *error;
} xla_ffi_error_destroy;

typedef struct xla_ffi_stream_get {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_context *context;
    void *stream;
} xla_ffi_stream_get;

typedef struct xla_ffi_ordinal_get {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_context *context;
    int32_t ordinal;
} xla_ffi_ordinal_get;

typedef struct xla_ffi_memory_allocate {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_context *context;
    size_t size, alignment;
    void *data;
} xla_ffi_memory_allocate;

typedef struct xla_ffi_memory_free {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_context *context;
    size_t size;
    void *data;
} xla_ffi_memory_free;

typedef struct xla_ffi_schedule {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_context *context;
    void (*task)(void *data);
    void *data;
} xla_ffi_schedule;

typedef struct xla_ffi_threads_get {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_context *context;
    int64_t *threads;
} xla_ffi_threads_get;

typedef void xla_ffi_unused(void);

typedef struct xla_ffi_api {
    size_t struct_size;
    xla_ffi_extension *extension;
    xla_ffi_version version;
    const void *internal;
    xla_ffi_error *(*error_create)(xla_ffi_error_create *args);
    xla_ffi_unused *error_message;
    void (*error_destroy)(xla_ffi_error_destroy *args);
    xla_ffi_unused *handler_register;
    xla_ffi_error *(*stream_get)(xla_ffi_stream_get *args);
    xla_ffi_unused *type_register, *context_get, *state_set, *state_get;
    xla_ffi_error *(*memory_allocate)(xla_ffi_memory_allocate *args);
    xla_ffi_error *(*memory_free)(xla_ffi_memory_free *args);
    xla_ffi_error *(*schedule)(xla_ffi_schedule *args);
    xla_ffi_error *(*threads_get)(xla_ffi_threads_get *args);
    xla_ffi_unused *future_create, *future_set_available, *future_set_error, *run_id_get;
    xla_ffi_error *(*ordinal_get)(xla_ffi_ordinal_get *args);
} xla_ffi_api;

// Whether XLA is new enough to have a function of its api.
#define XLA_FFI_HAS(api, function)                                                                                     \
    ((api)->struct_size >= offsetof(xla_ffi_api, function) + sizeof(void *) && (api)->function != NULL)

typedef struct xla_ffi_frame {
    size_t struct_size;
    xla_ffi_extension *extension;
    const xla_ffi_api *api;
    xla_ffi_context *context;
    int stage; // xla_ffi_stage, and others
    xla_ffi_buffers arguments, results;
    xla_ffi_attributes attributes;
} xla_ffi_frame;

typedef xla_ffi_error *xla_ffi_handler(xla_ffi_frame *frame);

#endif
