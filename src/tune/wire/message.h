// What the tuner and its workers say to each other. The tuner asks, the worker notes and answers:
//   OPEN     a call: device, algorithm, arguments, regime; the worker makes data and computes the reference
//   TRY      one candidate: prepare, verify, race against the best so far
//   PREPARE  several configs of one kernel at once, so that what is compiled is cached when they are tried
//   ROUNDS   several candidates, sampled in rounds
//   PEAKS    what the processor can do at best
//   PING     are you there?
// A NOTE in between says that a phase has passed and that the limit starts anew.
#ifndef HONE_TUNE_WIRE_MESSAGE_H
#define HONE_TUNE_WIRE_MESSAGE_H

#include "pack/pack.h"
#include "registry/registry.h"
#include "tune/wire/frame.h"

enum {
    HONE_MAX_FINALISTS = 8,
    HONE_MAX_TOGETHER = 16, // that one ROUNDS measures
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

// What a TRY asks. VERIFIES: its time is not asked, and all is looked at that a winner passes. FIRST_RUNS: whether its first
// runs in this process are right, also in two threads at once, of which one stands still after best_ns. AGAIN: the time
// of one that was tried before, to see whether the machine is as fast as it was then.
typedef enum hone_try_sort {
    HONE_TRY_RACES,
    HONE_TRY_VERIFIES,
    HONE_TRY_FIRST_RUNS,
    HONE_TRY_AGAIN,
    HONE_TRY_SORTS
} hone_try_sort;

// What an answer to OPEN says.
typedef struct hone_opened {
    hone_status status;
    double reference_ns;   // of the whole call; 0: only parts of it were computed
    uint64_t parts, whole; // parts that are verified, out of so many
    char how[64];          // hone_reference_describe
    char message[HONE_REASON_SIZE * 2];
} hone_opened;

// Where a worker's time went.
typedef struct hone_spent {
    double prepare_ns, verify_ns;
    double run_ns; // runs that were measured or warmed up
} hone_spent;

// One sample.
typedef struct hone_sample {
    double time_ns; // of one run
    double waited;  // for a processor, by the thread that waited longest, over what the sample took; 0: not known
    unsigned marks; // what disturbed it (hone_os_disturber, hone_device_disturber); 0: nothing did
} hone_sample;

// What an answer to TRY says.
typedef struct hone_trial {
    hone_failure failure;
    double max_error;                // in units of the tolerance
    double time_ns, low_ns, high_ns; // by the samples that count (rule/statistics.h)
    uint32_t samples;                // that count
    uint32_t taken, disturbed;       // samples, and how many of them other work on the machine disturbed
    uint32_t kept;                   // of the samples, in the order they were taken
    double kept_ns[HONE_KEPT_SAMPLES], kept_waited[HONE_KEPT_SAMPLES];
    uint8_t kept_marks[HONE_KEPT_SAMPLES];
    bool dropped; // it was clearly slower than the best: fewer samples than others got
    bool retired; // the process cannot use its device any more: another has to go on
    bool
        refused; // the worker could not even begin, or what the kernel needs is not installed: says nothing of the kernel
    bool spoiled;    // the worker is not to be used any more
    bool witnessed;  // as a rounds answer's, once it is confirmed
    bool same;       // the digest was among those that the tuner knew: nothing was run
    bool unproven;   // it leads, and what leaders are looked at for is left to the finals: there is no time for it
    double look_ns;  // what a run took with all that stands around one that is verified; 0: none was
    double proof_ns; // what it took to look at it as at a leader
    uint64_t digest;
    hone_spent spent;
    char reason[HONE_REASON_SIZE];
} hone_trial;

// What an answer to ROUNDS says.
typedef struct hone_rounds_answer {
    hone_failure failure; // of finalist `failed`, or, when that is `count` or more, of nobody knows whom: no samples
    uint32_t failed;
    bool retired;
    uint32_t count, rounds;
    bool spoiled;   // as a trial's
    bool witnessed; // what was not computed by the reference is as a kernel of another name gives it
    bool left_out;  // time was over before all was looked at that a smaller call shows as well
    bool is_brief;  // and before what differs little from what was looked at
    hone_spent spent;
    double max_error[HONE_MAX_TOGETHER];
    double samples[HONE_MAX_TOGETHER][HONE_MAX_ROUNDS];
    double waited[HONE_MAX_TOGETHER][HONE_MAX_ROUNDS]; // as hone_sample's
    uint8_t marks[HONE_MAX_TOGETHER][HONE_MAX_ROUNDS];
    char reason[HONE_REASON_SIZE];
} hone_rounds_answer;

// Where data lies, the nearest first.
typedef enum hone_memory_level {
    HONE_LEVEL_1,
    HONE_LEVEL_2,
    HONE_LEVEL_3,
    HONE_LEVEL_MEMORY,
    HONE_LEVELS
} hone_memory_level;

// How wide the narrowest numbers of a call are: arithmetic goes as fast as they let it.
typedef enum hone_number_width {
    HONE_WIDTH_64, // all inputs are f64
    HONE_WIDTH_32,
    HONE_WIDTH_16,
    HONE_WIDTH_8,
    HONE_WIDTH_4,
    HONE_WIDTHS
} hone_number_width;

// What a device can do at best, all of its threads together. 0: not known.
typedef struct hone_peaks {
    double operations[HONE_WIDTHS]; // a second; of f64, of 32 bits or more, 16, 8, 4 or fewer
    double bytes[HONE_LEVELS];      // a second, out of a level
    double holds[HONE_LEVELS];      // bytes that a level holds, with those before it; of the last one nothing
    double reach;                   // bytes: the levels that so many come out of were looked at
} hone_peaks;

// Copies words that may be longer than their place: then they end with "...".
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

// One value of a call, without data.
typedef struct hone_wire_value {
    hone_value value;   // TENSOR: see tensor
    hone_tensor tensor; // shape and strides in the reader's arena, data NULL
    uint32_t align;     // 0: ordinary
} hone_wire_value;

void hone_message_put_call(hone_buffer *out, const hone_call *call);
// *out: an array of *out_count in the reader's arena.
void hone_message_get_call(hone_wire_reader *reader, hone_wire_value **out, uint32_t *out_count);

// Kernels and algorithms go by name to a worker that has them in its own registry, or by value: strings, code, and
// addresses of functions, which mean something only in a process that shares this one's address space as of a fork. A
// kernel of code alone goes by value to anybody, and one of a pack as its folder and revision. An algorithm whose
// reference is a kernel takes that along.
void hone_message_put_algorithm(hone_buffer *out, const hone_algorithm_entry *entry, bool by_value);
void hone_message_put_kernel(hone_buffer *out, const hone_kernel_ref *kernel, bool by_value);

// Whether a kernel is told by texts alone: it has code, and no function of this process.
bool hone_message_is_content(const hone_kernel *kernel);
// What of a kernel that goes by value lies in no library and not in the program ("user pointer"): in a process that was
// forked before it was made it means nothing. NULL: nothing does.
const char *hone_message_loose_part(const hone_kernel *kernel);
// hone_message_is_content of an algorithm with its reference.
bool hone_message_is_told(const hone_algorithm_entry *entry);

// How a reader takes addresses: as they are, or (strict: in a zygote's child, forked long ago) only when they lie in
// the same library or program as they did for the writer.
typedef struct hone_kernel_reader {
    hone_registry *registry; // for names; NULL: there is none
    bool strict;
    hone_pack_shelf *packs; // of which kernels of packs come; NULL: there are none
} hone_kernel_reader;

// Fills *out, with strings in the reader's arena (by value), the registry (by name) or the pack.
//   out_known      the algorithm is one of hone's own
//   out_reference  the kernel that stands for the reference's function; its struct_size is 0 when there is none
hone_status hone_message_get_algorithm(
    hone_wire_reader *reader,
    const hone_kernel_reader *how,
    hone_algorithm *out,
    bool *out_known,
    hone_kernel *out_reference,
    hone_error *err);
hone_status hone_message_get_kernel(
    hone_wire_reader *reader, const hone_kernel_reader *how, hone_kernel *out, hone_error *err);

// What a TRY is measured by.
typedef struct hone_stopping {
    double best_ns;    // 0: there is none, and a candidate is measured in full
    double noise;      // hone_noise_level
    double limit_ns;   // after which no further sample begins
    bool is_shared;    // the best's device was never left alone: samples that it was not left alone in compare with it
    bool is_patient;   // one of few configs: it is not believed to be slow before it was left alone once, for a while
    double samples_ns; // after which none begins either, where there are two: other looks have limit_ns; 0: limit_ns
} hone_stopping;

void hone_message_put_stopping(hone_buffer *out, const hone_stopping *stopping);
void hone_message_get_stopping(hone_wire_reader *reader, hone_stopping *out);
// Digests of code. *out: an array of *out_count in the reader's arena.
void hone_message_put_digests(hone_buffer *out, const uint64_t *digests, uint32_t count);
void hone_message_get_digests(hone_wire_reader *reader, const uint64_t **out, uint32_t *out_count);

void hone_message_put_config(hone_buffer *out, const hone_config *config);
void hone_message_get_config(hone_wire_reader *reader, hone_config *out);

#endif
