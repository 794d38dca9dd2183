// Call specs, hone's and ejkernel's: what is accepted writes a spec that reads back to the same key.
#include "call/ejkernel.h"
#include "two_parts.h"

// Any JSON that describes arguments is encoded or refused.
static void encode_anything(const char *text, size_t size)
{
    json_t *json = NULL;
    hone_buffer out;
    hone_error err = {0};
    if (hone_json_parse(text, size, &json, NULL) != HONE_OK) return;
    hone_buffer_init(&out, hone_allocator_system());
    if (hone_ejkernel_spec(json, NULL, NULL, &out, &err) != HONE_OK && err.message[0] == '\0') abort();
    hone_buffer_deinit(&out);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    two_parts parts;
    hone_call *call = NULL;
    hone_error err = {0};
    two_parts_open(&parts, data, size);
    if (parts.rest != NULL) encode_anything(parts.rest, parts.rest_size);
    if (parts.signature != NULL) {
        hone_status status =
            hone_call_from_spec(hone_allocator_system(), parts.signature, parts.rest, parts.rest_size, &call, &err);
        if ((status == HONE_OK) != (call != NULL)) abort();
    }
    if (call != NULL) check_spec(parts.signature, call);
    hone_call_release(&call);
    two_parts_close(&parts);
    return 0;
}
