// Offline tuning of a lowered program: labels -> calls -> tuned -> stored, and a result usable as an overlay.
//
// Reads every form that JAX and XLA write: StableHLO text with locations, MLIR bytecode, portable artifacts, jax.export
// blobs, HLO text and HLO protos before and after optimisation, and gzip of any of them. The form is detected from
// the content.
#ifndef HONE_OFFLINE_H
#define HONE_OFFLINE_H

#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// How an operation of a program was matched to a call.
typedef enum hone_match {
    HONE_MATCH_NONE,
    HONE_MATCH_LABEL,    // arguments in the label
    HONE_MATCH_RECORDED, // a recorded invocation has the label's key
    HONE_MATCH_PROVED,   // arguments rebuilt from operands and defaults hash to the label's key
    HONE_MATCH_OPERANDS  // operands alone; tuned only when asked
} hone_match;

HONE_API const char *hone_match_name(hone_match match); // "none", "label", "recorded", "proved", "operands"

// One distinct operation of a program. Strings are borrowed from the program.
typedef struct hone_operation {
    const char *algorithm; // the label's own
    const char *version;   // NULL where the label was cut
    const char *key;       // the label's own; NULL where it was cut
    const char *label;     // as in the program; one with JSON without the program's escapes
    int64_t count;         // call instances times the trip counts around them; -1: the form does not allow it
    hone_match matched;
    const char *call;     // hone's call text; NULL when not matched
    const char *call_key; // hone's key; NULL when not matched
    bool tunable;
    const char *reason; // why not; NULL when tunable
    const char *path; // of the scopes around it, where it was found first, else "@FUNCTION"; NULL if neither has a name
    const char *arrays;  // that it reads there, "f32[2,3], f32[3]"; NULL if the program does not show them
    const char *payload; // the JSON in its label, or NULL
    // HONE_COLD: at least half of the bytes that it reads are of arguments of the program that a step reads here alone,
    // and a step reads more than this machine's caches hold, so that they are in no cache when they are read again.
    // hone_offline then measures the call cold. Else HONE_WARM.
    hone_regime regime;
    int64_t once_bytes; // of such arrays, in one call; -1: the program does not show them
} hone_operation;

typedef struct hone_program hone_program;

// Reads a program from memory. name is for messages. Bounded memory; damage ends the reading where it is,
// with a warning in hone_program_note, unless nothing sound was found.
// Returns: HONE_OK; HONE_UNSUPPORTED (a form that is not read, or of a newer version, by name); HONE_CORRUPT;
// HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_program_read(
    hone_runtime *rt, const char *name, const char *text, size_t size, hone_program **out, hone_error *err);
HONE_API void hone_program_release(hone_program **program);
HONE_API const char *hone_program_dialect(const hone_program *program); // "stablehlo", "hlo"
// The form that it came in: "StableHLO text", "MLIR bytecode", "StableHLO portable artifact", "jax.export blob", "HLO
// text", "HLO proto". Static memory.
HONE_API const char *hone_program_form(const hone_program *program);
// A warning about the program as a whole, or NULL: cut short, optimised (labels may be stale), no labels at all.
HONE_API const char *hone_program_note(const hone_program *program);
// Distinct operations, in the order of the program.
HONE_API size_t hone_program_operations(const hone_program *program);
HONE_API const hone_operation *hone_program_operation(const hone_program *program, size_t index);
// Bytes of the arrays that the program brings along (arguments of its entry) and reads in a step; -1: not known.
HONE_API int64_t hone_program_step_bytes(const hone_program *program);

// The operation and call of a call text, or the call that another system's key means, by the aliases of the stores (the user's,
// then the system's).
//   label  call text, "rms_norm(f32[4096,8192], f32[8192])"; or as a program shows it, "ejkernel_ops#flash_attention@v2:KEY" or "hone#rms_norm.v1:KEY"; its end,
//          "flash_attention@v2:KEY"; or KEY alone, 16 hex digits, which may be hone's own key of a stored decision, too
// hone_decide_call, hone_explain, hone_tune and the others accept the call like any other.
// Returns: HONE_OK; HONE_NOT_FOUND (no store knows the key); HONE_INVALID_ARGUMENT (not a label, or a KEY alone that calls of
// several algorithms have); what hone_op_get and hone_call_from_spec return.
HONE_API HONE_MUST_CHECK hone_status
hone_call_of_label(hone_runtime *rt, const char *label, const hone_op **out_op, hone_call **out_call, hone_error *err);

// Tunes the distinct tunable calls, heaviest first (unknown counts as one), stores each at once with an alias
// from the label's key, and resumes where an earlier run stopped. An operation that fails does not end the others.
// Calls on a CPU whose operation's regime is HONE_COLD are measured cold.
//   unproved  true: also what was matched by operands alone
//   options   regime HONE_COLD: all are measured cold; same_regime: all under options' regime
HONE_API HONE_MUST_CHECK hone_status hone_offline(
    hone_runtime *rt,
    const hone_program *program,
    bool unproved,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
