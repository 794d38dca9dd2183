// Recorded spaces of any origin: what is read is written as T4 and must read back with as many rows.
#include "recorded/recorded.h"

#include <stdlib.h>

static void check_again(const hone_recorded *recorded)
{
    hone_buffer text;
    hone_recorded *again;
    size_t count = hone_recorded_count(recorded);
    hone_buffer_init(&text, hone_allocator_system());
    hone_recorded_write_t4(hone_recorded_space(recorded), hone_recorded_at(recorded, 0), count, &text);
    hone_status status =
        hone_recorded_parse(hone_allocator_system(), "t4", hone_buffer_string(&text), text.size, &again, NULL);
    if (status != HONE_OK || hone_recorded_count(again) != count) abort();
    hone_recorded_destroy(&again);
    hone_buffer_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_recorded *recorded;
    hone_error err = {0};
    hone_status status = hone_recorded_parse(hone_allocator_system(), "f", data, size, &recorded, &err);
    if (status == HONE_OK)
        check_again(recorded);
    else if (recorded != NULL || err.message[0] == '\0')
        abort();
    hone_recorded_destroy(&recorded);
    return 0;
}
