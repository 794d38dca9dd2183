#include "tune/wire/message.h"

#include "base/assert.h"
#include "base/error.h"
#include "call/call.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

void hone_words_copy(char *out, size_t size, const char *words)
{
    size_t length = strlen(words);
    if (length < size) {
        memcpy(out, words, length + 1);
        return;
    }
    size_t kept = size - sizeof "...";
    while (kept > 0 && ((unsigned char)words[kept] & 0xc0) == 0x80)
        kept--; // does not cut a UTF-8 character
    memcpy(out, words, kept);
    memcpy(out + kept, "...", sizeof "...");
}

static void get_words(hone_wire_reader *reader, char *out, size_t size)
{
    const char *text = hone_wire_get_text(reader);
    hone_words_copy(out, size, text != NULL ? text : "");
}

void hone_message_put_opened(hone_buffer *out, const hone_opened *opened)
{
    hone_wire_put_u32(out, (uint32_t)opened->status);
    hone_wire_put_f64(out, opened->reference_ns);
    hone_wire_put_u64(out, opened->parts);
    hone_wire_put_u64(out, opened->whole);
    hone_wire_put_text(out, opened->how);
    hone_wire_put_text(out, opened->message);
}

void hone_message_get_opened(hone_wire_reader *reader, hone_opened *out)
{
    out->status = (hone_status)hone_wire_get_u32(reader);
    out->reference_ns = hone_wire_get_f64(reader);
    out->parts = hone_wire_get_u64(reader);
    out->whole = hone_wire_get_u64(reader);
    get_words(reader, out->how, sizeof out->how);
    get_words(reader, out->message, sizeof out->message);
}

static hone_failure get_failure(hone_wire_reader *reader)
{
    uint8_t failure = hone_wire_get_u8(reader);
    if (failure >= HONE_FAILURE_COUNT) reader->failed = true;
    return (hone_failure)failure;
}

static void put_spent(hone_buffer *out, const hone_spent *spent)
{
    hone_wire_put_f64(out, spent->prepare_ns);
    hone_wire_put_f64(out, spent->verify_ns);
    hone_wire_put_f64(out, spent->run_ns);
}

static void get_spent(hone_wire_reader *reader, hone_spent *out)
{
    out->prepare_ns = hone_wire_get_f64(reader);
    out->verify_ns = hone_wire_get_f64(reader);
    out->run_ns = hone_wire_get_f64(reader);
}

void hone_message_put_trial(hone_buffer *out, const hone_trial *trial)
{
    hone_wire_put_u8(out, (uint8_t)trial->failure);
    hone_wire_put_f64(out, trial->max_error);
    hone_wire_put_f64(out, trial->time_ns);
    hone_wire_put_f64(out, trial->low_ns);
    hone_wire_put_f64(out, trial->high_ns);
    hone_wire_put_u32(out, trial->samples);
    hone_wire_put_u32(out, trial->taken);
    hone_wire_put_u32(out, trial->disturbed);
    hone_wire_put_u32(out, trial->kept);
    hone_wire_put(out, trial->kept_ns, trial->kept * sizeof trial->kept_ns[0]);
    hone_wire_put(out, trial->kept_waited, trial->kept * sizeof trial->kept_waited[0]);
    hone_wire_put(out, trial->kept_marks, trial->kept * sizeof trial->kept_marks[0]);
    hone_wire_put_u8(out, trial->dropped);
    hone_wire_put_u8(out, trial->refused);
    hone_wire_put_u8(out, trial->spoiled);
    hone_wire_put_u8(out, trial->same);
    hone_wire_put_u8(out, trial->unproven);
    hone_wire_put_f64(out, trial->look_ns);
    hone_wire_put_f64(out, trial->proof_ns);
    hone_wire_put_u64(out, trial->digest);
    put_spent(out, &trial->spent);
    hone_wire_put_u8(out, trial->retired);
    hone_wire_put_text(out, trial->reason);
}

