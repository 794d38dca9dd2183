// Checks that processes that must make the same choices do. The ranks of a job run one program on devices of their own, and their
// results agree to the last bit only where each call runs the same kernel with the same config.
//
// Each rank writes down its choices (hone_agree); the ranks exchange the texts, or the digests alone, by
// their own means; and any of them reports what differs (hone_agree_compare). hone sends nothing and never waits.
#ifndef HONE_AGREE_H
#define HONE_AGREE_H

#include "hone/runtime.h"
#include "hone/select.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HONE_DIGEST_SIZE = 65 }; // 64 hex digits and a NUL

// Writes what this process chooses for calls, under the context that is entered and the runtime's policy. Never tunes, and
// runs none of the calls; kernels that were not verified yet are verified, as a miss does. The store is read first.
//   calls       call texts, or labels; NULL selects every call that this runtime was asked for until now (hone_stats)
//   sink        gets the document (docs/formats.md): JSON on one line
//   out_digest  of the choices alone: calls, kernels, configs, revisions. Two ranks with one digest choose alike. May be
//               NULL
// Returns: HONE_OK, also where nothing answers a call, which the document says; HONE_INVALID_ARGUMENT, HONE_NOT_FOUND
// (a text that is not a call); HONE_OUT_OF_MEMORY. Nothing is written to the sink then.
HONE_API HONE_MUST_CHECK hone_status hone_agree(
    hone_runtime *rt,
    const char *const *calls,
    size_t count,
    hone_sink *sink,
    void *ctx,
    char out_digest[HONE_DIGEST_SIZE],
    hone_error *err);

// A difference between two ranks.
typedef struct hone_disagreement {
    size_t rank, other; // places of the two documents: other is the first of the most ranks that say the same
    const char *call;   // call text
    const char *algorithm, *version, *key;
    // "call" (a rank does not have it), "answer" (nothing answers there), "platform", "kernel", "config" or "revision"; "unsettled": all say
    // the same, which is that the first run would tune. rank and other are then the same.
    const char *field;
    const char *words; // a sentence: both choices, the links that answered, and how stores, devices and policies differ
} hone_disagreement;

// Visits the differences between the documents of ranks, by call, then by rank, until visit returns false. Needs no runtime.
//   documents  count texts of hone_agree, or NULL for a rank that has none: it is left out
//   visit      texts are good until it returns
// Returns: HONE_OK, also when they differ; HONE_CORRUPT (which document is invalid, and why); HONE_INCOMPATIBLE (one of a
// newer hone); HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_agree_compare(
    const char *const *documents,
    size_t count,
    bool (*visit)(void *ctx, const hone_disagreement *found),
    void *ctx,
    hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
