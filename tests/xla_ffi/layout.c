// Compiled, never run: src/xla_ffi/ffi.h against the header that jaxlib ships (tests/python/test_jax.py does it).
#include "xla_ffi/ffi.h"

#include <xla/ffi/api/c_api.h>

#define SAME_OFFSET(ours, our_field, theirs, their_field)                                                              \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #ours "." #our_field)
#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

SAME_OFFSET(xla_ffi_frame, extension, XLA_FFI_CallFrame, extension_start);
SAME_OFFSET(xla_ffi_frame, api, XLA_FFI_CallFrame, api);
SAME_OFFSET(xla_ffi_frame, context, XLA_FFI_CallFrame, ctx);
SAME_OFFSET(xla_ffi_frame, stage, XLA_FFI_CallFrame, stage);
SAME_OFFSET(xla_ffi_frame, arguments, XLA_FFI_CallFrame, args);
SAME_OFFSET(xla_ffi_frame, results, XLA_FFI_CallFrame, rets);
SAME_OFFSET(xla_ffi_frame, attributes, XLA_FFI_CallFrame, attrs);
SAME_OFFSET(xla_ffi_buffers, size, XLA_FFI_Args, size);
SAME_OFFSET(xla_ffi_buffers, types, XLA_FFI_Args, types);
SAME_OFFSET(xla_ffi_buffers, buffers, XLA_FFI_Args, args);
SAME_OFFSET(xla_ffi_buffers, buffers, XLA_FFI_Rets, rets);
SAME_OFFSET(xla_ffi_attributes, types, XLA_FFI_Attrs, types);
SAME_OFFSET(xla_ffi_attributes, names, XLA_FFI_Attrs, names);
SAME_OFFSET(xla_ffi_attributes, values, XLA_FFI_Attrs, attrs);
SAME_OFFSET(xla_ffi_buffer, dtype, XLA_FFI_Buffer, dtype);
SAME_OFFSET(xla_ffi_buffer, data, XLA_FFI_Buffer, data);
SAME_OFFSET(xla_ffi_buffer, rank, XLA_FFI_Buffer, rank);
SAME_OFFSET(xla_ffi_buffer, dims, XLA_FFI_Buffer, dims);
SAME_OFFSET(xla_ffi_scalar, dtype, XLA_FFI_Scalar, dtype);
SAME_OFFSET(xla_ffi_scalar, value, XLA_FFI_Scalar, value);
SAME_OFFSET(xla_ffi_text, size, XLA_FFI_ByteSpan, len);
SAME_OFFSET(xla_ffi_metadata_extension, extension.type, XLA_FFI_Metadata_Extension, extension_base.type);
SAME_OFFSET(xla_ffi_metadata_extension, extension.next, XLA_FFI_Metadata_Extension, extension_base.next);
SAME_OFFSET(xla_ffi_metadata_extension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME_OFFSET(xla_ffi_metadata, api_version.major, XLA_FFI_Metadata, api_version.major_version);
SAME_OFFSET(xla_ffi_metadata, api_version.minor, XLA_FFI_Metadata, api_version.minor_version);
SAME_OFFSET(xla_ffi_metadata, traits, XLA_FFI_Metadata, traits);
SAME_OFFSET(xla_ffi_error_create, message, XLA_FFI_Error_Create_Args, message);
SAME_OFFSET(xla_ffi_error_create, code, XLA_FFI_Error_Create_Args, errc);
SAME_OFFSET(xla_ffi_error_destroy, error, XLA_FFI_Error_Destroy_Args, error);
SAME_OFFSET(xla_ffi_stream_get, stream, XLA_FFI_Stream_Get_Args, stream);
SAME_OFFSET(xla_ffi_ordinal_get, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
SAME_OFFSET(xla_ffi_memory_allocate, size, XLA_FFI_DeviceMemory_Allocate_Args, size);
SAME_OFFSET(xla_ffi_memory_allocate, alignment, XLA_FFI_DeviceMemory_Allocate_Args, alignment);
SAME_OFFSET(xla_ffi_memory_allocate, data, XLA_FFI_DeviceMemory_Allocate_Args, data);
SAME_OFFSET(xla_ffi_memory_free, size, XLA_FFI_DeviceMemory_Free_Args, size);
SAME_OFFSET(xla_ffi_memory_free, data, XLA_FFI_DeviceMemory_Free_Args, data);
SAME_OFFSET(xla_ffi_schedule, task, XLA_FFI_ThreadPool_Schedule_Args, task);
SAME_OFFSET(xla_ffi_schedule, data, XLA_FFI_ThreadPool_Schedule_Args, data);
SAME_OFFSET(xla_ffi_threads_get, threads, XLA_FFI_ThreadPool_NumThreads_Args, num_threads);
SAME_OFFSET(xla_ffi_api, version, XLA_FFI_Api, api_version);
SAME_OFFSET(xla_ffi_api, error_create, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME_OFFSET(xla_ffi_api, error_destroy, XLA_FFI_Api, XLA_FFI_Error_Destroy);
SAME_OFFSET(xla_ffi_api, stream_get, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME_OFFSET(xla_ffi_api, memory_allocate, XLA_FFI_Api, XLA_FFI_DeviceMemory_Allocate);
SAME_OFFSET(xla_ffi_api, memory_free, XLA_FFI_Api, XLA_FFI_DeviceMemory_Free);
SAME_OFFSET(xla_ffi_api, schedule, XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule);
SAME_OFFSET(xla_ffi_api, threads_get, XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads);
SAME_OFFSET(xla_ffi_api, ordinal_get, XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);

SAME_VALUE(XLA_FFI_EXTENSION_METADATA, XLA_FFI_Extension_Metadata);
SAME_VALUE(XLA_FFI_INSTANTIATE, XLA_FFI_ExecutionStage_INSTANTIATE);
SAME_VALUE(XLA_FFI_EXECUTE, XLA_FFI_ExecutionStage_EXECUTE);
SAME_VALUE(XLA_FFI_IS_BUFFER, XLA_FFI_ArgType_BUFFER);
SAME_VALUE(XLA_FFI_IS_BUFFER, XLA_FFI_RetType_BUFFER);
SAME_VALUE(XLA_FFI_SCALAR, XLA_FFI_AttrType_SCALAR);
SAME_VALUE(XLA_FFI_STRING, XLA_FFI_AttrType_STRING);
SAME_VALUE(XLA_FFI_ARRAY, XLA_FFI_AttrType_ARRAY);
SAME_VALUE(XLA_FFI_DICTIONARY, XLA_FFI_AttrType_DICTIONARY);
SAME_VALUE(XLA_FFI_PRED, XLA_FFI_DataType_PRED);
SAME_VALUE(XLA_FFI_S8, XLA_FFI_DataType_S8);
SAME_VALUE(XLA_FFI_S16, XLA_FFI_DataType_S16);
SAME_VALUE(XLA_FFI_S32, XLA_FFI_DataType_S32);
SAME_VALUE(XLA_FFI_S64, XLA_FFI_DataType_S64);
SAME_VALUE(XLA_FFI_F32, XLA_FFI_DataType_F32);
SAME_VALUE(XLA_FFI_F64, XLA_FFI_DataType_F64);
SAME_VALUE(XLA_FFI_CANCELLED, XLA_FFI_Error_Code_CANCELLED);
SAME_VALUE(XLA_FFI_UNKNOWN, XLA_FFI_Error_Code_UNKNOWN);
SAME_VALUE(XLA_FFI_INVALID_ARGUMENT, XLA_FFI_Error_Code_INVALID_ARGUMENT);
SAME_VALUE(XLA_FFI_NOT_FOUND, XLA_FFI_Error_Code_NOT_FOUND);
SAME_VALUE(XLA_FFI_RESOURCE_EXHAUSTED, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
SAME_VALUE(XLA_FFI_FAILED_PRECONDITION, XLA_FFI_Error_Code_FAILED_PRECONDITION);
SAME_VALUE(XLA_FFI_ABORTED, XLA_FFI_Error_Code_ABORTED);
SAME_VALUE(XLA_FFI_UNIMPLEMENTED, XLA_FFI_Error_Code_UNIMPLEMENTED);
SAME_VALUE(XLA_FFI_INTERNAL, XLA_FFI_Error_Code_INTERNAL);
SAME_VALUE(XLA_FFI_UNAVAILABLE, XLA_FFI_Error_Code_UNAVAILABLE);
SAME_VALUE(XLA_FFI_DATA_LOSS, XLA_FFI_Error_Code_DATA_LOSS);
