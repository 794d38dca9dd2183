// A PJRT plugin without a compiler: a module's result is twice its first argument, element by element, in f32. Whatever
// it is asked for is checked, and written down. What a real plugin cannot be asked for, an environment variable asks
// for:
//   FAKE_PJRT_MINOR     the version of its interface, 0.MINOR (default 81)
//   FAKE_PJRT_SLOTS     how many functions its table has
//   FAKE_PJRT_WITHOUT   the number of a function that its table lacks
//   FAKE_PJRT_PLATFORM  what it says that it is for (default cpu)
//   FAKE_PJRT_FAIL      "client", "compile", "buffer", "execute", "await": what fails
//   FAKE_PJRT_CODE      with which code (default 13)
//   FAKE_PJRT_ABORT     "compile", "execute": what ends the process
// and of a module what stands behind it: "// wrong", "// fails", "// hangs", and
// "// shifted 2" of one whose second argument is added to twice the first.
//   FAKE_CUDA_LOG       a file that gets a line for each compilation, loading and execution
#include "fake_cuda.h"
#include "platforms/xla/pjrt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { SLOTS = 118, MAX_SHAPES = 8, F32 = 11 };

struct pjrt_error {
    int code;
    char text[128];
};

typedef struct shape {
    int64_t dims[8];
    size_t rank;
    int type;
} shape;

struct pjrt_loaded {
    shape arguments[MAX_SHAPES], result;
    size_t count;
    bool aliases; // the last argument's memory is the result's
    size_t text_size;
    char text[];
};

struct pjrt_buffer {
    void *data;
    bool owned;
    size_t bytes;
};

static char the_client, the_device, the_description, the_event;
static long live; // buffers

static pjrt_error *fail(const char *text)
{
    const char *code = getenv("FAKE_PJRT_CODE");
    pjrt_error *error = calloc(1, sizeof *error);
    if (error == NULL) abort();
    error->code = code != NULL ? atoi(code) : 13;
    snprintf(error->text, sizeof error->text, "the fake fails in %s", text);
    return error;
}

static pjrt_error *due(const char *what)
{
    const char *failing = getenv("FAKE_PJRT_FAIL"), *aborting = getenv("FAKE_PJRT_ABORT");
    if (aborting != NULL && strcmp(aborting, what) == 0) abort();
    return failing != NULL && strcmp(failing, what) == 0 ? fail(what) : NULL;
}

// A caller of a later version has larger structs; one that is smaller is a mistake.
static pjrt_error *check(const void *arguments, size_t size)
{
    const pjrt_head *head = arguments;
    return head->struct_size < size ? fail("struct_size") : NULL;
}

// Errors and events ---------------------------------------------------------------------------------------------------

static pjrt_error *error_destroy(void *arguments)
{
    free(((pjrt_error_arguments *)arguments)->error);
    return NULL;
}

static pjrt_error *error_message(void *arguments)
{
    pjrt_error_message *a = arguments;
    a->text = a->error->text;
    a->size = strlen(a->text);
    return NULL;
}

static pjrt_error *error_code(void *arguments)
{
    pjrt_error_code *a = arguments;
    a->code = a->error->code;
    return NULL;
}

static pjrt_error *nothing(void *arguments)
{
    return check(arguments, sizeof(pjrt_head));
}

static pjrt_error *await(void *arguments)
{
    (void)arguments;
    return due("await");
}

static pjrt_error *attributes(void *arguments)
{
    static const int64_t version[] = {1, 2, 3};
    static const pjrt_named_value value = {
        .name = "stablehlo_current_version",
        .name_size = 25,
        .type = PJRT_NAMED_INTS,
        .value.i64s = version,
        .value_size = 3};
    pjrt_attributes *a = arguments;
    a->values = &value;
    a->count = 1;
    return NULL;
}

// Client and device ---------------------------------------------------------------------------------------------------

static pjrt_error *client_create(void *arguments)
{
    pjrt_client_create *a = arguments;
    pjrt_error *error = check(a, sizeof *a);
    if (error == NULL) error = due("client");
    a->client = (pjrt_client *)&the_client;
    return error;
}

