// Rows of foreign operations: what is accepted takes arguments of every kind, and makes calls or says why not.
#include "call/foreign.h"

#include <stdlib.h>
#include <string.h>

static const char signature_text[] =
    "c(x: T[n, k], y: T[...]?, *, causal: bool = false, mode: str = \"fast\", n: i64? = none)"
    " -> z: T[n, k]";
static const char arguments_text[] = "{\"x\":\"f32[2,3]{vmap_axes=[[0,4],null]}\",\"q\":[\"bf16[2,3]\",{\"dtype\":"
                                     "\"float32\",\"shape\":[2,3]}],\"w\":[3,1],"
                                     "\"m\":{\"x\":1,\"y\":null},\"mode\":\"a.fast\",\"causal\":true}";

static void take(
    const hone_allocator *allocator, const hone_foreign_row *row, hone_signature *signature, json_t *arguments)
{
    for (size_t i = 0; i < hone_foreign_take_count(row); i++) {
        hone_call *call = NULL;
        hone_error err = {0};
        int64_t times = 0;
        hone_status status = hone_foreign_call(allocator, row, i, signature, arguments, &call, &times, &err);
        if ((status == HONE_OK) != (call != NULL) || times < 1) abort();
        if (status != HONE_OK && err.message[0] == '\0') abort();
        hone_call_release(&call);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const hone_allocator system = hone_allocator_system();
    hone_foreign *foreign = NULL;
    hone_error err = {0};
    hone_signature *signature = NULL;
    json_t *arguments = NULL;
    hone_status status = hone_foreign_read(&system, (const char *)data, size, &foreign, &err);
    if ((status == HONE_OK) != (foreign != NULL)) abort();
    if (foreign == NULL) return 0;
    if (hone_signature_parse(system, signature_text, &signature, &err) != HONE_OK ||
        hone_json_parse(arguments_text, strlen(arguments_text), &arguments, &err) != HONE_OK)
        abort();
    for (size_t i = 0; i < foreign->count; i++)
        take(&system, &foreign->rows[i], signature, arguments);
    json_decref(arguments);
    hone_signature_release(&signature);
    hone_foreign_release(&foreign);
    return 0;
}
