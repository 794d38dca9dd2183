// One argument of a call, 16 bytes.
//
// Bit-compatible with tvm-ffi's TVMFFIAny for tags 0 to 8 (apache-tvm-ffi 0.1, c_api.h), so an argument
// array goes to a tvm-ffi function as it is.
#ifndef HONE_VALUE_H
#define HONE_VALUE_H

#include "hone/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_value_tag {
    HONE_VALUE_NONE = 0,
    HONE_VALUE_INT = 1,
    HONE_VALUE_BOOL = 2,
    HONE_VALUE_FLOAT = 3,
    HONE_VALUE_POINTER = 4,
    HONE_VALUE_DTYPE = 5,
    HONE_VALUE_DEVICE = 6,
    HONE_VALUE_TENSOR = 7, // a pointer to a hone_tensor, borrowed
    HONE_VALUE_STRING = 8  // a pointer to a NUL-terminated UTF-8 string, borrowed
} hone_value_tag;

typedef struct hone_value {
    int32_t tag; // hone_value_tag
    uint32_t zero;
    union {
        int64_t i64; // INT, and BOOL as 0 or 1
        double f64;
        void *pointer;
        const hone_tensor *tensor;
        const char *string;
        hone_dtype dtype;
        hone_device device;
    } as;
} hone_value;

static inline hone_value hone_of_int(int64_t i64)
{
    hone_value value;
    value.tag = HONE_VALUE_INT;
    value.zero = 0;
    value.as.i64 = i64;
    return value;
}

static inline hone_value hone_of_none(void)
{
    hone_value value = hone_of_int(0);
    value.tag = HONE_VALUE_NONE;
    return value;
}

static inline hone_value hone_of_bool(bool truth)
{
    hone_value value = hone_of_int(truth ? 1 : 0);
    value.tag = HONE_VALUE_BOOL;
    return value;
}

static inline hone_value hone_of_float(double f64)
{
    hone_value value;
    value.tag = HONE_VALUE_FLOAT;
    value.zero = 0;
    value.as.f64 = f64;
    return value;
}

static inline hone_value hone_of_pointer(void *pointer)
{
    hone_value value = hone_of_int(0);
    value.tag = HONE_VALUE_POINTER;
    value.as.pointer = pointer;
    return value;
}

static inline hone_value hone_of_tensor(const hone_tensor *tensor)
{
    hone_value value = hone_of_int(0);
    value.tag = HONE_VALUE_TENSOR;
    value.as.tensor = tensor;
    return value;
}

static inline hone_value hone_of_string(const char *string)
{
    hone_value value = hone_of_int(0);
    value.tag = HONE_VALUE_STRING;
    value.as.string = string;
    return value;
}

#ifdef __cplusplus
}
#endif
#endif
