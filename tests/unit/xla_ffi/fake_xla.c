#include "fake_xla.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 256 };

xla_ffi_code fake_xla_code;
char fake_xla_message[1200];
int64_t fake_xla_threads;
size_t fake_xla_memory = 1 << 20, fake_xla_lent;
int fake_xla_allocations;

static pthread_t tasks[TASKS];
static int task_count;
static struct xla_ffi_error {
    int unused;
} the_error;

static xla_ffi_error *error_create(xla_ffi_error_create *args)
{
    fake_xla_code = args->code;
    snprintf(fake_xla_message, sizeof fake_xla_message, "%s", args->message);
    return &the_error;
}

static void error_destroy(xla_ffi_error_destroy *args)
{
    (void)args;
}

typedef struct lent {
    void (*task)(void *data);
    void *data;
} lent;

static lent all[TASKS];

static void *run_task(void *ctx)
{
    lent *one = ctx;
    one->task(one->data);
    return NULL;
}

static xla_ffi_error *schedule(xla_ffi_schedule *args)
{
    if (fake_xla_threads <= 0 || task_count == TASKS) return &the_error;
    all[task_count] = (lent){args->task, args->data};
    if (pthread_create(&tasks[task_count], NULL, run_task, &all[task_count]) != 0) return &the_error;
    task_count++;
    return NULL;
}

static xla_ffi_error *threads_get(xla_ffi_threads_get *args)
{
    *args->threads = fake_xla_threads < 0 ? -fake_xla_threads : fake_xla_threads;
    return fake_xla_threads == 0 ? &the_error : NULL;
}

static xla_ffi_error *memory_allocate(xla_ffi_memory_allocate *args)
{
    if (args->alignment > 16 || args->size > fake_xla_memory - fake_xla_lent) return &the_error;
    args->data = aligned_alloc(256, (args->size + 255) / 256 * 256);
    if (args->data == NULL) return &the_error;
    fake_xla_lent += args->size;
    fake_xla_allocations++;
    return NULL;
}

static xla_ffi_error *memory_free(xla_ffi_memory_free *args)
{
    free(args->data);
    fake_xla_lent -= args->size;
    return NULL;
}

// The default stream of the first device.
static xla_ffi_error *stream_get(xla_ffi_stream_get *args)
{
    args->stream = NULL;
    return NULL;
}

static xla_ffi_error *ordinal_get(xla_ffi_ordinal_get *args)
{
    args->ordinal = 0;
    return NULL;
}

void fake_xla_join(void)
{
    while (task_count > 0)
        pthread_join(tasks[--task_count], NULL);
}

static const xla_ffi_api api = {
    .struct_size = sizeof api,
    .error_create = error_create,
    .error_destroy = error_destroy,
    .stream_get = stream_get,
    .memory_allocate = memory_allocate,
    .memory_free = memory_free,
    .schedule = schedule,
    .threads_get = threads_get,
    .ordinal_get = ordinal_get,
};

void fake_xla_init(fake_xla_frame *out)
{
    memset(out, 0, sizeof *out);
    out->frame = (xla_ffi_frame){.struct_size = sizeof out->frame, .api = &api, .stage = XLA_FFI_EXECUTE};
    out->frame.arguments.types = out->frame.results.types = out->buffer_types;
    out->frame.arguments.buffers = out->arguments;
    out->frame.results.buffers = out->results;
    out->frame.attributes.types = out->attribute_types;
    out->frame.attributes.names = out->name_list;
    out->frame.attributes.values = out->values;
    for (int i = 0; i < FAKE_XLA_BUFFERS; i++)
        out->buffer_types[i] = XLA_FFI_IS_BUFFER;
}

static xla_ffi_buffer *add_buffer(fake_xla_frame *frame, int dtype, void *data, int64_t rank, int64_t *dims)
{
    xla_ffi_buffer *buffer = &frame->buffers[frame->buffer_count++];
    *buffer = (xla_ffi_buffer){sizeof *buffer, NULL, dtype, data, rank, dims};
    return buffer;
}

void fake_xla_argument(fake_xla_frame *frame, int dtype, void *data, int64_t rank, int64_t *dims)
{
    frame->arguments[frame->frame.arguments.size++] = add_buffer(frame, dtype, data, rank, dims);
}

void fake_xla_result(fake_xla_frame *frame, int dtype, void *data, int64_t rank, int64_t *dims)
{
    frame->results[frame->frame.results.size++] = add_buffer(frame, dtype, data, rank, dims);
}

static int64_t add_attribute(fake_xla_frame *frame, const char *name, xla_ffi_attribute_type type, void *value)
{
    int64_t i = frame->frame.attributes.size++;
    frame->names[i] = (xla_ffi_text){name, strlen(name)};
    frame->name_list[i] = &frame->names[i];
    frame->attribute_types[i] = (int)type;
    frame->values[i] = value;
    return i;
}

void fake_xla_string(fake_xla_frame *frame, const char *name, const char *text)
{
    xla_ffi_text *value = &frame->strings[frame->frame.attributes.size];
    *value = (xla_ffi_text){text, strlen(text)};
    add_attribute(frame, name, XLA_FFI_STRING, value);
}

void fake_xla_scalar(fake_xla_frame *frame, const char *name, int dtype, const void *data)
{
    xla_ffi_scalar *value = &frame->scalars[frame->frame.attributes.size];
    *value = (xla_ffi_scalar){dtype, data};
    add_attribute(frame, name, XLA_FFI_SCALAR, value);
}
