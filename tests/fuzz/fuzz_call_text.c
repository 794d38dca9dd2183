// Call text: what is accepted prints as a text that gives the same call, and its spec, bucket and data hold together.
#include "call/call.h"
#include "two_parts.h"

enum { DATA_MAX = 1 << 16 };

static void check_text(hone_signature *signature, const hone_call *call)
{
    hone_call *again = NULL;
    if (hone_call_parse(hone_allocator_system(), signature, hone_call_text(call), &again, NULL) != HONE_OK) abort();
    if (strcmp(hone_call_text(again), hone_call_text(call)) != 0 ||
        strcmp(hone_call_spec(again), hone_call_spec(call)) != 0)
        abort();
    hone_call_release(&again);
}

static void check_bucket(const hone_call *call)
{
    hone_call *upper = NULL, *twice = NULL, *middle = NULL;
    if (hone_call_bucket(call, true, &upper, NULL) == HONE_OK && upper != NULL &&
        (hone_call_bucket(upper, true, &twice, NULL) != HONE_OK || twice != NULL))
        abort();
    if (hone_call_bucket(call, false, &middle, NULL) == HONE_OK) hone_call_release(&middle);
    hone_call_release(&upper);
}

// Data fits exactly into memory of the span's size: a sanitizer sees what is written beside it.
static void check_data(const hone_call *call, size_t index)
{
    const hone_tensor *tensor = hone_call_tensor(call, index);
    int64_t bytes, below;
    if (tensor == NULL || hone_tensor_span(tensor, &bytes, &below) != HONE_OK || bytes > DATA_MAX) return;
    if (hone_tensor_elements(tensor) > DATA_MAX) return;
    char *memory = malloc(bytes > 0 ? (size_t)bytes : 1);
    hone_tensor copy = *tensor;
    copy.data = memory + below;
    if (memory != NULL) (void)!hone_generate(call, index, &copy, 1, 1, NULL, NULL);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    two_parts parts;
    hone_call *call = NULL;
    hone_error err = {0};
    char name[64], version[16];
    two_parts_open(&parts, data, size);
    if (parts.rest != NULL &&
        hone_call_text_name(parts.rest, name, sizeof name, version, sizeof version, &err) != HONE_OK &&
        err.message[0] == '\0')
        abort();
    if (parts.signature != NULL) {
        hone_status status = hone_call_parse(hone_allocator_system(), parts.signature, parts.rest, &call, &err);
        if ((status == HONE_OK) != (call != NULL)) abort();
    }
    if (call != NULL) {
        check_text(parts.signature, call);
        check_spec(parts.signature, call);
        check_bucket(call);
        for (size_t i = 0; i < hone_signature_count(parts.signature); i++)
            check_data(call, i);
    }
    hone_call_release(&call);
    two_parts_close(&parts);
    return 0;
}
