// ejkernel's call texts, byte for byte, for what its arguments are known to be.
//
// This encoder reproduces; it does not judge. Two calls that ejkernel confuses (dtype classes all look alike, closures
// that differ in captured values) are confused here too. hone's own keys come from spec.c.
#ifndef HONE_CALL_EJKERNEL_H
#define HONE_CALL_EJKERNEL_H

#include "base/json.h"
#include "hone/signature.h"

// Appends ejkernel's text of one argument, which is described by an object with a "kind":
//   array                     dtype, shape
//   int, np_int               value: decimal text of any length
//   float, np_float           value: Python's repr (np_float also dtype)
//   bool, np_bool             value
//   none
//   str, dtype, repr          value
//   tuple, list, namedtuple   items
//   dict                      items: [[key, value], ...], both described
//   dataclass, pydantic       fields: [[name, value], ...]
//   enum                      base (str, int, plain), value, repr
//   function                  module, qualname, file, line
//   partial                   func, args, kwargs: [[name, value], ...]
//   callable_obj              class
// Returns: HONE_OK; HONE_INVALID_ARGUMENT where ejkernel itself raises (keys of mixed types, keys that are no JSON
// keys) or the description is none; HONE_UNSUPPORTED for another kind; HONE_OUT_OF_MEMORY also shows as out->failed.
hone_status hone_ejkernel_encode(const json_t *argument, hone_buffer *out, hone_error *err);
// Appends the whole text that is hashed, of an array of arguments with "role": "arg" (with "index") or "kwarg" (with
// "name").
//   batch_axes, method  plain JSON; NULL means null
hone_status hone_ejkernel_spec(
    const json_t *arguments, const json_t *batch_axes, const json_t *method, hone_buffer *out, hone_error *err);
// Appends any JSON as json.dumps(sort_keys=True, separators=(",", ":")) writes it.
void hone_json_canonical(hone_buffer *out, const json_t *value);

// True for a parameter that hone's signature lacks when its value says nothing (null) or what ejkernel's default says.
bool hone_ejkernel_is_default(const char *name, const json_t *value);
// Reads a spec that Python wrote: NaN, Infinity and -Infinity become {"__float__":"NaN"}. A new reference, an object.
hone_status hone_spec_json(
    const hone_allocator *allocator, const char *spec, size_t size, json_t **out, hone_error *err);

#endif
