// Verifying a kernel that is not built in before it answers a call that no contest has verified it for.
//
// Two questions, each asked once: is this revision right for small made-up calls of the call's dtypes, and with this config for
// the very call? A worker answers in milliseconds, and the store keeps both answers. The second is left out where the
// call is too large, or its reference too slow, to wait for; the first where no small call is one that the kernel takes, or
// where no process can hold the kernel: a function of a program with threads is tried in this one, on the call that it is
// about to run.
#ifndef HONE_RUNTIME_LINKS_VERIFIED_H
#define HONE_RUNTIME_LINKS_VERIFIED_H

#include "runtime/links/links.h"

// What came of verifying a config of a kernel for a call, in this process.
typedef struct hone_verdict {
    struct hone_verdict *next;
    const hone_kernel_ref *kernel; // retained
    char key[HONE_KEY_SIZE];       // of the call; "": of small calls, with any config
    uint64_t config;               // hash of its text; of small calls: of their dtypes
    hone_status status;            // OK: right; NOT_FOUND: nobody can say; KERNEL_FAILED: not right
    char words[256];
} hone_verdict;

// Whether a kernel's revision tells one code from another, so that what another process found out about it counts here.
bool hone_request_knows_code(const hone_kernel_ref *kernel);
// Whether a kernel with a config was, or is now, verified for a request's call. Nothing runs where the request explains.
//   guessed  no contest has verified this kernel for a call like this: it is tried on small calls, too
// Returns: HONE_OK; HONE_NOT_FOUND (nobody can say) or HONE_KERNEL_FAILED (it failed), why->message says why;
//          HONE_OUT_OF_MEMORY.
hone_status hone_request_verify(
    const hone_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    bool guessed,
    hone_error *why);
// Whether a request's call takes too long to verify a kernel for it at the miss.
bool hone_request_is_large(const hone_request *request);
// What this process knows of a kernel under a key and a config; true with *out, and why not when that is not HONE_OK.
bool hone_verdict_recall(
    hone_runtime *rt,
    const hone_kernel_ref *kernel,
    const char *key,
    const char *config,
    hone_status *out,
    hone_error *why);
// Keeps it. Returns status, or HONE_OUT_OF_MEMORY.
hone_status hone_verdict_remember(
    hone_runtime *rt,
    const hone_kernel_ref *kernel,
    const char *key,
    const char *config,
    hone_status status,
    hone_error *why);
// Lets go of what is known of kernels that are not registered any more; all: of every one.
void hone_runtime_forget_verdicts(hone_runtime *rt, bool all);

#endif
