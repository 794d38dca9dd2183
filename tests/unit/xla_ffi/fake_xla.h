// XLA as a handler sees it: an api, threads, and frames made of tensors and attributes.
#ifndef HONE_TESTS_FAKE_XLA_H
#define HONE_TESTS_FAKE_XLA_H

#include "xla_ffi/xla_ffi.h"

enum { FAKE_XLA_BUFFERS = 8, FAKE_XLA_ATTRIBUTES = 8 };

typedef struct fake_xla_frame {
    xla_ffi_frame frame;
    xla_ffi_buffer buffers[FAKE_XLA_BUFFERS], *arguments[FAKE_XLA_BUFFERS], *results[FAKE_XLA_BUFFERS];
    int buffer_types[FAKE_XLA_BUFFERS], attribute_types[FAKE_XLA_ATTRIBUTES];
    xla_ffi_text names[FAKE_XLA_ATTRIBUTES], *name_list[FAKE_XLA_ATTRIBUTES], strings[FAKE_XLA_ATTRIBUTES];
    xla_ffi_scalar scalars[FAKE_XLA_ATTRIBUTES];
    void *values[FAKE_XLA_ATTRIBUTES];
    size_t buffer_count;
} fake_xla_frame;

// The last error's code and message; the handlers' answer is then not NULL.
extern xla_ffi_code fake_xla_code;
extern char fake_xla_message[1200];
// What the fake lends: 0 threads and fewer means that it refuses.
extern int64_t fake_xla_threads;
// Device memory: what there is, what is lent at the moment, how often some was lent.
extern size_t fake_xla_memory, fake_xla_lent;
extern int fake_xla_allocations;

void fake_xla_init(fake_xla_frame *out);
void fake_xla_argument(fake_xla_frame *frame, int dtype, void *data, int64_t rank, int64_t *dims);
void fake_xla_result(fake_xla_frame *frame, int dtype, void *data, int64_t rank, int64_t *dims);
void fake_xla_string(fake_xla_frame *frame, const char *name, const char *text);
void fake_xla_scalar(fake_xla_frame *frame, const char *name, int dtype, const void *value);
// Waits for the tasks that were lent threads.
void fake_xla_join(void);

#endif
