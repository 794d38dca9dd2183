// AMX: instruction sets in addition to those of hone/device.h, as bits of the same set, and the system's permission to
// use them.
#ifndef HONE_OS_TILES_H
#define HONE_OS_TILES_H

#include <stdbool.h>

// Set if the CPU has the tiles and the system lets processes use them.
enum { HONE_CPU_AMX_BF16 = 1 << 11, HONE_CPU_AMX_INT8 = 1 << 12 };

// Requests the tiles from the system, for all threads of this process and for its children: without this, their first
// use ends the process with SIGILL. Returns whether the process may use them. The system refuses if the alternate
// signal stack of a thread could not hold them; once granted, sigaltstack refuses stacks that could not. The request is
// repeated until it is granted, which is then remembered.
bool hone_os_lend_tiles(void);

#endif
