// How a process becomes a worker that can do its host no harm.
#ifndef HONE_TUNE_WORKER_CONFINE_H
#define HONE_TUNE_WORKER_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

// Makes the calling process a worker: it dies with its parent and takes along what it started, keeps no file but fd,
// writes nowhere, leaves no core file, does not take all memory, and has given up its rights.
void hone_worker_confine(int fd);
// To write elsewhere than into temporary folders, devices and caches of compilers and drivers, to reach the network, to
// look into other processes: as far as the system can, and HONE_WORKER_CONFINE is not "off". While there is one thread.
void hone_worker_give_up_rights(void);
// Adds to why a candidate failed that its process may not do what it was refused, where the words say that it was.
void hone_worker_explain_refusal(char *reason, size_t size);
// What holds for workers here: "writes temporary files and caches alone, has no network".
void hone_worker_tell_confinement(char *out, size_t size);
bool hone_worker_is_confined(void); // wholly
// A driver may reserve more memory than the machine has and touch none of it: what hone_worker_confine has bound is
// unbound while one is open. True: it was bound, and the caller binds it again, beyond what is there by then.
bool hone_worker_unbound_memory(void);
void hone_worker_bound_memory(void);
// The same without a keeper, for a process that runs no foreign code itself.
void hone_zygote_confine(int fd);

#endif
