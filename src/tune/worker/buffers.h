// Data for candidates: tensors that are made from a call's description, each between guard bytes. The caller's own data
// is never used.
//
// Warm measurements use one set. Cold ones rotate through several sets whose bytes together exceed the last-level
// cache.
#ifndef HONE_TUNE_WORKER_BUFFERS_H
#define HONE_TUNE_WORKER_BUFFERS_H

#include "hone/kernel.h"
#include "os/os.h"
#include "tune/wire/message.h"
#include "tune/worker/site.h"

enum { HONE_MAX_SETS = 64 };

// One tensor's memory.
typedef struct hone_fenced {
    char *block; // all of it, with the guards
    size_t size;
    char *low;          // first byte that the tensor uses
    size_t span;        // bytes from there on that it uses
    bool *holes;        // [span]: true for bytes between the elements; NULL: there are none
    hone_tensor tensor; // the host's
    hone_tensor placed; // what kernels get: the same, or a device's, of which the block is a mirror
    void *device_block; // NULL: there is none
    size_t device_skip; // where the block's copy begins in it
    int64_t strides[HONE_MAX_RANK];
    hone_os_guard guard; // for an input
    uint64_t checksum;   // of the whole block, for an input without guard
} hone_fenced;

typedef struct hone_buffer_set {
    hone_value *values;  // [count], what run gets
    hone_fenced *fenced; // [count], block NULL: the value is no tensor
} hone_buffer_set;

typedef struct hone_buffers {
    hone_allocator allocator;
    const hone_signature *signature;
    const hone_algorithm *algorithm;
    const hone_site *site; // where kernels find the data
    hone_pool *pool;       // shares work on large pieces; NULL: none does
    bool guards;           // the system detects writes to inputs; in a process of the session's own
    uint64_t seed;
    int varied;         // index of the value whose elements variants scale or replace by special values; -1: none
    double scale;       // factor of its elements
    bool scales_others; // scale is for the elements of the other arrays of floats instead
    bool has_wide,
        widens;             // there are arrays that have limits (hone_has_limits); they are made at these
    bool clears;            // results are zeros before a run, as new memory is, instead of the pattern
    uint32_t first_special; // of the kinds that the operation defines, index of the one for the first special row
    size_t count;           // number of values
    size_t set_count;
    hone_buffer_set sets[HONE_MAX_SETS];
} hone_buffers;

// Allocates memory for one set. The values come from a message and must stay where they are for as long as the buffers,
// and so must the site.
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
// From here on the pool's threads fill, copy and hash memory. guards: inputs are read-only between
// hone_buffers_close_input and hone_buffers_open_input, and none is hashed; for data of the host.
void hone_buffers_work_with(hone_buffers *buffers, hone_pool *pool, bool guards);
// Makes the inputs of the first set; call was bound to its values.
hone_status hone_buffers_fill(hone_buffers *buffers, const hone_call *call, uint64_t seed, hone_error *err);
// Makes one of them again, with buffers->seed.
hone_status hone_buffers_fill_one(hone_buffers *buffers, const hone_call *call, size_t index, hone_error *err);
bool hone_buffers_is_input(const hone_buffers *buffers, size_t index);  // a tensor that is read
bool hone_buffers_is_result(const hone_buffers *buffers, size_t index); // a tensor that is written
// Replaces the whole span of an input of the first set.
//   checksum  of its block with these bytes; 0: the input gets a guard, or else its checksum is computed
hone_status hone_buffers_set_input(
    const hone_buffers *buffers, size_t index, const char *span, uint64_t checksum, hone_error *err);
uint64_t hone_buffers_checksum(const hone_buffers *buffers, size_t index); // of an input's block as it is now
// Around intended writes to an input: what is written before it is closed is not reported.
hone_status hone_buffers_open_input(hone_fenced *fenced, hone_error *err);
void hone_buffers_close_input(const hone_buffers *buffers, hone_fenced *fenced);
// The same for all inputs of the first set that `admits` accepts. If opening fails for one of them, others may be open.
hone_status hone_buffers_open_inputs(
    hone_buffers *buffers, bool (*admits)(const hone_buffers *buffers, size_t index), hone_error *err);
