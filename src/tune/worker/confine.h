// Makes a process a worker that cannot harm its host.
#ifndef HONE_TUNE_WORKER_CONFINE_H
#define HONE_TUNE_WORKER_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

// Makes the calling process a worker: it ends with its parent and ends what it started, keeps no file but fd, writes
// nowhere, leaves no core file, cannot take all memory, and gives up its rights.
void hone_worker_confine(int fd);
// Gives up the rights to write elsewhere than into temporary folders, devices and caches of compilers and drivers, to
// use the network, and to access other processes: as far as the system can, unless HONE_WORKER_CONFINE is "off". To be
// called while there is one thread.
void hone_worker_give_up_rights(void);
// If the reason of a candidate's failure says that something was refused, adds that its process may not do it.
void hone_worker_explain_refusal(char *reason, size_t size);
// Describes what workers may do here: "writes temporary files and caches alone, has no network".
void hone_worker_tell_confinement(char *out, size_t size);
bool hone_worker_is_confined(void); // in all respects
// A driver may reserve more memory than the machine has, without using it: the limit of hone_worker_confine is lifted
// while a driver is open. True: it was lifted, and the caller sets it again, beyond what is reserved by then.
bool hone_worker_unbound_memory(void);
void hone_worker_bound_memory(void);
// The same without a keeper and without limits on memory and rights, for a process that runs no foreign code itself.
void hone_zygote_confine(int fd);

#endif
