// One pack as it is being read; shared by the files of this folder only.
//
// What is wrong with a kernel ends that kernel; what is wrong with the document itself, or a want of memory, ends the
// reading.
#ifndef HONE_PACK_READING_H
#define HONE_PACK_READING_H

#include "base/json.h"
#include "base/memory.h"
#include "pack/pack.h"

// What was refused and cannot be registered: an algorithm, or a kernel without a name or a platform.
typedef struct hone_pack_problem {
    const char *algorithm, *kernel; // "": it has no name
    hone_status status;
    const char *reason;
} hone_pack_problem;

struct hone_kernel_pack {
    hone_allocator allocator;
    hone_arena arena; // everything below
    const char *folder, *name;
    char digest[HONE_SHA256_HEX_SIZE];
    hone_algorithm *algorithms;
    size_t algorithm_count;
    const char *foreign; // rows of foreign operations, JSON; NULL: none
    hone_kernel *kernels;
    hone_pack_kernel *details; // of each kernel
    size_t count;
    hone_pack_problem *problems;
    size_t problem_count, problem_capacity; // the array is in the arena
};

// Where in the document the reader stands, for messages.
typedef struct hone_pack_reading {
    hone_kernel_pack *pack;
    const hone_pack_platforms *platforms;
    const char *kernel; // its name; NULL: outside of kernels
    char within[96];    // "variants[3]."; "" in the kernel itself
    hone_error *err;
} hone_pack_reading;

// Fails with "pack P: kernel K: variants[3].grid: ..." in reading->err.
hone_status hone_pack_fail(const hone_pack_reading *r, hone_status status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
hone_status hone_pack_fail_memory(const hone_pack_reading *r);
// Notes something refused that cannot stand in the registry. algorithm and kernel may be NULL.
hone_status hone_pack_note(
    hone_kernel_pack *pack, const char *algorithm, const char *kernel, hone_status status, const char *reason);

// Whether "saxpy" or "saxpy@v2" names the algorithm of a signature.
bool hone_pack_is_algorithm(const char *written, const char *signature);

// document.c: fields of an object. A missing one leaves *out as it was, and null counts as missing.
const char *hone_pack_kind_name(const json_t *value); // "a number"
// Every field of object is among names (space-separated): the first that is not is named.
hone_status hone_pack_check_fields(const hone_pack_reading *r, const json_t *object, const char *names);
// A text of at most limit bytes, without control characters but newlines and tabs.
hone_status hone_pack_get_text(
    const hone_pack_reading *r, const json_t *object, const char *field, size_t limit, const char **out);
// The same, also from a whole number, or an array of texts and numbers, which are joined.
hone_status hone_pack_get_joined(
    const hone_pack_reading *r, const json_t *object, const char *field, const char *between, const char **out);
hone_status hone_pack_get_integer(
    const hone_pack_reading *r, const json_t *object, const char *field, int64_t least, int64_t most, int64_t *out);
// *out: an array or object of the document, of at most `most` members; NULL: missing.
hone_status hone_pack_get_array(
    const hone_pack_reading *r, const json_t *object, const char *field, size_t most, const json_t **out);
hone_status hone_pack_get_object(
    const hone_pack_reading *r, const json_t *object, const char *field, const json_t **out);
// An object as text, with sorted members; NULL: no memory.
const char *hone_pack_dump(hone_kernel_pack *pack, const json_t *object);
// As an item of its own array, for messages.
void hone_pack_enter(hone_pack_reading *r, const char *array, size_t index);
void hone_pack_leave(hone_pack_reading *r);

// files.c: "file" and "sha256" of an object; *out NULL: there is none. Files of a kernel are kept once.
typedef struct hone_pack_files {
    hone_pack_file *files; // in the arena
    size_t count, capacity;
} hone_pack_files;
hone_status hone_pack_get_file(
    const hone_pack_reading *r, const json_t *object, hone_pack_files *list, size_t *out_index, bool *out_given);

// folder.c: "folder" of a kernel, in whose variants for several machines that for this one is its code.
hone_status hone_pack_get_variant_file(
    const hone_pack_reading *r,
    const json_t *object,
    hone_pack_kernel *details,
    hone_pack_files *list,
    size_t *out_index,
    bool *out_given);
// files.c: takes a file whose name and digest are known.
hone_status hone_pack_add_file(
    const hone_pack_reading *r, hone_pack_files *list, hone_pack_file *file, size_t *out_index);

// space.c: the text of a space that has each config of the list: each parameter with the values that occur, in their
// order.
hone_status hone_pack_space_of(const hone_pack_reading *r, const json_t *variants, const char **out);

// terms.c: whether a text is a list of 1 to `most` expressions with commas between them, whatever their names mean.
hone_status hone_pack_check_terms(const hone_pack_reading *r, const char *field, const char *text, size_t most);

// variants.c: the variants of a kernel whose own code and space are read. list gets their files.
hone_status hone_pack_read_variants(
    hone_pack_reading *r,
    const json_t *object,
    hone_pack_kernel *details,
    const hone_code *code,
    hone_pack_files *list);
// The fields of a hone_code that an object has; out keeps the others.
hone_status hone_pack_read_code(const hone_pack_reading *r, const json_t *object, hone_code *out);
#define HONE_PACK_CODE_FIELDS                                                                                          \
    "entry arguments grid block cluster shared scratch constants options condition flags file sha256 facts"
bool hone_pack_list_variant(const hone_kernel *kernel, const hone_call *call, size_t index, hone_config *out);
bool hone_pack_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);

// kernel.c: reads one of "kernels" into kernel and details. What is wrong with one that has a name is kept in details;
// a failure is one that has none, or a want of memory.
hone_status hone_pack_read_kernel(
    hone_pack_reading *r, const json_t *object, hone_kernel *kernel, hone_pack_kernel *details);

#endif
