// Choosing: the chain override > overlay > lock > memory > store > transfer > autotune > heuristic > error,
// what it decided, and why.
#ifndef HONE_SELECT_H
#define HONE_SELECT_H

#include "hone/kernel.h"
#include "hone/overlay.h"
#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Kernel and config for one call on one device. Holds no heap memory.
typedef struct hone_decision {
    char algorithm[HONE_NAME_SIZE];
    char version[16];
    char key[20]; // the key it was found under: the call's, or its bucket's
    char kernel[HONE_NAME_SIZE];
    hone_platform platform;
    hone_backend backend;
    hone_config config;     // values in the order of the kernel's space
    char config_json[1024]; // the same as a JSON object
    hone_source source;
    bool verified;
    bool bucketed; // found under the bucket's key
    bool system;   // found in the system store, under the user's
    // Not "": it was measured in an environment that differs in something that matters (docs/fingerprints.md), and this
    // says in what. It is served, and noted so that `hone tune --recorded` measures it again.
    char changed[128];
    hone_evidence evidence;
} hone_decision;

HONE_API HONE_MUST_CHECK hone_status hone_decide_sized(
    const hone_op *op, const hone_value *args, size_t count, hone_decision *out, size_t size, hone_error *err);
// The chain, without running. Under HONE_POLICY_TUNE this tunes.
HONE_MUST_CHECK static inline hone_status hone_decide(
    const hone_op *op, const hone_value *args, size_t count, hone_decision *out, hone_error *err)
{
    return hone_decide_sized(op, args, count, out, sizeof *out, err);
}
HONE_API HONE_MUST_CHECK hone_status
hone_decide_call_sized(const hone_op *op, const hone_call *call, hone_decision *out, size_t size, hone_error *err);
// The same for a call without data.
HONE_MUST_CHECK static inline hone_status hone_decide_call(
    const hone_op *op, const hone_call *call, hone_decision *out, hone_error *err)
{
    return hone_decide_call_sized(op, call, out, sizeof *out, err);
}

typedef enum hone_format { HONE_TEXT, HONE_JSON } hone_format;
// Receives pieces of text in order.
typedef void hone_sink(void *ctx, const char *text, size_t size);

// Why a call gets the kernel it gets: every link of the chain with its answer, every kernel with why it is
// eligible or not, evidence, and on a miss the nearest stored keys with the fields that differ. Never tunes.
HONE_API HONE_MUST_CHECK hone_status
hone_explain(const hone_op *op, const hone_call *call, hone_format format, hone_sink *sink, void *ctx, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