void hone_message_get_trial(hone_wire_reader *reader, hone_trial *out)
{
    out->failure = get_failure(reader);
    out->max_error = hone_wire_get_f64(reader);
    out->time_ns = hone_wire_get_f64(reader);
    out->low_ns = hone_wire_get_f64(reader);
    out->high_ns = hone_wire_get_f64(reader);
    out->samples = hone_wire_get_u32(reader);
    out->taken = hone_wire_get_u32(reader);
    out->disturbed = hone_wire_get_u32(reader);
    out->kept = hone_wire_get_u32(reader);
    if (out->kept > HONE_KEPT_SAMPLES) reader->failed = true;
    if (!reader->failed) {
        hone_wire_get(reader, out->kept_ns, out->kept * sizeof out->kept_ns[0]);
        hone_wire_get(reader, out->kept_waited, out->kept * sizeof out->kept_waited[0]);
        hone_wire_get(reader, out->kept_marks, out->kept * sizeof out->kept_marks[0]);
    }
    out->dropped = hone_wire_get_u8(reader) != 0;
    out->refused = hone_wire_get_u8(reader) != 0;
    out->spoiled = hone_wire_get_u8(reader) != 0;
    out->same = hone_wire_get_u8(reader) != 0;
    out->unproven = hone_wire_get_u8(reader) != 0;
    out->look_ns = hone_wire_get_f64(reader);
    out->proof_ns = hone_wire_get_f64(reader);
    out->digest = hone_wire_get_u64(reader);
    get_spent(reader, &out->spent);
    out->retired = hone_wire_get_u8(reader) != 0;
    get_words(reader, out->reason, sizeof out->reason);
}

void hone_message_put_rounds(hone_buffer *out, const hone_rounds_answer *answer)
{
    hone_assert(answer->count <= HONE_MAX_TOGETHER && answer->rounds <= HONE_MAX_ROUNDS);
    hone_wire_put_u8(out, (uint8_t)answer->failure);
    hone_wire_put_u32(out, answer->failed);
    hone_wire_put_u8(out, answer->retired);
    hone_wire_put_u32(out, answer->count);
    hone_wire_put_u32(out, answer->rounds);
    hone_wire_put_u8(out, answer->spoiled);
    hone_wire_put_u8(out, answer->witnessed);
    hone_wire_put_u8(out, answer->left_out);
    hone_wire_put_u8(out, answer->is_brief);
    put_spent(out, &answer->spent);
    hone_wire_put_text(out, answer->reason);
    for (uint32_t i = 0; i < answer->count; i++) {
        hone_wire_put_f64(out, answer->max_error[i]);
        hone_wire_put(out, answer->samples[i], answer->rounds * sizeof(double));
        hone_wire_put(out, answer->waited[i], answer->rounds * sizeof(double));
        hone_wire_put(out, answer->marks[i], answer->rounds);
    }
}

void hone_message_get_rounds(hone_wire_reader *reader, hone_rounds_answer *out)
{
    out->failure = get_failure(reader);
    out->failed = hone_wire_get_u32(reader);
    out->retired = hone_wire_get_u8(reader) != 0;
    out->count = hone_wire_get_u32(reader);
    out->rounds = hone_wire_get_u32(reader);
    out->spoiled = hone_wire_get_u8(reader) != 0;
    out->witnessed = hone_wire_get_u8(reader) != 0;
    out->left_out = hone_wire_get_u8(reader) != 0;
    out->is_brief = hone_wire_get_u8(reader) != 0;
    get_spent(reader, &out->spent);
    get_words(reader, out->reason, sizeof out->reason);
    if (out->count > HONE_MAX_TOGETHER || out->rounds > HONE_MAX_ROUNDS || out->failed > HONE_MAX_TOGETHER)
        reader->failed = true;
    for (uint32_t i = 0; i < out->count && !reader->failed; i++) {
        out->max_error[i] = hone_wire_get_f64(reader);
        hone_wire_get(reader, out->samples[i], out->rounds * sizeof(double));
        hone_wire_get(reader, out->waited[i], out->rounds * sizeof(double));
        hone_wire_get(reader, out->marks[i], out->rounds);
    }
}

