// What a fake export calls of the fake tvm-ffi.
#ifndef FAKE_TVM_FFI_H
#define FAKE_TVM_FFI_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
EXPORT void TVMFFIErrorMoveFromRaised(void **out);
EXPORT int TVMFFIObjectDecRef(void *object);
EXPORT int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id, void *stream, void **out_before);
EXPORT void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

#endif
