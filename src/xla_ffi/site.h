// A call site of a program: what its attributes say, read once.
#ifndef HONE_XLA_FFI_SITE_H
#define HONE_XLA_FFI_SITE_H

#include "xla_ffi/xla_ffi.h"

enum { HONE_XLA_VALUES = 64, HONE_XLA_TENSORS = 16 };

// One attribute, copied.
typedef struct hone_xla_attribute {
    int type, dtype;
    xla_ffi_text name, value; // the bytes of a scalar, or the string, which ends with a NUL
} hone_xla_attribute;

// Sites of equal attributes are one. Immutable; lives for ever.
typedef struct hone_xla_site {
    struct hone_xla_site *next;
    hone_runtime *rt;
    const hone_op *op;
    hone_context *context; // may be NULL
    size_t count;          // values, all of the signature's
    size_t parameter_count, result_count;
    uint64_t sliced;                    // bit i: the i-th array that comes is a stack, of which the call takes one
    uint8_t tensors[HONE_XLA_TENSORS];  // their places among the values: parameters, then results
    hone_value values[HONE_XLA_VALUES]; // scalars, defaults filled in
    size_t attribute_count;
    hone_xla_attribute attributes[HONE_XLA_VALUES];
} hone_xla_site;

// XLA's type of elements as hone's; lanes is 0 for those that hone does not take. Known once a site was found.
hone_dtype hone_xla_dtype(int xla);

// The site of a frame's attributes. Once it has been seen this allocates nothing and takes no lock.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT with what the signature asks; HONE_NOT_FOUND; HONE_OUT_OF_MEMORY.
hone_status hone_xla_site_find(const xla_ffi_attributes *attributes, const hone_xla_site **out, hone_error *err);

#endif
