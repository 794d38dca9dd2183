// AMX: instruction sets beside those of hone/device.h, as bits of the same set, and the system's leave to use them.
#ifndef HONE_OS_TILES_H
#define HONE_OS_TILES_H

#include <stdbool.h>

// With the tiles, and a system that lets processes use them.
enum { HONE_CPU_AMX_BF16 = 1 << 11, HONE_CPU_AMX_INT8 = 1 << 12 };

// Asks the system for the tiles, for all threads of this process and for its children: without, their first use ends
// the process with SIGILL. Returns whether it may use them. Refused where a thread's alternate signal stack could not
// hold them; once granted, sigaltstack refuses stacks that could not. Asked again until it is granted; the answer is
// then remembered.
bool hone_os_lend_tiles(void);

#endif
