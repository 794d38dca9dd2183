// Results that a function makes and gives back, in place of writing into memory that it is given.
#ifndef HONE_PLATFORMS_FFI_RETURNED_H
#define HONE_PLATFORMS_FFI_RETURNED_H

#include "platforms/ffi/made.h"

enum { HONE_FFI_WORDS_SIZE = 900 };

// Takes the results of a call out of what it has returned, which the caller gives up afterwards.
// Returns: HONE_OK; HONE_KERNEL_FAILED, with words: it is of another type or shape, or lies elsewhere.
hone_status hone_ffi_take_results(
    const hone_ffi_list *list,
    const hone_ffi_maker *maker,
    const hone_value *args,
    const hone_value *result,
    char words[HONE_FFI_WORDS_SIZE]);

#endif
