// The one table of element types: every other system's name and number for a type is a column here.
#include "hone/describe.h"
#include "hone/tensor.h"

#include <string.h>

#define TRIPLE(c, b)                                                                                                   \
    {                                                                                                                  \
        .code = (c), .bits = (b), .lanes = 1                                                                           \
    }

// In the order of hone_dtype_id. Numbers: PJRT_Buffer_Type and xla.PrimitiveType of openxla, 2026-08; names of
// ml_dtypes 0.5, Triton 3.7 and CUDA 13.
static const hone_dtype_info table[HONE_DTYPE_COUNT] = {
    {HONE_BOOL, TRIPLE(HONE_CODE_BOOL, 8), "bool", "bool", "pred", "i1", 1, 1, "i1", "bool", 8},
    {HONE_I4, TRIPLE(HONE_CODE_INT, 4), "i4", "int4", "s4", "i4", 21, 21, NULL, NULL, 4},
    {HONE_I8, TRIPLE(HONE_CODE_INT, 8), "i8", "int8", "s8", "i8", 2, 2, "i8", "signed char", 8},
    {HONE_I16, TRIPLE(HONE_CODE_INT, 16), "i16", "int16", "s16", "i16", 3, 3, "i16", "short", 16},
    {HONE_I32, TRIPLE(HONE_CODE_INT, 32), "i32", "int32", "s32", "i32", 4, 4, "i32", "int", 32},
    {HONE_I64, TRIPLE(HONE_CODE_INT, 64), "i64", "int64", "s64", "i64", 5, 5, "i64", "long long", 64},
    {HONE_U4, TRIPLE(HONE_CODE_UINT, 4), "u4", "uint4", "u4", "ui4", 22, 22, NULL, NULL, 4},
    {HONE_U8, TRIPLE(HONE_CODE_UINT, 8), "u8", "uint8", "u8", "ui8", 6, 6, "u8", "unsigned char", 8},
    {HONE_U16, TRIPLE(HONE_CODE_UINT, 16), "u16", "uint16", "u16", "ui16", 7, 7, "u16", "unsigned short", 16},
    {HONE_U32, TRIPLE(HONE_CODE_UINT, 32), "u32", "uint32", "u32", "ui32", 8, 8, "u32", "unsigned int", 32},
    {HONE_U64, TRIPLE(HONE_CODE_UINT, 64), "u64", "uint64", "u64", "ui64", 9, 9, "u64", "unsigned long long", 64},
    {HONE_F8_E4M3FN, TRIPLE(HONE_CODE_FLOAT8_E4M3FN, 8), "f8_e4m3fn", "float8_e4m3fn", "f8e4m3fn", "f8E4M3FN", 17, 20,
     "fp8e4nv", "__nv_fp8_e4m3", 8},
    {HONE_F8_E5M2, TRIPLE(HONE_CODE_FLOAT8_E5M2, 8), "f8_e5m2", "float8_e5m2", "f8e5m2", "f8E5M2", 16, 19, "fp8e5",
     "__nv_fp8_e5m2", 8},
    {HONE_F16, TRIPLE(HONE_CODE_FLOAT, 16), "f16", "float16", "f16", "f16", 10, 10, "fp16", "__half", 16},
    {HONE_BF16, TRIPLE(HONE_CODE_BFLOAT, 16), "bf16", "bfloat16", "bf16", "bf16", 13, 16, "bf16", "__nv_bfloat16", 16},
    {HONE_F32, TRIPLE(HONE_CODE_FLOAT, 32), "f32", "float32", "f32", "f32", 11, 11, "fp32", "float", 32},
    {HONE_F64, TRIPLE(HONE_CODE_FLOAT, 64), "f64", "float64", "f64", "f64", 12, 12, "fp64", "double", 64},
    {HONE_C64, TRIPLE(HONE_CODE_COMPLEX, 64), "c64", "complex64", "c64", "complex<f32>", 14, 15, NULL, "cuFloatComplex",
     64},
    {HONE_C128, TRIPLE(HONE_CODE_COMPLEX, 128), "c128", "complex128", "c128", "complex<f64>", 15, 18, NULL,
     "cuDoubleComplex", 128},
};

const hone_dtype_info *hone_dtype_info_of(hone_dtype_id id)
{
    return (unsigned)id < HONE_DTYPE_COUNT ? &table[id] : NULL;
}

const hone_dtype_info *hone_dtype_find(hone_dtype dtype)
{
    for (size_t i = 0; i < HONE_DTYPE_COUNT; i++)
        if (table[i].dtype.code == dtype.code && table[i].dtype.bits == dtype.bits && dtype.lanes == 1)
            return &table[i];
    return NULL;
}

const hone_dtype_info *hone_dtype_by_name(const char *name)
{
    for (size_t i = 0; name != NULL && i < HONE_DTYPE_COUNT; i++)
        if (strcmp(table[i].name, name) == 0 || strcmp(table[i].numpy_name, name) == 0) return &table[i];
    return NULL;
}

hone_dtype hone_dtype_of(hone_dtype_id id)
{
    const hone_dtype none = {0, 0, 0};
    return (unsigned)id < HONE_DTYPE_COUNT ? table[id].dtype : none;
}
