// Results that a function creates and returns, instead of writing them into given memory.
#ifndef HONE_PLATFORMS_FFI_RETURNED_H
#define HONE_PLATFORMS_FFI_RETURNED_H

#include "platforms/ffi/made.h"

enum { HONE_FFI_WORDS_SIZE = 900 };

// Takes the results out of a call's return value, which the caller releases afterwards.
// Returns: HONE_OK; HONE_KERNEL_FAILED with a message: a result has another type or shape, or is on another device.
hone_status hone_ffi_take_results(
    const hone_ffi_list *list,
    const hone_ffi_maker *maker,
    const hone_value *args,
    const hone_value *result,
    char words[HONE_FFI_WORDS_SIZE]);

#endif
