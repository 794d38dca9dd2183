// Which kernels may answer a call that nobody has measured, and which may not answer any more (negatives.c).
//
// A guess (transfer, heuristic) takes a kernel at its word. The library's own kernels are verified by its tests; what a
// pack or the program brings is verified before it answers (verified.h). And a kernel that is not the library's own and
// was found wrong once, for whatever call, with whatever config, on whatever device, is not guessed with until its
// revision changes; the config with which it was wrong answers no call any more, also where it was verified before.
// What a user names (override, overlay, lock, an entry of the cache) is followed, with a warning.
#ifndef HONE_RUNTIME_LINKS_TRUST_H
#define HONE_RUNTIME_LINKS_TRUST_H

#include "runtime/links/links.h"

// Where a kernel was found wrong. What other processes found is asked of the stores each time.
typedef struct hone_wrong {
    struct hone_wrong *next;
    const hone_kernel_ref *kernel; // retained
    bool is_told;                  // by a store: it says so as long as it is true, and the plans have gone
    char config[256];
    char words[512]; // "was found wrong for CALL (wrong: ...)"
} hone_wrong;

// Whether a kernel was found wrong anywhere; with config (JSON), only with this one. HONE_OK: not that anybody knows.
// HONE_KERNEL_FAILED: why->message says for which call. HONE_OUT_OF_MEMORY.
hone_status hone_kernel_was_right(hone_runtime *rt, const hone_kernel_ref *kernel, const char *config, hone_error *why);
// Whether a guess may name a kernel with a config, which is verified now where it was not before. HONE_OK; HONE_NOT_FOUND
// or HONE_KERNEL_FAILED with why not; HONE_OUT_OF_MEMORY.
hone_status hone_request_trusts(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why);
// Whether a decision that rests on a contest may still be served. HONE_OK; HONE_NOT_FOUND with why not;
// HONE_OUT_OF_MEMORY.
hone_status hone_request_still_trusts(const hone_request *request, const hone_decision *decision, hone_error *why);
// Warns where the user's own choice names a kernel that was found wrong.
void hone_request_warn(const hone_request *request, const hone_kernel_ref *kernel, const hone_decision *decision);
// A contest or an audit found a kernel wrong: it answers no more guesses, and the plans that guessed with it go.
void hone_runtime_found_wrong(
    void *rt,
    const hone_kernel_ref *kernel,
    const char *config,
    const char *call,
    hone_failure failure,
    const char *reason);
// Lets go of what is known of kernels that are not registered any more; all: of every one.
void hone_runtime_forget_wrongs(hone_runtime *rt, bool all);

#endif
