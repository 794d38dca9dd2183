// Signatures: what is accepted prints as a text that is accepted and prints the same, and agrees with itself.
#include "call/call.h"
#include "two_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    two_parts parts;
    two_parts_open(&parts, data, size);
    if (parts.signature != NULL) {
        hone_signature *again = NULL;
        const char *text = hone_signature_text(parts.signature);
        if (hone_signature_parse(hone_allocator_system(), text, &again, NULL) != HONE_OK) abort();
        if (strcmp(hone_signature_text(again), text) != 0) abort();
        if (!hone_signature_compare(parts.signature, again, NULL, NULL, NULL)) abort();
        hone_signature_release(&again);
    }
    two_parts_close(&parts);
    return 0;
}
