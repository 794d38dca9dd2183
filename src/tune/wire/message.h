// The messages between the tuner and its workers. The tuner asks, the worker sends notes and an answer:
//   OPEN     a call: device, algorithm, arguments, regime; the worker makes data and computes the reference
//   TRY      one candidate: prepare, verify, race against the best so far
//   PREPARE  several configs of one kernel at once, so that compiled code is cached when they are tried
//   ROUNDS   several candidates, sampled in rounds
//   PEAKS    the highest rates that the processor reaches
//   PING     checks that the worker answers
// A NOTE in between reports that a phase has passed and that the time limit starts again.
#ifndef HONE_TUNE_WIRE_MESSAGE_H
#define HONE_TUNE_WIRE_MESSAGE_H

#include "pack/pack.h"
#include "registry/registry.h"
#include "tune/wire/frame.h"

enum {
    HONE_MAX_FINALISTS = 8,
    HONE_MAX_TOGETHER = 16, // the most candidates of one ROUNDS
    HONE_MAX_ROUNDS = 64,
    HONE_KEPT_SAMPLES = 15,
    HONE_REASON_SIZE = 256,
    HONE_MOST_PREPARED = 16
};

typedef enum hone_message {
    HONE_MESSAGE_OPEN = 1,
    HONE_MESSAGE_TRY,
    HONE_MESSAGE_PREPARE,
    HONE_MESSAGE_ROUNDS,
    HONE_MESSAGE_PING,
    HONE_MESSAGE_PEAKS,
    HONE_MESSAGE_COUNT,
    HONE_MESSAGE_NOTE = 64,
    HONE_MESSAGE_ANSWER
} hone_message;

// Exit codes of a worker whose candidate was right until it ran on arrays aligned as badly as its call allows, in two
// threads, or in a thread with a small stack.
enum { HONE_EXIT_UNALIGNED = 81, HONE_EXIT_RACY = 82, HONE_EXIT_STACK = 83 };

// The purpose of a TRY. VERIFIES: all checks of a winner, without a time. FIRST_RUNS: whether the kernel's first runs
// in this process are right, also in two threads at once, of which one is held after best_ns. AGAIN: the time of a
// candidate that was tried before, to find out whether the machine is as fast as it was then.
typedef enum hone_try_sort {
    HONE_TRY_RACES,
    HONE_TRY_VERIFIES,
    HONE_TRY_FIRST_RUNS,
    HONE_TRY_AGAIN,
    HONE_TRY_SORTS
} hone_try_sort;

// The answer to OPEN.
typedef struct hone_opened {
    hone_status status;
    double reference_ns;   // of the whole call; 0: only parts of it were computed
    uint64_t parts, whole; // number of parts that are verified, and of all parts
    char how[64];          // hone_reference_describe
    char message[HONE_REASON_SIZE * 2];
} hone_opened;

// How a worker's time was spent.
typedef struct hone_spent {
    double prepare_ns, verify_ns;
    double run_ns; // runs that were measured or warmed up
} hone_spent;

// One sample.
typedef struct hone_sample {
    double time_ns; // of one run
    double waited;  // waiting time for a processor, of the thread that waited longest, over the sample's; 0: not known
    unsigned marks; // what disturbed it (hone_os_disturber, hone_device_disturber); 0: nothing did
} hone_sample;

// The answer to TRY.
typedef struct hone_trial {
    hone_failure failure;
    double max_error;                // in units of the tolerance
    double time_ns, low_ns, high_ns; // from the samples that count (rule/statistics.h)
    uint32_t samples;                // number of samples that count
    uint32_t taken, disturbed;       // number of samples, and of those that other work on the machine disturbed
    uint32_t kept;                   // number of samples that were kept, in the order they were taken
    double kept_ns[HONE_KEPT_SAMPLES], kept_waited[HONE_KEPT_SAMPLES];
    uint8_t kept_marks[HONE_KEPT_SAMPLES];
    bool dropped; // it was clearly slower than the best, so it has fewer samples than others
    bool retired; // the process cannot use its device any more: another process must continue
    bool
        refused; // the worker could not even begin, or what the kernel needs is not installed: says nothing of the kernel
    bool spoiled;    // the worker must not be used any more
    bool witnessed;  // as in a rounds answer, after it was confirmed
    bool same;       // its digest was among those that the tuner sent: nothing was run
    bool unproven;   // it leads, and the checks of a leader are left to the finals for lack of time
    double look_ns;  // duration of a verified run with all that belongs to it; 0: there was none
    double proof_ns; // duration of the checks of a leader
    uint64_t digest;
    hone_spent spent;
    char reason[HONE_REASON_SIZE];
} hone_trial;

// The answer to ROUNDS.
typedef struct hone_rounds_answer {
    hone_failure failure; // of finalist `failed`; if that is `count` or more, the finalist is not known: no samples
    uint32_t failed;
    bool retired;
    uint32_t count, rounds;
    bool spoiled;   // as in a trial
    bool witnessed; // what the reference did not compute agrees with the results of a kernel of another name
    bool left_out;  // time was over before all checks were made that a smaller call allows too
    bool is_brief;  // time was over before all checks were made that differ little from earlier ones
    hone_spent spent;
    double max_error[HONE_MAX_TOGETHER];
    double samples[HONE_MAX_TOGETHER][HONE_MAX_ROUNDS];
    double waited[HONE_MAX_TOGETHER][HONE_MAX_ROUNDS]; // as in hone_sample
    uint8_t marks[HONE_MAX_TOGETHER][HONE_MAX_ROUNDS];
    char reason[HONE_REASON_SIZE];
} hone_rounds_answer;

