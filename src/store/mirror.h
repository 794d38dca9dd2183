// A store on a server, with two files here: a copy of what was read from it, and what could not be sent.
//
// While the server can be asked it answers, and what it answers is copied. While it is away the copy answers, as old as
// it is, and what is put goes to the second file; it is sent when the server is back: decisions by the rule of merges,
// counts of calls once, also where a process dies in the middle.
#ifndef HONE_STORE_MIRROR_H
#define HONE_STORE_MIRROR_H

#include "store/ops.h"

// folder: of the two files, made where it is not there. As hone_store_open_with, but for a server that is away:
// HONE_OK. Without files, as in a folder that cannot be written, the store is the server's alone.
hone_status hone_store_open_mirrored(
    const hone_store_options *options, const char *url, const char *folder, hone_store **out, hone_error *err);

#endif