void hone_message_put_peaks(hone_buffer *out, const hone_peaks *peaks)
{
    hone_wire_put(out, peaks, sizeof *peaks);
}

// Replaces values that are not finite or are negative by 0: not known.
static void clean(double *figures, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(figures[i]) || figures[i] < 0) figures[i] = 0;
}

void hone_message_get_peaks(hone_wire_reader *reader, hone_peaks *out)
{
    hone_wire_get(reader, out, sizeof *out);
    if (reader->failed) *out = (hone_peaks){0};
    clean(out->operations, HONE_WIDTHS);
    clean(out->bytes, HONE_LEVELS);
    clean(out->holds, HONE_LEVELS);
    clean(&out->reach, 1);
}

void hone_message_put_device(hone_buffer *out, const hone_device_info *device)
{
    hone_wire_put(out, device, sizeof *device);
    hone_wire_put_text(out, device->name);
    hone_wire_put_text(out, device->fingerprint);
    hone_wire_put_text(out, device->driver);
}

void hone_message_get_device(hone_wire_reader *reader, hone_device_info *out)
{
    hone_wire_get(reader, out, sizeof *out);
    out->name = hone_wire_get_text(reader);
    out->fingerprint = hone_wire_get_text(reader);
    out->driver = hone_wire_get_text(reader);
}

static void put_tensor(hone_buffer *out, const hone_tensor *tensor, uint32_t align)
{
    bool strided = tensor->strides != NULL && !hone_tensor_is_row_major(tensor);
    hone_wire_put(out, &tensor->dtype, sizeof tensor->dtype);
    hone_wire_put(out, &tensor->device, sizeof tensor->device);
    hone_wire_put_u32(out, (uint32_t)tensor->ndim);
    hone_wire_put_u32(out, align);
    hone_wire_put_u8(out, strided);
    for (int32_t i = 0; i < tensor->ndim; i++)
        hone_wire_put_i64(out, tensor->shape[i]);
    for (int32_t i = 0; strided && i < tensor->ndim; i++)
        hone_wire_put_i64(out, tensor->strides[i]);
}

static int64_t *get_dims(hone_wire_reader *reader, int32_t ndim)
{
    int64_t *dims = hone_arena_array(reader->arena, HONE_MAX_RANK, sizeof *dims);
    if (dims == NULL) {
        reader->failed = reader->out_of_memory = true;
        return NULL;
    }
    for (int32_t i = 0; i < ndim; i++)
        dims[i] = hone_wire_get_i64(reader);
    return dims;
}

static void get_tensor(hone_wire_reader *reader, hone_wire_value *out)
{
    hone_tensor *tensor = &out->tensor;
    hone_wire_get(reader, &tensor->dtype, sizeof tensor->dtype);
    hone_wire_get(reader, &tensor->device, sizeof tensor->device);
    tensor->ndim = (int32_t)hone_wire_get_u32(reader);
    out->align = hone_wire_get_u32(reader);
    bool strided = hone_wire_get_u8(reader) != 0;
    if (tensor->ndim < 0 || tensor->ndim > HONE_MAX_RANK) {
        tensor->ndim = 0;
        reader->failed = true;
    }
    tensor->shape = get_dims(reader, tensor->ndim);
    tensor->strides = strided ? get_dims(reader, tensor->ndim) : NULL;
}

