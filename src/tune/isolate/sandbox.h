// Where a contest's candidates run: a spawned worker, a fork of this process, a child of the zygote, or, by consent,
// here.
// A contest has one sandbox, so that all its candidates meet in one process; but for functions of an interpreter among others: theirs
// lends one, which takes seconds to start, and the others' does not.
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

// A process, and what has become of it.
typedef struct hone_sandbox_seat {
    hone_process process; // pid -1: none now
    uint32_t served;      // candidates, since the process was started
    bool warm;            // a process is there and has answered: a call that was opened is still open
} hone_sandbox_seat;

typedef struct hone_sandbox {
    hone_sandbox_kind kind;
    const hone_tune_environment *environment;
    hone_session *session;   // HERE
    bool has_turn;           // of the zygote's
    bool by_value;           // kernels go as addresses
    bool interpreted;        // SPAWN: its worker lends an interpreter
    bool splits;             // SPAWN: has a worker of each sort, as asked (hone_sandbox_turn)
    hone_sandbox_seat now;   // SPAWN, FORK: of the sort that is asked; warm: ZYGOTE, too
    hone_sandbox_seat other; // of the other one, where it splits
} hone_sandbox;

// How a question ended. Anything but ANSWERED has left no process: the next question starts a new one, in which no call
// is open.
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
// Whether a process is there that waits for a question: one that talks unasked was spoiled, and is ended.
bool hone_sandbox_is_warm(hone_sandbox *sandbox);
// Asks and waits. The sandbox was started.
hone_outcome hone_sandbox_ask(
    hone_sandbox *sandbox, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer);
// Ends the process, so that the next question starts a new one. Nothing, where candidates run here.
void hone_sandbox_drop(hone_sandbox *sandbox);
// The next question is for a worker that lends an interpreter, or for one that does not. Nothing, where the sandbox does not split.
void hone_sandbox_turn(hone_sandbox *sandbox, bool interpreted);

// The pool's side (workers.c): a worker that answers, and giving it back. program: for messages.
//   interpreted  with an interpreter, where this process has lent one
hone_status hone_workers_take(hone_workers *workers, bool interpreted, hone_process *out, hone_error *err);
void hone_workers_give(hone_workers *workers, bool interpreted, hone_process *process);
// The processor's peaks, which are measured once as long as there are workers. False: nobody has. workers may be NULL.
bool hone_workers_peaks(hone_workers *workers, hone_peaks *out);
void hone_workers_keep_peaks(hone_workers *workers, const hone_peaks *peaks);

// The zygote's side (zygote.c).
hone_outcome hone_zygote_ask(
    hone_zygote *zygote, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer);
// Ends the child that works now.
void hone_zygote_drop(hone_zygote *zygote);
// False: it is gone, nothing can be isolated by it any more.
bool hone_zygote_alive(hone_zygote *zygote);
// Its child serves one contest at a time: waits until it is the calling thread's turn. False: this thread has it already.
bool hone_zygote_take_turn(hone_zygote *zygote);
void hone_zygote_end_turn(hone_zygote *zygote);

#endif
