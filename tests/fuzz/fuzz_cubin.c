// Binaries for GPUs.
#include "platforms/cuda/cubin.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_cubin_function function;
    char name[32];
    (void)!hone_cubin_only(data, size, name, sizeof name, NULL);
    if (hone_cubin_find(data, size, "vadd", &function, NULL) != HONE_OK) return 0;
    if (function.count > HONE_CUBIN_PARAMETERS) abort();
    return 0;
}
