// What every worker process does, however it was made.
#ifndef HONE_TUNE_WORKER_H
#define HONE_TUNE_WORKER_H

#include "tune/session.h"

// Makes the calling process a worker: it dies with its parent and takes along what it started, keeps no file but fd, writes
// nowhere, leaves no core file, and does not take all memory.
void hone_worker_seclude(int fd);
// A driver may reserve more memory than the machine has and touch none of it: what hone_worker_seclude has bound is unbound
// while one is open. True: it was bound, and the caller binds it again, beyond what is there by then.
bool hone_worker_unbound_memory(void);
void hone_worker_bound_memory(void);
// The same without a keeper, for a process that runs no foreign code itself.
void hone_zygote_seclude(int fd);
// Reads messages from fd and answers them until the other end is gone. Returns the exit code.
int hone_worker_serve(int fd, hone_session *session);

// One question to a worker process and its answer.
typedef enum hone_outcome_kind {
    HONE_OUTCOME_ANSWERED,
    HONE_OUTCOME_TIMEOUT,
    HONE_OUTCOME_CANCELLED,
    HONE_OUTCOME_LOST,  // it died, or left
    HONE_OUTCOME_MEMORY // of the tuner's own process
} hone_outcome_kind;

// How long a phase of a question may take: the first, which prepares, and each after a NOTE.
typedef struct hone_limits {
    uint64_t first_ns, next_ns;
} hone_limits;

// After anything but ANSWERED the process is in an unknown state and is to be killed.
//   noted     called at each NOTE; may be NULL
hone_outcome_kind hone_worker_ask(
    int fd,
    uint8_t kind,
    const hone_buffer *message,
    const hone_limits *limits,
    const hone_stop *stop,
    void (*noted)(void *ctx),
    void *ctx,
    hone_buffer *answer);

// A process that reads the address space it was forked from as its own: kernels come by value.
//   strict  forked long ago: addresses are checked
int hone_worker_forked(int fd, bool strict);

#endif
