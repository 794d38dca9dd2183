// The process in which a contest's candidates run: a spawned worker, a fork of this process, a child of the zygote, or,
// with the caller's consent, this process. A contest has one sandbox, so that all its candidates run in one process.
// Functions of an interpreter among other candidates are the exception: their worker lends an interpreter, which takes
// seconds to start, and the other candidates get a worker without one.
#ifndef HONE_TUNE_ISOLATE_SANDBOX_H
#define HONE_TUNE_ISOLATE_SANDBOX_H

#include "tune/isolate/worker.h"
#include "tune/tuner.h"

typedef enum hone_sandbox_kind {
    HONE_SANDBOX_SPAWN,
    HONE_SANDBOX_FORK,
    HONE_SANDBOX_ZYGOTE,
    HONE_SANDBOX_HERE
} hone_sandbox_kind;

// A process and its state.
typedef struct hone_sandbox_seat {
    hone_process process; // pid -1: there is none
    uint32_t served;      // number of candidates since the process was started
    bool warm;            // the process has answered: a call that was opened is still open
} hone_sandbox_seat;

typedef struct hone_sandbox {
    hone_sandbox_kind kind;
    const hone_tune_environment *environment;
    hone_session *session;   // HERE
    bool has_turn;           // it holds the zygote
    bool by_value;           // kernels are sent as addresses
    bool interpreted;        // SPAWN: its worker lends an interpreter
    bool splits;             // SPAWN: it has a worker of each sort, chosen by hone_sandbox_turn
    hone_sandbox_seat now;   // SPAWN, FORK: the process that is asked; ZYGOTE: only `warm` is used
    hone_sandbox_seat other; // the process of the other sort, if it splits
} hone_sandbox;

// How a question ended. After anything but ANSWERED there is no process: the next question starts a new one, in which
// no call is open.
typedef struct hone_outcome {
    hone_outcome_kind kind;
    int signal, exit_code; // LOST
} hone_outcome;

// Makes a sandbox; starts nothing yet.
hone_status hone_sandbox_init(
    hone_sandbox *sandbox, const hone_tune_environment *environment, hone_sandbox_kind kind, hone_error *err);
// Gives an idle worker back to its pool.
void hone_sandbox_deinit(hone_sandbox *sandbox);
// Starts the process when there is none. Returns: HONE_OK; HONE_UNAVAILABLE or HONE_IO with what to do.
hone_status hone_sandbox_start(hone_sandbox *sandbox, hone_error *err);
// Whether a process is there that waits for a question. A process that has sent data without a question is spoiled, and
// is ended.
bool hone_sandbox_is_warm(hone_sandbox *sandbox);
// Asks and waits for the answer. The sandbox was started.
hone_outcome hone_sandbox_ask(
    hone_sandbox *sandbox, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer);
// Ends the process, so that the next question starts a new one. Does nothing if candidates run in this process.
void hone_sandbox_drop(hone_sandbox *sandbox);
// Chooses the worker for the next question: with an interpreter, or without. Does nothing if the sandbox does not
// split.
void hone_sandbox_turn(hone_sandbox *sandbox, bool interpreted);

// The pool of workers (workers.c): takes a worker that answers, and gives it back.
//   interpreted  with an interpreter, if this process has lent one
hone_status hone_workers_take(hone_workers *workers, bool interpreted, hone_process *out, hone_error *err);
void hone_workers_give(hone_workers *workers, bool interpreted, hone_process *process);
// The processor's peaks, which are measured once for the lifetime of the workers. False: they are not measured yet.
// workers may be NULL.
bool hone_workers_peaks(hone_workers *workers, hone_peaks *out);
void hone_workers_keep_peaks(hone_workers *workers, const hone_peaks *peaks);

// The host's side of the zygote (zygote.c).
hone_outcome hone_zygote_ask(
    hone_zygote *zygote, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer);
// Ends the zygote's present child.
void hone_zygote_drop(hone_zygote *zygote);
// False: the zygote is gone, and can isolate nothing any more.
bool hone_zygote_alive(hone_zygote *zygote);
// The zygote's child serves one contest at a time: waits until the calling thread can have it. False: this thread has
// it already.
bool hone_zygote_take_turn(hone_zygote *zygote);
void hone_zygote_end_turn(hone_zygote *zygote);

#endif
