// One question to a worker process and its answer: the worker's side and the tuner's side.
#ifndef HONE_TUNE_ISOLATE_WORKER_H
#define HONE_TUNE_ISOLATE_WORKER_H

#include "tune/worker/session.h"

// Reads messages from fd and answers them until the other end is closed. Returns the exit code.
int hone_worker_serve(int fd, hone_session *session);
// Sets the environment of workers that are started from now on, so that idle threads of their libraries sleep soon and
// do not run beside the next candidate.
void hone_worker_hand_on(void);

// The outcome of one question to a worker process.
typedef enum hone_outcome_kind {
    HONE_OUTCOME_ANSWERED,
    HONE_OUTCOME_TIMEOUT,
    HONE_OUTCOME_CANCELLED,
    HONE_OUTCOME_LOST,  // it died, or ended itself
    HONE_OUTCOME_MEMORY // of the tuner's own process
} hone_outcome_kind;

// Time limits of a question, in ns: for its first phase, which prepares; for each phase after a NOTE; and for all
// phases together. all_ns 0: no limit for all.
typedef struct hone_limits {
    uint64_t first_ns, next_ns, all_ns;
} hone_limits;

// One question: its kind, its message and its time limits.
typedef struct hone_worker_question {
    uint8_t kind;
    const hone_buffer *message;
    hone_limits limits;
} hone_worker_question;

// Asks a question and waits for the answer. After any outcome but ANSWERED the process is in an unknown state, and must
// be killed.
//   noted     called at each NOTE; may be NULL
hone_outcome_kind hone_worker_ask(
    int fd,
    const hone_worker_question *query,
    const hone_stop *stop,
    void (*noted)(void *ctx),
    void *ctx,
    hone_buffer *answer);

// The body of a process that was forked and has the address space of its parent: kernels come by value.
//   strict  it was forked long ago, so addresses are checked
int hone_worker_forked(int fd, bool strict);

#endif
