// What tokamax's arguments say, as a call of hone's.
#ifndef HONE_CALL_TOKAMAX_H
#define HONE_CALL_TOKAMAX_H

#include "base/buffer.h"
#include "base/json.h"
#include "base/text.h"

// The call of hone's that an operation of tokamax's with these arguments is: "rms_norm(f32[8,64], f32[64], eps=1e-06)".
//   operation  tokamax's class, "DotProductAttention"
//   payload    of the label: {"op": ..., "arguments": ...}, or the arguments themselves
//   out_algorithm  hone's algorithm; NULL when it has none for the operation
// False: hone cannot take it; out then holds the reason, empty where there is no algorithm.
bool hone_tokamax_call(hone_view operation, const json_t *payload, const char **out_algorithm, hone_buffer *out);

#endif
