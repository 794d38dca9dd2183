// The arguments of one call, protected from the function: objects of tvm-ffi that hone owns and lends. A function may
// hold references to them until it returns. If it keeps some, or releases more than it took, the reference counts show
// it, and its frame is never used or freed again, so that the references stay valid.
#ifndef HONE_PLATFORMS_FFI_LENT_H
#define HONE_PLATFORMS_FFI_LENT_H

#include "base/buffer.h"
#include "hone/kernel.h"
#include "platforms/shared/launch.h"

#include <stdatomic.h>

// tvm-ffi's numbers for the types that hone uses.
enum {
    HONE_FFI_SMALL_TEXT = 11,   // at most seven bytes, stored in the value itself
    HONE_FFI_FIRST_OBJECT = 64, // from here on a value is a pointer to an object
    HONE_FFI_TEXT = 65,
    HONE_FFI_TENSOR = 70,
    HONE_FFI_ARRAY = 71,
    HONE_FFI_LIST = 75,
};

// TVMFFIObject.
typedef struct hone_ffi_object {
    _Atomic uint64_t references; // strong count in the lower half, weak count in the upper one
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
} hone_ffi_object;

// TVMFFISeqCell.
typedef struct hone_ffi_sequence {
    void *data; // hone_values
    int64_t size, capacity;
    void (*data_deleter)(void *data);
} hone_ffi_sequence;

// An object, and the data after its header.
typedef struct hone_ffi_lent {
    hone_ffi_object object; // type 0 if the argument is not an object
    union {
        hone_tensor tensor;
        hone_ffi_sequence sequence;
    } as;
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
    hone_value *items; // of a sequence, owned
} hone_ffi_lent;

typedef struct hone_ffi_frame {
    struct hone_ffi_frame *next; // next in the list of all frames of a plan
    atomic_bool busy;
    _Atomic int64_t made; // tensors that the environment has made for its call, and that are still referenced
    hone_value values[HONE_MAX_ARGUMENTS];
    hone_ffi_lent lent[]; // one for each argument
} hone_ffi_frame;

// The description from which the frames of a plan are made. With all other fields zero it has no frames yet.
typedef struct hone_ffi_list {
    const hone_call *call;
    hone_device device;
    uint32_t count, passed; // of the arguments; those that are passed come first, then those that are returned
    hone_argument arguments[HONE_MAX_ARGUMENTS];
    hone_buffer objects; // texts and lists
    size_t scratch_bytes;
    _Atomic(hone_ffi_frame *) frames;
} hone_ffi_list;

// Takes a frame that no other thread uses. As many frames are made as threads run at the same time. NULL if there is no
// memory.
hone_ffi_frame *hone_ffi_frame_take(hone_ffi_list *list);
// Fills in the values of a run.
void hone_ffi_frame_fill(const hone_ffi_list *list, hone_ffi_frame *frame, const hone_value *args, void *scratch);
// Call it after the function. False if the function has changed reference counts; *out_argument is then the argument,
// or list->passed if it has kept a tensor that was made for it. The frame is then abandoned.
bool hone_ffi_frame_give_back(const hone_ffi_list *list, hone_ffi_frame *frame, uint32_t *out_argument);
// Whether an object is one that the frame lends.
bool hone_ffi_frame_has(const hone_ffi_list *list, const hone_ffi_frame *frame, const void *object);
// Frees the frames that are not in use.
void hone_ffi_list_deinit(hone_ffi_list *list);

#endif
