// Decides which kernels may answer a call that was not measured, and which may not answer any more (negatives.c).
//
// A guess (transfer, heuristic) has to trust a kernel. The library's own kernels are verified by its tests; a kernel of
// a pack or the program is verified before it answers (verified.h). A kernel that is not the library's own and was
// found wrong once, for any call, config or device, is not used for guesses until its revision changes. The config with
// which it was wrong answers no call any more, even where it was verified before. What a user names (override, overlay,
// lock, an entry of the cache) is followed, with a warning.
#ifndef HONE_RUNTIME_LINKS_TRUST_H
#define HONE_RUNTIME_LINKS_TRUST_H

#include "runtime/links/links.h"

// A kernel that was found wrong. The stores are asked each time for what other processes found.
typedef struct hone_wrong {
    struct hone_wrong *next;
    const hone_kernel_ref *kernel; // retained
    bool is_told; // a store reported it: the store is asked again each time, and the plans have been dropped
    char config[256];
    char words[512]; // "was found wrong for CALL (wrong: ...)"
} hone_wrong;

// Whether a kernel was ever found wrong; with config (JSON), only with this config. HONE_OK if nothing is known.
// HONE_KERNEL_FAILED: why->message names the call. HONE_OUT_OF_MEMORY.
hone_status hone_kernel_was_right(hone_runtime *rt, const hone_kernel_ref *kernel, const char *config, hone_error *why);
// Whether a guess may use a kernel with a config, which is verified now if it was not before. HONE_OK; HONE_NOT_FOUND
// or HONE_KERNEL_FAILED with the reason; HONE_OUT_OF_MEMORY.
hone_status hone_request_trusts(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why);
// Whether a decision that is based on a contest may still be served. HONE_OK; HONE_NOT_FOUND with the reason;
// HONE_OUT_OF_MEMORY.
hone_status hone_request_still_trusts(const hone_request *request, const hone_decision *decision, hone_error *why);
// Logs a warning if the user's own choice names a kernel that was found wrong.
void hone_request_warn(const hone_request *request, const hone_kernel_ref *kernel, const hone_decision *decision);
// A contest or an audit found a kernel wrong: it is not used for guesses any more, and plans from such guesses are
// dropped.
void hone_runtime_found_wrong(
    void *rt,
    const hone_kernel_ref *kernel,
    const char *config,
    const char *call,
    hone_failure failure,
    const char *reason);
// Drops the records of kernels that are not registered any more, or with `all` every one.
void hone_runtime_forget_wrongs(hone_runtime *rt, bool all);

#endif
