// Data for candidates: tensors made from a call's description, each between guard bytes, never the caller's own.
//
// Warm measurements use one set. Cold ones rotate through several whose bytes together exceed the last-level cache.
#ifndef HONE_TUNE_WORKER_BUFFERS_H
#define HONE_TUNE_WORKER_BUFFERS_H

#include "hone/kernel.h"
#include "os/os.h"
#include "tune/wire/message.h"
#include "tune/worker/site.h"

enum { HONE_MAX_SETS = 64 };

// One tensor's memory.
typedef struct hone_fenced {
    char *block; // all of it, guards included
    size_t size;
    char *low;          // first byte that the tensor reaches
    size_t span;        // bytes from there on
    bool *holes;        // [span]: bytes between the elements; NULL: there are none
    hone_tensor tensor; // the host's
    hone_tensor placed; // the one that kernels get: the same, or a device's, of which the block is a mirror
    void *device_block; // NULL: there is none
    size_t device_skip; // where in it the block's copy begins
    int64_t strides[HONE_MAX_RANK];
    hone_os_guard guard; // of an input
    uint64_t checksum;   // of the whole block, of an input without guard
} hone_fenced;

typedef struct hone_buffer_set {
    hone_value *values;  // [count], what run gets
    hone_fenced *fenced; // [count], block NULL where the value is no tensor
} hone_buffer_set;

typedef struct hone_buffers {
    hone_allocator allocator;
    const hone_signature *signature;
    const hone_algorithm *algorithm;
    const hone_site *site; // where kernels find the data
    hone_pool *pool;       // for large pieces; NULL: none
    bool guards;           // inputs that a kernel writes are seen by the system, in a process of the session's own
    uint64_t seed;
    int varied;         // index of the value whose elements variants scale or replace by special ones; -1: none
    double scale;       // of its elements
    bool scales_others; // of the elements of the other arrays of floats, and not of its own
    bool has_wide,
        widens;             // there are arrays that have limits (hone_has_limits); they are made at these
    bool clears;            // results are zeros before a run, as new memory is, and not the pattern
    uint32_t first_special; // which of the kinds that the operation defines the first special row gets
    size_t count;           // values
    size_t set_count;
    hone_buffer_set sets[HONE_MAX_SETS];
} hone_buffers;

// Memory for one set; values come from a message and stay where they are for as long as the buffers, and so does the
// site.
hone_status hone_buffers_create(
    hone_buffers *buffers,
    hone_allocator allocator,
    const hone_signature *signature,
    const hone_algorithm *algorithm,
    const hone_site *site,
    const hone_wire_value *values,
    size_t count,
    hone_error *err);
void hone_buffers_deinit(hone_buffers *buffers);
// Memory is filled, copied and hashed by the pool's threads from here on. guards: inputs are read-only between
// hone_buffers_close_input and hone_buffers_open_input, and none is hashed; for data of the host.
void hone_buffers_work_with(hone_buffers *buffers, hone_pool *pool, bool guards);
// Makes the inputs of the first set; call was bound to its values.
hone_status hone_buffers_fill(hone_buffers *buffers, const hone_call *call, uint64_t seed, hone_error *err);
// Makes one of them anew, with buffers->seed.
hone_status hone_buffers_fill_one(hone_buffers *buffers, const hone_call *call, size_t index, hone_error *err);
bool hone_buffers_is_input(const hone_buffers *buffers, size_t index);  // a tensor that is read
bool hone_buffers_is_result(const hone_buffers *buffers, size_t index); // a tensor that is written
// Other bytes for an input of the first set: its whole span.
//   checksum  of its block with these bytes; 0: it gets a guard, or else its checksum is taken
hone_status hone_buffers_set_input(
    const hone_buffers *buffers, size_t index, const char *span, uint64_t checksum, hone_error *err);
uint64_t hone_buffers_checksum(const hone_buffers *buffers, size_t index); // of an input's block as it is
// Around writes to an input that are meant: what was written before it was closed is not told.
hone_status hone_buffers_open_input(hone_fenced *fenced, hone_error *err);
void hone_buffers_close_input(const hone_buffers *buffers, hone_fenced *fenced);
// The same of all inputs of the first set that a test admits. Of those that could not be opened others may be open.
hone_status hone_buffers_open_inputs(
    hone_buffers *buffers, bool (*admits)(const hone_buffers *buffers, size_t index), hone_error *err);
