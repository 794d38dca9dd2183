// The text of a JSON store's file: whatever it is, what is taken from it must be sound and must read back the same.
#include "store/json/document.h"
#include "store/ops.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const hone_row_shape *const shapes[] = {
    &hone_row_decision,
    &hone_row_measurement,
    &hone_row_failure,
    &hone_row_invocation,
    &hone_row_alias,
    &hone_row_foreign,
    NULL};

static bool write_row(void *ctx, const hone_row_shape *shape, const hone_row *row)
{
    hone_document_row(ctx, shape, row);
    return true;
}

static bool write_damage(void *ctx, const char *text, const char *reason, bool is_new)
{
    (void)is_new;
    hone_document_damage(ctx, text, reason);
    return true;
}

// Reads a text and writes what was in it.
static hone_status rewrite(const char *text, size_t size, hone_buffer *out, bool *out_broken)
{
    const hone_document_reader reader = {hone_allocator_system(), out, write_row, write_damage};
    hone_error err;
    hone_document_begin(out);
    hone_status status = hone_document_read("fuzz.json", text, size, shapes, &reader, out_broken, &err);
    hone_document_end(out);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_buffer first, second;
    bool broken = false;
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    hone_buffer_init(&first, hone_allocator_system());
    hone_buffer_init(&second, hone_allocator_system());
    hone_status status = rewrite(text, size, &first, &broken);
    if (status != HONE_OK && status != HONE_INCOMPATIBLE) abort();
    if (status == HONE_OK) {
        if (rewrite(first.data, first.size, &second, &broken) != HONE_OK || broken) abort();
        if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0) abort();
    }
    hone_buffer_deinit(&first);
    hone_buffer_deinit(&second);
    free(text);
    return 0;
}
