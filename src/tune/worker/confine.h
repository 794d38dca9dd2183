// How a process becomes a worker that can do its host no harm.
#ifndef HONE_TUNE_WORKER_CONFINE_H
#define HONE_TUNE_WORKER_CONFINE_H

#include <stdbool.h>

// Makes the calling process a worker: it dies with its parent and takes along what it started, keeps no file but fd,
// writes nowhere, leaves no core file, and does not take all memory.
void hone_worker_confine(int fd);
// A driver may reserve more memory than the machine has and touch none of it: what hone_worker_confine has bound is
// unbound while one is open. True: it was bound, and the caller binds it again, beyond what is there by then.
bool hone_worker_unbound_memory(void);
void hone_worker_bound_memory(void);
// The same without a keeper, for a process that runs no foreign code itself.
void hone_zygote_confine(int fd);

#endif
