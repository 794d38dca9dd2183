// Expressions of a space's language outside of a space: what a kernel's code says of its launch.
#ifndef HONE_SPACE_TERM_H
#define HONE_SPACE_TERM_H

#include "base/expression.h"
#include "hone/space.h"

// What names stand for. A parameter hides a dim of its name.
typedef struct hone_term_scope {
    const hone_space *space; // NULL: no parameters
    const int64_t *config;   // its values
    const hone_call *call;
    const hone_device_info *device;  // NULL: device.* are not known
    const hone_signature *signature; // without a call: names are only looked for among those that its calls have
} hone_term_scope;

// Reads the expression at the lexer's current token and computes it. A text that comes out lives as long as scope.
// Where scope has a signature and no call nothing is computed, and 1 comes out.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (no expression, an unknown name, overflow, division by zero);
// HONE_OUT_OF_MEMORY.
hone_status hone_term_read(hone_lexer *lexer, const hone_term_scope *scope, hone_scalar *out, hone_error *err);
// The same for a whole text.
hone_status hone_term_of(
    hone_allocator allocator, const char *text, const hone_term_scope *scope, hone_scalar *out, hone_error *err);
// "x.size": the number of the elements of a tensor, for signatures whose leading dims have no names. False if the name does not end so, or names no tensor.
bool hone_term_size(const hone_call *call, hone_view name, hone_scalar *out);
// The value of a config's parameter at index.
hone_scalar hone_term_parameter(const hone_space *space, const int64_t *config, size_t index);

#endif
