// Verifies a kernel that is not built in before it answers a call for which no contest has verified it.
//
// There are two checks, each done once: whether this revision is correct for small generated calls with the call's
// dtypes, and whether it is correct with this config for the exact call. A worker does a check in milliseconds, and the
// store keeps both results. The second check is skipped if the call is too large, or its reference too slow, to wait
// for. The first is skipped if the kernel accepts no small call, or if no separate process can hold the kernel: a
// function of a program with threads is checked in this process, on the call that it is about to run.
#ifndef HONE_RUNTIME_LINKS_VERIFIED_H
#define HONE_RUNTIME_LINKS_VERIFIED_H

#include "runtime/links/links.h"

// The result of verifying a config of a kernel for a call, in this process.
typedef struct hone_verdict {
    struct hone_verdict *next;
    const hone_kernel_ref *kernel; // retained
    char key[HONE_KEY_SIZE];       // of the call; "" for small calls, with any config
    uint64_t config;               // hash of its text; for small calls, of their dtypes
    hone_status status;            // OK: correct; NOT_FOUND: not known; KERNEL_FAILED: not correct
    char words[256];
} hone_verdict;

// Whether a kernel's revision identifies its code, so that the results of other processes are valid here.
bool hone_request_knows_code(const hone_kernel_ref *kernel);
// Whether a kernel with a config was, or is now, verified for a request's call. Runs nothing if the request explains.
//   guessed  no contest has verified this kernel for a call like this: small calls are checked too
// Returns: HONE_OK; HONE_NOT_FOUND (not known) or HONE_KERNEL_FAILED (it failed), why->message says why;
//          HONE_OUT_OF_MEMORY.
hone_status hone_request_verify(
    const hone_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    bool guessed,
    hone_error *why);
// Whether a request's call takes too long to verify a kernel for it at the miss.
bool hone_request_is_large(const hone_request *request);
// Finds what this process knows of a kernel under a key and a config. True if there is a verdict; it is in *out, with
// the reason if it is not HONE_OK.
bool hone_verdict_recall(
    hone_runtime *rt,
    const hone_kernel_ref *kernel,
    const char *key,
    const char *config,
    hone_status *out,
    hone_error *why);
// Records the verdict. Returns status, or HONE_OUT_OF_MEMORY.
hone_status hone_verdict_remember(
    hone_runtime *rt,
    const hone_kernel_ref *kernel,
    const char *key,
    const char *config,
    hone_status status,
    hone_error *why);
// Drops the verdicts on kernels that are not registered any more, or with `all` every verdict.
void hone_runtime_forget_verdicts(hone_runtime *rt, bool all);

#endif
