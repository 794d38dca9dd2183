// Status codes.
//
// Every function returns a hone_status. Cold functions also fill a caller-owned hone_error.
// Nothing in hone prints, exits, aborts or keeps a global last error.
//
// NAME_sized is the exported form of the inline function NAME: it takes the size that the struct has in the caller's header,
// so that structs can grow (docs/compatibility.md). Programs in C and C++ call NAME.
#ifndef HONE_STATUS_H
#define HONE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#    define HONE_API        __attribute__((visibility("default")))
#    define HONE_MUST_CHECK __attribute__((warn_unused_result))
#else
#    define HONE_API
#    define HONE_MUST_CHECK
#endif

// One code for each thing a caller can do about it. Numbers are stable.
typedef enum hone_status {
    HONE_OK = 0,
    HONE_INVALID_ARGUMENT = 1, // the call itself is wrong: fix the caller
    HONE_OUT_OF_MEMORY = 2,    // free something and try again
    HONE_NOT_FOUND = 3,        // nothing by that name or key: try the next source
    HONE_UNSUPPORTED = 4,      // understood, but this kernel, build or version cannot do it
    HONE_UNAVAILABLE = 5,      // needs a library, driver or device that is not here; the message says which
    HONE_INCOMPATIBLE = 6,     // written by a newer or a different version
    HONE_CORRUPT = 7,          // what was read is damaged; it was left as it was
    HONE_BUSY = 8,             // in use by another thread or process: wait, or use the heuristic
    HONE_IO = 9,               // the operating system refused; system_code holds errno
    HONE_CANCELLED = 10,       // the caller's cancel flag was seen
    HONE_KERNEL_FAILED = 11    // a kernel ran and failed
} hone_status;

// Details of a failure. Owned by the caller; holds no heap memory; every function accepts NULL in its place.
typedef struct hone_error {
    hone_status status;
    int32_t system_code; // errno, CUresult, cl_int ...; 0 when there is none
    const char *where;   // a static string: "call.bind", "store.sqlite.open"; never NULL after a failure
    char message[1000];  // what was given, what was expected, what to do; NUL-terminated, cut with "..." when too long
} hone_error;

// The status as text: "ok", "invalid argument", ... Never NULL; "unknown status" for any other number.
HONE_API const char *hone_status_name(hone_status status);

// The version of the library, "0.1.0".
HONE_API const char *hone_version(void);

#ifdef __cplusplus
}
#endif
#endif
