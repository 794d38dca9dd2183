// tokamax's cache files, as they come from outside.
#include "exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return exchange_fuzz(HONE_EXCHANGE_TOKAMAX, data, size);
}
