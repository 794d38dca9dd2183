// Operations of other libraries that are calls of hone's. A document of rows says which: one is built in (foreign.json),
// packs and programs bring more. docs/foreign-operations.md has the fields.
#ifndef HONE_CALL_FOREIGN_H
#define HONE_CALL_FOREIGN_H

#include "base/json.h"
#include "base/text.h"
#include "hone/signature.h"

// One operation. Everything belongs to its document.
typedef struct hone_foreign_row {
    const char *library;       // "ejkernel", "tokamax"
    const char *operation;     // as its labels name it, without a version
    hone_signature *signature; // of the library's own function; NULL: its labels bring the arguments
    const json_t *values;  // object, what a parameter may say that means nothing to hone, the usual first; NULL: none
    const json_t *windows; // array, parameters that are a number or [left, right]; NULL: none
    const json_t *configs; // object, how the library's own configs of it are written; NULL: not known
    const json_t *takes;   // array, the algorithms that can be it, the first that holds the arguments is taken
    const struct hone_foreign_row *older; // of the same operation, asked where this one holds no arguments; NULL: none
} hone_foreign_row;

// Rows that were read from one document.
typedef struct hone_foreign {
    hone_allocator allocator;
    json_t *root;
    hone_foreign_row *rows;
    size_t count;
    struct hone_foreign *older; // the documents of a registry, the newest first: hone_foreign_link
} hone_foreign;

// The rows that are built in.
extern const char hone_foreign_builtin[];

// Returns: HONE_OK; HONE_INVALID_ARGUMENT with the row and what is wrong; HONE_CORRUPT (no JSON); HONE_OUT_OF_MEMORY.
hone_status hone_foreign_read(
    const hone_allocator *allocator, const char *text, size_t size, hone_foreign **out, hone_error *err);
// Releases a document, and those that are older.
void hone_foreign_release(hone_foreign **foreign);
// Puts a document in front of those that are older; not yet known to other threads.
void hone_foreign_link(hone_foreign *newer, hone_foreign *older);
// The newest row of an operation; NULL: there is none.
const hone_foreign_row *hone_foreign_find(const hone_foreign *foreign, const char *library, hone_view operation);

// The algorithms of a row, likeliest first. index < hone_foreign_take_count.
size_t hone_foreign_take_count(const hone_foreign_row *row);
const char *hone_foreign_algorithm(const hone_foreign_row *row, size_t index);
// The library's own function, by the newest row that knows it; NULL: none does.
hone_signature *hone_foreign_signature(const hone_foreign_row *row);
// Puts arguments by position beside those that have names, as theirs, the library's function, names them. False: there
// are more than it has, theirs is NULL, or memory was short.
bool hone_foreign_name_arguments(hone_signature *theirs, const json_t *args, json_t *kwargs);
// The call of hone's that an operation with these arguments is, taken as the algorithm at `take`.
//   row        NULL: every argument has hone's own name
//   arguments  an object by the names of the library's parameters; arrays as {"dtype":..., "shape":[...]} or "f32[2,3]",
//              which may have {vmap_axes=[[axis,size],...]} behind it
//   out_times  so many such calls are the operation: what vmap put in that the algorithm has no dims for
// Returns: HONE_OK; HONE_UNSUPPORTED, HONE_INVALID_ARGUMENT with the argument that the algorithm cannot hold;
// HONE_OUT_OF_MEMORY.
hone_status hone_foreign_call(
    const hone_allocator *allocator,
    const hone_foreign_row *row,
    size_t take,
    hone_signature *signature,
    const json_t *arguments,
    hone_call **out,
    int64_t *out_times,
    hone_error *err);

#endif
