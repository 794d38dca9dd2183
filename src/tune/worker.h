// What every worker process does, however it was made.
#ifndef HONE_TUNE_WORKER_H
#define HONE_TUNE_WORKER_H

#include "tune/session.h"

// Makes the calling process a worker: it dies with its parent, keeps no file but fd, writes nowhere, leaves no core file.
void hone_worker_seclude(int fd);
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

// After anything but ANSWERED the process is in an unknown state and is to be killed.
//   limit_ns  for the first phase, and again for each phase after a NOTE
//   noted     called at each NOTE; may be NULL
hone_outcome_kind hone_worker_ask(
    int fd,
    uint8_t kind,
    const hone_buffer *message,
    uint64_t limit_ns,
    const hone_stop *stop,
    void (*noted)(void *ctx),
    void *ctx,
    hone_buffer *answer);

// A process that reads the address space it was forked from as its own: kernels come by value.
//   strict  forked long ago: addresses are checked
int hone_worker_forked(int fd, bool strict);

#endif