static pjrt_error *platform_name(void *arguments)
{
    pjrt_get_text *a = arguments;
    const char *name = getenv("FAKE_PJRT_PLATFORM");
    a->text = name != NULL ? name : "cpu";
    a->size = strlen(a->text);
    return NULL;
}

static pjrt_error *platform_version(void *arguments)
{
    pjrt_get_text *a = arguments;
    a->text = "fake 1";
    a->size = strlen(a->text);
    return NULL;
}

static pjrt_error *addressable_devices(void *arguments)
{
    static pjrt_device *const devices[] = {(pjrt_device *)&the_device};
    pjrt_addressable_devices *a = arguments;
    a->devices = devices;
    a->count = 1;
    return NULL;
}

static pjrt_error *device_description(void *arguments)
{
    ((pjrt_get *)arguments)->value = &the_description;
    return NULL;
}

static pjrt_error *device_id(void *arguments)
{
    ((pjrt_get_int *)arguments)->value = 0;
    return NULL;
}

// Modules -------------------------------------------------------------------------------------------------------------

static const char *read_shape(const char *at, shape *out)
{
    at = strstr(at, "tensor<");
    if (at == NULL) return NULL;
    at += strlen("tensor<");
    memset(out, 0, sizeof *out);
    while (*at >= '0' && *at <= '9' && out->rank < 8) {
        out->dims[out->rank++] = strtoll(at, (char **)&at, 10);
        at += *at == 'x';
    }
    out->type = strncmp(at, "f32", 3) == 0 ? F32 : 1;
    return at;
}

static size_t elements_of(const shape *s)
{
    size_t count = 1;
    for (size_t i = 0; i < s->rank; i++)
        count *= (size_t)s->dims[i];
    return count;
}

// "@main(%a: tensor<4xf32>, ...) -> tensor<4xf32>"
static pjrt_loaded *parse(const char *text, size_t size)
{
    pjrt_loaded *loaded = calloc(1, sizeof *loaded + size + 1);
    if (loaded == NULL) abort();
    memcpy(loaded->text, text, size);
    loaded->text_size = size;
    const char *at = strstr(loaded->text, "@main("), *arrow = at != NULL ? strstr(at, "->") : NULL;
    shape next;
    while (arrow != NULL && (at = read_shape(at, &next)) != NULL && at < arrow && loaded->count < MAX_SHAPES)
        loaded->arguments[loaded->count++] = next;
    if (arrow == NULL || read_shape(arrow, &loaded->result) == NULL || loaded->count == 0) {
        free(loaded);
        return NULL;
    }
    loaded->aliases = strstr(loaded->text, "tf.aliasing_output") != NULL;
    return loaded;
}

static pjrt_error *compile(void *arguments)
{
    static const char least[] = {0x1a, 4, 0x20, 1, 0x28, 1};
    pjrt_compile *a = arguments;
    pjrt_error *error = check(a, sizeof *a);
    if (error == NULL) error = due("compile");
    if (error != NULL) return error;
    // Without this a real one aborts.
    if (a->options_size < sizeof least || memcmp(a->options, least, sizeof least) != 0) abort();
    fake_log("compile options=%zu", a->options_size);
    a->loaded = parse(a->program->code, a->program->code_size);
    return a->loaded != NULL ? NULL : fail("parsing");
}

static pjrt_error *loaded_destroy(void *arguments)
{
    free(((pjrt_one *)arguments)->object);
    return NULL;
}

static pjrt_error *executable_of(void *arguments)
{
    pjrt_get *a = arguments;
    a->value = a->object;
    return NULL;
}

static pjrt_error *output_types(void *arguments)
{
    pjrt_output_types *a = arguments;
    a->types = &((pjrt_loaded *)a->executable)->result.type;
    a->count = 1;
    return NULL;
}

static pjrt_error *output_dimensions(void *arguments)
{
    pjrt_output_dimensions *a = arguments;
    a->dims = ((pjrt_loaded *)a->executable)->result.dims;
    a->ranks = &((pjrt_loaded *)a->executable)->result.rank;
    return NULL;
}