void hone_buffers_close_inputs(hone_buffers *buffers, bool (*admits)(const hone_buffers *buffers, size_t index));
// Puts NaN, infinities, zeros of both signs and subnormal numbers among the floating-point inputs of the first set.
hone_status hone_buffers_season(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Puts zeros into the varied value of the first set, or into its other floating-point inputs.
hone_status hone_buffers_put_zeros(const hone_buffers *buffers, bool varied, uint64_t seed, hone_error *err);
// Gives a few neighbouring elements of each floating-point input of the first set the values of others of it.
hone_status hone_buffers_change_few(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Puts what the operation defines beside ordinary numbers (hone_special) into one of three rows of a value, of fewer than three
// into each, so that the other rows still say something: a kind in each, by turns from first_special on.
hone_status hone_buffers_sprinkle(
    const hone_buffers *buffers, size_t index, uint32_t defined, uint64_t seed, hone_error *err);
// Makes rows of the varied value unlike each other: of four one has an outlier of 100, one lies around -100, and one is 32 times as
// large, such as no row of random numbers is.
hone_status hone_buffers_make_uneven(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Gives three of four rows of each input of floats a few elements at their beginning and their end that tell nothing of the rest: those of
// the row before, zeros, or ones. Arrays without numbers on both sides of 0 stay as they are.
hone_status hone_buffers_disguise_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Gives three of four rows of the varied value one number each, ordinary or large, of which sums of many are exact.
hone_status hone_buffers_level_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Puts a number between 9 and 30, of either sign, into every other row of the varied value and the first one, and up to eight of each
// negative size where there is room.
hone_status hone_buffers_put_outliers(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// How many rows that gives something special at least, and how many kinds of it there are.
int64_t hone_buffers_special_rows(const hone_buffers *buffers, size_t index);
uint32_t hone_buffers_special_kinds(uint32_t defined);
// Whether a value is an array of floats that is made as numbers around 0 usually are, and not the varied one; and
// whether there is one.
bool hone_buffers_is_other(const hone_buffers *buffers, size_t index);
bool hone_buffers_has_others(const hone_buffers *buffers);
// Whether there is an array of bools or integers whose rows may be of one value: what it means nobody knows, but each of
// its elements is as good as another.
bool hone_buffers_has_choices(const hone_buffers *buffers);
// Makes some of these rows of one value, some of them zero, and some of them zero before or from a place on, as padding is masked.
hone_status hone_buffers_even_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Adds copies of the first set until all together reach size bytes (at least two sets, at most HONE_MAX_SETS).
hone_status hone_buffers_rotate(hone_buffers *buffers, const hone_wire_value *values, size_t bytes, hone_error *err);
size_t hone_buffers_bytes(const hone_buffers *buffers); // of one set
// Overwrites a set's results and what lies between their elements, so that what is not written shows.
hone_status hone_buffers_poison(hone_buffers *buffers, size_t set, hone_error *err);
// Brings what runs have left in a device's memory to the host, where it is checked and compared.
hone_status hone_buffers_fetch(const hone_buffers *buffers, size_t set, hone_error *err);
// HONE_OK when inputs, guards and holes are as they were; else HONE_KERNEL_FAILED with what was written.
hone_status hone_buffers_check(const hone_buffers *buffers, size_t set, hone_error *err);
// Makes everything anew after a check failed.
hone_status hone_buffers_restore(hone_buffers *buffers, const hone_call *call, hone_error *err);

// A block like one of the first set's, for the reference's results. Deinitialise with hone_fenced_deinit.
hone_status hone_fenced_like(
    const hone_allocator *allocator, const hone_fenced *model, hone_fenced *out, hone_error *err);
// For runs on a device: gives one tensor the bytes of another on the device; and the mirror's bytes back to the device.
hone_status hone_buffers_take(const hone_buffers *buffers, hone_fenced *to, const hone_fenced *from, hone_error *err);
hone_status hone_buffers_send(const hone_buffers *buffers, const hone_fenced *fenced, hone_error *err);
// Bytes of one tensor where kernels find it, on a device too; offset counts from its first element.
hone_status hone_buffers_write(
    const hone_buffers *buffers,
    const hone_fenced *fenced,
    int64_t offset,
    const void *bytes,
    size_t size,
    hone_error *err);
hone_status hone_buffers_read(
    const hone_buffers *buffers, const hone_fenced *fenced, int64_t offset, void *out, size_t size, hone_error *err);
void hone_fenced_deinit(const hone_allocator *allocator, hone_fenced *fenced);

// Of a type of numbers the bits that may change, and those that are neither all clear nor all set in a number that is changed: no number
// becomes subnormal, infinite or NaN. False: not a type of numbers that have such bits.
bool hone_low_bits(hone_dtype dtype, uint64_t *out_low, uint64_t *out_exponent);

#endif
