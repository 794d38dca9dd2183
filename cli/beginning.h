// The beginning of a pack, made from a library that exports functions: hone pack new.
#ifndef HONE_CLI_BEGINNING_H
#define HONE_CLI_BEGINNING_H

#include "cli.h"

// The row of a pack.json for a function that a library exports, and of its algorithm, if no algorithm of hone has the
// function's name.
//   schema         what the library says of the function's type, a JSON object; NULL: nothing
//   out_algorithm  NULL after it: there is one
json_t *cli_begin_kernel(hone_cli *cli, const char *function, const json_t *schema, json_t **out_algorithm);

#endif
