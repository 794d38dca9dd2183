// What Triton writes beside a cubin.
#include "platforms/triton/metadata.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_triton_metadata metadata;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (hone_triton_metadata_read(text, &metadata, NULL) == HONE_OK &&
        (metadata.threads == 0 || metadata.threads > 1024 || metadata.trailing > 2 || metadata.blocks == 0))
        abort();
    free(text);
    return 0;
}
