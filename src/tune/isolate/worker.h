// One question to a worker process and its answer: the worker's end and the tuner's end.
#ifndef HONE_TUNE_ISOLATE_WORKER_H
#define HONE_TUNE_ISOLATE_WORKER_H

#include "tune/worker/session.h"

// Reads messages from fd and answers them until the other end is gone. Returns the exit code.
int hone_worker_serve(int fd, hone_session *session);
// Workers that are started from now on keep no threads of OpenBLAS at work beside the next candidate.
void hone_worker_hand_on(void);

// One question to a worker process and its answer.
typedef enum hone_outcome_kind {
    HONE_OUTCOME_ANSWERED,
    HONE_OUTCOME_TIMEOUT,
    HONE_OUTCOME_CANCELLED,
    HONE_OUTCOME_LOST,  // it died, or left
    HONE_OUTCOME_MEMORY // of the tuner's own process
} hone_outcome_kind;

// How long a phase of a question may take: the first, which prepares, and each after a NOTE; and all of them. all_ns 0: as
// long as the phases do.
typedef struct hone_limits {
    uint64_t first_ns, next_ns, all_ns;
} hone_limits;

// One question: its kind, what it says, and how long it may take.
typedef struct hone_worker_question {
    uint8_t kind;
    const hone_buffer *message;
    hone_limits limits;
} hone_worker_question;

// After anything but ANSWERED the process is in an unknown state and is to be killed.
//   noted     called at each NOTE; may be NULL
hone_outcome_kind hone_worker_ask(
    int fd,
    const hone_worker_question *query,
    const hone_stop *stop,
    void (*noted)(void *ctx),
    void *ctx,
    hone_buffer *answer);

// A process that reads the address space it was forked from as its own: kernels come by value.
//   strict  forked long ago: addresses are checked
int hone_worker_forked(int fd, bool strict);

#endif
