// StableHLO text with locations.
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_view text = {(const char *)data, size};
    check_reader(text, hone_stablehlo_read);
    check_program(text);
    return 0;
}