static unsigned char *put_varint(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

// An HloModuleProtoWithConfig of nothing but shapes, of fewer than 128 bytes.
static pjrt_error *optimized_program(void *arguments)
{
    pjrt_get *a = arguments;
    const pjrt_loaded *loaded = a->object;
    pjrt_program *program = a->value;
    unsigned char bytes[256], *at = bytes + 4;
    for (size_t i = 0; i < loaded->count; i++) {
        unsigned char *size = at + 1;
        *at = 1 << 3 | 2;
        at += 2;
        *at++ = 2 << 3;
        *at++ = (unsigned char)loaded->arguments[i].type;
        for (size_t d = 0; d < loaded->arguments[i].rank; d++) {
            *at++ = 3 << 3;
            at = put_varint(at, (uint64_t)loaded->arguments[i].dims[d]);
        }
        *size = (unsigned char)(at - size - 1);
    }
    bytes[0] = 1 << 3 | 2;
    bytes[1] = (unsigned char)(at - bytes - 2);
    bytes[2] = 4 << 3 | 2;
    bytes[3] = (unsigned char)(at - bytes - 4);
    if (program->code != NULL) memcpy(program->code, bytes, (size_t)(at - bytes));
    program->code_size = (size_t)(at - bytes);
    return NULL;
}

static void keep_bytes(void *owner)
{
    (void)owner;
}

static pjrt_error *serialize(void *arguments)
{
    pjrt_serialize *a = arguments;
    const pjrt_loaded *loaded = (const pjrt_loaded *)a->executable;
    a->bytes = loaded->text;
    a->size = loaded->text_size;
    a->free_owner = keep_bytes;
    return NULL;
}

static pjrt_error *deserialize(void *arguments)
{
    pjrt_deserialize *a = arguments;
    a->loaded = parse(a->bytes, a->size);
    fake_log("load");
    return a->loaded != NULL ? NULL : fail("deserialising");
}

// Buffers and runs ----------------------------------------------------------------------------------------------------

static pjrt_buffer *make_buffer(void *data, size_t bytes, bool copy)
{
    pjrt_buffer *buffer = calloc(1, sizeof *buffer);
    void *own = copy ? malloc(bytes + 1) : data;
    if (buffer == NULL || own == NULL) abort();
    if (copy && data != NULL) memcpy(own, data, bytes);
    *buffer = (pjrt_buffer){own, copy, bytes};
    live++;
    return buffer;
}

static pjrt_error *buffer_from_host(void *arguments)
{
    pjrt_buffer_from_host *a = arguments;
    pjrt_error *error = check(a, sizeof *a);
    if (error == NULL) error = due("buffer");
    if (error != NULL) return error;
    if (a->type <= 0) abort(); // as a real one does
    shape s = {.rank = a->dim_count};
    memcpy(s.dims, a->dims, a->dim_count * sizeof s.dims[0]);
    a->buffer = make_buffer((void *)(uintptr_t)a->data, elements_of(&s) * 4, a->semantics == PJRT_HOST_COPY);
    a->done = (pjrt_event *)&the_event;
    return NULL;
}

// The fake GPU's memory is the host's.
static pjrt_error *view_of_device_buffer(void *arguments)
{
    pjrt_view *a = arguments;
    shape s = {.rank = a->dim_count};
    if (a->on_delete == NULL) abort(); // as a real one does
    memcpy(s.dims, a->dims, a->dim_count * sizeof s.dims[0]);
    a->buffer = make_buffer(a->data, elements_of(&s) * 4, false);
    return NULL;
}

static pjrt_error *buffer_destroy(void *arguments)
{
    pjrt_buffer *buffer = ((pjrt_one *)arguments)->object;
    if (buffer->owned) free(buffer->data);
    free(buffer);
    live--;
    return NULL;
}

static pjrt_error *device_pointer(void *arguments)
{
    pjrt_get *a = arguments;
    a->value = ((pjrt_buffer *)a->object)->data;
    return NULL;
}

static pjrt_error *execute(void *arguments)
{
    pjrt_execute *a = arguments;
    pjrt_error *error = check(a, sizeof *a);
    if (error == NULL) error = due("execute");
    if (error != NULL) return error;
    const pjrt_loaded *loaded = a->loaded;
    if (a->argument_count != loaded->count || a->options == NULL) return fail("arguments");
    pjrt_buffer *const *in = a->argument_lists[0];
    size_t count = elements_of(&loaded->result);
    for (size_t i = 0; i < loaded->count; i++)
        if (in[i]->bytes != elements_of(&loaded->arguments[i]) * 4) return fail("sizes");
    fake_log("execute alias=%d live=%ld", loaded->aliases, live);
    if (strstr(loaded->text, "// fails") != NULL) return fail("execute");
    while (strstr(loaded->text, "// hangs") != NULL)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    const char *shifted = strstr(loaded->text, "// shifted ");
    const float shift = shifted != NULL ? *(const float *)in[1]->data : 0;
    const float factor = shifted != NULL                            ? strtof(shifted + strlen("// shifted "), NULL)
                         : strstr(loaded->text, "// wrong") != NULL ? 3
                                                                    : 2;
    void *to = loaded->aliases ? in[loaded->count - 1]->data : NULL;
    pjrt_buffer *out = make_buffer(to, count * 4, to == NULL);
    for (size_t i = 0; i < count; i++)
        ((float *)out->data)[i] = factor * ((const float *)in[0]->data)[i] + shift;
    a->output_lists[0][0] = out;
    a->complete[0] = (pjrt_event *)&the_event;
    return NULL;
}

// The table -----------------------------------------------------------------------------------------------------------

EXPORT const pjrt_api *GetPjrtApi(void);
const pjrt_api *GetPjrtApi(void)
{
    static union {
        pjrt_api api;
        char bytes[offsetof(pjrt_api, functions) + SLOTS * sizeof(void *)];
    } table;
    pjrt_api *api = &table.api;
    const char *minor = getenv("FAKE_PJRT_MINOR"), *slots = getenv("FAKE_PJRT_SLOTS"),
               *gap = getenv("FAKE_PJRT_WITHOUT");
    api->head.struct_size =
        offsetof(pjrt_api, functions) + (slots != NULL ? strtoul(slots, NULL, 10) : SLOTS) * sizeof(void *);
    api->version.minor = minor != NULL ? atoi(minor) : 81;
    pjrt_function **f = api->functions;
    f[PJRT_ERROR_DESTROY] = error_destroy;
    f[PJRT_ERROR_MESSAGE] = error_message;
    f[PJRT_ERROR_CODE] = error_code;
    f[PJRT_PLUGIN_INITIALIZE] = f[PJRT_EVENT_DESTROY] = f[PJRT_CLIENT_DESTROY] = f[PJRT_EXECUTABLE_DESTROY] = nothing;
    f[PJRT_PLUGIN_ATTRIBUTES] = attributes;
    f[PJRT_EVENT_AWAIT] = await;
    f[PJRT_CLIENT_CREATE] = client_create;
    f[PJRT_CLIENT_PLATFORM_NAME] = platform_name;
    f[PJRT_CLIENT_PLATFORM_VERSION] = f[PJRT_DESCRIPTION_KIND] = platform_version;
    f[PJRT_CLIENT_ADDRESSABLE_DEVICES] = addressable_devices;
    f[PJRT_CLIENT_COMPILE] = compile;
    f[PJRT_CLIENT_BUFFER_FROM_HOST] = buffer_from_host;
    f[PJRT_CLIENT_VIEW_OF_DEVICE_BUFFER] = view_of_device_buffer;
    f[PJRT_DEVICE_DESCRIPTION] = device_description;
    f[PJRT_DEVICE_LOCAL_HARDWARE_ID] = device_id;
    f[PJRT_EXECUTABLE_OUTPUT_COUNT] = nothing;
    f[PJRT_EXECUTABLE_OPTIMIZED_PROGRAM] = optimized_program;
    f[PJRT_EXECUTABLE_SERIALIZE] = serialize;
    f[PJRT_LOADED_DESTROY] = loaded_destroy;
    f[PJRT_LOADED_EXECUTABLE] = executable_of;
    f[PJRT_LOADED_EXECUTE] = execute;
    f[PJRT_DESERIALIZE_AND_LOAD] = deserialize;
    f[PJRT_BUFFER_DESTROY] = buffer_destroy;
    f[PJRT_BUFFER_DEVICE_POINTER] = device_pointer;
    f[PJRT_EXECUTABLE_OUTPUT_TYPES] = output_types;
    f[PJRT_EXECUTABLE_OUTPUT_DIMENSIONS] = output_dimensions;
    if (gap != NULL) f[atoi(gap)] = NULL;
    return api;
}