void hone_buffers_close_inputs(hone_buffers *buffers, bool (*admits)(const hone_buffers *buffers, size_t index));
// Puts NaN, infinities, zeros of both signs and subnormal numbers among the floating-point inputs of the first set.
hone_status hone_buffers_season(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Puts zeros into the varied value of the first set, or into its other floating-point inputs.
hone_status hone_buffers_put_zeros(const hone_buffers *buffers, bool varied, uint64_t seed, hone_error *err);
// Gives a few neighbouring elements of each floating-point input of the first set the values of other elements of it.
hone_status hone_buffers_change_few(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Puts what the operation defines beside ordinary numbers (hone_special) into one of three rows of a value, so that the
// other rows still say something; if there are fewer than three rows, into each. Each row gets one kind, in turn, from
// first_special on.
hone_status hone_buffers_sprinkle(
    const hone_buffers *buffers, size_t index, uint32_t defined, uint64_t seed, hone_error *err);
// Makes rows of the varied value differ from each other as rows of random numbers do not: of four rows one has an
// outlier of 100, one lies around -100, and one is 32 times as large.
hone_status hone_buffers_make_uneven(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Gives three of four rows of each input of floats a few elements at their beginning and their end that say nothing
// about the rest: those of the row before, zeros, or ones. Arrays without numbers on both sides of 0 stay as they are.
hone_status hone_buffers_disguise_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Gives three of four rows of the varied value one number each, ordinary or large, of which long sums are exact.
hone_status hone_buffers_level_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Puts a number between 9 and 30, of either sign, into the first row of the varied value and into every other one, and
// up to eight of each negative size if there is room.
hone_status hone_buffers_put_outliers(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// The least number of rows that this gives something special, and the number of kinds.
int64_t hone_buffers_special_rows(const hone_buffers *buffers, size_t index);
uint32_t hone_buffers_special_kinds(uint32_t defined);
// Whether a value, other than the varied one, is an array of floats that is made as ordinary numbers around 0; and
// whether there is one.
bool hone_buffers_is_other(const hone_buffers *buffers, size_t index);
bool hone_buffers_has_others(const hone_buffers *buffers);
// Whether there is an array of bools or integers whose rows may be of one value: the meaning of the array is unknown,
// but each of its elements is as good as another.
bool hone_buffers_has_choices(const hone_buffers *buffers);
// Makes some of these rows one value, some of them zero, and some of them zero before or from a place on, as in masks
// of padding.
hone_status hone_buffers_even_rows(const hone_buffers *buffers, uint64_t seed, hone_error *err);
// Adds copies of the first set until all together reach size bytes (at least two sets, at most HONE_MAX_SETS).
hone_status hone_buffers_rotate(hone_buffers *buffers, const hone_wire_value *values, size_t bytes, hone_error *err);
size_t hone_buffers_bytes(const hone_buffers *buffers); // of one set
// Overwrites a set's results and the bytes between their elements, to detect what is not written.
hone_status hone_buffers_poison(hone_buffers *buffers, size_t set, hone_error *err);
// Copies what runs have left in a device's memory to the host, where it is checked and compared.
hone_status hone_buffers_fetch(const hone_buffers *buffers, size_t set, hone_error *err);
// HONE_OK if inputs, guards and holes are unchanged; else HONE_KERNEL_FAILED with what was written.
hone_status hone_buffers_check(const hone_buffers *buffers, size_t set, hone_error *err);
// Makes all data again after a check failed.
hone_status hone_buffers_restore(hone_buffers *buffers, const hone_call *call, hone_error *err);

// A block like one of the first set's, for the reference's results. Deinitialise with hone_fenced_deinit.
hone_status hone_fenced_like(
    const hone_allocator *allocator, const hone_fenced *model, hone_fenced *out, hone_error *err);
// For runs on a device: copies the bytes of one tensor to another on the device; and the mirror's bytes to the device.
hone_status hone_buffers_take(const hone_buffers *buffers, hone_fenced *to, const hone_fenced *from, hone_error *err);
hone_status hone_buffers_send(const hone_buffers *buffers, const hone_fenced *fenced, hone_error *err);
// Writes or reads bytes of one tensor where kernels find it, on a device too. offset counts from its first element.
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

// For a type of numbers, the bits that may be changed, and the exponent's bits, which are neither all clear nor all set
// in a number that is changed: no number becomes subnormal, infinite or NaN. False: the type has no such bits.
bool hone_low_bits(hone_dtype dtype, uint64_t *out_low, uint64_t *out_exponent);

#endif