// The memory levels that data may lie in, the nearest first.
typedef enum hone_memory_level {
    HONE_LEVEL_1,
    HONE_LEVEL_2,
    HONE_LEVEL_3,
    HONE_LEVEL_MEMORY,
    HONE_LEVELS
} hone_memory_level;

// The width of the narrowest numbers of a call: it limits how fast arithmetic can be.
typedef enum hone_number_width {
    HONE_WIDTH_64, // all inputs are f64
    HONE_WIDTH_32,
    HONE_WIDTH_16,
    HONE_WIDTH_8,
    HONE_WIDTH_4,
    HONE_WIDTHS
} hone_number_width;

// The highest rates that a device reaches, all of its threads together. 0: not known.
typedef struct hone_peaks {
    double operations[HONE_WIDTHS]; // per second; of f64, of 32 bits or more, 16, 8, 4 or fewer
    double bytes[HONE_LEVELS];      // per second, out of a level
    double holds[HONE_LEVELS];      // bytes that a level holds, including those before it; not used for the last level
    double reach;                   // bytes: the levels that data of this size comes out of were measured
} hone_peaks;

// Copies a text; one that is too long ends with "...".
void hone_words_copy(char *out, size_t size, const char *words);

void hone_message_put_opened(hone_buffer *out, const hone_opened *opened);
void hone_message_get_opened(hone_wire_reader *reader, hone_opened *out);
void hone_message_put_trial(hone_buffer *out, const hone_trial *trial);
void hone_message_get_trial(hone_wire_reader *reader, hone_trial *out);
void hone_message_put_rounds(hone_buffer *out, const hone_rounds_answer *answer);
void hone_message_get_rounds(hone_wire_reader *reader, hone_rounds_answer *out);

void hone_message_put_peaks(hone_buffer *out, const hone_peaks *peaks);
void hone_message_get_peaks(hone_wire_reader *reader, hone_peaks *out);

void hone_message_put_device(hone_buffer *out, const hone_device_info *device);
void hone_message_get_device(hone_wire_reader *reader, hone_device_info *out);

// One value of a call, without its data.
typedef struct hone_wire_value {
    hone_value value;   // TENSOR: it is in `tensor`
    hone_tensor tensor; // shape and strides in the reader's arena, data NULL
    uint32_t align;     // 0: the usual alignment
} hone_wire_value;

void hone_message_put_call(hone_buffer *out, const hone_call *call);
// *out: an array of *out_count in the reader's arena.
void hone_message_get_call(hone_wire_reader *reader, hone_wire_value **out, uint32_t *out_count);

// Kernels and algorithms are sent by name to a worker that has them in its own registry, or by value: as strings, code,
// and addresses of functions, which are valid only in a process that shares this one's address space as of a fork. A
// kernel that consists of code alone is sent by value to any worker, and one of a pack as its folder and revision. If
// the reference of an algorithm is a kernel, that is sent with it.
void hone_message_put_algorithm(hone_buffer *out, const hone_algorithm_entry *entry, bool by_value);
void hone_message_put_kernel(hone_buffer *out, const hone_kernel_ref *kernel, bool by_value);

// Whether a kernel can be sent as texts alone: it has code, and no function of this process.
bool hone_message_is_content(const hone_kernel *kernel);
// The part of a kernel sent by value that lies neither in a library nor in the program ("user pointer"): its address is
// not valid in a process that was forked before the part was made. NULL: there is none.
const char *hone_message_loose_part(const hone_kernel *kernel);
// Whether an algorithm with its reference can be sent without addresses.
bool hone_message_is_told(const hone_algorithm_entry *entry);

// How a reader treats addresses: it accepts all, or (strict: in a zygote's child, forked long ago) only those that lie
// in the same library or program as they did for the writer.
typedef struct hone_kernel_reader {
    hone_registry *registry; // for kernels sent by name; NULL: there is none
    bool strict;
    hone_pack_shelf *packs; // for kernels of packs; NULL: there are none
} hone_kernel_reader;

// Fills *out, with strings in the reader's arena (by value), the registry (by name) or the pack.
//   out_known      the algorithm is one of hone's own
//   out_reference  the kernel that is the algorithm's reference; its struct_size is 0 when there is none
hone_status hone_message_get_algorithm(
    hone_wire_reader *reader,
    const hone_kernel_reader *how,
    hone_algorithm *out,
    bool *out_known,
    hone_kernel *out_reference,
    hone_error *err);
hone_status hone_message_get_kernel(
    hone_wire_reader *reader, const hone_kernel_reader *how, hone_kernel *out, hone_error *err);

// The parameters by which a TRY is measured.
typedef struct hone_stopping {
    double best_ns;    // 0: there is no best, and the candidate is measured in full
    double noise;      // hone_noise_level
    double limit_ns;   // no further sample begins after this
    bool is_shared;    // the best's device was disturbed in every sample: disturbed samples are compared with it
    bool is_patient;   // one of few configs: for a while it does not count as slow before it has an undisturbed sample
    double samples_ns; // nor after this, if there are two; limit_ns also limits other checks; 0: limit_ns alone
} hone_stopping;

void hone_message_put_stopping(hone_buffer *out, const hone_stopping *stopping);
void hone_message_get_stopping(hone_wire_reader *reader, hone_stopping *out);
// Digests of code. *out: an array of *out_count in the reader's arena.
void hone_message_put_digests(hone_buffer *out, const uint64_t *digests, uint32_t count);
void hone_message_get_digests(hone_wire_reader *reader, const uint64_t **out, uint32_t *out_count);

void hone_message_put_config(hone_buffer *out, const hone_config *config);
void hone_message_get_config(hone_wire_reader *reader, hone_config *out);

#endif
