// Recorded spaces of any origin: each row that is read is found again by its config.
#include "simulate/recorded.h"

#include <stdlib.h>

static void find_again(const hone_recorded *recorded)
{
    for (size_t i = 0; i < hone_recorded_count(recorded); i++) {
        const hone_recorded_row *row = hone_recorded_at(recorded, i);
        if (hone_recorded_find(recorded, &row->config) != row) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_recorded *recorded;
    hone_error err = {0};
    hone_status status = hone_recorded_parse(hone_allocator_system(), "f", data, size, &recorded, &err);
    if (status == HONE_OK)
        find_again(recorded);
    else if (recorded != NULL || err.message[0] == '\0')
        abort();
    hone_recorded_destroy(&recorded);
    return 0;
}