void hone_message_put_call(hone_buffer *out, const hone_call *call)
{
    const hone_value *values = hone_call_values(call);
    uint32_t count = (uint32_t)hone_signature_count(hone_call_signature(call));
    hone_wire_put_u32(out, count);
    for (uint32_t i = 0; i < count; i++) {
        hone_wire_put_u32(out, (uint32_t)values[i].tag);
        if (values[i].tag == HONE_VALUE_TENSOR)
            put_tensor(out, values[i].as.tensor, hone_call_align(call, i));
        else if (values[i].tag == HONE_VALUE_STRING)
            hone_wire_put_text(out, values[i].as.string);
        else
            hone_wire_put_i64(out, values[i].as.i64);
    }
}

static void get_value(hone_wire_reader *reader, hone_wire_value *out)
{
    out->value = hone_of_none();
    out->value.tag = (int32_t)hone_wire_get_u32(reader);
    if (out->value.tag == HONE_VALUE_TENSOR)
        get_tensor(reader, out);
    else if (out->value.tag == HONE_VALUE_STRING)
        out->value.as.string = hone_wire_get_text(reader);
    else
        out->value.as.i64 = hone_wire_get_i64(reader);
}

void hone_message_get_call(hone_wire_reader *reader, hone_wire_value **out, uint32_t *out_count)
{
    uint32_t count = hone_wire_get_u32(reader);
    if (count > HONE_MAX_VALUES) reader->failed = true;
    hone_wire_value *values = reader->failed ? NULL : hone_arena_array(reader->arena, count, sizeof *values);
    if (values == NULL && !reader->failed) reader->failed = reader->out_of_memory = true;
    if (values == NULL) count = 0;
    for (uint32_t i = 0; i < count; i++)
        get_value(reader, &values[i]);
    *out = values;
    *out_count = count;
}

void hone_message_put_stopping(hone_buffer *out, const hone_stopping *stopping)
{
    hone_wire_put_f64(out, stopping->best_ns);
    hone_wire_put_f64(out, stopping->noise);
    hone_wire_put_f64(out, stopping->limit_ns);
    hone_wire_put_f64(out, stopping->samples_ns);
    hone_wire_put_u8(out, stopping->is_shared);
    hone_wire_put_u8(out, stopping->is_patient);
}

void hone_message_get_stopping(hone_wire_reader *reader, hone_stopping *out)
{
    out->best_ns = hone_wire_get_f64(reader);
    out->noise = hone_wire_get_f64(reader);
    out->limit_ns = hone_wire_get_f64(reader);
    out->samples_ns = hone_wire_get_f64(reader);
    out->is_shared = hone_wire_get_u8(reader) != 0;
    out->is_patient = hone_wire_get_u8(reader) != 0;
}

void hone_message_put_config(hone_buffer *out, const hone_config *config)
{
    hone_wire_put_u32(out, config->count);
    hone_wire_put(out, config->values, config->count * sizeof config->values[0]);
}

void hone_message_get_config(hone_wire_reader *reader, hone_config *out)
{
    memset(out, 0, sizeof *out);
    out->count = hone_wire_get_u32(reader);
    if (out->count > HONE_MAX_PARAMETERS) {
        out->count = 0;
        reader->failed = true;
    }
    hone_wire_get(reader, out->values, out->count * sizeof out->values[0]);
}

void hone_message_put_digests(hone_buffer *out, const uint64_t *digests, uint32_t count)
{
    hone_wire_put_u32(out, count);
    hone_wire_put(out, digests, count * sizeof digests[0]);
}

void hone_message_get_digests(hone_wire_reader *reader, const uint64_t **out, uint32_t *out_count)
{
    uint32_t count = hone_wire_get_u32(reader);
    if (count > (reader->size - reader->position) / sizeof(uint64_t)) reader->failed = true;
    uint64_t *digests = reader->failed ? NULL : hone_arena_array(reader->arena, count, sizeof *digests);
    if (digests == NULL && !reader->failed) reader->failed = reader->out_of_memory = true;
    *out_count = digests != NULL ? count : 0;
    if (digests != NULL) hone_wire_get(reader, digests, *out_count * sizeof *digests);
    *out = digests;
}
