// How a lowered program names a call: the grammar of labels, in program text and in names that were taken out of it.
//
//   hone#ALGORITHM.vVERSION:KEY       kept whole by XLA and MLIR in every form
//   ejkernel_ops#OP@vVERSION:KEY      whole in MLIR locations, cut at '@' in HLO text: the operation is known, its key lost
//   ejkernel_ops#OP.vVERSION:KEY      the same without '@'
//   ejkernel_ops:{"args":...,"cfg":...,"kwargs":...,"op_id":"OP@vVERSION"}   brings its arguments; cut in op_id in HLO text
//   tokamax:MODULE.CLASS({...})       tokamax's first generation: the arguments
//   tokamax:{"op":{"__type":"MODULE.CLASS",...},"arguments":{...}}           its second, in a scope, and its third, in XLA's payload
//
// KEY is 16 lower-case hex digits and is followed by a byte that cannot continue it. Another word may stand in
// place of ejkernel_ops where the label is whole, since ejkernel lets its users choose it.
#ifndef HONE_OFFLINE_LABEL_H
#define HONE_OFFLINE_LABEL_H

#include "base/memory.h"
#include "base/text.h"
#include "offline/escapes.h"

typedef enum hone_label_kind {
    HONE_LABEL_HONE, // hone's own: operation, version and key are there
    HONE_LABEL_HASH, // ejkernel's with its key
    HONE_LABEL_CUT,  // ejkernel's, cut at '@'
    HONE_LABEL_JSON, // ejkernel's with its arguments
    HONE_LABEL_TOKAMAX
} hone_label_kind;

// One label in a text. Views into the text; those that the form does not have are empty.
typedef struct hone_label {
    hone_label_kind kind;
    hone_view text;      // the whole label as it stands
    hone_view operation; // without the version; tokamax's class
    hone_view version;
    hone_view key;
    hone_view payload; // JSON: from '{' to its '}', or to where it was cut
} hone_label;

// A walk over the labels of a text. Where its marks stand next is remembered, so that a walk is linear.
typedef struct hone_label_walk {
    hone_view text;
    const char *at, *hash, *colon; // colon: of a mark that has one
    bool json;                     // that mark is of a JSON stamp
    bool closed;                   // the text is a whole string: a name that ends with it is no less whole
} hone_label_walk;

hone_label_walk hone_label_walk_of(hone_view text);
// The next label; false at the end. Escapes that MLIR and HLO
// put into strings (\22, \5C, \", \\) are understood where they stand: a text need not be unescaped first. A cut
// label is known by what ends it: the quote of a string, or its end where the walk says that it is closed.
bool hone_label_next(hone_label_walk *walk, hone_label *out);

// The payload of a JSON label as JSON: unescaped, and completed where it was cut. NULL: no memory.
char *hone_label_json(hone_arena *arena, const hone_label *label);

// The labels of a text alone: calls visit for each occurrence, and returns their number.
size_t hone_labels_scan(
    const char *text, size_t size, void (*visit)(void *ctx, const char *label, size_t label_size), void *ctx);

#endif
